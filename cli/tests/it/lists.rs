//! Lists and details, from answers as the API gives them.

use serde_json::{Value, json};

use crate::stub::Stub;
use crate::support::golden;

const KEY: &str = "00000000000000000000000000000abc";

fn trigger(at: usize) -> Value {
    let version = |id: u64| json!({ "epoch": 0, "ordinal": id, "fingerprint": "f", "snapshotId": id.to_string() });
    json!({
        "key": format!("{at:032x}"), "target": "7/dwd", "triggerStatus": "SUCCESS", "workflow": 5, "instance": 900 + at,
        "connection": "default", "reason": "ready", "claimedAt": "2026-01-01T00:00:00Z", "attempt": 1, "trace": "t1",
        "status": { "step": "success", "assumed": false },
        "ranges": [
            { "key": "paimon://d/orders", "aliases": ["orders"], "from": version(3), "to": version(5) },
            { "key": "paimon://d/payments", "aliases": ["payments"], "from": null, "to": version(2) },
        ],
        "parameters": { "lakebell_orders_to": "5" },
        "log": [{ "at": "2026-01-01T00:00:00Z", "arrow": "claim" }, { "at": "2026-01-01T00:00:01Z", "arrow": "succeed", "detail": "instance 901" }],
    })
}

#[test]
fn pages_are_read_up_to_the_limit() {
    let stub = Stub::start();
    let page: Vec<Value> = (0..200).map(trigger).collect();
    let route = "GET /projects/7/asset-trigger-history";
    stub.fix(&format!("{route}?limit=200"), 200, json!({ "items": page, "next": "n 1" }));
    stub.fix(&format!("{route}?limit=50&after=n+1"), 200, json!({ "items": &page[..50], "next": "more" }));
    let run = stub.run(&["triggers", "--limit", "250", "--json"]).succeeded();
    assert_eq!(run.json()["items"].as_array().unwrap().len(), 250);
    assert_eq!(stub.calls().len(), 2);
    stub.fix(
        &format!("{route}?limit=2&target=dwd&status=SUCCESS"),
        200,
        json!({ "items": &page[..2], "next": "more" }),
    );
    let run = stub.run(&["triggers", "--limit", "2", "--target", "dwd", "--status", "success"]).succeeded();
    golden("triggers.txt", &run.out);
}

#[test]
fn a_page_that_is_too_large_is_asked_for_in_parts() {
    let stub = Stub::start();
    let route = "GET /projects/7/assets";
    let problem = json!({ "title": "The input is wrong", "code": "ANSWER_TOO_LARGE", "detail": "too large" });
    stub.fix(&format!("{route}?limit=200"), 400, problem);
    let asset = |key: &str| json!({ "key": key, "project": 7, "location": "s3://lake/t" });
    stub.fix(&format!("{route}?limit=100"), 200, json!({ "items": [asset("paimon://d/a")], "next": "x" }));
    stub.fix(&format!("{route}?limit=100&after=x"), 200, json!({ "items": [asset("paimon://d/b")], "next": null }));
    let run = stub.run(&["assets", "--json"]).succeeded();
    assert_eq!(run.json()["items"].as_array().unwrap().len(), 2);
}

#[test]
fn lineage_is_a_table_of_edges() {
    let stub = Stub::start();
    let edge = |steps: u8, from: &str, to: &str, via: &str| json!({ "steps": steps, "from": from, "to": to, "via": via, "lastSeen": "2026-01-01T00:00:00Z" });
    let answer = json!({
        "asset": "paimon://d/orders",
        "edges": [
            edge(1, "s3://raw/clicks", "paimon://d/orders", "job spark/clicks"),
            edge(1, "paimon://d/orders", "paimon://d/sums", "target 7/dwd"),
        ],
        "targets": [{ "asset": "paimon://d/orders", "target": "7/dwd", "writes": ["paimon://d/sums"],
            "warnings": ["self-loop: the workflow writes paimon://d/sums, which starts it"] }],
        "isCut": true,
    });
    let path = "GET /projects/7/assets/paimon%3A%2F%2Fd%2Forders/lineage";
    stub.fix(&format!("{path}?direction=both"), 200, answer);
    golden("lineage.txt", &stub.run(&["lineage", "paimon://d/orders"]).succeeded().out);
    let empty = json!({ "asset": "paimon://d/orders", "edges": [], "targets": [], "isCut": false });
    stub.fix(&format!("{path}?direction=upstream"), 200, empty);
    let run = stub.run(&["lineage", "paimon://d/orders", "--upstream"]).succeeded();
    assert!(run.out.contains("No lineage has been reported."), "{}", run.out);
}

#[test]
fn a_window_and_what_did_not_hold_are_shown() {
    let stub = Stub::start();
    let mut trigger = trigger(0xabc);
    trigger["reason"] = "deadline".into();
    trigger["window"] = json!({
        "start": "2025-12-31T16:00:00Z", "end": "2026-01-01T16:00:00Z", "businessDate": "2026-01-01",
    });
    trigger["unmet"] = json!([{
        "code": "QUALITY_NOT_PASSED", "asset": "paimon://d/orders", "expected": "a version that passed",
        "actual": "snapshot 5 has no verdict", "unblock": "report a verdict",
    }]);
    trigger["ranges"][0]["tag"] = "daily-1".into();
    trigger["ranges"][0]["failedVersions"] =
        json!([{ "epoch": 0, "ordinal": 4, "fingerprint": "f", "snapshotId": "4" }]);
    trigger["ranges"][0]["hasBackfill"] = true.into();
    stub.fix(&format!("GET /projects/7/asset-trigger-history/{KEY}"), 200, trigger.clone());
    golden("trigger-forced.txt", &stub.run(&["trigger", KEY]).succeeded().out);
    trigger["followed"] = json!({ "state": "RUNNING", "since": "2026-01-01T00:00:01Z", "runs": 1 });
    let list = json!({ "items": [trigger], "next": null });
    stub.fix("GET /projects/7/asset-trigger-history?limit=50", 200, list);
    golden("triggers-forced.txt", &stub.run(&["triggers"]).succeeded().out);
}

#[test]
fn a_trigger_is_shown_with_its_way() {
    let stub = Stub::start();
    let mut trigger = trigger(0xabc);
    trigger["extraInstances"] = json!([3650]);
    trigger["followed"] = json!({
        "state": "FAILURE", "since": "2026-01-01T00:00:01Z", "toldAt": "2026-01-01T00:09:00Z", "runs": 1,
        "startedAt": "2026-01-01T00:00:02Z", "endedAt": "2026-01-01T00:08:00Z",
    });
    stub.fix(&format!("GET /projects/7/asset-trigger-history/{KEY}"), 200, trigger);
    golden("trigger.txt", &stub.run(&["trigger", KEY]).succeeded().out);
}

#[test]
fn an_asset_is_shown_with_its_state() {
    let stub = Stub::start();
    let version = json!({ "epoch": 1, "ordinal": 5, "fingerprint": "f", "snapshot_id": "5" });
    let register = json!({ "version": version, "count": 3, "deltaRecords": 9, "since": "2026-01-01T00:00:00Z" });
    let answer = json!({
        "id": KEY, "key": "paimon://d/orders", "project": 7, "location": "s3://lake/orders", "rev": 12,
        "registeredAt": "2026-01-01T00:00:00Z",
        "state": {
            "epoch": 1, "table": version, "data": register, "kinds": { "APPEND": register },
            "watermark": { "at": 1_700_000_000_000_i64, "version": null, "since": "2026-01-01T00:00:00Z" },
            "schema": { "current": 2 },
            "tags": { "day-1": { "position": { "epoch": 1, "ordinal": 4 }, "fingerprint": "f", "snapshotId": "4" } },
            "trouble": { "code": "DAMAGED", "detail": "snapshot-6: no JSON", "since": "2026-01-02T00:00:00Z" },
        },
    });
    stub.fix("GET /projects/7/assets/paimon%3A%2F%2Fd%2Forders/state", 200, answer.clone());
    golden("asset.txt", &stub.run(&["assets", "paimon://d/orders"]).succeeded().out);
    assert_eq!(stub.run(&["assets", "paimon://d/orders", "--json"]).succeeded().json(), answer);
}

#[test]
fn an_iceberg_table_is_shown_with_its_catalog_or_that_it_has_none() {
    let stub = Stub::start();
    let shown = |catalog: Option<serde_json::Value>| {
        let answer = json!({
            "id": KEY, "key": "iceberg://d/t", "project": 7, "location": "s3://lake/t", "rev": 1,
            "registeredAt": "2026-01-01T00:00:00Z", "settings": catalog.as_ref().map_or(json!({}), |it| json!({ "catalog": it })), "state": {},
        });
        stub.fix("GET /projects/7/assets/iceberg%3A%2F%2Fd%2Ft/state", 200, answer);
        stub.run(&["assets", "iceberg://d/t"]).succeeded().out
    };
    let text = shown(None);
    assert!(text.contains("catalog") && text.contains("none is asked: what the metadata files say"), "{text}");
    let rest = json!({ "type": "rest", "url": "https://c.internal/api", "warehouse": "w", "secret": "hidden" });
    let text = shown(Some(rest));
    assert!(text.contains("rest https://c.internal/api, warehouse w") && !text.contains("hidden"), "{text}");
    assert!(shown(Some(json!("glue"))).contains("glue"));
    assert!(shown(Some(json!({ "type": "of the future" }))).contains("of the future"));
}

#[test]
fn events_observe_and_accept_rewrite_say_what_came_of_it() {
    let stub = Stub::start();
    let event = json!({
        "kind": "SNAPSHOT_COMMITTED", "source": "NOTIFY", "outcome": "advanced", "recordedAt": "2026-01-01T00:00:00Z",
        "commit": { "snapshotId": "5", "commitKind": "APPEND" },
    });
    let ignored = json!({
        "kind": "SNAPSHOT_COMMITTED", "source": "PUSH", "outcome": "ignored", "reason": "snapshot 9 is not visible in storage",
        "recordedAt": "2026-01-01T00:00:01Z", "detail": "event 1 of flink",
    });
    stub.fix("GET /projects/7/asset-events", 200, json!({ "items": [ignored, event], "next": null }));
    golden("events.txt", &stub.run(&["events", "paimon://d/orders"]).succeeded().out);
    let route = "POST /projects/7/assets/paimon%3A%2F%2Fd%2Forders";
    stub.fix(
        &format!("{route}/observe"),
        200,
        json!({ "outcomes": [{ "kind": "SNAPSHOT_COMMITTED", "outcome": "advanced" }], "state": {} }),
    );
    let run = stub.run(&["observe", "paimon://d/orders"]).succeeded();
    assert!(run.out.starts_with("KIND                OUTCOME   REASON\nSNAPSHOT_COMMITTED  advanced\n"), "{}", run.out);
    stub.fix(&format!("{route}/accept-rewrite"), 200, json!({ "state": {} }));
    let run = stub.run(&["accept-rewrite", "paimon://d/orders"]).succeeded();
    assert!(run.out.starts_with("The rewrite of paimon://d/orders is accepted.\n"), "{}", run.out);
}

#[test]
fn an_empty_list_says_what_to_do() {
    let stub = Stub::start();
    assert!(stub.run(&["assets"]).succeeded().out.contains("lakebell apply"));
    assert!(stub.run(&["why"]).succeeded().out.contains("lakebell apply"));
    assert_eq!(stub.run(&["assets", "--json"]).succeeded().json(), json!({ "items": [] }));
}

#[test]
fn each_kind_is_deleted_by_its_own_route() {
    let stub = Stub::start();
    stub.fix("DELETE /warehouses", 204, Value::Null);
    stub.run(&["delete", "asset", "paimon://d/orders"]).succeeded();
    stub.run(&["delete", "target", "dwd"]).succeeded();
    stub.run(&["delete", "connection", "default"]).succeeded();
    stub.run(&["delete", "warehouse", "s3a://lake/wh/"]).succeeded();
    let expected = [
        "DELETE /projects/7/assets/paimon%3A%2F%2Fd%2Forders",
        "DELETE /projects/7/asset-dependencies/dwd",
        "DELETE /connections/default",
        "DELETE /warehouses?location=s3%3A%2F%2Flake%2Fwh",
    ];
    assert_eq!(stub.calls(), expected);
}
