//! Targets that look at each commit, and begin before their declaration.

use std::time::Duration;

use lakebell_domain::target::TargetSpec;
use lakebell_engine::observe::MAX_PAST;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::{ErrorKind, operate, replay, targets};
use serde_json::{Value, json};

use super::with;
use crate::support::{Deployment, PROJECT, target_id, trace};

fn each(tables: &[&str], start: &Value) -> TargetSpec {
    with(tables, &json!({"coalesce": "each", "startFrom": start}))
}

/// Commits of which nobody is told, and which an asset that is registered later finds there.
async fn with_commits(tables: &[(&str, &[&str])]) -> Deployment {
    let mut d = Deployment::with(&[]).await;
    for (table, kinds) in tables {
        d.create(table);
        for kind in *kinds {
            d.table(table).commit(kind, 1);
        }
        d.register_table(table).await;
    }
    d
}

async fn took(d: &Deployment) -> Vec<Vec<String>> {
    d.run_dispatcher().await;
    let mut triggers = d.triggers("t");
    let reach = |range: &lakebell_domain::trigger::Range| range.bounds.to.as_ref().map(|to| to.position);
    triggers.sort_by_key(|trigger| (trigger.claimed_at, trigger.ranges.iter().filter_map(reach).max()));
    triggers.iter().map(Deployment::took).collect()
}

const DOZEN: [&str; 12] = [
    "APPEND",
    "APPEND",
    "COMPACT",
    "APPEND",
    "OVERWRITE",
    "APPEND",
    "APPEND",
    "COMPACT",
    "APPEND",
    "APPEND",
    "APPEND",
    "COMPACT",
];

#[tokio::test]
async fn each_begins_where_it_is_told_with_commits_that_nobody_recorded() {
    for (start, expected) in [
        (json!("now"), vec![]),
        (json!("current"), vec!["a(10,11]"]),
        (json!(9), vec!["a(8,9]", "a(9,10]", "a(10,11]"]),
        (
            json!("earliest"),
            vec!["a(-,1]", "a(1,2]", "a(2,4]", "a(4,5]", "a(5,6]", "a(6,7]", "a(7,9]", "a(9,10]", "a(10,11]"],
        ),
    ] {
        let mut d = with_commits(&[("a", &DOZEN)]).await;
        d.declare(&each(&["a"], &start)).await;
        let expected: Vec<Vec<String>> = expected.into_iter().map(|took| vec![took.to_owned()]).collect();
        assert_eq!(took(&d).await, expected, "startFrom: {start}");
        d.commit("a", "APPEND").await;
        let next = took(&d).await;
        let from = if start == "now" { 12 } else { 11 };
        assert_eq!(next.last().unwrap(), &[format!("a({from},13]")], "startFrom: {start}");
        assert_eq!(next.len(), expected.len() + 1);
    }
}

#[tokio::test]
async fn pairs_begin_with_the_oldest_of_each_member() {
    let mut d = with_commits(&[("a", &["APPEND", "APPEND", "APPEND"]), ("b", &["APPEND", "COMPACT", "APPEND"])]).await;
    d.declare(&each(&["a", "b"], &json!("earliest"))).await;
    assert_eq!(took(&d).await, [["a(-,1]", "b(-,1]"], ["a(1,2]", "b(1,3]"]]);
    d.commit("b", "APPEND").await;
    assert_eq!(took(&d).await[2], ["a(2,3]", "b(3,4]"]);
}

#[tokio::test]
async fn what_is_expired_is_no_part_of_it() {
    let mut d = with_commits(&[("a", &DOZEN)]).await;
    d.table("a").expire_below(6);
    d.declare(&each(&["a"], &json!("earliest"))).await;
    let expected = ["a(-,6]", "a(6,7]", "a(7,9]", "a(9,10]", "a(10,11]"];
    assert_eq!(took(&d).await.concat(), expected);
}

#[tokio::test]
async fn recorded_commits_are_kept_for_as_long_as_the_target_may_need_them() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    d.table("a").expire_below(3);
    d.declare(&each(&["a"], &json!("earliest"))).await;
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    // Longer than events are kept of which no target asks for each.
    d.world.clock.advance(Duration::from_hours(30 * 24));
    d.world.items.forget_expired(d.world.clock.now());
    let events = d.world.items.dump().into_iter().filter(|item| item.key.sk.starts_with("E#SNAPSHOT_COMMITTED"));
    assert_eq!(events.count(), 3);
}

#[tokio::test]
async fn what_a_first_read_took_of_a_table_that_is_taken_in_is_kept_too() {
    let mut d = Deployment::with(&["a"]).await;
    let document = json!({
        "name": "t", "workflowDefinitionCode": 11,
        "groups": [{"advance": "all", "dependencies": [
            {"asset": "paimon://ods_db/ods_*", "operations": {"include": ["APPEND"]}},
            {"asset": crate::support::key("a")},
        ]}],
    });
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.create("ods_b");
    d.table("ods_b").commit("APPEND", 1);
    d.register_table("ods_b").await;
    d.world.clock.advance(Duration::from_hours(30 * 24));
    d.world.items.forget_expired(d.world.clock.now());
    d.commit("a", "APPEND").await;
    assert_eq!(took(&d).await, [["a(-,1]", "ods_b(-,1]"]]);
}

#[tokio::test]
async fn a_filter_looks_back_over_what_nobody_recorded() {
    let d = with_commits(&[("a", &DOZEN)]).await;
    let mut document = serde_json::to_value(with(&["a"], &json!({"startFrom": "earliest"}))).unwrap();
    document["groups"][0]["dependencies"][0]["operations"] = json!({"include": ["OVERWRITE"]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    assert_eq!(took(&d).await, [["a(-,5]"]]);
}

#[tokio::test]
async fn altered_to_each_it_goes_on_where_it_stood() {
    let mut d = with_commits(&[("a", &["APPEND"])]).await;
    d.declare(&with(&["a"], &json!({}))).await;
    let ports = d.world.quiet_ports();
    operate::switch(&ports, None, false, "ops", &trace()).await.unwrap();
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    // What the events were kept for is over, and the table has them still.
    d.world.clock.advance(Duration::from_hours(30 * 24));
    d.world.items.forget_expired(d.world.clock.now());
    d.declare(&each(&["a"], &json!("now"))).await;
    operate::switch(&ports, None, true, "ops", &trace()).await.unwrap();
    assert_eq!(took(&d).await.concat(), ["a(1,2]", "a(2,3]", "a(3,4]"]);
}

#[tokio::test]
async fn begun_anew_it_takes_them_once_more() {
    let d = with_commits(&[("a", &["APPEND", "APPEND"])]).await;
    d.declare(&each(&["a"], &json!("earliest"))).await;
    assert_eq!(took(&d).await.concat(), ["a(-,1]", "a(1,2]"]);
    operate::reset(&d.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap();
    assert_eq!(took(&d).await.len(), 4);
}

#[tokio::test]
async fn more_than_a_declaration_may_ask_for_is_refused_with_the_number() {
    let kinds = vec!["APPEND"; MAX_PAST + 1];
    let mut d = with_commits(&[("a", &kinds)]).await;
    let ports = d.world.quiet_ports();
    let error = targets::declare(&ports, PROJECT, &each(&["a"], &json!("earliest")), &trace()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.about("field"), Some("startFrom"));
    assert!(error.message().contains("more than 1000 commits of paimon://ods_db/a"), "{error}");
    assert!(targets::find(&ports, &target_id("t")).await.is_err(), "nothing is declared");
    d.declare(&each(&["a"], &json!(2))).await;
    d.commit("a", "APPEND").await;
}

#[tokio::test]
async fn a_history_that_storage_does_not_show_is_refused() {
    let mut d = with_commits(&[("a", &["APPEND"; 4])]).await;
    d.table("a").rollback_to(2);
    d.table("a").commit("OVERWRITE", 1);
    d.table("a").commit("APPEND", 1);
    let ports = d.world.quiet_ports();
    let error = targets::declare(&ports, PROJECT, &each(&["a"], &json!("earliest")), &trace()).await.unwrap_err();
    assert_eq!((error.kind(), error.about("field")), (ErrorKind::Conflict, Some("startFrom")));
}

#[tokio::test]
async fn a_replay_is_not_misled_by_commits_that_were_recorded_later() {
    let mut d = with_commits(&[("a", &["APPEND"; 4])]).await;
    d.world.clock.advance(Duration::from_mins(1));
    d.declare(&each(&["a"], &json!("earliest"))).await;
    assert_eq!(took(&d).await.len(), 4);
    d.world.clock.advance(Duration::from_mins(1));
    d.commit("a", "APPEND").await;
    let replayed = replay::of_declared(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    let to = |range: &lakebell_domain::trigger::Range| range.bounds.to.as_ref().map(|to| to.snapshot_id.to_string());
    let found: Vec<_> = replayed.starts.iter().flat_map(|start| start.ranges.iter().filter_map(to)).collect();
    assert_eq!(found, ["4", "5"], "what was known of at that time");
}
