//! The task that waits for a target, for each version line.

use serde_json::{Value, json};

use crate::stub::Stub;
use crate::support::golden;

const TARGET: &str = "GET /projects/7/asset-dependencies/dwd";

/// An API with the target `dwd`, which task 456 waits for, with further keys; its URL is the golden files'.
fn with_target(more: &Value, version: &str) -> Stub {
    let stub = Stub::start();
    let mut definition = json!({
        "name": "dwd", "workflowDefinitionCode": 5, "taskDefinitionCode": 456,
        "groups": [{ "dependencies": [{ "asset": "paimon://ods_db/orders" }] }],
    });
    for (key, value) in more.as_object().unwrap() {
        definition[key] = value.clone();
    }
    let item = json!({ "name": "dwd", "target": "7/dwd", "definition": definition });
    stub.fix(TARGET, 200, json!({ "items": [item], "next": null }));
    let connection = json!({ "name": "default", "url": "http://ds", "version": version, "tokenSecret": "s" });
    stub.fix("GET /connections", 200, json!({ "items": [connection], "next": null }));
    stub
}

fn printed(stub: &Stub, arguments: &[&str]) -> String {
    let run = stub.run(&[&["sensor", "task", "dwd"], arguments].concat()).succeeded();
    run.out.replace(&stub.url, "https://lakebell.example/v1")
}

#[test]
fn each_version_line_has_its_task() {
    let stub = with_target(&json!({ "timeoutMinutes": 90, "checkIntervalSeconds": 90 }), "auto");
    for version in ["3.1", "3.2", "3.3", "3.4"] {
        golden(&format!("sensor-task-{version}.txt"), &printed(&stub, &["--scheduler-version", version]));
    }
    assert!(stub.changes().is_empty(), "nothing is changed");
}

#[test]
fn the_connection_says_which_version_it_is() {
    for version in ["3.1", "3.2", "3.3"] {
        let stub = with_target(&json!({}), version);
        let json = stub.run(&["sensor", "task", "dwd", "--json"]).succeeded().json();
        let parameters = &json["task"]["taskParams"];
        assert_eq!(parameters.get("httpBody").is_some(), version != "3.1", "{version}");
        assert_eq!(parameters.get("socketTimeout").is_some(), version != "3.3", "{version}");
        assert_eq!((&json["task"]["failRetryTimes"], &json["task"]["failRetryInterval"]), (&json!(1440), &json!(1)));
        assert!(json["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("about a day")));
    }
    let run = with_target(&json!({}), "auto").run(&["sensor", "task", "dwd"]);
    assert!(run.status == 2 && run.err.contains("--scheduler-version"), "{}", run.err);
}

#[test]
fn polls_are_counted_with_the_time_that_each_waits() {
    let task = |more: &Value, arguments: &[&str]| {
        let stub = with_target(more, "3.3");
        let arguments = [&["sensor", "task", "dwd", "--json"], arguments].concat();
        let json = stub.run(&arguments).succeeded().json();
        (json["task"]["failRetryTimes"].clone(), json["task"]["failRetryInterval"].clone())
    };
    for (timeout, interval, wait, retries, minutes) in [
        (60, 60, "0", 60, 1),
        (60, 30, "0", 60, 1),
        (60, 60, "20", 45, 1),
        (60, 300, "0", 12, 5),
        (1, 301, "0", 1, 6),
        (527_040, 60, "0", 527_040, 1),
    ] {
        let more = json!({ "timeoutMinutes": timeout, "checkIntervalSeconds": interval });
        assert_eq!(task(&more, &["--wait-seconds", wait]), (json!(retries), json!(minutes)), "{more}");
    }
}

#[test]
fn parameters_may_have_other_names() {
    let stub = with_target(&json!({}), "3.1");
    let out = printed(&stub, &["--api-token-parameter", "lb_token", "--token-parameter", "run_id"]);
    assert!(out.contains("Bearer ${lb_token}") && out.contains("\"${run_id}\""), "{out}");
    for wrong in ["a b", "${x}", ""] {
        let run = stub.run(&["sensor", "task", "dwd", "--token-parameter", wrong]);
        assert_eq!(run.status, 2, "{wrong}: {}", run.err);
    }
    assert_eq!(stub.run(&["sensor", "task", "dwd", "--wait-seconds", "21"]).status, 2);
}

#[test]
fn what_no_task_waits_for_is_said_so() {
    let stub = with_target(&json!({ "startAs": "start" }), "3.3");
    let run = stub.run(&["sensor", "task", "dwd"]);
    assert!(run.status == 1 && run.err.contains("no task waits for target 7/dwd"), "{}", run.err);
    let stub = Stub::start();
    stub.fix(TARGET, 200, json!({ "items": [], "next": null }));
    let run = stub.run(&["sensor", "task", "dwd"]);
    assert!(run.status == 1 && run.err.contains("is not declared"), "{}", run.err);
}

#[test]
fn why_and_the_history_show_what_waits_for_a_task_and_what_one_took() {
    let stub = Stub::start();
    let evaluation = json!({ "target": "7/dwd", "verdict": "READY", "rule": "", "groups": [], "sensor": 456 });
    let listed = json!({ "items": [{ "evaluation": evaluation }], "next": null });
    stub.fix("GET /projects/7/asset-dependencies", 200, listed);
    golden("why-sensor.txt", &stub.run(&["why"]).succeeded().out);

    let key = "00000000000000000000000000000abc";
    let trigger = json!({
        "key": key, "target": "7/dwd", "triggerStatus": "SUCCESS", "status": { "step": "success" }, "workflow": 5,
        "instance": 31, "reason": "ready", "claimedAt": "2026-01-01T00:00:00Z", "ranges": [],
        "sensor": { "task": 456, "takenBy": { "asker": { "workflowInstance": 31 }, "run": 2 } },
        "log": [{ "at": "2026-01-01T00:00:00Z", "arrow": "claim" },
            { "at": "2026-01-01T00:00:00Z", "arrow": "answer", "detail": "task 456 of workflow instance 31, run 2" }],
    });
    stub.fix(&format!("GET /projects/7/asset-trigger-history/{key}"), 200, trigger.clone());
    golden("trigger-sensor.txt", &stub.run(&["trigger", key]).succeeded().out);
    let mut fired = trigger.clone();
    fired["sensor"] = json!({ "task": 456 });
    fired["triggerStatus"] = "TRIGGERING".into();
    fired["instance"] = Value::Null;
    let listed = json!({ "items": [trigger, fired], "next": null });
    stub.fix("GET /projects/7/asset-trigger-history", 200, listed);
    golden("triggers-sensor.txt", &stub.run(&["triggers"]).succeeded().out);
}
