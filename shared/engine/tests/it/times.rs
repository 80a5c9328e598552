//! Cases about time and about commits that change nothing.

use std::time::Duration;

use lakebell_domain::reason::ReasonCode;
use lakebell_domain::target::TargetSpec;
use lakebell_domain::trigger::StartReason;
use lakebell_engine::compensate;
use serde_json::{Value, json};

use crate::support::{Deployment, key, trace};

fn target(dependency: &Value, policies: &Value) -> TargetSpec {
    let mut document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [{"dependencies": [dependency]}]});
    for (name, value) in policies.as_object().unwrap() {
        document[name] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

async fn sweep(d: &Deployment) {
    compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
    d.run_dispatcher().await;
}

/// The clock begins at midnight UTC.
#[tokio::test]
async fn case_31_not_before_six_and_anyway_at_nine() {
    let policies = json!({
        "notBefore": {"time": "06:00", "timeZone": "UTC"}, "orAt": {"cron": "0 9 * * *", "timeZone": "UTC"},
    });
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&target(&json!({"asset": key("a")}), &policies)).await;
    d.world.clock.advance(Duration::from_hours(5));
    d.commit("a", "APPEND").await;
    sweep(&d).await;
    assert_eq!(d.why("t").await.reason.unwrap().code, ReasonCode::NotBefore);
    d.world.clock.advance(Duration::from_hours(1));
    sweep(&d).await;
    assert_eq!(d.triggers("t")[0].reason, StartReason::Ready);
    d.assert_started("t", 1);

    let d = Deployment::with(&["a"]).await;
    d.declare(&target(&json!({"asset": key("a")}), &policies)).await;
    d.world.clock.advance(Duration::from_mins(8 * 60 + 59));
    sweep(&d).await;
    d.assert_started("t", 0);
    d.world.clock.advance(Duration::from_mins(1));
    sweep(&d).await;
    let trigger = d.triggers("t").remove(0);
    let unmet: Vec<_> = trigger.unmet.iter().map(|reason| (reason.code, reason.asset.clone())).collect();
    assert_eq!((trigger.reason, unmet), (StartReason::OrAt, vec![(ReasonCode::NoVersionYet, Some(key("a")))]));
    d.assert_started("t", 1);
}

#[tokio::test]
async fn case_67_empty_commits_start_nothing_and_their_watermark_does() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let filled = target(&json!({"asset": key("a"), "ignoreEmpty": true}), &json!({}));
    d.declare(&filled).await;
    let mut by_watermark = target(
        &json!({"asset": key("b"), "snapshotRequired": false, "watermark": "2026-01-01T00:00:00Z"}),
        &json!({"name": "w"}),
    );
    by_watermark.workflow_definition_code = Some(lakebell_domain::ids::WorkflowCode(12));
    d.declare(&by_watermark).await;
    for _ in 0..60 {
        for table in ["a", "b"] {
            let id = d.table(table).commit("APPEND", 0);
            d.notify(table, id).await;
        }
    }
    d.run_dispatcher().await;
    assert!(d.triggers("t").is_empty() && d.triggers("w").is_empty());
    let id = d.table("b").commit_with("APPEND", 0, "\"watermark\":1767225600000");
    d.notify("b", id).await;
    d.run_dispatcher().await;
    d.assert_started("w", 1);
    d.assert_started("t", 0);
}
