//! Fire, reset, pass over, replay, and the switches.

use serde_json::{Value, json};

use crate::operate::{commit, triggers, with_target, with_trigger};
use crate::support::{Api, ORDERS, TARGETS, body, golden, logged, target};

fn path(verb: &str) -> String {
    format!("{TARGETS}/dwd/{verb}")
}

async fn verdict(api: &Api) -> Value {
    body(&api.get(&format!("{TARGETS}/dwd")).await)["items"][0]["evaluation"].clone()
}

#[tokio::test]
async fn a_target_is_fired_once_for_a_request() {
    let api = with_target().await;
    let request = json!({"requestId": "2026-01-01/ana", "by": "ana"});
    let fired = api.post(&path("fire"), &request).await;
    golden("target-fired", &fired);
    assert_eq!(body(&api.post(&path("fire"), &request).await)["key"], body(&fired)["key"], "the same start");
    assert_eq!((triggers(&api).await.len(), api.dispatched()), (1, 1));
    // Another request, while the first is under way.
    golden("error-fire-in-flight", &api.post(&path("fire"), &json!({"requestId": "again"})).await);
    assert!(logged().lines().any(|line| line.contains("target fired by hand") && line.contains("ana")));
}

#[tokio::test]
async fn what_may_not_start_is_not_fired() {
    let api = with_target().await;
    api.post(&path("pause"), &json!({"by": "ana"})).await;
    let refused = api.post(&path("fire"), &json!({"requestId": "1"})).await;
    assert_eq!((refused.status_code, &body(&refused)["code"]), (409, &json!("CONFLICT")));
    assert!(body(&refused)["detail"].as_str().unwrap().contains("paused by ana"), "{refused:?}");
    api.post(&path("resume"), &json!({})).await;
    api.put("/projects/7/switch", &json!({"on": false})).await;
    assert_eq!(api.post(&path("fire"), &json!({"requestId": "1"})).await.status_code, 409);
    assert!(triggers(&api).await.is_empty());
}

#[tokio::test]
async fn a_target_is_reset_and_what_it_took_counts_again() {
    let (api, key) = with_trigger().await;
    golden("error-reset-in-flight", &api.post(&path("reset"), &json!({"by": "ana"})).await);
    api.post(&format!("/projects/7/asset-trigger-history/{key}/skip"), &json!({})).await;
    let reset = api.post(&path("reset"), &json!({"by": "ana"})).await;
    golden("target-reset", &reset);
    assert_eq!(body(&reset)["claimed"], Value::Null, "it begins from now");
    commit(&api, 4).await;
    assert_eq!(triggers(&api).await[0]["generation"], 2);
}

#[tokio::test]
async fn what_is_there_is_passed_over() {
    let api = with_target().await;
    api.put("/projects/7/switch", &json!({"on": false})).await;
    commit(&api, 3).await;
    golden("target-passed-over", &api.post(&path("pass-over"), &json!({"assetKey": ORDERS, "by": "ana"})).await);
    api.put("/projects/7/switch", &json!({"on": true})).await;
    assert_eq!(verdict(&api).await["reason"]["code"], "NO_NEW_VERSION");
    // All of its assets, without a body.
    assert_eq!(api.send("POST", &path("pass-over"), None).await.status_code, 200);

    api.register("paimon://ods_db/payments", "payments").await;
    let other = api.post(&path("pass-over"), &json!({"assetKey": "paimon://ods_db/payments"})).await;
    golden("error-pass-over-other", &other);
    let unknown = api.post(&path("pass-over"), &json!({"assetKey": "paimon://ods_db/nothing"})).await;
    assert_eq!(unknown.status_code, 404, "{unknown:?}");
}

#[tokio::test]
async fn a_history_is_replayed_for_a_declared_target_and_for_one_that_is_not() {
    let (api, _) = with_trigger().await;
    let declared = api.get(&path("replay")).await;
    golden("target-replayed", &declared);
    let mut spec = target("dwd", 4711);
    let answer = api.post("/projects/7/replay", &spec).await;
    assert_eq!((answer.status_code, &body(&answer)["starts"]), (200, &body(&declared)["starts"]), "{answer:?}");
    assert_eq!((triggers(&api).await.len(), api.dispatched()), (1, 1), "a replay starts nothing");
    spec["groups"][0]["dependencies"][0]["asset"] = json!("paimon://ods_db/nothing");
    let unknown = api.post("/projects/7/replay", &spec).await;
    assert_eq!((unknown.status_code, &body(&unknown)["code"]), (404, &json!("NOT_FOUND")), "{unknown:?}");
    let malformed = api.post("/projects/7/replay", &json!({"groups": []})).await;
    assert_eq!((malformed.status_code, &body(&malformed)["code"]), (400, &json!("INVALID")));
}

#[tokio::test]
async fn switches_stop_and_let_go() {
    let api = with_target().await;
    golden("switch-on", &api.get("/projects/7/switch").await);
    golden("switch-off", &api.put("/projects/7/switch", &json!({"on": false, "by": "ana"})).await);
    commit(&api, 3).await;
    assert_eq!(verdict(&api).await["reason"]["code"], "SWITCHED_OFF");
    assert_eq!(body(&api.get("/switch").await), json!({"scope": "global", "on": true}), "its own");
    let global = body(&api.put("/switch", &json!({"on": false})).await);
    assert_eq!((&global["scope"], &global["off"]["by"]), (&json!("global"), &json!("deployment")));
    for switch in ["/projects/7/switch", "/switch"] {
        assert!(triggers(&api).await.is_empty());
        assert_eq!(body(&api.put(switch, &json!({"on": true})).await)["on"], true);
        assert_eq!(body(&api.put(switch, &json!({"on": true})).await)["on"], true, "twice");
    }
    assert_eq!(verdict(&api).await["verdict"], "READY", "nothing was lost; the watcher evaluates it");
}

#[tokio::test]
async fn wrong_bodies_of_the_verbs_name_the_field() {
    let api = with_target().await;
    let table = [
        ("POST", path("fire"), json!({}), "requestId"),
        ("POST", path("fire"), json!({"requestId": ""}), "requestId"),
        ("POST", path("fire"), json!({"requestId": "a b"}), "requestId"),
        ("POST", path("fire"), json!({"requestId": "x".repeat(129)}), "requestId"),
        ("POST", path("fire"), json!({"requestId": "1", "by": ""}), "by"),
        ("POST", path("fire"), json!({"requestId": "1", "why": "x"}), "why"),
        ("POST", path("reset"), json!({"by": "a\nb"}), "by"),
        ("POST", path("reset"), json!({"to": 3}), "to"),
        ("POST", path("pass-over"), json!({"assetKey": "orders"}), "assetKey"),
        ("POST", path("pass-over"), json!({"asset": ORDERS}), "asset"),
        ("PUT", "/switch".to_owned(), json!({}), "on"),
        ("PUT", "/switch".to_owned(), json!({"on": "yes"}), "on"),
        ("PUT", "/projects/7/switch".to_owned(), json!({"on": true, "by": " "}), "by"),
        ("PUT", "/projects/7/switch".to_owned(), json!([true]), "body"),
    ];
    for (method, path, wrong, field) in table {
        let answer = api.send(method, &path, Some(wrong.to_string())).await;
        let told = body(&answer);
        assert_eq!((answer.status_code, &told["code"]), (400, &json!("INVALID")), "{path} {wrong}: {told}");
        assert_eq!(told["field"], json!(field), "{path} {wrong}");
        assert!(told["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{path} {wrong}: {told}");
    }
    golden("error-request-id", &api.post(&path("fire"), &json!({"requestId": "a b"})).await);
    for path in [path("fire"), "/switch".to_owned(), "/projects/7/switch".to_owned(), "/projects/7/replay".to_owned()] {
        let method = if path.ends_with("switch") { "PUT" } else { "POST" };
        let answer = api.send(method, &path, None).await;
        assert_eq!((answer.status_code, &body(&answer)["field"]), (400, &json!("body")), "{path} without a body");
    }
}

#[tokio::test]
async fn verbs_on_targets_that_are_not_declared_are_not_found() {
    let api = with_target().await;
    for (verb, request) in [("fire", json!({"requestId": "1"})), ("reset", json!({})), ("pass-over", json!({}))] {
        for target in ["nobody", "4711"] {
            let answer = api.post(&format!("{TARGETS}/{target}/{verb}"), &request).await;
            let told = body(&answer);
            assert_eq!((answer.status_code, &told["field"]), (404, &json!("target")), "{target} {verb}");
            assert!(told["hint"].as_str().is_some(), "{told}");
        }
        let other = api.post(&format!("/projects/8/asset-dependencies/dwd/{verb}"), &request).await;
        assert_eq!(other.status_code, 404, "{verb} of another project");
        assert_eq!(api.get(&path(verb)).await.status_code, 405, "{verb}");
    }
    assert_eq!(api.get(&format!("{TARGETS}/nobody/replay")).await.status_code, 404);
    assert!(triggers(&api).await.is_empty());
}
