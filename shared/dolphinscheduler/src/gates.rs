//! What a gate asks before a start: how many instances of a workflow are active, and what its
//! latest one came to.
//!
//! Commands are read before instances: a start that moves from one to the other meanwhile counts
//! twice and never not at all, because a gate may delay and must not let through.
//!
//! Source: the instance list and command controllers of DolphinScheduler 3.1.9, 3.2.2 and the line
//! that became 3.3. The list shows no instances of sub-workflows.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::{Active, InstanceState, Latest, Preflight, Refusal, WorkflowRef};
use serde_json::Value;
use tokio::time::timeout;

use crate::check::starts_waiting;
use crate::list::each_row;
use crate::preflight::too_long;
use crate::rows;
use crate::scheduler::DolphinScheduler;
use crate::session::{NoSession, Session};
use crate::spelling::Spelling;

/// The longest time for one question. A dispatcher holds a lease while it waits.
const QUESTION: Duration = Duration::from_secs(10);
/// How many of the newest instances are looked at whatever their state.
const NEWEST: usize = 100;

impl DolphinScheduler {
    pub(crate) async fn count_active(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
    ) -> Active {
        let counting = async {
            let mut session = Session::open(self, connection).await.map_err(NoSession::into_refusal)?;
            let spelling = self.spelling(&mut session, project).await?;
            let counted = count(&mut session, &spelling, project, workflow).await;
            self.forgetting_line(&session, counted)
        };
        match timeout(QUESTION, counting).await {
            Ok(Ok((instances, pending))) => Active::Counted { instances, pending },
            Ok(Err(refusal)) => Active::Unavailable(refusal),
            Err(_) => Active::Unavailable(too_long(QUESTION)),
        }
    }

    pub(crate) async fn look_at_latest(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: &WorkflowRef,
    ) -> Latest {
        let looking = async {
            let mut session = match Session::open(self, connection).await {
                Ok(session) => session,
                Err(NoSession::Undeclared(refusal)) => return Ok(Latest::Missing { detail: refusal.detail }),
                Err(NoSession::Unavailable(refusal)) => return Err(refusal),
            };
            let spelling = self.spelling(&mut session, project).await?;
            // A workflow that is not there has no instances either; a gate must not wait for it in
            // silence, so it is looked up first.
            let code = match self.definition(&mut session, &spelling, project, workflow).await {
                Ok(definition) => definition.code,
                Err(Preflight::Missing { detail } | Preflight::Offline { detail }) => {
                    return Ok(Latest::Missing { detail });
                }
                Err(Preflight::Startable { workflow, .. }) => workflow,
                Err(Preflight::Unavailable(refusal)) => return Err(refusal),
            };
            let newest = newest(&mut session, &spelling, project, code).await;
            self.forgetting_line(&session, newest)
        };
        match timeout(QUESTION, looking).await {
            Ok(Ok(latest)) => latest,
            Ok(Err(refusal)) => Latest::Unavailable(refusal),
            Err(_) => Latest::Unavailable(too_long(QUESTION)),
        }
    }
}

/// Commands of a workflow that wait for a master.
#[derive(Debug, Default)]
struct Waiting {
    /// Instances that exist already: all from 3.3 on, those of reruns before.
    instances: BTreeSet<i64>,
    /// Commands without an instance.
    without: u32,
}

async fn waiting(
    session: &mut Session<'_>,
    spelling: &Spelling,
    project: ProjectCode,
    workflow: WorkflowCode,
) -> Result<Waiting, Refusal> {
    let mut waiting = Waiting::default();
    let filters = [("projectCode", project.to_string())];
    // A list too long to be gone through still says that very many wait.
    each_row(session, "projects/analysis/listCommand", &filters, |row| {
        if row.get(spelling.row_workflow).and_then(Value::as_i64) == Some(workflow.0) {
            match row.get(spelling.row_instance).and_then(Value::as_i64).filter(|id| *id > 0) {
                Some(id) => {
                    waiting.instances.insert(id);
                }
                None => waiting.without += 1,
            }
        }
        ControlFlow::Continue(())
    })
    .await?;
    Ok(waiting)
}

async fn count(
    session: &mut Session<'_>,
    spelling: &Spelling,
    project: ProjectCode,
    workflow: WorkflowCode,
) -> Result<(u32, Option<u32>), Refusal> {
    let mut active = BTreeSet::new();
    let pending = if spelling.lists_commands {
        let waiting = waiting(session, spelling, project, workflow).await?;
        active.extend(waiting.instances);
        Some(waiting.without)
    } else {
        // 3.1 does not show whose the waiting starts are; only none is an answer.
        (starts_waiting(session).await? == 0).then_some(0)
    };
    let path = spelling.instances(project);
    let filters = [(spelling.list_workflow, workflow.to_string())];
    let mut seen = 0_usize;
    each_row(session, &path, &filters, |row| {
        seen += 1;
        let state = row.get("state").and_then(Value::as_str).unwrap_or_default();
        if rows::is_active(state) {
            active.extend(row.get("id").and_then(Value::as_i64));
        }
        if seen < NEWEST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .await?;
    if seen >= NEWEST {
        // What runs may have begun long before the newest hundred. One question for each state,
        // because going through the whole history of a workflow would take minutes.
        for state in spelling.active_states {
            let filters = [filters[0].clone(), ("stateType", (*state).to_owned())];
            each_row(session, &path, &filters, |row| {
                active.extend(row.get("id").and_then(Value::as_i64));
                ControlFlow::Continue(())
            })
            .await?;
        }
    }
    Ok((u32::try_from(active.len()).unwrap_or(u32::MAX), pending))
}

async fn newest(
    session: &mut Session<'_>,
    spelling: &Spelling,
    project: ProjectCode,
    workflow: WorkflowCode,
) -> Result<Latest, Refusal> {
    if spelling.lists_commands {
        let waiting = waiting(session, spelling, project, workflow).await?;
        let instance = waiting.instances.last().map(|id| InstanceId(*id));
        if waiting.without > 0 || instance.is_some() {
            return Ok(Latest::Running { instance });
        }
    }
    let filters = [(spelling.list_workflow, workflow.to_string())];
    // The list has the latest begin first. Begins are shown to the second; within one the highest
    // id is the latest.
    let mut rows: Vec<Value> = Vec::new();
    each_row(session, &spelling.instances(project), &filters, |row| {
        if rows.first().is_some_and(|first| first.get("startTime") != row.get("startTime")) {
            return ControlFlow::Break(());
        }
        rows.push(row.clone());
        ControlFlow::Continue(())
    })
    .await?;
    let Some(latest) = rows.iter().max_by_key(|row| row.get("id").and_then(Value::as_i64)) else {
        return Ok(Latest::None);
    };
    let report = rows::report(latest)?;
    let instance = report.id;
    Ok(match report.state {
        InstanceState::Success => Latest::Succeeded { instance },
        InstanceState::Failure | InstanceState::Stopped => Latest::Failed { instance },
        InstanceState::Running | InstanceState::Suspended => Latest::Running { instance: Some(instance) },
    })
}
