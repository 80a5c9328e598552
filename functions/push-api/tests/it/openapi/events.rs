//! The schema of pushed events: one type for each kind, and what its data needs. It is part of the document,
//! and published by itself as `schema/events.schema.json`.

use lakebell_domain::event::EventKind;
use lakebell_engine::push::PUSHABLE;
use serde_json::{Value, json};

use super::parts::{integer, list, moment, object, open_object, string};

/// What an event may say about a table.
pub(super) fn data() -> Value {
    let text = |most: u32| json!({"type": "string", "minLength": 1, "maxLength": most});
    let id = json!({"type": ["string", "integer"]});
    object(
        &[],
        &[
            ("asset", string()),
            ("location", json!({"type": "string", "pattern": "^[sS]3[anAN]?://"})),
            ("snapshotId", id.clone()),
            ("tag", text(255)),
            ("check", text(128)),
            ("severity", json!({"enum": ["error", "warn"]})),
            ("runId", text(128)),
            ("runAt", moment()),
            ("checkStartedAt", moment()),
            ("schemaId", integer()),
            ("backfillId", text(128)),
            ("partition", text(1_024)),
            ("partitionKey", text(1_024)),
            ("watermark", id),
            ("ordinal", json!({"type": "integer", "minimum": 0})),
            ("operation", text(64)),
            ("records", integer()),
            ("status", text(64)),
            ("job", text(256)),
            ("inputs", json!({"type": "array", "items": string(), "maxItems": 64})),
            ("outputs", json!({"type": "array", "items": string(), "maxItems": 64})),
            ("triggerKey", string()),
            ("target", string()),
            ("workflow", string()),
            ("extra", json!({"type": "object"})),
        ],
    )
}

/// What the data of a kind needs, each as alternatives.
fn needs(kind: EventKind) -> Vec<Vec<&'static str>> {
    let table = vec!["asset", "location"];
    match kind {
        EventKind::TagCreated | EventKind::TagDeleted => vec![table, vec!["tag"]],
        EventKind::WatermarkAdvanced => vec![table, vec!["watermark"]],
        EventKind::QualityCheckPassed | EventKind::QualityCheckFailed | EventKind::QualityCheckErrored => {
            vec![table, vec!["check"]]
        }
        EventKind::SchemaChangeApproved | EventKind::SchemaChangeRejected => vec![table, vec!["schemaId"]],
        EventKind::BackfillStarted | EventKind::BackfillCompleted => vec![table, vec!["backfillId"]],
        EventKind::PartitionDone => vec![table, vec!["partition", "partitionKey"]],
        EventKind::JobStatusChanged => vec![vec!["asset", "location", "inputs", "outputs"], vec!["status"]],
        _ => vec![table],
    }
}

/// An event: of one of the types, with data that has what the type needs.
pub(super) fn event(data: &Value) -> Value {
    let of_kind = |kind: EventKind| {
        let name = format!("io.lakebell.{}.v1", kind.as_str().to_lowercase().replace('_', "."));
        let any = |names: Vec<&str>| match names.as_slice() {
            [only] => json!({"required": [only]}),
            several => json!({"anyOf": several.iter().map(|name| json!({"required": [name]})).collect::<Vec<_>>()}),
        };
        let needed: Vec<Value> = std::iter::once(data.clone()).chain(needs(kind).into_iter().map(any)).collect();
        let common = [
            ("specversion", json!({"const": "1.0"})),
            ("id", json!({"type": "string", "minLength": 1, "maxLength": 255})),
            ("source", json!({"type": "string", "minLength": 1, "maxLength": 1_024})),
            ("type", json!({"const": name})),
        ];
        let of_json = [("time", moment()), ("data", json!({"allOf": needed}))];
        let mut event = open_object(&[&common[..], &of_json[1..]].concat(), &of_json[..1]);
        event["title"] = json!(kind.as_str());
        event
    };
    let by_kind: Vec<Value> = PUSHABLE.into_iter().map(of_kind).collect();
    // The same data in another encoding cannot be looked into by a schema.
    let names: Vec<Value> = by_kind.iter().map(|event| event["properties"]["type"]["const"].clone()).collect();
    let encoded = open_object(
        &[
            ("specversion", json!({"const": "1.0"})),
            ("id", json!({"type": "string", "minLength": 1, "maxLength": 255})),
            ("source", json!({"type": "string", "minLength": 1, "maxLength": 1_024})),
            ("type", json!({"enum": names})),
            ("data_base64", string()),
        ],
        &[("time", moment())],
    );
    let all: Vec<Value> = by_kind.into_iter().chain([encoded]).collect();
    json!({"anyOf": all})
}

/// The schema by itself, for writers: one event or a batch.
pub(super) fn published() -> Value {
    let one = json!({"$ref": "#/$defs/event"});
    let mut batch = list(&one);
    batch["maxItems"] = json!(500);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://lakebell.dev/schema/events.schema.json",
        "title": "Events that writers push to Lakebell: a CloudEvent 1.0 in structured mode, or a batch of them",
        "anyOf": [one, batch],
        "$defs": {"event": event(&json!({"$ref": "#/$defs/data"})), "data": data()},
    })
}
