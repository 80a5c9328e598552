use serde_json::json;

use super::*;
use crate::delta::DeltaCommit;

fn metadata(schema: &str, more: &Value) -> Metadata {
    let mut action = json!({"metaData": {"id": "t-1", "schemaString": schema, "partitionColumns": ["day"]}});
    for (field, value) in more.as_object().into_iter().flatten() {
        action["metaData"][field.as_str()] = value.clone();
    }
    DeltaCommit::parse(action.to_string().as_bytes(), 0).unwrap().metadata.unwrap()
}

const SCHEMA: &str = r#"{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}"#;

#[test]
fn equal_columns_have_one_digest_that_never_changes() {
    let digest = metadata(SCHEMA, &json!({})).schema_digest().to_owned();
    assert_eq!(digest, "04076176c34fb669623b2d3ef72c0691");
    let reordered = r#"{ "fields": [ {"metadata":{},"nullable":true,"type":"long","name":"id"} ], "type":"struct" }"#;
    assert_eq!(metadata(reordered, &json!({"name": "n", "configuration": {"a": "b"}})).schema_digest(), digest);
    let marked = SCHEMA.replace("\"metadata\":{}", r#""metadata":{"delta.identity.highWaterMark":7}"#);
    assert_eq!(metadata(&marked, &json!({})).schema_digest(), digest);
}

#[test]
fn other_columns_have_another_digest() {
    let digest = metadata(SCHEMA, &json!({})).schema_digest().to_owned();
    let others = [
        metadata(&SCHEMA.replace("long", "integer"), &json!({})),
        metadata(&SCHEMA.replace("true", "false"), &json!({})),
        metadata(&SCHEMA.replace("\"metadata\":{}", r#""metadata":{"comment":"x"}"#), &json!({})),
        metadata(SCHEMA, &json!({"partitionColumns": []})),
        metadata("not JSON", &json!({})),
        metadata("", &json!({})),
    ];
    for other in &others {
        assert_ne!(other.schema_digest(), digest);
        assert_eq!(other.schema_digest().len(), 32);
    }
}

#[test]
fn options_that_matter_are_read() {
    let options = json!({"createdTime": 5, "name": "orders", "configuration": {"delta.enableInCommitTimestamps": "TRUE",
        "delta.enableChangeDataFeed": "false", "delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"}});
    let read = metadata(SCHEMA, &options);
    assert_eq!((read.created_time, read.name.as_deref()), (Some(5), Some("orders")));
    assert!(read.in_commit_timestamps && !read.change_data_feed);
    assert_eq!(read.commit_coordinator.as_deref(), Some("dynamodb"));
}

#[test]
fn a_table_has_an_id_of_bounded_length() {
    let refusal = |text: &str| DeltaCommit::parse(text.as_bytes(), 0).unwrap_err();
    assert_eq!(refusal(r#"{"metaData":{"id":null}}"#).to_string(), "line 1: `metaData.id` is missing");
    let long = refusal(&json!({"metaData": {"id": "x".repeat(129)}}).to_string());
    assert_eq!((long.kind, long.to_string().contains("129 bytes")), (FormatErrorKind::WrongValue, true));
}
