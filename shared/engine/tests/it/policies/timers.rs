//! Policies that time decides: gates before a claim, deadlines, times of a cron expression.

use std::time::Duration;

use lakebell_domain::reason::ReasonCode;
use lakebell_domain::trigger::StartReason;
use lakebell_engine::compensate;
use lakebell_engine::ports::queue::Message;
use serde_json::json;

use super::{code, sweep, with};
use crate::support::{Deployment, trace};

#[tokio::test]
async fn a_quiet_period_is_a_durable_timer_and_what_starts_is_the_newest() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"quietPeriod": "5m"}))).await;
    d.commit("a", "APPEND").await;
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::QuietPeriod));
    d.world.clock.advance(Duration::from_mins(4));
    d.commit("a", "APPEND").await;
    d.world.clock.advance(Duration::from_mins(2));
    sweep(&d).await;
    assert!(d.triggers("t").is_empty(), "the second commit began the quiet period anew");
    d.world.clock.advance(Duration::from_mins(4));
    sweep(&d).await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,2]"]);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_minimum_interval_holds_the_second_start_back() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"minInterval": "1h"}))).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.commit("a", "APPEND").await;
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::MinInterval));
    d.world.clock.advance(Duration::from_mins(59));
    sweep(&d).await;
    assert_eq!(d.triggers("t").len(), 1);
    d.world.clock.advance(Duration::from_mins(2));
    sweep(&d).await;
    d.run_dispatcher().await;
    d.assert_started("t", 2);
}

#[tokio::test]
async fn case_85_a_member_never_advances_and_the_deadline_is_told_once() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({"deadline": {"within": "30m"}}))).await;
    d.commit("a", "APPEND").await;
    d.world.clock.advance(Duration::from_mins(31));
    let ports = d.world.quiet_ports();
    compensate::sweep(&ports, &trace()).await.unwrap();
    let mut late = 0;
    for _ in 0..3 {
        for message in d.world.queue.drain() {
            let Message::Evaluate { targets, trace } = message else { continue };
            for target in targets {
                let evaluated = lakebell_engine::evaluate::evaluate_one(&ports, &target, &trace).await.unwrap();
                late += usize::from(evaluated.unwrap().is_late);
            }
        }
        compensate::sweep(&ports, &trace()).await.unwrap();
        d.world.clock.advance(Duration::from_mins(1));
    }
    assert_eq!(late, 1);
    assert!(d.why("t").await.timed_out.is_some());
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    assert_eq!(d.why("t").await.timed_out, None);
}

#[tokio::test]
async fn a_deadline_that_fires_starts_with_what_is_there() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({"deadline": {"within": "30m"}, "onDeadline": "fire"}))).await;
    d.commit("a", "APPEND").await;
    d.world.clock.advance(Duration::from_mins(31));
    sweep(&d).await;
    d.run_dispatcher().await;
    let trigger = d.triggers("t").remove(0);
    assert_eq!((trigger.reason, trigger.unmet.len()), (StartReason::Deadline, 1));
    assert_eq!(trigger.parameters["lakebell_reason"], "deadline");
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_cron_time_starts_with_what_is_there_and_once() {
    let d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"orAt": {"cron": "0 * * * *", "timeZone": "UTC"}}))).await;
    for _ in 0..3 {
        d.world.clock.advance(Duration::from_mins(20));
        sweep(&d).await;
        d.run_dispatcher().await;
    }
    d.assert_started("t", 1);
    assert_eq!(d.triggers("t")[0].reason, StartReason::OrAt);
    d.world.clock.advance(Duration::from_hours(5));
    sweep(&d).await;
    d.run_dispatcher().await;
    sweep(&d).await;
    d.run_dispatcher().await;
    d.assert_started("t", 2);
}
