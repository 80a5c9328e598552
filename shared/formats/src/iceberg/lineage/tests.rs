use serde_json::{Value, json};

use super::*;
use crate::iceberg::{MAIN, ReadOptions};

/// A table whose snapshots are given as (id, parent, sequence number, summary); main is at the last.
fn table(snapshots: &[(i64, Option<i64>, i64, Value)]) -> Metadata {
    let list: Vec<_> = snapshots
        .iter()
        .map(|(id, parent, number, summary)| {
            json!({"snapshot-id": id, "parent-snapshot-id": parent, "sequence-number": number, "summary": summary})
        })
        .collect();
    let head = snapshots.last().map(|(id, ..)| id);
    let file = json!({"format-version": 2, "location": "t", "current-snapshot-id": head, "snapshots": list});
    Metadata::parse(file.to_string().as_bytes(), ReadOptions::default()).unwrap()
}

fn did(operation: &str) -> Value {
    json!({"operation": operation})
}

fn totals(operation: &str, records: i64, files: i64) -> Value {
    json!({"operation": operation, "total-records": records.to_string(), "total-data-files": files.to_string(),
           "total-delete-files": "0"})
}

fn known(id: i64) -> Known {
    Known::Snapshot { id, sequence_number: None }
}

fn numbered(id: i64, number: i64) -> Known {
    Known::Snapshot { id, sequence_number: Some(number) }
}

fn changes(snapshots: &[(i64, Option<i64>, i64, Value)], from: i64) -> Option<bool> {
    table(snapshots).step(MAIN, known(from)).changes_data()
}

#[test]
fn ids_order_nothing_and_neither_do_sequence_numbers_of_version_1() {
    let metadata =
        table(&[(900, None, 0, did("append")), (5, Some(900), 0, did("append")), (77, Some(5), 0, did("append"))]);
    let step = metadata.step(MAIN, known(900));
    assert_eq!((step.movement, step.new.iter().map(|it| it.id).collect::<Vec<_>>()), (Movement::Advanced, vec![5, 77]));
    assert_eq!(metadata.step(MAIN, known(5)).new.len(), 1);
    assert_eq!(metadata.step(MAIN, known(77)).movement, Movement::Unchanged);
    assert_eq!(metadata.step(MAIN, Known::Nothing).new.len(), 3);
    assert_eq!(metadata.descends(77, known(900)), Descent::Descends);
    assert_eq!(metadata.descends(900, known(77)), Descent::Diverged);
    assert_eq!(metadata.descends(77, known(77)), Descent::Same);
}

#[test]
fn one_snapshot_that_is_no_replace_is_enough() {
    let line =
        |second: Value, third: Value| [(1, None, 1, did("append")), (2, Some(1), 2, second), (3, Some(2), 3, third)];
    assert_eq!(changes(&line(did("replace"), did("replace")), 1), Some(false));
    assert_eq!(changes(&line(did("append"), did("replace")), 1), Some(true));
    assert_eq!(changes(&line(did("replace"), did("delete")), 1), Some(true));
    assert_eq!(changes(&line(did("replace"), json!({})), 1), Some(true), "a missing operation is an overwrite");
    assert_eq!(changes(&line(did("replace"), Value::Null), 1), Some(true), "so is a missing summary");
    assert_eq!(changes(&line(did("frobnicate"), did("replace")), 1), None);
    assert_eq!(changes(&line(did("frobnicate"), did("append")), 1), Some(true));
    assert_eq!(changes(&line(did("append"), did("replace")), 2), Some(false));
}

#[test]
fn a_replace_counts_where_its_parent_is_not_there() {
    assert_eq!(changes(&[(2, Some(1), 2, did("replace"))], 1), Some(true));
    let first = table(&[(2, None, 1, did("replace"))]);
    assert_eq!(first.step(MAIN, Known::Nothing).changes_data(), Some(true));
}

#[test]
fn empty_is_what_both_totals_prove() {
    let line = |before: Value, after: Value| [(1, None, 1, before), (2, Some(1), 2, after)];
    let counted = |name: &str, value: &str| {
        let mut summary = totals("append", 5, 1);
        summary[name] = json!(value);
        summary
    };
    let five = || totals("append", 5, 1);
    assert_eq!(changes(&line(five(), five()), 1), Some(false));
    assert_eq!(changes(&line(five(), counted("added-records", "0")), 1), Some(false));
    assert_eq!(changes(&line(five(), counted("changed-partition-count", "3")), 1), Some(false));
    assert_eq!(changes(&line(five(), counted("added-data-files", "1")), 1), Some(true));
    assert_eq!(changes(&line(five(), counted("removed-dvs", "1")), 1), Some(true));
    assert_eq!(changes(&line(five(), counted("deleted-files-size", "?")), 1), Some(true));
    assert_eq!(changes(&line(five(), totals("append", 6, 1)), 1), Some(true));
    assert_eq!(changes(&line(five(), totals("append", 5, 2)), 1), Some(true));
    assert_eq!(changes(&line(did("append"), five()), 1), Some(true), "the parent does not say");
    assert_eq!(changes(&line(five(), did("append")), 1), Some(true), "it does not say itself");
    assert_eq!(changes(&[(2, Some(1), 2, five())], 1), Some(true), "the parent is not there");
    assert_eq!(changes(&line(five(), totals("frobnicate", 5, 1)), 1), Some(false), "whatever it is called");
}

#[test]
fn a_branch_that_is_not_at_a_descendant_is_rewritten() {
    // 1 - 2 - 3 was the line; set back to 1, then 4 was written.
    let fork = table(&[
        (1, None, 1, did("append")),
        (2, Some(1), 2, did("append")),
        (3, Some(2), 3, did("append")),
        (4, Some(1), 4, did("replace")),
    ]);
    let step = fork.step(MAIN, known(3));
    assert_eq!((step.movement, step.changes_data()), (Movement::Rewritten, Some(true)));
    assert_eq!(step.new.iter().map(|it| it.id).collect::<Vec<_>>(), [4]);
    assert_eq!(fork.step(MAIN, known(1)).changes_data(), Some(false));
    // The table was replaced: a new root beside the old line.
    let replaced = table(&[(3, None, 3, did("append")), (9, None, 5, did("append"))]);
    assert_eq!(replaced.step(MAIN, known(3)).movement, Movement::Rewritten);
}

#[test]
fn after_an_expiry_sequence_numbers_tell_a_gap_from_a_rewrite() {
    let rest = table(&[(8, Some(7), 8, did("replace")), (9, Some(8), 9, did("append"))]);
    assert_eq!(rest.step(MAIN, known(7)).movement, Movement::Advanced, "its id is still named");
    assert_eq!(rest.step(MAIN, known(5)).movement, Movement::PastGap);
    assert_eq!(rest.step(MAIN, numbered(5, 5)).movement, Movement::PastGap);
    assert_eq!(rest.step(MAIN, numbered(5, 8)).movement, Movement::Rewritten, "nothing before 8 has its number");
    assert_eq!(rest.step(MAIN, numbered(5, 12)).movement, Movement::Rewritten);
    assert_eq!(rest.step(MAIN, numbered(5, 0)).movement, Movement::PastGap, "0 is no number");
    // pyiceberg takes away the parent's id with the parent: a root that is none.
    let rooted = table(&[(8, None, 8, did("append")), (9, Some(8), 9, did("append"))]);
    assert_eq!(rooted.step(MAIN, numbered(5, 5)).movement, Movement::PastGap);
    assert_eq!(rooted.step(MAIN, known(5)).movement, Movement::PastGap);
    assert_eq!(rooted.step(MAIN, numbered(5, 8)).movement, Movement::Rewritten);
    // The known one was cut off and is still there, as under a tag.
    let kept = table(&[(5, Some(4), 5, did("append")), (8, Some(7), 8, did("append"))]);
    assert_eq!(kept.step(MAIN, known(5)).movement, Movement::PastGap);
    let later = table(&[(5, Some(4), 9, did("append")), (8, Some(7), 8, did("append"))]);
    assert_eq!(later.step(MAIN, known(5)).movement, Movement::Rewritten);
}

#[test]
fn a_head_that_is_not_listed_is_unknown() {
    let file = json!({"format-version": 2, "location": "t", "current-snapshot-id": 4});
    let metadata = Metadata::parse(file.to_string().as_bytes(), ReadOptions::default()).unwrap();
    let step = metadata.step(MAIN, known(3));
    assert_eq!((step.movement, step.changes_data(), step.head), (Movement::PastGap, None, None));
}

#[test]
fn a_branch_without_a_snapshot_moved_only_if_it_had_one() {
    let empty = table(&[]);
    let never = empty.step(MAIN, Known::Nothing);
    assert_eq!((never.movement, never.changes_data()), (Movement::Unchanged, Some(false)));
    let gone = empty.step(MAIN, known(3));
    assert_eq!((gone.movement, gone.changes_data(), gone.head_id), (Movement::Gone, Some(true), None));
}

#[test]
fn parents_that_go_round_in_circles_end() {
    let circle = table(&[(1, Some(2), 1, did("append")), (2, Some(1), 2, did("append"))]);
    assert_eq!(circle.step(MAIN, known(5)).movement, Movement::PastGap);
    assert_eq!(circle.step(MAIN, known(1)).movement, Movement::Advanced);
}
