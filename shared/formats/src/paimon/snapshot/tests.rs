use super::*;
use ChangelogProducer as Producer;

/// A complete snapshot with some fields replaced; a null takes the field out.
fn snapshot_json(changes: &Value) -> Value {
    let mut snapshot = json!({
        "version": 3, "id": 7, "schemaId": 1, "baseManifestList": "b", "deltaManifestList": "d",
        "commitUser": "job-1", "commitIdentifier": 42, "commitKind": "APPEND", "timeMillis": 1_700_000_000_000_i64,
        "totalRecordCount": 10, "deltaRecordCount": 3,
    });
    for (field, value) in changes.as_object().into_iter().flatten() {
        snapshot[field.as_str()] = value.clone();
    }
    snapshot
}

fn snapshot(changes: &Value) -> Snapshot {
    Snapshot::parse(snapshot_json(changes).to_string().as_bytes()).unwrap()
}

fn refusal(bytes: &[u8]) -> (FormatErrorKind, String) {
    let error = Snapshot::parse(bytes).unwrap_err();
    (error.kind, error.to_string())
}

fn refusal_of(changes: &Value) -> (FormatErrorKind, String) {
    refusal(snapshot_json(changes).to_string().as_bytes())
}

#[test]
fn the_newest_form_is_read_in_full() {
    let snapshot = snapshot(&json!({
        "uuid": "5dc44946-0d06-4ff8-9f95-a00a4b53e26e", "watermark": 1_699_999_999_000_i64, "changelogManifestList": "c",
        "changelogRecordCount": 5, "nextRowId": 10, "writerVersion": "2.1.0", "operation": "MERGE",
        "properties": {"a": "b"}, "someday": {"deep": [1, {"er": null}]},
    }));
    let commit = snapshot.to_commit(Some(Producer::None));
    assert_eq!(commit.ordinal, Ordinal(7));
    assert_eq!(commit.fingerprint, Fingerprint::from("5dc44946-0d06-4ff8-9f95-a00a4b53e26e"));
    assert_eq!((commit.snapshot_id.as_str(), commit.parent_id.as_deref()), ("7", Some("6")));
    assert_eq!(commit.kind, CommitKind("APPEND".into()));
    assert_eq!(commit.changes_data, Some(true));
    assert_eq!(commit.watermark, Some(Millis(1_699_999_999_000)));
    assert_eq!(commit.committed_at, Some(Millis(1_700_000_000_000)));
    assert_eq!((commit.schema_id, commit.total_records, commit.delta_records), (Some(1), Some(10), Some(3)));
    assert!(commit.tags.is_empty());
    let expected = json!({
        "uuid": "5dc44946-0d06-4ff8-9f95-a00a4b53e26e", "commit_user": "job-1", "commit_identifier": 42,
        "changelog_records": 5, "next_row_id": 10, "writer_version": "2.1.0", "operation": "MERGE", "has_changelog": true,
    });
    assert_eq!(json!(commit.extra), expected);
}

#[test]
fn old_forms_lack_fields_and_have_texts_for_numbers() {
    let oldest = json!({"id": 1, "schemaId": 0, "commitUser": "u", "commitKind": "APPEND", "commitIdentifier": "1",
        "timeMillis": 1_660_000_000_000_i64, "logOffsets": {"0": 5}});
    let oldest = Snapshot::parse(oldest.to_string().as_bytes()).unwrap();
    assert_eq!((oldest.version, oldest.uuid.as_ref(), oldest.parent_id()), (None, None, None));
    assert_eq!(oldest.commit_identifier, Some(CommitIdentifier::Text("1".into())));
    assert_eq!((oldest.total_record_count, oldest.delta_record_count), (None, None));
    assert_eq!(json!(oldest.to_commit(None).extra), json!({"commit_user": "u", "commit_identifier": "1"}));

    for version in [json!(null), json!(1), json!(2), json!(3), json!(4)] {
        assert_eq!(snapshot(&json!({ "version": version })).version, version.as_i64());
    }
    let nulls =
        snapshot(&json!({"uuid": null, "watermark": null, "totalRecordCount": null, "changelogManifestList": null}));
    assert_eq!((nulls.uuid.as_ref(), nulls.watermark(), nulls.total_record_count), (None, None, None));
    assert!(!nulls.has_changelog());
    let minimal = Snapshot::parse(br#"{"id":"9","commitKind":"COMPACT"}"#).unwrap();
    assert_eq!((minimal.id, minimal.schema_id, minimal.time_millis), (9, None, None));
    assert_eq!(snapshot(&json!({"version": 4})).to_commit(None).extra["format_version"], json!(4));
}

#[test]
fn both_forms_of_no_watermark_are_none() {
    assert_eq!(snapshot(&json!({})).watermark(), None);
    let sentinel = snapshot(&json!({ "watermark": i64::MIN }));
    assert_eq!((sentinel.watermark(), sentinel.watermark_raw), (None, Some(i64::MIN)));
    assert_eq!(sentinel.to_commit(None).extra["watermark_raw"], json!(i64::MIN));
    assert_eq!(snapshot(&json!({"watermark": 0})).watermark(), Some(Millis(0)));
    assert_eq!(snapshot(&json!({ "watermark": i64::MIN + 1 })).watermark(), Some(Millis(i64::MIN + 1)));
    assert!(!snapshot(&json!({"watermark": 0})).to_commit(None).extra.contains_key("watermark_raw"));
}

#[test]
fn what_changes_data_follows_the_table_of_the_documentation() {
    let with_changelog = |kind: &str| snapshot(&json!({"commitKind": kind, "changelogManifestList": "c"}));
    let without = |kind: &str| snapshot(&json!({"commitKind": kind, "changelogManifestList": null}));
    for producer in [None, Some(Producer::None)] {
        for make in [&with_changelog as &dyn Fn(&str) -> Snapshot, &without] {
            assert_eq!(make("APPEND").changes_data(producer), Some(true));
            assert_eq!(make("OVERWRITE").changes_data(producer), Some(true));
            assert_eq!(make("COMPACT").changes_data(producer), Some(false));
            assert_eq!(make("ANALYZE").changes_data(producer), Some(false));
            assert_eq!(make("SPLIT").changes_data(producer), None);
            assert_eq!(make("append").changes_data(producer), None);
        }
    }
    for producer in [Producer::Input, Producer::Lookup, Producer::FullCompaction].map(Some) {
        for kind in ["APPEND", "OVERWRITE", "COMPACT", "ANALYZE", "SPLIT"] {
            assert_eq!(with_changelog(kind).changes_data(producer), Some(true), "{kind}");
        }
        assert_eq!(without("APPEND").changes_data(producer), Some(false));
        assert_eq!(without("OVERWRITE").changes_data(producer), Some(true));
        assert_eq!(without("COMPACT").changes_data(producer), Some(false));
        assert_eq!(without("ANALYZE").changes_data(producer), Some(false));
        assert_eq!(without("SPLIT").changes_data(producer), None);
    }
}

#[test]
fn counts_do_not_decide_what_changes_data() {
    let empty = snapshot(&json!({"deltaRecordCount": 0}));
    assert_eq!(empty.changes_data(None), Some(true));
    let compacted = snapshot(&json!({"commitKind": "COMPACT", "deltaRecordCount": -3}));
    assert_eq!(compacted.changes_data(None), Some(false));
    let claims_rows = snapshot(&json!({"changelogRecordCount": 5}));
    assert_eq!(claims_rows.changes_data(Some(Producer::Input)), Some(false), "the manifest list tells, not the count");
}

#[test]
fn the_uuid_is_the_fingerprint_and_else_a_digest_that_never_changes() {
    assert_eq!(snapshot(&json!({"uuid": "u-1"})).fingerprint(), Fingerprint::from("u-1"));
    let golden = snapshot(&json!({})).fingerprint();
    assert_eq!(golden.as_str(), GOLDEN_FINGERPRINT);
    assert_eq!(snapshot(&json!({"uuid": ""})).fingerprint(), golden);
    let same_commit = json!({"id": 8, "totalRecordCount": 1, "schemaId": 5, "watermark": 3, "version": 2});
    assert_eq!(snapshot(&same_commit).fingerprint(), golden, "only what identifies a commit is in it");
    let others = [
        json!({"commitUser": "job-2"}),
        json!({"commitUser": null}),
        json!({"commitIdentifier": 43}),
        json!({"commitIdentifier": null}),
        json!({"commitKind": "COMPACT"}),
        json!({"timeMillis": 1_700_000_000_001_i64}),
        json!({"timeMillis": null}),
        json!({"uuid": "x".repeat(65)}),
        json!({"uuid": "y".repeat(65)}),
    ];
    let mut seen = vec![golden];
    for other in others {
        let fingerprint = snapshot(&other).fingerprint();
        assert_eq!(fingerprint.as_str().len(), 32);
        assert!(!seen.contains(&fingerprint), "{other}");
        seen.push(fingerprint);
    }
}

/// First half of `printf 'paimon-snapshot-v1\n["job-1","42","APPEND",1700000000000]' | sha256sum`.
const GOLDEN_FINGERPRINT: &str = "22062febb6d510d033ed327b7c4d864f";

#[test]
fn a_link_holds_when_the_counts_add_up() {
    let next = snapshot(&json!({"totalRecordCount": 6, "deltaRecordCount": -4}));
    assert_eq!(next.link_holds(Some(10)), Some(true));
    assert_eq!(next.link_holds(Some(11)), Some(false));
    assert_eq!(next.link_holds(None), None);
    assert_eq!(snapshot(&json!({"totalRecordCount": null})).link_holds(Some(7)), None);
    assert_eq!(snapshot(&json!({"deltaRecordCount": null})).link_holds(Some(7)), None);
    let huge = snapshot(&json!({ "totalRecordCount": i64::MIN, "deltaRecordCount": i64::MAX }));
    assert_eq!(huge.link_holds(Some(i64::MAX)), Some(false));
}

#[test]
fn a_file_that_is_no_snapshot_says_what_is_wrong() {
    use FormatErrorKind::{IdMismatch, MissingField, NotJson, TooLarge, Truncated, WrongValue};
    let whole = snapshot_json(&json!({})).to_string();
    assert_eq!(refusal(b""), (Truncated, "the file is empty".into()));
    assert_eq!(refusal(b" \n"), (Truncated, "the file is empty".into()));
    let (kind, problem) = refusal(&whole.as_bytes()[..40]);
    assert_eq!(kind, Truncated);
    assert!(problem.contains("ends after 40 bytes"), "{problem}");
    assert_eq!(refusal(b"[1]"), (NotJson, "the file holds an array, not a JSON object".into()));
    assert_eq!(refusal(b"7").0, NotJson);
    assert_eq!(refusal(b"\xff\xfe{}").0, NotJson);
    assert_eq!(refusal(b"<html>").0, NotJson);
    assert_eq!(refusal((whole.clone() + "}").as_bytes()).0, NotJson);
    assert_eq!(refusal(&vec![b' '; MAX_FILE_BYTES + 1]).0, TooLarge);
    let padded = whole.clone() + &" ".repeat(MAX_FILE_BYTES - whole.len());
    assert!(Snapshot::parse(padded.as_bytes()).is_ok());

    assert_eq!(refusal_of(&json!({"id": null})), (MissingField, "`id` is missing".into()));
    assert_eq!(refusal_of(&json!({"commitKind": null})), (MissingField, "`commitKind` is missing".into()));
    assert_eq!(refusal_of(&json!({"id": 0})), (WrongValue, "`id` is 0; snapshots are numbered from 1".into()));
    assert_eq!(refusal_of(&json!({"id": -7})), (WrongValue, "`id` is -7; it must not be negative".into()));
    assert_eq!(refusal_of(&json!({"id": 7.5})), (WrongValue, "`id` is 7.5; a 64-bit integer is needed".into()));
    assert_eq!(refusal_of(&json!({"id": u64::MAX})).0, WrongValue);
    assert_eq!(refusal_of(&json!({"commitKind": ""})).0, WrongValue);
    let (kind, problem) = refusal_of(&json!({"commitKind": "é".repeat(5_000)}));
    assert_eq!(kind, WrongValue);
    assert!(problem.len() < 300, "a long value is cut: {problem}");
    let wrong_values = [
        json!({"schemaId": "one"}),
        json!({"uuid": 5}),
        json!({"watermark": true}),
        json!({"timeMillis": "soon"}),
        json!({"commitIdentifier": [1]}),
        json!({"commitUser": {}}),
        json!({"totalRecordCount": 1e30}),
        json!({"changelogManifestList": 1}),
        json!({"nextRowId": "x"}),
    ];
    for change in wrong_values {
        let field = change.as_object().and_then(|fields| fields.keys().next()).unwrap();
        let (kind, problem) = refusal_of(&change);
        assert_eq!(kind, WrongValue);
        assert!(problem.starts_with(&format!("`{field}` is ")), "{problem}");
    }

    assert!(Snapshot::parse_named(whole.as_bytes(), 7).is_ok());
    let error = Snapshot::parse_named(whole.as_bytes(), 8).unwrap_err();
    assert_eq!(error.kind, IdMismatch);
    assert_eq!(error.to_string(), "the file is named snapshot-8 and says that it is snapshot 7");
}

#[test]
fn a_field_that_comes_twice_counts_as_last_written() {
    assert_eq!(Snapshot::parse(br#"{"id":1,"commitKind":"APPEND","id":2}"#).unwrap().id, 2);
}

#[test]
fn long_texts_are_cut_for_people_and_kept_for_identity() {
    let user = "ü".repeat(1_000);
    let snapshot = snapshot(&json!({ "commitUser": user }));
    assert_eq!(snapshot.commit_user.as_deref(), Some(user.as_str()));
    let shown = snapshot.to_commit(None).extra["commit_user"].as_str().unwrap().chars().count();
    assert_eq!(shown, MAX_EXTRA_CHARS + 1);
}
