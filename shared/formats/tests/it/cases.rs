//! Cases on disk: a table's files, what a reader must find in them, and how they came about.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lakebell_formats::inspect::Inspection;
use lakebell_formats::paimon;
use serde_json::Value;

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The folders below a folder, sorted by name.
pub(crate) fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).unwrap_or_else(|error| panic!("{}: {error}", parent.display()));
    let mut folders: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

pub(crate) fn json(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a table's root by relative key.
pub(crate) fn table_files(root: &Path) -> Files {
    let mut files = Files::new();
    collect(root, "", &mut files);
    files
}

fn collect(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let key = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &format!("{key}/"), files);
        } else {
            files.insert(key, fs::read(&path).unwrap());
        }
    }
}

/// One line of `events.jsonl`: what was written (or removed, without a body) under which key.
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) rel: String,
    pub(crate) body: Option<Vec<u8>>,
}

pub(crate) fn events(case: &Path) -> Vec<Event> {
    let text = fs::read_to_string(case.join("events.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            Event {
                seq: event["seq"].as_u64().unwrap(),
                rel: event["rel"].as_str().unwrap().to_owned(),
                body: event["body"].as_str().map(|body| fs::read(case.join(body)).unwrap()),
            }
        })
        .collect()
}

/// The files that are there when the events up to `last_seq` have happened.
pub(crate) fn replay(events: &[Event], last_seq: u64) -> Files {
    let mut files = Files::new();
    for event in events.iter().filter(|event| event.seq <= last_seq) {
        match &event.body {
            Some(body) => files.insert(event.rel.clone(), body.clone()),
            None => files.remove(&event.rel),
        };
    }
    files
}

/// How a format inspects a table, and which files it wants for that.
#[derive(Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) inspect: fn(&Files) -> Inspection,
    pub(crate) wants: fn(&str) -> bool,
}

/// As [`check_with`], for Paimon.
pub(crate) fn check(case: &str, files: &Files, expected: &Value) {
    check_with(Reader { inspect: paimon::inspect, wants: paimon::wants }, case, files, expected);
}

/// Inspects the files and compares the result with every field of `expected` that an inspection has.
pub(crate) fn check_with(Reader { inspect, wants }: Reader, case: &str, files: &Files, expected: &Value) {
    let only_wanted =
        files.iter().filter(|(key, _)| wants(key)).map(|(key, body)| (key.clone(), body.clone())).collect();
    let inspection = inspect(files);
    assert_eq!(inspection, inspect(&only_wanted), "{case}: files that are not wanted change nothing");
    let seen = serde_json::to_value(inspection).unwrap();

    let rows = |of: &Value| of["commits"].as_array().unwrap().clone();
    assert_eq!(rows(&seen).len(), rows(expected).len(), "{case}: number of commits");
    for (row, expected_row) in rows(&seen).iter().zip(rows(expected)) {
        contains(&format!("{case}: {}", expected_row["file"]), row, &expected_row);
    }
    contains(&format!("{case}: latest"), &seen["latest"], &expected["latest"]);
    for field in ["latest_by_branch", "earliest", "consumers", "pending", "not_commits", "orphans", "warnings"] {
        if let Some(value) = expected.get(field) {
            assert_eq!(&seen[field], value, "{case}: {field}");
        }
    }
    assert_eq!(
        seen.get("tags_without_snapshot"),
        expected.get("tags_without_snapshot"),
        "{case}: tags without snapshot"
    );
    check_damaged(case, &seen, expected);
}

fn check_damaged(case: &str, seen: &Value, expected: &Value) {
    let list = |of: &Value| of.get("damaged").and_then(Value::as_array).cloned().unwrap_or_default();
    let (seen, expected) = (list(seen), list(expected));
    let names = |of: &[Value]| of.iter().map(|entry| entry["file"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&seen), names(&expected), "{case}: damaged files");
    for (entry, expected_entry) in seen.iter().zip(&expected) {
        let (problem, words) = (entry["problem"].as_str().unwrap(), expected_entry["problem"].as_str().unwrap());
        assert!(problem.contains(words), "{case}: {entry} does not speak of `{words}`");
    }
}

/// Every field of the expected object is there with the same value; there may be more.
fn contains(what: &str, seen: &Value, expected: &Value) {
    for (field, value) in expected.as_object().unwrap() {
        match field.as_str() {
            "extra" => contains(&format!("{what} extra"), &seen["extra"], value),
            _ => assert_eq!(seen.get(field), Some(value), "{what}: {field}"),
        }
    }
}
