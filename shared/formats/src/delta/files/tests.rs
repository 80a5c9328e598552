use serde_json::{Value, json};

use super::*;
use crate::delta::reader::Parser;

fn play(live: LiveFiles, actions: &[Value]) -> (LiveFiles, Option<i64>) {
    let text = actions.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let mut parser = Parser::new(1, live);
    parser.push(text.as_bytes()).unwrap();
    let (_, mut live) = parser.finish().unwrap();
    let delta = live.end_commit();
    (live, delta)
}

fn add(path: &str, records: Option<i64>) -> Value {
    let stats = records.map(|records| json!({"numRecords": records}).to_string());
    json!({"add": {"path": path, "dataChange": true, "stats": stats}})
}

fn remove(path: &str, records: Option<i64>) -> Value {
    let stats = records.map(|records| json!({"numRecords": records}).to_string());
    json!({"remove": {"path": path, "dataChange": true, "stats": stats}})
}

#[test]
fn removed_files_are_remembered() {
    let (live, delta) = play(LiveFiles::of_new_table(), &[add("a", Some(5)), add("b", Some(7))]);
    assert_eq!((live.total(), delta), (Some(12), Some(12)));
    let (live, delta) = play(live, &[remove("a", None), add("c", Some(1)), remove("gone", None)]);
    assert_eq!((live.total(), delta), (Some(8), Some(-4)));
    let (live, delta) = play(live, &[add("b", Some(6))]);
    assert_eq!((live.total(), delta), (Some(7), Some(-1)), "added again with other statistics");
}

#[test]
fn a_deletion_vector_makes_another_file() {
    let vector = json!({"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "cardinality": 2});
    let mut with_vector = add("a", Some(5));
    with_vector["add"]["deletionVector"] = vector;
    let (live, _) = play(LiveFiles::of_new_table(), &[add("a", Some(5))]);
    let (live, delta) = play(live, &[with_vector, remove("a", None)]);
    assert_eq!((live.total(), delta), (Some(5), Some(0)));
}

#[test]
fn what_has_no_count_makes_the_total_unknown_until_it_goes() {
    let (live, delta) = play(LiveFiles::of_new_table(), &[add("a", Some(5)), add("b", None)]);
    assert_eq!((live.total(), delta), (None, None));
    let (live, delta) = play(live, &[add("c", Some(1))]);
    assert_eq!((live.total(), delta), (None, Some(1)));
    let (live, delta) = play(live, &[remove("b", Some(3))]);
    assert_eq!((live.total(), delta), (Some(6), None));
}

#[test]
fn without_the_start_of_the_log_only_counted_changes_are_known() {
    let (live, delta) = play(LiveFiles::of_unknown_table(), &[add("a", Some(5)), remove("x", Some(2))]);
    assert_eq!((live.total(), delta), (None, Some(3)));
    let (mut live, delta) = play(live, &[remove("y", None)]);
    assert_eq!((live.total(), delta), (None, None));
    let (_, delta) = play(std::mem::take(&mut live), &[add("z", Some(i64::MAX)), add("zz", Some(i64::MAX))]);
    assert_eq!(delta, None, "too large to count");
}
