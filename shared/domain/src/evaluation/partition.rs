//! Which partition a group would take next.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Inputs;
use crate::cursor::{MAX_TAKEN_PARTITIONS, TargetCursor};
use crate::ids::AssetId;
use crate::policy::{Partition, PartitionCondition};
use crate::state::{AssetState, MAX_PARTITIONS};
use crate::target::Group;

// What every table of a group still names as complete is never forgotten as taken.
const _: () = assert!(MAX_TAKEN_PARTITIONS >= MAX_PARTITIONS);

/// What a member has of each value.
struct Presence<'a> {
    pieces: BTreeSet<&'a str>,
    first: Timestamp,
}

type ByValue<'a> = BTreeMap<Partition, Presence<'a>>;

/// Whether some member goes by partitions.
pub(super) fn has_partitions(group: &Group) -> bool {
    group.members.iter().any(|member| member.conditions.partition.is_some())
}

/// The keys on which the members of a group that goes by partitions are joined.
pub(super) fn joins_on(group: &Group) -> Option<&[String]> {
    group.members.iter().find_map(|member| Some(member.conditions.partition.as_ref()?.join.as_slice()))
}

fn presence<'a>(state: &'a AssetState, condition: &PartitionCondition) -> ByValue<'a> {
    let mut values: ByValue<'a> = BTreeMap::new();
    for (partition, at) in state.partitions.visible(condition.from) {
        let Some((value, piece)) = condition.part_of(partition) else { continue };
        let known = values.entry(value).or_insert_with(|| Presence { pieces: BTreeSet::new(), first: at });
        known.pieces.insert(piece);
        known.first = known.first.min(at);
    }
    values
}

fn is_complete(presence: &Presence<'_>, condition: &PartitionCondition) -> bool {
    missing(presence, condition).next().is_none()
}

fn missing<'a>(presence: &'a Presence<'_>, condition: &'a PartitionCondition) -> impl Iterator<Item = &'a String> {
    let wanted = condition.full_set.iter().flat_map(|set| &set.values);
    wanted.filter(|value| !presence.pieces.contains(value.as_str()))
}

fn members<'a>(
    group: &'a Group,
    state_of: impl Fn(AssetId) -> Option<&'a AssetState>,
) -> Vec<(&'a PartitionCondition, ByValue<'a>)> {
    let with = group.members.iter().filter_map(|member| Some((member.asset, member.conditions.partition.as_ref()?)));
    with.map(|(asset, condition)| {
        (condition, state_of(asset).map(|state| presence(state, condition)).unwrap_or_default())
    })
    .collect()
}

/// The lowest value that every member has and that was not taken; or else the lowest that some member
/// has and that may still become complete.
pub(super) fn next(inputs: &Inputs<'_>, group: &Group) -> Option<Partition> {
    let members = members(group, |asset| inputs.assets.get(&asset).and_then(super::AssetView::live));
    let taken = inputs.cursor.partitions.get(&group.name);
    let is_open = |value: &&Partition| !taken.is_some_and(|taken| taken.contains(*value));
    let all: BTreeSet<&Partition> = members.iter().flat_map(|(_, values)| values.keys()).filter(is_open).collect();
    let complete = all.iter().find(|value| {
        members.iter().all(|(condition, values)| values.get(**value).is_some_and(|found| is_complete(found, condition)))
    });
    let pending = || {
        all.iter().find(|value| {
            !members.iter().any(|(condition, values)| {
                values.get(**value).is_some_and(|found| is_given_up(found, condition, inputs.now))
            })
        })
    };
    complete.or_else(pending).map(|value| (*value).clone())
}

/// Keeps what a group remembers as taken within its bound. First goes what the fewest of its tables still
/// name, of those the lowest: what all of them name would be complete, and started, again at once.
pub(super) fn forget(inputs: &Inputs<'_>, group: &Group, cursor: &mut TargetCursor) {
    let taken = cursor.partitions.get_mut(&group.name);
    let Some(taken) = taken.filter(|taken| taken.len() > MAX_TAKEN_PARTITIONS) else { return };
    let members = members(group, |asset| inputs.assets.get(&asset).and_then(|view| view.state));
    let named = |value: &Partition| members.iter().filter(|(_, values)| values.contains_key(value)).count();
    let mut ranked: Vec<(usize, Partition)> = taken.iter().map(|value| (named(value), value.clone())).collect();
    ranked.sort_unstable();
    for (_, value) in ranked.iter().take(taken.len() - MAX_TAKEN_PARTITIONS) {
        taken.remove(value);
    }
}

fn is_given_up(presence: &Presence<'_>, condition: &PartitionCondition, now: Timestamp) -> bool {
    condition.horizon.is_some_and(|horizon| now.duration_since(presence.first) >= horizon.duration())
}

/// What a member lacks of a value; `None` where it has all of it.
pub(super) fn lacks(state: &AssetState, condition: &PartitionCondition, value: &Partition) -> Option<Vec<String>> {
    let found = presence(state, condition);
    let Some(presence) = found.get(value) else {
        let set = condition.full_set.as_ref();
        return Some(set.map(|set| set.values.iter().cloned().collect()).unwrap_or_default());
    };
    let missing: Vec<String> = missing(presence, condition).cloned().collect();
    (!missing.is_empty()).then_some(missing)
}

/// The values that every member of a group has now, for a group that begins from now.
pub fn complete<'a>(group: &'a Group, state_of: impl Fn(AssetId) -> Option<&'a AssetState>) -> BTreeSet<Partition> {
    let members = members(group, state_of);
    let Some((_, first)) = members.first() else { return BTreeSet::new() };
    let is_complete = |value: &&Partition| {
        members.iter().all(|(condition, values)| values.get(*value).is_some_and(|found| is_complete(found, condition)))
    };
    first.keys().filter(is_complete).cloned().collect()
}
