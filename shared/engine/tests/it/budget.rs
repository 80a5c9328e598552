//! Calls to AWS per event, counted through the ports. The cost of an event must not grow with history.

use lakebell_testkit::Op;
use serde_json::json;

use crate::support::{Deployment, spec, trace};

impl Deployment {
    /// The calls since the last time, by kind.
    fn calls(&self) -> Vec<Op> {
        self.world.tap.take_log().into_iter().map(|call| call.op).collect()
    }
}

#[tokio::test]
async fn a_commit_of_an_asset_that_nobody_depends_on_costs_three() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.calls();
    d.commit("a", "APPEND").await;
    assert_eq!(d.calls(), [Op::Query, Op::Read, Op::Write]);
}

#[tokio::test]
async fn a_commit_that_makes_a_two_asset_group_ready_costs_six_up_to_the_send() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    for table in ["a", "b"] {
        d.commit(table, "APPEND").await;
    }
    d.run_dispatcher().await;
    d.commit("a", "APPEND").await;
    d.calls();
    d.commit("b", "APPEND").await;
    assert_eq!(d.calls(), [Op::Query, Op::Read, Op::Write, Op::Get, Op::Write, Op::Send]);
}

#[tokio::test]
async fn a_duplicate_costs_two_or_three_and_writes_nothing() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    d.calls();
    d.notify("a", 1).await;
    assert_eq!(d.calls(), [Op::Query, Op::Get], "its entity tag is in the ring");
    let mut unnamed = d.created("a", 1);
    unnamed.etag = None;
    d.watcher.created(&unnamed, &trace()).await.unwrap();
    assert_eq!(d.calls(), [Op::Query, Op::Read, Op::Get]);
}

#[tokio::test]
async fn dispatch_costs_four_and_one_start_call() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    d.commit("b", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    d.calls();
    d.carry(&message).await.unwrap();
    assert_eq!(d.calls(), [Op::Get, Op::Write, Op::Write, Op::Get]);
    assert_eq!(d.scheduler.start_calls(), 1);
}

#[tokio::test]
async fn a_cold_function_costs_one_more() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    let cold = lakebell_engine::watch::Watcher::new(d.world.ports());
    d.calls();
    d.table("a").commit("APPEND", 1);
    cold.created(&d.created("a", 2), &trace()).await.unwrap();
    assert_eq!(d.calls(), [Op::Get, Op::Query, Op::Read, Op::Write]);
}

#[tokio::test]
async fn case_36_the_cost_does_not_grow_with_history() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    for _ in 0..300 {
        d.commit("a", "APPEND").await;
    }
    d.calls();
    d.commit("a", "APPEND").await;
    assert_eq!(d.calls(), [Op::Query, Op::Read, Op::Write, Op::Get]);
    let head = d.world.items.peek(&lakebell_engine::layout::head(d.ids["a"])).unwrap();
    let ring = d.world.items.peek(&lakebell_engine::layout::ring(d.ids["a"])).unwrap();
    assert!(head.doc.len() < 8_192, "head of {} bytes", head.doc.len());
    assert!(ring.doc.len() < 12_288, "ring of {} bytes", ring.doc.len());
}
