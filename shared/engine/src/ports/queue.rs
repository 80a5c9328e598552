//! Messages between the functions. Standard queues: a message may come twice, late or out of order.

use async_trait::async_trait;
use lakebell_domain::asset::Location;
use lakebell_domain::ids::{AssetId, AuditId, ConnectionName, ProjectCode, TargetId, TraceId, TriggerKey};
use serde::{Deserialize, Serialize};

use crate::EngineError;

/// A message of Lakebell to itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "lakebell")]
pub enum Message {
    /// To the dispatcher: carry this trigger on.
    Dispatch {
        /// The target, whose state is read with the trigger's.
        target: TargetId,
        /// The trigger.
        trigger: TriggerKey,
        /// The attempt that it is about. A message that names an older one starts nothing.
        attempt: u32,
        /// From the hint to the instance.
        trace: TraceId,
    },
    /// To the dispatcher: ask the scheduler about the workflow of a target that was declared.
    Advise {
        /// The target.
        target: TargetId,
        /// From the declaration to the answer.
        trace: TraceId,
    },
    /// To the dispatcher: ask the scheduler how the workflows of these triggers are getting on.
    Follow {
        /// The triggers.
        triggers: Vec<TriggerKey>,
        /// From the sweep.
        trace: TraceId,
    },
    /// To the dispatcher: look at a connection.
    LookAt {
        /// The connection.
        connection: ConnectionName,
        /// From the question to the answer.
        trace: TraceId,
    },
    /// To the dispatcher: do an audit that was asked for.
    Audit {
        /// The project.
        project: ProjectCode,
        /// The audit.
        audit: AuditId,
        /// From the question to the answer.
        trace: TraceId,
    },
    /// To the watcher: evaluate these targets.
    Evaluate {
        /// The targets.
        targets: Vec<TargetId>,
        /// From the hint to the instance.
        trace: TraceId,
    },
    /// To the watcher: work on these letters.
    Letters {
        /// Their receipts, in the order in which they came.
        receipts: Vec<String>,
        /// From the event to the instance.
        trace: TraceId,
    },
    /// To the watcher: look at this asset.
    Observe {
        /// The asset.
        asset: AssetId,
        /// A notification began it, whose file the table's catalog did not name yet.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_again: bool,
        /// From the hint to the instance.
        trace: TraceId,
    },
    /// To the watcher: look for new tables below this warehouse.
    LookForTables {
        /// The warehouse's location.
        warehouse: Location,
        /// From the pass to what is registered.
        trace: TraceId,
    },
}

/// The longest time that a message can be put off, by the API reference of SQS.
pub const MAX_DELAY_SECONDS: u32 = 900;

/// Messages of one batch: what `SendMessageBatch` takes.
pub const MAX_BATCH: usize = 10;
impl Message {
    /// Whether it goes to the dispatcher, which alone knows the scheduler; the others go to the watcher.
    pub const fn is_for_dispatcher(&self) -> bool {
        match self {
            Self::Dispatch { .. }
            | Self::Advise { .. }
            | Self::Follow { .. }
            | Self::LookAt { .. }
            | Self::Audit { .. } => true,
            Self::Evaluate { .. } | Self::Letters { .. } | Self::Observe { .. } | Self::LookForTables { .. } => false,
        }
    }

    /// From what led to it to what it leads to.
    pub const fn trace(&self) -> &TraceId {
        match self {
            Self::Dispatch { trace, .. }
            | Self::Advise { trace, .. }
            | Self::Follow { trace, .. }
            | Self::LookAt { trace, .. }
            | Self::Audit { trace, .. }
            | Self::Evaluate { trace, .. }
            | Self::Letters { trace, .. }
            | Self::Observe { trace, .. }
            | Self::LookForTables { trace, .. } => trace,
        }
    }
}

/// The queues.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Sends one message; it is durable once this returns.
    async fn send(&self, message: &Message) -> Result<(), EngineError>;

    /// Sends messages of one kind, at most [`MAX_BATCH`], with as few calls as the queue takes. After an
    /// error some of them may be on their way: send all of them again.
    async fn send_batch(&self, messages: &[Message]) -> Result<(), EngineError> {
        for message in messages {
            self.send(message).await?;
        }
        Ok(())
    }

    /// The same, to be delivered after so many seconds; at most [`MAX_DELAY_SECONDS`].
    async fn send_later(&self, message: &Message, seconds: u32) -> Result<(), EngineError>;
}
