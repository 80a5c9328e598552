//! Long stretches of commits that do not count, for targets that look at each.

use lakebell_engine::replay;
use lakebell_testkit::Op;
use serde_json::{Value, json};

use super::with;
use crate::support::{Deployment, spec, target_id};

async fn filtered() -> Deployment {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    let mut document = serde_json::to_value(with(&["a"], &json!({}))).unwrap();
    document["groups"][0]["dependencies"][0]["operations"] = json!({"include": ["OVERWRITE"]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d
}

#[tokio::test]
async fn a_filter_finds_the_one_that_it_admits_behind_any_number_of_others() {
    let mut d = filtered().await;
    for _ in 0..700 {
        d.commit("a", "APPEND").await;
    }
    d.commit("a", "OVERWRITE").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1, "{:?}", d.why("t").await.reason);
    let replayed = replay::of_declared(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    assert_eq!(replayed.starts.len(), 1);
    for _ in 0..300 {
        d.commit("a", "APPEND").await;
    }
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1, "{:?}", d.why("t").await.reason);
}

#[tokio::test]
async fn all_at_once_are_looked_through_once() {
    let mut d = filtered().await;
    d.table("a").commit("OVERWRITE", 1);
    for _ in 0..900 {
        d.table("a").commit("APPEND", 1);
    }
    let newest = d.table("a").newest();
    d.notify("a", newest).await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(1,2]"]);
    d.world.tap.take_log();
    d.commit("a", "APPEND").await;
    let queries = d.world.tap.take_log().iter().filter(|call| call.op == Op::Query).count();
    assert_eq!(queries, 2, "the asset, and one page of what comes after what was looked through");
}

#[tokio::test]
async fn each_goes_on_after_any_number_of_compactions() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.declare(&with(&["a"], &json!({"coalesce": "each"}))).await;
    for _ in 0..700 {
        d.commit("a", "COMPACT").await;
    }
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1, "{:?}", d.why("t").await.reason);
}

#[tokio::test]
async fn a_slow_group_of_each_holds_up_no_other() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let groups: [(&str, Value, &[&str]); 2] = [("fast", json!("all"), &["a"]), ("pairs", json!("all"), &["a", "b"])];
    let mut document = serde_json::to_value(spec("t", &groups)).unwrap();
    document["coalesce"] = json!("each");
    d.declare(&serde_json::from_value(document).unwrap()).await;
    for _ in 0..510 {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    assert_eq!(d.triggers("t").len(), 510, "{:?}", d.why("t").await.reason);
}
