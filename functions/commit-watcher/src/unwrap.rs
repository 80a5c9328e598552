//! Takes envelopes off until the hints are bare. Pure.
//!
//! A hint may come as an S3 notification, alone or in SNS, in SQS, or in both; as EventBridge's
//! `Object Created`, alone or in SQS; or as a message of Lakebell to itself. One function looks at
//! what a document is by its structure, because the same shape arrives through several envelopes
//! and raw delivery leaves layers out.
//!
//! The structs here ask for less than those of `aws_lambda_events`, which refuse test events and
//! records of other S3 servers. Every document ends in findings: nothing is dropped unsaid.
//!
//! Sequencers order events of one key only and are not read at all: the table's own files decide.

mod key;
mod shapes;

use lakebell_decoders::Entry;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::watch::Created;
use serde_json::Value;

pub use key::{DecodedKey, decode_key};

/// Most layers of JSON, the event of the function itself being the first: SQS, SNS, a record of a
/// failed delivery, S3.
pub const MAX_LAYERS: usize = 4;
/// Most findings of one event or queue message; the last one then says that there are more. S3 puts
/// one record into a message.
pub const MAX_FINDINGS: usize = 1_000;

/// One thing that an event turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// An object was created.
    Object {
        /// The object.
        created: Created,
        /// Its key had a malformed escape and stands as it came.
        is_key_raw: bool,
    },
    /// Lakebell told itself something.
    Message(Message),
    /// A service of AWS says something about tables: Glue, S3 Tables.
    Service(Box<Entry>),
    /// It is understood and means nothing here.
    Ignored(Ignored),
    /// It is not understood.
    Refused(Refused),
}

/// Why something means nothing here. The words are labels of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ignored {
    /// S3 says that a notification was configured.
    TestEvent,
    /// There is nothing in it.
    Empty,
    /// Something happened to an object, and it was not created.
    NotCreated,
    /// An event of EventBridge about something else.
    OtherEvent,
    /// SNS asks to confirm a subscription: not answered from here.
    Confirmation,
}

impl Ignored {
    /// The word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TestEvent => "test_event",
            Self::Empty => "empty",
            Self::NotCreated => "not_created",
            Self::OtherEvent => "other_event",
            Self::Confirmation => "confirmation",
        }
    }
}

/// Why something is not understood. The words are labels of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Refused {
    /// The text is no JSON.
    NotJson,
    /// No known shape.
    UnknownShape,
    /// A known shape without bucket, key or event name, or with a field of another type.
    Malformed,
    /// An S3 record of another major version.
    UnknownVersion,
    /// A message of Lakebell that this version does not know, or that belongs to another queue.
    UnknownMessage,
    /// More layers than [`MAX_LAYERS`].
    TooDeep,
    /// More findings than [`MAX_FINDINGS`]; the rest was not read.
    TooMany,
}

impl Refused {
    /// The word for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::UnknownShape => "unknown_shape",
            Self::Malformed => "malformed",
            Self::UnknownVersion => "unknown_version",
            Self::UnknownMessage => "unknown_message",
            Self::TooDeep => "too_deep",
            Self::TooMany => "too_many",
        }
    }
}

/// What the body of a queue message holds. There is at least one finding.
pub fn unwrap_body(body: &str) -> Vec<Finding> {
    let mut findings = Findings::default();
    text(body, 2, &mut findings);
    findings.0
}

/// What an event holds that reached the function without a queue. There is at least one finding.
pub fn unwrap_event(event: &Value) -> Vec<Finding> {
    let mut findings = Findings::default();
    document(event, 1, &mut findings);
    findings.0
}

/// Findings up to [`MAX_FINDINGS`].
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn push(&mut self, finding: Finding) {
        if !self.is_full() {
            self.0.push(if self.0.len() + 1 == MAX_FINDINGS { Finding::Refused(Refused::TooMany) } else { finding });
        }
    }

    fn is_full(&self) -> bool {
        self.0.len() >= MAX_FINDINGS
    }
}

/// JSON as text is one layer.
fn text(text: &str, layer: usize, findings: &mut Findings) {
    if layer > MAX_LAYERS {
        return findings.push(Finding::Refused(Refused::TooDeep));
    }
    match serde_json::from_str(text) {
        Ok(value) => document(&value, layer, findings),
        Err(_) => findings.push(Finding::Refused(Refused::NotJson)),
    }
}

/// One document, by its structure.
fn document(value: &Value, layer: usize, findings: &mut Findings) {
    if layer > MAX_LAYERS {
        return findings.push(Finding::Refused(Refused::TooDeep));
    }
    let has = |field: &str| value.get(field).is_some();
    match value {
        Value::Object(fields) if fields.is_empty() => findings.push(Finding::Ignored(Ignored::Empty)),
        Value::Object(_) if has("lakebell") => findings.push(message(value)),
        Value::Object(_) if has("Records") => records(&value["Records"], layer, findings),
        Value::Object(_) if value["Event"] == "s3:TestEvent" => findings.push(Finding::Ignored(Ignored::TestEvent)),
        Value::Object(_) if has("detail-type") => findings.push(shapes::event_bridge(value)),
        Value::Object(_) if has("TopicArn") && has("Type") => notification(value, layer, findings),
        // What Lambda keeps of an asynchronous invocation that failed: sent in again, it counts as
        // the event that it was.
        Value::Object(_) if has("requestPayload") => document(&value["requestPayload"], layer + 1, findings),
        Value::Array(documents) if documents.is_empty() => findings.push(Finding::Ignored(Ignored::Empty)),
        Value::Array(documents) => documents.iter().for_each(|value| record(value, layer + 1, findings)),
        _ => findings.push(Finding::Refused(Refused::UnknownShape)),
    }
}

fn records(records: &Value, layer: usize, findings: &mut Findings) {
    match records {
        Value::Null => findings.push(Finding::Ignored(Ignored::Empty)),
        Value::Array(records) if records.is_empty() => findings.push(Finding::Ignored(Ignored::Empty)),
        Value::Array(records) => {
            for value in records {
                if findings.is_full() {
                    return;
                }
                record(value, layer, findings);
            }
        }
        _ => findings.push(Finding::Refused(Refused::Malformed)),
    }
}

/// One of a list: a record of S3, of SQS or of SNS, or a document of its own.
fn record(value: &Value, layer: usize, findings: &mut Findings) {
    if layer > MAX_LAYERS {
        findings.push(Finding::Refused(Refused::TooDeep));
    } else if value.get("s3").is_some() {
        findings.push(shapes::s3_record(value));
    } else if let Some(Value::String(body)) = value.get("body") {
        text(body, layer + 1, findings);
    } else if let Some(envelope) = value.get("Sns") {
        notification(envelope, layer, findings);
    } else if value.get("eventName").is_some() || value.get("eventSource").is_some() {
        findings.push(Finding::Refused(Refused::Malformed));
    } else {
        document(value, layer, findings);
    }
}

/// SNS puts the message into a text field. Its signature is not checked: who may send to the queue
/// or invoke the function is up to their policies.
fn notification(value: &Value, layer: usize, findings: &mut Findings) {
    match (value["Type"].as_str(), value["Message"].as_str()) {
        (Some("SubscriptionConfirmation" | "UnsubscribeConfirmation"), _) => {
            findings.push(Finding::Ignored(Ignored::Confirmation));
        }
        (_, Some(message)) => text(message, layer + 1, findings),
        (_, None) => findings.push(Finding::Refused(Refused::Malformed)),
    }
}

fn message(value: &Value) -> Finding {
    match serde_json::from_value::<Message>(value.clone()) {
        Ok(message) if !message.is_for_dispatcher() => Finding::Message(message),
        Ok(_) | Err(_) => Finding::Refused(Refused::UnknownMessage),
    }
}
