//! Public reports about other schedulers that concern conditions and policies: each shows that what
//! was reported there does not happen here.

use std::time::Duration;

use jiff::Timestamp;
use lakebell_domain::event::EventKind;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::target::TargetSpec;
use lakebell_engine::compensate;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{self, Facts, Named, Pushed};
use serde_json::{Value, json};

use crate::support::{Deployment, key, spec, trace};

/// The target `t` that needs both `a` and `b`, with more keys for itself and for `b`.
fn both(target: &Value, of_b: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), &["a", "b"])])).unwrap();
    for (key, value) in target.as_object().unwrap() {
        document[key] = value.clone();
    }
    for (key, value) in of_b.as_object().unwrap() {
        document["groups"][0]["dependencies"][1][key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

impl Deployment {
    async fn check_ended(&self, table: &str, snapshot: u64, kind: EventKind) {
        let run_at = Some(self.world.clock.now());
        let (snapshot_id, check) = (Some(snapshot.to_string()), Some("rows".to_owned()));
        let facts = Facts { snapshot_id, check, run_at, ..Facts::default() };
        let (id, asset) = (format!("{table}{snapshot}{kind}"), Named::Key(key(table)));
        let pushed = Pushed { id, source: "job".to_owned(), kind, asset, time: run_at, facts };
        Box::pin(push::push(&self.world.ports(), &pushed, &trace())).await.unwrap();
    }
}

#[tokio::test]
async fn case_17_three_commits_at_once_are_three_starts_where_each_counts() {
    let mut d = Deployment::with(&["a"]).await;
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), &["a"])])).unwrap();
    document["coalesce"] = json!("each");
    d.declare(&serde_json::from_value(document).unwrap()).await;
    for _ in 0..3 {
        d.table("a").commit("APPEND", 1);
    }
    // All are there before the first notification, and the notifications come backwards.
    for snapshot in [3, 2, 1] {
        d.notify("a", snapshot).await;
    }
    d.run_dispatcher().await;
    let took: Vec<String> = d.triggers("t").iter().flat_map(Deployment::took).collect();
    assert_eq!(took, ["a(-,1]", "a(1,2]", "a(2,3]"]);
    d.assert_started("t", 3);
}

#[tokio::test]
async fn case_20_a_group_does_not_fire_while_one_member_failed() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let mut document = serde_json::to_value(both(&json!({}), &json!({"qualityStatus": "PASSED"}))).unwrap();
    document["groups"][0]["dependencies"][0]["qualityStatus"] = json!("PASSED");
    d.declare(&serde_json::from_value(document).unwrap()).await;
    for table in ["a", "b"] {
        d.commit(table, "APPEND").await;
        d.commit(table, "APPEND").await;
    }
    d.check_ended("a", 2, EventKind::QualityCheckPassed).await;
    d.check_ended("b", 2, EventKind::QualityCheckFailed).await;
    d.run_dispatcher().await;
    assert!(d.triggers("t").is_empty());
    let why = d.why("t").await;
    let reason = why.reason.unwrap();
    assert_eq!((why.verdict, reason.code), (Verdict::BlockedByQuality, ReasonCode::QualityFailed));
    assert_eq!((reason.asset, reason.actual.as_str()), (Some(key("b")), "snapshot 2 failed rows"));
}

#[tokio::test]
async fn case_27_an_optional_member_may_be_absent_and_must_not_have_failed() {
    let optional = both(&json!({}), &json!({"optional": true, "qualityStatus": "PASSED"}));
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&optional).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    d.commit("b", "APPEND").await;
    d.check_ended("b", 1, EventKind::QualityCheckFailed).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    assert_eq!(d.why("t").await.reason.map(|reason| reason.code), Some(ReasonCode::QualityFailed));
}

#[tokio::test]
async fn case_29_a_quiet_period_is_neither_longer_nor_shorter_than_asked() {
    let mut d = Deployment::with(&["a"]).await;
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), &["a"])])).unwrap();
    document["quietPeriod"] = json!("60s");
    d.declare(&serde_json::from_value(document).unwrap()).await;
    let begun: Timestamp = d.world.clock.now();
    let mut started = Vec::new();
    for second in 0..=120_u64 {
        if second == 0 || second == 50 {
            d.commit("a", "APPEND").await;
        }
        compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
        for message in d.world.queue.drain() {
            d.carry(&message).await.unwrap();
        }
        let claimed = d.triggers("t").len();
        if claimed > started.len() {
            started.push(d.world.clock.now().duration_since(begun).as_secs());
        }
        d.world.clock.advance(Duration::from_secs(1));
    }
    assert_eq!(started, [110]);
}
