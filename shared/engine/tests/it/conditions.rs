//! Conditions of a dependency, from the declaration to the scheduler.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::date;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use serde_json::{Value, json};

use crate::support::{Deployment, key, trace};

impl Deployment {
    /// Declares the target `t` on the table `a`.
    async fn declare_on_a(&self, conditions: &Value, policies: &Value) {
        let mut document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [{"dependencies": [{}]}]});
        document["groups"][0]["dependencies"][0] = conditions.clone();
        document["groups"][0]["dependencies"][0]["asset"] = json!(key("a"));
        for (name, value) in policies.as_object().unwrap() {
            document[name] = value.clone();
        }
        self.declare(&serde_json::from_value(document).unwrap()).await;
    }

    /// Commits so many rows, with this watermark if any, and carries out what follows.
    async fn commit_rows(&mut self, rows: i64, watermark: Option<Timestamp>) {
        let more = watermark.map(|at| format!("\"watermark\":{}", at.as_millisecond())).unwrap_or_default();
        let id = self.table("a").commit_with("APPEND", rows, &more);
        self.notify("a", id).await;
        self.run_dispatcher().await;
    }

    /// What the triggers took, in order.
    fn taken(&self) -> Vec<String> {
        let mut triggers = self.triggers("t");
        triggers.sort_by_key(|trigger| trigger.claimed_at);
        triggers.iter().flat_map(Deployment::took).collect()
    }

    async fn waits(&self) -> (Verdict, ReasonCode, String) {
        let why = self.why("t").await;
        let reason = why.reason.unwrap();
        (why.verdict, reason.code, reason.actual)
    }
}

#[tokio::test]
async fn commits_and_rows_are_counted_from_trigger_to_trigger() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare_on_a(&json!({"minNewSnapshots": 3, "minDeltaRecords": 10}), &json!({})).await;
    for rows in [2, 2] {
        d.commit_rows(rows, None).await;
    }
    let few = (Verdict::BlockedBySnapshot, ReasonCode::TooFewSnapshots, "2 since the last trigger".to_owned());
    assert_eq!(d.waits().await, few);
    d.commit_rows(2, None).await;
    let short = (Verdict::BlockedBySnapshot, ReasonCode::TooFewRecords, "6 since the last trigger".to_owned());
    assert_eq!(d.waits().await, short);
    d.commit_rows(4, None).await;
    assert_eq!(d.taken(), ["a(-,4]"]);
    d.world.clock.advance(Duration::from_secs(1));
    d.commit_rows(50, None).await;
    assert_eq!(d.waits().await.1, ReasonCode::TooFewSnapshots, "what was taken counts no more");
    d.commit("a", "COMPACT").await;
    d.commit_rows(1, None).await;
    assert_eq!(d.waits().await.1, ReasonCode::TooFewSnapshots, "a compaction is none");
    d.commit_rows(1, None).await;
    assert_eq!(d.taken(), ["a(-,4]", "a(4,8]"]);
}

#[tokio::test]
async fn a_watermark_may_be_so_far_behind_now() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare_on_a(&json!({"maxLag": "1h"}), &json!({})).await;
    let ago = |d: &Deployment, minutes| d.world.clock.now() - jiff::SignedDuration::from_mins(minutes);
    d.commit_rows(1, None).await;
    assert_eq!(d.waits().await.1, ReasonCode::WatermarkAbsent);
    let at = ago(&d, 61);
    d.commit_rows(1, Some(at)).await;
    assert_eq!(d.waits().await.1, ReasonCode::WatermarkTooOld);
    let at = ago(&d, 60);
    d.commit_rows(1, Some(at)).await;
    assert_eq!(d.taken(), ["a(-,3]"]);
}

#[tokio::test]
async fn a_window_starts_its_workflow_for_its_business_date() {
    let mut d = Deployment::with(&["a"]).await;
    let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    d.commit_rows(1, at("2026-03-01T03:00:00Z")).await;
    let every = json!({"every": {"period": "1d", "timeZone": "Asia/Shanghai"}});
    d.declare_on_a(&every, &json!({"startAs": "complement"})).await;
    d.commit_rows(1, at("2026-03-01T15:59:59Z")).await;
    assert_eq!(d.waits().await.1, ReasonCode::WindowOpen);
    // Two midnights of Shanghai are passed at once.
    d.commit_rows(1, at("2026-03-02T16:00:00Z")).await;
    let instances = d.scheduler.instances();
    let dates: Vec<_> = instances.iter().map(|instance| instance.business_date).collect();
    assert_eq!(dates, [Some(date(2026, 3, 1)), Some(date(2026, 3, 2))], "one for each, in order");
    assert_eq!(instances[0].parameters["lakebell_window_start"], "2026-02-28T16:00:00Z");
    assert_eq!(instances[0].parameters["lakebell_window_end"], "2026-03-01T16:00:00Z");
    assert_eq!(instances[1].parameters["lakebell_biz_date"], "2026-03-02");
}

/// A rollback withdraws the one commit that a filter would take, before anything took it.
#[tokio::test]
async fn a_filter_takes_nothing_that_was_withdrawn() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.commit("a", "APPEND").await;
    let document = json!({"name": "t", "workflowDefinitionCode": 11, "onRewrite": "follow", "groups": [{"dependencies": [
        {"asset": key("a"), "operations": {"include": ["OVERWRITE"]}}, {"asset": key("b")},
    ]}]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "OVERWRITE").await;
    d.table("a").rollback_to(2);
    d.table("a").commit("APPEND", 9);
    for _ in 0..3 {
        let look = Message::Observe { asset: d.ids["a"], is_again: false, trace: trace() };
        d.carry(&look).await.unwrap();
        d.world.clock.advance(Duration::from_secs(61));
    }
    assert_eq!(d.head("a").state.epoch.0, 1);
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.taken(), Vec::<String>::new());
    assert_eq!(d.waits().await.1, ReasonCode::NoVersionYet);
    d.commit("a", "OVERWRITE").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1);
}
