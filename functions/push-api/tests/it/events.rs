//! Push and list events.

use lakebell_engine::ErrorKind;
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::operate;
use crate::support::{Api, ORDERS, PROJECT, body, cloud_event, golden, target, workspace};

const EVENTS: &str = "/projects/7/asset-events";
const LISTED: &str = "/projects/7/asset-events?assetKey=paimon%3A%2F%2Fods_db%2Forders";

fn commit(id: &str, snapshot: u64) -> Value {
    cloud_event(id, "snapshot.committed", &json!({"asset": ORDERS, "snapshotId": snapshot}))
}

#[tokio::test]
async fn a_pushed_commit_advances_and_starts() {
    let api = Api::with_orders().await;
    api.post(&format!("{PROJECT}/asset-dependencies"), &target("dwd", 4711)).await;
    api.load_orders();
    golden("event-stored", &api.post(EVENTS, &commit("1", 3)).await);
    assert_eq!(api.dispatched(), 1);
    // The same commit by another event: the state has it already. The same event is stored once.
    golden("event-duplicate", &api.post(EVENTS, &commit("2", 3)).await);
    golden("event-again", &api.post(EVENTS, &commit("1", 3)).await);
    let metrics = api.metrics();
    for measured in [
        "lakehouse_asset_event_received_total paimon",
        "lakehouse_asset_state_updated_total paimon advanced",
        "lakehouse_asset_event_deduplicated_total paimon",
        "lakehouse_asset_dependency_ready_total",
        "lakehouse_asset_dependency_blocked_by waiting",
    ] {
        assert!(metrics.iter().any(|line| line == measured), "{measured}: {metrics:?}");
    }
}

#[tokio::test]
async fn a_commit_that_storage_does_not_show_is_kept_and_moves_nothing() {
    let api = Api::with_orders().await;
    golden("event-not-visible", &api.post(EVENTS, &commit("1", 99)).await);
    golden("events", &api.get(LISTED).await);
}

#[tokio::test]
async fn events_are_listed_newest_first_page_by_page() {
    let api = Api::with_orders().await;
    api.world.clock.advance(std::time::Duration::from_secs(1));
    api.load_orders();
    api.post(EVENTS, &commit("1", 4)).await;
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let page = body(&api.get(&format!("{LISTED}&limit=1{after}")).await);
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["recordedAt"].as_str().unwrap().to_owned()),
        );
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert!(seen.len() >= 3, "{seen:?}");
    assert!(seen.windows(2).all(|pair| pair[0] >= pair[1]), "{seen:?}");
    assert_eq!(body(&api.get(EVENTS).await)["field"], "assetKey");
    assert_eq!(api.get(&LISTED.replace("orders", "nobody")).await.status_code, 404);
}

#[tokio::test]
async fn an_event_about_an_unknown_table_is_stored_and_its_table_remembered() {
    let api = Api::new();
    let by_key = cloud_event("1", "snapshot.committed", &json!({"asset": "paimon://ods_db/nobody", "snapshotId": "1"}));
    golden("event-unknown-asset", &api.post(EVENTS, &by_key).await);
    let by_place = cloud_event("2", "snapshot.committed", &json!({"location": "s3://lake/warehouse/ods_db.db/nobody"}));
    assert_eq!(body(&api.post(EVENTS, &by_place).await)["outcome"], "unknown");
    let seen = body(&api.get(&format!("{PROJECT}/unregistered-assets")).await);
    let seen = [&seen["items"][0]["location"], &seen["items"][1]["location"]];
    assert_eq!(seen, ["paimon://ods_db/nobody", "s3://lake/warehouse/ods_db.db/nobody"]);
    for format in ["paimon", "unknown"] {
        let refused = format!("lakehouse_asset_event_invalid_total {format} UNKNOWN_ASSET");
        assert_eq!(api.metrics().iter().filter(|line| **line == refused).count(), 1, "{refused}");
    }
}

#[tokio::test]
async fn one_bad_event_does_not_fail_its_batch() {
    let api = Api::with_orders().await;
    api.load_orders();
    let batch = json!([
        commit("1", 3),
        commit("2", 4),
        cloud_event("3", "quality.check.passed", &json!({"asset": ORDERS})),
        cloud_event("4", "snapshot.committed", &json!({"asset": "orders"})),
        {"specversion": "1.0", "id": "5"},
        "nonsense",
        cloud_event("7", "tag.created", &json!({"asset": ORDERS})),
        cloud_event("8", "tag.created", &json!({"asset": ORDERS, "tag": "nightly"})),
        cloud_event("9", "watermark.advanced", &json!({"asset": ORDERS})),
        cloud_event("10", "snapshot.committed", &json!({"asset": "paimon://ods_db/nobody"})),
        cloud_event("11", "snapshot.committed", &json!({"asset": ORDERS, "watermark": 1})),
    ]);
    golden("events-accepted", &api.send("POST", EVENTS, Some(batch.to_string())).await);
    golden("event-batch", &api.post(EVENTS, &batch).await);
    assert!(api.metrics().iter().any(|line| line == "lakehouse_asset_event_invalid_total unknown INVALID"));
    assert_eq!(body(&api.post(EVENTS, &json!([])).await)["items"], json!([]));
}

#[tokio::test]
async fn single_events_that_are_wrong_name_the_field() {
    let api = Api::with_orders().await;
    let old = cloud_event("1", "snapshot.committed", &json!({"asset": "orders"}));
    golden("error-event-asset", &api.post(EVENTS, &old).await);
    let kind = cloud_event("1", "quality.check.passed", &json!({"asset": ORDERS}));
    golden("error-event-kind", &api.post(EVENTS, &kind).await);
    let hint = cloud_event("1", "table.touched", &json!({"asset": ORDERS}));
    assert_eq!(body(&api.post(EVENTS, &hint).await)["field"], "type");
    assert_eq!(body(&api.post(EVENTS, &json!(5)).await)["code"], "INVALID");
}

#[tokio::test]
async fn batches_are_bounded() {
    let api = Api::new();
    let many: Vec<Value> = (0..501).map(|n| json!({"id": n.to_string()})).collect();
    golden("error-batch-too-large", &api.post(EVENTS, &json!(many)).await);
    let most: Vec<Value> = many.into_iter().skip(1).collect();
    let response = api.post(EVENTS, &json!(most)).await;
    assert_eq!((response.status_code, body(&response)["items"].as_array().unwrap().len()), (200, 500));
}

#[tokio::test]
async fn what_may_succeed_later_says_so() {
    let api = Api::with_orders().await;
    // Fifty are written at once: those of one write fail together.
    let many: Vec<Value> = (0..51).map(|n| commit(&format!("m{n}"), 2)).collect();
    api.world.tap.fault(Op::Write, 1, Fault::Before(ErrorKind::Unavailable));
    let found = body(&api.post(EVENTS, &json!(many)).await);
    let retryable = found["items"].as_array().unwrap().iter().filter(|item| item["retryable"] == true).count();
    assert_eq!(retryable, 50, "{found}");
    // All fail: the batch does.
    api.world.tap.fault(Op::Write, 1, Fault::Before(ErrorKind::Unavailable));
    let response = api.post(EVENTS, &json!([commit("1", 3), commit("2", 3)])).await;
    assert_eq!((response.status_code, response.headers["retry-after"].as_str()), (503, "2"));
    api.world.tap.fault(Op::Write, 1, Fault::Before(ErrorKind::Unavailable));
    assert_eq!(api.post(EVENTS, &commit("1", 3)).await.status_code, 503);
}

#[tokio::test]
async fn sample_payloads_are_answered_as_their_names_say() {
    let folder = workspace().join("events/push-api");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (api, key) = operate::world_of(&name).await;
        let text = std::fs::read_to_string(&path).unwrap().replace("<token>", crate::support::TOKEN);
        let text = text.replace(operate::SAMPLE_KEY, &key);
        let response = api.raw(serde_json::from_str(&text).unwrap()).await;
        let expected = if name.contains("unauthenticated") { 401..402 } else { 200..300 };
        assert!(expected.contains(&response.status_code), "{name}: {response:?}");
        count += 1;
    }
    assert!(count >= 8);
}
