//! The messages of a batch, and what they ask for.

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
    pub(crate) message: Result<Message, Refused>,
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
        self.id.is_some() && self.message == Err(Refused::NotJson)
    }
}

/// Takes a batch of queue messages apart; any other event is one message.
pub(crate) fn deliveries(event: &Value) -> Vec<Delivery> {
    match event.get("Records").and_then(Value::as_array) {
        Some(records) => records.iter().map(delivery).collect(),
        None => vec![Delivery { id: None, message: message(event) }],
    }
}

fn delivery(record: &Value) -> Delivery {
    let Record { id, body } = Record::read(record);
    let message = match serde_json::from_str::<Value>(body.as_deref().unwrap_or_default()) {
        Ok(value) => message(&value),
        Err(_) => Err(Refused::NotJson),
    };
    Delivery { id, message }
}

fn message(value: &Value) -> Result<Message, Refused> {
    let message = Message::deserialize(value).map_err(|_| Refused::UnknownMessage)?;
    if message.is_for_dispatcher() { Ok(message) } else { Err(Refused::UnknownMessage) }
}
