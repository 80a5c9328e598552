//! What a target takes of a history that a rewrite left, whenever that is accepted.

use std::time::Duration;

use lakebell_domain::target::TargetSpec;
use lakebell_domain::version::Epoch;
use lakebell_engine::evaluate;
use lakebell_engine::ports::queue::Message;
use serde_json::{Value, json};

use super::with;
use crate::support::{Deployment, target_id, trace};

/// A target that follows rewrites, with conditions on its one member.
fn follows(conditions: &Value, more: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(with(&["a"], more)).unwrap();
    document["onRewrite"] = json!("follow");
    for (key, value) in conditions.as_object().unwrap() {
        document["groups"][0]["dependencies"][0][key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

/// Scans until a rewrite has settled and was accepted, and starts what that makes ready.
async fn accepted(d: &Deployment) {
    for _ in 0..4 {
        let look = Message::Observe { asset: d.ids["a"], is_again: false, trace: trace() };
        d.carry(&look).await.unwrap();
        d.world.clock.advance(Duration::from_secs(61));
        evaluate::evaluate_one(&d.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap();
        d.run_dispatcher().await;
    }
}

async fn append(d: &mut Deployment, commits: usize) {
    for _ in 0..commits {
        d.world.clock.advance(Duration::from_secs(1));
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
}

fn took(d: &Deployment) -> Vec<String> {
    let mut triggers = d.triggers("t");
    triggers.sort_by_key(|trigger| trigger.claimed_at);
    triggers.iter().map(|trigger| Deployment::took(trigger).join(" ")).collect()
}

#[tokio::test]
async fn each_takes_every_commit_of_a_table_that_was_created_anew() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&follows(&json!({}), &json!({"coalesce": "each"}))).await;
    append(&mut d, 5).await;
    d.table("a").drop_table();
    for _ in 0..3 {
        d.table("a").commit("APPEND", 1);
    }
    accepted(&d).await;
    assert_eq!(d.head("a").state.epoch, Epoch(1));
    let expected = ["a(-,1]", "a(1,2]", "a(2,3]", "a(3,4]", "a(4,5]", "a(5,1]", "a(1,2]", "a(2,3]"];
    assert_eq!(took(&d), expected);
    assert_eq!(d.head("a").state.totals.data, 3);
}

/// After a roll-back the triggers are the same, however many commits came before it was accepted.
#[tokio::test]
async fn what_each_takes_after_a_rollback_does_not_depend_on_when_it_was_accepted() {
    for before in 0..4 {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&follows(&json!({}), &json!({"coalesce": "each"}))).await;
        append(&mut d, 5).await;
        d.table("a").rollback_to(2);
        for _ in 0..before {
            d.table("a").commit("APPEND", 1);
        }
        accepted(&d).await;
        assert_eq!(d.head("a").state.epoch, Epoch(1), "{before}");
        append(&mut d, 3 - before).await;
        assert_eq!(took(&d)[5..], ["a(5,2]", "a(2,3]", "a(3,4]", "a(4,5]"], "{before}");
    }
}

#[tokio::test]
async fn a_rollback_counts_once_for_a_target_of_the_newest() {
    for kind in ["APPEND", "COMPACT"] {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&follows(&json!({}), &json!({}))).await;
        append(&mut d, 3).await;
        d.table("a").rollback_to(1);
        if kind == "COMPACT" {
            d.table("a").commit(kind, 0);
        }
        accepted(&d).await;
        assert_eq!(took(&d)[3..], ["a(3,1]"], "{kind}");
    }
}

#[tokio::test]
async fn a_filter_finds_its_commit_below_the_newest_of_an_accepted_history() {
    for conditions in [json!({"operations": {"include": ["OVERWRITE"]}}), json!({"commitKinds": ["OVERWRITE"]})] {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&follows(&conditions, &json!({}))).await;
        for kind in ["APPEND", "OVERWRITE", "APPEND"] {
            d.commit("a", kind).await;
            d.run_dispatcher().await;
        }
        assert_eq!(took(&d).len(), 1);
        d.table("a").drop_table();
        for kind in ["OVERWRITE", "APPEND"] {
            d.table("a").commit(kind, 1);
        }
        accepted(&d).await;
        assert_eq!(took(&d)[1..], ["a(2,1]"], "{conditions}: {:?}", d.why("t").await.reason);
    }
}

#[tokio::test]
async fn a_batch_counts_all_commits_of_an_accepted_history() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&follows(&json!({"minNewSnapshots": 3}), &json!({}))).await;
    append(&mut d, 3).await;
    d.table("a").drop_table();
    for _ in 0..3 {
        d.table("a").commit("APPEND", 1);
    }
    accepted(&d).await;
    assert_eq!(took(&d)[1..], ["a(3,3]"], "{:?}", d.why("t").await.reason);
}

/// A roll-back to a commit of the history before the present one is found by its event.
#[tokio::test]
async fn a_common_ancestor_may_be_of_an_earlier_history() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&follows(&json!({}), &json!({"coalesce": "each"}))).await;
    append(&mut d, 5).await;
    d.table("a").rollback_to(4);
    accepted(&d).await;
    append(&mut d, 1).await;
    d.table("a").rollback_to(3);
    d.table("a").commit("APPEND", 1);
    accepted(&d).await;
    assert_eq!(d.head("a").state.epoch, Epoch(2));
    assert_eq!(took(&d)[5..], ["a(5,4]", "a(4,5]", "a(5,3]", "a(3,4]"]);
}

/// Beyond what one transaction takes, the newest are taken, and the rest is told.
#[tokio::test]
async fn what_is_too_much_of_an_accepted_history_is_a_gap() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&follows(&json!({}), &json!({}))).await;
    append(&mut d, 1).await;
    d.table("a").drop_table();
    for _ in 0..100 {
        d.table("a").commit("APPEND", 1);
    }
    accepted(&d).await;
    let state = d.head("a").state;
    assert_eq!((state.epoch, state.totals.data), (Epoch(1), 80));
    let gap = state.gap.unwrap();
    assert_eq!((gap.first.0, gap.last.0), (1, 20));
    assert_eq!(took(&d)[1..], ["a(1,100]"]);
}
