use std::time::Duration;

use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::trigger::{Status, StatusWord};
use lakebell_engine::{ErrorKind, assets, evaluate, targets};
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::json;

use crate::support::{Deployment, PROJECT, key, spec, target_id, trace};

#[tokio::test]
async fn case_23_a_group_fires_when_all_have_advanced_since_the_last_trigger() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    d.commit("b", "APPEND").await;
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    // b2 came after the trigger over (a2, b1).
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,2]", "b(-,1]"]);
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()), ["a(2,3]", "b(1,2]"]);
    assert_eq!(d.why("t").await.verdict, Verdict::Waiting);
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()), ["a(3,4]", "b(2,3]"]);
    d.assert_started("t", 3);
}

#[tokio::test]
async fn case_30_the_started_workflow_receives_the_whole_version_vector() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    let id = d.table("a").commit_with("APPEND", 1, r#""watermark":1767225600000"#);
    d.notify("a", id).await;
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    let parameters = d.scheduler.instances()[0].parameters.clone();
    let golden = include_str!("golden/start_parameters.json");
    let mut shown = serde_json::to_value(&parameters).unwrap();
    assert_eq!(shown["lakebell_trigger_key"], d.triggers("t")[0].key.as_str());
    shown["lakebell_trigger_key"] = json!("<key>");
    assert_eq!(shown, serde_json::from_str::<serde_json::Value>(golden).unwrap());
}

#[tokio::test]
async fn case_13_a_new_group_starts_from_now() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..9 {
        d.commit("a", "APPEND").await;
    }
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    assert_eq!(d.triggers("t").len(), 0);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(9,10]"]);
}

#[tokio::test]
async fn a_table_that_was_never_written_counts_from_its_first_commit() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    assert_eq!(d.why("t").await.reason.unwrap().code, ReasonCode::NoVersionYet);
    d.commit("a", "APPEND").await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,1]"]);
}

#[tokio::test]
async fn case_66_compaction_starts_nothing_unless_it_is_asked_for() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("plain", &[("g", json!("all"), &["a"])])).await;
    let compact = serde_json::from_value(json!({
        "name": "compact", "workflowDefinitionCode": 12,
        "groups": [{"dependencies": [{"asset": key("a"), "commitKinds": ["COMPACT"]}]}]
    }))
    .unwrap();
    d.declare(&compact).await;
    d.commit("a", "COMPACT").await;
    assert_eq!((d.triggers("plain").len(), d.triggers("compact").len()), (0, 1));
    d.commit("a", "APPEND").await;
    assert_eq!((d.triggers("plain").len(), d.triggers("compact").len()), (1, 1));
}

#[tokio::test]
async fn a_minimum_snapshot_blocks_until_it_is_reached() {
    let mut d = Deployment::with(&["a"]).await;
    let at_least_three = serde_json::from_value(json!({
        "name": "t", "workflowDefinitionCode": 12,
        "groups": [{"dependencies": [{"asset": key("a"), "minSnapshotId": 3}]}]
    }))
    .unwrap();
    d.declare(&at_least_three).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    let why = d.why("t").await;
    assert_eq!(
        (why.verdict, why.reason.unwrap().code),
        (Verdict::BlockedBySnapshot, ReasonCode::MinSnapshotNotReached)
    );
    d.commit("a", "APPEND").await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,3]"]);
}

#[tokio::test]
async fn any_asks_for_one_and_leaves_the_others_with_an_empty_range() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.commit("b", "APPEND").await;
    d.declare(&spec("t", &[("g", json!("any"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,1]", "b(1,1]"]);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn at_least_k_names_what_is_missing() {
    let mut d = Deployment::with(&["a", "b", "c"]).await;
    d.declare(&spec("t", &[("g", json!({"atLeast": 2}), &["a", "b", "c"])])).await;
    d.commit("a", "APPEND").await;
    let reason = d.why("t").await.reason.unwrap();
    assert_eq!(reason.code, ReasonCode::TooFewAdvanced);
    assert_eq!(reason.unblock, "1 more of b, c");
    d.commit("c", "APPEND").await;
    assert_eq!(d.triggers("t").len(), 1);
}

#[tokio::test]
async fn alternatives_that_are_ready_together_are_one_start() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("both", json!("all"), &["a", "b"]), ("only-b", json!("all"), &["b"])])).await;
    d.commit("a", "APPEND").await;
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    let triggers = d.triggers("t");
    assert_eq!(triggers.len(), 1);
    assert_eq!(triggers[0].groups.len(), 2);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn data_that_one_alternative_consumed_is_consumed_for_the_other() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("only-a", json!("all"), &["a"]), ("both", json!("all"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.commit("b", "APPEND").await;
    assert_eq!(d.triggers("t").len(), 1, "a1 was consumed by `only-a`");
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 2);
}

#[tokio::test]
async fn an_independent_alternative_starts_for_data_that_another_consumed() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let mut document =
        serde_json::to_value(spec("t", &[("only-a", json!("all"), &["a"]), ("both", json!("all"), &["a", "b"])]))
            .unwrap();
    document["groups"][1]["independent"] = json!(true);
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.commit("b", "APPEND").await;
    d.run_dispatcher().await;
    let mut took: Vec<_> = d.triggers("t").iter().map(Deployment::took).collect();
    took.sort();
    assert_eq!(took, vec![vec!["a(-,1]"], vec!["a(-,1]", "b(-,1]"]], "a1 stays new for `both`");
    d.commit("b", "APPEND").await;
    assert_eq!(d.triggers("t").len(), 2, "it has taken a1 itself");
    d.assert_started("t", 2);
}

#[tokio::test]
async fn case_4_four_quick_commits_coalesce_and_the_last_trigger_carries_the_newest() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    for _ in 0..4 {
        d.commit("a", "APPEND").await;
    }
    d.run_dispatcher().await;
    let triggers = d.triggers("t");
    assert_eq!(triggers.len(), 2);
    assert_eq!(Deployment::took(&triggers[1]), ["a(1,4]"]);
    d.assert_started("t", 2);
}

#[tokio::test]
async fn case_6_a_commit_between_evaluation_and_claim_counts_for_the_next() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.table("a").commit("APPEND", 1);
    d.table("a").commit("APPEND", 1);
    let other = lakebell_engine::watch::Watcher::new(d.world.quiet_ports());
    let second = d.created("a", 2);
    // The claim is the second write of this notification.
    d.world.tap.before(Op::Write, 2, move || async move {
        other.created(&second, &trace()).await.unwrap();
    });
    d.notify("a", 1).await;
    d.run_dispatcher().await;
    let records = d.records();
    assert_eq!(records.in_order(), Vec::<String>::new());
    let upper: Vec<_> = d.triggers("t").iter().map(|t| Deployment::took(t)[0].clone()).collect();
    assert_eq!(upper.last().unwrap().split(',').next_back().unwrap(), "2]");
}

#[tokio::test]
async fn case_1_one_notification_fifty_times_in_parallel_is_one_start() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.table("a").commit("APPEND", 1);
    let d = std::sync::Arc::new(d);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let d = std::sync::Arc::clone(&d);
        workers.spawn(async move {
            let _ = d.try_notify("a", 1).await; // one that lost too many races comes again
            d.try_notify("a", 1).await.map(|_| ())
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap().unwrap();
    }
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn case_3_two_assets_that_advance_at_the_same_time_give_exactly_one_trigger_each_round() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    for round in 1..=100_usize {
        let (a, b) = (d.table("a").commit("APPEND", 1), d.table("b").commit("APPEND", 1));
        let (one, two) = tokio::join!(d.notify("a", a), d.notify("b", b));
        drop((one, two));
        d.run_dispatcher().await;
        assert_eq!(d.triggers("t").len(), round);
    }
    d.assert_started("t", 100);
}

#[tokio::test]
async fn a_lost_answer_to_the_claim_leaves_nothing_unsent() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.table("a").commit("APPEND", 1);
    d.world.tap.fault(Op::Write, 2, Fault::LostAnswer);
    assert!(d.try_notify("a", 1).await.unwrap_err().retryable());
    assert!(d.world.queue.is_empty());
    // The notification comes again after its time of invisibility, which is minutes.
    d.world.clock.advance(Duration::from_mins(6));
    d.notify("a", 1).await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_death_between_advance_and_claim_is_made_good_by_the_redelivery() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.table("a").commit("APPEND", 1);
    d.world.tap.fault(Op::Write, 1, Fault::DiesAfter);
    assert!(d.try_notify("a", 1).await.is_err());
    d.world.tap.revive();
    d.notify("a", 1).await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_failed_triggers_data_goes_to_the_next_claim() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t")[0].status().word(), StatusWord::Failed);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let triggers = d.triggers("t");
    assert!(matches!(triggers[0].status(), Status::Skipped { superseded_by: Some(_), .. }));
    assert_eq!(Deployment::took(&triggers[1]), ["a(-,2]"]);
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_waiting_trigger_is_replaced_and_keeps_its_back_off_and_both_groups() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("ga", json!("all"), &["a"]), ("gb", json!("all"), &["b"])])).await;
    d.scheduler.fault(StartFault::NoMaster);
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    d.carry(&message).await.unwrap();
    assert!(matches!(d.triggers("t")[0].status(), Status::Waiting { .. }));
    let due_at = d.triggers("t")[0].due_at;
    d.commit("b", "APPEND").await;
    let triggers = d.triggers("t");
    let live = triggers.iter().find(|trigger| !trigger.has_ended()).unwrap();
    assert_eq!(Deployment::took(live), ["a(-,1]", "b(-,1]"]);
    assert_eq!(live.groups.len(), 2, "the union of the groups");
    assert_eq!(live.due_at, due_at);
    assert!(matches!(live.status(), Status::Waiting { .. }));
}

#[tokio::test]
async fn declaring_the_same_again_changes_nothing_and_altering_keeps_cursors() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let first = spec("t", &[("g", json!("all"), &["a"])]);
    d.declare(&first).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert!(!d.declare(&first).await.is_changed);
    d.commit("b", "APPEND").await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    assert_eq!(d.triggers("t").len(), 1, "b starts from now, a from its cursor");
    d.commit("a", "APPEND").await;
    d.commit("b", "APPEND").await;
    assert_eq!(Deployment::took(&d.triggers("t")[1]), ["a(1,2]", "b(1,2]"]);
}

#[tokio::test]
async fn declare_against_advance_loses_nothing() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    // The advance has read head and pointers (none) and is about to write when the target is
    // declared: it must lose its race and see the pointer.
    let ports = d.world.quiet_ports();
    let target = spec("t", &[("g", json!("all"), &["a"])]);
    d.world.tap.before(Op::Write, 1, move || async move {
        targets::declare(&ports, PROJECT, &target, &trace()).await.unwrap();
    });
    d.notify("a", 1).await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,1]"], "it was declared before the advance");
}

#[tokio::test]
async fn undeclare_skips_what_is_queued_and_declaring_again_starts_anew() {
    let mut d = Deployment::with(&["a"]).await;
    let declared = spec("t", &[("g", json!("all"), &["a"])]);
    d.declare(&declared).await;
    d.commit("a", "APPEND").await;
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    assert_eq!(d.triggers("t")[0].status().word(), StatusWord::Skipped);
    d.run_dispatcher().await;
    d.commit("a", "APPEND").await;
    d.assert_started("t", 0);
    assert_eq!(d.declare(&declared).await.definition.target.generation, 2);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()), ["a(2,3]"]);
}

#[tokio::test]
async fn undeclare_is_refused_while_a_start_may_be_under_way() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.scheduler.fault(StartFault::TakesEffectThenTimesOut);
    d.commit("a", "APPEND").await;
    let message = d.world.queue.drain().remove(0);
    d.carry(&message).await.unwrap();
    let error = targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn case_15_an_unknown_asset_is_refused_with_the_nearest_names() {
    let d = Deployment::with(&["orders", "payments"]).await;
    let declared = spec("t", &[("g", json!("all"), &["order"])]);
    let error = targets::declare(&d.world.quiet_ports(), PROJECT, &declared, &trace()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("paimon://ods_db/orders"), "{error}");
}

#[tokio::test]
async fn a_deregistered_asset_blocks_and_says_so_and_comes_back_in_the_next_epoch() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let ports = d.world.quiet_ports();
    assets::deregister(&ports, &key("a")).await.unwrap();
    let why = d.why("t").await;
    assert_eq!((why.verdict, why.reason.unwrap().code), (Verdict::BlockedByUnknownAsset, ReasonCode::AssetUnknown));
    let location = d.tables["a"].location().parse().unwrap();
    assets::register(&ports, PROJECT, &assets::AssetSpec::new(key("a"), location), &trace()).await.unwrap();
    assert_eq!(d.head("a").state.epoch.0, 1);
}

#[tokio::test]
async fn two_assets_on_one_location_are_refused() {
    let d = Deployment::with(&["a"]).await;
    let location = d.tables["a"].location().parse().unwrap();
    let spec = assets::AssetSpec::new(key("other"), location);
    let error = assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(!error.message().contains("ods_db/a\""), "whose it is stays unsaid: {error}");
}

#[tokio::test]
async fn more_dependents_than_fit_inline_go_to_the_evaluate_queue() {
    let mut d = Deployment::with(&["a"]).await;
    for n in 0..45 {
        d.declare(&spec(&format!("t{n}"), &[("g", json!("all"), &["a"])])).await;
    }
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    for n in 0..45 {
        d.assert_started(&format!("t{n}"), 1);
    }
}

#[tokio::test]
async fn case_34_the_explanation_is_the_same_when_it_is_computed_again() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.why("t").await, d.why("t").await);
    let evaluated = evaluate::evaluate_one(&d.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap().unwrap();
    assert_eq!(evaluated.evaluation, d.why("t").await);
}

#[tokio::test]
async fn case_22_the_definition_echo_states_the_rule_in_words() {
    let d = Deployment::with(&["a", "b"]).await;
    let declared = d.declare(&spec("t", &[("g", json!("all"), &["a", "b"])])).await;
    assert_eq!(declared.definition.target.rule(), "fires when BOTH a AND b have advanced since the last trigger");
}
