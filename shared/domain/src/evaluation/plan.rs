//! What a claim takes: the ranges of a ready combination.

mod moved;

pub use moved::resumed;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;

use super::{GroupEvaluation, Inputs, barrier, member, partition, timing};
use crate::cursor::{Taken, TargetCursor};
use crate::ids::{AssetId, GroupName, TriggerKey};
use crate::policy::{Coalesce, Partition, Window};
use crate::reason::{Reason, Verdict};
use crate::target::{Group, Member, Target};
use crate::trigger::{Bounds, Claim, Distinct, Inheritance, Range, StartReason, Status, Trigger, trigger_key};
use crate::version::{Position, Version};

/// Most conditions that did not hold that a trigger lists.
const MAX_UNMET: usize = 20;

/// A claim that would succeed now, and the cursors after it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimPlan {
    /// What the trigger is made of.
    pub claim: Claim,
    /// The cursors once it is claimed.
    pub cursor: TargetCursor,
}

impl ClaimPlan {
    /// Notes the deadline that the claim comes too late for, so that it does not count for the next.
    pub(super) fn late_for(mut self, deadline: Option<Timestamp>) -> Self {
        self.cursor.alarmed = deadline;
        self
    }
}

type ReachedByGroup<'a> = BTreeMap<GroupName, BTreeMap<AssetId, Reached<'a>>>;
type BoundsByGroup = BTreeMap<GroupName, BTreeMap<AssetId, Bounds>>;

/// What a ready target takes: all groups that are ready together, or, where each trigger stands for
/// itself, those that go with the first.
pub(super) fn ready(inputs: &Inputs<'_>, groups: &[GroupEvaluation]) -> ClaimPlan {
    let mut ready: Vec<&GroupEvaluation> = groups.iter().filter(|group| group.verdict == Verdict::Ready).collect();
    if inputs.target.policies.coalesce == Coalesce::Each {
        ready.truncate(1);
    } else if let Some(step) = ready.iter().copied().find(|group| has_step(group)) {
        // One window or one partition is one trigger: those of the others have their turn after it.
        ready.retain(|group| !has_step(group) || (group.window, &group.partition) == (step.window, &step.partition));
    }
    let window = ready.iter().find_map(|group| group.window);
    let partition = ready.iter().find_map(|group| group.partition.clone());
    let reaches = ready.iter().filter_map(|group| {
        let declared = &inputs.target.group(&group.group)?.members;
        let of_members = group.members.iter().zip(declared).map(|(evaluated, member)| {
            // One that has not advanced stays where it is, in every respect.
            let stays = || {
                let state = inputs.assets.get(&member.asset).and_then(|view| view.state);
                member::taken(inputs, &group.group, member, state)
            };
            let to = evaluated.reach.as_ref().map_or_else(stays, Cow::Borrowed);
            (evaluated.id, Reached { from: evaluated.taken.as_ref().map(Cow::Borrowed), to })
        });
        Some((group.group.clone(), of_members.collect()))
    });
    let draft = Draft { reason: StartReason::Ready, window, partition, tick: None, request: None, unmet: Vec::new() };
    plan(inputs, &reaches.collect(), draft)
}

const fn has_step(group: &GroupEvaluation) -> bool {
    group.window.is_some() || group.partition.is_some()
}

/// What a target takes that starts with what is there, whatever its conditions say.
pub(super) fn forced(
    inputs: &Inputs<'_>,
    groups: &[GroupEvaluation],
    reason: StartReason,
    tick: Option<Timestamp>,
    request: Option<&str>,
) -> ClaimPlan {
    let unready = groups.iter().filter(|group| group.verdict != Verdict::Ready).flat_map(|group| &group.members);
    let mut unmet: Vec<Reason> = unready.filter_map(|member| member.reason.clone()).collect();
    unmet.truncate(MAX_UNMET);
    let reaches = inputs.target.groups.iter().map(|group| {
        let of_member = |member: &Member| {
            let state = inputs.assets.get(&member.asset).and_then(|view| view.state);
            let from = version(member::taken(inputs, &group.name, member, state));
            (member.asset, Reached { from, to: member::at_hand(inputs, &group.name, member) })
        };
        (group.name.clone(), group.members.iter().map(of_member).collect())
    });
    plan(inputs, &reaches.collect(), Draft { reason, window: None, partition: None, tick, request, unmet })
}

/// What a person's request starts now; `None` while something stands in the way of every claim.
pub fn manual(inputs: &Inputs<'_>, request: &str) -> Result<ClaimPlan, Reason> {
    if let Some((_, reason)) = barrier::barrier(inputs) {
        return Err(reason);
    }
    let groups: Vec<GroupEvaluation> =
        inputs.target.groups.iter().map(|group| super::group::evaluate(inputs, group)).collect();
    let timed_out = timing::timing(inputs, &groups).timed_out;
    Ok(forced(inputs, &groups, StartReason::Manual, None, Some(request)).late_for(timed_out))
}

/// The key of what a person's request starts: the same request is the same trigger, also where the target was
/// altered meanwhile, or what it starts takes over the groups of another one.
pub fn manual_key(inputs: &Inputs<'_>, request: &str) -> TriggerKey {
    trigger_key(&Distinct {
        target: &inputs.target.id,
        generation: inputs.target.generation,
        groups: &BTreeSet::new(),
        ranges: &[],
        window: None,
        partition: None,
        tick: None,
        request: Some(request),
        registers: &[],
    })
}

/// The cursors after everything that is there of an asset, or of all of them, counts as taken without
/// a trigger.
pub fn consume(inputs: &Inputs<'_>, asset: Option<AssetId>) -> TargetCursor {
    let mut cursor = inputs.cursor.clone();
    for group in &inputs.target.groups {
        for member in group.members.iter().filter(|member| asset.is_none_or(|asset| member.asset == asset)) {
            let state = inputs.assets.get(&member.asset).and_then(super::AssetView::live);
            if let Some(state) = state.filter(|state| state.hold.is_none()) {
                cursor.take(&group.name, member.asset, &Taken::everything(state, &member.conditions));
            }
        }
        if let (Some(every), Some(slowest), None) =
            (super::group::every(group), slowest_watermark(inputs, group), asset)
        {
            // The window in which the slowest member stands has not ended: the one before has.
            let before = moved::before(every, every.containing(slowest));
            let known = cursor.windows.get(&group.name);
            if known.is_none_or(|known| known.end < before.end) {
                cursor.windows.insert(group.name.clone(), before);
            }
        }
    }
    let state_of = |asset: AssetId| inputs.assets.get(&asset).and_then(super::AssetView::live);
    for group in inputs.target.groups.iter().filter(|group| asset.is_none() && partition::has_partitions(group)) {
        for partition in partition::complete(group, state_of) {
            cursor.take_partition(&group.name, partition);
        }
        partition::forget(inputs, group, &mut cursor);
    }
    cursor.forget_joined();
    cursor.since = Some(inputs.now);
    cursor.advanced_at = None;
    cursor
}

fn slowest_watermark(inputs: &Inputs<'_>, group: &Group) -> Option<Timestamp> {
    let windowed = group.members.iter().filter(|member| member.conditions.every.is_some());
    let watermarks = windowed.map(|member| {
        let at = inputs.assets.get(&member.asset)?.live()?.watermark.as_ref()?.at;
        Timestamp::from_millisecond(at.0).ok()
    });
    watermarks.collect::<Option<Vec<_>>>()?.into_iter().min()
}

struct Draft<'a> {
    reason: StartReason,
    window: Option<Window>,
    partition: Option<Partition>,
    tick: Option<Timestamp>,
    request: Option<&'a str>,
    unmet: Vec<Reason>,
}

/// From where to where a claim takes one asset for one group.
struct Reached<'a> {
    from: Option<Cow<'a, Version>>,
    to: Cow<'a, Taken>,
}

fn version(taken: Cow<'_, Taken>) -> Option<Cow<'_, Version>> {
    match taken {
        Cow::Borrowed(taken) => taken.version.as_ref().map(Cow::Borrowed),
        Cow::Owned(taken) => taken.version.map(Cow::Owned),
    }
}

/// The members of all groups by asset, so that no step of a plan looks through all for each asset.
struct Members<'a>(Vec<(&'a Group, &'a Member)>);

impl<'a> Members<'a> {
    fn of(target: &'a Target) -> Self {
        let with_group = |group: &'a Group| group.members.iter().map(move |member| (group, member));
        let mut members: Vec<_> = target.groups.iter().flat_map(with_group).collect();
        // Stable: those of one asset stay in the order of the groups.
        members.sort_by_key(|(_, member)| member.asset);
        Self(members)
    }

    fn on(&self, asset: AssetId) -> &[(&'a Group, &'a Member)] {
        let begin = self.0.partition_point(|(_, member)| member.asset < asset);
        let (_, rest) = self.0.split_at(begin);
        rest.split_at(rest.partition_point(|(_, member)| member.asset == asset)).0
    }
}

fn plan(inputs: &Inputs<'_>, reaches: &ReachedByGroup<'_>, draft: Draft<'_>) -> ClaimPlan {
    let replaced = replaced(inputs);
    let members = Members::of(inputs.target);
    let bounds_of =
        |reached: &Reached<'_>| Bounds { from: reached.from.as_deref().cloned(), to: reached.to.version.clone() };
    let mut bounds: BoundsByGroup = reaches
        .iter()
        .map(|(group, of_group)| {
            (group.clone(), of_group.iter().map(|(asset, reached)| (*asset, bounds_of(reached))).collect())
        })
        .collect();
    if let Some(replaced) = replaced {
        take_over(&mut bounds, replaced);
    }
    let mut ranges = ranges(inputs, &members, &bounds, replaced);
    for range in &mut ranges {
        let of_asset = members.on(range.asset);
        describe(inputs, of_asset, reaches, range);
        let goes_by_partitions = of_asset.iter().any(|(_, member)| member.conditions.partition.is_some());
        range.partition = draft.partition.clone().filter(|_| goes_by_partitions);
    }
    let names: BTreeSet<GroupName> = bounds.keys().cloned().collect();
    let registers = registers(inputs, reaches);
    let of_evaluation = || {
        trigger_key(&Distinct {
            target: &inputs.target.id,
            generation: inputs.target.generation,
            groups: &names,
            ranges: &ranges,
            window: draft.window,
            partition: draft.partition.as_ref(),
            tick: draft.tick,
            request: None,
            registers: &registers,
        })
    };
    let key = draft.request.map_or_else(of_evaluation, |request| manual_key(inputs, request));
    let mut cursor = moved::moved(inputs, &members, reaches, &ranges, &draft);
    cursor.open = Some(key.clone());
    cursor.failed = None;
    let inherits = replaced.map(|trigger| Inheritance {
        from: trigger.key.clone(),
        tries: if matches!(trigger.status(), Status::Waiting { .. }) { trigger.tries } else { 0 },
        waiting: match (trigger.status(), trigger.due_at) {
            (Status::Waiting { reason }, Some(due_at)) => Some((reason.clone(), due_at)),
            _ => None,
        },
    });
    let claim = Claim {
        key,
        reason: draft.reason,
        groups: names,
        ranges,
        bounds,
        partition: draft.partition,
        window: draft.window,
        unmet: draft.unmet,
        inherits,
    };
    ClaimPlan { claim, cursor }
}

/// Where a member asks for no commit, the register that moved makes its trigger distinct.
fn registers(inputs: &Inputs<'_>, groups: &ReachedByGroup<'_>) -> Vec<(AssetId, String)> {
    let mut registers = BTreeMap::new();
    for (group, of_group) in groups {
        for member in inputs.target.group(group).into_iter().flat_map(|group| &group.members) {
            let conditions = &member.conditions;
            let asks_for_more =
                !conditions.snapshot_required || conditions.backfill_completed || conditions.cdc_lag_recovered;
            let Some(reached) = of_group.get(&member.asset).filter(|_| asks_for_more) else { continue };
            let mut text = String::new();
            let mut add = |name: &str, value: Option<String>| {
                if let Some(value) = value {
                    let _ = write!(text, "{name}={value} ");
                }
            };
            add("watermark", reached.to.watermark.map(|at| at.0.to_string()));
            add("tag", reached.to.tag.clone());
            add("schema", reached.to.schema_id.map(|id| id.to_string()));
            add("backfill", reached.to.backfill.map(|at| at.as_microsecond().to_string()));
            add("cdc", reached.to.cdc.map(|at| at.as_microsecond().to_string()));
            registers.insert(member.asset, text.trim_end().to_owned());
        }
    }
    registers.into_iter().collect()
}

/// What a person should know of a range beside its bounds.
fn describe(inputs: &Inputs<'_>, of_asset: &[(&Group, &Member)], groups: &ReachedByGroup<'_>, range: &mut Range) {
    range.tag = groups.values().find_map(|of_group| {
        let reached = of_group.get(&range.asset)?;
        let tag = reached.to.tag.as_ref()?;
        (reached.to.version == range.bounds.to).then(|| tag.clone())
    });
    let Some(state) = inputs.assets.get(&range.asset).and_then(|view| view.state) else { return };
    let Some(end) = range.bounds.to.as_ref().map(|to| to.position) else { return };
    let from = range.bounds.from.as_ref().map(|from| from.position);
    let inside = |position: Position| from.is_none_or(|from| from < position) && position <= end;
    range.has_backfill = state.backfills.values().any(|backfill| {
        let last = backfill.to.unwrap_or(state.position());
        backfill.from < last && (from.is_none_or(|from| from < last) && backfill.from < end)
    });
    let quality = of_asset.iter().find_map(|(_, member)| member.conditions.quality.as_ref());
    if let Some(quality) = quality {
        let failed = state.quality.failed_between(None, end, &quality.checks);
        range.failed_versions = failed.filter(|version| inside(version.position)).cloned().collect();
    }
}

/// The trigger whose data the claim takes over: one that waits, or the last one that failed. One that
/// failed and held its target is still the open one after the target was altered to hold no more.
fn replaced<'a>(inputs: &Inputs<'a>) -> Option<&'a Trigger> {
    let has_failed = |trigger: &&Trigger| matches!(trigger.status(), Status::Failed { .. });
    let open = inputs.open.filter(|open| barrier::gives_way(inputs, open) || has_failed(open));
    open.or_else(|| inputs.failed.filter(has_failed))
}

/// For every group and asset of the replaced trigger the lower bound is kept and the upper bound
/// is never below the old one. Without this, data that only the old trigger's alternative named
/// would belong to no live trigger.
fn take_over(bounds: &mut BoundsByGroup, replaced: &Trigger) {
    for (group, assets) in &replaced.bounds {
        let mine = bounds.entry(group.clone()).or_default();
        for (asset, old) in assets {
            let kept = mine.entry(*asset).or_insert_with(|| old.clone());
            if consumes(old) {
                kept.from.clone_from(&old.from);
            }
            if position(kept.to.as_ref()) < position(old.to.as_ref()) {
                kept.to.clone_from(&old.to);
            }
        }
    }
}

/// Not so where the table was never read or never written: such bounds have no lower one that a
/// later claim could keep.
fn consumes(bounds: &Bounds) -> bool {
    bounds.to.is_some()
}

/// Per asset: up to the highest upper bound of its groups, from the lowest of all cursors that the
/// claim moves, or that the claim of the replaced trigger moved.
fn ranges(
    inputs: &Inputs<'_>,
    members: &Members<'_>,
    bounds: &BoundsByGroup,
    replaced: Option<&Trigger>,
) -> Vec<Range> {
    let mut assets: Vec<AssetId> = bounds.values().flat_map(BTreeMap::keys).copied().collect();
    assets.sort_unstable();
    assets.dedup();
    let old_of: BTreeMap<AssetId, &Range> =
        replaced.iter().flat_map(|trigger| trigger.ranges.iter().rev()).map(|range| (range.asset, range)).collect();
    let range = |asset| range(inputs, members.on(asset), bounds, old_of.get(&asset).copied(), asset);
    assets.into_iter().filter_map(range).collect()
}

fn range(
    inputs: &Inputs<'_>,
    of_asset: &[(&Group, &Member)],
    bounds: &BoundsByGroup,
    old: Option<&Range>,
    asset: AssetId,
) -> Option<Range> {
    let mine = || bounds.values().filter_map(|assets| assets.get(&asset));
    let upper = mine().filter_map(|bounds| bounds.to.as_ref());
    // Of equal ones the first.
    let to = upper.reduce(|one, other| if one.position >= other.position { one } else { other });
    let view = inputs.assets.get(&asset);
    let state = view.and_then(|view| view.state);
    let keeps_apart = |group: &Group| group.independent || inputs.target.policies.coalesce == Coalesce::Each;
    let of_moved_cursors = of_asset.iter().filter_map(|(group, member)| {
        if keeps_apart(group) && !bounds.contains_key(&group.name) {
            return None;
        }
        let taken = version(member::taken(inputs, &group.name, member, state));
        let moves = position(taken.as_deref()) < position(to);
        moves.then_some(taken)
    });
    let kept = mine().chain(old.map(|range| &range.bounds)).filter(|bounds| consumes(bounds));
    let from = of_moved_cursors
        .chain(kept.map(|bounds| bounds.from.as_ref().map(Cow::Borrowed)))
        .min_by_key(|version| position(version.as_deref()))
        .flatten();
    let mut aliases: BTreeSet<_> = of_asset.iter().map(|(_, member)| member.alias.clone()).collect();
    aliases.extend(old.into_iter().flat_map(|range| range.aliases.iter().cloned()));
    let key = of_asset.first().map(|(_, member)| &member.key).or_else(|| old.map(|range| &range.key))?.clone();
    Some(Range {
        asset,
        key,
        aliases,
        bounds: Bounds { from: from.map(Cow::into_owned), to: to.cloned() },
        watermark: state.and_then(|state| state.watermark.as_ref()).map(|watermark| watermark.at.0),
        partition: None,
        tag: None,
        failed_versions: Vec::new(),
        has_backfill: false,
        head_rev: view.map_or(0, |view| view.rev),
    })
}

/// `None`, before every version, sorts first.
fn position(version: Option<&Version>) -> Option<Position> {
    version.map(|version| version.position)
}
