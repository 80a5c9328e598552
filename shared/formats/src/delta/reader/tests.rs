use serde_json::json;

use super::*;

const FILE: &str = concat!(
    r#"{"commitInfo":{"timestamp":5,"operation":"WRITE","operationMetrics":{"a":[1,"}"]}}}"#,
    "\n",
    r#"{"add":{"path":"ä\n{.parquet","dataChange":true,"stats":"{\"numRecords\":3}"}}"#,
    "\n",
    r#"{"txn":{"appId":"job","version":7,"lastUpdated":1}}"#,
    "\n",
);

fn refusal(text: &[u8]) -> (FormatErrorKind, String) {
    let error = DeltaCommit::parse(text, 0).unwrap_err();
    (error.kind, error.to_string())
}

#[test]
fn pieces_of_any_size_read_as_the_whole() {
    let whole = DeltaCommit::parse(FILE.as_bytes(), 3).unwrap();
    assert_eq!((whole.version, whole.delta_records(), whole.txns["job"]), (3, Some(3), 7));
    for size in 1..FILE.len() {
        let mut reader = CommitReader::new(3);
        for piece in FILE.as_bytes().chunks(size) {
            reader.push(piece).unwrap();
        }
        assert_eq!(reader.finish().unwrap(), whole, "pieces of {size}");
    }
}

#[test]
fn line_ends_do_not_matter() {
    let whole = DeltaCommit::parse(FILE.as_bytes(), 3).unwrap();
    for text in
        [FILE.trim_end().to_owned(), FILE.replace('\n', "\r\n"), FILE.replace('\n', "\n\n \n"), format!("\n{FILE}")]
    {
        assert_eq!(DeltaCommit::parse(text.as_bytes(), 3).unwrap(), whole);
    }
}

#[test]
fn damage_is_named_with_its_line() {
    use FormatErrorKind::{MissingField, NotJson, Truncated, WrongValue};
    for empty in ["", "\n", "\r\n \n"] {
        assert_eq!(refusal(empty.as_bytes()), (Truncated, "the file is empty".to_owned()));
    }
    let cut = format!("{FILE}{{\"add\":{{\"path\":\"x");
    assert_eq!(refusal(cut.as_bytes()), (Truncated, "the file is truncated: it ends inside line 4".to_owned()));
    let words = |text: &str| refusal(text.as_bytes());
    assert!(matches!(words("<xml>"), (NotJson, words) if words.starts_with("line 1 is not JSON")));
    assert!(matches!(words("{}\n[1]"), (WrongValue, words) if words.starts_with("line 2 is no action")));
    assert!(matches!(words("7"), (WrongValue, _)));
    assert!(matches!(words(r#"{"add":5}"#), (WrongValue, _)));
    assert!(matches!(words(r#"{"add":{}} x"#), (NotJson, _)));
    assert!(matches!(words(r#"{"txn":{"appId":"a"}}"#), (WrongValue, words) if words.starts_with("line 1: `txn`")));
    assert!(matches!(words(r#"{"metaData":{}}"#), (MissingField, _)));
    assert!(matches!(refusal(b"{\"add\":{\"path\":\"\xff\"}}"), (NotJson, _)));
}

#[test]
fn lines_are_bounded_and_the_file_is_not() {
    let long = vec![b'x'; MAX_LINE_BYTES + 1];
    let (kind, problem) = refusal(&long);
    assert_eq!(
        (kind, problem.as_str()),
        (FormatErrorKind::TooLarge, "line 1 is longer than the 16777216 bytes that are read")
    );
    let mut reader = CommitReader::new(0);
    let piece = vec![b'x'; 1 << 20];
    let refused = (0..40).map(|_| reader.push(&piece)).find_map(Result::err).unwrap();
    assert_eq!(refused.kind, FormatErrorKind::TooLarge);

    let mut reader = CommitReader::new(0);
    let line =
        json!({"add": {"path": "p", "dataChange": false, "tags": {"t": "x".repeat(1 << 20)}}}).to_string() + "\n";
    for _ in 0..64 {
        for piece in line.as_bytes().chunks(300_000) {
            reader.push(piece).unwrap();
        }
        assert!(reader.0.cut_line.capacity() <= 4 << 20, "one line is held at most");
    }
    assert_eq!(reader.finish().unwrap().files.added.files, 64);
}

#[test]
fn what_is_kept_is_bounded() {
    let lines = (0..1000).flat_map(|n| {
        let app = format!("{n}{}", "x".repeat(1000));
        [json!({"txn": {"appId": app, "version": n}}).to_string(), json!({format!("new-{n}"): {}}).to_string()]
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let commit = DeltaCommit::parse(text.as_bytes(), 0).unwrap();
    assert_eq!((commit.txns.len(), commit.actions.len()), (MAX_TXNS, MAX_UNKNOWN_ACTIONS + 1));
    assert_eq!(commit.actions["txn"], 1000);
    assert!(commit.txns.keys().all(|app| app.chars().count() <= MAX_TEXT_CHARS + 1));
}

#[test]
fn unknown_actions_and_nulls_are_passed_over() {
    let text = r#"{"wave":{"add":{"dataChange":true}}}
        {"add":null,"remove":{"path":"a","dataChange":false}}
        {"cdc":{"path":"c","dataChange":true}}
        {"domainMetadata":{"domain":"d"}}
        {}"#;
    let commit = DeltaCommit::parse(text.as_bytes(), 0).unwrap();
    assert_eq!(commit.changes_data(), Some(false));
    assert_eq!(json!(commit.actions), json!({"wave": 1, "remove": 1, "cdc": 1, "domainMetadata": 1}));
}
