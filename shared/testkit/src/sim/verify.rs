//! What holds at rest, by the records and by what truly happened.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::event::{Event, EventKind};
use lakebell_domain::ids::{AssetId, GroupName, TargetId};
use lakebell_domain::policy::Coalesce;
use lakebell_domain::reason::Verdict;
use lakebell_domain::target::Advance;
use lakebell_domain::trigger::{Range, Status};
use lakebell_domain::version::{Ordinal, Position, Version};
use lakebell_engine::ports::items::Item;
use lakebell_engine::rules::Records;
use lakebell_engine::targets;

use super::job;
use super::lake::Table;
use super::menu::{self, REWRITTEN};
use super::run::Run;
use super::shared::State;

/// Versions whose verdicts an asset keeps, the newest ones.
const KEPT: usize = 8;

/// How far a run has come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Faults have stopped, and what was sent has arrived or one pass has run.
    FaultsStopped,
    /// People have done what was theirs as well.
    InOrder,
}

impl Run {
    /// Adds everything that does not hold.
    pub(super) async fn verify(&mut self, at: Stage) {
        let declared = job::ids(&self.names);
        let ports = self.workers.port().ports();
        let explained = match targets::explain(&ports, &declared).await {
            Ok(explained) => explained,
            Err(error) => {
                self.outside.state().wrong.push(format!("rule 5: targets cannot be explained: {error}"));
                return;
            }
        };
        let ready: Vec<TargetId> = explained
            .iter()
            .filter(|explained| explained.evaluation.verdict == Verdict::Ready)
            .map(|explained| explained.evaluation.target.clone())
            .collect();
        let items = self.outside.items.dump();
        let mut state = self.outside.state();
        let mut wrong = match Records::of(&items) {
            Ok(records) if records.triggers == state.records.triggers && records.cursors == state.records.cursors => {
                Vec::new()
            }
            Ok(_) => vec!["rule 5: what was written is not what was checked".to_owned()],
            Err(damaged) => vec![format!("rule 5: {damaged}")],
        };
        wrong.extend(match at {
            Stage::FaultsStopped => what_may_start(&state.records, &items).nothing_left(&ready),
            Stage::InOrder => state.records.nothing_left(&ready),
        });
        wrong.extend(state.records.in_order());
        wrong.extend(self.ranges(&state));
        wrong.extend(started(&state));
        if at == Stage::InOrder || state.profile.is_intact {
            wrong.extend(taken_in(&state));
        }
        wrong.extend(ended_by_right(&state));
        if at == Stage::InOrder {
            let (assets, events) = (of_tables(&state), events(&items));
            for (id, table) in &assets {
                wrong.extend(as_in_storage(&state, *id, table, events.get(id)));
            }
            for explained in &explained {
                wrong.extend(lost(&state, &explained.evaluation.target));
            }
            wrong.extend(self.checked_versions(&state));
            wrong.extend(self.one_by_one(&state));
        }
        for line in &wrong {
            state.tell(line.clone());
        }
        state.wrong.extend(wrong);
    }

    /// Rules 4 and 7: committed bounds, and ranges that follow each other.
    fn ranges(&self, state: &State) -> Vec<String> {
        let committed: BTreeMap<AssetId, BTreeSet<_>> =
            of_tables(state).into_iter().map(|(id, table)| (id, table.ever())).collect();
        let mut wrong = state.records.never_invented(&committed);
        // A target that is altered depends on a table for some of the time only.
        let shifts = |target: &TargetId| {
            self.names.iter().any(|name| menu::is_shifting(name) && menu::target_id(name) == *target)
        };
        let mut steady = state.records.clone();
        steady.definitions.retain(|target, _| !shifts(target));
        // Groups that keep to themselves take the same data once each.
        steady.definitions.retain(|_, definition| {
            let target = &definition.target;
            target.policies.coalesce == Coalesce::Newest && !target.groups.iter().any(|group| group.independent)
        });
        wrong.extend(steady.ranges_tile(&begun(&steady)));
        for (id, table) in of_tables(state) {
            let epochs = state.records.assets.get(&id).map_or(0, |head| head.state.epoch.0);
            if epochs > table.rewrites {
                wrong.push(format!(
                    "rule 4: {} has {epochs} rewrites on record, and {} happened",
                    table.name, table.rewrites
                ));
            }
        }
        wrong
    }

    /// Rule 3 and 4 for the target that asks for checked versions.
    fn checked_versions(&self, state: &State) -> Vec<String> {
        let target = menu::target_id("passed");
        let (Some(cursor), Some(table)) = (state.records.cursors.get(&target), state.tables.get("q")) else {
            return Vec::new();
        };
        let mut latest: BTreeMap<u64, (u32, bool)> = BTreeMap::new();
        for check in &self.checked {
            let known = latest.entry(check.ordinal).or_default();
            *known = (*known).max((check.run, check.has_passed));
        }
        let Some(asset) = of_tables(state).into_iter().find(|(_, table)| table.name == "q").map(|(id, _)| id) else {
            return Vec::new();
        };
        let mut wrong = Vec::new();
        for trigger in state.records.triggers.values().filter(|trigger| trigger.target == target) {
            let to =
                trigger.ranges.iter().find(|range| range.asset == asset).and_then(|range| range.bounds.to.as_ref());
            let Some(to) = to.filter(|_| trigger.unmet.is_empty() && trigger.replaces.is_none()) else { continue };
            let ordinal = to.position.ordinal.0;
            if !self.checked.iter().any(|check| check.ordinal == ordinal && check.has_passed) {
                wrong.push(format!("rule 4: trigger {} took {ordinal}, which never passed", trigger.key));
            }
        }
        let kept: Vec<(u64, bool)> = latest
            .range(..=table.newest())
            .rev()
            .take(KEPT)
            .map(|(ordinal, (_, passed))| (*ordinal, *passed))
            .collect();
        let is_blocked = kept.first().is_some_and(|(_, has_passed)| !has_passed);
        let data = table.data();
        let due = kept.iter().find(|(ordinal, has_passed)| *has_passed && data.contains(ordinal)).map(|(at, _)| *at);
        let taken = cursor.taken.values().filter_map(|of_group| of_group.get(&asset)?.version.as_ref());
        let taken = taken.map(|version| version.position.ordinal.0).max();
        if !is_blocked && taken < due {
            wrong.push(format!("rule 3: {target} took {taken:?}, and {due:?} has passed"));
        }
        wrong
    }

    /// Rule 7 where each version or window stands for itself.
    fn one_by_one(&self, state: &State) -> Vec<String> {
        let ids: BTreeMap<String, AssetId> =
            of_tables(state).into_iter().map(|(id, table)| (table.name.clone(), id)).collect();
        let mut wrong = Vec::new();
        let was_touched = |target: &TargetId| {
            let skipped = |trigger: &&lakebell_domain::trigger::Trigger| {
                trigger.target == *target && (!trigger.unmet.is_empty() || trigger.reason.as_str() == "manual")
            };
            state.records.triggers.values().any(|trigger| skipped(&trigger))
        };
        let pairs = menu::target_id("pairs");
        // A resume joins what came during a pause, and a person may fire: then the pairs are others.
        if self.names.iter().any(|name| name == "pairs") && state.profile.requests == 0 && !was_touched(&pairs) {
            let group: Option<GroupName> = "g".parse().ok();
            let data = |table: &str| state.tables.get(table).map(Table::data).unwrap_or_default();
            let counted: BTreeMap<AssetId, Vec<u64>> =
                ["a", "b"].iter().filter_map(|table| Some((*ids.get(*table)?, data(table)))).collect();
            let found = group.into_iter().flat_map(|group| state.records.each_in_pairs(&pairs, &group, &counted, true));
            wrong.extend(found.filter(|line| not_about_clocks(line)));
        }
        let window = menu::target_id("window");
        let marks = state.tables.get("w").and_then(Table::watermarks);
        if let (Some((first, reached)), true) = (marks, self.names.iter().any(|name| name == "window"))
            && state.profile.requests == 0
        {
            let moment = |at| jiff::Timestamp::from_millisecond(at).ok();
            let every = serde_json::from_value(serde_json::json!({"period": "1h", "timeZone": "UTC"})).ok();
            if let (Some(every), Some(first), Some(reached)) = (every, moment(first), moment(reached)) {
                let found = state.records.each_window_once(&window, &every, first, reached, true);
                wrong.extend(found.into_iter().filter(|line| not_about_clocks(line)));
            }
        }
        wrong
    }
}

/// Machines whose clocks differ may stamp two claims in another order than they came in. That each
/// range begins where the one before it ended says that they came in order.
fn not_about_clocks(line: &str) -> bool {
    !line.contains("were not claimed in the order")
}

/// The records without what people keep from starting.
fn what_may_start(records: &Records, items: &[Item]) -> Records {
    let is_off = |item: &&Item| item.key.pk.starts_with("W#") && item.doc.contains("since");
    let mut records = records.clone();
    if items.iter().find(is_off).is_some() {
        records.triggers.clear();
    }
    let paused = |target: &TargetId| records.cursors.get(target).is_some_and(|cursor| cursor.paused.is_some());
    let kept: Vec<_> = records.triggers.values().filter(|t| paused(&t.target)).map(|t| t.key.clone()).collect();
    records.triggers.retain(|key, _| !kept.contains(key));
    records
}

/// The registered tables.
fn of_tables(state: &State) -> Vec<(AssetId, &Table)> {
    let heads = state.records.assets.iter();
    heads.filter_map(|(id, head)| Some((*id, state.tables.get(head.key.table())?))).collect()
}

/// Commits that are on record, by asset: epoch, ordinal and fingerprint.
fn events(items: &[Item]) -> BTreeMap<AssetId, BTreeSet<(Position, String)>> {
    let mut events: BTreeMap<AssetId, BTreeSet<(Position, String)>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.key.sk.starts_with("E#")) {
        let Ok(event) = serde_json::from_str::<Event>(&item.doc) else { continue };
        if let (EventKind::SnapshotCommitted, Some(mark)) = (event.kind, event.mark()) {
            let version = mark.version;
            events.entry(event.asset).or_default().insert((version.position, version.fingerprint.to_string()));
        }
    }
    events
}

/// Rules 3 and 5: the state stands where storage stands, and each commit between the first one on
/// record and the newest has its event.
fn as_in_storage(
    state: &State,
    id: AssetId,
    table: &Table,
    events: Option<&BTreeSet<(Position, String)>>,
) -> Vec<String> {
    let Some(head) = state.records.assets.get(&id) else { return Vec::new() };
    let mut wrong = Vec::new();
    let name = &table.name;
    let there = table.there();
    let newest = there.last_key_value().map(|(ordinal, commit)| (*ordinal, commit.uuid.clone()));
    let known = head.state.table.as_ref().map(|known| (known.position.ordinal.0, known.fingerprint.to_string()));
    if newest != known {
        wrong.push(format!("rule 3: {name} is at {known:?} on record, and at {newest:?} in storage"));
        return wrong;
    }
    let epoch = head.state.epoch;
    let none = BTreeSet::new();
    let events = events.unwrap_or(&none);
    let of_epoch = || events.iter().filter(|(position, _)| position.epoch == epoch);
    let first = of_epoch().map(|(position, _)| position.ordinal.0).min().unwrap_or(u64::MAX);
    for (ordinal, commit) in there.range(first..) {
        let position = Position { epoch, ordinal: Ordinal(*ordinal) };
        if !events.contains(&(position, commit.uuid.clone())) {
            wrong.push(format!("rule 5: commit {ordinal} of {name} ({}) has no event", commit.uuid));
        }
    }
    if let Some(data) = &head.state.data {
        let newest = there.values().rfind(|commit| commit.is_data).map(|commit| commit.ordinal);
        if newest.is_some_and(|newest| newest != data.mark.version.position.ordinal.0) {
            wrong.push(format!(
                "rule 3: the data of {name} is at {} on record, not at {newest:?}",
                data.mark.version.position
            ));
        }
    }
    let highest = there.values().filter_map(|commit| commit.watermark).max();
    if let (Some(known), Some(highest), true) = (&head.state.watermark, highest, REWRITTEN.contains(&name.as_str()))
        && known.at.0 > highest
        && epoch.0 > 0
        && there.contains_key(&1)
    {
        wrong.push(format!("rule 1: {name} has the watermark of a history that is gone"));
    }
    if head.state.backfills.values().any(lakebell_domain::state::Backfill::is_running) {
        wrong.push(format!("rule 1: a backfill of {name} runs on record, and all have ended"));
    }
    wrong
}

/// Rule 3 by what truly happened, whatever the evaluator says: a plain group whose members have all
/// advanced in storage beyond its cursors was not started.
fn lost(state: &State, target: &TargetId) -> Vec<String> {
    let (Some(definition), Some(cursor)) = (state.records.definitions.get(target), state.records.cursors.get(target))
    else {
        return Vec::new();
    };
    let is_plain = definition.undeclared_at.is_none()
        && cursor.paused.is_none()
        && definition.target.policies.coalesce == Coalesce::Newest
        && cursor.open.is_none();
    let tables: BTreeMap<AssetId, &Table> = of_tables(state).into_iter().collect();
    let mut wrong = Vec::new();
    for group in definition.target.groups.iter().filter(|_| is_plain) {
        let has_conditions = |member: &lakebell_domain::target::Member| {
            member.conditions.quality.is_some() || member.conditions.every.is_some()
        };
        if group.members.iter().any(has_conditions) || group.members.is_empty() {
            continue;
        }
        let advanced = group.members.iter().filter(|member| {
            let Some(head) = state.records.assets.get(&member.asset) else { return false };
            // A first read goes back to a commit of data, and no further than a file that is away: what lies
            // below counts as expired.
            if head.state.data.is_none() {
                return false;
            }
            let newest = tables
                .get(&member.asset)
                .and_then(|table| table.there().values().rfind(|commit| commit.is_data).map(|commit| commit.ordinal));
            let Some(newest) = newest else { return false };
            let newest = Position { epoch: head.state.epoch, ordinal: Ordinal(newest) };
            let taken = match cursor.at(&group.name, member.asset) {
                Some(taken) => taken.position(),
                None => head.state.baseline.as_ref().and_then(|known| known.version.as_ref()).map(|v| v.position),
            };
            taken.is_none_or(|taken| taken < newest)
        });
        let needed = match group.advance {
            Advance::All => group.members.len(),
            Advance::Any => 1,
            Advance::AtLeast(k) => k,
        };
        if advanced.count() >= needed {
            wrong.push(format!("rule 3: {target}/{} has advanced in storage and was never started", group.name));
        }
    }
    wrong
}

/// Where the ranges of the target with a prefix begin: it is declared while its tables are registered and
/// written to, so that some were there before it, and count from there.
fn begun(records: &Records) -> BTreeMap<(TargetId, AssetId), Option<Version>> {
    let target = menu::target_id("prefix");
    let mut first: BTreeMap<AssetId, &Range> = BTreeMap::new();
    for range in records.triggers.values().filter(|trigger| trigger.target == target).flat_map(|t| &t.ranges) {
        let at = |version: &Option<Version>| version.as_ref().map(|version| version.position);
        let place = |range: &Range| (at(&range.bounds.to), at(&range.bounds.from));
        let known = first.entry(range.asset).or_insert(range);
        if place(range) < place(known) {
            *known = range;
        }
    }
    first.into_iter().map(|(asset, range)| ((target.clone(), asset), range.bounds.from.clone())).collect()
}

/// Rule 3: a target with a prefix has every registered table that begins alike.
fn taken_in(state: &State) -> Vec<String> {
    let target = menu::target_id("prefix");
    let Some(definition) = state.records.definitions.get(&target) else { return Vec::new() };
    let members = definition.target.assets();
    let begins_alike = |table: &Table| menu::LATER.contains(&table.name.as_str());
    let missing = of_tables(state).into_iter().filter(|(id, table)| begins_alike(table) && !members.contains_key(id));
    missing.map(|(_, table)| format!("rule 3: {target} does not depend on {}", table.name)).collect()
}

/// Rule 2: one instance for each trigger that started, and none for one that did not, but for what
/// the scheduler's contract makes undecidable.
fn started(state: &State) -> Vec<String> {
    let starts = state.ds.starts();
    let mut wrong = Vec::new();
    for (trigger, count) in &starts {
        let is_excused = state.ds.excuses.contains_key(trigger) || is_assumed(state, trigger);
        if *count > 1 && !is_excused {
            wrong.push(format!("rule 2: trigger {trigger} has {count} instances"));
        }
        match state.records.triggers.get(trigger).map(lakebell_domain::trigger::Trigger::status) {
            None => wrong.push(format!("rule 4: an instance carries {trigger}, which nobody claimed")),
            Some(Status::Skipped { why, .. }) if !is_excused => {
                wrong.push(format!("rule 4: trigger {trigger} started and is skipped: {why}"));
            }
            Some(Status::Failed { code, .. }) if !is_excused => {
                wrong.push(format!("rule 2: trigger {trigger} started and is failed: {code}"));
            }
            Some(_) => {}
        }
    }
    for trigger in state.records.triggers.values() {
        let has_started = matches!(trigger.status(), Status::Success { assumed: false });
        if has_started && !starts.contains_key(&trigger.key) {
            wrong.push(format!("rule 3: trigger {} is said to have started, and did not", trigger.key));
        }
    }
    wrong
}

/// Whether nobody could tell, and the target says what to assume then.
fn is_assumed(state: &State, trigger: &lakebell_domain::ids::TriggerKey) -> bool {
    state.ds.undecided.contains(trigger)
        && state.records.triggers.get(trigger).is_some_and(|trigger| trigger.target == menu::target_id("assumed"))
}

/// A trigger fails by itself only for what the scheduler refused for good, or refused too often; and
/// is held only where a check could not decide.
fn ended_by_right(state: &State) -> Vec<String> {
    let mut wrong = Vec::new();
    for trigger in state.records.triggers.values() {
        let key = &trigger.key;
        match trigger.status() {
            Status::Failed { code, .. } if !state.ds.refused.contains(key) && trigger.tries + 1 < 20 => {
                wrong.push(format!("rule 3: trigger {key} failed with {code}, and nothing was refused for good"));
            }
            Status::Unknown { held: true, .. } if !state.ds.undecided.contains(key) && trigger.tries < 20 => {
                wrong.push(format!("rule 3: trigger {key} is held, and no check was undecided"));
            }
            _ => {}
        }
    }
    wrong
}
