//! Where the cursors of a group that is new begin.

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;
use lakebell_domain::cursor::{Taken, TargetCursor};
use lakebell_domain::evaluation::complete_partitions;
use lakebell_domain::ids::{AssetId, GroupName};
use lakebell_domain::state::{AssetState, Mark, Totals};
use lakebell_domain::target::{Group, Member, StartFrom, Target, snapshot_at};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Position, Version};

use super::past::Past;
use crate::records::AssetHead;

/// How a member that is new begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin<'a> {
    /// As the declaration says.
    Declared(&'a StartFrom),
    /// Before its first version: it was registered after the declaration that takes it in.
    AtZero,
}

/// Puts the cursors of members that `had` does not know where they begin, keeps those of the others,
/// and drops those of members that are gone. A group with prefixes keeps them: what is taken in again was
/// taken before.
pub(super) fn begin(
    cursor: &mut TargetCursor,
    target: &Target,
    past: &Past,
    begin: Begin<'_>,
    had: impl Fn(&GroupName, AssetId) -> bool,
) {
    let mut taken = BTreeMap::new();
    for group in &target.groups {
        let mut of_group = BTreeMap::new();
        if !group.prefixes.is_empty() {
            of_group = cursor.taken.get(&group.name).cloned().unwrap_or_default();
        }
        for member in &group.members {
            let known = cursor.at(&group.name, member.asset).cloned();
            let known = if had(&group.name, member.asset) || (begin == Begin::AtZero && known.is_some()) {
                known
            } else {
                let state = past.heads.get(&member.asset).and_then(AssetHead::live_state);
                state.and_then(|state| first(state, member, begin, past))
            };
            match known {
                Some(known) => drop(of_group.insert(member.asset, known)),
                None => drop(of_group.remove(&member.asset)),
            }
        }
        taken.insert(group.name.clone(), of_group);
    }
    cursor.taken = taken;
    cursor.joined.retain(|name, joined| {
        let names = |asset| target.group(name).is_some_and(|group| group.members.iter().any(|m| m.asset == asset));
        joined.retain(|asset, _| names(*asset) && had(name, *asset));
        !joined.is_empty()
    });
    cursor.windows.retain(|name, _| target.group(name).is_some());
}

/// The partitions that count as taken where the groups of a target begin by them: with `now` all that are
/// complete, with `current` all but the last of them. A group that `goes_on` keeps what it took.
pub(super) fn begin_partitions(
    cursor: &mut TargetCursor,
    target: &Target,
    past: &Past,
    begin: Begin<'_>,
    goes_on: impl Fn(&Group) -> bool,
) {
    cursor.partitions.retain(|name, _| target.group(name).is_some_and(&goes_on));
    let Begin::Declared(start) = begin else { return };
    let keeps = match start {
        StartFrom::Now => 0,
        StartFrom::Current => 1,
        StartFrom::Earliest | StartFrom::Snapshot(_) => return,
    };
    for group in target.groups.iter().filter(|group| !goes_on(group)) {
        let complete = complete_partitions(group, |asset| past.heads.get(&asset).and_then(AssetHead::live_state));
        for partition in complete.into_iter().rev().skip(keeps) {
            cursor.take_partition(&group.name, partition);
        }
    }
}

/// What counts as taken of an asset at the beginning; `None` for one that was never read: its first
/// read is the beginning then.
fn first(state: &AssetState, member: &Member, begin: Begin<'_>, past: &Past) -> Option<Taken> {
    let Begin::Declared(start) = begin else { return Some(Taken::default()) };
    let counted = |taken: Taken| {
        let begins = taken.version.as_ref().map(|version| version.position);
        Taken { totals: past.totals(member.asset, state, begins).unwrap_or(taken.totals), ..taken }
    };
    match start {
        StartFrom::Earliest => Some(Taken { version: before_first(state.epoch), ..Taken::default() }),
        StartFrom::Now => state.baseline.is_some().then(|| Taken::everything(state, &member.conditions)),
        StartFrom::Current => state.baseline.is_some().then(|| counted(before_newest(state, member))),
        StartFrom::Snapshot(_) => {
            let ordinal = *past.starts.get(&member.asset)?;
            let version = predecessor(member.key.format(), Position { epoch: state.epoch, ordinal });
            Some(counted(Taken { version, ..Taken::default() }))
        }
    }
}

/// All but the newest commit that changed data, and no other register.
fn before_newest(state: &AssetState, member: &Member) -> Taken {
    let Some(newest) = state.data.as_ref().map(|data| &data.mark) else { return Taken::default() };
    Taken {
        version: predecessor(member.key.format(), newest.version.position),
        totals: totals_before(newest),
        ..Taken::default()
    }
}

fn totals_before(mark: &Mark) -> Totals {
    Totals {
        data: mark.totals.data.saturating_sub(1),
        empty: mark.totals.empty.saturating_sub(u64::from(mark.is_empty)),
        // What it alone added is read from storage where a member asks for rows.
        rows: mark.totals.rows,
    }
}

/// The place before everything in an epoch. Before the first one there is nothing.
fn before_first(epoch: Epoch) -> Option<Version> {
    let position = Position::start_of(epoch);
    (epoch > Epoch(0)).then(|| Version { position, fingerprint: Fingerprint::from(""), snapshot_id: "".into() })
}

/// The place before a version. Where ordinals follow the format's own dense numbers it has a name.
fn predecessor(format: Format, position: Position) -> Option<Version> {
    let Some(ordinal) = position.ordinal.0.checked_sub(1).filter(|ordinal| *ordinal > 0).map(Ordinal) else {
        return before_first(position.epoch);
    };
    let snapshot_id = snapshot_at(format, ordinal).unwrap_or_default();
    let position = Position { ordinal, ..position };
    Some(Version { position, fingerprint: Fingerprint::from(""), snapshot_id: snapshot_id.into() })
}
