//! What becomes of what came while a target was paused, or starting was switched off.

use std::time::Duration;

use lakebell_domain::trigger::Status;
use lakebell_engine::operate;
use lakebell_testkit::StartFault;
use serde_json::{Value, json};

use super::with;
use crate::support::{Deployment, key, spec, target_id, trace};

/// What each trigger of `t` took, in the order of their claims.
fn took(d: &Deployment) -> Vec<String> {
    let mut triggers = d.triggers("t");
    triggers.sort_by_key(|trigger| trigger.claimed_at);
    triggers.iter().map(|trigger| Deployment::took(trigger).join(" ")).collect()
}

/// The target `t` with a group on `a` alone and one on both tables.
async fn alone_and_pairs() -> Deployment {
    let d = Deployment::with(&["a", "b"]).await;
    let mut spec = spec("t", &[("alone", json!("all"), &["a"]), ("pairs", json!("all"), &["a", "b"])]);
    spec.coalesce = lakebell_domain::policy::Coalesce::Each;
    d.declare(&spec).await;
    d
}

#[tokio::test]
async fn a_group_of_each_that_is_not_ready_keeps_what_came_during_the_pause() {
    let mut d = alone_and_pairs().await;
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
    d.run_dispatcher().await;
    assert_eq!(took(&d), ["a(-,2]"]);
    for _ in 0..2 {
        d.world.clock.advance(Duration::from_secs(1));
        d.commit("b", "APPEND").await;
        d.run_dispatcher().await;
    }
    assert_eq!(took(&d), ["a(-,2]", "a(-,2] b(-,1]"], "the pause is one step of each group");
    d.world.clock.advance(Duration::from_secs(1));
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let mut last = took(&d).split_off(2);
    last.sort();
    assert_eq!(last, ["a(2,3]", "a(2,3] b(1,2]"], "and what comes later is a step of its own");
    let cursor = d.records().cursors.remove(&target_id("t")).unwrap();
    assert!(cursor.joined.is_empty(), "nothing is left of the pause");
}

#[tokio::test]
async fn the_pause_is_one_trigger_also_behind_one_that_was_queued_before_it() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"coalesce": "each"}))).await;
    d.commit("a", "APPEND").await;
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    for _ in 0..3 {
        d.world.clock.advance(Duration::from_secs(1));
        d.commit("a", "APPEND").await;
    }
    operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(took(&d), ["a(-,1]", "a(1,4]", "a(4,5]"]);
}

/// One look reads fewer commits than came during the pause.
#[tokio::test]
async fn a_long_pause_is_one_trigger_also_behind_another_and_with_a_filter() {
    for filter in [json!({}), json!({"include": ["APPEND"]})] {
        let mut d = Deployment::with(&["a"]).await;
        let mut document = serde_json::to_value(with(&["a"], &json!({"coalesce": "each"}))).unwrap();
        if filter != json!({}) {
            document["groups"][0]["dependencies"][0]["operations"] = filter.clone();
        }
        d.declare(&serde_json::from_value(document).unwrap()).await;
        d.commit("a", "APPEND").await;
        let ports = d.world.quiet_ports();
        operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
        for _ in 0..450 {
            d.commit("a", "APPEND").await;
        }
        operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
        d.commit("a", "APPEND").await;
        for _ in 0..3 {
            d.world.clock.advance(Duration::from_secs(1));
            d.run_dispatcher().await;
        }
        let mut took = took(&d);
        took.sort();
        assert_eq!(took, ["a(-,1]", "a(1,451]", "a(451,452]"], "{filter}");
    }
}

#[tokio::test]
async fn the_pause_is_one_trigger_also_behind_one_that_failed_and_is_redriven() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"coalesce": "each"}))).await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    d.world.clock.advance(Duration::from_secs(1));
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    let failed = d.triggers("t")[0].key.clone();
    operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
    operate::redrive(&ports, &failed, "ops", &trace()).await.unwrap();
    d.run_dispatcher().await;
    assert_eq!(took(&d), ["a(-,1]", "a(1,3]"]);
}

#[tokio::test]
async fn a_target_that_held_for_a_failed_trigger_takes_its_data_along_once_it_is_altered() {
    for (before, after) in [
        (json!({"onFailed": "hold"}), json!({"onFailed": "extend"})),
        (json!({"coalesce": "each"}), json!({"coalesce": "newest"})),
    ] {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&with(&["a"], &before)).await;
        d.scheduler.fault(StartFault::Permanent);
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
        assert!(matches!(d.triggers("t")[0].status(), Status::Failed { .. }));
        d.declare(&with(&["a"], &after)).await;
        d.run_dispatcher().await;
        assert_eq!(took(&d), ["a(-,1]"], "a failure alone starts nothing");
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
        let triggers = d.triggers("t");
        assert_eq!(triggers.iter().flat_map(Deployment::took).collect::<Vec<_>>(), ["a(-,1]", "a(-,2]"]);
        assert!(matches!(triggers[0].status(), Status::Skipped { superseded_by: Some(_), .. }), "{before} to {after}");
        d.assert_started("t", 1);
        assert_eq!(d.records().failed_are_kept(&target_id("t")), Vec::<String>::new());
    }
}

/// A table with a watermark, and the target `t` by its hours.
async fn by_hours() -> Deployment {
    let mut d = Deployment::with(&["a"]).await;
    reach(&mut d, 0).await;
    let hours = json!({"asset": key("a"), "every": {"period": "1h", "timeZone": "UTC"}});
    let document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [{"dependencies": [hours]}]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d
}

async fn reach(d: &mut Deployment, hour: i64) {
    let at = 1_767_225_600_000_i64 + hour * 3_600_000;
    let id = d.table("a").commit_with("APPEND", 1, &format!("\"watermark\":{at}"));
    d.notify("a", id).await;
}

#[tokio::test]
async fn what_stands_in_the_way_says_what_becomes_of_what_comes_meanwhile() {
    let ports_of = |d: &Deployment| d.world.quiet_ports();
    let promised = async |d: &Deployment| d.why("t").await.reason.unwrap().unblock;
    for (policies, on_resume, on_switch) in [
        (json!({}), "becomes one trigger", "becomes one trigger"),
        (json!({"onResume": "skip"}), "counts as taken", "becomes one trigger"),
        (json!({"coalesce": "each"}), "becomes one trigger of its group", "each version"),
    ] {
        for is_switch in [false, true] {
            let mut d = Deployment::with(&["a"]).await;
            d.declare(&with(&["a"], &policies)).await;
            let ports = ports_of(&d);
            if is_switch {
                operate::switch(&ports, None, false, "ops", &trace()).await.unwrap();
            } else {
                operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
            }
            d.commit("a", "APPEND").await;
            d.commit("a", "APPEND").await;
            let (text, expected) = (promised(&d).await, if is_switch { on_switch } else { on_resume });
            assert!(text.contains(expected), "{policies}: {text}");
            if is_switch {
                operate::switch(&ports, None, true, "ops", &trace()).await.unwrap();
            } else {
                operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
            }
            d.run_dispatcher().await;
            let count = if text.contains("one trigger") { 1 } else { usize::from(is_switch) * 2 };
            assert_eq!(took(&d).len(), count, "{policies}: {text}");
        }
    }
    let mut d = by_hours().await;
    let ports = ports_of(&d);
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    reach(&mut d, 3).await;
    let text = promised(&d).await;
    assert!(text.contains("each window or partition"), "{text}");
    operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
    let text = promised(&d).await;
    assert!(text.contains("after it each window or partition"), "while one is on its way: {text}");
    d.run_dispatcher().await;
    assert_eq!(took(&d).len(), 3);
}

/// The windows of a target in the order of their claims, with the groups that they started for.
fn windows(d: &Deployment, group: &str) -> Vec<Value> {
    let mut triggers = d.triggers("t");
    triggers.retain(|trigger| trigger.groups.iter().any(|name| name.as_str() == group));
    triggers.iter().map(|trigger| serde_json::to_value(trigger.window).unwrap()).collect()
}

#[tokio::test]
async fn windows_of_two_lengths_and_partitions_that_are_ready_together_are_triggers_of_their_own() {
    let mut d = Deployment::with(&["a", "p"]).await;
    reach(&mut d, 0).await;
    let every = |period: &str| json!({"asset": key("a"), "every": {"period": period, "timeZone": "UTC"}});
    let document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [
        {"name": "parts", "dependencies": [{"asset": key("p"), "partition": "dt"}]},
        {"name": "daily", "dependencies": [every("1d")]},
        {"name": "hourly", "dependencies": [every("1h")]},
    ]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.commit("p", "APPEND").await;
    let ports = d.world.quiet_ports();
    operate::switch(&ports, None, false, "ops", &trace()).await.unwrap();
    reach(&mut d, 24).await;
    d.partition_done("p", "dt=1").await;
    operate::switch(&ports, None, true, "ops", &trace()).await.unwrap();
    d.run_dispatcher().await;
    assert_eq!((windows(&d, "parts"), windows(&d, "daily").len()), (vec![Value::Null], 1));
    assert_eq!(windows(&d, "hourly").len(), 24, "none was swallowed by a longer one");
    assert_eq!(d.triggers("t").len(), 26);
    d.assert_started("t", 26);
}
