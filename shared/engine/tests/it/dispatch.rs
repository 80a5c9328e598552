use std::time::Duration;

use lakebell_domain::trigger::{Status, StatusWord};
use lakebell_engine::dispatch::Dispatched;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::scheduler::{CheckOutcome, Preflight};
use lakebell_engine::ports::time::Clock as _;
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::json;

use crate::support::{Deployment, spec};

async fn one_queued() -> (Deployment, Message) {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    (d, message)
}

#[tokio::test]
async fn case_2_a_redelivered_message_starts_nothing_more() {
    let (d, message) = one_queued().await;
    let (one, two) = tokio::join!(d.carry(&message), d.carry(&message));
    drop((one.unwrap(), two.unwrap()));
    for _ in 0..5 {
        d.carry(&message).await.unwrap();
    }
    d.assert_started("t", 1);
    assert_eq!(d.scheduler.start_calls(), 1);
}

#[tokio::test]
async fn case_84_a_start_that_takes_effect_and_times_out_is_found_and_adopted() {
    let (d, message) = one_queued().await;
    d.scheduler.fault(StartFault::TakesEffectThenTimesOut);
    let later = d.carry(&message).await.unwrap();
    assert!(matches!(later, Some(Dispatched::Later { .. })));
    assert_eq!(d.triggers("t")[0].status().word(), StatusWord::Unknown);
    d.world.clock.advance(Duration::from_secs(10));
    d.carry(&message).await.unwrap();
    assert_eq!(d.triggers("t")[0].instance.unwrap().0, 1);
    assert_eq!(d.scheduler.start_calls(), 1);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_start_that_had_no_effect_is_tried_again_after_two_clean_rounds() {
    let (d, message) = one_queued().await;
    d.scheduler.fault(StartFault::TimesOut);
    d.carry(&message).await.unwrap();
    d.world.queue.drain();
    let ports = d.world.quiet_ports();
    ports.queue.send(&message).await.unwrap();
    d.run_dispatcher().await;
    assert_eq!(d.scheduler.start_calls(), 2);
    d.assert_started("t", 1);
    let log: Vec<_> = d.triggers("t")[0].log.iter().map(|passage| passage.arrow.to_string()).collect();
    assert_eq!(
        log,
        ["Claim", "Lease", "LoseSight", "CheckAgain", "CheckAgain", "ProveAbsent", "Wake", "Lease", "Succeed"]
    );
}

#[tokio::test]
async fn two_clean_rounds_too_close_together_prove_nothing() {
    let (d, message) = one_queued().await;
    d.scheduler.fault(StartFault::TimesOut);
    d.carry(&message).await.unwrap();
    d.world.clock.advance(Duration::from_secs(5));
    d.carry(&message).await.unwrap();
    let again = d.carry(&message).await.unwrap();
    assert!(matches!(again, Some(Dispatched::Later { .. })));
    assert_eq!(d.triggers("t")[0].status().word(), StatusWord::Unknown);
    assert_eq!(d.scheduler.start_calls(), 1);
}

#[tokio::test]
async fn what_stays_undecided_is_held_for_a_person_and_blocks_its_target() {
    let (mut d, message) = one_queued().await;
    d.scheduler.fault(StartFault::TimesOut);
    d.carry(&message).await.unwrap();
    for _ in 0..100 {
        d.scheduler.answer_check(CheckOutcome::Undecided { detail: "3.1 cannot list commands".into() });
    }
    for _ in 0..100 {
        d.world.clock.advance(Duration::from_secs(30));
        d.carry(&message).await.unwrap();
    }
    let trigger = d.triggers("t").remove(0);
    assert!(matches!(trigger.status(), Status::Unknown { held: true, .. }), "{:?}", trigger.status());
    d.commit("a", "APPEND").await;
    let reason = d.why("t").await.reason.unwrap();
    assert_eq!(reason.code.as_str(), "TRIGGER_HELD");
    assert_eq!(d.scheduler.start_calls(), 1);
}

#[tokio::test]
async fn a_lease_that_ran_out_is_looked_into_before_anything_is_tried_again() {
    let (d, message) = one_queued().await;
    // The function dies after the start call and before it could say so.
    d.world.tap.fault(Op::Write, 2, Fault::DiesBefore);
    assert!(d.carry(&message).await.is_err());
    d.world.tap.revive();
    assert_eq!(d.scheduler.start_calls(), 1);
    let later = d.carry(&message).await.unwrap();
    assert!(matches!(later, Some(Dispatched::Later { .. })), "the lease still holds");
    d.world.clock.advance(Duration::from_mins(2));
    d.carry(&message).await.unwrap();
    assert_eq!(d.scheduler.start_calls(), 1, "found and adopted, not started again");
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_lost_answer_to_the_close_is_no_second_start() {
    let (d, message) = one_queued().await;
    d.world.tap.fault(Op::Write, 2, Fault::LostAnswer);
    assert!(d.carry(&message).await.unwrap_err().retryable());
    d.carry(&message).await.unwrap();
    assert_eq!(d.scheduler.start_calls(), 1);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn case_87_an_offline_workflow_is_waited_for_and_started_when_it_is_back() {
    let (d, message) = one_queued().await;
    d.scheduler.set_preflight(Some(Preflight::Offline { detail: "workflow 11 is offline".into() }));
    d.carry(&message).await.unwrap();
    let trigger = d.triggers("t").remove(0);
    assert!(matches!(trigger.status(), Status::Waiting { reason } if reason.code == "OFFLINE"));
    assert_eq!(trigger.tries, 0);
    d.scheduler.set_preflight(None);
    d.world.clock.advance(Duration::from_secs(301));
    d.carry(&message).await.unwrap();
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_missing_workflow_is_failed_at_once() {
    let (d, message) = one_queued().await;
    d.scheduler.set_preflight(Some(Preflight::Missing { detail: "workflow 11 is in another project".into() }));
    d.carry(&message).await.unwrap();
    assert!(matches!(d.triggers("t")[0].status(), Status::Failed { code, .. } if code == "WORKFLOW_MISSING"));
    assert_eq!(d.scheduler.start_calls(), 0);
}

#[tokio::test]
async fn an_outage_of_hours_uses_up_no_try_and_starts_once_when_it_is_over() {
    let (d, message) = one_queued().await;
    for _ in 0..60 {
        d.scheduler.fault(StartFault::NoMaster);
    }
    for _ in 0..60 {
        d.carry(&message).await.unwrap();
        d.world.clock.advance(Duration::from_mins(5));
    }
    assert_eq!(d.triggers("t")[0].tries, 0);
    d.carry(&message).await.unwrap();
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_refused_token_stops_the_connection_and_not_the_trigger() {
    let (d, message) = one_queued().await;
    d.scheduler.fault(StartFault::Unauthorized);
    d.carry(&message).await.unwrap();
    assert!(matches!(d.triggers("t")[0].status(), Status::Waiting { reason } if reason.code == "CONNECTION_REFUSED"));
    d.world.clock.advance(Duration::from_secs(301));
    d.carry(&message).await.unwrap();
    d.assert_started("t", 1);
}

#[tokio::test]
async fn case_80_two_instances_of_one_call_are_reported_and_no_third_is_started() {
    let (d, message) = one_queued().await;
    d.scheduler.fault(StartFault::StartsTwice);
    d.world.tap.fault(Op::Write, 2, Fault::DiesBefore);
    assert!(d.carry(&message).await.is_err());
    d.world.tap.revive();
    d.world.clock.advance(Duration::from_mins(2));
    d.carry(&message).await.unwrap();
    let trigger = d.triggers("t").remove(0);
    assert_eq!((trigger.instance.unwrap().0, trigger.extra_instances.len()), (1, 1));
    assert_eq!(d.scheduler.start_calls(), 1);
}

#[tokio::test]
async fn a_message_that_names_an_older_attempt_starts_nothing() {
    let (d, message) = one_queued().await;
    let Message::Dispatch { target, trigger, trace, .. } = message.clone() else { panic!("a dispatch message") };
    d.scheduler.fault(StartFault::NoMaster);
    d.carry(&message).await.unwrap();
    d.world.clock.advance(Duration::from_secs(301));
    // Woken by the sweeper's newer message; the old one comes late.
    let newer = Message::Dispatch { target, trigger, attempt: 1, trace };
    d.carry(&newer).await.unwrap();
    d.carry(&message).await.unwrap();
    assert_eq!(d.scheduler.start_calls(), 2);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn too_little_time_left_starts_nothing() {
    let (d, message) = one_queued().await;
    let Message::Dispatch { target, trigger, attempt, trace } = message else { panic!("a dispatch message") };
    let dispatcher = lakebell_engine::dispatch::Dispatcher { ports: d.world.ports(), scheduler: d.scheduler.clone() };
    let order = lakebell_engine::dispatch::Order { target, trigger, attempt, trace };
    let deadline = d.world.clock.now() + jiff::SignedDuration::from_secs(5);
    assert!(dispatcher.dispatch(&order, deadline).await.unwrap_err().retryable());
    assert_eq!(d.scheduler.start_calls(), 0);
}

#[tokio::test]
async fn messages_of_a_busy_target_do_not_breed() {
    let (mut d, message) = one_queued().await;
    d.carry(&message).await.unwrap();
    d.commit("a", "APPEND").await;
    assert_eq!(d.world.queue.drain().len(), 1, "the next trigger's own message");
    // Each of these meets a queued trigger that was sent a moment ago.
    for _ in 0..10 {
        d.carry(&message).await.unwrap();
        d.notify("a", 2).await;
    }
    assert_eq!(d.world.queue.drain(), []);
    d.world.clock.advance(Duration::from_mins(1));
    d.carry(&message).await.unwrap();
    assert_eq!(d.world.queue.drain().len(), 1, "nobody has leased it for so long that it may be lost");
}
