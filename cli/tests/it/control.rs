//! Firing, resetting, passing over, switches, replay: from answers as the API gives them.

use serde_json::{Value, json};

use crate::stub::Stub;

const KEY: &str = "00000000000000000000000000000abc";

fn evaluation() -> Value {
    json!({ "target": "7/dwd", "verdict": "WAITING", "reason": null, "rule": "", "groups": [] })
}

fn of_target() -> Value {
    json!({ "target": "7/dwd", "name": "dwd", "evaluation": evaluation(), "claimed": null })
}

#[test]
fn a_target_is_fired_with_its_request_id() {
    let stub = Stub::start();
    let trigger =
        json!({ "key": KEY, "target": "7/dwd", "triggerStatus": "TRIGGERING", "status": { "step": "queued" } });
    stub.fix("POST /projects/7/asset-dependencies/dwd/fire", 200, trigger);
    let out = stub.run(&["fire", "dwd", "--request-id", "r-1", "--by", "ana"]).succeeded().out;
    assert!(out.contains(KEY) && out.contains("r-1"), "{out}");
    assert_eq!(stub.calls(), ["POST /projects/7/asset-dependencies/dwd/fire {\"by\":\"ana\",\"requestId\":\"r-1\"}"]);
}

#[test]
fn a_target_is_reset_and_passed_over() {
    let stub = Stub::start();
    stub.fix("POST /projects/7/asset-dependencies/dwd/reset", 200, of_target());
    stub.fix("POST /projects/7/asset-dependencies/dwd/pass-over", 200, of_target());
    assert!(stub.run(&["reset", "dwd"]).succeeded().out.starts_with("7/dwd begins anew."));
    let out = stub.run(&["pass-over", "dwd", "--asset", "paimon://d/orders"]).succeeded().out;
    assert!(out.starts_with("7/dwd: what is there of paimon://d/orders counts as taken."), "{out}");
    let path = "POST /projects/7/asset-dependencies/dwd";
    let expected = [format!("{path}/reset {{}}"), format!("{path}/pass-over {{\"assetKey\":\"paimon://d/orders\"}}")];
    assert_eq!(stub.calls(), expected);
}

#[test]
fn starting_is_switched_off_and_shown() {
    let stub = Stub::start();
    let off =
        json!({ "scope": "7", "on": false, "off": { "scope": "7", "since": "2026-01-01T00:00:00Z", "by": "ana" } });
    stub.fix("PUT /projects/7/switch", 200, off);
    stub.fix("GET /switch", 200, json!({ "scope": "global", "on": true }));
    let out = stub.run(&["switch", "off", "--by", "ana"]).succeeded().out;
    assert_eq!(out, "Starting is off for project 7, since 2026-01-01T00:00:00Z by ana. Nothing is lost meanwhile.\n");
    assert_eq!(stub.run(&["switch", "--all-projects"]).succeeded().out, "Starting is on for all projects.\n");
    assert_eq!(stub.calls(), ["PUT /projects/7/switch {\"by\":\"ana\",\"on\":false}", "GET /switch"]);
}

#[test]
fn a_replay_lists_what_would_have_started() {
    let stub = Stub::start();
    let version = |id: &str| json!({ "epoch": 0, "ordinal": 1, "fingerprint": "f", "snapshotId": id });
    let start = json!({
        "at": "2026-01-02T00:00:00Z", "key": KEY, "reason": "ready", "groups": ["g"],
        "ranges": [{ "key": "paimon://d/orders", "from": null, "to": version("4") }],
        "window": { "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z", "businessDate": "2026-01-01" },
    });
    let answer = json!({ "starts": [start], "since": "2026-01-01T00:00:00Z", "events": 9, "isCut": false });
    stub.fix("GET /projects/7/asset-dependencies/dwd/replay", 200, answer.clone());
    let out = stub.run(&["replay", "dwd"]).succeeded().out;
    for part in ["2026-01-02T00:00:00Z", "2026-01-01", "paimon://d/orders (-, 4]", "9 events replayed"] {
        assert!(out.contains(part), "{out}");
    }
    stub.fix("POST /projects/7/replay", 200, json!({ "starts": [], "since": null, "events": 0, "isCut": false }));
    let file = ["-f", "cli/examples/lakebell.yaml"];
    let out = stub.run(&[&["replay", "dwd_trade_event_fact"], &file[..]].concat()).succeeded().out;
    assert!(out.starts_with("It would not have started."), "{out}");
    let missing = stub.run(&[&["replay", "nobody"], &file[..]].concat());
    assert!(missing.err.contains("declares no target `nobody`"), "{}", missing.err);
}

#[test]
fn withdrawn_versions_are_listed() {
    let stub = Stub::start();
    let trigger = json!({
        "trigger": KEY, "target": "7/dwd", "triggerStatus": "SUCCESS", "claimedAt": "2026-01-01T00:00:00Z",
        "to": { "epoch": 0, "ordinal": 4, "fingerprint": "f", "snapshotId": "4" }, "isCertain": true,
    });
    let path = "GET /projects/7/assets/paimon%3A%2F%2Fd%2Forders/withdrawn";
    stub.fix(path, 200, json!({ "hold": null, "triggers": [trigger], "isComplete": true }));
    let out = stub.run(&["withdrawn", "paimon://d/orders"]).succeeded().out;
    assert!(out.contains(KEY) && out.contains("7/dwd") && out.contains("yes"), "{out}");
    stub.fix(path, 200, json!({ "hold": null, "triggers": [], "ofOthers": 2, "isComplete": true }));
    let out = stub.run(&["withdrawn", "paimon://d/orders"]).succeeded().out;
    assert_eq!(out, "2 triggers of other projects took withdrawn versions; their owners see them.\n");
}
