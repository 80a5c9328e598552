//! Delta: further real tables, and the project's own fixtures.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lakebell_formats::delta::{CommitReader, DeltaCommit, classify, commit_key, inspect, wants};

use crate::cases::{Files, Reader, check_with, events, folders, json, replay, table_files};
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

/// The files of a case when one of its steps was reached.
fn files_at(case: &str, step: usize) -> Files {
    let folder = fixtures().join(case);
    let after = json(&folder.join("expected.json"))["steps"][step]["after_seq"].as_u64().unwrap();
    replay(&events(&folder), after)
}

fn commit(files: &Files, version: u64) -> DeltaCommit {
    DeltaCommit::parse(&files[&commit_key(version)], version).unwrap()
}

#[test]
fn used_again_a_version_has_another_fingerprint() {
    for (case, versions) in [("drop-create", 0..=1), ("lost-race", 2..=2)] {
        let (before, after) = (files_at(case, 0), table_files(&fixtures().join(case).join("table")));
        for version in versions {
            let (one, other) = (commit(&before, version), commit(&after, version));
            assert_ne!(one.fingerprint(), other.fingerprint(), "{case}: {version}");
            assert_eq!(one.fingerprint(), commit(&before, version).fingerprint());
        }
    }
    let (before, after) = (files_at("drop-create", 0), files_at("drop-create", 1));
    assert_ne!(commit(&before, 0).table_id(), commit(&after, 0).table_id());
    let (before, after) = (files_at("log-cleanup", 0), table_files(&fixtures().join("log-cleanup/table")));
    assert_eq!(commit(&before, 6).fingerprint(), commit(&after, 6).fingerprint());
}

#[test]
fn within_one_table_fingerprints_differ_and_pieces_read_as_the_whole() {
    for case in folders(&fixtures()) {
        let files = table_files(&case.join("table"));
        let mut fingerprints = HashSet::new();
        let commits = (0..20).filter_map(|version| Some((version, files.get(&commit_key(version))?)));
        for (version, bytes) in commits {
            let Ok(whole) = DeltaCommit::parse(bytes, version) else { continue };
            assert!(fingerprints.insert(whole.fingerprint()), "{}: {version}", case.display());
            let mut reader = CommitReader::new(version);
            for piece in bytes.chunks(333) {
                reader.push(piece).unwrap();
            }
            assert_eq!(reader.finish().unwrap(), whole);
        }
    }
}

#[test]
fn in_commit_timestamps_link_the_commits_of_a_table() {
    let files = table_files(&fixtures().join("catalog-managed/table"));
    let links: Vec<_> = (1..=2)
        .map(|version| commit(&files, version).link_holds(commit(&files, version - 1).in_commit_timestamp()))
        .collect();
    assert_eq!(links, [Some(true), Some(true)]);
    let files = table_files(&fixtures().join("odd/table"));
    assert_eq!(commit(&files, 2).link_holds(commit(&files, 1).in_commit_timestamp()), Some(false), "an edited clock");
}

#[test]
fn of_all_objects_that_were_ever_written_only_the_real_ones_are_recognised() {
    for case in folders(&fixtures()) {
        let recognised: HashSet<_> = events(&case)
            .iter()
            .filter_map(|event| classify(&format!("lake/orders/{}", event.rel)))
            .filter(|object| object.root == "lake/orders")
            .map(|object| object.relative_key())
            .collect();
        assert!(recognised.iter().all(|key| !key.contains(".tmp") && !key.contains("nested")), "{recognised:?}");
        assert!(recognised.iter().any(|key| wants(key)));
    }
}
