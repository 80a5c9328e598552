//! Trigger history.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Api, ORDERS, PROJECT, body, cloud_event, golden, target};

const HISTORY: &str = "/projects/7/asset-trigger-history";

/// Three targets, each with its trigger, claimed at one commit.
async fn with_triggers() -> Api {
    let api = Api::with_orders().await;
    for (name, workflow) in [("a", 1), ("b", 1), ("c", 2)] {
        api.post(&format!("{PROJECT}/asset-dependencies"), &target(name, workflow)).await;
    }
    api.world.clock.advance(Duration::from_secs(1));
    api.load_orders();
    let event = cloud_event("1", "snapshot.committed", &json!({"asset": ORDERS, "snapshotId": 4}));
    assert_eq!(api.post(&format!("{PROJECT}/asset-events"), &event).await.status_code, 202);
    assert_eq!(api.dispatched(), 3);
    api
}

async fn targets(api: &Api, query: &str) -> Vec<Value> {
    let found = body(&api.get(&format!("{HISTORY}{query}")).await);
    let mut targets: Vec<Value> =
        found["items"].as_array().unwrap().iter().map(|item| item["target"].clone()).collect();
    targets.sort_by_key(ToString::to_string);
    targets
}

#[tokio::test]
async fn triggers_are_shown_and_filtered() {
    let api = with_triggers().await;
    assert_eq!(targets(&api, "").await, ["7/a", "7/b", "7/c"]);
    assert_eq!(targets(&api, "?workflow=1").await, ["7/a", "7/b"]);
    assert_eq!(targets(&api, "?target=c").await, ["7/c"]);
    assert_eq!(targets(&api, "?target=7/c&status=triggering").await, ["7/c"]);
    assert!(targets(&api, "?status=FAILED").await.is_empty());
    golden("triggers", &api.get(&format!("{HISTORY}?target=c")).await);
    golden("error-status", &api.get(&format!("{HISTORY}?status=RUNNING")).await);
    assert!(body(&api.get("/projects/8/asset-trigger-history").await)["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn filtered_pages_tile_the_history() {
    let api = with_triggers().await;
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let page = body(&api.get(&format!("{HISTORY}?workflow=1&limit=1{after}")).await);
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 1);
        seen.extend(items.iter().map(|item| item["target"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    seen.sort();
    assert_eq!(seen, ["7/a", "7/b"]);
}

#[tokio::test]
async fn one_trigger_is_read_by_its_key() {
    let api = with_triggers().await;
    let listed = body(&api.get(&format!("{HISTORY}?target=c")).await);
    let key = listed["items"][0]["key"].as_str().unwrap().to_owned();
    let response = api.get(&format!("{HISTORY}/{key}")).await;
    golden("trigger", &response);
    assert_eq!(api.get(&format!("/projects/8/asset-trigger-history/{key}")).await.status_code, 404);
    golden("error-unknown-trigger", &api.get(&format!("{HISTORY}/0123456789abcdef0123456789abcdef")).await);
    let wrong = api.get(&format!("{HISTORY}/NOT-A-KEY")).await;
    assert_eq!((wrong.status_code, &body(&wrong)["field"]), (400, &json!("triggerKey")));
}

/// The extras of the trigger that is listed first.
async fn extras(api: &Api, query: &str) -> Value {
    let key = body(&api.get(&format!("{HISTORY}?target=c")).await)["items"][0]["key"].as_str().unwrap().to_owned();
    body(&api.get(&format!("{HISTORY}/{key}/extras{query}")).await)
}

#[tokio::test]
async fn what_writers_attached_is_read_by_the_key_of_the_trigger() {
    let api = with_triggers().await;
    let events = format!("{PROJECT}/asset-events");
    let attached = json!({"asset": ORDERS, "snapshotId": 4, "extra": {"rowCount": 12, "run": "r1"}});
    let checked = json!({"asset": ORDERS, "snapshotId": 4, "check": "rows", "runAt": "2026-01-01T00:00:00Z",
        "extra": {"seen": 12}});
    let later = json!({"asset": ORDERS, "snapshotId": 4, "extra": {"run": "r2", "more": true}});
    for (id, kind, data) in [
        ("e1", "snapshot.committed", attached),
        ("e2", "quality.check.passed", checked),
        ("e3", "snapshot.committed", later),
    ] {
        api.post(&events, &cloud_event(id, kind, &data)).await;
        api.work().await;
    }
    let listed = body(&api.get(&format!("{HISTORY}?target=c")).await);
    let key = listed["items"][0]["key"].as_str().unwrap().to_owned();
    let answer = api.get(&format!("{HISTORY}/{key}/extras")).await;
    golden("trigger-extras", &answer);
    let items = body(&answer)["items"].as_array().unwrap().clone();
    let of_commit = items.iter().find(|item| item["snapshotId"] == "4").unwrap();
    assert_eq!(
        of_commit["extra"],
        json!({"rowCount": 12, "run": "r1", "more": true}),
        "the first word on a name stays"
    );
    assert_eq!(items.iter().find(|item| item["kind"] == "QUALITY_CHECK_PASSED").unwrap()["extra"], json!({"seen": 12}));
    // Page by page.
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = extras(&api, &format!("?limit=1{after}")).await;
        seen.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(seen, items);
    let wrong = api.get(&format!("{HISTORY}/{key}/extras?after=eA")).await;
    assert_eq!((wrong.status_code, &body(&wrong)["field"]), (400, &json!("after")));
    assert_eq!(api.get(&format!("/projects/8/asset-trigger-history/{key}/extras")).await.status_code, 404);
}
