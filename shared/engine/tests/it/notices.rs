//! Notices are told once, after what they tell of is written, and decide nothing.

use std::time::Duration;

use lakebell_domain::notice::Notice;
use lakebell_engine::compensate;
use lakebell_engine::ports::scheduler::{CheckOutcome, InstanceState};
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::json;

use crate::support::{Deployment, spec, trace};

impl Deployment {
    /// The types of the notices that were told, without their common parts.
    fn told(&self) -> Vec<String> {
        let short = |notice: Notice| {
            let name = notice.type_name();
            name.trim_start_matches("io.lakebell.").trim_end_matches(".v1").to_owned()
        };
        self.world.notices.take().into_iter().map(short).collect()
    }

    async fn with_target() -> Self {
        let d = Self::with(&["a"]).await;
        d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
        d.told();
        d
    }
}

#[tokio::test]
async fn a_commit_and_its_start_and_end_are_told_once() {
    let mut d = Deployment::with_target().await;
    d.scheduler.begin_as(InstanceState::Failure);
    d.commit("a", "APPEND").await;
    assert_eq!(d.told(), ["asset.advanced"]);
    d.notify("a", 1).await;
    assert!(d.told().is_empty(), "a duplicate is nothing new");
    let message = d.world.queue.drain().remove(0);
    d.carry(&message).await.unwrap();
    assert_eq!(d.told(), ["trigger.started"]);
    d.carry(&message).await.unwrap();
    assert!(d.told().is_empty());
    d.world.clock.advance(Duration::from_mins(1));
    compensate::sweep(&d.world.ports(), &trace()).await.unwrap();
    let follow = d.world.queue.drain().remove(0);
    d.carry(&follow).await.unwrap();
    d.carry(&follow).await.unwrap();
    assert_eq!(d.told(), ["workflow.ended"]);
}

#[tokio::test]
async fn what_was_not_written_is_not_told() {
    let mut d = Deployment::with_target().await;
    d.world.tap.fault(Op::Write, 0, Fault::DiesBefore);
    let id = d.table("a").commit("APPEND", 1);
    assert!(d.try_notify("a", id).await.is_err());
    assert!(d.told().is_empty());
}

#[tokio::test]
async fn failures_holds_and_extra_instances_are_told() {
    let mut d = Deployment::with_target().await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.told(), ["asset.advanced", "trigger.failed"]);
    d.scheduler.fault(StartFault::TimesOut);
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    d.carry(&message).await.unwrap();
    d.world.clock.advance(Duration::from_mins(11));
    d.scheduler.answer_check(CheckOutcome::Undecided { detail: "no master".to_owned() });
    d.carry(&message).await.unwrap();
    assert_eq!(d.told(), ["asset.advanced", "trigger.held"]);
}

#[tokio::test]
async fn a_rewrite_is_told_when_it_is_first_seen() {
    let mut d = Deployment::with_target().await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    d.told();
    d.table("a").rollback_to(1);
    let id = d.table("a").commit("APPEND", 1);
    d.notify("a", id).await;
    d.notify("a", id).await;
    assert_eq!(d.told(), ["history.rewritten"]);
}
