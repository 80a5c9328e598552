//! `apply`: the plan, what is sent for it, and doing it twice.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::stub::Stub;
use crate::support::{Run, root, scratch};

const FILE: &str = "\
project: 7
connections:
  - {name: default, url: http://ds/dolphinscheduler, tokenSecret: secret}
warehouses:
  - {location: s3://lake/warehouse, format: paimon}
assets:
  - {key: paimon://ods_db/orders, location: s3://lake/orders}
  - {key: paimon://ods_db/payments, location: s3://lake/payments}
targets:
  - name: dwd
    workflowDefinitionCode: 5
    groups:
      - dependencies:
          - asset: paimon://ods_db/orders
          - asset: paimon://ods_db/payments
";

fn file(name: &str, text: &str) -> PathBuf {
    let path = scratch(name).join("lakebell.yaml");
    fs::write(&path, text).unwrap();
    path
}

fn apply(stub: &Stub, path: &std::path::Path, more: &[&str]) -> Run {
    let mut arguments = vec!["apply", "-f", path.to_str().unwrap()];
    arguments.extend(more);
    stub.run(&arguments)
}

/// Action, kind and name of each step.
fn steps(run: &Run) -> Vec<String> {
    let json = run.json();
    let of = |step: &serde_json::Value| {
        format!(
            "{} {} {}",
            step["action"].as_str().unwrap(),
            step["kind"].as_str().unwrap(),
            step["name"].as_str().unwrap()
        )
    };
    json["steps"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let (stub, path) = (Stub::start(), file("dry-run", FILE));
    let run = apply(&stub, &path, &["--dry-run", "--json"]).succeeded();
    let expected = [
        "create connection default",
        "create warehouse s3://lake/warehouse",
        "create asset paimon://ods_db/orders",
        "create asset paimon://ods_db/payments",
        "create target 7/dwd",
    ];
    assert_eq!(steps(&run), expected);
    assert_eq!(stub.changes(), Vec::<String>::new());
    let run = apply(&stub, &path, &["--dry-run"]).succeeded();
    assert!(run.out.contains("  + asset       paimon://ods_db/orders\n      s3://lake/orders\n"), "{}", run.out);
    assert!(run.out.ends_with("5 to create, 0 to change, 0 the same, 0 to delete; nothing was changed (--dry-run)\n"));
}

#[test]
fn applying_twice_changes_nothing_the_second_time() {
    let (stub, path) = (Stub::start(), file("twice", FILE));
    apply(&stub, &path, &[]).succeeded();
    let sent = stub.changes();
    let calls: Vec<&str> = sent.iter().map(|call| call.split(" {").next().unwrap()).collect();
    let expected = [
        "PUT /connections/default",
        "PUT /warehouses",
        "POST /projects/7/assets",
        "POST /projects/7/assets",
        "POST /projects/7/asset-dependencies",
    ];
    assert_eq!(calls, expected);
    assert!(!sent[0].contains("\"name\""), "the name is in the path: {}", sent[0]);
    assert!(sent[1].contains("\"project\":7"), "a warehouse is the file's project's: {}", sent[1]);

    let run = apply(&stub, &path, &["--json"]).succeeded();
    assert_eq!(
        run.json()["summary"],
        json!({ "create": 0, "change": 0, "same": 5, "delete": 0, "keep": 0, "conflict": 0 })
    );
    let again = stub.changes();
    assert_eq!(again.len(), 1, "only the warehouse is looked into again: {again:?}");
    assert!(again[0].starts_with("PUT /warehouses"));
}

#[test]
fn what_differs_is_named() {
    let stub = Stub::start();
    apply(&stub, &file("before", FILE), &[]).succeeded();
    let changed =
        FILE.replace("http://ds/", "https://ds/").replace("- dependencies:", "- advance: any\n        dependencies:");
    let path = file("differs", &changed);
    stub.calls();
    let run = apply(&stub, &path, &[]).succeeded();
    let url = "url: \"http://ds/dolphinscheduler\" -> \"https://ds/dolphinscheduler\"";
    assert!(run.out.contains(&format!("  ~ connection  default\n      {url}\n")), "{}", run.out);
    assert!(
        run.out.contains("  ~ target      7/dwd  WAITING\n      groups[0].advance: nothing -> \"any\"\n"),
        "{}",
        run.out
    );
    assert!(run.out.contains("  = asset       paimon://ods_db/orders\n"), "{}", run.out);
    let sent = stub.changes();
    assert_eq!(sent.iter().filter(|call| call.starts_with("POST")).count(), 1, "{sent:?}");
}

#[test]
fn what_is_gone_from_the_file_stays_unless_pruned() {
    let stub = Stub::start();
    let more = format!(
        "{FILE}  - {{name: old, workflowDefinitionCode: 6, groups: [{{dependencies: [{{asset: paimon://ods_db/orders}}]}}]}}\n"
    );
    let more = more.replace("targets:", "  - {key: paimon://ods_db/old, location: s3://lake/old}\n  - {key: paimon://ods_db/found, location: s3://lake/warehouse/ods_db.db/found}\ntargets:");
    apply(&stub, &file("more", &more), &[]).succeeded();
    let path = file("less", FILE);
    stub.calls();

    let run = apply(&stub, &path, &[]).succeeded();
    assert!(
        run.out.contains("  . asset       paimon://ods_db/old\n      it is not in the file; --prune removes it"),
        "{}",
        run.out
    );
    assert!(!run.out.contains("ods_db/found"), "what a warehouse covers is not missed: {}", run.out);
    stub.calls();
    let run = apply(&stub, &path, &["--prune", "--json"]).succeeded();
    let steps = steps(&run);
    assert_eq!(steps[5..], ["delete target 7/old", "delete asset paimon://ods_db/old"]);
    let deleted: Vec<String> = stub.changes().into_iter().filter(|call| call.starts_with("DELETE")).collect();
    assert_eq!(
        deleted,
        ["DELETE /projects/7/asset-dependencies/old", "DELETE /projects/7/assets/paimon%3A%2F%2Fods_db%2Fold"]
    );
}

#[test]
fn an_asset_that_a_target_needs_is_not_pruned() {
    let stub = Stub::start();
    apply(&stub, &file("needed-before", FILE), &[]).succeeded();
    let without = FILE.replace("  - {key: paimon://ods_db/orders, location: s3://lake/orders}\n", "");
    let run = apply(&stub, &file("needed", &without), &["--prune", "--dry-run", "--json"]).succeeded();
    assert_eq!(run.json()["summary"]["delete"], 0, "{}", run.out);
}

#[test]
fn what_is_not_the_projects_or_cannot_be_named_alone_is_not_pruned() {
    let (stub, path) = (Stub::start(), file("foreign", "project: 7\n"));
    let ownerless = json!({ "key": "paimon://d/t", "project": 0, "location": "s3://lake/t" });
    stub.fix("GET /projects/7/assets", 200, json!({ "items": [ownerless], "next": null }));
    let number = json!({ "target": "7/5", "definition": {}, "evaluation": { "target": "7/5" } });
    stub.fix("GET /projects/7/asset-dependencies", 200, json!({ "items": [number], "next": null }));
    let run = apply(&stub, &path, &["--prune", "--json"]).succeeded();
    assert_eq!(steps(&run), ["keep target 7/5"], "the API takes 5 for a workflow's code");
    assert_eq!(stub.changes(), Vec::<String>::new());
}

#[test]
fn a_conflict_stops_everything_before_it_starts() {
    let stub = Stub::start();
    apply(&stub, &file("conflict-before", FILE), &[]).succeeded();
    stub.calls();
    let moved = FILE
        .replace("location: s3://lake/orders", "location: s3://lake/elsewhere")
        .replace("http://ds", "http://other");
    let run = apply(&stub, &file("conflict", &moved), &[]);
    assert_eq!(run.status, 1);
    assert!(
        run.out.contains("  ! asset       paimon://ods_db/orders\n      it is registered at s3://lake/orders"),
        "{}",
        run.out
    );
    assert!(run.out.ends_with("nothing was changed: 1 in conflict\n"), "{}", run.out);
    assert_eq!(stub.changes(), Vec::<String>::new());
}

#[test]
fn a_refused_step_does_not_hide_the_others() {
    let (stub, path) = (Stub::start(), file("refused", FILE));
    let problem = json!({ "title": "Invalid", "code": "INVALID", "detail": "no such bucket", "field": "location", "hint": "create it" });
    stub.fix("PUT /warehouses", 400, problem);
    let run = apply(&stub, &path, &[]);
    assert_eq!(run.status, 1);
    assert!(
        run.out.contains("failed: no such bucket\n        field  location\n        hint   create it"),
        "{}",
        run.out
    );
    assert!(run.out.contains("1 failed or not tried"), "{}", run.out);
    assert_eq!(stub.changes().len(), 5, "the rest was tried");
}

#[test]
fn the_example_applies() {
    let (stub, path) = (Stub::start(), root().join("cli/examples/lakebell.yaml"));
    let run = apply(&stub, &path, &["--dry-run", "--json"]).succeeded();
    assert_eq!(run.json()["summary"]["create"], 8);
}

const RECORDS: &str = r#"[
  {"workflowDefinitionCode": 12345, "taskDefinitionCode": 100, "assetKey": "paimon://ods_db/orders",
   "dependencyGroup": "trade", "conditionJson": {"assetKey": "paimon://ods_db/orders", "snapshotRequired": true},
   "enabledFlag": 1},
  {"workflowDefinitionCode": 12345, "taskDefinitionCode": 100, "assetKey": "paimon://ods_db/payments",
   "dependencyGroup": "trade", "conditionJson": "{\"qualityStatus\": \"PASSED\"}", "enabledFlag": 1},
  {"workflowDefinitionCode": 12345, "taskDefinitionCode": 100, "assetKey": "paimon://ods_db/refunds",
   "dependencyGroup": "trade", "enabledFlag": 0}
]"#;

#[test]
fn records_of_the_rfc_are_applied() {
    let stub = Stub::start();
    let path = scratch("records").join("records.json");
    fs::write(&path, RECORDS).unwrap();
    let run = apply(&stub, &path, &["--json"]).succeeded();
    assert_eq!(steps(&run), ["create target 7/workflow-12345-task-100"]);
    let note = "record [2] is off (enabledFlag 0): group `trade` does not wait for paimon://ods_db/refunds";
    assert_eq!(run.json()["steps"][0]["notes"], json!([note]));
    let sent = stub.changes();
    assert!(sent[0].contains(r#"{"asset":"paimon://ods_db/payments","qualityStatus":"PASSED"}"#), "{sent:?}");
    assert_eq!(steps(&apply(&stub, &path, &["--json"]).succeeded()), ["same target 7/workflow-12345-task-100"]);

    let refused = apply(&stub, &path, &["--prune"]);
    assert!(refused.status == 2 && refused.err.contains("leave --prune out"), "{}", refused.err);
    fs::write(&path, RECORDS.replace("ods_db/payments\",\n", "ods_db/orders\",\n")).unwrap();
    let refused = apply(&stub, &path, &[]);
    assert!(refused.err.contains("record [0] has paimon://ods_db/orders in group `trade` already"), "{}", refused.err);
    assert!(refused.err.contains("records.json:5:76\n  field  [1].assetKey"), "{}", refused.err);
    fs::write(&path, RECORDS.replace("\"snapshotRequired\": true", "\"partitionKey\": \"dt\"")).unwrap();
    let refused = apply(&stub, &path, &[]);
    assert!(refused.err.contains("`partitionKey` is not known"), "{}", refused.err);
    assert!(refused.err.contains("records.json:3:"), "{}", refused.err);
    fs::write(&path, r#"{"workflowDefinitionCode": 1, "assetKey": "paimon://a/b", "timeoutMinutes": 0}"#).unwrap();
    let refused = apply(&stub, &path, &[]);
    assert!(
        refused.err.contains("records.json:1:") && refused.err.contains("field  timeoutMinutes"),
        "{}",
        refused.err
    );
}

#[test]
fn records_beside_targets_are_their_own() {
    let records = "\
dependencies:
  - workflowDefinitionCode: 9
    assetKey: paimon://ods_db/orders
    timeoutMinutes: 30
  - workflowDefinitionCode: 9
    assetKey: paimon://ods_db/payments
";
    let (stub, path) = (Stub::start(), file("beside", &format!("{FILE}{records}")));
    let run = apply(&stub, &path, &["--dry-run", "--json"]).succeeded();
    assert_eq!(steps(&run)[4..], ["create target 7/dwd", "create target 7/workflow-9"]);
    let contradiction = format!("{FILE}{records}    timeoutMinutes: 60\n");
    let refused = apply(&stub, &file("contradiction", &contradiction), &[]);
    assert!(refused.err.contains("it is 60 here, and record [0] says 30"), "{}", refused.err);
    assert!(refused.err.contains("lakebell.yaml:22:21\n  field  dependencies[1].timeoutMinutes"), "{}", refused.err);
    let twice = format!(
        "{FILE}  - {{name: workflow-9, workflowDefinitionCode: 5, groups: [{{dependencies: [{{asset: paimon://a/b}}]}}]}}\n{records}"
    );
    let refused = apply(&stub, &file("twice-named", &twice), &[]);
    assert!(refused.err.contains("7/workflow-9 is declared by targets[1] too"), "{}", refused.err);
}

#[test]
fn the_rule_and_warnings_of_a_declaration_are_shown() {
    let (stub, path) = (Stub::start(), file("warnings", FILE));
    stub.fix(
        "POST /projects/7/asset-dependencies",
        201,
        json!({
            "evaluation": { "verdict": "WAITING" },
            "rule": "fires when BOTH orders AND payments have advanced since the last trigger",
            "warnings": ["the workflow's execution type is serial-discard"],
        }),
    );
    let run = apply(&stub, &path, &[]).succeeded();
    let said = "  + target      7/dwd  WAITING\n      \
                fires when BOTH orders AND payments have advanced since the last trigger\n      \
                warning: the workflow's execution type is serial-discard\n";
    assert!(run.out.contains(said), "{}", run.out);
    let step = apply(&stub, &path, &["--json"]).succeeded().json()["steps"][4].clone();
    assert_eq!(step["warnings"], json!(["the workflow's execution type is serial-discard"]), "{step}");
    assert!(step["rule"].as_str().unwrap().starts_with("fires when BOTH"), "{step}");
}
