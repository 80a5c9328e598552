//! Where the cursors of all groups stand after a claim.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{Draft, Members, ReachedByGroup};
use crate::cursor::{Taken, TargetCursor};
use crate::evaluation::{Inputs, choice, group, member, partition};
use crate::ids::GroupName;
use crate::policy::{Coalesce, Every, Partition, Window};
use crate::target::{Group, Member};
use crate::trigger::Range;

/// The cursors after the claim: what it takes of an asset is taken for every other group of the
/// asset too, unless that group is independent or each keeps to itself.
pub(super) fn moved(
    inputs: &Inputs<'_>,
    members: &Members<'_>,
    reaches: &ReachedByGroup<'_>,
    ranges: &[Range],
    draft: &Draft<'_>,
) -> TargetCursor {
    let mut cursor = inputs.cursor.clone();
    for range in ranges {
        let beyond = beyond(reaches, range);
        for group in moved_groups(inputs, members.on(range.asset), reaches) {
            cursor.take(group, range.asset, &beyond);
        }
    }
    move_windows(inputs, reaches, draft.window, &mut cursor.windows);
    if let Some(partition) = &draft.partition {
        take_partition(inputs, reaches, partition, &mut cursor);
    }
    cursor.forget_joined();
    cursor.claimed_at = Some(inputs.now);
    cursor.advanced_at = None;
    cursor
}

/// What a claim takes of an asset, over all its groups.
fn beyond<'a>(reaches: &'a ReachedByGroup<'_>, range: &Range) -> Cow<'a, Taken> {
    let mut of_asset = reaches.values().filter_map(|of_group| of_group.get(&range.asset)).peekable();
    let first = of_asset.next();
    match first {
        // The common case: one group, and nothing that is taken over.
        Some(only) if of_asset.peek().is_none() && only.to.version == range.bounds.to => Cow::Borrowed(&*only.to),
        _ => {
            let mut beyond = Taken { version: range.bounds.to.clone(), ..Taken::default() };
            for reached in first.into_iter().chain(of_asset) {
                let is_same = reached.to.version == beyond.version;
                beyond = Taken {
                    version: beyond.version,
                    totals: if is_same { reached.to.totals } else { beyond.totals },
                    watermark: beyond.watermark.max(reached.to.watermark),
                    tag: reached.to.tag.clone().or(beyond.tag),
                    schema_id: reached.to.schema_id.or(beyond.schema_id),
                    backfill: beyond.backfill.max(reached.to.backfill),
                    cdc: beyond.cdc.max(reached.to.cdc),
                };
            }
            Cow::Owned(beyond)
        }
    }
}

/// The window that is taken is taken for every group that has windows of the same kind, unless that
/// group is independent. A group that has taken none yet keeps its beginning, though the claim moves
/// the watermark that it was counted from. None goes back.
fn move_windows(
    inputs: &Inputs<'_>,
    reaches: &ReachedByGroup<'_>,
    taken: Option<Window>,
    windows: &mut BTreeMap<GroupName, Window>,
) {
    let windowed = || inputs.target.groups.iter().filter_map(|group| Some((group, group::every(group)?)));
    let of_claim: Vec<&Every> =
        windowed().filter(|(group, _)| reaches.contains_key(&group.name)).map(|(_, every)| every).collect();
    for (group, every) in windowed() {
        let joins = reaches.contains_key(&group.name) || (!group.independent && of_claim.contains(&every));
        let known = windows.get(&group.name).copied();
        let known = known.or_else(|| group::next_window(inputs, group).map(|next| before(every, next)));
        let newest = known.into_iter().chain(taken.filter(|_| joins)).max_by_key(|window| window.end);
        windows.extend(newest.map(|window| (group.name.clone(), window)));
    }
}

pub(super) fn before(every: &Every, window: Window) -> Window {
    every.containing(window.start - SignedDuration::from_secs(1))
}

/// The partition that is taken is taken for every group that joins on the same keys, unless that group is
/// independent: of alternatives, one starts it.
fn take_partition(inputs: &Inputs<'_>, reaches: &ReachedByGroup<'_>, taken: &Partition, cursor: &mut TargetCursor) {
    let with_keys = || inputs.target.groups.iter().filter_map(|group| Some((group, partition::joins_on(group)?)));
    let of_claim: Vec<&[String]> =
        with_keys().filter(|(group, _)| reaches.contains_key(&group.name)).map(|(_, keys)| keys).collect();
    for (group, keys) in with_keys() {
        if reaches.contains_key(&group.name) || (!group.independent && of_claim.contains(&keys)) {
            cursor.take_partition(&group.name, taken.clone());
            partition::forget(inputs, group, cursor);
        }
    }
}

/// The cursors after a resume that takes what came meanwhile. With `each` all that is there and not taken
/// becomes one step of each group, whenever that group is ready.
pub fn resumed(inputs: &Inputs<'_>) -> TargetCursor {
    let mut cursor = TargetCursor { paused: None, ..inputs.cursor.clone() };
    if inputs.target.policies.coalesce == Coalesce::Newest {
        return cursor;
    }
    for group in &inputs.target.groups {
        let newest = |member: &Member| {
            let view = *inputs.assets.get(&member.asset)?;
            let state = view.live()?;
            let taken = member::taken(inputs, &group.name, member, Some(state)).position();
            choice::newest_step(inputs, view, state, &member.conditions, taken)
        };
        let there = group.members.iter().filter_map(|member| Some((member.asset, newest(member)?)));
        cursor.joined.entry(group.name.clone()).or_default().extend(there);
    }
    cursor.forget_joined();
    cursor
}

/// The groups whose cursor on an asset a claim moves.
fn moved_groups<'a>(
    inputs: &Inputs<'_>,
    of_asset: &'a [(&'a Group, &'a Member)],
    reaches: &'a ReachedByGroup<'_>,
) -> impl Iterator<Item = &'a GroupName> {
    let is_each = inputs.target.policies.coalesce == Coalesce::Each;
    let with = of_asset.iter().map(|(group, _)| *group);
    with.filter(move |group| reaches.contains_key(&group.name) || !(group.independent || is_each))
        .map(|group| &group.name)
}
