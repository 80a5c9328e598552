//! The messages of a batch, and what they ask for.

use lakebell_domain::ids::{AuditId, ConnectionName, ProjectCode, TargetId, TraceId, TriggerKey};
use lakebell_engine::dispatch::Order;
use lakebell_engine::ports::queue::Message;
use lakebell_lambda::Record;
use serde::Deserialize;
use serde_json::Value;

/// A message of the queue, or an event that came without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The message's id, by which it can be handed back alone.
    pub(crate) id: Option<String>,
    /// What it asks for.
    pub(crate) work: Result<Work, Refused>,
}

/// What a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// To carry a trigger on.
    Dispatch(Order),
    /// To look at the workflow of a target that was declared.
    Advise {
        /// The target.
        target: TargetId,
        /// From the declaration.
        trace: TraceId,
    },
    /// To look at a connection.
    LookAt {
        /// The connection.
        connection: ConnectionName,
        /// From the question.
        trace: TraceId,
    },
    /// To do an audit.
    Audit {
        /// The project.
        project: ProjectCode,
        /// The audit.
        audit: AuditId,
        /// From the question.
        trace: TraceId,
    },
    /// To ask how started workflows are getting on.
    Follow {
        /// Their triggers.
        triggers: Vec<TriggerKey>,
        /// From the sweep.
        trace: TraceId,
    },
}

/// Why a message is not understood. The words are labels of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is no JSON.
    NotJson,
    /// It is no message to the dispatcher that this version knows.
    UnknownMessage,
}

impl Refused {
    /// The word for logs and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::UnknownMessage => "unknown_message",
        }
    }
}

impl Delivery {
    /// Nothing can be read of it. Handed back until the queue moves it to its dead letters, where
    /// its body is kept for a person and an alarm stands.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.id.is_some() && self.work == Err(Refused::NotJson)
    }
}

/// Takes a batch of queue messages apart; any other event is one message.
pub(crate) fn deliveries(event: &Value) -> Vec<Delivery> {
    match event.get("Records").and_then(Value::as_array) {
        Some(records) => records.iter().map(delivery).collect(),
        None => vec![Delivery { id: None, work: work(event) }],
    }
}

fn delivery(record: &Value) -> Delivery {
    let Record { id, body } = Record::read(record);
    let work = match serde_json::from_str::<Value>(body.as_deref().unwrap_or_default()) {
        Ok(value) => work(&value),
        Err(_) => Err(Refused::NotJson),
    };
    Delivery { id, work }
}

fn work(value: &Value) -> Result<Work, Refused> {
    match Message::deserialize(value) {
        Ok(Message::Dispatch { target, trigger, attempt, trace }) => {
            Ok(Work::Dispatch(Order { target, trigger, attempt, trace }))
        }
        Ok(Message::Advise { target, trace }) => Ok(Work::Advise { target, trace }),
        Ok(Message::LookAt { connection, trace }) => Ok(Work::LookAt { connection, trace }),
        Ok(Message::Audit { project, audit, trace }) => Ok(Work::Audit { project, audit, trace }),
        Ok(Message::Follow { triggers, trace }) => Ok(Work::Follow { triggers, trace }),
        Ok(_) | Err(_) => Err(Refused::UnknownMessage),
    }
}
