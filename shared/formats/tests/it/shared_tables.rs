//! Further real tables, which lie beside the checkout and not in it.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::cases::{check, events, folders, json, replay, table_files};

/// The folder with tables beside the checkout, or of the folder that `LAKEBELL_SHARED` names.
/// Where it is missing, says so past the test runner's capture, so that a skipped test shows.
pub(crate) fn shared_tables() -> Option<PathBuf> {
    let named = env::var_os("LAKEBELL_SHARED").map(|shared| PathBuf::from(shared).join("tables"));
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("../shared/tables"));
    let found = named.into_iter().chain(beside()).find(|folder| folder.join("paimon").is_dir());
    if found.is_none() {
        let _ = writeln!(std::io::stderr(), "skipped: ../shared/tables is not here");
    }
    found
}

#[test]
fn every_table_reads_as_its_library_says() {
    let Some(tables) = shared_tables() else { return };
    for case in folders(&tables.join("paimon")) {
        let name = case.file_name().unwrap().to_str().unwrap();
        check(name, &table_files(&case.join("table")), &json(&case.join("expected.json")));
    }
}

#[test]
fn every_recorded_history_ends_as_its_library_says() {
    let Some(tables) = shared_tables() else { return };
    for case in folders(&tables.join("paimon")).iter().filter(|case| case.join("events.jsonl").exists()) {
        let name = case.file_name().unwrap().to_str().unwrap();
        check(name, &replay(&events(case), u64::MAX), &json(&case.join("expected.json")));
    }
}
