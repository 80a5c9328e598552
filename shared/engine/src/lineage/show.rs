//! Lineage for people: what a table is made from and what is made from it, over several steps.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{AssetId, TargetId};
use lakebell_domain::lineage::{Edge, Writes};
use serde::Serialize;

use super::keep;
use super::walk::{MAX_STEPS, MAX_TABLES, lineages};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::store;

/// Which way to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What the table is made from.
    Upstream,
    /// What is made from it.
    Downstream,
}

/// The lineage of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// Every edge that was found, nearest first.
    pub edges: Vec<ShownEdge>,
    /// The targets that the tables start.
    pub targets: Vec<ShownTarget>,
    /// There is more: the walk ended at its limit of tables or steps.
    pub is_cut: bool,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownEdge {
    /// How many steps away it is, from 1.
    pub steps: usize,
    /// Where the data comes from.
    pub from: String,
    /// Where it goes to.
    pub to: String,
    /// What carries it.
    pub via: String,
    /// When it was last seen, to within hours.
    pub last_seen: Timestamp,
}

/// A target that a table starts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownTarget {
    /// The table.
    pub asset: String,
    /// The target.
    pub target: TargetId,
    /// What its workflow is known to write.
    pub writes: Vec<AssetKey>,
    /// What is known of loops through it, a sentence each.
    pub warnings: Vec<String>,
}

/// Walks from a table, in one direction or both, at most `steps` steps. `may_show` says whose targets
/// may be told of.
pub async fn show(
    ports: &Ports,
    asset: (AssetId, &AssetKey),
    directions: &[Direction],
    steps: usize,
    may_show: impl Fn(&TargetId) -> bool,
) -> Result<Shown, EngineError> {
    let mut edges = BTreeSet::new();
    let mut tables = vec![(asset.0, asset.1.clone())];
    let mut is_cut = false;
    for direction in directions {
        let cut = walk(ports, asset, *direction, steps.min(MAX_STEPS), &mut edges, &mut tables).await?;
        is_cut |= cut;
    }
    let mut targets = BTreeSet::new();
    for (id, key) in &tables {
        for definition in keep::dependents(ports, *id).await? {
            let target = definition.target;
            if !may_show(&target.id) {
                continue;
            }
            let writes =
                store::get::<Writes>(&*ports.items, layout::writes(target.id.project, &target.workflow)).await?;
            let writes = writes.map(|writes| writes.value.at(ports.clock.now())).unwrap_or_default();
            let warnings = writes.warnings(&target);
            let writes = writes.tables.into_iter().map(|written| written.key).collect();
            targets.insert(ShownTarget { asset: key.to_string(), target: target.id, writes, warnings });
        }
    }
    Ok(Shown { edges: edges.into_iter().collect(), targets: targets.into_iter().collect(), is_cut })
}

async fn walk(
    ports: &Ports,
    (start, key): (AssetId, &AssetKey),
    direction: Direction,
    most: usize,
    edges: &mut BTreeSet<ShownEdge>,
    tables: &mut Vec<(AssetId, AssetKey)>,
) -> Result<bool, EngineError> {
    let mut seen = BTreeSet::from([start]);
    let mut here = vec![(start, key.clone())];
    for steps in 1..=most {
        let ids: Vec<AssetId> = here.iter().map(|(id, _)| *id).collect();
        let mut lineages = lineages(ports, &ids).await?;
        let mut next = Vec::new();
        for (id, key) in &here {
            let Some(lineage) = lineages.remove(id) else { continue };
            let of_asset = if direction == Direction::Upstream { lineage.upstream } else { lineage.downstream };
            for Edge { node, via, last_seen, .. } in of_asset {
                let (own, other) = (key.to_string(), node.to_string());
                let (from, to) = if direction == Direction::Upstream { (other, own) } else { (own, other) };
                edges.insert(ShownEdge { steps, from, to, via: via.to_string(), last_seen });
                if let lakebell_domain::lineage::Node::Asset { id, key } = node
                    && seen.insert(id)
                {
                    next.push((id, key));
                }
            }
        }
        if next.is_empty() {
            return Ok(false);
        }
        // Only what is made from a table is started by it.
        if direction == Direction::Downstream {
            tables.extend(next.iter().cloned());
        }
        if seen.len() > MAX_TABLES {
            return Ok(true);
        }
        here = next;
    }
    Ok(true)
}
