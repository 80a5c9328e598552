use serde_json::json;

use super::*;

fn snapshot(id: u64, uuid: &str, more: &Value) -> Vec<u8> {
    let mut file = json!({"version": 3, "id": id, "schemaId": 0, "commitKind": "APPEND", "uuid": uuid});
    for (field, value) in more.as_object().into_iter().flatten() {
        file[field.as_str()] = value.clone();
    }
    file.to_string().into_bytes()
}

fn inspection(files: &[(&str, Vec<u8>)]) -> Value {
    let files = files.iter().map(|(key, bytes)| ((*key).to_owned(), bytes.clone())).collect();
    serde_json::to_value(inspect(&files)).unwrap()
}

#[test]
fn an_empty_folder_is_no_table() {
    assert!(inspect(&BTreeMap::new()).is_empty());
    let shown = inspection(&[]);
    let expected = json!({
        "format": "paimon", "commits": [],
        "latest": {"branch": "main", "position": null, "snapshot_id": null, "file": null, "schema_id_of_table": null},
        "latest_by_branch": {"main": null}, "earliest": {"position": null}, "consumers": {},
    });
    assert_eq!(shown, expected);
}

#[test]
fn only_metadata_of_commits_at_the_root_is_wanted() {
    let wanted = [
        "snapshot/snapshot-1",
        "schema/schema-0",
        "tag/tag-a",
        "consumer/consumer-a",
        "branch/branch-b/snapshot/snapshot-1",
        "branch/branch-b/schema/schema-0",
        "branch/branch-b/tag/tag-a",
    ];
    let not_wanted = [
        "",
        "snapshot/",
        "snapshot/LATEST",
        "snapshot/EARLIEST",
        "snapshot/.snapshot-1.x.tmp",
        "changelog/changelog-1",
        "branch/branch-b/consumer/consumer-a",
        "branch/branch-main/snapshot/snapshot-1",
        "branch/branch-b/branch/branch-c/snapshot/snapshot-1",
        "dt=1/snapshot/snapshot-1",
        "/snapshot/snapshot-1",
        "manifest/manifest-1",
        "dt=snapshot-7/bucket-0/data-1.orc",
    ];
    assert!(wanted.iter().all(|key| wants(key)));
    for key in not_wanted {
        assert!(!wants(key), "{key}");
    }
}

#[test]
fn ids_order_as_numbers_and_hints_are_not_believed() {
    let mut files: Vec<_> =
        (8..=11).map(|id| (format!("snapshot/snapshot-{id}"), snapshot(id, "u", &json!({})))).collect();
    files.push(("snapshot/LATEST".into(), b"9".to_vec()));
    files.push(("snapshot/EARLIEST".into(), b"10".to_vec()));
    let files: BTreeMap<_, _> = files.into_iter().collect();
    let seen = inspect(&files);
    let positions: Vec<_> = seen.commits.iter().map(|row| row.position.clone()).collect();
    assert_eq!(positions, [8, 9, 10, 11].map(Token::Number));
    assert_eq!(seen.latest.position, Some(Token::Number(11)));
    assert_eq!(seen.earliest.position, Some(Token::Number(8)));
}

#[test]
fn the_schema_of_each_commit_says_what_changed_data() {
    let input = json!({"id": 1, "options": {"changelog-producer": "input"}}).to_string().into_bytes();
    let odd = json!({"id": 2, "options": {"changelog-producer": "oracle"}}).to_string().into_bytes();
    let shown = inspection(&[
        ("schema/schema-0", br#"{"id":0}"#.to_vec()),
        ("schema/schema-1", input.clone()),
        ("schema/schema-2", odd),
        ("schema/schema-3", b"{".to_vec()),
        ("snapshot/snapshot-1", snapshot(1, "a", &json!({}))),
        ("snapshot/snapshot-2", snapshot(2, "b", &json!({"schemaId": 1}))),
        ("snapshot/snapshot-3", snapshot(3, "c", &json!({"schemaId": 1, "changelogManifestList": "x"}))),
        ("snapshot/snapshot-4", snapshot(4, "d", &json!({"schemaId": 2}))),
        ("snapshot/snapshot-5", snapshot(5, "e", &json!({"schemaId": 3}))),
        ("snapshot/snapshot-6", snapshot(6, "f", &json!({"schemaId": 99}))),
        ("snapshot/snapshot-7", snapshot(7, "g", &json!({"schemaId": -1}))),
        ("branch/branch-b/schema/schema-0", input),
        ("branch/branch-b/snapshot/snapshot-1", snapshot(1, "h", &json!({"schemaId": 1}))),
    ]);
    let changes: Vec<_> = shown["commits"].as_array().unwrap().iter().map(|row| row["changes_data"].clone()).collect();
    assert_eq!(json!(changes), json!([true, false, true, true, true, true, true, true]));
    let damaged: Vec<_> = shown["damaged"].as_array().unwrap().iter().map(|entry| entry["file"].clone()).collect();
    assert_eq!(
        json!(damaged),
        json!(["branch/branch-b/schema/schema-0", "schema/schema-3"]),
        "named and said ids differ"
    );
    assert_eq!(shown["latest"]["schema_id_of_table"], json!(2));
}

#[test]
fn damaged_files_are_reported_and_the_rest_is_read() {
    let whole = snapshot(3, "c", &json!({}));
    let shown = inspection(&[
        ("schema/schema-0", br#"{"id":0}"#.to_vec()),
        ("snapshot/snapshot-1", snapshot(1, "a", &json!({}))),
        ("snapshot/snapshot-2", b"\x00\x01".to_vec()),
        ("snapshot/snapshot-3", whole[..whole.len() / 2].to_vec()),
        ("snapshot/snapshot-4", snapshot(5, "e", &json!({}))),
        ("tag/tag-bad", b"[]".to_vec()),
        ("consumer/consumer-bad", b"".to_vec()),
        ("consumer/consumer-good", br#"{"nextSnapshot":2}"#.to_vec()),
        ("data/data-1.orc", b"ORC".to_vec()),
    ]);
    assert_eq!(shown["commits"].as_array().unwrap().len(), 1);
    assert_eq!(shown["latest"]["position"], json!(1));
    assert_eq!(shown["consumers"], json!({"good": 2}));
    let problems: BTreeMap<_, _> = shown["damaged"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["file"].as_str().unwrap(), entry["problem"].as_str().unwrap()))
        .collect();
    assert_eq!(problems.len(), 5);
    assert!(problems["snapshot/snapshot-2"].starts_with("the file is not JSON"));
    assert!(problems["snapshot/snapshot-3"].starts_with("the file is truncated"));
    assert_eq!(problems["snapshot/snapshot-4"], "the file is named snapshot-4 and says that it is snapshot 5");
    assert_eq!(problems["tag/tag-bad"], "the file holds an array, not a JSON object");
    assert_eq!(problems["consumer/consumer-bad"], "the file is empty");
}

#[test]
fn tags_are_matched_by_identity_within_their_branch() {
    let shown = inspection(&[
        ("snapshot/snapshot-1", snapshot(1, "a", &json!({}))),
        ("snapshot/snapshot-2", snapshot(2, "new", &json!({}))),
        ("tag/tag-z", snapshot(1, "a", &json!({"tagTimeRetained": 1.5}))),
        ("tag/tag-b", snapshot(1, "a", &json!({}))),
        ("tag/tag-before-rollback", snapshot(2, "old", &json!({}))),
        ("branch/branch-x/snapshot/snapshot-1", snapshot(1, "a", &json!({}))),
        ("branch/branch-x/tag/tag-only-here", snapshot(1, "a", &json!({}))),
        ("branch/branch-empty/schema/schema-0", br#"{"id":0}"#.to_vec()),
    ]);
    let tags: Vec<_> = shown["commits"].as_array().unwrap().iter().map(|row| row["tags"].clone()).collect();
    assert_eq!(json!(tags), json!([["b", "z"], [], ["only-here"]]));
    let gone = json!([{"tag": "before-rollback", "file": "tag/tag-before-rollback", "snapshot_id": 2}]);
    assert_eq!(shown["tags_without_snapshot"], gone);
    assert_eq!(shown["latest_by_branch"], json!({"main": 2, "x": 1, "empty": null}));
}

#[test]
fn what_is_shown_can_be_read_back() {
    let files = [("snapshot/snapshot-1".to_owned(), snapshot(1, "a", &json!({})))].into_iter().collect();
    let seen = inspect(&files);
    let text = serde_json::to_string(&seen).unwrap();
    assert_eq!(serde_json::from_str::<crate::inspect::Inspection>(&text).unwrap(), seen);
}
