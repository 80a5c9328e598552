//! Idempotency keys: one call for each, on every route that changes something.

use lakebell_domain::access::Right;
use lakebell_engine::ErrorKind;
use lakebell_engine::access::Carried;
use lakebell_push_api::event::GatewayResponse;
use lakebell_push_api::routes::{Needs, ROUTES};
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::support::{Api, ORDERS, PROJECT, TARGETS, TOKEN, body, golden, rest_event, target};

async fn with_key(api: &Api, key: &str, method: &str, path: &str, body: &Value) -> GatewayResponse {
    let mut event = rest_event(method, path, Some(&body.to_string()));
    event["headers"]["Idempotency-Key"] = json!(key);
    api.raw(event).await
}

fn is_replayed(answer: &GatewayResponse) -> bool {
    answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true")
}

#[tokio::test]
async fn the_same_call_is_carried_out_once() {
    let api = Api::with_orders().await;
    let declared = with_key(&api, "a", "POST", TARGETS, &target("dwd", 5)).await;
    assert_eq!((declared.status_code, is_replayed(&declared)), (201, false));
    let calls = api.world.tap.total();
    let again = with_key(&api, "a", "POST", TARGETS, &target("dwd", 5)).await;
    assert_eq!((again.status_code, &again.body, is_replayed(&again)), (201, &declared.body, true));
    assert_eq!(api.world.tap.total() - calls, 1, "a repeated call costs one read");
    // Without the key it is a call of its own.
    assert_eq!(api.post(TARGETS, &target("dwd", 5)).await.status_code, 200);
    // What it did may be gone meanwhile: the key still stands for the first call.
    assert_eq!(with_key(&api, "b", "DELETE", &format!("{TARGETS}/dwd"), &Value::Null).await.status_code, 204);
    let again = with_key(&api, "b", "DELETE", &format!("{TARGETS}/dwd"), &Value::Null).await;
    assert_eq!((again.status_code, is_replayed(&again)), (204, true));
    assert_eq!(api.delete(&format!("{TARGETS}/dwd")).await.status_code, 404);
}

#[tokio::test]
async fn a_key_is_for_one_call() {
    let api = Api::with_orders().await;
    assert_eq!(with_key(&api, "a", "POST", TARGETS, &target("dwd", 5)).await.status_code, 201);
    golden("error-idempotency-key-reused", &with_key(&api, "a", "POST", TARGETS, &target("dwd", 6)).await);
    for path in ["/projects/8/asset-dependencies", "/projects/7/asset-events"] {
        assert_eq!(with_key(&api, "a", "POST", path, &target("dwd", 5)).await.status_code, 422, "{path}");
    }
    // Another token's keys are others.
    let token = api.make_token(None, &[Right::Declare], Carried::Header).await;
    let mut event = rest_event("POST", TARGETS, Some(&target("other", 6).to_string()));
    event["headers"] = json!({"X-Api-Key": token, "Idempotency-Key": "a"});
    assert_eq!(api.raw(event).await.status_code, 201);
}

/// In binary mode an event is in the headers, and two may have the same data.
#[tokio::test]
async fn a_key_is_for_one_event_in_binary_mode_too() {
    let api = Api::with_orders().await;
    let send = async |id: &str, kind: &str, reversed: bool| {
        let data = json!({"asset": ORDERS, "check": "rows", "snapshotId": "2"});
        let mut request = rest_event("POST", "/projects/7/asset-events", Some(&data.to_string()));
        let mut attributes = [
            ("ce-specversion", "1.0"),
            ("ce-id", id),
            ("ce-source", "dq://nightly"),
            ("ce-type", kind),
            ("ce-time", "2026-01-15T10:04:12Z"),
            ("Idempotency-Key", "k"),
        ];
        if reversed {
            attributes.reverse();
        }
        for (name, value) in attributes {
            request["headers"].as_object_mut().unwrap().insert(name.to_owned(), json!(value));
        }
        api.raw(request).await
    };
    let first = send("1", "io.lakebell.quality.check.passed.v1", false).await;
    assert_eq!(first.status_code, 202, "{}", first.body);
    let again = send("1", "io.lakebell.quality.check.passed.v1", true).await;
    assert_eq!((again.status_code, is_replayed(&again)), (202, true), "{}", again.body);
    for (id, kind) in [("2", "io.lakebell.quality.check.passed.v1"), ("1", "io.lakebell.quality.check.failed.v1")] {
        let other = send(id, kind, false).await;
        assert_eq!(other.status_code, 422, "another event, and told: {}", other.body);
    }
}

#[tokio::test]
async fn a_call_that_failed_leaves_its_key() {
    let api = Api::with_orders().await;
    assert_eq!(with_key(&api, "a", "POST", TARGETS, &json!({"name": "x"})).await.status_code, 400);
    assert_eq!(with_key(&api, "a", "POST", TARGETS, &target("dwd", 5)).await.status_code, 201);
    api.world.tap.fault(Op::Query, 1, Fault::Before(ErrorKind::Unavailable));
    let rotate = json!({"on": false});
    let first = with_key(&api, "b", "PUT", &format!("{PROJECT}/switch"), &rotate).await.status_code;
    let second = with_key(&api, "b", "PUT", &format!("{PROJECT}/switch"), &rotate).await.status_code;
    assert!([200, 503].contains(&first) && second == 200, "{first} {second}");
}

#[tokio::test]
async fn a_call_that_runs_is_not_carried_out_beside_itself() {
    let api = Api::with_orders().await;
    // The function dies before it can keep the answer: the write that would is lost.
    let puts = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders"});
    let path = format!("{PROJECT}/assets");
    let mut writes_before_the_last = 0;
    loop {
        writes_before_the_last += 1;
        let key = format!("k{writes_before_the_last}");
        api.world.tap.fault(Op::Write, writes_before_the_last, Fault::Before(ErrorKind::Unavailable));
        let answer = with_key(&api, &key, "POST", &path, &puts).await;
        if answer.status_code == 200 {
            let again = with_key(&api, &key, "POST", &path, &puts).await;
            golden("error-idempotency-running", &again);
            api.wait(60);
            let taken_over = with_key(&api, &key, "POST", &path, &puts).await;
            assert_eq!((taken_over.status_code, is_replayed(&taken_over)), (200, false));
            break;
        }
        assert!(writes_before_the_last < 10);
    }
}

#[tokio::test]
async fn answers_are_kept_for_a_day() {
    let api = Api::with_orders().await;
    with_key(&api, "a", "POST", TARGETS, &target("dwd", 5)).await;
    api.wait(24 * 3_600 - 1);
    assert!(is_replayed(&with_key(&api, "a", "POST", TARGETS, &target("dwd", 5)).await));
    api.wait(1);
    let answer = with_key(&api, "a", "POST", TARGETS, &target("dwd", 6)).await;
    assert_eq!((answer.status_code, is_replayed(&answer)), (201, false));
}

#[tokio::test]
async fn keys_are_checked() {
    let api = Api::new();
    for key in ["", "ä", "a\nb", &"x".repeat(256)] {
        let answer = with_key(&api, key, "PUT", "/switch", &json!({"on": true})).await;
        assert_eq!((answer.status_code, &body(&answer)["field"]), (400, &json!("Idempotency-Key")), "{key}");
    }
}

/// A secret is shown once, also to whoever repeats the call.
#[tokio::test]
async fn a_secret_is_not_kept() {
    let api = Api::new();
    let asked = json!({"name": "flink", "rights": ["evidence"]});
    let made = with_key(&api, "a", "POST", "/projects/7/tokens", &asked).await;
    assert_eq!(made.status_code, 201);
    let again = with_key(&api, "a", "POST", "/projects/7/tokens", &asked).await;
    golden("error-idempotency-answer-gone", &again);
    let secret = body(&made)["token"].as_str().unwrap().rsplit('_').next().unwrap().to_owned();
    for item in api.world.items.dump() {
        assert!(!item.doc.contains(&secret), "{:?} holds a secret", item.key);
    }
}

/// Each route that changes something takes keys; no call of one that reads leaves a record.
#[tokio::test]
async fn every_write_takes_a_key() {
    let api = Api::new();
    for route in ROUTES {
        let path = route.template.replace("{p}", "7").replace("{assetKey}", "paimon%3A%2F%2Fa%2Fb");
        let mut event = rest_event(route.method, &path.replace(['{', '}'], ""), None);
        event["headers"] = json!({"Authorization": format!("Bearer {TOKEN}"), "Idempotency-Key": ""});
        let answer = api.raw(event).await;
        let said = if answer.body.is_empty() { Value::Null } else { body(&answer)["field"].clone() };
        let is_path = matches!(route.needs, Needs::PathToken(_));
        let refused = said == "Idempotency-Key";
        assert!(is_path || !route.is_write() || refused, "{} {}: {answer:?}", route.method, route.template);
    }
}
