//! Delta: further real tables, and the project's own fixtures.

use std::path::{Path, PathBuf};

use lakebell_formats::delta::{inspect, wants};

use crate::cases::{Reader, check_with, events, folders, json, replay, table_files};
use crate::shared_tables::shared_tables;

const DELTA: Reader = Reader { inspect, wants };

#[test]
fn every_shared_table_reads_as_its_library_says() {
    let Some(tables) = shared_tables() else { return };
    for case in folders(&tables.join("delta")) {
        let name = case.file_name().unwrap().to_str().unwrap();
        check_with(DELTA, name, &table_files(&case.join("table")), &json(&case.join("expected.json")));
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/delta")
}

#[test]
fn every_table_reads_as_its_writer_says() {
    let cases = folders(&fixtures());
    assert!(cases.len() >= 19, "only {} cases were found", cases.len());
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap();
        check_with(DELTA, name, &table_files(&case.join("table")), &json(&case.join("expected.json")));
    }
}

#[test]
fn every_step_of_every_history_reads_as_its_writer_says() {
    let mut steps_checked = 0;
    for case in folders(&fixtures()) {
        let name = case.file_name().unwrap().to_str().unwrap();
        let (events, expected) = (events(&case), json(&case.join("expected.json")));
        assert_eq!(
            replay(&events, u64::MAX),
            table_files(&case.join("table")),
            "{name}: the history ends in the table"
        );
        for step in expected["steps"].as_array().into_iter().flatten() {
            let label = format!("{name}, {}", step["what"]);
            check_with(DELTA, &label, &replay(&events, step["after_seq"].as_u64().unwrap()), step);
            steps_checked += 1;
        }
    }
    assert!(steps_checked >= 4, "only {steps_checked} steps were found");
}
