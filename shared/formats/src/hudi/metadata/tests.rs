use serde_json::{Value, json};

use super::*;
use crate::error::FormatErrorKind::{NotAvro, NotJson, TooLarge, Truncated, WrongValue};

fn parse(value: &Value) -> CommitMetadata {
    CommitMetadata::parse(value.to_string().as_bytes()).unwrap()
}

fn refusal(bytes: &[u8]) -> (FormatErrorKind, String) {
    let error = CommitMetadata::parse(bytes).unwrap_err();
    (error.kind, error.problem)
}

#[test]
fn statistics_are_summed_over_all_files() {
    let metadata = parse(&json!({
        "partitionToWriteStats": {
            "b": [{"numInserts": 3, "numDeletes": 1, "numUpdateWrites": null}, {"numInserts": 2, "numWrites": 99, "path": "x"}],
            "a": [{"numUpdateWrites": 4, "runtimeStats": {"totalScanTime": 1}}],
            "empty": [], "none": null,
        },
        "partitionToReplaceFileIds": {"c": ["f1", "f2"], "a": []},
        "extraMetadata": {"schema": "{}", "key": null},
        "operationType": "UPSERT", "compacted": false, "unknown": {"deep": [1, {"x": null}]},
    }));
    assert_eq!((metadata.inserts, metadata.updates, metadata.deletes, metadata.write_stats), (5, 4, 1, 3));
    assert_eq!(metadata.delta_records(), 4);
    assert_eq!(metadata.partitions.iter().collect::<Vec<_>>(), ["a", "b", "empty", "none"]);
    assert_eq!(metadata.partitions_touched().into_iter().collect::<Vec<_>>(), ["a", "b", "c", "empty", "none"]);
    assert_eq!(metadata.extra_metadata_keys.iter().collect::<Vec<_>>(), ["key", "schema"]);
    assert_eq!(metadata.operation_type.as_deref(), Some("UPSERT"));
}

#[test]
fn nothing_is_required() {
    for bytes in [&b""[..], b" \n\t"] {
        assert_eq!(CommitMetadata::parse(bytes).unwrap(), CommitMetadata::empty(Encoding::Empty));
    }
    assert_eq!(parse(&json!({})), CommitMetadata::empty(Encoding::Json));
    let nulls = json!({"partitionToWriteStats": null, "partitionToReplaceFileIds": null, "extraMetadata": null,
        "operationType": null, "compacted": null});
    assert_eq!(parse(&nulls), CommitMetadata::empty(Encoding::Json));
}

#[test]
fn names_are_bounded_in_number_and_length() {
    let partitions: serde_json::Map<_, _> = (0..2000).map(|n| (format!("p{n:04}"), json!([]))).collect();
    let metadata = parse(&json!({ "partitionToWriteStats": partitions, "extraMetadata": {"x".repeat(5000): "v"} }));
    assert_eq!((metadata.partitions.iter().count(), metadata.partitions.listed()), (1000, 2000));
    let longest = metadata.extra_metadata_keys.iter().map(|key| key.chars().count()).max();
    assert_eq!(longest, Some(MAX_NAME_CHARS + 1));
    assert!(!metadata.partitions.is_empty() && metadata.replaced_partitions.is_empty());
}

#[test]
fn what_cannot_be_read_says_what_is_wrong() {
    let whole = json!({"partitionToWriteStats": {"a": [{"numInserts": 1}]}, "operationType": "INSERT"}).to_string();
    let (kind, problem) = refusal(&whole.as_bytes()[..20]);
    assert_eq!((kind, problem.contains("ends after 20 bytes")), (Truncated, true), "{problem}");
    assert_eq!(refusal(b"\x00\x01").0, NotJson);
    assert_eq!(refusal((whole.clone() + "x").as_bytes()).0, NotJson);
    assert_eq!(refusal(b"{\"\xff\": 1}").0, NotJson);
    for wrong in [
        "[1]",
        "7",
        r#"{"partitionToWriteStats": []}"#,
        r#"{"partitionToWriteStats": {"a": {}}}"#,
        r#"{"partitionToWriteStats": {"a": [7]}}"#,
        r#"{"partitionToWriteStats": {"a": [{"numInserts": "1"}]}}"#,
        r#"{"partitionToWriteStats": {"a": [{"numInserts": 1e99}]}}"#,
        r#"{"partitionToWriteStats": {"a": [{"numInserts": 9223372036854775807}, {"numInserts": 1}]}}"#,
        r#"{"extraMetadata": "x"}"#,
        r#"{"partitionToReplaceFileIds": 1}"#,
        r#"{"operationType": 5}"#,
        r#"{"operationType": ""}"#,
        r#"{"compacted": "yes"}"#,
    ] {
        let (kind, problem) = refusal(wrong.as_bytes());
        assert_eq!(kind, WrongValue, "{wrong}: {problem}");
        assert!(problem.len() < 400, "{problem}");
    }
    assert_eq!(refusal(json!({"operationType": "x".repeat(65)}).to_string().as_bytes()).0, WrongValue);
    assert_eq!(refusal(b"Obj\x01").0, Truncated);
    assert_eq!(refusal(b"Obj\x01\x00aaaaaaaaaaaaaaaa").0, NotAvro);
    assert_eq!(refusal(&vec![b' '; MAX_FILE_BYTES + 1]).0, TooLarge);
}

#[test]
fn deeply_nested_json_costs_no_stack() {
    let nested = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let metadata = CommitMetadata::parse(format!(r#"{{"unknown": {nested}}}"#).as_bytes()).unwrap();
    assert_eq!(metadata, CommitMetadata::empty(Encoding::Json), "passed over");
    assert_eq!(refusal(format!(r#"{{"partitionToWriteStats": {nested}}}"#).as_bytes()).0, WrongValue);
}

#[test]
fn the_encoding_is_told_by_the_bytes() {
    let names: Vec<_> =
        [&b"Obj\x01x"[..], b"", b"{}", b"Obj\x02"].iter().map(|bytes| Encoding::of(bytes).name()).collect();
    assert_eq!(names, ["avro", "empty", "json", "json"]);
}
