//! From messages to instances, answers and counts.

use std::time::Duration;

use jiff::SignedDuration;
use lakebell_domain::ids::TraceId;
use lakebell_domain::trigger::{FollowedState, StatusWord};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::scheduler::{InstanceState, Preflight, Refusal};
use lakebell_engine::{ErrorKind, targets};
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::{Value, json};

use crate::support::{Function, batch, event, message};

const SUCCESS: &str = "lakehouse_asset_trigger_success_total";
const FAILED: &str = "lakehouse_asset_trigger_failed_total";
const ENDED: &str = "lakehouse_asset_workflow_ended_total";
const RETRY: &str = "lakehouse_asset_trigger_history_retry_total";
const INVALID: &str = "lakehouse_asset_event_invalid_total";

#[tokio::test]
async fn a_trigger_is_started_once_and_its_message_is_done_with() {
    let mut function = Function::new().await;
    let order = function.commit().await.unwrap();
    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    let trigger = function.trigger(&order).await;
    assert_eq!(trigger.status().word(), StatusWord::Success);
    assert_eq!(trigger.trace.as_str(), "commit-1");
    assert_eq!(trigger.instance, Some(function.scheduler.instances()[0].id));
    assert_eq!(function.counted(SUCCESS, "trigger_source", "asset_event"), 1);

    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    assert_eq!(function.scheduler.start_calls(), 1);
    assert_eq!(function.counted(SUCCESS, "", ""), 1, "a redelivered message is no second start");
}

#[tokio::test]
async fn the_end_of_a_started_workflow_is_recorded_and_counted_once() {
    let mut function = Function::new().await;
    function.scheduler.begin_as(InstanceState::Failure);
    let order = function.commit().await.unwrap();
    function.handle(message(&order)).await.unwrap();
    let key = function.trigger(&order).await.key;
    let follow = Message::Follow { triggers: vec![key], trace: TraceId::new("sweep").unwrap() };
    function.scheduler.refuse_reads(Some(Refusal { code: "HTTP_5xx".to_owned(), detail: "away".to_owned() }));
    assert!(function.handle(message(&follow)).await.unwrap().is_empty(), "the sweep asks again, not the queue");
    function.scheduler.refuse_reads(None);
    let left = SignedDuration::from_secs(5);
    assert!(function.handle_within(message(&follow), left).await.unwrap().is_empty());
    assert_eq!(function.counted(ENDED, "", ""), 0, "too little time was left to ask");
    for _ in 0..2 {
        assert!(function.handle(message(&follow)).await.unwrap().is_empty());
    }
    assert_eq!(function.trigger(&order).await.followed().unwrap().state, FollowedState::Failure);
    assert_eq!((function.counted(ENDED, "state", "failure"), function.counted(ENDED, "", "")), (1, 1));
    assert_eq!(function.counted(SUCCESS, "", ""), 1, "SUCCESS means started");
}

#[tokio::test]
async fn what_became_ready_meanwhile_is_sent_by_the_end_of_the_first() {
    let mut function = Function::new().await;
    let first = function.commit().await.unwrap();
    function.commit().await;
    assert!(function.handle(message(&first)).await.unwrap().is_empty());
    let sent = function.world.queue.drain();
    let [Message::Dispatch { trigger, trace, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_ne!(*trigger, function.trigger(&first).await.key);
    assert_eq!(trace.as_str(), "commit-1");
    assert!(function.handle(message(&sent[0])).await.unwrap().is_empty());
    assert_eq!(function.scheduler.instances().len(), 2);
}

#[tokio::test]
async fn a_refused_start_waits_in_its_state_and_starts_when_its_time_has_come() {
    let mut function = Function::new().await;
    let order = function.commit().await.unwrap();
    function.scheduler.fault(StartFault::NoMaster);
    assert!(function.handle(message(&order)).await.unwrap().is_empty(), "the sweep sends it, not the queue");
    assert!(function.trigger(&order).await.due_at.is_some(), "it has a timer");
    assert_eq!(function.counted(RETRY, "trigger_status", "TRIGGERING"), 1);
    function.world.clock.advance(Duration::from_mins(10));
    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    assert_eq!(function.trigger(&order).await.status().word(), StatusWord::Success);
    assert_eq!(function.counted(SUCCESS, "", ""), 1);
}

#[tokio::test]
async fn a_start_that_may_have_taken_effect_is_looked_for_and_adopted() {
    let mut function = Function::new().await;
    let order = function.commit().await.unwrap();
    function.scheduler.fault(StartFault::TakesEffectThenTimesOut);
    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    assert_eq!(function.counted(RETRY, "trigger_status", "UNKNOWN"), 1);
    assert!(function.handle(message(&order)).await.unwrap().is_empty(), "its time has not come");
    assert_eq!(function.counted(RETRY, "", ""), 1, "looking on is no try");
    function.world.clock.advance(Duration::from_secs(10));
    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    assert_eq!(function.scheduler.start_calls(), 1);
    assert_eq!(function.scheduler.instances().len(), 1);
}

#[tokio::test]
async fn a_trigger_that_cannot_be_started_ends_and_is_counted() {
    let mut function = Function::new().await;
    let order = function.commit().await.unwrap();
    function.scheduler.set_preflight(Some(Preflight::Missing { detail: "no such workflow".to_owned() }));
    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    assert_eq!(function.counted(FAILED, "reason", "workflow_missing"), 1);

    function.scheduler.set_preflight(None);
    function.scheduler.fault(StartFault::Permanent);
    let next = function.commit().await.unwrap();
    assert!(function.handle(message(&next)).await.unwrap().is_empty());
    assert_eq!(function.counted(FAILED, "reason", "command_create_failed"), 1);
}

#[tokio::test]
async fn a_retryable_failure_hands_back_one_message_and_others_go_on() {
    let mut function = Function::new().await;
    let order = serde_json::to_value(function.commit().await.unwrap()).unwrap();
    function.world.tap.fault(Op::Get, 1, Fault::Before(ErrorKind::Unavailable));
    let event = batch(&[("m1", order.clone()), ("m2", order), ("m3", Value::from("no JSON at all"))]);
    assert_eq!(function.handle(event).await.unwrap(), ["m1", "m3"]);
    assert_eq!(function.scheduler.start_calls(), 1);
    assert_eq!(function.counted(INVALID, "reason", "not_json"), 1);
}

#[tokio::test]
async fn a_failure_that_no_later_try_helps_is_counted_and_done_with() {
    let mut function = Function::new().await;
    let order = function.commit().await.unwrap();
    function.world.tap.fault(Op::Get, 1, Fault::Before(ErrorKind::Damaged));
    assert!(function.handle(message(&order)).await.unwrap().is_empty());
    assert_eq!(function.counted(FAILED, "reason", "DAMAGED"), 1);
}

#[tokio::test]
async fn no_start_is_begun_that_the_invocation_would_not_outlive() {
    let mut function = Function::new().await;
    let order = function.commit().await.unwrap();
    let again = function.handle_within(message(&order), SignedDuration::from_secs(10)).await.unwrap();
    assert_eq!(again, ["m1"]);
    assert_eq!(function.scheduler.start_calls(), 0);
}

#[tokio::test]
async fn messages_for_others_are_refused_and_an_unknown_trigger_is_gone() {
    let function = Function::new().await;
    assert!(function.handle(event("sqs-dispatch.json")).await.unwrap().is_empty());
    assert_eq!(function.handle(event("sqs-poison.json")).await.unwrap().len(), 1);
    let evaluate = json!({"lakebell": "evaluate", "targets": ["7/dwd"], "trace": "t"});
    let strange = json!({"lakebell": "dispatch", "target": "7/dwd", "trigger": "NOT HEX", "attempt": 0, "trace": "t"});
    let event = batch(&[("m1", evaluate), ("m2", strange), ("m3", json!({"Records": []})), ("m4", json!(3))]);
    assert!(function.handle(event).await.unwrap().is_empty());
    assert_eq!(function.counted(INVALID, "reason", "unknown_message"), 4);
}

#[tokio::test]
async fn a_declared_workflow_is_looked_at_and_nothing_is_started() {
    let function = Function::new().await;
    function.scheduler.set_preflight(Some(Preflight::Offline { detail: "offline".to_owned() }));
    assert!(function.handle(event("sqs-advise.json")).await.unwrap().is_empty());
    let target = "7/dwd".parse().unwrap();
    let explained = targets::explain(&function.world.quiet_ports(), &[target]).await.unwrap().remove(0);
    let warning = explained.advice.unwrap().warning().unwrap();
    assert!(warning.starts_with("workflow 11 is offline: its triggers wait until it is online"), "{warning}");
    assert_eq!(function.scheduler.start_calls(), 0);

    let nobody = json!({"lakebell": "advise", "target": "7/nobody", "trace": "t"});
    assert!(function.handle(batch(&[("m1", nobody)])).await.unwrap().is_empty(), "gone");
    function.world.tap.fault(Op::Get, 1, Fault::Before(ErrorKind::Unavailable));
    assert_eq!(function.handle(event("sqs-advise.json")).await.unwrap().len(), 1, "it comes again");
    assert_eq!(function.counted(FAILED, "", ""), 0, "no trigger failed");
}

#[tokio::test]
async fn a_message_without_a_queue_fails_the_invocation_where_it_has_to_come_again() {
    let mut function = Function::new().await;
    let order = serde_json::to_value(function.commit().await.unwrap()).unwrap();
    function.world.tap.fault(Op::Get, 1, Fault::Before(ErrorKind::Unavailable));
    let failure = function.handle(order.clone()).await.unwrap_err();
    assert_eq!(failure.to_string(), "1 messages have to come again; the log says why");
    assert!(function.handle(order).await.unwrap().is_empty());
}
