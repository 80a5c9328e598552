//! The parts of an event that succeed or fail by themselves.

use lakebell_lambda::Record;
use serde_json::Value;

use crate::unwrap::{Finding, Refused, unwrap_body, unwrap_event};

/// A message of a queue, or a whole event that came without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// The message's id, by which it can be handed back alone.
    pub(crate) id: Option<String>,
    /// What is in it.
    pub(crate) findings: Vec<Finding>,
}

impl Delivery {
    /// Nothing can be read of it. Handed back until the queue moves it to its dead letters, where
    /// its body is kept for a person and an alarm stands.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.id.is_some() && self.findings.iter().all(|finding| *finding == Finding::Refused(Refused::NotJson))
    }
}

/// Takes a batch of queue messages apart; any other event is one delivery.
pub(crate) fn deliveries(event: &Value) -> Vec<Delivery> {
    match event.get("Records").and_then(Value::as_array) {
        Some(records) if records.iter().any(|record| record["eventSource"] == "aws:sqs") => {
            records.iter().map(delivery).collect()
        }
        _ => vec![Delivery { id: None, findings: unwrap_event(event) }],
    }
}

fn delivery(record: &Value) -> Delivery {
    let Record { id, body } = Record::read(record);
    let findings = body.as_deref().map_or_else(|| vec![Finding::Refused(Refused::Malformed)], unwrap_body);
    Delivery { id, findings }
}
