//! Public reports about other schedulers that concern conditions and policies: each shows that what
//! was reported there does not happen here.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lakebell_domain::evaluation::Take;
use lakebell_domain::event::EventKind;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::target::TargetSpec;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{self, Facts, Named, Pushed};
use lakebell_engine::{compensate, evaluate};
use serde_json::{Value, json};

use crate::support::{Deployment, key, spec, target_id, trace};

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

/// One script of commits, delivered and worked on in different ways: each trigger, in order of what it took.
async fn under_each(pace: usize, workers: usize, order: impl Fn(&mut Vec<(&'static str, u64)>)) -> Vec<Vec<String>> {
    let mut d = Deployment::with(&["a", "b"]).await;
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), &["a", "b"])])).unwrap();
    document["coalesce"] = json!("each");
    d.declare(&serde_json::from_value(document).unwrap()).await;
    let script = ["a", "a", "b", "a", "b", "b", "a", "b", "a", "a", "b", "b"];
    for batch in script.chunks(pace) {
        let mut notified: Vec<(&'static str, u64)> =
            batch.iter().map(|table| (*table, d.table(table).commit("APPEND", 1))).collect();
        notified.extend(notified.clone());
        order(&mut notified);
        let shared = Arc::new(d);
        for at_once in notified.chunks(workers) {
            let mut looks = tokio::task::JoinSet::new();
            for (table, id) in at_once.iter().copied() {
                let d = Arc::clone(&shared);
                looks.spawn(async move {
                    // One that lost too many races comes again, as from its queue.
                    while d.try_notify(table, id).await.is_err() {}
                });
            }
            looks.join_all().await;
        }
        d = Arc::into_inner(shared).unwrap();
        d.run_dispatcher().await;
    }
    let mut took: Vec<_> = d.triggers("t").iter().map(Deployment::took).collect();
    took.sort();
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn case_8_the_list_of_triggers_is_the_same_at_any_pace_and_with_any_number_of_workers() {
    let expected = under_each(1, 1, |_| {}).await;
    assert_eq!(expected.len(), 6);
    for pace in [1, 3, 12] {
        for workers in [1, 4, 16] {
            assert_eq!(under_each(pace, workers, |_| {}).await, expected, "{pace} at once, {workers} workers");
            assert_eq!(under_each(pace, workers, |notified| notified.reverse()).await, expected, "backwards");
        }
    }
}

#[tokio::test]
async fn case_33_why_says_ready_exactly_when_a_claim_succeeds() {
    for script in 0_u32..64 {
        let mut d = Deployment::with(&["a", "b"]).await;
        d.declare(&spec("t", &[("both", json!("all"), &["a", "b"]), ("again", json!({"atLeast": 1}), &["b"])])).await;
        for step in 0..6 {
            let table = if script >> step & 1 == 0 { "a" } else { "b" };
            let id = d.table(table).commit("APPEND", 1);
            // The commit is recorded, and whoever was to evaluate it dies.
            d.world.tap.fault(lakebell_testkit::Op::Get, 1, lakebell_testkit::Fault::DiesBefore);
            d.try_notify(table, id).await.unwrap_err();
            d.world.tap.calm();
            let why = d.why("t").await;
            let before = d.triggers("t").len();
            let evaluated = evaluate::evaluate_one(&d.world.ports(), &target_id("t"), &trace()).await.unwrap().unwrap();
            assert_eq!(why.verdict == Verdict::Ready, evaluated.claimed.is_some(), "script {script}, step {step}");
            assert_eq!(d.triggers("t").len() - before, usize::from(evaluated.claimed.is_some()));
            if let Some(claimed) = evaluated.claimed {
                let claimed = d.records().triggers.remove(&claimed).unwrap();
                assert_eq!(why.takes, Take::by(&claimed), "and it says what is taken");
            }
            d.run_dispatcher().await;
        }
    }
}

#[tokio::test]
async fn case_35_the_ranges_of_two_runs_cover_five_commits_once() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..5 {
        d.commit("a", "APPEND").await;
    }
    d.run_dispatcher().await;
    let took: Vec<String> = d.triggers("t").iter().flat_map(Deployment::took).collect();
    assert_eq!(took, ["a(-,1]", "a(1,5]"]);
    d.assert_started("t", 2);
}
