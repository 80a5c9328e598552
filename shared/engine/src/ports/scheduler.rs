//! What the engine asks of DolphinScheduler.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
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
        /// Its name, where the scheduler says it.
        name: Option<String>,
        /// What the scheduler does with a start while another instance of it runs.
        execution: ExecutionType,
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

/// What DolphinScheduler does with a start of a workflow while an instance of it runs. Everything
/// but `Parallel` and `Unknown` deserves a warning where a target is declared.
///
/// Source: `executionType` of a definition; `ProcessExecutionTypeEnum.java` (3.1, 3.2) and
/// `WorkflowExecutionTypeEnum.java` (3.3 and later) have the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExecutionType {
    /// Both run.
    Parallel,
    /// The later one waits; it was reported to begin without its start parameters then.
    SerialWait,
    /// The later one is accepted and dropped: it ends as stopped without having run.
    SerialDiscard,
    /// The one that runs is stopped for the later one.
    SerialPriority,
    /// The scheduler did not say, or said something that this version does not know.
    Unknown,
}

impl ExecutionType {
    /// Whether a start can be held back, dropped, or stop another because one runs already.
    pub const fn is_serial(self) -> bool {
        matches!(self, Self::SerialWait | Self::SerialDiscard | Self::SerialPriority)
    }
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
    /// The business date, for workflows that read `${system.biz.date}`: the start is then a
    /// backfill (`COMPLEMENT_DATA`) of this one date. Absent: a plain start, whose business date is
    /// yesterday by the scheduler's clock.
    pub business_date: Option<Date>,
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

impl Refusal {
    /// The code of a call that was not sent, because the connection's circuit is open: its scheduler
    /// did not answer lately, or refused the token. It says nothing about the trigger.
    pub const CIRCUIT_OPEN: &str = "CIRCUIT_OPEN";

    /// A call that was not sent, because the circuit is open until then.
    pub fn circuit_open(until: Timestamp, because: &Self) -> Self {
        let detail = format!("until {until}: {because}").chars().take(300).collect();
        Self { code: Self::CIRCUIT_OPEN.to_owned(), detail }
    }

    /// Until when the circuit is open, where that is why it was refused.
    pub fn open_until(&self) -> Option<Timestamp> {
        let told = self.detail.strip_prefix("until ").filter(|_| self.code == Self::CIRCUIT_OPEN)?;
        told.split_once(": ")?.0.parse().ok()
    }
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

impl InstanceState {
    /// Whether it has ended. A person may still run it again under the same id.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failure | Self::Stopped)
    }
}

/// A workflow instance, as the scheduler tells of it.
///
/// Times come without a zone and are read as UTC, which is what DolphinScheduler ships with; where
/// a site shows them in another zone, both are off by the same hours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceReport {
    /// Its id.
    pub id: InstanceId,
    /// Its state.
    pub state: InstanceState,
    /// When it began, to the second; absent where the scheduler does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended, to the second; absent while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How often it ran. A rerun keeps the id and counts one more, so an end is final for
    /// (id, runs) only.
    pub runs: u32,
}

/// How many instances of a workflow are active, for a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Active {
    /// They were counted. Never too few but for the limits of the version; a start that moves from
    /// command to instance meanwhile may count twice.
    Counted {
        /// Instances that have not ended and are not suspended, sub-workflows excepted.
        instances: u32,
        /// Accepted starts of the workflow without an instance yet. `None` where the version cannot
        /// tell: 3.1, as long as any start of any workflow waits.
        pending: Option<u32>,
    },
    /// The scheduler could not be asked; nothing is known.
    Unavailable(Refusal),
}

/// What the latest instance of a workflow came to, for a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Latest {
    /// The workflow exists and never ran.
    None,
    /// It has not ended, or is suspended and can be resumed.
    Running {
        /// Its id; absent while only its command waits (3.2).
        instance: Option<InstanceId>,
    },
    /// It ended well.
    Succeeded {
        /// Its id.
        instance: InstanceId,
    },
    /// It failed or was stopped.
    Failed {
        /// Its id.
        instance: InstanceId,
    },
    /// The workflow does not exist, or in another project.
    Missing {
        /// What the scheduler said.
        detail: String,
    },
    /// The scheduler could not be asked; nothing is known.
    Unavailable(Refusal),
}

/// The trigger key that an instance carries in its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CarriedKey {
    /// This one.
    Trigger(TriggerKey),
    /// Its parameters are known and hold no trigger key: somebody else started it.
    None,
    /// Its parameters are not known: no master has consumed its command, or they cannot be read.
    Unknown,
}

/// An instance and the trigger that it was started for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedInstance {
    /// The instance.
    pub report: InstanceReport,
    /// Its trigger key.
    pub key: CarriedKey,
}

/// The instances of a workflow since a time, for an audit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceList {
    /// The instances, lowest id first.
    pub instances: Vec<ListedInstance>,
    /// Why there may be more than these; absent where the list is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// When a connection's token stops working.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenExpiry {
    /// Then. Read as UTC, as the times of [`InstanceReport`] are.
    At(Timestamp),
    /// The scheduler answers and does not tell.
    Unknown {
        /// Why not.
        detail: String,
    },
    /// The scheduler could not be asked. A token that has expired already is refused like any other
    /// (`HTTP_401`), and nothing tells the two apart.
    Unavailable(Refusal),
}

impl TokenExpiry {
    /// How long before its end a token deserves a warning.
    pub const WARN_BEFORE: SignedDuration = SignedDuration::from_hours(14 * 24);

    /// Whether the end is known and near, or past.
    pub fn is_near(&self, now: Timestamp) -> bool {
        matches!(self, Self::At(end) if end.duration_since(now) <= Self::WARN_BEFORE)
    }
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

    /// Reads one instance, to follow it to its end; `None` where the scheduler does not know it
    /// (any more).
    async fn instance(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceReport>, Refusal>;

    /// Counts the active instances of a workflow, whoever started them.
    async fn active(&self, connection: &ConnectionName, project: ProjectCode, workflow: WorkflowCode) -> Active;

    /// Looks at the latest instance of a workflow of the project, whoever started it. Latest is by
    /// the time of its begin.
    async fn latest(&self, connection: &ConnectionName, project: ProjectCode, workflow: &WorkflowRef) -> Latest;

    /// Lists the instances of a workflow that began at or after `since`, whoever started them. Some
    /// may have begun up to a day earlier, because the scheduler's zone is not known.
    async fn instances_since(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
        since: Timestamp,
    ) -> Result<InstanceList, Refusal>;

    /// Looks up when the connection's token stops working. No answer of the API hints at it, so it
    /// takes a call of its own, and now and then is enough.
    async fn token_expiry(&self, connection: &ConnectionName) -> TokenExpiry;

    /// The longest time that one start call can take, which a lease must outlast.
    fn start_timeout(&self) -> std::time::Duration;
}

/// A connection as it is declared. Its token is in Secrets Manager and never here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
