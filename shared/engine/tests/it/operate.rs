use std::time::Duration;

use lakebell_domain::ids::InstanceId;
use lakebell_domain::reason::Verdict;
use lakebell_domain::trigger::{Decision, StatusWord};
use lakebell_engine::ports::scheduler::CheckOutcome;
use lakebell_engine::{ErrorKind, operate};
use lakebell_testkit::StartFault;
use serde_json::json;

use crate::support::{Deployment, spec, target_id, trace};

async fn one_target() -> Deployment {
    let d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d
}

#[tokio::test]
async fn case_9_and_11_a_pause_keeps_the_state_and_resume_starts_one() {
    let mut d = one_target().await;
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "an operator").await.unwrap();
    for _ in 0..300 {
        d.commit("a", "APPEND").await;
    }
    let why = d.why("t").await;
    assert_eq!(why.verdict, Verdict::Paused);
    assert_eq!(why.reason.unwrap().actual, "paused by an operator");
    assert!(operate::resume(&ports, &target_id("t"), &trace()).await.unwrap().unwrap().claimed.is_some());
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,300]"]);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_pause_between_claim_and_lease_starts_nothing_until_it_ends() {
    let mut d = one_target().await;
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    operate::pause(&d.world.quiet_ports(), &target_id("t"), "an operator").await.unwrap();
    d.carry(&message).await.unwrap();
    assert_eq!(d.scheduler.start_calls(), 0);
    operate::resume(&d.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap();
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_failed_trigger_is_redriven_under_its_own_key() {
    let mut d = one_target().await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let key = d.triggers("t")[0].key.clone();
    operate::redrive(&d.world.quiet_ports(), &key, "an operator", &trace()).await.unwrap();
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1);
    d.assert_started("t", 1);
    let again = operate::redrive(&d.world.quiet_ports(), &key, "an operator", &trace()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_failed_trigger_whose_data_went_on_is_not_redriven() {
    let mut d = one_target().await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let key = d.triggers("t")[0].key.clone();
    d.commit("a", "APPEND").await;
    let error = operate::redrive(&d.world.quiet_ports(), &key, "an operator", &trace()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

async fn held() -> Deployment {
    let mut d = one_target().await;
    d.scheduler.fault(StartFault::TimesOut);
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    d.carry(&message).await.unwrap();
    for _ in 0..30 {
        d.scheduler.answer_check(CheckOutcome::Undecided { detail: "commands cannot be listed".into() });
        d.world.clock.advance(Duration::from_mins(5));
        d.carry(&message).await.unwrap();
    }
    d
}

#[tokio::test]
async fn a_held_trigger_is_decided_and_frees_its_target() {
    for (decision, word) in [
        (Decision::Started(Some(InstanceId(77))), StatusWord::Success),
        (Decision::Started(None), StatusWord::Success),
        (Decision::Failed, StatusWord::Failed),
    ] {
        let mut d = held().await;
        let key = d.triggers("t")[0].key.clone();
        d.commit("a", "APPEND").await;
        let operated = operate::decide(&d.world.quiet_ports(), &key, decision, "an operator", &trace()).await.unwrap();
        assert_eq!(operated.trigger.status().word(), word);
        assert!(operated.evaluated.unwrap().claimed.is_some(), "what advanced meanwhile is the next trigger");
    }
}

#[tokio::test]
async fn a_held_trigger_that_did_not_start_is_tried_again() {
    let d = held().await;
    let key = d.triggers("t")[0].key.clone();
    operate::decide(&d.world.quiet_ports(), &key, Decision::Absent, "an operator", &trace()).await.unwrap();
    let ports = d.world.quiet_ports();
    lakebell_engine::compensate::sweep(&ports, &trace()).await.unwrap();
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_queued_trigger_is_skipped_and_its_range_counts_as_consumed() {
    let mut d = one_target().await;
    d.commit("a", "APPEND").await;
    let key = d.triggers("t")[0].key.clone();
    operate::skip(&d.world.quiet_ports(), &key, "an operator", &trace()).await.unwrap();
    d.run_dispatcher().await;
    d.assert_started("t", 0);
    d.commit("a", "APPEND").await;
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()), ["a(1,2]"]);
}
