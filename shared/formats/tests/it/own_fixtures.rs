//! The project's own fixtures, at the end of their history and at every step of it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lakebell_formats::paimon::{ChangelogProducer, Schema, Snapshot, classify};

use crate::cases::{Files, check, events, folders, json, replay, table_files};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/paimon")
}

fn snapshot(files: &Files, id: u64) -> Snapshot {
    Snapshot::parse_named(&files[&format!("snapshot/snapshot-{id}")], id).unwrap()
}

/// The files of a case when one of its steps was reached.
fn files_at(case: &str, step: usize) -> Files {
    let folder = fixtures().join(case);
    let after = json(&folder.join("expected.json"))["steps"][step]["after_seq"].as_u64().unwrap();
    replay(&events(&folder), after)
}

#[test]
fn every_table_reads_as_its_writer_says() {
    let cases = folders(&fixtures());
    assert!(cases.len() >= 15, "only {} cases were found", cases.len());
    for case in cases {
        let name = case.file_name().unwrap().to_str().unwrap();
        check(name, &table_files(&case.join("table")), &json(&case.join("expected.json")));
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
            check(&label, &replay(&events, step["after_seq"].as_u64().unwrap()), step);
            steps_checked += 1;
        }
    }
    assert!(steps_checked >= 8, "only {steps_checked} steps were found");
}

#[test]
fn used_again_an_id_has_another_fingerprint() {
    for (case, step, ids) in [("rollback", 0, 3..=4), ("branch-fast-forward", 0, 3..=4), ("drop-create", 0, 1..=2)] {
        let (before, after) = (files_at(case, step), table_files(&fixtures().join(case).join("table")));
        for id in ids {
            assert_ne!(snapshot(&before, id).fingerprint(), snapshot(&after, id).fingerprint(), "{case}: {id}");
        }
    }
    let (before, after) = (files_at("rollback", 0), files_at("rollback", 2));
    for id in 1..=2 {
        assert_eq!(snapshot(&before, id).fingerprint(), snapshot(&after, id).fingerprint());
    }
}

#[test]
fn a_history_rewritten_below_the_known_snapshot_breaks_the_link() {
    let (before, after) = (files_at("rollback", 0), table_files(&fixtures().join("rollback/table")));
    let known = snapshot(&before, 4);
    assert_eq!(snapshot(&after, 5).link_holds(known.total_record_count), Some(false));
    assert_eq!(snapshot(&after, 5).link_holds(snapshot(&after, 4).total_record_count), Some(true));
}

#[test]
fn within_one_history_every_link_holds() {
    let mut links = 0;
    for case in folders(&fixtures()) {
        let files = table_files(&case.join("table"));
        let snapshots: Vec<_> = (1..=20)
            .filter_map(|id| files.get(&format!("snapshot/snapshot-{id}")))
            .filter_map(|bytes| Snapshot::parse(bytes).ok())
            .collect();
        for pair in snapshots.windows(2).filter(|pair| pair[0].id + 1 == pair[1].id) {
            if let Some(holds) = pair[1].link_holds(pair[0].total_record_count) {
                assert!(holds, "{}: {}", case.display(), pair[1].id);
                links += 1;
            }
        }
    }
    assert!(links > 20);
}

#[test]
fn producers_are_read_as_written() {
    let producer = |case: &str| {
        let files = table_files(&fixtures().join(case).join("table"));
        Schema::parse_named(&files["schema/schema-0"], 0).unwrap().changelog_producer
    };
    assert_eq!(producer("changelog-input"), Some(ChangelogProducer::Input));
    assert_eq!(producer("lookup-compaction"), Some(ChangelogProducer::Lookup));
    assert_eq!(producer("rollback"), Some(ChangelogProducer::None));
}

#[test]
fn of_all_objects_that_were_ever_written_only_the_real_ones_are_recognised() {
    for case in folders(&fixtures()) {
        let recognised: HashSet<_> = events(&case)
            .iter()
            .filter_map(|event| classify(&format!("lake/shop.db/orders/{}", event.rel)))
            .map(|object| object.relative_key())
            .collect();
        assert!(recognised.iter().all(|key| !key.contains(".tmp") && !key.contains("/.")), "{recognised:?}");
        assert!(recognised.contains("schema/schema-0"));
    }
}
