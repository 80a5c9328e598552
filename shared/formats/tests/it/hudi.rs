//! Hudi: real tables, the project's own fixtures, and their histories in every order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lakebell_domain::version::Ordinal;
use lakebell_formats::hudi::{
    CommitId, CommitMetadata, Fate, Instant, Rewrite, TableProperties, Timeline, changes_data, classify, inspect,
    ordinal, to_commit, wants,
};
use serde_json::Value;

use crate::cases::{Files, Reader, check_with, events, folders, json, replay, table_files};
use crate::shared_tables::shared_tables;

const HUDI: Reader = Reader { inspect, wants };

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hudi")
}

fn name(case: &Path) -> &str {
    case.file_name().unwrap().to_str().unwrap()
}

fn timeline(files: &Files) -> Timeline {
    Timeline::from_keys(files.keys().map(String::as_str))
}

fn ids(timeline: &Timeline) -> BTreeSet<CommitId> {
    timeline.completed().iter().map(CommitId::of).collect()
}

fn id(text: &str) -> CommitId {
    text.parse().unwrap()
}

/// The files of a case at each of its steps.
fn steps(case: &str) -> Vec<(Value, Files)> {
    let folder = fixtures().join(case);
    let (events, expected) = (events(&folder), json(&folder.join("expected.json")));
    let steps = expected["steps"].as_array().unwrap().clone();
    steps.into_iter().map(|step| (step.clone(), replay(&events, step["after_seq"].as_u64().unwrap()))).collect()
}

#[test]
fn every_real_table_reads_as_its_library_says() {
    let Some(tables) = shared_tables() else { return };
    let cases = folders(&tables.join("hudi"));
    assert!(!cases.is_empty());
    for case in cases {
        check_with(HUDI, name(&case), &table_files(&case.join("table")), &json(&case.join("expected.json")));
    }
}

#[test]
fn every_table_reads_as_it_was_composed() {
    let cases = folders(&fixtures());
    assert!(cases.len() >= 20, "only {} cases were found", cases.len());
    for case in cases {
        check_with(HUDI, name(&case), &table_files(&case.join("table")), &json(&case.join("expected.json")));
    }
}

#[test]
fn every_step_of_every_history_reads_as_it_was_composed() {
    let mut steps_checked = 0;
    for case in folders(&fixtures()) {
        let (events, expected) = (events(&case), json(&case.join("expected.json")));
        assert_eq!(replay(&events, u64::MAX), table_files(&case.join("table")), "{}", name(&case));
        for step in expected["steps"].as_array().into_iter().flatten() {
            let label = format!("{}, {}", name(&case), step["what"]);
            check_with(HUDI, &label, &replay(&events, step["after_seq"].as_u64().unwrap()), step);
            steps_checked += 1;
        }
    }
    assert!(steps_checked >= 25, "only {steps_checked} steps were found");
}

/// What is new comes in the order of completion or observation; a rewrite is noticed when it is one,
/// and an upgrade, a rollback, an archival or a late commit are none.
#[test]
fn from_step_to_step_what_is_new_is_found_and_only_rewrites_are_taken_for_such() {
    for case in folders(&fixtures()) {
        let mut known = BTreeSet::new();
        let has_steps = json(&case.join("expected.json"))["steps"].is_array();
        let steps = if has_steps { steps(name(&case)) } else { Vec::new() };
        for (step, files) in steps {
            let label = format!("{}, {}", name(&case), step["what"]);
            let now = timeline(&files);
            let unseen: Vec<_> = now.unseen(&known).iter().map(|file| CommitId::of(file).to_string()).collect();
            assert_eq!(serde_json::json!(unseen), step["unseen"], "{label}");
            let rewrite = match now.rewrite(&known) {
                None => Value::Null,
                Some(Rewrite::Restored(_)) => "restored".into(),
                Some(Rewrite::Vanished(_)) => "vanished".into(),
                Some(Rewrite::OtherTable { .. }) => "other table".into(),
            };
            assert_eq!(rewrite, step["rewrite"], "{label}");
            if rewrite.is_null() {
                known.extend(ids(&now));
            } else {
                known = ids(&now);
            }
        }
    }
}

#[test]
fn evidence_names_what_was_withdrawn() {
    let history = steps("restore-layout-2");
    let (before, after) = (timeline(&history[0].1), timeline(&history[1].1));
    let Some(Rewrite::Restored(restores)) = after.rewrite(&ids(&before)) else { panic!("no restore") };
    assert_eq!(restores.len(), 1);
    let gone: Vec<_> = ids(&before).into_iter().filter(|id| after.fate(*id) == Fate::Gone).collect();
    let row = inspect(&history[1].1).commits.pop().unwrap();
    let removed: Vec<_> = gone.iter().map(|id| id.instant.to_string()).collect();
    assert_eq!(row.extra["removed_instants"], serde_json::json!(removed));
    assert_eq!(row.changes_data, Some(true));

    let vanished = steps("removed-by-hand");
    let evidence = timeline(&vanished[1].1).rewrite(&ids(&timeline(&vanished[0].1)));
    assert_eq!(evidence, Some(Rewrite::Vanished(vec![id("20260101000003000.commit")])));

    let recreated = steps("drop-create");
    let evidence = timeline(&recreated[2].1).rewrite(&ids(&timeline(&recreated[0].1)));
    let first = CommitId::of(&timeline(&recreated[2].1).completed()[0]);
    assert_eq!(evidence, Some(Rewrite::OtherTable { first }));
}

#[test]
fn archived_instants_are_not_gone() {
    for layout in ["archived-layout-1", "archived-layout-2"] {
        let steps = steps(layout);
        let (before, after) = (timeline(&steps[0].1), timeline(&steps[1].1));
        let fates: Vec<_> = ids(&before).into_iter().map(|id| after.fate(id)).collect();
        let expected = [[Fate::Archived; 3].as_slice(), [Fate::OnTimeline; 2].as_slice()].concat();
        assert_eq!(fates, expected, "{layout}");
    }
}

/// The history of ids and of the commits' own facts does not depend on the layout that they lie in.
#[test]
fn an_upgrade_keeps_fingerprints_and_lets_ordinals_rise() {
    let steps = steps("upgrade");
    let fingerprints = |files: &Files| {
        let timeline = timeline(files);
        timeline.completed().iter().map(|file| CommitId::of(file).fingerprint()).collect::<BTreeSet<_>>()
    };
    let first = fingerprints(&steps[0].1);
    assert!(steps[1..4].iter().all(|(_, files)| fingerprints(files) == first));
    assert!(timeline(&steps[0].1).completed().iter().all(|file| ordinal(file).is_none()));
    let after = timeline(&steps[4].1);
    let ordinals: Vec<_> = after.completed().iter().map(|file| ordinal(file).unwrap()).collect();
    assert!(ordinals.is_sorted() && ordinals[0] > Ordinal(20_000_000_000_000_000));
    let properties = |files: &Files| TableProperties::parse(&files[".hoodie/hoodie.properties"]).unwrap();
    assert!(properties(&steps[4].1).may_be(&properties(&steps[0].1).table_id()));
}

/// Files of a timeline seen one by one in any order, with repetitions, and a scan at the end: the same
/// commits, and in layout 2 the same order.
#[test]
fn every_order_of_arrival_ends_with_the_same_commits() {
    let shared = shared_tables().map(|tables| folders(&tables.join("hudi"))).unwrap_or_default();
    for case in folders(&fixtures()).into_iter().chain(shared) {
        let files = table_files(&case.join("table"));
        let whole = timeline(&files);
        let keys: Vec<_> = files.keys().map(String::as_str).collect();
        for round in 1..8 {
            let (mut known, mut there) = (BTreeSet::new(), Vec::new());
            let stride = (round * 2 + 1) % keys.len().max(2);
            for place in 0..keys.len() * 2 {
                there.push(keys[(place * stride.max(1)) % keys.len()]);
                let seen = Timeline::from_keys(there.iter().copied());
                let unseen = seen.unseen(&known);
                assert!(unseen.len() <= 1, "{}: one file is one commit at most", name(&case));
                known.extend(unseen.iter().map(CommitId::of));
            }
            known.extend(whole.unseen(&known).iter().map(CommitId::of));
            assert_eq!(known, ids(&whole), "{}", name(&case));
            let shuffled = Timeline::from_keys(there.into_iter().rev().chain(keys.iter().copied()));
            assert_eq!(shuffled.completed(), whole.completed(), "{}", name(&case));
            assert_eq!(shuffled.pending(), whole.pending(), "{}", name(&case));
        }
    }
}

#[test]
fn of_all_objects_that_were_ever_written_only_the_outer_table_s_are_recognised() {
    let mut inner = 0;
    for case in folders(&fixtures()) {
        for event in events(&case) {
            let key = format!("lake/shop/orders/{}", event.rel);
            let object = classify(&key);
            if event.rel.starts_with(".hoodie/metadata/") {
                assert_eq!(object, None, "{key}");
                assert!(!wants(&event.rel));
                inner += 1;
            } else if let Some(object) = object {
                assert_eq!(object.root, "lake/shop/orders", "{key}");
                assert!(!event.rel.contains(".crc") && !event.rel.contains("/.temp/"), "{key}");
            }
        }
    }
    assert!(inner >= 10, "only {inner} files of inner tables were found");
}

#[test]
fn partitions_touched_are_those_written_and_those_replaced() {
    let files = table_files(&fixtures().join("replaces-layout-2/table"));
    let touched: Vec<Vec<String>> = timeline(&files)
        .completed()
        .iter()
        .map(|file| {
            let metadata = CommitMetadata::parse(&files[&file.relative_key()]).unwrap();
            assert_eq!(changes_data(file.action, &metadata), metadata.operation_type.as_deref() != Some("CLUSTER"));
            metadata.partitions_touched().into_iter().map(str::to_owned).collect()
        })
        .collect();
    assert_eq!(touched, [vec!["eu", "us"], vec!["eu"], vec!["us"], vec!["eu"], vec!["eu", "us"]]);
}

#[test]
fn commits_say_how_they_are_ordered() {
    let files = table_files(&fixtures().join("cow-layout-1/table"));
    let file = timeline(&files).completed()[0];
    let metadata = CommitMetadata::parse(&files[&file.relative_key()]).unwrap();
    let commit = to_commit(&file, &metadata, Ordinal(1));
    assert_eq!(commit.extra["order"], "observation");
    assert_eq!((commit.snapshot_id.as_str(), commit.fingerprint.as_str()), ("20260101000001", "20260101000001.commit"));
    assert_eq!((commit.delta_records, commit.changes_data), (Some(6), Some(true)));
    let instant: Instant = "20260101000001".parse().unwrap();
    assert_eq!(commit.committed_at, instant.millis_as_utc());
}
