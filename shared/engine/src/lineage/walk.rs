//! Ways through the edges: from a table downwards, bounded, and back to where it began.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{AssetId, TargetId};
use lakebell_domain::lineage::{Lineage, Node, Via};

use super::keep::{self, NewEdge};
use super::{FoundLoop, heads};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::records::Definition;
use crate::store;

/// Most tables that one walk looks at.
pub(super) const MAX_TABLES: usize = 100;
/// Most steps from where a walk begins.
pub(super) const MAX_STEPS: usize = 8;
/// Most new edges of one flow whose loops are searched.
const MAX_SEARCHES: usize = 16;

/// The lineage of assets, with what still counts.
pub(super) async fn lineages(ports: &Ports, assets: &[AssetId]) -> Result<BTreeMap<AssetId, Lineage>, EngineError> {
    let keys: Vec<_> = assets.iter().copied().map(layout::lineage).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let items = ports.items.get(&keys).await?;
    let now = ports.clock.now();
    let mut found = BTreeMap::new();
    for (asset, key) in assets.iter().zip(&keys) {
        if let Some(item) = store::pick(&items, key) {
            found.insert(*asset, store::decode::<Lineage>(item)?.value.at(now));
        }
    }
    Ok(found)
}

/// One step of a way.
#[derive(Clone)]
struct Step {
    from: AssetId,
    via: Via,
}

/// Loops of several tables that new edges close, and that lead through a target. Those over one table
/// are told by what the workflow writes.
pub(super) async fn loops(ports: &Ports, new: &[NewEdge]) -> Result<Vec<FoundLoop>, EngineError> {
    let mut found = Vec::new();
    for edge in new.iter().take(MAX_SEARCHES) {
        let Some(way) = way(ports, edge.to, edge.from).await? else { continue };
        // From the end of the new edge back to its beginning, and over the edge again.
        let mut tables = vec![edge.to];
        tables.extend(way.iter().map(|(to, _)| *to));
        let vias = way.iter().map(|(_, via)| via).chain([&edge.via]);
        for (at, via) in vias.enumerate() {
            let Via::Target(target) = via else { continue };
            // The target's own output is the table that its edge leads to.
            let mut order = tables.clone();
            order.rotate_left((at + 1) % tables.len());
            found.extend(kept(ports, target, &order).await?);
        }
    }
    Ok(found)
}

/// Notes a loop with the workflow of its target; `Some` where it is new and not meant.
async fn kept(ports: &Ports, id: &TargetId, tables: &[AssetId]) -> Result<Option<FoundLoop>, EngineError> {
    let definition = store::get::<Definition>(&*ports.items, layout::definition(id)).await?;
    let Some(target) = definition.map(|definition| definition.value.target) else { return Ok(None) };
    let is_input = tables.last().is_some_and(|last| target.depends_on(*last));
    let known = heads(ports, tables).await?;
    let keys: Vec<AssetKey> = tables.iter().filter_map(|table| known.get(table).cloned()).collect();
    if !is_input || keys.len() != tables.len() || keys.len() < 2 {
        return Ok(None);
    }
    let at = layout::writes(id.project, &target.workflow);
    let new = keep::note(ports, &at, |writes, now| vec![((), writes.looped(id, &keys, now))]).await?;
    let is_told = !new.is_empty() && !target.allows_self_loop;
    Ok(is_told.then(|| FoundLoop { target: id.clone(), tables: keys }))
}

/// A shortest way down from one table to another, each step as where it leads and by what.
async fn way(ports: &Ports, from: AssetId, to: AssetId) -> Result<Option<Vec<(AssetId, Via)>>, EngineError> {
    let mut came: BTreeMap<AssetId, Step> = BTreeMap::new();
    let mut seen = BTreeSet::from([from]);
    let mut edge_of_search = vec![from];
    for _ in 0..MAX_STEPS {
        if edge_of_search.is_empty() || seen.len() > MAX_TABLES {
            return Ok(None);
        }
        let lineages = lineages(ports, &edge_of_search).await?;
        let mut next = Vec::new();
        for (asset, lineage) in &lineages {
            for edge in &lineage.downstream {
                let Node::Asset { id, .. } = &edge.node else { continue };
                if !seen.insert(*id) {
                    continue;
                }
                came.insert(*id, Step { from: *asset, via: edge.via.clone() });
                if *id == to {
                    return Ok(Some(back(&came, from, to)));
                }
                next.push(*id);
            }
        }
        edge_of_search = next;
    }
    Ok(None)
}

fn back(came: &BTreeMap<AssetId, Step>, from: AssetId, to: AssetId) -> Vec<(AssetId, Via)> {
    let mut way = Vec::new();
    let mut at = to;
    while let Some(step) = came.get(&at).filter(|_| at != from) {
        way.push((at, step.via.clone()));
        at = step.from;
    }
    way.reverse();
    way
}
