//! `table inspect` on real tables, and what it says of paths that are none.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{lakebell_in, root, scratch};

fn inspect(path: &Path) -> crate::support::Run {
    inspect_as("paimon", path)
}

fn inspect_as(format: &str, path: &Path) -> crate::support::Run {
    lakebell_in(root(), &["table", "inspect", "--format", format, "--json", path.to_str().unwrap()], &[])
}

const FORMATS: [&str; 4] = ["paimon", "iceberg", "hudi", "delta"];

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Compares the output for every case in a folder with its `expected.json`.
fn check_cases(cases: &Path, format: &str) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(cases.join(format)).unwrap() {
        let case = entry.unwrap().path();
        if !case.join("expected.json").is_file() {
            continue;
        }
        let name = case.file_name().unwrap().to_str().unwrap();
        let seen = inspect_as(format, &case.join("table")).succeeded().json();
        check(name, &seen, &json(&case.join("expected.json")));
        let told = inspect_as("auto", &case.join("table")).succeeded().json();
        assert_eq!(told, seen, "{name}: the format is told by the folders");
        count += 1;
    }
    count
}

/// Every field of the expected document that is part of an inspection has the same value.
fn check(case: &str, seen: &Value, expected: &Value) {
    let (rows, expected_rows) = (seen["commits"].as_array().unwrap(), expected["commits"].as_array().unwrap());
    assert_eq!(rows.len(), expected_rows.len(), "{case}: number of commits");
    for (row, expected_row) in rows.iter().zip(expected_rows) {
        contains(&format!("{case}: {}", expected_row["file"]), row, expected_row);
    }
    contains(&format!("{case}: latest"), &seen["latest"], &expected["latest"]);
    for field in ["latest_by_branch", "earliest", "consumers", "tags_without_snapshot"] {
        if let Some(value) = expected.get(field) {
            assert_eq!(&seen[field], value, "{case}: {field}");
        }
    }
    // The command asks no catalog: what one would decide stays undecided.
    if expected.get("current").is_none() {
        let list = |of: &Value, field: &str| of.get(field).cloned().unwrap_or_else(|| Value::Array(Vec::new()));
        for field in ["pending", "orphans", "not_commits", "warnings"] {
            if expected.get(field).is_some() {
                assert_eq!(list(seen, field), list(expected, field), "{case}: {field}");
            }
        }
    }
    let damaged = |of: &Value| -> Vec<Value> {
        of["damaged"].as_array().into_iter().flatten().map(|entry| entry["file"].clone()).collect()
    };
    assert_eq!(damaged(seen), damaged(expected), "{case}: damaged");
}

fn contains(what: &str, seen: &Value, expected: &Value) {
    for (field, value) in expected.as_object().unwrap() {
        match field.as_str() {
            "extra" => contains(&format!("{what} extra"), &seen["extra"], value),
            _ => assert_eq!(seen.get(field), Some(value), "{what}: {field}"),
        }
    }
}

/// The folder with tables beside the checkout, or of the folder that `LAKEBELL_SHARED` names.
fn shared_tables() -> Option<PathBuf> {
    let named = env::var_os("LAKEBELL_SHARED").map(|shared| PathBuf::from(shared).join("tables"));
    let beside = root().ancestors().map(|folder| folder.join("../shared/tables"));
    named.into_iter().chain(beside).find(|folder| folder.join("paimon").is_dir())
}

#[test]
fn own_tables_are_as_expected() {
    for format in FORMATS {
        assert!(check_cases(&root().join("fixtures"), format) >= 15, "{format}");
    }
}

#[test]
fn shared_tables_are_as_expected() {
    let Some(tables) = shared_tables() else {
        // Past the test runner's capture, so that a skipped test shows.
        let _ = writeln!(std::io::stderr(), "skipped: ../shared/tables is not here");
        return;
    };
    for format in FORMATS {
        assert!(check_cases(&tables, format) > 0, "{format}");
    }
}

#[test]
fn a_damaged_file_is_shown_and_no_failure() {
    let table = root().join("fixtures/paimon/damaged/table");
    let run = lakebell_in(root(), &["table", "inspect", table.to_str().unwrap()], &[]).succeeded();
    assert!(run.out.contains("Damaged:"), "{}", run.out);
    assert!(!run.out.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn what_is_no_table_is_said_to_be_none() {
    let folder = scratch("no-table");
    fs::create_dir(folder.join("snapshot")).unwrap();
    let run = inspect(&folder);
    assert_eq!((run.status, run.out.as_str()), (1, ""));
    assert!(run.err.contains("is no Paimon table"), "{}", run.err);
    let run = inspect_as("auto", &folder);
    assert!(run.err.contains("no metadata of Paimon, Iceberg, Hudi or Delta"), "{}", run.err);
    let run = lakebell_in(&folder, &["table", "inspect", "absent"], &[]);
    assert_eq!(run.status, 1);
    assert!(run.err.starts_with("error: absent cannot be read"), "{}", run.err);
    let run = lakebell_in(&folder, &["table", "inspect", "gs://lake/orders"], &[]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("is no S3 URL"), "{}", run.err);
}

#[test]
fn a_file_that_is_not_metadata_is_never_opened() {
    let folder = scratch("only-metadata");
    for sub in ["snapshot", "schema", "bucket-0"] {
        fs::create_dir(folder.join(sub)).unwrap();
    }
    let table = root().join("fixtures/paimon/watermarks/table");
    for sub in ["snapshot", "schema"] {
        for entry in fs::read_dir(table.join(sub)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, folder.join(sub).join(path.file_name().unwrap())).unwrap();
        }
    }
    // Where a snapshot should be is a folder: passed over as no commit.
    fs::create_dir(folder.join("snapshot/snapshot-999")).unwrap();
    fs::write(folder.join("snapshot/LATEST"), "not a number").unwrap();
    let seen = inspect(&folder).succeeded().json();
    assert_eq!(seen["latest"], json(&root().join("fixtures/paimon/watermarks/expected.json"))["latest"]);
    assert!(seen.get("damaged").is_none(), "{seen}");
}
