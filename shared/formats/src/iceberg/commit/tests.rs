use super::*;
use crate::iceberg::{Known, MAIN, ReadOptions};

fn table(text: &str) -> Metadata {
    Metadata::parse(text.as_bytes(), ReadOptions::default()).unwrap()
}

fn sample() -> Metadata {
    table(
        r#"{"format-version":2,"table-uuid":"ABCD","location":"s3://b/t","last-updated-ms":90,"current-schema-id":4,
            "current-snapshot-id":3,"refs":{"a":{"snapshot-id":2,"type":"tag"},"old":{"snapshot-id":1,"type":"tag"}},
            "snapshots":[
              {"snapshot-id":1,"sequence-number":1,"summary":{"operation":"append","added-records":"5","total-records":"5"}},
              {"snapshot-id":2,"parent-snapshot-id":1,"sequence-number":2,"summary":{"operation":"delete","deleted-records":"5",
               "total-records":"0","kafka.connect.valid-through-ts":"2026-01-01T10:00Z"}},
              {"snapshot-id":3,"parent-snapshot-id":2,"sequence-number":3,"timestamp-ms":80,
               "summary":{"operation":"append","added-records":"7","total-records":"7"}}]}"#,
    )
}

#[test]
fn several_snapshots_are_one_commit() {
    let metadata = sample();
    let step = metadata.step(MAIN, Known::Snapshot { id: 1, sequence_number: None });
    let commit = metadata.to_commit("s3://b/t/metadata/00002-x.metadata.json", MAIN, Ordinal(2), &step).unwrap();
    assert_eq!(
        (commit.ordinal, commit.snapshot_id.as_str(), commit.parent_id.as_deref()),
        (Ordinal(2), "3", Some("2"))
    );
    assert_eq!((commit.kind.0.as_str(), commit.changes_data), ("append", Some(true)));
    assert_eq!(commit.watermark, Some(Millis(1_767_261_600_000)), "the highest of all");
    assert_eq!((commit.committed_at, commit.schema_id), (Some(Millis(90)), Some(4)));
    assert_eq!((commit.total_records, commit.delta_records), (Some(7), Some(2)));
    assert_eq!(commit.tags, ["a"]);
    let extra = json!({"file": "00002-x.metadata.json", "format_version": 2, "table_uuid": "ABCD", "sequence_number": 3,
                       "operations": ["delete", "append"]});
    assert_eq!(json!(commit.extra), extra);
    assert!(metadata.to_commit("x", "audit", Ordinal(2), &metadata.step("audit", Known::Nothing)).is_none());
}

#[test]
fn a_rewrite_says_so_and_counts_nothing_that_was_there_before() {
    let metadata = sample();
    let step = metadata.step(MAIN, Known::Snapshot { id: 50, sequence_number: Some(9) });
    let commit = metadata.to_commit("v9.metadata.json", MAIN, Ordinal(9), &step).unwrap();
    assert_eq!(commit.extra["movement"], json!("rewrite"));
    assert_eq!((commit.delta_records, commit.changes_data), (Some(7), Some(true)));
}

#[test]
fn fingerprints_never_change() {
    let metadata = sample();
    let print = |file: &str, branch: &str| metadata.fingerprint(file, branch);
    assert_eq!(print("s3://b/t/metadata/v2.metadata.json", MAIN), print("v2.metadata.json", MAIN));
    assert_eq!(print("v2.metadata.json", MAIN), "a8970a5e80ffde71b897bd7741057394");
    assert_ne!(print("v2.metadata.json", MAIN), print("v3.metadata.json", MAIN));
    assert_ne!(print("v2.metadata.json", MAIN), print("v2.metadata.json", "audit"));
    let mut other = sample();
    other.table_uuid = Some("abce".into());
    assert_ne!(other.fingerprint("v2.metadata.json", MAIN), print("v2.metadata.json", MAIN));
    other.table_uuid = Some("abcd".into());
    assert_eq!(other.fingerprint("v2.metadata.json", MAIN), print("v2.metadata.json", MAIN));
}

#[test]
fn without_counters_there_is_no_delta() {
    let metadata = table(
        r#"{"format-version":2,"location":"t","current-snapshot-id":2,"snapshots":[
            {"snapshot-id":1,"summary":{"operation":"append","added-records":"5"}},
            {"snapshot-id":2,"parent-snapshot-id":1,"summary":{"operation":"append"}}]}"#,
    );
    let delta = |known| {
        let step = metadata.step(MAIN, known);
        metadata.to_commit("v1.metadata.json", MAIN, Ordinal(1), &step).unwrap().delta_records
    };
    assert_eq!(delta(Known::Nothing), None);
    assert_eq!(delta(Known::Snapshot { id: 2, sequence_number: None }), None);
}
