//! The targets that a run may have.

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{ProjectCode, TargetId};
use lakebell_domain::target::TargetSpec;
use serde_json::{Value, json};

/// The project of all targets.
pub(super) const PROJECT: ProjectCode = ProjectCode(7);
/// The tables that are registered before anything happens. Those of [`REWRITTEN`] are rolled back and
/// dropped; `q` is checked, `w` is what windows are counted on, `f` is backfilled.
pub(super) const TABLES: [&str; 9] = ["a", "b", "c", "q", "w", "f", "r", "s", "e"];
/// The tables whose history is rewritten.
pub(super) const REWRITTEN: [&str; 3] = ["r", "s", "e"];
/// Tables that are registered while the run goes on, below the prefix of a target.
pub(super) const LATER: [&str; 2] = ["p_one", "p_two"];
/// How many small targets make a crowd: more than are evaluated at once.
pub(super) const CROWD: usize = 24;

/// The names on the menu. `crowd` stands for [`CROWD`] targets.
pub(super) const NAMES: [&str; 19] = [
    "both",
    "any",
    "alternatives",
    "apart",
    "single",
    "holding",
    "pairs",
    "passed",
    "quiet",
    "window",
    "backfilled",
    "shadow",
    "assumed",
    "followed",
    "kept",
    "shifting",
    "prefix",
    "spaced",
    "elder",
];

pub(super) fn key(table: &str) -> AssetKey {
    match format!("paimon://ods_db/{table}").parse() {
        Ok(key) => key,
        Err(_) => unreachable!("the names of the tables are valid"),
    }
}

pub(super) fn target_id(name: &str) -> TargetId {
    match name.parse() {
        Ok(name) => TargetId { project: PROJECT, name },
        Err(_) => unreachable!("the names of the targets are valid"),
    }
}

fn group(name: &str, advance: &str, tables: &[&str]) -> Value {
    let dependencies: Vec<Value> = tables.iter().map(|table| json!({"asset": key(table)})).collect();
    json!({"name": name, "advance": advance, "dependencies": dependencies})
}

fn all(tables: &[&str]) -> Value {
    json!([group("g", "all", tables)])
}

/// Whether a target is altered, undeclared and declared again in the course of a run.
pub(super) fn is_shifting(name: &str) -> bool {
    name == "shifting"
}

/// The variants of a target; most have one.
pub(super) fn variants(name: &str) -> Vec<TargetSpec> {
    let document = |groups: Value, more: Value| {
        let mut document = json!({"name": name, "workflowDefinitionCode": 11, "groups": groups});
        for (key, value) in more.as_object().into_iter().flatten() {
            document[key] = value.clone();
        }
        document
    };
    let asks = |table: &str, more: Value| {
        let mut groups = all(&[table]);
        for (key, value) in more.as_object().into_iter().flatten() {
            groups[0]["dependencies"][0][key] = value.clone();
        }
        document(groups, json!({}))
    };
    let two = |independent: bool| {
        let mut groups = json!([group("x", "all", &["a", "b"]), group("y", "all", &["b", "c"])]);
        groups[1]["independent"] = json!(independent);
        groups
    };
    let documents = match name {
        "both" => vec![document(all(&["a", "b"]), json!({}))],
        "any" => vec![document(json!([group("g", "any", &["b", "c"])]), json!({}))],
        "alternatives" => vec![document(two(false), json!({}))],
        "apart" => vec![document(two(true), json!({}))],
        "holding" => vec![document(all(&["c"]), json!({"onFailed": "hold"}))],
        "pairs" => vec![document(all(&["a", "b"]), json!({"coalesce": "each"}))],
        "passed" => vec![asks("q", json!({"qualityStatus": "PASSED"}))],
        "quiet" => vec![document(all(&["b"]), json!({"quietPeriod": "30s"}))],
        "spaced" => vec![document(all(&["a"]), json!({"minInterval": "2m"}))],
        "window" => vec![asks("w", json!({"every": {"period": "1h", "timeZone": "UTC"}}))],
        "backfilled" => vec![document(all(&["f"]), json!({}))],
        "shadow" => vec![document(all(&["b"]), json!({"mode": "shadow"}))],
        "assumed" => vec![document(all(&["c"]), json!({"onUndecided": "assume-absent"}))],
        "followed" => vec![document(all(&["r"]), json!({"onRewrite": "follow"}))],
        "kept" => vec![document(all(&["s", "a"]), json!({}))],
        "elder" => vec![document(all(&["e"]), json!({"onRewrite": "follow", "settle": "2m"}))],
        "shifting" => vec![
            document(all(&["a", "b"]), json!({})),
            document(json!([group("g", "any", &["a", "c"])]), json!({})),
            document(json!([group("x", "all", &["a"]), group("y", "all", &["c"])]), json!({})),
            document(all(&["b", "c"]), json!({"coalesce": "each"})),
        ],
        "prefix" => {
            vec![document(json!([{"name": "g", "dependencies": [{"asset": "paimon://ods_db/p_*"}]}]), json!({}))]
        }
        _ => vec![document(all(&["c"]), json!({}))],
    };
    let specs = documents.into_iter().map(serde_json::from_value);
    specs.collect::<Result<_, _>>().unwrap_or_else(|error| unreachable!("the menu is valid: {error}"))
}
