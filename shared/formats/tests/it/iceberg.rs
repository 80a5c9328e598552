//! Iceberg tables: those beside the checkout and the project's own, whole, step by step, and in
//! every order in which their objects may become known.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lakebell_domain::commit::Commit;
use lakebell_domain::version::Ordinal;
use lakebell_formats::iceberg::{
    Anchor, ChainLink, IcebergObjectKind, InspectOptions, Known, MAIN, Metadata, Movement, ReadOptions, classify,
    first_ordinal, inspect, inspect_with, ordinal_after, resolve, wants,
};
use serde_json::{Value, json};

use crate::cases::{Files, events, folders, json, replay, table_files};
use crate::shared_tables::shared_tables;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iceberg")
}

fn name(case: &Path) -> &str {
    case.file_name().unwrap().to_str().unwrap()
}

/// The shared cases, where they are at hand, and the project's own.
fn all_cases() -> Vec<PathBuf> {
    let shared = shared_tables().map(|tables| folders(&tables.join("iceberg"))).unwrap_or_default();
    shared.into_iter().chain(folders(&fixtures())).collect()
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

fn check(case: &str, files: &Files, expected: &Value) {
    let only_wanted =
        files.iter().filter(|(key, _)| wants(key)).map(|(key, body)| (key.clone(), body.clone())).collect();
    let current = expected["current"].as_str();
    let options = InspectOptions { current, ..InspectOptions::default() };
    let inspection = inspect_with(files, options);
    assert_eq!(inspection, inspect_with(&only_wanted, options), "{case}: files that are not wanted change nothing");
    let seen = serde_json::to_value(inspection).unwrap();
    let rows = |of: &Value| of["commits"].as_array().unwrap().clone();
    let names = |of: &Value| rows(of).iter().map(|row| row["file"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&seen), names(expected), "{case}: files of commits");
    for (row, expected_row) in rows(&seen).iter().zip(rows(expected)) {
        contains(&format!("{case}: {}", expected_row["file"]), row, &expected_row);
    }
    contains(&format!("{case}: latest"), &seen["latest"], &expected["latest"]);
    for field in ["pending", "orphans", "not_commits"] {
        let list = |of: &Value| of.get(field).cloned().unwrap_or_else(|| json!([]));
        assert_eq!(list(&seen), list(expected), "{case}: {field}");
    }
    let damaged = |of: &Value| of.get("damaged").and_then(Value::as_array).cloned().unwrap_or_default();
    let files_of = |of: &Value| damaged(of).iter().map(|entry| entry["file"].clone()).collect::<Vec<_>>();
    assert_eq!(files_of(&seen), files_of(expected), "{case}: damaged files");
    for (entry, expected_entry) in damaged(&seen).iter().zip(damaged(expected)) {
        let (problem, words) = (entry["problem"].as_str().unwrap(), expected_entry["problem"].as_str().unwrap());
        assert!(problem.contains(words), "{case}: {entry} does not speak of `{words}`");
    }
}

#[test]
fn every_table_reads_as_its_library_says() {
    assert!(folders(&fixtures()).len() >= 20, "fixtures are missing");
    for case in all_cases() {
        check(name(&case), &table_files(&case.join("table")), &json(&case.join("expected.json")));
    }
}

#[test]
fn every_step_of_every_history_reads_as_its_library_says() {
    let mut steps_checked = 0;
    for case in all_cases().iter().filter(|case| case.join("events.jsonl").exists()) {
        let (events, expected) = (events(case), json(&case.join("expected.json")));
        let metadata_only = |files: Files| files.into_iter().filter(|(key, _)| wants(key)).collect::<Files>();
        let replayed = metadata_only(replay(&events, u64::MAX));
        assert_eq!(
            replayed,
            metadata_only(table_files(&case.join("table"))),
            "{}: the history ends in the table",
            name(case)
        );
        for step in expected["steps"].as_array().into_iter().flatten() {
            let label = format!("{}, {}", name(case), step["what"]);
            check(&label, &replay(&events, step["after_seq"].as_u64().unwrap()), step);
            steps_checked += 1;
        }
    }
    assert!(steps_checked >= 12, "only {steps_checked} steps were found");
}

/// The files of a case that can be read, by name.
fn readable(files: &Files) -> Vec<(String, Metadata)> {
    let parsed = files
        .iter()
        .filter(|(key, _)| is_metadata(key))
        .filter_map(|(key, bytes)| Some((key.clone(), Metadata::parse(bytes, ReadOptions::default()).ok()?)));
    parsed.collect()
}

fn is_metadata(key: &str) -> bool {
    classify(key).is_some_and(|object| matches!(object.kind, IcebergObjectKind::Metadata(_)))
}

/// The files of the rows, as names.
fn expected_names(expected: &Value) -> Vec<String> {
    let rows = expected["commits"].as_array().unwrap();
    rows.iter().map(|row| row["file"].as_str().unwrap().trim_start_matches("metadata/").to_owned()).collect()
}

#[test]
fn in_whatever_order_files_become_known_the_chain_ends_the_same() {
    let mut generator = 1_u64;
    let mut random = |below: usize| {
        generator = generator.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(generator >> 33).unwrap() % below
    };
    for case in all_cases() {
        let files = readable(&table_files(&case.join("table")));
        let expected = expected_names(&json(&case.join("expected.json")));
        for _ in 0..30 {
            let mut arriving: Vec<ChainLink> = files.iter().map(|(key, metadata)| metadata.link(key)).collect();
            let twice = arriving[random(arriving.len())].clone();
            arriving.push(twice);
            for place in (1..arriving.len()).rev() {
                arriving.swap(place, random(place + 1));
            }
            let (mut known, mut accepted): (Vec<ChainLink>, Option<String>) = (Vec::new(), None);
            for link in arriving {
                if !known.iter().any(|other| other.name == link.name) {
                    known.push(link);
                }
                let anchor = accepted.as_deref().map_or(Anchor::None, Anchor::Accepted);
                let chain = resolve(&known, anchor);
                let listed: usize =
                    [&chain.accepted, &chain.pending, &chain.orphans, &chain.foreign].map(Vec::len).iter().sum();
                assert_eq!(listed, known.len(), "{}: each file is in one list", name(&case));
                accepted = chain.accepted.last().cloned().or(accepted);
            }
            let end = resolve(&known, accepted.as_deref().map_or(Anchor::None, Anchor::Accepted));
            assert_eq!(end.accepted, expected, "{}", name(&case));
        }
    }
}

/// Reads a chain file by file, as one who knows main's line does, and gives the commits to main.
fn commits_to_main(case: &Path, names: &[String]) -> Vec<Commit> {
    let files = table_files(&case.join("table"));
    let (mut commits, mut known, mut before) = (Vec::new(), Known::Nothing, None::<(Ordinal, String)>);
    for name in names {
        let metadata = Metadata::parse(&files[&format!("metadata/{name}")], ReadOptions::default()).unwrap();
        let ordinal = match &before {
            None => first_ordinal(name, &metadata),
            Some((ordinal, file)) => ordinal_after(*ordinal, file, name, &metadata.log),
        };
        let step = metadata.step(MAIN, known);
        if step.movement != Movement::Unchanged {
            commits.extend(metadata.to_commit(&format!("lake/t/metadata/{name}"), MAIN, ordinal, &step));
        }
        known =
            metadata.current_snapshot_id().map_or(Known::Nothing, |id| Known::Snapshot { id, sequence_number: None });
        before = Some((ordinal, name.clone()));
    }
    commits
}

#[test]
fn read_file_by_file_the_same_commits_count_in_order() {
    for case in all_cases() {
        let expected = json(&case.join("expected.json"));
        let commits = commits_to_main(&case, &expected_names(&expected));
        let ordinals: Vec<_> = commits.iter().map(|commit| commit.ordinal).collect();
        assert!(ordinals.is_sorted_by(|one, next| one < next), "{}: {ordinals:?}", name(&case));
        let prints: BTreeSet<_> = commits.iter().map(|commit| commit.fingerprint.as_str()).collect();
        assert_eq!(prints.len(), commits.len(), "{}: fingerprints", name(&case));

        // What main did by the rows: those that moved it, the first of them without a file before.
        let moved = |row: &&Value| row["branch"] == MAIN && row["extra"]["current_snapshot_moved"] == true;
        let rows = expected["commits"].as_array().unwrap().iter();
        let rows: Vec<_> =
            rows.filter(|row| row["extra"].get("current_snapshot_moved").is_none() || moved(row)).collect();
        if rows.iter().any(|row| row["extra"].get("current_snapshot_moved").is_none()) {
            continue; // composed by hand without this field
        }
        assert_eq!(rows.len(), commits.len(), "{}", name(&case));
        for (row, commit) in rows.iter().zip(&commits) {
            assert_eq!(row["snapshot_id"].to_string(), commit.snapshot_id, "{}", name(&case));
            if commit.ordinal != ordinals[0] {
                assert_eq!(row["changes_data"], json!(commit.changes_data), "{}: {}", name(&case), row["file"]);
            }
        }
    }
}

fn of(case: &str, step: Option<usize>) -> Vec<(String, Metadata)> {
    let folder = fixtures().join(case);
    let Some(step) = step else { return readable(&table_files(&folder.join("table"))) };
    let after = json(&folder.join("expected.json"))["steps"][step]["after_seq"].as_u64().unwrap();
    readable(&replay(&events(&folder), after))
}

fn known(metadata: &Metadata) -> Known {
    let head = metadata.current_snapshot_id().and_then(|id| metadata.snapshot(id)).unwrap();
    Known::Snapshot { id: head.id, sequence_number: Some(head.sequence_number) }
}

#[test]
fn rollbacks_gaps_and_other_tables_are_told_apart() {
    let (before, after) = (of("rollback", Some(0)), of("rollback", None));
    let (old, [.., (_, rolled), (_, newest)]) = (&before.last().unwrap().1, after.as_slice()) else { panic!() };
    let back = rolled.step(MAIN, known(old));
    assert_eq!((back.movement, back.new.len(), back.changes_data()), (Movement::Rewritten, 0, Some(true)));
    let forked = newest.step(MAIN, known(old));
    assert_eq!((forked.movement, forked.new.len()), (Movement::Rewritten, 1));
    let from_there = newest.step(MAIN, known(rolled));
    assert_eq!((from_there.movement, from_there.new.len()), (Movement::Advanced, 1));

    let files = of("expired", None);
    let newest = &files.last().unwrap().1;
    let from = |place: usize| newest.step(MAIN, known(&files[place].1));
    assert_eq!((from(1).movement, from(1).new.len(), from(1).changes_data()), (Movement::PastGap, 3, Some(true)));
    assert_eq!(from(3).movement, Movement::PastGap, "pyiceberg takes away the parent's id as well");
    assert_eq!((from(5).movement, from(5).new.len()), (Movement::Advanced, 1));

    let (first, second) = (of("drop-create", Some(0)), of("drop-create", None));
    let is_new = |metadata: &Metadata| metadata.same_table(&first[0].1) == Some(false);
    assert_eq!(second.iter().filter(|(_, metadata)| is_new(metadata)).count(), 2);
}

#[test]
fn several_files_are_read_as_one_step_when_only_the_newest_is_there() {
    let files = of("append-overwrite-delete", None);
    let (start, newest) = (&files[1].1, &files[5].1);
    let step = newest.step(MAIN, known(start));
    assert_eq!((step.movement, step.new.len()), (Movement::Advanced, 6));
    let commit = newest.to_commit(&files[5].0, MAIN, Ordinal(5), &step).unwrap();
    assert_eq!(commit.kind.0, "append");
    assert_eq!(commit.total_records, Some(4));
    assert_eq!(commit.delta_records, Some(4 - 5), "from 5 rows to 4");
    assert_eq!(commit.extra["operations"].as_array().unwrap().len(), 6);
}

#[test]
fn a_branch_is_a_line_of_its_own() {
    let files = of("branches-tags", None);
    let at = |place: usize| &files[place].1;
    let audit = |place: usize| {
        at(place).step(
            "audit",
            at(place - 1).head("audit").map_or(Known::Nothing, |id| Known::Snapshot { id, sequence_number: None }),
        )
    };
    assert_eq!((audit(4).movement, audit(4).changes_data()), (Movement::Advanced, Some(true)));
    assert_eq!(audit(6).movement, Movement::Unchanged, "main moved");
    assert_eq!(audit(9).movement, Movement::Gone);
    let main = at(6).step(MAIN, known(at(5)));
    assert_eq!((main.movement, main.new.len(), main.changes_data()), (Movement::Advanced, 2, Some(true)));
    assert_eq!(at(4).step(MAIN, known(at(1))).movement, Movement::Unchanged);
}

#[test]
fn a_stream_reads_as_the_whole_in_pieces_of_any_size() {
    struct Pieces<'a>(&'a [u8], usize);
    impl std::io::Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = self.1.min(buffer.len());
            self.0.read(&mut buffer[..most])
        }
    }
    for (case, files) in all_cases().iter().map(|case| (name(case).to_owned(), table_files(&case.join("table")))) {
        for (key, bytes) in files.iter().filter(|(key, _)| is_metadata(key)) {
            let whole = Metadata::parse(bytes, ReadOptions::default()).map_err(|error| error.kind);
            for size in [1, 7, 4_096] {
                let pieces = Metadata::read(Pieces(bytes, size), ReadOptions::default()).map_err(|error| match error {
                    lakebell_formats::ReadError::Format(error) => error.kind,
                    lakebell_formats::ReadError::Io(error) => panic!("{case}: {key}: {error}"),
                });
                assert_eq!(whole, pieces, "{case}: {key} in pieces of {size}");
            }
        }
    }
}

#[test]
fn of_all_objects_that_were_ever_written_only_the_real_ones_are_recognised() {
    for case in all_cases().iter().filter(|case| case.join("events.jsonl").exists()) {
        for event in events(case) {
            let recognised = classify(&format!("lake/shop/orders/{}", event.rel)).is_some();
            let looks_real = event.rel.starts_with("metadata/")
                && (event.rel.contains(".metadata.json") || event.rel.ends_with("version-hint.text"));
            assert_eq!(recognised, looks_real, "{}: {}", name(case), event.rel);
        }
    }
}

#[test]
fn what_is_shown_can_be_read_back() {
    for case in folders(&fixtures()) {
        let seen = inspect(&table_files(&case.join("table")));
        let text = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<lakebell_formats::inspect::Inspection>(&text).unwrap(), seen);
    }
}
