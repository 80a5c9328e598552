use serde_json::json;

use super::*;
use crate::delta::{checksum_key, commit_key, last_checkpoint_key};

fn inspection(files: &[(String, &str)]) -> Value {
    let files = files.iter().map(|(key, text)| (key.clone(), text.as_bytes().to_vec())).collect();
    serde_json::to_value(inspect(&files)).unwrap()
}

const ADD: &str = r#"{"add":{"path":"a","dataChange":true,"stats":"{\"numRecords\":2}"}}"#;

#[test]
fn an_empty_folder_is_no_table() {
    assert!(inspect(&BTreeMap::new()).is_empty());
    let expected = json!({
        "format": "delta", "commits": [],
        "latest": {"branch": "main", "position": null, "snapshot_id": null, "file": null, "schema_id_of_table": null},
        "latest_by_branch": {"main": null}, "earliest": {"position": null}, "consumers": {}, "pending": [],
    });
    assert_eq!(inspection(&[]), expected);
}

#[test]
fn only_the_log_at_the_root_is_wanted() {
    let read = [commit_key(0), checksum_key(0), "_delta_log/00000000000000000004.checkpoint.a.json".to_owned()];
    let named = [
        "_delta_log/00000000000000000001.00000000000000000004.compacted.json",
        "_delta_log/_staged_commits/00000000000000000004.a.json",
    ];
    let others = [
        last_checkpoint_key(),
        "_delta_log/00000000000000000004.checkpoint.parquet".to_owned(),
        "_delta_log/00000000000000000004.checkpoint.a.parquet".to_owned(),
        "_delta_log/_sidecars/a.parquet".to_owned(),
        "t/_delta_log/00000000000000000004.json".to_owned(),
        "/_delta_log/00000000000000000004.json".to_owned(),
        "part-0.parquet".to_owned(),
    ];
    assert!(read.iter().all(|key| wants(key) && reads(key)));
    assert!(named.iter().all(|key| wants(key) && !reads(key)));
    for key in &others {
        assert!(!wants(key) && !reads(key), "{key}");
    }
}

#[test]
fn another_table_in_one_log_is_noticed() {
    let shown = inspection(&[
        (commit_key(0), r#"{"metaData":{"id":"one","schemaString":"{}"}}"#),
        (commit_key(1), r#"{"metaData":{"id":"two","schemaString":"{}"}}"#),
    ]);
    assert_eq!(shown["warnings"], json!(["from version 1 on the log is that of another table: two, not one"]));
    assert_eq!(shown["latest"]["table_id"], json!("two"));
    assert_eq!(shown["latest"]["schema_id_of_table"], json!(0));
}

#[test]
fn a_broken_checkpoint_or_checksum_costs_only_what_it_says() {
    let shown = inspection(&[
        (commit_key(5), ADD),
        (checksum_key(5), "{"),
        ("_delta_log/00000000000000000004.checkpoint.a.json".to_owned(), "x"),
    ]);
    assert_eq!(shown["commits"][0]["delta_records"], json!(2));
    assert_eq!(shown["commits"][0]["total_records"], Value::Null);
    assert_eq!(shown["commits"][0]["commit_kind"], Value::Null);
    assert_eq!(shown["damaged"].as_array().unwrap().len(), 2);
    assert_eq!(shown["latest"]["position"], json!(5));
}

#[test]
fn a_checkpoint_with_sidecars_tells_the_table_and_not_its_files() {
    let checkpoint = r#"{"metaData":{"id":"t","schemaString":"{}"}}
        {"sidecar":{"path":"a.parquet"}}"#;
    let name = "_delta_log/00000000000000000004.checkpoint.a.json".to_owned();
    let shown = inspection(&[(commit_key(5), ADD), (name.clone(), checkpoint)]);
    assert_eq!(shown["latest"]["table_id"], json!("t"));
    assert_eq!(shown["commits"][0]["total_records"], Value::Null);
    assert_eq!(shown["not_commits"], json!([name]));
}

#[test]
fn coordinated_commits_are_reported_like_catalog_managed_ones() {
    let metadata =
        r#"{"metaData":{"id":"t","configuration":{"delta.coordinatedCommits.commitCoordinator-preview":"c"}}}"#;
    let shown = inspection(&[(commit_key(0), metadata)]);
    assert!(shown["warnings"][0].as_str().unwrap().starts_with("the table is catalog-managed"));
}

#[test]
fn what_is_shown_can_be_read_back() {
    let files = [(commit_key(0), ADD.as_bytes().to_vec())].into_iter().collect();
    let seen = inspect(&files);
    let text = serde_json::to_string(&seen).unwrap();
    assert_eq!(serde_json::from_str::<crate::inspect::Inspection>(&text).unwrap(), seen);
}
