//! What an operator does, from answers as the API gives them.

use serde_json::{Value, json};

use crate::stub::Stub;
use crate::support::{golden, lakebell_in, root};

const KEY: &str = "00000000000000000000000000000abc";
const OTHER: &str = "00000000000000000000000000000def";
const HISTORY: &str = "/projects/7/asset-trigger-history";

fn reason(code: &str, actual: &str) -> Value {
    json!({
        "code": code, "expected": "no open trigger", "actual": actual, "since": "2026-01-01T00:00:00Z",
        "unblock": "say so",
    })
}

fn evaluation(verdict: &str, reason: &Value) -> Value {
    json!({ "target": "7/dwd", "verdict": verdict, "reason": reason, "rule": "", "groups": [] })
}

fn trigger(status: &str, step: &str) -> Value {
    json!({ "key": KEY, "target": "7/dwd", "triggerStatus": status, "status": { "step": step }, "claimed": null })
}

#[test]
fn a_target_is_paused_and_resumed() {
    let stub = Stub::start();
    let paused = reason("TARGET_PAUSED", "paused by ana");
    let answer =
        json!({ "target": "7/dwd", "name": "dwd", "evaluation": evaluation("PAUSED", &paused), "claimed": null });
    stub.fix("POST /projects/7/asset-dependencies/dwd/pause", 200, answer.clone());
    golden("pause.txt", &stub.run(&["pause", "dwd", "--by", "ana"]).succeeded().out);
    assert_eq!(stub.run(&["pause", "dwd", "--json"]).succeeded().json(), answer);
    let answer = json!({ "target": "7/dwd", "evaluation": evaluation("READY", &Value::Null), "claimed": KEY });
    stub.fix("POST /projects/7/asset-dependencies/dwd/resume", 200, answer);
    golden("resume.txt", &stub.run(&["resume", "dwd"]).succeeded().out);
    let path = "POST /projects/7/asset-dependencies/dwd";
    let expected =
        [format!("{path}/pause {{\"by\":\"ana\"}}"), format!("{path}/pause {{}}"), format!("{path}/resume {{}}")];
    assert_eq!(stub.calls(), expected);
}

#[test]
fn who_it_was_is_taken_from_the_environment() {
    let stub = Stub::start();
    stub.fix(&format!("POST {HISTORY}/{KEY}/skip"), 200, trigger("SKIPPED", "skipped"));
    let environment = [
        ("LAKEBELL_API_URL", stub.url.as_str()),
        ("LAKEBELL_API_TOKEN", "stub-token"),
        ("LAKEBELL_PROJECT", "7"),
        ("USER", "ana"),
    ];
    lakebell_in(root(), &["skip", KEY], &environment).succeeded();
    assert_eq!(stub.calls(), [format!("POST {HISTORY}/{KEY}/skip {{\"by\":\"ana\"}}")]);
}

#[test]
fn triggers_are_redriven_skipped_and_decided() {
    let stub = Stub::start();
    let mut redriven = trigger("TRIGGERING", "queued");
    redriven["evaluation"] = evaluation("WAITING", &reason("TRIGGER_IN_FLIGHT", &format!("trigger {KEY} is queued")));
    stub.fix(&format!("POST {HISTORY}/{KEY}/redrive"), 200, redriven);
    golden("redrive.txt", &stub.run(&["redrive", KEY]).succeeded().out);
    let mut decided = trigger("SUCCESS", "success");
    decided["evaluation"] = evaluation("READY", &Value::Null);
    decided["claimed"] = OTHER.into();
    stub.fix(&format!("POST {HISTORY}/{KEY}/decide"), 200, decided);
    golden("decide.txt", &stub.run(&["decide", KEY, "started", "--instance", "77"]).succeeded().out);
    stub.run(&["decide", KEY, "absent", "--by", "ana"]).succeeded();
    stub.run(&["decide", KEY, "failed"]).succeeded();
    let decide = format!("POST {HISTORY}/{KEY}/decide");
    let expected = [
        format!("POST {HISTORY}/{KEY}/redrive {{}}"),
        format!("{decide} {{\"decision\":\"started\",\"instance\":77}}"),
        format!("{decide} {{\"by\":\"ana\",\"decision\":\"absent\"}}"),
        format!("{decide} {{\"decision\":\"failed\"}}"),
    ];
    assert_eq!(stub.calls(), expected);
}

#[test]
fn what_is_refused_is_said_with_what_would_be_right() {
    let stub = Stub::start();
    let problem = json!({
        "title": "x", "code": "CONFLICT", "detail": format!("trigger {KEY} is success"), "field": "triggerKey",
        "hint": "only a FAILED trigger can be redriven",
    });
    stub.fix(&format!("POST {HISTORY}/{KEY}/redrive"), 409, problem);
    let run = stub.run(&["redrive", KEY]);
    assert_eq!(run.status, 1);
    assert!(run.err.contains("is success") && run.err.contains("hint   only a FAILED trigger"), "{}", run.err);
}

#[test]
fn wrong_command_lines_are_usage_errors() {
    let stub = Stub::start();
    for arguments in [
        &["redrive"][..],
        &["redrive", KEY, "--all"],
        &["redrive", "--code", "X"],
        &["redrive", KEY, "--code", "X"],
        &["redrive", "not-a-key"],
        &["decide", KEY],
        &["decide", KEY, "perhaps"],
        &["decide", KEY, "started", "--instance", "0"],
        &["decide", KEY, "absent", "--instance", "5"],
        &["pause"],
        &["pause", "a b"],
    ] {
        let run = stub.run(arguments);
        assert_eq!(run.status, 2, "{arguments:?}: {}{}", run.out, run.err);
    }
    assert!(stub.calls().is_empty());
}

fn failed(key: &str, target: &str, code: &str) -> Value {
    json!({
        "key": key, "target": target, "triggerStatus": "FAILED",
        "status": { "step": "failed", "code": code, "detail": "gone" },
    })
}

/// Three failed triggers: one that can be redriven, one whose data went on, one with another code.
fn with_failed() -> Stub {
    let stub = Stub::start();
    let third = "00000000000000000000000000000fed";
    let items = [
        failed(KEY, "7/dwd", "WORKFLOW_MISSING"),
        failed(OTHER, "7/dws", "WORKFLOW_MISSING"),
        failed(third, "7/ads", "10110"),
    ];
    let listed = json!({ "items": items, "next": null });
    stub.fix(&format!("GET {HISTORY}?limit=200&status=FAILED"), 200, listed);
    stub.fix(&format!("POST {HISTORY}/{KEY}/redrive"), 200, trigger("TRIGGERING", "queued"));
    let conflict = json!({ "title": "x", "code": "CONFLICT", "detail": "another trigger of its target is open" });
    stub.fix(&format!("POST {HISTORY}/{OTHER}/redrive"), 409, conflict);
    stub.fix(&format!("POST {HISTORY}/{third}/redrive"), 200, trigger("TRIGGERING", "queued"));
    stub
}

#[test]
fn all_failed_triggers_are_redriven() {
    let stub = with_failed();
    let run = stub.run(&["redrive", "--all"]).succeeded();
    golden("redrive-all.txt", &run.out);
    assert_eq!(stub.changes().len(), 3);
    let json = stub.run(&["redrive", "--all", "--json"]).succeeded().json();
    let outcomes: Vec<&Value> = json["items"].as_array().unwrap().iter().map(|item| &item["outcome"]).collect();
    assert_eq!(outcomes, ["redriven", "leftAlone", "redriven"]);
}

#[test]
fn those_with_one_code_are_redriven() {
    let stub = with_failed();
    let json = stub.run(&["redrive", "--all", "--code", "10110", "--json"]).succeeded().json();
    assert_eq!(json["items"].as_array().unwrap().len(), 1);
    assert_eq!(stub.changes().len(), 1);
    let none = stub.run(&["redrive", "--all", "--code", "NO_SUCH"]).succeeded();
    assert_eq!(none.out, "No trigger has failed with this code.\n");
}

#[test]
fn what_is_away_ends_the_rest_and_is_no_success() {
    let stub = with_failed();
    let problem = json!({ "title": "x", "code": "DEFECT", "detail": "a defect" });
    stub.fix(&format!("POST {HISTORY}/{OTHER}/redrive"), 500, problem);
    let run = stub.run(&["redrive", "--all", "--json"]);
    assert_eq!(run.status, 1);
    let outcomes: Vec<Value> =
        run.json()["items"].as_array().unwrap().iter().map(|item| item["outcome"].clone()).collect();
    assert_eq!(outcomes, ["redriven", "failed", "notTried"]);
}

#[test]
fn why_names_the_command_for_a_held_trigger_and_a_paused_target() {
    let stub = Stub::start();
    let mut held = evaluation("WAITING", &reason("TRIGGER_HELD", &format!("trigger {KEY} is held: no master")));
    held["open"] = KEY.into();
    let paused = evaluation("PAUSED", &reason("TARGET_PAUSED", "paused by ana"));
    let items = [json!({ "evaluation": held }), json!({ "evaluation": paused })];
    stub.fix("GET /projects/7/asset-dependencies", 200, json!({ "items": items, "next": null }));
    golden("why-operator.txt", &stub.run(&["why"]).succeeded().out);
}

#[test]
fn tables_that_are_not_registered_are_listed() {
    let stub = Stub::start();
    let seen = json!({
        "location": "s3://lake/warehouse/ods_db.db/strangers", "format": "paimon", "firstSeen": "2026-01-01T00:00:00Z",
        "object": "s3://lake/warehouse/ods_db.db/strangers/snapshot/snapshot-1", "reason": "nobody registered it",
    });
    let listed = json!({ "items": [seen], "next": null });
    stub.fix("GET /projects/7/unregistered-assets", 200, listed.clone());
    golden("unregistered.txt", &stub.run(&["unregistered"]).succeeded().out);
    assert_eq!(stub.run(&["unregistered", "--json"]).succeeded().json()["items"], listed["items"]);
    let none = Stub::start().run(&["unregistered"]).succeeded();
    assert_eq!(none.out, "No table was seen that is not registered.\n");
}
