use serde_json::json;

use super::*;

fn tag(changes: &Value) -> Tag {
    let mut file = json!({"id": 2, "commitKind": "APPEND", "uuid": "u-2"});
    for (field, value) in changes.as_object().into_iter().flatten() {
        file[field.as_str()] = value.clone();
    }
    Tag::parse(file.to_string().as_bytes()).unwrap()
}

fn created(array: &Value) -> Option<String> {
    tag(&json!({ "tagCreateTime": array })).create_time.map(|time| time.to_string())
}

#[test]
fn a_tag_is_a_snapshot_with_two_more_fields() {
    let plain = tag(&json!({}));
    assert_eq!((plain.snapshot.id, plain.create_time, plain.time_retained_seconds), (2, None, None));
    let timed = tag(&json!({"tagCreateTime": [2026, 11, 29, 19, 59, 20, 45_868_000], "tagTimeRetained": 86400.0}));
    assert_eq!(timed.time_retained_seconds, Some(86400.0));
    assert_eq!(timed.create_time.unwrap().to_string(), "2026-11-29T19:59:20.045868000");
}

#[test]
fn the_parts_of_a_creation_time_that_are_zero_may_be_left_out() {
    assert_eq!(created(&json!([2026, 1, 2, 3, 4])).as_deref(), Some("2026-01-02T03:04:00.000000000"));
    assert_eq!(created(&json!([2026, 1, 2, 3, 4, 5])).as_deref(), Some("2026-01-02T03:04:05.000000000"));
    let others =
        [json!([2026, 1]), json!([2026, 13, 1, 0, 0]), json!([2026, 1, 0]), json!([2026, 1, 1, -1]), json!("now")];
    for other in
        others.iter().chain([&json!([2026, 1, 1, 0, 0, 0, 0, 0]), &json!([2026, 1, 1, 0, 0, 0, 1_000_000_000_u64])])
    {
        assert_eq!(created(other), None, "{other}");
    }
}

#[test]
fn a_tag_names_one_commit_not_whatever_has_its_id() {
    let tag = tag(&json!({}));
    let snapshot = |uuid: &str, id: u64| {
        Snapshot::parse(json!({"id": id, "commitKind": "APPEND", "uuid": uuid}).to_string().as_bytes()).unwrap()
    };
    assert!(tag.names(&snapshot("u-2", 2)));
    assert!(!tag.names(&snapshot("u-3", 2)));
    assert!(!tag.names(&snapshot("u-2", 3)));
}

#[test]
fn a_damaged_tag_is_refused() {
    assert!(Tag::parse(b"{\"id\": 2").is_err());
    assert_eq!(Tag::parse(br#"{"id":2}"#).unwrap_err().to_string(), "`commitKind` is missing");
}
