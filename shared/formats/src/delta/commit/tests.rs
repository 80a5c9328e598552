use serde_json::json;

use super::*;

fn commit(actions: &[Value]) -> DeltaCommit {
    let text = actions.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    DeltaCommit::parse(text.as_bytes(), 7).unwrap()
}

fn info(more: &Value) -> Value {
    let mut action = json!({"commitInfo": {"timestamp": 1_700_000_000_000_i64, "operation": "WRITE"}});
    for (field, value) in more.as_object().into_iter().flatten() {
        action["commitInfo"][field.as_str()] = value.clone();
    }
    action
}

fn add(path: &str, change: &Value) -> Value {
    json!({"add": {"path": path, "dataChange": change, "stats": "{\"numRecords\":2}"}})
}

#[test]
fn all_that_a_commit_says_reaches_the_common_terms() {
    let vector = json!({"add": {"path": "b", "dataChange": true, "stats": "{\"tightBounds\":false,\"numRecords\":\"9\"}",
        "deletionVector": {"storageType": "u", "pathOrInlineDv": "x", "cardinality": 4}}});
    let metadata = json!({"metaData": {"id": "t", "schemaString": "{}"}});
    let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged", "zeta"]}});
    let all = [
        info(
            &json!({"txnId": "txn-7", "inCommitTimestamp": 1_600, "engineInfo": "e", "isBlindAppend": true, "readVersion": 6}),
        ),
        metadata,
        protocol,
        add("a", &json!(true)),
        vector,
        json!({"txn": {"appId": "job", "version": 3}}),
    ];
    let read = commit(&all);
    let shared = read.to_commit(read.schema_after(None).as_ref());
    assert_eq!((shared.ordinal, shared.fingerprint), (Ordinal(7), Fingerprint::from("txn-7")));
    assert_eq!((shared.snapshot_id.as_str(), shared.parent_id.as_deref()), ("7", Some("6")));
    assert_eq!((shared.kind.0.as_str(), shared.changes_data), ("WRITE", Some(true)));
    assert_eq!((shared.committed_at, shared.watermark), (Some(Millis(1_600)), None));
    assert_eq!((shared.schema_id, shared.total_records, shared.delta_records), (Some(7), None, Some(11)));
    let expected = json!({
        "actions": {"commitInfo": 1, "metaData": 1, "protocol": 1, "add": 2, "txn": 1}, "metadata_changed": true,
        "protocol_changed": true, "txn": {"job": 3}, "deletion_vector_rows": 4, "blind_append": true,
        "in_commit_timestamp": 1_600, "timestamp": 1_700_000_000_000_i64, "engine_info": "e", "table_id": "t",
        "catalog_managed": true, "not_understood": ["zeta"],
    });
    assert_eq!(json!(shared.extra), expected);
    assert_eq!((read.table_id(), read.is_catalog_managed()), (Some("t"), Some(true)));
    assert_eq!(read.info.unwrap().read_version, Some(6));
}

#[test]
fn only_flags_decide_what_changes_data() {
    let (yes, no, unknown) = (json!(true), json!(false), Value::Null);
    let optimize = info(&json!({"operation": "OPTIMIZE"}));
    assert_eq!(commit(&[optimize.clone(), add("a", &yes)]).changes_data(), Some(true));
    assert_eq!(commit(&[info(&json!({})), add("a", &no)]).changes_data(), Some(false));
    assert_eq!(commit(&[info(&json!({}))]).changes_data(), Some(false));
    assert_eq!(commit(&[add("a", &no), add("b", &unknown)]).changes_data(), None);
    assert_eq!(commit(&[add("a", &json!("true"))]).changes_data(), None);
    assert_eq!(commit(&[add("a", &unknown), add("b", &yes)]).changes_data(), Some(true));
    assert_eq!(commit(&[json!({"remove": {"path": "a", "dataChange": true}})]).changes_data(), Some(true));
    assert_eq!(commit(&[json!({"cdc": {"path": "a", "dataChange": true}})]).changes_data(), Some(false));
}

#[test]
fn a_commit_need_not_say_who_it_is() {
    let bare = commit(&[add("a", &json!(true))]).to_commit(None);
    assert_eq!((bare.kind.0.as_str(), bare.committed_at, bare.schema_id), ("UNKNOWN", None, None));
    let strange = commit(&[
        json!({"commitInfo": {"timestamp": {"x": [1]}, "operation": 5, "txnId": [], "inCommitTimestamp": 1.5,
        "isBlindAppend": "no", "engineInfo": null}}),
    ]);
    let expected = CommitInfo {
        timestamp: None,
        in_commit_timestamp: None,
        operation: None,
        txn_id: None,
        engine_info: None,
        is_blind_append: None,
        read_version: None,
    };
    assert_eq!(strange.info, Some(expected));
    let first = DeltaCommit::parse(b"{\"commitInfo\":{}}", 0).unwrap();
    assert_eq!(first.to_commit(None).parent_id, None);
    assert_eq!(commit(&[info(&json!({"operation": "x".repeat(1000)}))]).to_commit(None).kind.0.chars().count(), 257);
}

#[test]
fn fingerprints_tell_commits_apart_and_never_change() {
    let print = |actions: &[Value]| commit(actions).fingerprint();
    let print_of = |text: &str| DeltaCommit::parse(text.as_bytes(), 7).unwrap().fingerprint();
    let plain = r#"{"commitInfo":{"operation":"WRITE","timestamp":1700000000000}}
{"add":{"path":"a","dataChange":true}}"#;
    assert_eq!(print_of(plain), "8948e1fed45a0f7387ec7359a98a465b");
    assert_eq!(print_of(r#"{"domainMetadata":{"domain":"d"}}"#), "65dc8aa7a7bef7e63ec2a5deb8a3091a");
    let plain = [info(&json!({})), add("a", &json!(true))];
    let others = [
        vec![info(&json!({"timestamp": 1})), add("a", &json!(true))],
        vec![info(&json!({})), add("b", &json!(true))],
        vec![info(&json!({})), json!({"remove": {"path": "a", "dataChange": true}})],
        vec![info(&json!({})), add("a", &json!(true)), json!({"metaData": {"id": "t"}})],
        vec![info(&json!({"txnId": "x".repeat(65)})), add("a", &json!(true))],
        vec![info(&json!({}))],
        vec![add("a", &json!(true))],
        vec![json!({"domainMetadata": {"domain": "e"}})],
    ];
    let all: std::collections::BTreeSet<Fingerprint> = others.iter().map(|actions| print(actions)).collect();
    assert_eq!(all.len(), others.len());
    assert!(!all.contains(&print(&plain)) && all.iter().all(|print| print.as_str().len() == 32));
    assert_eq!(print(&[info(&json!({"txnId": "t-1"})), add("a", &json!(true))]), "t-1");
}

#[test]
fn in_commit_timestamps_rise() {
    let at = |time: i64| commit(&[info(&json!({"inCommitTimestamp": time}))]);
    assert_eq!(at(6).link_holds(Some(5)), Some(true));
    assert_eq!(at(5).link_holds(Some(5)), Some(false));
    assert_eq!(at(5).link_holds(None), None);
    assert_eq!(commit(&[info(&json!({}))]).link_holds(Some(5)), None);
}

#[test]
fn a_schema_is_named_by_the_version_that_brought_it() {
    let with = |schema: &str| commit(&[json!({"metaData": {"id": "t", "schemaString": schema}})]);
    let first = SchemaVersion { since: 2, digest: with("{}").metadata.unwrap().schema_digest().to_owned() };
    assert_eq!(with("{}").schema_after(Some(&first)), Some(first.clone()));
    assert_eq!(with("[]").schema_after(Some(&first)).unwrap().since, 7);
    assert_eq!(commit(&[info(&json!({}))]).schema_after(Some(&first)), Some(first.clone()));
    assert_eq!(commit(&[info(&json!({}))]).schema_after(None), None);
    assert_eq!(first.schema_id(), Some(2));
}

#[test]
fn who_decides_about_commits_is_told_only_where_it_is_set() {
    let coordinated =
        json!({"metaData": {"id": "t", "configuration": {"delta.coordinatedCommits.commitCoordinator-preview": "c"}}});
    assert_eq!(commit(&[coordinated]).is_catalog_managed(), Some(true));
    assert_eq!(commit(&[json!({"metaData": {"id": "t"}})]).is_catalog_managed(), Some(false));
    assert_eq!(commit(&[info(&json!({}))]).is_catalog_managed(), None);
}

#[test]
fn records_are_counted_where_all_files_have_counts() {
    let remove = |stats: &Value| json!({"remove": {"path": "r", "dataChange": true, "stats": stats}});
    assert_eq!(commit(&[add("a", &json!(true)), remove(&json!("{\"numRecords\":5}"))]).delta_records(), Some(-3));
    for stats in
        [Value::Null, json!(""), json!("{}"), json!("{\"numRecords\":-1}"), json!("{\"numRecords\":1.5}"), json!("x")]
    {
        assert_eq!(commit(&[add("a", &json!(true)), remove(&stats)]).delta_records(), None, "{stats}");
    }
    let spaced = remove(&json!("{ \"minValues\": {\"numRecords\": 8}, \"numRecords\" : 5 }"));
    assert_eq!(commit(&[spaced]).files.removed, RecordTotal { files: 1, files_without_count: 0, records: 5 });
}

#[test]
fn the_partitions_of_files_that_change_data_are_named() {
    let file = |partition: &str, changes: bool| {
        format!(r#"{{"add":{{"path":"p","partitionValues":{partition},"size":1,"dataChange":{changes}}}}}"#)
    };
    let lines = [
        file(r#"{"dt":"2024-09-10","hour":"05"}"#, true),
        file(r#"{"dt":"2024-09-10","hour":"05"}"#, true),
        file(r#"{"dt":"2024-09-11","hour":null}"#, true),
        file(r#"{"dt":"2024-09-12","hour":"07"}"#, false),
        file("{}", true),
        file("null", true),
    ];
    let commit = DeltaCommit::parse(lines.join("\n").as_bytes(), 3).unwrap();
    assert_eq!(commit.partitions.iter().collect::<Vec<_>>(), ["dt=2024-09-10/hour=05"]);
    assert_eq!(commit.to_commit(None).extra["partitions"], serde_json::json!(["dt=2024-09-10/hour=05"]));
}
