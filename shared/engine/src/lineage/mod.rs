//! What flows where, as writers tell it: kept beside the assets, shown, and searched for loops.
//!
//! Lineage decides nothing and is never on the path of a commit. Each asset keeps its own edges in one
//! bounded item, each workflow the tables that it is known to write in another, so that a declaration
//! reads one item to know whether a target would write its own input.

mod keep;
mod names;
mod show;
mod walk;

pub(crate) use names::keep_names;
pub use show::{Direction, Shown, ShownEdge, ShownTarget, show};

use std::collections::BTreeMap;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TriggerKey};
use lakebell_domain::lineage::{Node, Via, Writes};
use lakebell_domain::target::{KnownAssets, Target, TargetSpec, WorkflowRef};
use lakebell_domain::trigger::Trigger;
use serde::{Deserialize, Serialize};

use crate::layout;
use crate::ports::Ports;
use crate::push::Named;
use crate::records::{AssetHead, Definition};
use crate::store;
use crate::{EngineError, ErrorKind};

/// Most tables on each side of one flow; what is beyond is left out.
pub const MAX_SIDE: usize = 64;

/// One run of a job, or its declaration: what it reads and what it writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flow {
    /// The job, by the name that the writer gives it.
    pub job: String,
    /// What it reads.
    pub inputs: Vec<Dataset>,
    /// What it writes.
    pub outputs: Vec<Dataset>,
    /// What of Lakebell's had it started, where the writer says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<StartedBy>,
}

/// A dataset as a writer names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dataset {
    /// Its name, for people.
    pub name: String,
    /// How it may be found among the assets; they are tried until one is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<Named>,
}

/// What had a job started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StartedBy {
    /// A trigger, by the `lakebell_trigger_key` that its workflow received.
    Trigger(TriggerKey),
    /// A target.
    Target(TargetId),
    /// A workflow.
    Workflow(ProjectCode, WorkflowRef),
}

/// A loop that was found just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLoop {
    /// The target that writes what starts it.
    pub target: TargetId,
    /// From the table that its workflow writes to the one that it depends on.
    pub tables: Vec<AssetKey>,
}

/// The workflow that a flow belongs to, and its targets as far as they are known.
struct Started {
    project: ProjectCode,
    /// By its name or its code, as the flow or the target has it, and by the other where that is known.
    workflow: Vec<WorkflowRef>,
    target: Option<Target>,
}

/// Keeps what a flow says, and returns the loops that it is the first to show.
///
/// Errors: `Contention` and `Unavailable`, after which the same flow may be kept again.
pub async fn record(ports: &Ports, flow: &Flow) -> Result<Vec<FoundLoop>, EngineError> {
    let mut inputs = resolve(ports, &flow.inputs).await?;
    let outputs = resolve(ports, &flow.outputs).await?;
    let started = match &flow.started_by {
        Some(by) => started(ports, by).await?,
        None => None,
    };
    let target = started.as_ref().and_then(|started| started.target.as_ref());
    let via = target.map_or_else(|| Via::job(&flow.job), |target| Via::Target(target.id.clone()));
    if let Some(target) = target {
        // The writer may not name what it reads; what starts it is read all the same.
        let named: Vec<AssetId> = inputs.iter().filter_map(Node::asset).collect();
        let members = target.assets().into_iter().filter(|(id, _)| !named.contains(id));
        inputs.extend(members.map(|(id, key)| Node::Asset { id, key: key.clone() }));
        inputs.truncate(MAX_SIDE);
    }
    let new = keep::edges(ports, &inputs, &outputs, &via).await?;
    let mut found = match &started {
        Some(started) => keep::writes(ports, started, &outputs).await?,
        None => Vec::new(),
    };
    found.extend(walk::loops(ports, &new).await?);
    Ok(found)
}

/// The datasets as assets where they are registered, each once, in the order of the flow.
async fn resolve(ports: &Ports, datasets: &[Dataset]) -> Result<Vec<Node>, EngineError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut ids: Vec<Option<AssetId>> = Vec::new();
    for dataset in datasets.iter().take(MAX_SIDE) {
        let mut found = None;
        for named in &dataset.named {
            found = named.find(ports).await?;
            if found.is_some() {
                break;
            }
        }
        ids.push(found);
    }
    let known: Vec<AssetId> = ids.iter().copied().flatten().collect();
    let keys: BTreeMap<AssetId, AssetKey> = heads(ports, &known).await?;
    for (dataset, id) in datasets.iter().zip(ids) {
        let node = match id.and_then(|id| keys.get(&id).map(|key| (id, key))) {
            Some((id, key)) => Node::Asset { id, key: key.clone() },
            None => Node::dataset(&dataset.name),
        };
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

/// The keys of assets that are registered.
async fn heads(ports: &Ports, assets: &[AssetId]) -> Result<BTreeMap<AssetId, AssetKey>, EngineError> {
    let keys: std::collections::BTreeSet<_> = assets.iter().copied().map(layout::head).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let items = ports.items.get(&keys.into_iter().collect::<Vec<_>>()).await?;
    let mut known = BTreeMap::new();
    for asset in assets {
        if let Some(item) = store::pick(&items, &layout::head(*asset)) {
            let head = store::decode::<AssetHead>(item)?.value;
            if head.deregistered_at.is_none() {
                known.insert(*asset, head.key);
            }
        }
    }
    Ok(known)
}

/// Whose workflow it is; `None` for a trigger or target that is not known.
async fn started(ports: &Ports, by: &StartedBy) -> Result<Option<Started>, EngineError> {
    let id = match by {
        StartedBy::Workflow(project, workflow) => {
            let workflow = names::of_workflow(ports, *project, workflow).await?;
            return Ok(Some(Started { project: *project, workflow, target: None }));
        }
        StartedBy::Target(id) => id.clone(),
        StartedBy::Trigger(key) => match store::get::<Trigger>(&*ports.items, layout::trigger(key)).await? {
            Some(trigger) => trigger.value.target,
            None => return Ok(None),
        },
    };
    let definition = store::get::<Definition>(&*ports.items, layout::definition(&id)).await?;
    let target = definition.map(|definition| definition.value.target);
    let Some(target) = target else { return Ok(None) };
    let workflow = names::of_workflow(ports, id.project, &target.workflow).await?;
    Ok(Some(Started { project: id.project, workflow, target: Some(target) }))
}

/// What the workflow of a declaration is known to write.
pub(crate) async fn known_writes(
    ports: &Ports,
    project: ProjectCode,
    spec: &TargetSpec,
) -> Result<Writes, EngineError> {
    let known = store::get::<Writes>(&*ports.items, layout::writes(project, &spec.workflow()?)).await?;
    Ok(known.map(|known| known.value.at(ports.clock.now())).unwrap_or_default())
}

/// Refuses a declaration of a target that is known to write one of its own inputs, unless it says that
/// it may. `assets` are those that it names, as far as they are looked up.
///
/// Errors: `SelfLoop` with the dependency.
pub(crate) fn refuse_self_loop(spec: &TargetSpec, writes: &Writes, assets: &KnownAssets) -> Result<(), EngineError> {
    if spec.allow_self_loop {
        return Ok(());
    }
    for (group_at, group) in spec.groups.iter().enumerate() {
        for (at, dependency) in group.dependencies.iter().enumerate() {
            let selector = &dependency.asset;
            let by_id = selector.key().and_then(|key| assets.by_key.get(key)).map(|known| known.id);
            let is_input = |key: &AssetKey| {
                selector.key() == Some(key) || selector.prefix().is_some_and(|prefix| prefix.takes_in(key))
            };
            let written = writes.tables.iter().find(|written| by_id == Some(written.asset) || is_input(&written.key));
            if let Some(written) = written {
                let message = format!(
                    "the workflow is known to write {}, one of the tables that would start it (last seen at \
                     {}); set `allowSelfLoop: true` if each start may lead to the next, or leave the table out",
                    written.key, written.last_seen
                );
                return Err(EngineError::new(ErrorKind::SelfLoop, message)
                    .with("at", format!("groups[{group_at}].dependencies[{at}].asset")));
            }
        }
    }
    Ok(())
}
