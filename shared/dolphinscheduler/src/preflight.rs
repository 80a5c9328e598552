//! What stands before a start: whether the workflow exists, in this project, and is online.

use std::time::Duration;

use lakebell_domain::ids::{ConnectionName, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::{ExecutionType, Preflight, Refusal, StartRequest, WorkflowRef};
use serde_json::Value;
use tokio::time::timeout;

use crate::classify::{self, Class};
use crate::envelope::Answer;
use crate::list::unexpected;
use crate::scheduler::{DolphinScheduler, PREPARATION};
use crate::session::{NoSession, Session};
use crate::spelling::Spelling;

/// How long a workflow is taken to be startable without asking again.
const STARTABLE: Duration = Duration::from_mins(1);
/// How long it is taken to be offline or missing.
const NOT_STARTABLE: Duration = Duration::from_secs(10);

/// What a preflight is remembered by.
pub(crate) type PreflightKey = (ConnectionName, ProjectCode, WorkflowRef);

impl DolphinScheduler {
    pub(crate) async fn look(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: &WorkflowRef,
    ) -> Preflight {
        let key = (connection.clone(), project, workflow.clone());
        if let Some(known) = self.preflights.get(&key) {
            return known;
        }
        let asking = async {
            match Session::open(self, connection).await {
                Ok(mut session) => self.ask(&mut session, project, workflow).await,
                Err(NoSession::Undeclared(refusal)) => Preflight::Missing { detail: refusal.detail },
                Err(NoSession::Unavailable(refusal)) => Preflight::Unavailable(refusal),
            }
        };
        let found =
            timeout(PREPARATION, asking).await.unwrap_or_else(|_| Preflight::Unavailable(too_long(PREPARATION)));
        match found {
            Preflight::Startable { .. } => self.preflights.put(key, found.clone(), STARTABLE),
            Preflight::Offline { .. } | Preflight::Missing { .. } => {
                self.preflights.put(key, found.clone(), NOT_STARTABLE);
            }
            Preflight::Unavailable(_) => {}
        }
        found
    }

    async fn ask(&self, session: &mut Session<'_>, project: ProjectCode, workflow: &WorkflowRef) -> Preflight {
        let spelling = match self.spelling(session, project).await {
            Ok(spelling) => spelling,
            Err(refusal) => return Preflight::Unavailable(refusal),
        };
        let definition = match self.definition(session, &spelling, project, workflow).await {
            Ok(definition) => definition,
            Err(none) => return none,
        };
        let Definition { code, name, state, execution, alert_group } = definition;
        if state != "ONLINE" {
            let detail = format!("workflow {} is {state}: bring it online", shown(workflow));
            return Preflight::Offline { detail };
        }
        let key = (session.spec.name.clone(), project, code);
        self.alert_groups.put(key, alert_group, STARTABLE);
        Preflight::Startable { workflow: code, name, execution }
    }

    /// Reads a definition, whatever its release state; otherwise why there is none.
    pub(crate) async fn definition(
        &self,
        session: &mut Session<'_>,
        spelling: &Spelling,
        project: ProjectCode,
        workflow: &WorkflowRef,
    ) -> Result<Definition, Preflight> {
        let answer = match workflow {
            WorkflowRef::Code(code) => session.get(&spelling.definition_by_code(project, *code), &[]).await,
            WorkflowRef::Name(name) => {
                session.get(&spelling.definition_by_name(project), &[("name", name.clone())]).await
            }
        };
        if answer.is_unknown_path() {
            self.forget_line(session);
        }
        judge(spelling, project, workflow, answer)
    }

    /// Reads the definition of a start whose preflight is no longer remembered, for its alert group.
    pub(crate) async fn look_anew(&self, session: &mut Session<'_>, request: &StartRequest) {
        self.ask(session, request.project, &WorkflowRef::Code(request.workflow)).await;
    }
}

/// What a definition's detail says.
pub(crate) struct Definition {
    pub(crate) code: WorkflowCode,
    name: Option<String>,
    /// `ONLINE` or `OFFLINE`.
    state: String,
    execution: ExecutionType,
    alert_group: Option<i64>,
}

/// The refusal of a question that took too long.
pub(crate) fn too_long(limit: Duration) -> Refusal {
    let detail = format!("no answer within {} s", limit.as_secs());
    Refusal { code: "TRANSPORT_ERROR".to_owned(), detail }
}

fn judge(
    spelling: &Spelling,
    project: ProjectCode,
    workflow: &WorkflowRef,
    answer: Answer,
) -> Result<Definition, Preflight> {
    let found = match answer {
        Answer::Envelope { code: 0, data, .. } => data,
        Answer::Envelope { code, ref msg, .. } => {
            let refusal = classify::refusal(&answer);
            // Refused for a reason that stays until somebody changes something.
            let stays = matches!(classify::by_code(code, msg), Class::Permanent | Class::Offline);
            let detail = format!("{} ({})", refusal.detail, refusal.code);
            return Err(if stays { Preflight::Missing { detail } } else { Preflight::Unavailable(refusal) });
        }
        other => return Err(Preflight::Unavailable(classify::refusal(&other))),
    };
    // Some releases answer the definition itself, not a detail around it.
    let definition = found.get(spelling.definition).unwrap_or(&found);
    let Some(code) = definition.get("code").and_then(Value::as_i64) else {
        if found.is_null() {
            return Err(Preflight::Missing { detail: format!("the project has no workflow {}", shown(workflow)) });
        }
        return Err(Preflight::Unavailable(unexpected("the answer names no workflow code")));
    };
    // Before 3.4 some releases serve a definition under any project.
    let elsewhere = definition.get("projectCode").and_then(Value::as_i64).filter(|other| *other != project.0);
    if let Some(other) = elsewhere {
        let detail = format!("workflow {} belongs to project {other}, not {project}", shown(workflow));
        return Err(Preflight::Missing { detail });
    }
    let text = |field: &str| definition.get(field).and_then(Value::as_str);
    Ok(Definition {
        code: WorkflowCode(code),
        name: text("name").map(str::to_owned),
        state: text("releaseState").unwrap_or("unknown").to_owned(),
        execution: execution_of(text("executionType")),
        alert_group: definition.get("warningGroupId").and_then(Value::as_i64),
    })
}

fn execution_of(name: Option<&str>) -> ExecutionType {
    match name {
        Some("PARALLEL") => ExecutionType::Parallel,
        Some("SERIAL_WAIT") => ExecutionType::SerialWait,
        Some("SERIAL_DISCARD") => ExecutionType::SerialDiscard,
        Some("SERIAL_PRIORITY") => ExecutionType::SerialPriority,
        _ => ExecutionType::Unknown,
    }
}

fn shown(workflow: &WorkflowRef) -> String {
    match workflow {
        WorkflowRef::Code(code) => code.to_string(),
        WorkflowRef::Name(name) => format!("`{}`", crate::envelope::shorten(name)),
    }
}
