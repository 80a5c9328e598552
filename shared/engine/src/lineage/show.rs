//! Lineage for people: what a table is made from and what is made from it, over several steps.

use std::collections::BTreeSet;

use jiff::Timestamp;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId};
use lakebell_domain::lineage::{Edge, Node, Via, Writes};
use serde::Serialize;

use super::keep;
use super::walk::{MAX_STEPS, MAX_TABLES, lineages};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::records::AssetHead;
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

/// What an asset is called that a project may not know of.
const HIDDEN: &str = "a table of another project";

/// Walks from a table, in one direction or both, at most `steps` steps. Targets and tables of other projects are
/// not told of, and a walk does not go through them.
pub async fn show(
    ports: &Ports,
    asset: (AssetId, &AssetKey),
    directions: &[Direction],
    steps: usize,
    project: ProjectCode,
) -> Result<Shown, EngineError> {
    let mut edges = BTreeSet::new();
    let mut tables = vec![(asset.0, asset.1.clone())];
    let mut is_cut = false;
    for direction in directions {
        let way = Way { project, direction: *direction, most: steps.min(MAX_STEPS) };
        is_cut |= walk(ports, asset, way, &mut edges, &mut tables).await?;
    }
    let mut targets = BTreeSet::new();
    for (id, key) in &tables {
        for definition in keep::dependents(ports, *id).await? {
            let target = definition.target;
            if target.id.project != project {
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

/// Which way a walk goes, how far, and for whom.
#[derive(Clone, Copy)]
struct Way {
    project: ProjectCode,
    direction: Direction,
    most: usize,
}

/// The assets that a project may know of.
async fn visible(ports: &Ports, project: ProjectCode, assets: &[AssetId]) -> Result<BTreeSet<AssetId>, EngineError> {
    let keys: Vec<_> = assets.iter().copied().map(layout::head).collect();
    let items = if keys.is_empty() { Vec::new() } else { ports.items.get(&keys).await? };
    let mut seen = BTreeSet::new();
    for (asset, key) in assets.iter().zip(&keys) {
        if let Some(item) = store::pick(&items, key) {
            if store::decode::<AssetHead>(item)?.value.is_visible_to(project) {
                seen.insert(*asset);
            }
        }
    }
    Ok(seen)
}

async fn walk(
    ports: &Ports,
    (start, key): (AssetId, &AssetKey),
    Way { project, direction, most }: Way,
    edges: &mut BTreeSet<ShownEdge>,
    tables: &mut Vec<(AssetId, AssetKey)>,
) -> Result<bool, EngineError> {
    let mut seen = BTreeSet::from([start]);
    let mut here = vec![(start, key.clone())];
    for steps in 1..=most {
        let ids: Vec<AssetId> = here.iter().map(|(id, _)| *id).collect();
        let mut lineages = lineages(ports, &ids).await?;
        let mut found = Vec::new();
        for (id, key) in &here {
            let Some(lineage) = lineages.remove(id) else { continue };
            let of_asset = if direction == Direction::Upstream { lineage.upstream } else { lineage.downstream };
            found.extend(of_asset.into_iter().map(|edge| (key.to_string(), edge)));
        }
        let mut others: Vec<AssetId> = found.iter().filter_map(|(_, edge)| edge.node.asset()).collect();
        others.sort_unstable();
        others.dedup();
        let visible = visible(ports, project, &others).await?;
        let mut next = Vec::new();
        for (own, Edge { node, via, last_seen, .. }) in found {
            let is_hidden = node.asset().is_some_and(|id| !visible.contains(&id));
            let other = if is_hidden { HIDDEN.to_owned() } else { node.to_string() };
            let via = match &via {
                Via::Target(target) if target.project != project => "a target of another project".to_owned(),
                via => via.to_string(),
            };
            let (from, to) = if direction == Direction::Upstream { (other, own) } else { (own, other) };
            edges.insert(ShownEdge { steps, from, to, via, last_seen });
            if let Node::Asset { id, key } = node
                && !is_hidden
                && seen.insert(id)
            {
                next.push((id, key));
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
