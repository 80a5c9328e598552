//! What stands before a start: whether the workflow exists, in this project, and is online.

use std::time::Duration;

use lakebell_domain::ids::{ConnectionName, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::{Preflight, Refusal, StartRequest, WorkflowRef};
use serde_json::Value;
use tokio::time::timeout;

use crate::classify::{self, Class};
use crate::envelope::Answer;
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
        let found = timeout(PREPARATION, asking).await.unwrap_or_else(|_| {
            let detail = format!("no answer within {} s", PREPARATION.as_secs());
            Preflight::Unavailable(Refusal { code: "TRANSPORT_ERROR".to_owned(), detail })
        });
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
        let answer = match workflow {
            WorkflowRef::Code(code) => session.get(&spelling.definition_by_code(project, *code), &[]).await,
            WorkflowRef::Name(name) => {
                session.get(&spelling.definition_by_name(project), &[("name", name.clone())]).await
            }
        };
        if answer.is_unknown_path() {
            self.forget_line(session);
        }
        let (found, alert_group) = judge(&spelling, project, workflow, answer);
        if let Preflight::Startable { workflow } = &found {
            let key = (session.spec.name.clone(), project, *workflow);
            self.alert_groups.put(key, alert_group, STARTABLE);
        }
        found
    }

    /// Reads the definition of a start whose preflight is no longer remembered, for its alert group.
    pub(crate) async fn look_anew(&self, session: &mut Session<'_>, request: &StartRequest) {
        self.ask(session, request.project, &WorkflowRef::Code(request.workflow)).await;
    }
}

/// What the answer says, and the alert group of the definition.
fn judge(
    spelling: &Spelling,
    project: ProjectCode,
    workflow: &WorkflowRef,
    answer: Answer,
) -> (Preflight, Option<i64>) {
    let found = match answer {
        Answer::Envelope { code: 0, data, .. } => data,
        Answer::Envelope { code, ref msg, .. } => {
            let refusal = classify::refusal(&answer);
            // Refused for a reason that stays until somebody changes something.
            let stays = matches!(classify::by_code(code, msg), Class::Permanent | Class::Offline);
            let detail = format!("{} ({})", refusal.detail, refusal.code);
            let found = if stays { Preflight::Missing { detail } } else { Preflight::Unavailable(refusal) };
            return (found, None);
        }
        other => return (Preflight::Unavailable(classify::refusal(&other)), None),
    };
    // Some releases answer the definition itself, not a detail around it.
    let definition = found.get(spelling.definition).unwrap_or(&found);
    let Some(code) = definition.get("code").and_then(Value::as_i64) else {
        if found.is_null() {
            return (Preflight::Missing { detail: format!("the project has no workflow {}", shown(workflow)) }, None);
        }
        let detail = "the answer names no workflow code".to_owned();
        return (Preflight::Unavailable(Refusal { code: "UNEXPECTED_ANSWER".to_owned(), detail }), None);
    };
    // Before 3.4 some releases serve a definition under any project.
    let elsewhere = definition.get("projectCode").and_then(Value::as_i64).filter(|other| *other != project.0);
    if let Some(other) = elsewhere {
        let detail = format!("workflow {} belongs to project {other}, not {project}", shown(workflow));
        return (Preflight::Missing { detail }, None);
    }
    let state = definition.get("releaseState").and_then(Value::as_str).unwrap_or("unknown");
    if state != "ONLINE" {
        let detail = format!("workflow {} is {state}: bring it online", shown(workflow));
        return (Preflight::Offline { detail }, None);
    }
    let alert_group = definition.get("warningGroupId").and_then(Value::as_i64);
    (Preflight::Startable { workflow: WorkflowCode(code) }, alert_group)
}

fn shown(workflow: &WorkflowRef) -> String {
    match workflow {
        WorkflowRef::Code(code) => code.to_string(),
        WorkflowRef::Name(name) => format!("`{}`", crate::envelope::shorten(name)),
    }
}
