//! What the clock does: passes, intervals of single assets, sweeps.

mod consumer;
mod intervals;
mod scan;
mod warehouse;

use std::time::Duration;

use jiff::SignedDuration;
use lakebell_domain::trigger::{Status, StatusWord};
use lakebell_engine::compensate;
use lakebell_engine::ports::time::Clock as _;
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::json;

use crate::support::{Deployment, spec, trace};

impl Deployment {
    /// One tick of the schedule and everything that follows from it at once.
    async fn tick(&self) {
        let ports = self.world.ports();
        let deadline = self.world.clock.now() + SignedDuration::from_mins(1);
        assert!(compensate::pass(&ports, &trace(), deadline).await.unwrap().is_complete);
        compensate::sweep(&ports, &trace()).await.unwrap();
        for _ in 0..20 {
            for message in self.world.queue.drain() {
                self.carry(&message).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn case_42_and_56_every_notification_lost_and_one_pass_later_everything_has_started() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    for _ in 0..5 {
        d.table("a").commit("APPEND", 1);
        d.table("b").commit("APPEND", 1);
    }
    d.tick().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,5]", "b(-,5]"]);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn an_unchanged_deployment_gets_nothing_written_but_messages() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    d.tick().await;
    d.world.tap.take_log();
    d.tick().await;
    let log = d.world.tap.take_log();
    assert_eq!(log.iter().filter(|call| call.op == Op::Write).count(), 0);
    let listed = log.iter().filter(|call| matches!(call.op, Op::List | Op::Read)).count();
    assert_eq!(listed, 4, "for each unchanged table one listing of its snapshots and one of its tags");
}

#[tokio::test]
async fn a_claim_whose_message_was_lost_is_sent_again_with_growing_pauses() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.commit("a", "APPEND").await;
    d.world.queue.drain();
    let ports = d.world.quiet_ports();
    assert_eq!(compensate::sweep(&ports, &trace()).await.unwrap().sent_again, 0, "not due yet");
    let mut sends = Vec::new();
    for minute in 0..16 {
        d.world.clock.advance(Duration::from_mins(1));
        if compensate::sweep(&ports, &trace()).await.unwrap().sent_again == 1 {
            sends.push(minute + 1);
        }
        d.world.queue.drain();
    }
    assert_eq!(sends, [1, 3, 7, 15]);
    d.tick().await;
    d.world.clock.advance(Duration::from_hours(1));
    d.tick().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn what_waits_is_woken_when_its_time_has_come() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.scheduler.fault(StartFault::NoMaster);
    d.commit("a", "APPEND").await;
    d.tick().await;
    assert!(matches!(d.triggers("t")[0].status(), Status::Waiting { .. }));
    d.world.clock.advance(Duration::from_mins(6));
    d.tick().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_dead_dispatchers_trigger_is_looked_into_and_adopted() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    d.world.tap.fault(Op::Write, 2, Fault::DiesBefore);
    assert!(d.carry(&message).await.is_err());
    d.world.tap.revive();
    d.world.clock.advance(Duration::from_mins(2));
    d.tick().await;
    d.assert_started("t", 1);
    assert_eq!(d.scheduler.start_calls(), 1);
}

#[tokio::test]
async fn a_pass_that_runs_out_of_time_is_continued() {
    let mut d = Deployment::with(&[]).await;
    for n in 0..30 {
        d.register(&format!("t{n}")).await;
    }
    let ports = d.world.quiet_ports();
    let (mut assets, mut calls) = (0, 0);
    loop {
        // No time at all: one page each.
        let pass = compensate::pass(&ports, &trace(), d.world.clock.now()).await.unwrap();
        assets += pass.assets;
        calls += 1;
        if pass.is_complete {
            break;
        }
    }
    assert_eq!((assets, calls), (30, 33), "16 shards of each registry, and the list of warehouses");
}

#[tokio::test]
async fn a_failed_trigger_has_no_timer() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.tick().await;
    d.world.clock.advance(Duration::from_hours(2));
    d.tick().await;
    assert_eq!(d.triggers("t")[0].status().word(), StatusWord::Failed);
    assert_eq!(d.scheduler.start_calls(), 1);
}
