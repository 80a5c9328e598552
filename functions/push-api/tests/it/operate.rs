//! What an operator does to targets and triggers.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use lakebell_engine::dispatch::{Dispatcher, Order};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::scheduler::CheckOutcome;
use lakebell_testkit::{MemoryScheduler, StartFault};
use serde_json::{Value, json};

use crate::support::{Api, ORDERS_PREFIX, TARGETS, body, golden, logged, rest_event, target};

const HISTORY: &str = "/projects/7/asset-trigger-history";
const OBSERVE: &str = "/projects/7/assets/paimon%3A%2F%2Fods_db%2Forders/observe";
const NOBODY_KEY: &str = "0123456789abcdef0123456789abcdef";

/// The trigger that sample payloads name.
pub(crate) const SAMPLE_KEY: &str = "0cc8856cec89fdf8ab5f03897a89af68";

/// A world in which a sample payload of this name succeeds, and the trigger that it is about.
pub(crate) async fn world_of(sample: &str) -> (Api, String) {
    match sample {
        "redrive-trigger" => failed().await,
        "skip-trigger" => with_trigger().await,
        "decide-trigger" => held().await,
        "pause-target" | "resume-target" | "fire-target" | "reset-target" | "pass-over" => {
            (with_target().await, String::new())
        }
        "ask-sensor" => (crate::sensor::with_sensor(&serde_json::json!({})).await, String::new()),
        _ => (Api::with_orders().await, String::new()),
    }
}

/// `orders` at its second of four snapshots, and a target on it.
pub(crate) async fn with_target() -> Api {
    let api = Api::with_orders().await;
    assert_eq!(api.post(TARGETS, &target("dwd", 4711)).await.status_code, 201);
    api
}

/// The same, with a trigger queued for the third.
pub(crate) async fn with_trigger() -> (Api, String) {
    let api = with_target().await;
    commit(&api, 3).await;
    let key = triggers(&api).await[0]["key"].as_str().unwrap().to_owned();
    (api, key)
}

/// Puts a snapshot of the fixture and lets Lakebell look.
pub(crate) async fn commit(api: &Api, snapshot: u64) {
    let before = [3, 4].into_iter().filter(|later| *later > snapshot);
    api.load_orders();
    for later in before {
        api.world.storage.remove("lake", &format!("{ORDERS_PREFIX}snapshot/snapshot-{later}"));
    }
    assert_eq!(api.send("POST", OBSERVE, None).await.status_code, 200);
}

pub(crate) async fn triggers(api: &Api) -> Vec<Value> {
    body(&api.get(HISTORY).await)["items"].as_array().unwrap().clone()
}

/// Hands every message of the dispatch queue to a dispatcher.
pub(crate) async fn dispatch(api: &Api, scheduler: &Arc<MemoryScheduler>, messages: &[Message]) {
    for message in messages {
        let Message::Dispatch { target, trigger, attempt, trace } = message else { continue };
        let ports = api.world.quiet_ports();
        let order = Order { target: target.clone(), trigger: trigger.clone(), attempt: *attempt, trace: trace.clone() };
        let deadline = ports.clock.now() + SignedDuration::from_secs(30);
        Dispatcher { ports, scheduler: scheduler.clone() }.dispatch(&order, deadline).await.unwrap();
    }
}

/// A trigger whose start was refused for good.
async fn failed() -> (Api, String) {
    let (api, key) = with_trigger().await;
    let scheduler = Arc::new(MemoryScheduler::new());
    scheduler.fault(StartFault::Permanent);
    dispatch(&api, &scheduler, &api.world.queue.drain()).await;
    (api, key)
}

/// A trigger of which nobody can tell whether it started.
async fn held() -> (Api, String) {
    let (api, key) = with_trigger().await;
    let scheduler = Arc::new(MemoryScheduler::new());
    scheduler.fault(StartFault::TimesOut);
    let messages = api.world.queue.drain();
    for _ in 0..5 {
        dispatch(&api, &scheduler, &messages).await;
        scheduler.answer_check(CheckOutcome::Undecided { detail: "commands cannot be listed".into() });
        api.world.clock.advance(Duration::from_mins(5));
    }
    assert_eq!(triggers(&api).await[0]["status"]["held"], json!(true));
    (api, key)
}

#[tokio::test]
async fn a_target_is_paused_and_resumed() {
    let api = with_target().await;
    golden("target-paused", &api.post(&format!("{TARGETS}/dwd/pause"), &json!({"by": "ana"})).await);
    commit(&api, 3).await;
    assert!(triggers(&api).await.is_empty());
    // The first pause stands.
    let again = body(&api.send("POST", &format!("{TARGETS}/dwd/pause"), None).await);
    assert_eq!(again["evaluation"]["reason"]["actual"], "paused by ana");
    let resumed = api.post(&format!("{TARGETS}/dwd/resume"), &json!({})).await;
    golden("target-resumed", &resumed);
    assert_eq!(body(&resumed)["claimed"], triggers(&api).await[0]["key"]);
    assert_eq!(api.dispatched(), 1);
    let again = body(&api.send("POST", &format!("{TARGETS}/dwd/resume"), None).await);
    assert_eq!(
        (&again["claimed"], &again["evaluation"]["reason"]["code"]),
        (&Value::Null, &json!("TRIGGER_IN_FLIGHT"))
    );
}

#[tokio::test]
async fn who_says_nothing_is_the_token() {
    let api = with_target().await;
    let pause = format!("{TARGETS}/dwd/pause");
    let paused = body(&api.send("POST", &pause, None).await);
    assert_eq!(paused["evaluation"]["reason"]["actual"], "paused by deployment");
    api.send("POST", &format!("{TARGETS}/dwd/resume"), None).await;
    let token = body(&api.post("/projects/7/tokens", &json!({"name": "on call", "rights": ["operate"]})).await);
    let mut request = rest_event("POST", &pause, None);
    request["headers"] = json!({"X-Api-Key": token["token"]});
    assert_eq!(body(&api.raw(request).await)["evaluation"]["reason"]["actual"], "paused by on call");
}

#[tokio::test]
async fn targets_that_are_not_declared_are_not_found() {
    let api = with_target().await;
    golden("error-pause-unknown-target", &api.post(&format!("{TARGETS}/nobody/pause"), &json!({})).await);
    for path in ["nobody/resume", "4711/pause", "4711/resume"] {
        let answer = api.post(&format!("{TARGETS}/{path}"), &json!({})).await;
        assert_eq!((answer.status_code, &body(&answer)["field"]), (404, &json!("target")), "{path}");
    }
    for verb in ["pause", "resume"] {
        let other = api.post(&format!("/projects/8/asset-dependencies/dwd/{verb}"), &json!({})).await;
        assert_eq!(other.status_code, 404, "{verb}");
        let malformed = api.post(&format!("{TARGETS}/a%20b/{verb}"), &json!({})).await;
        assert_eq!((malformed.status_code, &body(&malformed)["field"]), (400, &json!("target")), "{verb}");
    }
    api.delete(&format!("{TARGETS}/dwd")).await;
    assert_eq!(api.post(&format!("{TARGETS}/dwd/pause"), &json!({})).await.status_code, 404);
    assert_eq!(api.post(&format!("{TARGETS}/dwd/resume"), &json!({})).await.status_code, 404);
}

#[tokio::test]
async fn a_failed_trigger_is_redriven() {
    let (api, key) = failed().await;
    let path = format!("{HISTORY}/{key}/redrive");
    golden("trigger-redriven", &api.post(&path, &json!({"by": "ana"})).await);
    let scheduler = Arc::new(MemoryScheduler::new());
    dispatch(&api, &scheduler, &api.world.queue.drain()).await;
    assert_eq!(scheduler.instances().len(), 1);
    assert_eq!(triggers(&api).await[0]["triggerStatus"], "SUCCESS");
    golden("error-redrive-ended", &api.send("POST", &path, None).await);
}

#[tokio::test]
async fn a_trigger_whose_data_was_taken_over_is_not_redriven() {
    let (api, key) = failed().await;
    commit(&api, 4).await;
    let refused = api.post(&format!("{HISTORY}/{key}/redrive"), &json!({})).await;
    assert_eq!((refused.status_code, &body(&refused)["field"]), (409, &json!("triggerKey")));
}

#[tokio::test]
async fn a_failed_trigger_of_an_undeclared_target_is_not_redriven() {
    let (api, key) = failed().await;
    api.delete(&format!("{TARGETS}/dwd")).await;
    assert_eq!(api.post(&format!("{HISTORY}/{key}/redrive"), &json!({})).await.status_code, 409);
    assert_eq!(api.dispatched(), 0);
}

#[tokio::test]
async fn a_queued_trigger_is_skipped() {
    let (api, key) = with_trigger().await;
    let path = format!("{HISTORY}/{key}/skip");
    golden("trigger-skipped", &api.post(&path, &json!({"by": "ana"})).await);
    let scheduler = Arc::new(MemoryScheduler::new());
    dispatch(&api, &scheduler, &api.world.queue.drain()).await;
    assert_eq!(scheduler.start_calls(), 0);
    golden("error-skip-ended", &api.post(&path, &json!({})).await);
}

#[tokio::test]
async fn a_held_trigger_is_decided() {
    let (api, key) = held().await;
    commit(&api, 4).await;
    let path = format!("{HISTORY}/{key}/decide");
    let decision = json!({"decision": "started", "instance": 123, "by": "ana"});
    let decided = api.post(&path, &decision).await;
    golden("trigger-decided", &decided);
    assert_eq!(body(&decided)["claimed"], triggers(&api).await[0]["key"], "what advanced meanwhile is the next one");
    golden("error-decide-ended", &api.post(&path, &decision).await);
}

#[tokio::test]
async fn each_decision_leads_to_its_own_status() {
    for (decision, status, step) in
        [("started", "SUCCESS", "success"), ("absent", "TRIGGERING", "waiting"), ("failed", "FAILED", "failed")]
    {
        let (api, key) = held().await;
        let decided = api.post(&format!("{HISTORY}/{key}/decide"), &json!({"decision": decision})).await;
        let decided = (decided.status_code, body(&decided));
        assert_eq!(decided.0, 200, "{decision}");
        assert_eq!((&decided.1["triggerStatus"], &decided.1["status"]["step"]), (&json!(status), &json!(step)));
        let detail = decided.1["log"].as_array().unwrap().last().unwrap()["detail"].as_str().unwrap().to_owned();
        assert_eq!(detail, format!("{decision}, by deployment"));
    }
}

#[tokio::test]
async fn a_trigger_that_is_not_there_for_a_verb_is_refused() {
    let (api, key) = with_trigger().await;
    let decision = json!({"decision": "absent"});
    for (verb, body_of) in [("redrive", json!({})), ("skip", json!({})), ("decide", decision)] {
        let post = |path: String| {
            let (api, body_of) = (&api, &body_of);
            async move {
                let answer = api.post(&path, body_of).await;
                (answer.status_code, body(&answer)["field"].clone())
            }
        };
        assert_eq!(post(format!("{HISTORY}/{NOBODY_KEY}/{verb}")).await.0, 404, "{verb}");
        let (status, field) = post(format!("/projects/8/asset-trigger-history/{key}/{verb}")).await;
        assert_eq!((status, field), (404, json!("triggerKey")), "{verb} of another project");
        assert_eq!(post(format!("{HISTORY}/NOT-A-KEY/{verb}")).await, (400, json!("triggerKey")), "{verb}");
        if verb != "skip" {
            assert_eq!(
                post(format!("{HISTORY}/{key}/{verb}")).await,
                (409, json!("triggerKey")),
                "{verb} of a queued one"
            );
        }
    }
    assert_eq!(triggers(&api).await[0]["status"]["step"], "queued");
}

#[tokio::test]
async fn wrong_bodies_name_the_field() {
    let (api, key) = held().await;
    let decide = format!("{HISTORY}/{key}/decide");
    golden("error-decision", &api.post(&decide, &json!({"decision": "maybe"})).await);
    let table = [
        (json!({}), "decision"),
        (json!({"decision": "started", "instance": 0}), "instance"),
        (json!({"decision": "started", "instance": "5"}), "instance"),
        (json!({"decision": "absent", "instance": 5}), "instance"),
        (json!({"decision": "failed", "instance": 5}), "instance"),
        (json!({"decision": "absent", "why": "x"}), "why"),
        (json!({"decision": "absent", "by": ""}), "by"),
        (json!({"decision": "absent", "by": "a\nb"}), "by"),
        (json!({"decision": "absent", "by": "x".repeat(101)}), "by"),
    ];
    for (wrong, field) in table {
        let answer = api.post(&decide, &wrong).await;
        assert_eq!((answer.status_code, &body(&answer)["field"]), (400, &json!(field)), "{wrong}");
    }
    assert_eq!(api.send("POST", &decide, None).await.status_code, 400);
    for path in [
        format!("{HISTORY}/{key}/redrive"),
        format!("{HISTORY}/{key}/skip"),
        format!("{TARGETS}/dwd/pause"),
        format!("{TARGETS}/dwd/resume"),
    ] {
        for (wrong, field) in [(json!({"by": " "}), "by"), (json!({"bye": "x"}), "bye"), (json!([]), "body")] {
            let answer = api.post(&path, &wrong).await;
            assert_eq!((answer.status_code, &body(&answer)["field"]), (400, &json!(field)), "{path} {wrong}");
        }
        assert_eq!(api.get(&path).await.status_code, 405, "{path}");
    }
    assert_eq!(triggers(&api).await[0]["status"]["held"], json!(true));
}

#[tokio::test]
async fn a_verb_is_logged_with_who_it_was_and_its_evaluation_is_counted() {
    let (api, key) = with_trigger().await;
    let before = api.metrics().len();
    api.post(&format!("{HISTORY}/{key}/skip"), &json!({"by": "ana"})).await;
    assert_eq!(api.metrics()[before..], ["lakehouse_asset_dependency_blocked_by waiting"]);
    let line = logged().lines().find(|line| line.contains("trigger skipped")).map(str::to_owned).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["fields"]["by"], &line["fields"]["triggerKey"]), (&json!("ana"), &json!(key)));
}
