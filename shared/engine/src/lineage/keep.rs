//! Edges and what workflows write, each in a bounded item of its own.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::ids::AssetId;
use lakebell_domain::lineage::{Lineage, MAX_EDGES, Node, Noted, REMEMBERED, Via, Writes};

use super::{FoundLoop, Started};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Draft, Key, Write, Written};
use crate::records::{Definition, Pointer};
use crate::store::{self, MAX_LOST_RACES};

/// Items written in one transaction: few, so that two writers seldom meet.
const TOGETHER: usize = 20;

/// An edge between two assets that was not known.
pub(super) struct NewEdge {
    pub(super) from: AssetId,
    pub(super) to: AssetId,
    pub(super) via: Via,
}

/// Keeps an edge from each input to each output with both ends. Returns those between assets that are
/// new.
pub(super) async fn edges(
    ports: &Ports,
    inputs: &[Node],
    outputs: &[Node],
    via: &Via,
) -> Result<Vec<NewEdge>, EngineError> {
    let mut assets: Vec<AssetId> = inputs.iter().chain(outputs).filter_map(Node::asset).collect();
    assets.sort_unstable();
    assets.dedup();
    let mut new = Vec::new();
    for chunk in assets.chunks(TOGETHER) {
        let notes = keep_chunk(ports, chunk, inputs, outputs, via).await?;
        new.extend(notes);
    }
    Ok(new)
}

async fn keep_chunk(
    ports: &Ports,
    assets: &[AssetId],
    inputs: &[Node],
    outputs: &[Node],
    via: &Via,
) -> Result<Vec<NewEdge>, EngineError> {
    let keys: Vec<Key> = assets.iter().copied().map(layout::lineage).collect();
    for _ in 0..MAX_LOST_RACES {
        let now = ports.clock.now();
        let items = ports.items.get(&keys).await?;
        let (mut actions, mut new) = (Vec::new(), Vec::new());
        for (asset, key) in assets.iter().zip(&keys) {
            let known = store::pick(&items, key).map(store::decode::<Lineage>).transpose()?;
            let rev = known.as_ref().map(|known| known.rev);
            let mut lineage = known.map(|known| known.value).unwrap_or_default();
            let is_at = |nodes: &[Node]| nodes.iter().any(|node| node.asset() == Some(*asset));
            let mut noted = Noted::Fresh;
            if is_at(inputs) {
                for output in outputs.iter().filter(|node| node.asset() != Some(*asset)).take(MAX_EDGES) {
                    let of_edge = lineage.goes_to(output, via, now);
                    noted = noted.max(of_edge);
                    // Told once, by the end where it begins.
                    if let (Noted::New, Some(to)) = (of_edge, output.asset()) {
                        new.push(NewEdge { from: *asset, to, via: via.clone() });
                    }
                }
            }
            if is_at(outputs) {
                for input in inputs.iter().filter(|node| node.asset() != Some(*asset)).take(MAX_EDGES) {
                    noted = noted.max(lineage.comes_from(input, via, now));
                }
            }
            if noted > Noted::Fresh {
                let draft = expiring(ports, key.clone(), &lineage)?;
                actions.push(Write::put(draft, rev));
            }
        }
        if actions.is_empty() || store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(new);
        }
    }
    Err(store::lost_too_often("keep lineage"))
}

/// What nobody sees again goes by itself.
fn expiring<T: serde::Serialize>(ports: &Ports, key: Key, value: &T) -> Result<Draft, EngineError> {
    Ok(Draft { expires_at: Some(ports.clock.now() + REMEMBERED), ..store::draft(key, value)? })
}

/// Keeps what a workflow writes. Returns the targets that turn out to be started by it.
pub(super) async fn writes(ports: &Ports, started: &Started, outputs: &[Node]) -> Result<Vec<FoundLoop>, EngineError> {
    let outputs: BTreeMap<AssetId, _> = outputs
        .iter()
        .filter_map(|node| match node {
            Node::Asset { id, key } => Some((*id, key.clone())),
            Node::Dataset(_) => None,
        })
        .collect();
    if outputs.is_empty() {
        return Ok(Vec::new());
    }
    let mut new = BTreeSet::new();
    for workflow in &started.workflow {
        let at = layout::writes(started.project, workflow);
        let noted = note(ports, &at, |writes, now| {
            outputs.iter().map(|(id, key)| (*id, writes.wrote(*id, key, now))).collect()
        });
        new.extend(noted.await?);
    }
    let mut found = Vec::new();
    for asset in new {
        for target in dependents(ports, asset).await? {
            let target = target.target;
            let is_its_own = target.id.project == started.project && started.workflow.contains(&target.workflow);
            if is_its_own && !target.allows_self_loop {
                let tables = outputs.get(&asset).cloned().into_iter().collect();
                found.push(FoundLoop { target: target.id, tables });
            }
        }
    }
    Ok(found)
}

/// Changes what a workflow is known to write; returns what was new.
pub(super) async fn note<T: Copy>(
    ports: &Ports,
    key: &Key,
    change: impl Fn(&mut Writes, jiff::Timestamp) -> Vec<(T, Noted)>,
) -> Result<Vec<T>, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = store::get::<Writes>(&*ports.items, key.clone()).await?;
        let rev = known.as_ref().map(|known| known.rev);
        let mut writes = known.map(|known| known.value).unwrap_or_default();
        let notes = change(&mut writes, ports.clock.now());
        let new = notes.iter().filter(|(_, noted)| *noted == Noted::New).map(|(what, _)| *what).collect();
        if notes.iter().all(|(_, noted)| *noted == Noted::Fresh) {
            return Ok(new);
        }
        let action = Write::put(expiring(ports, key.clone(), &writes)?, rev);
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            return Ok(new);
        }
    }
    Err(store::lost_too_often("keep what a workflow writes"))
}

/// Most targets of one asset that are looked at for a loop.
const MAX_DEPENDENTS: usize = 100;

/// The declared targets that depend on an asset.
pub(super) async fn dependents(ports: &Ports, asset: AssetId) -> Result<Vec<Definition>, EngineError> {
    let page = ports.items.query(&layout::pointers(asset), Some(MAX_DEPENDENTS), None).await?;
    let mut keys = Vec::with_capacity(page.found.len());
    for item in &page.found {
        keys.push(layout::definition(&store::decode::<Pointer>(item)?.value.target));
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let items = ports.items.get(&keys).await?;
    let mut definitions = Vec::with_capacity(items.len());
    for item in &items {
        let definition = store::decode::<Definition>(item)?.value;
        if definition.undeclared_at.is_none() && definition.target.depends_on(asset) {
            definitions.push(definition);
        }
    }
    definitions.sort_by(|one, other| one.target.id.cmp(&other.target.id));
    Ok(definitions)
}
