//! What the scheduler says about a declared workflow, and who took what a rewrite withdrew.

use std::sync::Arc;
use std::time::Duration;

use lakebell_engine::dispatch::Dispatcher;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::scheduler::{ExecutionType, Preflight};
use lakebell_testkit::{MemoryScheduler, Op};
use serde_json::{Value, json};

use crate::operate::{commit, triggers, with_target, with_trigger};
use crate::support::{Api, BUCKET, ORDERS_PATH, ORDERS_PREFIX, TARGETS, body, golden, target};

/// Hands the checks of the dispatch queue to a dispatcher of this scheduler.
async fn advise(api: &Api, scheduler: &Arc<MemoryScheduler>) -> usize {
    let mut checks = 0;
    for message in api.world.queue.drain() {
        let Message::Advise { target, .. } = message else { continue };
        let dispatcher = Dispatcher { ports: api.world.quiet_ports(), scheduler: scheduler.clone() };
        assert!(dispatcher.advise(&target).await.unwrap().is_some());
        checks += 1;
    }
    checks
}

fn serial(execution: ExecutionType) -> Preflight {
    Preflight::Startable { workflow: "4711".parse().unwrap(), name: None, execution }
}

async fn warnings(api: &Api) -> Value {
    body(&api.get(&format!("{TARGETS}/dwd")).await)["items"][0].get("warnings").cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_declaration_has_its_workflow_checked_and_shows_what_to_know() {
    let api = with_target().await;
    assert_eq!(warnings(&api).await, Value::Null, "not checked yet");
    let scheduler = Arc::new(MemoryScheduler::new());
    scheduler.set_preflight(Some(serial(ExecutionType::SerialDiscard)));
    assert_eq!(advise(&api, &scheduler).await, 1);
    golden("target-explained-with-warnings", &api.get(&format!("{TARGETS}/dwd")).await);

    // Declared again it is checked again, also where nothing changed.
    scheduler.set_preflight(None);
    assert_eq!(api.post(TARGETS, &target("dwd", 4711)).await.status_code, 200);
    assert_eq!(advise(&api, &scheduler).await, 1);
    assert_eq!(warnings(&api).await, Value::Null, "parallel needs no warning");
}

#[tokio::test]
async fn what_was_said_about_another_workflow_is_not_shown() {
    let api = with_target().await;
    let scheduler = Arc::new(MemoryScheduler::new());
    scheduler.set_preflight(Some(Preflight::Missing { detail: "no such workflow".to_owned() }));
    advise(&api, &scheduler).await;
    let said = warnings(&api).await;
    assert!(said[0].as_str().unwrap().starts_with("workflow 4711 is not there"), "{said}");
    assert_eq!(api.post(TARGETS, &target("dwd", 4712)).await.status_code, 201);
    assert_eq!(warnings(&api).await, Value::Null);
}

#[tokio::test]
async fn explaining_costs_no_call_more() {
    let api = with_target().await;
    let calls = |api: &Api| (api.world.tap.count(Op::Get), api.world.tap.count(Op::Query));
    let before = calls(&api);
    warnings(&api).await;
    let without = calls(&api);
    advise(&api, &Arc::new(MemoryScheduler::new())).await;
    let between = calls(&api);
    warnings(&api).await;
    let with = calls(&api);
    assert_eq!((with.0 - between.0, with.1 - between.1), (without.0 - before.0, without.1 - before.1));
}

#[tokio::test]
async fn a_target_is_declared_though_nobody_can_be_asked() {
    let api = Api::with_orders().await;
    api.world.tap.fault(Op::Send, 1, lakebell_testkit::Fault::Before(lakebell_engine::ErrorKind::Unavailable));
    assert_eq!(api.post(TARGETS, &target("dwd", 4711)).await.status_code, 201);
}

#[tokio::test]
async fn who_took_withdrawn_versions_is_told_while_the_rewrite_is_held() {
    let (api, key) = with_trigger().await;
    let path = format!("{ORDERS_PATH}/withdrawn");
    let nothing = body(&api.get(&path).await);
    assert_eq!(nothing, json!({"hold": null, "triggers": [], "ofOthers": 0, "isComplete": true}));

    // Rolled back to snapshot 2.
    for file in ["snapshot-3", "snapshot-4"] {
        api.world.storage.remove(BUCKET, &format!("{ORDERS_PREFIX}snapshot/{file}"));
    }
    api.world.storage.put(BUCKET, &format!("{ORDERS_PREFIX}snapshot/LATEST"), "2".to_owned());
    let look = format!("{ORDERS_PATH}/observe");
    for _ in 0..2 {
        assert_eq!(api.send("POST", &look, None).await.status_code, 200);
        api.world.clock.advance(Duration::from_secs(61));
    }
    let held = api.get(&path).await;
    golden("withdrawn", &held);
    assert_eq!(body(&held)["triggers"][0]["trigger"], json!(key));

    let accepted = api.send("POST", &format!("{ORDERS_PATH}/accept-rewrite"), None).await;
    assert_eq!(body(&accepted)["withdrawn"], body(&held), "the answer keeps what is gone from the state");
    assert_eq!(body(&api.get(&path).await)["triggers"], json!([]));
}

#[tokio::test]
async fn a_trigger_from_below_the_rollback_took_nothing_withdrawn() {
    let (api, _) = with_trigger().await;
    commit(&api, 4).await;
    let taken = triggers(&api).await;
    api.world.storage.remove(BUCKET, &format!("{ORDERS_PREFIX}snapshot/snapshot-4"));
    api.world.storage.put(BUCKET, &format!("{ORDERS_PREFIX}snapshot/LATEST"), "3".to_owned());
    assert_eq!(api.send("POST", &format!("{ORDERS_PATH}/observe"), None).await.status_code, 200);
    let report = body(&api.get(&format!("{ORDERS_PATH}/withdrawn")).await);
    assert!(report["hold"].is_object(), "{report}");
    assert_eq!((taken.len(), &report["triggers"]), (1, &json!([])), "it took snapshot 3, which is there");
}
