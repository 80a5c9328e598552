//! A task inside a running workflow that waits for its target.
//!
//! Every poll of such a task is a task instance of its own in DolphinScheduler, so what asks is named
//! by what stays the same over all polls of one run: the workflow instance, or where a version line
//! does not tell a task its instance, a token among the start parameters.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::ids::{ConnectionName, InstanceId, SensorToken, TargetId, TaskCode};

/// What asks, the same for every poll of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asker {
    /// A workflow instance.
    WorkflowInstance(InstanceId),
    /// A token that the workflow was started with.
    Token(SensorToken),
}

impl Asker {
    /// The workflow instance, where it is known.
    pub const fn instance(&self) -> Option<InstanceId> {
        match self {
            Self::WorkflowInstance(instance) => Some(*instance),
            Self::Token(_) => None,
        }
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WorkflowInstance(instance) => write!(f, "workflow instance {instance}"),
            Self::Token(token) => write!(f, "token {token}"),
        }
    }
}

/// One run of a waiting task. All its polls get one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SensorRun {
    /// What asks.
    pub asker: Asker,
    /// Which run of it, from 1: DolphinScheduler runs an instance again under the same id, and tells
    /// its tasks no number. Whoever wants other versions with a rerun gives the next one.
    pub run: u32,
}

impl fmt::Display for SensorRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, run {}", self.asker, self.run)
    }
}

/// The mark of a trigger that a waiting task takes: nothing is started for it, so there is no start to
/// look for, and its workflow instance is none of Lakebell's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sensor {
    /// The task.
    pub task: TaskCode,
    /// The run that took it; absent until one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<SensorRun>,
}

/// The digest under which the answer to a run is recorded: 32 lower-case hex digits.
///
/// The text that is digested is part of the stored format and never changes; a new ingredient comes
/// with a new first line.
pub fn answer_key(connection: &ConnectionName, target: &TargetId, task: TaskCode, run: &SensorRun) -> String {
    let asker = match &run.asker {
        Asker::WorkflowInstance(instance) => format!("instance {instance}"),
        Asker::Token(token) => format!("token {token}"),
    };
    let text =
        format!("lakebell sensor 1\nconnection {connection}\ntarget {target}\n{asker}\ntask {task}\nrun {}\n", run.run);
    hex(&Sha256::digest(text.as_bytes())[..16])
}
