//! What the scheduler says about the workflow of a target that was just declared.
//!
//! Whoever takes declarations does not know the scheduler: the dispatcher asks it, and keeps the
//! answer beside the target, where the explanation finds it.

use jiff::Timestamp;
use lakebell_domain::ids::{ConnectionName, TargetId, TraceId};
use lakebell_domain::target::{Target, WorkflowRef};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::dispatch::Dispatcher;
use crate::layout;
use crate::lineage;
use crate::ports::Ports;
use crate::ports::items::Write;
use crate::ports::queue::Message;
use crate::ports::scheduler::{ExecutionType, Preflight};
use crate::records::Definition;
use crate::store::{self, Stored};

/// What the scheduler said, and about what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advice {
    /// The connection that was asked.
    pub connection: ConnectionName,
    /// The workflow that it was asked about.
    pub workflow: WorkflowRef,
    /// What it said.
    #[serde(flatten)]
    pub finding: Finding,
    /// When.
    pub checked_at: Timestamp,
}

/// What a look at a workflow found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "finding")]
pub enum Finding {
    /// It can be started.
    Startable {
        /// What happens to a start while an instance runs.
        execution: ExecutionType,
    },
    /// It is there and offline.
    Offline,
    /// It is not there, or in another project.
    Missing,
    /// The scheduler could not be asked.
    Unavailable {
        /// Why not, as a code.
        code: String,
    },
}

impl Finding {
    /// The word for logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Startable { execution: ExecutionType::Parallel } => "parallel",
            Self::Startable { execution: ExecutionType::SerialWait } => "serial_wait",
            Self::Startable { execution: ExecutionType::SerialDiscard } => "serial_discard",
            Self::Startable { execution: ExecutionType::SerialPriority } => "serial_priority",
            Self::Startable { execution: ExecutionType::Unknown } => "startable",
            Self::Offline => "offline",
            Self::Missing => "missing",
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

impl From<Preflight> for Finding {
    fn from(preflight: Preflight) -> Self {
        match preflight {
            Preflight::Startable { execution, .. } => Self::Startable { execution },
            Preflight::Offline { .. } => Self::Offline,
            Preflight::Missing { .. } => Self::Missing,
            Preflight::Unavailable(refusal) => Self::Unavailable { code: refusal.code },
        }
    }
}

impl Advice {
    /// Whether it is about what the target starts now; it may have been altered since.
    pub fn is_about(&self, target: &Target) -> bool {
        self.connection == target.connection && self.workflow == target.workflow
    }

    /// What a person should know, in the words of `docs/operations.md`.
    pub fn warning(&self) -> Option<String> {
        let Self { workflow, connection, checked_at, .. } = self;
        let said = match &self.finding {
            Finding::Startable { execution: ExecutionType::Parallel | ExecutionType::Unknown } => return None,
            Finding::Startable { execution: ExecutionType::SerialWait } => {
                "runs one instance at a time (serial wait): a start that waits may begin without its parameters; \
                 set `maxActive: 1` and the workflow to parallel"
            }
            Finding::Startable { execution: ExecutionType::SerialDiscard } => {
                "drops a start while an instance runs (serial discard): its trigger is SUCCESS and its data is not \
                 processed; set `maxActive: 1` and the workflow to parallel"
            }
            Finding::Startable { execution: ExecutionType::SerialPriority } => {
                "stops the running instance for a later start (serial priority): what the stopped one had taken is \
                 not processed; set `maxActive: 1` and the workflow to parallel"
            }
            Finding::Offline => "is offline: its triggers wait until it is online",
            Finding::Missing => "is not there, or in another project: its triggers will fail",
            Finding::Unavailable { code } => {
                return Some(format!(
                    "workflow {workflow} could not be checked at {checked_at}: connection {connection} answered \
                     {code}; declare the target again to check again"
                ));
            }
        };
        Some(format!("workflow {workflow} {said} (as of {checked_at})"))
    }
}

/// Asks the dispatcher to look at the workflow of a target. The answer comes later.
///
/// Errors: those of the queue.
pub async fn ask(ports: &Ports, target: &TargetId, trace: &TraceId) -> Result<(), EngineError> {
    ports.queue.send(&Message::Advise { target: target.clone(), trace: trace.clone() }).await
}

impl Dispatcher {
    /// Looks at the workflow of a target and keeps what the scheduler says. `None` where the target
    /// is not declared. Nothing is started or waits for it: a scheduler that is away is an answer, too.
    ///
    /// Errors: `Unavailable`, after which the message must come again.
    pub async fn advise(&self, target: &TargetId) -> Result<Option<Advice>, EngineError> {
        let keys = [layout::definition(target), layout::advice(target)];
        let items = self.ports.items.get(&keys).await?;
        let Some(definition) = store::pick(&items, &keys[0]) else { return Ok(None) };
        let definition: Stored<Definition> = store::decode(definition)?;
        if definition.value.undeclared_at.is_some() {
            return Ok(None);
        }
        let Target { connection, workflow, .. } = definition.value.target;
        let preflight = self.scheduler.preflight(&connection, target.project, &workflow).await;
        if let Preflight::Startable { workflow: code, name, .. } = &preflight {
            let name = match &workflow {
                WorkflowRef::Name(name) => Some(name.clone()),
                WorkflowRef::Code(_) => name.clone(),
            };
            if let Some(name) = name {
                lineage::keep_names(&self.ports, target.project, *code, &name).await?;
            }
        }
        let finding = preflight.into();
        let advice = Advice { connection, workflow, finding, checked_at: self.ports.clock.now() };
        let draft = store::draft(layout::advice(target), &advice)?;
        let action = Write::put(draft, store::pick(&items, &keys[1]).map(|known| known.rev));
        // Whoever wrote first has looked at the same time.
        store::write(&*self.ports.items, &*self.ports.random, &[action]).await?;
        Ok(Some(advice))
    }
}
