//! A second evaluator, slow and obvious: it looks through whole histories where the real one
//! keeps registers, and remembers what was consumed where the real one keeps bounds.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::ids::{AssetId, GroupName};
use lakebell_domain::target::{Advance, Group, Member, Target};
use lakebell_domain::version::Position;

/// One commit, as it happened.
#[derive(Debug, Clone)]
pub(crate) struct Happened {
    pub(crate) position: Position,
    pub(crate) kind: String,
    pub(crate) changes_data: Option<bool>,
}

/// All that ever happened to an asset.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub(crate) commits: Vec<Happened>,
    pub(crate) epoch: u32,
    /// Before the first read nothing is known of it.
    pub(crate) is_read: bool,
    /// What the first read found as the newest.
    pub(crate) baseline: Option<Position>,
    pub(crate) is_held: bool,
    pub(crate) is_registered: bool,
}

/// What stands in the way of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Slot {
    /// Nothing; a failed trigger may be there to take over.
    #[default]
    Free,
    /// A trigger that will be replaced.
    Waiting,
    /// A trigger that must end first.
    Busy,
}

/// Up to where a group has taken an asset: by triggers that are through, and by all triggers.
/// Absent before anything was taken: then from the first read on.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    through: Option<Position>,
    claimed: Option<Position>,
}

/// What a claim takes of each asset: from, exclusive, to, inclusive.
pub(crate) type Taken = BTreeMap<AssetId, (Option<Position>, Option<Position>)>;

/// What the reference says a claim would be.
#[derive(Debug, PartialEq)]
pub(crate) struct Combination {
    pub(crate) groups: BTreeSet<GroupName>,
    pub(crate) taken: Taken,
}

/// What the reference remembers of a target.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    marks: BTreeMap<(GroupName, AssetId), Mark>,
    /// The trigger that is not through: its groups, and what it takes.
    unsettled: Option<(BTreeSet<GroupName>, Taken)>,
    pub(crate) slot: Slot,
    pub(crate) is_off: bool,
    /// What triggers that are through have taken, in order.
    pub(crate) consumed: Vec<Taken>,
}

impl Memory {
    pub(crate) fn start_from(&mut self, group: &GroupName, asset: AssetId, position: Position) {
        let mark = Mark { through: Some(position), claimed: Some(position) };
        self.marks.insert((group.clone(), asset), mark);
    }

    /// A trigger that takes this has been claimed. A group that keeps to itself and is merely taken over
    /// stays where its own trigger had brought it.
    pub(crate) fn claimed(&mut self, target: &Target, all: &BTreeMap<AssetId, History>, combination: Combination) {
        let ready = target.groups.iter().filter(|group| self.is_ready(group, all));
        let ready: BTreeSet<GroupName> = ready.map(|group| group.name.clone()).collect();
        for (asset, (_, to)) in &combination.taken {
            for group in target.groups.iter().filter(|group| moves(group, &ready, *asset)) {
                let mark = self.marks.entry((group.name.clone(), *asset)).or_default();
                mark.claimed = mark.claimed.max(*to);
            }
        }
        self.unsettled = Some((combination.groups, combination.taken));
    }

    /// The trigger is through: it has started, or a person threw it away.
    pub(crate) fn settled(&mut self) {
        self.consumed.extend(self.unsettled.take().map(|(_, taken)| taken));
        for mark in self.marks.values_mut() {
            mark.through = mark.claimed;
        }
    }

    pub(crate) fn mark(&self, group: &GroupName, asset: AssetId, history: &History) -> Option<Position> {
        let mark = self.marks.get(&(group.clone(), asset)).copied().unwrap_or_default();
        mark.claimed.or(history.baseline)
    }

    fn through(&self, group: &GroupName, asset: AssetId, history: &History) -> Option<Position> {
        let mark = self.marks.get(&(group.clone(), asset)).copied().unwrap_or_default();
        mark.through.or(history.baseline)
    }

    /// What a claim would take now; `None` where none would succeed.
    pub(crate) fn evaluate(&self, target: &Target, all: &BTreeMap<AssetId, History>) -> Option<Combination> {
        if self.is_off || self.slot == Slot::Busy {
            return None;
        }
        let ready: Vec<&Group> = target.groups.iter().filter(|group| self.is_ready(group, all)).collect();
        if ready.is_empty() {
            return None;
        }
        let mut groups: BTreeSet<GroupName> = ready.iter().map(|group| group.name.clone()).collect();
        let mut to: BTreeMap<AssetId, Option<Position>> = BTreeMap::new();
        for group in ready {
            for member in &group.members {
                let history = &all[&member.asset];
                let mark = self.mark(&group.name, member.asset, history);
                let sound = history.is_registered && !history.is_held;
                let newest = if sound { newest_beyond(history, member, mark) } else { None };
                let upto = to.entry(member.asset).or_default();
                *upto = (*upto).max(newest.or(mark));
            }
        }
        if let Some((unsettled, taken)) = &self.unsettled {
            groups.extend(unsettled.iter().cloned());
            for (asset, (_, old)) in taken {
                let upto = to.entry(*asset).or_default();
                *upto = (*upto).max(*old);
            }
        }
        let from = |asset: AssetId, to: Option<Position>| {
            let moved = target.groups.iter().filter(|group| moves(group, &groups, asset));
            let marks = moved.map(|group| self.through(&group.name, asset, &all[&asset]));
            marks.filter(|mark| *mark < to).min().unwrap_or(to)
        };
        let taken = to.into_iter().map(|(asset, to)| (asset, (from(asset, to), to))).collect();
        Some(Combination { groups, taken })
    }

    fn is_ready(&self, group: &Group, all: &BTreeMap<AssetId, History>) -> bool {
        let sound = |member: &&Member| all[&member.asset].is_registered && !all[&member.asset].is_held;
        let advanced = group.members.iter().filter(sound).filter(|member| {
            let history = &all[&member.asset];
            newest_beyond(history, member, self.mark(&group.name, member.asset, history)).is_some()
        });
        let advanced = advanced.count();
        match group.advance {
            Advance::All => advanced == group.members.len(),
            Advance::Any => advanced >= 1,
            Advance::AtLeast(k) => advanced >= k,
        }
    }
}

fn names(group: &Group, asset: AssetId) -> bool {
    group.members.iter().any(|member| member.asset == asset)
}

/// Whether a trigger of these groups takes the asset for this group, too: it is one of them, or it does
/// not keep to itself.
fn moves(group: &Group, of_trigger: &BTreeSet<GroupName>, asset: AssetId) -> bool {
    names(group, asset) && (of_trigger.contains(&group.name) || !group.independent)
}

/// The newest commit of the current history that counts and was not taken.
fn newest_beyond(history: &History, member: &Member, mark: Option<Position>) -> Option<Position> {
    let counts = |commit: &&Happened| match &member.conditions.commit_kinds {
        Some(kinds) => kinds.iter().any(|kind| kind.0 == commit.kind),
        None => commit.changes_data != Some(false),
    };
    let high_enough =
        |commit: &&Happened| {
            member.conditions.minimum.as_ref().is_none_or(|minimum| {
                commit.position.epoch >= minimum.epoch && commit.position.ordinal >= minimum.ordinal
            })
        };
    let current = history.commits.iter().filter(|commit| history.is_read && commit.position.epoch.0 == history.epoch);
    let beyond = current.filter(|commit| Some(commit.position) > mark);
    beyond.filter(counts).filter(high_enough).map(|commit| commit.position).max()
}
