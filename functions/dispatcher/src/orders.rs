//! The messages of a batch, and the triggers that they name.

use aws_lambda_events::sqs::SqsMessage;
use lakebell_engine::dispatch::Order;
use lakebell_engine::ports::queue::Message;
use serde::Deserialize;
use serde_json::Value;

/// A message of the queue, or an event that came without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The message's id, by which it can be handed back alone.
    pub(crate) id: Option<String>,
    /// What it asks for.
    pub(crate) order: Result<Order, Refused>,
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
        self.id.is_some() && self.order == Err(Refused::NotJson)
    }
}

/// Takes a batch of queue messages apart; any other event is one message.
pub(crate) fn deliveries(event: &Value) -> Vec<Delivery> {
    match event.get("Records").and_then(Value::as_array) {
        Some(records) => records.iter().map(delivery).collect(),
        None => vec![Delivery { id: None, order: order(event) }],
    }
}

fn delivery(record: &Value) -> Delivery {
    // One at a time, so that a record of another shape does not spoil the batch.
    let message = SqsMessage::deserialize(record).unwrap_or_default();
    let id = message.message_id.or_else(|| record["messageId"].as_str().map(str::to_owned));
    let body = message.body.as_deref().or_else(|| record["body"].as_str()).unwrap_or_default();
    let order = match serde_json::from_str::<Value>(body) {
        Ok(value) => order(&value),
        Err(_) => Err(Refused::NotJson),
    };
    Delivery { id: id.filter(|id| !id.is_empty()), order }
}

fn order(value: &Value) -> Result<Order, Refused> {
    match Message::deserialize(value) {
        Ok(Message::Dispatch { target, trigger, attempt, trace }) => Ok(Order { target, trigger, attempt, trace }),
        Ok(_) | Err(_) => Err(Refused::UnknownMessage),
    }
}
