//! What a claim takes: the ranges of a ready combination, and where the cursors go.

use std::collections::{BTreeMap, BTreeSet};

use super::{GroupEvaluation, Inputs, MemberEvaluation, member};
use crate::cursor::TargetCursor;
use crate::ids::{AssetId, GroupName};
use crate::reason::Verdict;
use crate::start_params::start_parameters;
use crate::trigger::{Bounds, Claim, Inheritance, Range, StartReason, Status, Trigger, trigger_key};
use crate::version::{Position, Version};

/// A claim that would succeed now, and the cursors after it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimPlan {
    /// What the trigger is made of.
    pub claim: Claim,
    /// The cursors once it is claimed.
    pub cursor: TargetCursor,
}

type BoundsByGroup = BTreeMap<GroupName, BTreeMap<AssetId, Bounds>>;

pub(super) fn plan(inputs: &Inputs<'_>, groups: &[GroupEvaluation]) -> ClaimPlan {
    let replaced = replaced(inputs);
    let ready = groups.iter().filter(|group| group.verdict == Verdict::Ready);
    let mut bounds: BoundsByGroup =
        ready.map(|group| (group.group.clone(), group.members.iter().map(bounds_of_member).collect())).collect();
    if let Some(replaced) = replaced {
        take_over(&mut bounds, replaced);
    }
    let ranges = ranges(inputs, &bounds, replaced);
    let mut cursor = inputs.cursor.clone();
    for range in &ranges {
        let Some(to) = &range.bounds.to else { continue };
        for group in groups_with(inputs, range.asset) {
            cursor.take(group, range.asset, to);
        }
    }
    let names: BTreeSet<GroupName> = bounds.keys().cloned().collect();
    let key = trigger_key(&inputs.target.id, inputs.target.generation, &names, &ranges);
    cursor.open = Some(key.clone());
    cursor.failed = None;
    let parameters = start_parameters(&key, StartReason::Ready, &names, &ranges);
    let inherits = replaced.map(|trigger| Inheritance {
        from: trigger.key.clone(),
        tries: if matches!(trigger.status(), Status::Waiting { .. }) { trigger.tries } else { 0 },
        waiting: match (trigger.status(), trigger.due_at) {
            (Status::Waiting { reason }, Some(due_at)) => Some((reason.clone(), due_at)),
            _ => None,
        },
    });
    ClaimPlan { claim: Claim { key, groups: names, ranges, bounds, parameters, inherits }, cursor }
}

/// The trigger whose data the claim takes over: one that waits, or the last one that failed.
fn replaced<'a>(inputs: &Inputs<'a>) -> Option<&'a Trigger> {
    let waiting = inputs.open.filter(|open| matches!(open.status(), Status::Waiting { .. }));
    waiting.or_else(|| inputs.failed.filter(|failed| matches!(failed.status(), Status::Failed { .. })))
}

/// A member that has not advanced has an empty range at its cursor.
fn bounds_of_member(member: &MemberEvaluation) -> (AssetId, Bounds) {
    let to = if member.has_advanced() { member.newest.clone() } else { member.taken.clone() };
    (member.id, Bounds { from: member.taken.clone(), to })
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
            kept.to = later(kept.to.take(), old.to.clone());
        }
    }
}

/// Not so where the table was never read or never written: such bounds have no lower one that a
/// later claim could keep.
fn consumes(bounds: &Bounds) -> bool {
    bounds.to.is_some()
}

fn later(one: Option<Version>, other: Option<Version>) -> Option<Version> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.position >= other.position { one } else { other }),
        (one, other) => one.or(other),
    }
}

fn groups_with<'a>(inputs: &Inputs<'a>, asset: AssetId) -> impl Iterator<Item = &'a GroupName> {
    let groups = inputs.target.groups.iter();
    groups.filter(move |group| group.members.iter().any(|member| member.asset == asset)).map(|group| &group.name)
}

/// Per asset: up to the highest upper bound of its groups, from the lowest of all cursors that the
/// claim moves, or that the claim of the replaced trigger moved.
fn ranges(inputs: &Inputs<'_>, bounds: &BoundsByGroup, replaced: Option<&Trigger>) -> Vec<Range> {
    let assets: BTreeSet<AssetId> = bounds.values().flat_map(BTreeMap::keys).copied().collect();
    assets.into_iter().filter_map(|asset| range(inputs, bounds, replaced, asset)).collect()
}

fn range(inputs: &Inputs<'_>, bounds: &BoundsByGroup, replaced: Option<&Trigger>, asset: AssetId) -> Option<Range> {
    let mine: Vec<&Bounds> = bounds.values().filter_map(|assets| assets.get(&asset)).collect();
    let to = mine.iter().fold(None, |to, bounds| later(to, bounds.to.clone()));
    let old = replaced.and_then(|trigger| trigger.ranges.iter().find(|range| range.asset == asset));
    let view = inputs.assets.get(&asset);
    let state = view.and_then(|view| view.state);
    let of_moved_cursors = inputs.target.groups.iter().filter_map(|group| {
        let member = group.members.iter().find(|member| member.asset == asset)?;
        let taken = member::lower_bound(inputs, &group.name, member, state);
        let moves = position(taken.as_ref()) < position(to.as_ref());
        moves.then_some(taken)
    });
    let kept = mine.iter().copied().chain(old.map(|range| &range.bounds)).filter(|bounds| consumes(bounds));
    let from = of_moved_cursors
        .chain(kept.map(|bounds| bounds.from.clone()))
        .min_by_key(|version| position(version.as_ref()))
        .flatten();
    let members =
        || inputs.target.groups.iter().flat_map(|group| &group.members).filter(|member| member.asset == asset);
    let mut aliases: BTreeSet<_> = members().map(|member| member.alias.clone()).collect();
    aliases.extend(old.into_iter().flat_map(|range| range.aliases.iter().cloned()));
    let key = members().next().map(|member| member.key.clone()).or_else(|| old.map(|range| range.key.clone()))?;
    Some(Range {
        asset,
        key,
        aliases,
        bounds: Bounds { from, to },
        watermark: state.and_then(|state| state.watermark.as_ref()).map(|watermark| watermark.at.0),
        head_rev: view.map_or(0, |view| view.rev),
    })
}

/// `None`, before every version, sorts first.
fn position(version: Option<&Version>) -> Option<Position> {
    version.map(|version| version.position)
}
