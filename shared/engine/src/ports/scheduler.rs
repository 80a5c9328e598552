//! What the engine asks of DolphinScheduler.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TaskCode, TriggerKey, WorkflowCode};
pub use lakebell_domain::target::WorkflowRef;
use serde::{Deserialize, Serialize};

/// What stands before a start: does the workflow exist, in this project, and is it online?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preflight {
    /// It can be started.
    Startable {
        /// Its code.
        workflow: WorkflowCode,
    },
    /// It exists and is offline: wait, and look again slowly.
    Offline {
        /// What the scheduler said.
        detail: String,
    },
    /// It does not exist, or in another project: a person has to change something.
    Missing {
        /// What the scheduler said.
        detail: String,
    },
    /// The scheduler could not be asked; nothing is known and nothing has happened.
    Unavailable(Refusal),
}

/// One start, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRequest {
    /// The project that the workflow belongs to.
    pub project: ProjectCode,
    /// The workflow to start.
    pub workflow: WorkflowCode,
    /// Start at this task and go on from there; absent, the whole workflow starts.
    pub start_at: Option<TaskCode>,
    /// The trigger, also found in `parameters` as `lakebell_trigger_key`.
    pub trigger: TriggerKey,
    /// A flat map of strings, the only form that every DolphinScheduler keeps.
    pub parameters: BTreeMap<String, String>,
}

/// What came of a start call. Nothing else may be concluded from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The scheduler accepted it. Only 3.3 and later say the instance at once.
    Started {
        /// The instance, where the answer names one.
        instance: Option<InstanceId>,
    },
    /// Nothing was started, and the same call may succeed later.
    Retryable(Refusal),
    /// It may or may not have taken effect: run the duplicate check before anything else.
    Ambiguous(Refusal),
    /// Nothing was started, and it takes a person to change that.
    Permanent(Refusal),
    /// Nothing was started because the workflow is offline: wait and look again slowly.
    Offline(Refusal),
    /// The connection itself is refused (401): nothing was started, and no other start through it
    /// will succeed until its token is replaced.
    ConnectionRefused(Refusal),
}

/// Why the scheduler did not do it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Refusal {
    /// DolphinScheduler's own code as text, or `HTTP_401`, `TRANSPORT_ERROR` and the like
    /// (the first column of the status code table of its contract).
    pub code: String,
    /// What it said, shortened to 300 characters, without secrets.
    pub detail: String,
}

/// One round of the duplicate check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// Instances or pending commands that carry the trigger key. The lowest id is the one to
    /// adopt; further ones are extra instances to report.
    Found {
        /// The instances found, lowest first; empty while only a command is pending.
        instances: Vec<InstanceId>,
    },
    /// A clean round: commands, instances, commands again, none carries the key, a master is
    /// alive, and nothing undecided was in the way. Absence takes two of them 5 s apart.
    CleanRound,
    /// The scheduler's version or state does not let this round decide.
    Undecided {
        /// What was in the way, for the person who may have to decide.
        detail: String,
    },
    /// The scheduler could not be asked: this round does not count.
    Unavailable(Refusal),
}

/// The state of a workflow instance, as far as the engine distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InstanceState {
    /// Not ended, or a state name that this version does not know.
    Running,
    /// Paused or ready to: finished to DolphinScheduler, and can be resumed.
    Suspended,
    /// Ended well.
    Success,
    /// Ended with a failure.
    Failure,
    /// Stopped; also what a discarded serial start becomes.
    Stopped,
}

/// A named DolphinScheduler.
#[async_trait]
pub trait Scheduler: Send + Sync {
    /// Looks whether the workflow can be started. Answers may be cached for at most 60 s when
    /// startable and 10 s otherwise.
    async fn preflight(&self, connection: &ConnectionName, project: ProjectCode, workflow: &WorkflowRef) -> Preflight;

    /// Sends one start, never twice: no retry happens below this call.
    async fn start(&self, connection: &ConnectionName, request: &StartRequest) -> StartOutcome;

    /// Runs one round of the duplicate check for a trigger whose start was tried at or after `since`.
    async fn check(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
        trigger: &TriggerKey,
        since: Timestamp,
    ) -> CheckOutcome;

    /// Reads an instance's state; `None` where the scheduler does not know the instance.
    async fn instance_state(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceState>, Refusal>;

    /// The longest time that one start call can take, which a lease must outlast.
    fn start_timeout(&self) -> std::time::Duration;
}

/// A connection as it is declared. Its token is in Secrets Manager and never here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConnectionSpec {
    /// Its name, unique in the deployment.
    pub name: ConnectionName,
    /// Base URL with the path, as in `http://ds.internal:12345/dolphinscheduler`.
    pub url: String,
    /// Which spelling of the API it speaks; `auto` asks it.
    #[serde(default)]
    pub version: VersionLine,
    /// Name or ARN of the secret that holds the token.
    pub token_secret: String,
    /// The user name that the token belongs to; narrows the duplicate check where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The lines of the DolphinScheduler API that differ in spelling and in what can be proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum VersionLine {
    /// Find out by asking.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 3.1: process-*, a start answers null, commands cannot be listed.
    #[serde(rename = "3.1")]
    V3_1,
    /// 3.2: process-*, a start answers a trigger code.
    #[serde(rename = "3.2")]
    V3_2,
    /// 3.3 and later: workflow-*, a start answers instance ids.
    #[serde(rename = "3.3")]
    V3_3,
}

/// Where connections and their tokens come from. Staleness: at most 60 s for the specification,
/// 300 s for the token, and the token is read again at once after a 401.
#[async_trait]
pub trait Connections: Send + Sync {
    /// The connection, or `None` where nobody declared it.
    async fn connection(&self, name: &ConnectionName) -> Result<Option<ConnectionSpec>, crate::EngineError>;

    /// Its token. `fresh` passes by any cache.
    async fn token(&self, spec: &ConnectionSpec, fresh: bool) -> Result<String, crate::EngineError>;
}
