//! Which tables flow into which, as far as writers have said.
//!
//! Lineage decides nothing. It is shown, and it is how a target that writes one of its own inputs is
//! recognised. What is kept is bounded: the edges that were seen last, each for [`REMEMBERED`] after
//! the last time.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::ids::{AssetId, TargetId};
use crate::target::Target;

/// Most edges of an asset in each direction, and most tables that a workflow is known to write.
pub const MAX_EDGES: usize = 64;
/// Most loops over several tables that are kept for a workflow.
pub const MAX_LOOPS: usize = 8;
/// How long an edge counts after it was seen last.
pub const REMEMBERED: SignedDuration = SignedDuration::from_hours(30 * 24);
/// An edge that is seen again within this time is not written again.
pub const FRESH: SignedDuration = SignedDuration::from_hours(6);
/// Longest name of a dataset or job that is kept, in bytes.
pub const MAX_NAME: usize = 256;

/// One end of an edge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Node {
    /// An asset. Its key is for people; a rename does not make it another one.
    Asset {
        /// The asset.
        id: AssetId,
        /// Its key when the edge was seen first.
        key: AssetKey,
    },
    /// A dataset that is no asset, by the name that the writer gives it.
    Dataset(String),
}

impl Node {
    /// A dataset that is no asset; a name that is too long is cut.
    pub fn dataset(name: &str) -> Self {
        Self::Dataset(bounded(name))
    }

    /// The asset, where it is one.
    pub const fn asset(&self) -> Option<AssetId> {
        match self {
            Self::Asset { id, .. } => Some(*id),
            Self::Dataset(_) => None,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Asset { id, .. }, Self::Asset { id: other, .. }) => id == other,
            (Self::Dataset(name), Self::Dataset(other)) => name == other,
            _ => false,
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asset { key, .. } => key.fmt(f),
            Self::Dataset(name) => f.write_str(name),
        }
    }
}

/// What carries data from one table to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Via {
    /// The workflow of a target.
    Target(TargetId),
    /// A job, by the name that the writer gives it.
    Job(String),
}

impl Via {
    /// A job; a name that is too long is cut.
    pub fn job(name: &str) -> Self {
        Self::Job(bounded(name))
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(target) => write!(f, "target {target}"),
            Self::Job(name) => write!(f, "job {name}"),
        }
    }
}

fn bounded(name: &str) -> String {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// An edge, as the asset at one of its ends keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The other end.
    pub node: Node,
    /// What carries the data.
    pub via: Via,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last; exact to [`FRESH`].
    pub last_seen: Timestamp,
}

/// The edges of one asset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lineage {
    /// What it is made from; at most [`MAX_EDGES`].
    pub upstream: Vec<Edge>,
    /// What is made from it; at most [`MAX_EDGES`].
    pub downstream: Vec<Edge>,
}

/// What seeing an edge meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noted {
    /// It was seen a short while ago: nothing has to be written.
    Fresh,
    /// It is known, and counts for longer now.
    Again,
    /// It is new.
    New,
}

impl Lineage {
    /// The edges that still count.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        forget(&mut self.upstream, now);
        forget(&mut self.downstream, now);
        self
    }

    /// Notes where the asset comes from.
    pub fn comes_from(&mut self, node: &Node, via: &Via, now: Timestamp) -> Noted {
        note(&mut self.upstream, node, via, now)
    }

    /// Notes where it goes to.
    pub fn goes_to(&mut self, node: &Node, via: &Via, now: Timestamp) -> Noted {
        note(&mut self.downstream, node, via, now)
    }
}

fn is_stale(last_seen: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last_seen) > REMEMBERED
}

fn is_fresh(last_seen: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last_seen) < FRESH
}

fn forget(edges: &mut Vec<Edge>, now: Timestamp) {
    edges.retain(|edge| !is_stale(edge.last_seen, now));
}

fn note(edges: &mut Vec<Edge>, node: &Node, via: &Via, now: Timestamp) -> Noted {
    forget(edges, now);
    if let Some(known) = edges.iter_mut().find(|edge| edge.node.is_same(node) && edge.via == *via) {
        if is_fresh(known.last_seen, now) {
            return Noted::Fresh;
        }
        known.last_seen = now;
        return Noted::Again;
    }
    if edges.len() >= MAX_EDGES {
        // The one that was not seen for the longest time makes room.
        let oldest = edges.iter().enumerate().min_by_key(|(_, edge)| edge.last_seen).map(|(at, _)| at);
        edges.remove(oldest.unwrap_or_default());
    }
    edges.push(Edge { node: node.clone(), via: via.clone(), first_seen: now, last_seen: now });
    Noted::New
}

/// A table that a workflow writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// The table.
    pub asset: AssetId,
    /// Its key when it was seen first, for people.
    pub key: AssetKey,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last; exact to [`FRESH`].
    pub last_seen: Timestamp,
}

/// A way from what a target's workflow writes back to what the target depends on, over other tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loop {
    /// The target.
    pub target: TargetId,
    /// The tables, from the one that the workflow writes to the one that the target depends on.
    pub tables: Vec<AssetKey>,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last.
    pub last_seen: Timestamp,
}

/// What a workflow is known to write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Writes {
    /// The tables; at most [`MAX_EDGES`].
    pub tables: Vec<Written>,
    /// Loops over several tables; at most [`MAX_LOOPS`].
    pub loops: Vec<Loop>,
}

impl Writes {
    /// What still counts.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.forget(now);
        self
    }

    fn forget(&mut self, now: Timestamp) {
        self.tables.retain(|written| !is_stale(written.last_seen, now));
        self.loops.retain(|found| !is_stale(found.last_seen, now));
    }

    /// Notes a table that the workflow has written.
    pub fn wrote(&mut self, asset: AssetId, key: &AssetKey, now: Timestamp) -> Noted {
        self.forget(now);
        if let Some(known) = self.tables.iter_mut().find(|written| written.asset == asset) {
            if is_fresh(known.last_seen, now) {
                return Noted::Fresh;
            }
            known.last_seen = now;
            return Noted::Again;
        }
        if self.tables.len() >= MAX_EDGES {
            let oldest = self.tables.iter().enumerate().min_by_key(|(_, written)| written.last_seen);
            let oldest = oldest.map(|(at, _)| at);
            self.tables.remove(oldest.unwrap_or_default());
        }
        self.tables.push(Written { asset, key: key.clone(), first_seen: now, last_seen: now });
        Noted::New
    }

    /// Notes a loop over several tables.
    pub fn looped(&mut self, target: &TargetId, tables: &[AssetKey], now: Timestamp) -> Noted {
        self.forget(now);
        let is_same = |found: &Loop| found.target == *target && found.tables == *tables;
        if let Some(known) = self.loops.iter_mut().find(|found| is_same(found)) {
            if is_fresh(known.last_seen, now) {
                return Noted::Fresh;
            }
            known.last_seen = now;
            return Noted::Again;
        }
        if self.loops.len() >= MAX_LOOPS {
            let oldest = self.loops.iter().enumerate().min_by_key(|(_, found)| found.last_seen).map(|(at, _)| at);
            self.loops.remove(oldest.unwrap_or_default());
        }
        let tables = tables.to_vec();
        self.loops.push(Loop { target: target.clone(), tables, first_seen: now, last_seen: now });
        Noted::New
    }

    /// The inputs of a target that its own workflow writes.
    pub fn inputs_of<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = &'a Written> {
        let inputs = target.assets();
        self.tables.iter().filter(move |written| inputs.contains_key(&written.asset))
    }

    /// What a person should know about the loops of a target, a sentence each.
    pub fn warnings(&self, target: &Target) -> Vec<String> {
        let inputs = target.assets();
        let allowed = if target.allows_self_loop {
            "allowed by `allowSelfLoop`"
        } else {
            "each start may lead to the next; set `allowSelfLoop: true` if that is meant"
        };
        let direct = self.inputs_of(target).map(|written| {
            let Written { key, first_seen, last_seen, .. } = written;
            format!(
                "self-loop: the workflow writes {key}, which starts it (seen from {first_seen} to {last_seen}); {allowed}"
            )
        });
        let is_here = |found: &&Loop| {
            found.target == target.id && found.tables.last().is_some_and(|key| inputs.values().any(|own| *own == key))
        };
        let longer = self.loops.iter().filter(is_here).map(|found| {
            let names: Vec<String> = found.tables.iter().map(ToString::to_string).collect();
            let Loop { first_seen, last_seen, .. } = found;
            format!(
                "self-loop: what the workflow writes comes back to what starts it, by {} (seen from {first_seen} to \
                 {last_seen}); {allowed}",
                names.join(" -> ")
            )
        });
        direct.chain(longer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn node(bits: u128) -> Node {
        Node::Asset { id: AssetId::from_bits(bits), key: format!("paimon://db/t{bits}").parse().unwrap() }
    }

    #[test]
    fn an_edge_is_written_once_in_a_while_and_forgotten_in_the_end() {
        let mut lineage = Lineage::default();
        let via = Via::job("spark/daily");
        assert_eq!(lineage.comes_from(&node(1), &via, at(0)), Noted::New);
        assert_eq!(lineage.comes_from(&node(1), &via, at(5)), Noted::Fresh);
        assert_eq!(lineage.comes_from(&node(1), &via, at(7)), Noted::Again);
        assert_eq!(lineage.comes_from(&node(1), &Via::job("other"), at(7)), Noted::New);
        assert_eq!(lineage.clone().at(at(7 + 30 * 24)).upstream.len(), 2);
        assert_eq!(lineage.at(at(8 + 30 * 24)).upstream.len(), 0);
    }

    #[test]
    fn edges_are_bounded_and_the_oldest_goes() {
        let mut lineage = Lineage::default();
        for bits in 0..u128::try_from(MAX_EDGES).unwrap() + 10 {
            lineage.goes_to(&node(bits), &Via::job("j"), at(i64::try_from(bits).unwrap()));
        }
        assert_eq!(lineage.downstream.len(), MAX_EDGES);
        assert_eq!(lineage.downstream[0].node, node(10));
        let mut writes = Writes::default();
        let target: TargetId = "7/t".parse().unwrap();
        for bits in 0..200 {
            let key: AssetKey = format!("paimon://db/t{bits}").parse().unwrap();
            writes.wrote(AssetId::from_bits(bits), &key, at(0));
            writes.looped(&target, &[key], at(0));
        }
        assert_eq!((writes.tables.len(), writes.loops.len()), (MAX_EDGES, MAX_LOOPS));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let name = "é".repeat(200);
        assert_eq!(Node::dataset(&name).to_string().len(), MAX_NAME);
        assert_eq!(Via::job(&format!("x{name}")).to_string().len(), "job ".len() + MAX_NAME - 1);
    }
}
