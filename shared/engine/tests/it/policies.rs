//! Policies of a target, from the declaration to the scheduler.

mod declared;
mod epochs;
mod long;
mod past;
mod resumed;
mod timers;

use std::time::Duration;

use lakebell_domain::policy::OnFailed;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::target::TargetSpec;
use lakebell_domain::trigger::{StartReason, Status};
use lakebell_engine::ports::items::{Item, Key, Write};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::scheduler::{Active, InstanceState, Latest, Refusal, WorkflowRef};
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::{ErrorKind, compensate, layout, operate, replay, store, targets};
use lakebell_testkit::StartFault;
use serde_json::{Value, json};

use crate::support::{Deployment, PROJECT, key, spec, target_id, trace};

/// The target `t` on these tables, with further keys.
fn with(tables: &[&str], more: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), tables)])).unwrap();
    for (key, value) in more.as_object().unwrap() {
        document[key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

/// One sweep, and what it asked for carried out.
async fn sweep(d: &Deployment) {
    compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
    for message in d.world.queue.drain() {
        d.carry(&message).await.unwrap();
    }
}

fn code(evaluation: &lakebell_domain::evaluation::Evaluation) -> Option<ReasonCode> {
    evaluation.reason.as_ref().map(|reason| reason.code)
}

#[tokio::test]
async fn a_switch_stops_all_starting_and_loses_nothing() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({}))).await;
    d.commit("a", "APPEND").await;
    let ports = d.world.quiet_ports();
    for project in [None, Some(PROJECT)] {
        operate::switch(&ports, project, false, "ops", &trace()).await.unwrap();
        operate::switch(&ports, project, false, "somebody else", &trace()).await.unwrap();
    }
    // The trigger that was queued before is not started, and what comes now is not claimed.
    for message in d.world.queue.drain() {
        d.carry(&message).await.unwrap();
    }
    assert_eq!(d.scheduler.start_calls(), 0);
    d.commit("a", "APPEND").await;
    let why = d.why("t").await;
    assert_eq!((why.verdict, code(&why)), (Verdict::BlockedByGate, Some(ReasonCode::SwitchedOff)));
    assert!(why.reason.unwrap().actual.contains("by ops"), "the first switch stands");
    operate::switch(&ports, None, true, "ops", &trace()).await.unwrap();
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::SwitchedOff), "the project is still off");
    operate::switch(&ports, Some(PROJECT), true, "ops", &trace()).await.unwrap();
    d.run_dispatcher().await;
    d.assert_started("t", 2);
}

#[tokio::test]
async fn shadow_is_claimed_and_recorded_and_never_started() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"mode": "shadow"}))).await;
    for _ in 0..2 {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    let triggers = d.triggers("t");
    let whys: Vec<_> = triggers.iter().map(|trigger| trigger.status().clone()).collect();
    assert_eq!(whys, vec![Status::Skipped { why: "shadow".to_owned(), superseded_by: None }; 2]);
    assert_eq!(Deployment::took(&triggers[1]), ["a(1,2]"], "a skipped range counts as consumed");
    assert_eq!(d.scheduler.start_calls(), 0);
}

#[tokio::test]
async fn gates_that_the_scheduler_answers_delay_and_never_drop() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"maxActive": 1, "afterWorkflow": 99}))).await;
    let other = WorkflowRef::Code(lakebell_domain::ids::WorkflowCode(99));
    let refusal = Refusal { code: "HTTP_503".to_owned(), detail: "busy".to_owned() };
    d.scheduler.set_active(Some(Active::Counted { instances: 0, pending: Some(1) }));
    d.scheduler.set_latest(&other, Latest::Failed { instance: lakebell_domain::ids::InstanceId(5) });
    d.commit("a", "APPEND").await;
    let closed = [
        ("GATE", "0 instances are active and 1 pending, of at most 1"),
        ("GATE", "the scheduler cannot tell how many starts are pending"),
        ("BACK_OFF", "HTTP_503: busy"),
        ("GATE", "the latest instance of workflow 99 did not succeed"),
        ("GATE", "workflow 99 has never run"),
    ];
    for (at, expected) in closed.iter().enumerate() {
        match at {
            0 => {}
            1 => d.scheduler.set_active(Some(Active::Counted { instances: 0, pending: None })),
            2 => d.scheduler.set_active(Some(Active::Unavailable(refusal.clone()))),
            3 => d.scheduler.set_active(Some(Active::Counted { instances: 0, pending: Some(0) })),
            _ => d.scheduler.set_latest(&other, Latest::None),
        }
        for message in d.world.queue.drain() {
            d.carry(&message).await.unwrap();
        }
        let trigger = d.triggers("t").remove(0);
        let Status::Waiting { reason } = trigger.status() else { panic!("{:?}", trigger.status()) };
        assert_eq!((reason.code.as_str(), reason.detail.as_str()), *expected);
        assert_eq!(trigger.tries, 0, "a closed gate uses up no try");
        d.world.clock.set(trigger.due_at.unwrap());
        compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
    }
    d.scheduler.set_latest(&other, Latest::Succeeded { instance: lakebell_domain::ids::InstanceId(6) });
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_target_that_holds_on_failure_waits_for_a_redrive() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"onFailed": "hold"}))).await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.commit("a", "APPEND").await;
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::TriggerFailed));
    let key = d.triggers("t")[0].key.clone();
    operate::redrive(&d.world.quiet_ports(), &key, "ops", &trace()).await.unwrap();
    d.run_dispatcher().await;
    let took: Vec<_> = d.triggers("t").iter().map(Deployment::took).collect();
    assert_eq!(took, [["a(-,1]"], ["a(1,2]"]], "nothing was joined");
    d.assert_started("t", 2);

    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    let failed = d.triggers("t").pop().unwrap();
    assert!(matches!(failed.status(), Status::Failed { .. }));
    operate::skip(&d.world.quiet_ports(), &failed.key, "ops", &trace()).await.unwrap();
    assert_eq!(d.why("t").await.verdict, Verdict::Waiting);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 3);
}

#[tokio::test]
async fn case_10_resuming_takes_one_trigger_over_all_or_nothing() {
    for (on_resume, expected) in [("latest", vec!["a(-,2]", "a(2,3]"]), ("skip", vec!["a(2,3]"])] {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&with(&["a"], &json!({"onResume": on_resume}))).await;
        let ports = d.world.quiet_ports();
        operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
        d.commit("a", "APPEND").await;
        d.commit("a", "APPEND").await;
        operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
        d.run_dispatcher().await;
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
        let took: Vec<String> = d.triggers("t").iter().flat_map(Deployment::took).collect();
        assert_eq!(took, expected, "onResume: {on_resume}");
    }
}

#[tokio::test]
async fn a_request_fires_once_and_says_what_did_not_hold() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({}))).await;
    d.commit("a", "APPEND").await;
    let ports = d.world.quiet_ports();
    let first = operate::fire(&ports, &target_id("t"), "request-1", &trace()).await.unwrap().value;
    assert_eq!(first.reason, StartReason::Manual);
    assert_eq!(Deployment::took(&first), ["a(-,1]", "b(-,-]"], "a member that has not advanced has an empty range");
    let unmet: Vec<_> = first.unmet.iter().map(|reason| reason.code).collect();
    assert_eq!(unmet, [ReasonCode::NoVersionYet]);
    d.run_dispatcher().await;
    d.commit("a", "APPEND").await;
    let again = operate::fire(&ports, &target_id("t"), "request-1", &trace()).await.unwrap().value;
    assert_eq!(again.key, first.key, "the same request is the same start, whatever has come since");
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
    let refused = operate::fire(&ports, &target_id("t"), "request-2", &trace()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("paused by ops"), "{refused}");
}

#[tokio::test]
async fn a_reset_target_may_start_for_the_same_versions_again() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"startFrom": "current"}))).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    operate::reset(&d.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap();
    d.run_dispatcher().await;
    let generations: Vec<_> = d.triggers("t").iter().map(|trigger| trigger.generation).collect();
    assert_eq!(generations.len(), 2, "snapshot 1 counts as new once more: {generations:?}");
    d.assert_started("t", 2);
}

#[tokio::test]
async fn case_44_what_is_passed_over_starts_nothing() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({}))).await;
    d.commit("a", "APPEND").await;
    let ports = d.world.quiet_ports();
    operate::pass_over(&ports, &target_id("t"), Some(d.ids["a"]), &trace()).await.unwrap();
    d.commit("b", "APPEND").await;
    let why = d.why("t").await.reason.unwrap();
    assert_eq!(
        (why.code, why.expected.as_str()),
        (ReasonCode::NoNewVersion, "a commit that changes data beyond snapshot 1")
    );
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(1,2]", "b(-,1]"]);
}

#[tokio::test]
async fn a_group_begins_where_its_declaration_says() {
    for (start, expected) in [
        (json!("now"), vec![]),
        (json!("current"), vec!["a(2,3]"]),
        (json!("earliest"), vec!["a(-,3]"]),
        (json!(2), vec!["a(1,3]"]),
    ] {
        let mut d = Deployment::with(&["a"]).await;
        for _ in 0..3 {
            d.commit("a", "APPEND").await;
        }
        d.declare(&with(&["a"], &json!({"startFrom": start}))).await;
        d.run_dispatcher().await;
        let took: Vec<String> = d.triggers("t").iter().flat_map(Deployment::took).collect();
        assert_eq!(took, expected, "startFrom: {start}");
    }
}

#[tokio::test]
async fn case_8_each_version_is_one_trigger_however_they_come() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({"coalesce": "each"}))).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    d.commit("a", "COMPACT").await;
    d.commit("b", "APPEND").await;
    d.commit("b", "OVERWRITE").await;
    d.run_dispatcher().await;
    let mut took: Vec<_> = d.triggers("t").iter().map(Deployment::took).collect();
    took.sort();
    assert_eq!(took, [["a(-,1]", "b(-,1]"], ["a(1,2]", "b(1,2]"]]);
    assert_eq!(d.records().definitions[&target_id("t")].target.policies.on_failed, OnFailed::Hold);
    d.assert_started("t", 2);
}

#[tokio::test]
async fn case_77_chosen_writers_count_alone() {
    let mut d = Deployment::with(&["a"]).await;
    let mut document = serde_json::to_value(with(&["a"], &json!({}))).unwrap();
    document["groups"][0]["dependencies"][0]["operations"] = json!({"exclude": ["jo*"]});
    d.declare(&serde_json::from_value(document.clone()).unwrap()).await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.why("t").await.verdict, Verdict::Waiting, "its commit user is `job`");
    document["groups"][0]["dependencies"][0]["operations"] = json!({"include": ["job"]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.run_dispatcher().await;
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,1]"]);
}

#[tokio::test]
async fn case_32_a_prefix_takes_in_what_is_registered_later() {
    let mut d = Deployment::with(&["ods_a", "dwd_a"]).await;
    let document = json!({
        "name": "t", "workflowDefinitionCode": 11,
        "groups": [{"dependencies": [{"asset": "paimon://ods_db/ods_*"}]}],
    });
    d.commit("ods_a", "APPEND").await;
    let declared = d.declare(&serde_json::from_value(document).unwrap()).await;
    assert_eq!(declared.definition.target.groups[0].members.len(), 1);
    d.register("ods_b").await;
    d.commit("ods_b", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").iter().map(Deployment::took).collect::<Vec<_>>(), [["ods_a(1,1]", "ods_b(-,1]"]]);
    d.commit("dwd_a", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    d.register("ods_c").await;
    assert!(!d.records().definitions[&target_id("t")].target.assets().contains_key(&d.ids["ods_c"]));
}

#[tokio::test]
async fn a_registration_that_a_declaration_missed_is_taken_in_by_a_pass() {
    let mut d = Deployment::with(&[]).await;
    let document = json!({
        "name": "t", "workflowDefinitionCode": 11,
        "groups": [{"dependencies": [{"asset": "paimon://ods_db/ods_*"}]}],
    });
    d.declare(&serde_json::from_value(document).unwrap()).await;
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::NoMemberYet));
    // The registration saw no subscription.
    let ports = d.world.quiet_ports();
    let subscriptions = layout::subscriptions("paimon://ods_db");
    let found = ports.items.query(&subscriptions, None, None).await.unwrap().found.remove(0);
    d.world.items.plant(Item { key: Key::new("X#elsewhere", "-"), ..found.clone() });
    store::write(&*ports.items, &*ports.random, &[Write::Remove(found.key.clone(), found.rev)]).await.unwrap();
    d.register("ods_b").await;
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::NoMemberYet));
    let far = d.world.clock.now() + jiff::SignedDuration::from_mins(5);
    compensate::pass(&d.world.quiet_ports(), &trace(), far).await.unwrap();
    d.commit("ods_b", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn what_cannot_be_decided_follows_the_policy() {
    for (policy, expected) in [("assume-started", "success"), ("assume-absent", "success"), ("hold", "held")] {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&with(&["a"], &json!({"onUndecided": policy}))).await;
        d.scheduler.fault(StartFault::TimesOut);
        d.commit("a", "APPEND").await;
        let undecided = || lakebell_engine::ports::scheduler::CheckOutcome::Undecided { detail: "3.1".to_owned() };
        for _ in 0..40 {
            for message in d.world.queue.drain() {
                if d.triggers("t")[0].status().step() == "unknown" {
                    d.scheduler.answer_check(undecided());
                }
                d.carry(&message).await.unwrap();
            }
            d.world.clock.advance(Duration::from_mins(2));
            compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
        }
        assert_eq!(d.triggers("t")[0].status().step(), expected, "{policy}");
    }
}

/// A rollback and other commits, seen by two scans a settle time apart.
async fn rewritten(d: &mut Deployment) {
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.table("a").rollback_to(0);
    d.table("a").commit("APPEND", 9);
    d.table("a").commit("APPEND", 9);
    for _ in 0..2 {
        let look = Message::Observe { asset: d.ids["a"], is_again: false, trace: trace() };
        d.carry(&look).await.unwrap();
        d.world.clock.advance(Duration::from_secs(61));
    }
    let look = Message::Observe { asset: d.ids["a"], is_again: false, trace: trace() };
    d.carry(&look).await.unwrap();
    d.run_dispatcher().await;
}

#[tokio::test]
async fn a_rewrite_is_followed_where_every_target_says_so() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"onRewrite": "follow"}))).await;
    rewritten(&mut d).await;
    assert_eq!(d.head("a").state.epoch.0, 1);
    assert_eq!(d.why("t").await.verdict, Verdict::Waiting);
    let last = d.triggers("t").pop().unwrap();
    assert_eq!(
        last.ranges[0].bounds.to.as_ref().map(|to| to.position.epoch.0),
        Some(1),
        "accepting counts as an advance"
    );

    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"onRewrite": "follow"}))).await;
    d.declare(&spec("other", &[("g", json!("all"), &["a"])])).await;
    rewritten(&mut d).await;
    assert_eq!(d.head("a").state.epoch.0, 0, "another target holds it");
    assert_eq!(code(&d.why("t").await), Some(ReasonCode::RewriteHeld));

    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({"onRewrite": "follow", "settle": "1h"}))).await;
    rewritten(&mut d).await;
    assert_eq!(d.head("a").state.epoch.0, 0, "two reads agree, and an hour has not passed");
    d.world.clock.advance(Duration::from_hours(1));
    d.carry(&Message::Observe { asset: d.ids["a"], is_again: false, trace: trace() }).await.unwrap();
    assert_eq!(d.head("a").state.epoch.0, 1);
}

#[tokio::test]
async fn a_target_of_each_version_takes_the_whole_pause_at_once() {
    for (on_resume, expected) in [("latest", vec!["a(1,4]", "a(4,5]"]), ("skip", vec!["a(4,5]"])] {
        let mut d = Deployment::with(&["a"]).await;
        d.commit("a", "APPEND").await;
        d.declare(&with(&["a"], &json!({"coalesce": "each", "onResume": on_resume}))).await;
        let ports = d.world.quiet_ports();
        operate::pause(&ports, &target_id("t"), "ops").await.unwrap();
        for _ in 0..3 {
            d.commit("a", "APPEND").await;
        }
        operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
        d.run_dispatcher().await;
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
        let took: Vec<String> = d.triggers("t").iter().flat_map(Deployment::took).collect();
        assert_eq!(took, expected, "onResume: {on_resume}");
    }
}

#[tokio::test]
async fn a_replay_lists_the_starts_that_were() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({}))).await;
    for table in ["a", "a", "b", "b", "a", "b"] {
        d.world.clock.advance(Duration::from_mins(1));
        d.commit(table, "APPEND").await;
        d.run_dispatcher().await;
    }
    let replayed = replay::of_declared(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    let bounds = |ranges: &[lakebell_domain::trigger::Range]| -> Vec<_> {
        ranges.iter().map(|range| (range.asset, range.bounds.clone())).collect()
    };
    let live: Vec<_> = d.triggers("t").iter().map(|trigger| bounds(&trigger.ranges)).collect();
    let found: Vec<_> = replayed.starts.iter().map(|start| bounds(&start.ranges)).collect();
    assert_eq!(found, live);
    assert_eq!((replayed.events, replayed.is_cut, replayed.evaluation.verdict), (6, false, Verdict::Waiting));
    let each = with(&["a", "b"], &json!({"coalesce": "each"}));
    let replayed = replay::of_spec(&d.world.quiet_ports(), PROJECT, &each).await.unwrap();
    assert_eq!(replayed.starts.len(), 3, "pairs of the k-th versions");
    d.scheduler.begin_as(InstanceState::Success);
}

#[tokio::test]
async fn a_target_that_becomes_invalid_keeps_its_cursors_and_catches_up_once() {
    let mut d = Deployment::with(&["ods_a"]).await;
    let document = json!({
        "name": "t", "workflowDefinitionCode": 11,
        "groups": [
            {"name": "some", "dependencies": [{"asset": "paimon://ods_db/ods_*"}]},
            {"name": "one", "dependencies": [{"asset": key("ods_a"), "alias": "ods_b"}]},
        ],
    });
    d.declare(&serde_json::from_value(document.clone()).unwrap()).await;
    d.register("ods_b").await;
    let why = d.why("t").await;
    assert_eq!((why.verdict, code(&why)), (Verdict::Disabled, Some(ReasonCode::TargetInvalid)));
    assert!(why.reason.unwrap().actual.contains("`ods_b` would name both"));
    d.commit("ods_a", "APPEND").await;
    d.commit("ods_a", "APPEND").await;
    assert!(d.triggers("t").is_empty());
    let mut repaired = document;
    repaired["groups"][1]["dependencies"][0]["alias"] = json!("first");
    d.declare(&serde_json::from_value(repaired).unwrap()).await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    assert!(Deployment::took(&d.triggers("t")[0]).contains(&"ods_a(-,2]".to_owned()));
}
