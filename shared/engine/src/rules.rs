//! The rules that must always hold, as checks over recorded state.
//!
//! The simulation, the end-to-end tests and the audit all use this module. It reads items as the
//! store has them and says what is wrong in sentences. Nothing that decides calls it.

mod step;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lakebell_domain::cursor::{Taken, TargetCursor};
use lakebell_domain::ids::{AssetId, GroupName, TargetId, TriggerKey};
use lakebell_domain::policy::{Every, Window};
use lakebell_domain::trigger::{Status, Trigger};
use lakebell_domain::version::{Position, Version};

use crate::ports::items::Item;
use crate::records::{AssetHead, Definition};

/// A commit that truly happened: its ordinal and its fingerprint.
pub type Committed = (u64, String);

/// Everything that is recorded, decoded.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// Assets by id.
    pub assets: BTreeMap<AssetId, AssetHead>,
    /// Definitions by target.
    pub definitions: BTreeMap<TargetId, Definition>,
    /// Cursors by target.
    pub cursors: BTreeMap<TargetId, TargetCursor>,
    /// Triggers by key.
    pub triggers: BTreeMap<TriggerKey, Trigger>,
}

impl Records {
    /// Decodes a dump of the store. Items of other kinds are passed over; a damaged one is an error.
    pub fn of(items: &[Item]) -> Result<Self, String> {
        let mut records = Self::default();
        items.iter().try_for_each(|item| records.take_in(item))?;
        Ok(records)
    }

    /// Decodes one item, in the place of what was known of it.
    pub fn take_in(&mut self, item: &Item) -> Result<(), String> {
        let bad = |error: serde_json::Error| format!("{}/{}: {error}", item.key.pk, item.key.sk);
        let (kind, id) = item.key.pk.split_once('#').unwrap_or((item.key.pk.as_str(), ""));
        match (kind, item.key.sk.as_str()) {
            ("A", "0") => {
                let id = id.parse().map_err(|error| format!("{error}"))?;
                self.assets.insert(id, serde_json::from_str(&item.doc).map_err(bad)?);
            }
            ("T", "DEF") => {
                let id = id.parse().map_err(|error| format!("{error}"))?;
                self.definitions.insert(id, serde_json::from_str(&item.doc).map_err(bad)?);
            }
            ("T", "CUR") => {
                let id = id.parse().map_err(|error| format!("{error}"))?;
                self.cursors.insert(id, serde_json::from_str(&item.doc).map_err(bad)?);
            }
            ("K", _) => {
                let trigger: Trigger = serde_json::from_str(&item.doc).map_err(bad)?;
                self.triggers.insert(trigger.key.clone(), trigger);
            }
            _ => {}
        }
        Ok(())
    }

    fn of_target<'a>(&'a self, target: &'a TargetId) -> impl Iterator<Item = &'a Trigger> {
        self.triggers.values().filter(move |trigger| trigger.target == *target)
    }

    /// Rule 1, between two dumps: no position and no cursor went back.
    pub fn monotone_since(&self, before: &Self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (id, head) in &self.assets {
            let was = before.assets.get(id).map(|head| head.state.position());
            if was.is_some_and(|was| was > head.state.position()) {
                wrong.push(format!("rule 1: {} went back to {}", head.key, head.state.position()));
            }
        }
        for (target, cursor) in &self.cursors {
            let Some(was) = before.cursors.get(target) else { continue };
            for (group, assets) in &was.taken {
                for (asset, taken) in assets {
                    let now = cursor.at(group, *asset).map(Taken::position);
                    if now.is_some_and(|now| now < taken.position()) {
                        wrong.push(format!("rule 1: the cursor of {target}/{group} on {asset} went back"));
                    }
                }
            }
        }
        wrong
    }

    /// Rule 2: no trigger key among these starts comes twice.
    pub fn started_once(starts: &[TriggerKey]) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let twice = starts.iter().filter(|key| !seen.insert(*key));
        twice.map(|key| format!("rule 2: trigger {key} started more than once")).collect()
    }

    /// Rule 4: every bound of every trigger was truly committed.
    pub fn never_invented(&self, committed: &BTreeMap<AssetId, BTreeSet<Committed>>) -> Vec<String> {
        let mut wrong = Vec::new();
        for trigger in self.triggers.values() {
            for range in &trigger.ranges {
                for version in [&range.bounds.from, &range.bounds.to].into_iter().flatten() {
                    let commit = (version.position.ordinal.0, version.fingerprint.to_string());
                    if !committed.get(&range.asset).is_some_and(|commits| commits.contains(&commit)) {
                        wrong.push(format!("rule 4: trigger {} names {commit:?}, which never was", trigger.key));
                    }
                }
            }
        }
        wrong
    }

    /// Rule 6: a target has at most one trigger that has not ended, and its cursors name it.
    pub fn in_order(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (target, cursor) in &self.cursors {
            let open: Vec<&Trigger> = self.of_target(target).filter(|trigger| !trigger.has_ended()).collect();
            wrong.extend(in_order_by(target, cursor, &open));
        }
        wrong
    }

    /// Rule 7 with `newest`: for every target and asset the ranges of the triggers whose data was
    /// not taken over by another one follow each other without gap or overlap, up to the cursor.
    ///
    /// `since` are the versions from which each asset counts for each target.
    pub fn ranges_tile(&self, since: &BTreeMap<(TargetId, AssetId), Option<Version>>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (target, definition) in &self.definitions {
            for asset in definition.target.assets().into_keys() {
                let mut ranges: Vec<(&Trigger, Option<Position>, Option<Position>)> = self
                    .of_target(target)
                    .filter(|trigger| !is_superseded(trigger))
                    .filter_map(|trigger| {
                        let range = trigger.ranges.iter().find(|range| range.asset == asset)?;
                        let at = |version: &Option<Version>| version.as_ref().map(|version| version.position);
                        // A table that was never read: nothing is consumed, and its first read is the beginning.
                        let to = at(&range.bounds.to)?;
                        Some((trigger, at(&range.bounds.from), Some(to)))
                    })
                    .collect();
                ranges.sort_by_key(|(_, from, to)| (*to, *from));
                let mut reached =
                    since.get(&(target.clone(), asset)).and_then(|version| version.as_ref()).map(|v| v.position);
                for (trigger, from, to) in ranges {
                    if from != reached {
                        wrong.push(format!(
                            "rule 7: trigger {} takes {asset} from {from:?}, and {reached:?} was reached",
                            trigger.key
                        ));
                    }
                    reached = to;
                }
            }
        }
        wrong
    }

    /// Rule 7 over recorded state alone: within a group no two triggers take the same version of an
    /// asset. What was passed over, reset or altered away leaves gaps that are none, so only overlaps
    /// are told; triggers of windows and partitions may share a version.
    pub fn no_overlap(&self) -> Vec<String> {
        type Line<'a> = (&'a TargetId, u32, &'a GroupName, AssetId);
        type Taken<'a> = (Option<Position>, Option<Position>, &'a Trigger);
        let mut lines: BTreeMap<Line<'_>, Vec<Taken<'_>>> = BTreeMap::new();
        let whole = |trigger: &&Trigger| trigger.window.is_none() && trigger.partition.is_none();
        for trigger in self.triggers.values().filter(|trigger| !is_superseded(trigger)).filter(whole) {
            for (group, assets) in &trigger.bounds {
                for (asset, bounds) in assets {
                    let at = |version: &Option<Version>| version.as_ref().map(|version| version.position);
                    let (from, to) = (at(&bounds.from), at(&bounds.to));
                    if from < to {
                        let line = (&trigger.target, trigger.generation, group, *asset);
                        lines.entry(line).or_default().push((to, from, trigger));
                    }
                }
            }
        }
        let mut wrong = Vec::new();
        for ((target, _, group, asset), mut taken) in lines {
            taken.sort_by_key(|(to, from, trigger)| (*to, *from, trigger.claimed_at));
            for pair in taken.windows(2) {
                let [(before, ..), (_, from, trigger)] = pair else { continue };
                if from < before {
                    wrong.push(format!(
                        "rule 7: trigger {} of {target}/{group} takes again what an earlier one took of {asset}",
                        trigger.key
                    ));
                }
            }
        }
        wrong
    }

    /// Rule 4 over recorded state alone: no cursor is beyond what its table has come to, where the table is
    /// among the records.
    pub fn cursors_within_heads(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (target, cursor) in &self.cursors {
            for (group, assets) in &cursor.taken {
                for (asset, taken) in assets {
                    let Some(head) = self.assets.get(asset) else { continue };
                    if taken.position().is_some_and(|taken| taken > head.state.position()) {
                        wrong.push(format!("rule 4: the cursor of {target}/{group} is beyond {}", head.key));
                    }
                }
            }
        }
        wrong
    }

    /// Rule 7 with `each`: the triggers of a group are the pairs of the k-th versions of its members,
    /// in order. `counted` are the ordinals of each member that count, oldest first. At rest all are
    /// there; before, the first ones.
    pub fn each_in_pairs(
        &self,
        target: &TargetId,
        group: &GroupName,
        counted: &BTreeMap<AssetId, Vec<u64>>,
        is_at_rest: bool,
    ) -> Vec<String> {
        type Pair = BTreeMap<AssetId, (Option<u64>, Option<u64>)>;
        let pair = |k: usize| -> Pair {
            let before = |versions: &[u64]| k.checked_sub(1).and_then(|at| versions.get(at).copied());
            counted.iter().map(|(asset, versions)| (*asset, (before(versions), versions.get(k).copied()))).collect()
        };
        let complete = counted.values().map(Vec::len).min().unwrap_or(0);
        let expected: Vec<Pair> = (0..complete).map(pair).collect();
        let ordinal = |version: &Option<Version>| version.as_ref().map(|version| version.position.ordinal.0);
        let mut found: Vec<(Pair, Timestamp)> = self
            .of_target(target)
            .filter(|trigger| trigger.groups.contains(group))
            .map(|trigger| {
                let bounds = trigger.ranges.iter().map(|range| (range.asset, &range.bounds));
                let pair = bounds.map(|(asset, bounds)| (asset, (ordinal(&bounds.from), ordinal(&bounds.to))));
                (pair.collect(), trigger.claimed_at)
            })
            .collect();
        found.sort_by_key(|(pair, _)| pair.values().map(|(_, to)| *to).collect::<Vec<_>>());
        in_order(target, found, &expected, is_at_rest)
    }

    /// Rule 7 with windows: each window from the one that holds `first` to the last that `reached`
    /// completes is one trigger, in order. At rest all are there; before, the first ones.
    pub fn each_window_once(
        &self,
        target: &TargetId,
        every: &Every,
        first: Timestamp,
        reached: Timestamp,
        is_at_rest: bool,
    ) -> Vec<String> {
        let following = std::iter::successors(Some(every.containing(first)), |window| Some(every.after(window.end)));
        let expected: Vec<Option<Window>> = following.take_while(|window| window.end <= reached).map(Some).collect();
        let mut found: Vec<_> = self.of_target(target).map(|trigger| (trigger.window, trigger.claimed_at)).collect();
        found.sort_by_key(|(window, claimed_at)| (*window, *claimed_at));
        in_order(target, found, &expected, is_at_rest)
    }

    /// Rule 3 at rest: nothing that is ready is left, and every trigger has ended. `ready` are the
    /// targets that an evaluation finds READY now. What a task waits for is left until it asks.
    pub fn nothing_left(&self, ready: &[TargetId]) -> Vec<String> {
        let waits =
            |target: &&TargetId| self.definitions.get(*target).is_some_and(|known| known.target.waits_for_sensor());
        let ready = ready.iter().filter(|target| !waits(target));
        let mut wrong: Vec<String> =
            ready.map(|target| format!("rule 3: {target} is ready and nothing started it")).collect();
        let open = self.triggers.values();
        let open = open.filter(|trigger| !trigger.has_ended() && !is_held(trigger) && !trigger.waits_for_sensor());
        wrong.extend(
            open.map(|trigger| format!("rule 3: trigger {} is still {}", trigger.key, trigger.status().step())),
        );
        wrong
    }
}

/// Rule 6 for one target, by the triggers of it that have not ended.
fn in_order_by(target: &TargetId, cursor: &TargetCursor, open: &[&Trigger]) -> Vec<String> {
    let mut wrong = Vec::new();
    if open.len() > 1 {
        wrong.push(format!("rule 6: {target} has {} open triggers", open.len()));
    }
    for trigger in open.iter().filter(|trigger| cursor.open.as_ref() != Some(&trigger.key)) {
        wrong.push(format!("rule 6: trigger {} is open and its target does not name it", trigger.key));
    }
    wrong
}

/// What was found is what was expected, or the beginning of it, and was claimed in this order.
fn in_order<T: PartialEq + std::fmt::Debug>(
    target: &TargetId,
    found: Vec<(T, Timestamp)>,
    expected: &[T],
    is_at_rest: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if !found.is_sorted_by_key(|(_, claimed_at)| *claimed_at) {
        wrong.push(format!("rule 7: the triggers of {target} were not claimed in the order of what they take"));
    }
    let found: Vec<T> = found.into_iter().map(|(what, _)| what).collect();
    if !expected.starts_with(&found) || (is_at_rest && found.len() < expected.len()) {
        wrong.push(format!("rule 7: {target} took {found:?} and not {expected:?}"));
    }
    wrong
}

fn is_superseded(trigger: &Trigger) -> bool {
    matches!(trigger.status(), Status::Skipped { superseded_by: Some(_), .. })
}

fn is_held(trigger: &Trigger) -> bool {
    matches!(trigger.status(), Status::Unknown { held: true, .. })
}
