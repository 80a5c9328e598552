//! A workflow has a code and a name. Writers and declarations go by either of them, and what is known by the
//! one counts for the other as soon as the scheduler has said that they are one workflow.

use lakebell_domain::ids::{ProjectCode, WorkflowCode};
use lakebell_domain::lineage::Writes;
use lakebell_domain::target::WorkflowRef;
use serde::{Deserialize, Serialize};

use super::keep;
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::Write;
use crate::store::{self, Stored};

/// What else a workflow is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtherName {
    workflow: WorkflowRef,
}

/// A workflow as it is called here, and by its other name where that is known.
pub(super) async fn of_workflow(
    ports: &Ports,
    project: ProjectCode,
    workflow: &WorkflowRef,
) -> Result<Vec<WorkflowRef>, EngineError> {
    let other = store::get::<OtherName>(&*ports.items, layout::other_name(project, workflow)).await?;
    Ok(std::iter::once(workflow.clone()).chain(other.map(|other| other.value.workflow)).collect())
}

/// Keeps that a code and a name are one workflow's. What was written under the one so far is written under
/// the other from then on.
///
/// Two reads where it is known already.
pub(crate) async fn keep_names(
    ports: &Ports,
    project: ProjectCode,
    code: WorkflowCode,
    name: &str,
) -> Result<(), EngineError> {
    let both = [WorkflowRef::Code(code), WorkflowRef::Name(name.to_owned())];
    let keys = [layout::other_name(project, &both[0]), layout::other_name(project, &both[1])];
    let items = ports.items.get(&keys).await?;
    let known: Vec<Option<Stored<OtherName>>> =
        keys.iter().map(|key| store::pick(&items, key).map(store::decode).transpose()).collect::<Result<_, _>>()?;
    let is_known = |at: usize| known[at].as_ref().is_some_and(|known| known.value.workflow == both[1 - at]);
    if is_known(0) && is_known(1) {
        return Ok(());
    }
    // What was seen is shared first: whoever sees the names finds it.
    for (from, to) in [(&both[0], &both[1]), (&both[1], &both[0])] {
        let seen = store::get::<Writes>(&*ports.items, layout::writes(project, from)).await?;
        let Some(seen) = seen.map(|seen| seen.value.at(ports.clock.now())) else { continue };
        keep::note(ports, &layout::writes(project, to), |writes, now| {
            seen.tables.iter().map(|table| ((), writes.wrote(table.asset, &table.key, now))).collect::<Vec<_>>()
        })
        .await?;
    }
    let mut actions = Vec::new();
    for at in [0, 1] {
        if !is_known(at) {
            let other = OtherName { workflow: both[1 - at].clone() };
            let draft = store::draft(keys[at].clone(), &other)?;
            actions.push(Write::put(draft, known[at].as_ref().map(|known| known.rev)));
        }
    }
    // Whoever wrote first has asked the scheduler at the same time.
    store::write(&*ports.items, &*ports.random, &actions).await.map(|_| ())
}
