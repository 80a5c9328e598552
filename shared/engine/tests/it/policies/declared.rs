//! Declaring, altering and taking in: where members begin, and what a refusal or a death leaves.

use std::time::Duration;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::EventKind;
use lakebell_domain::policy::Coalesce;
use lakebell_domain::target::{StartFrom, TargetSpec};
use lakebell_domain::trigger::Status;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{self, Facts, Named, Pushed};
use lakebell_engine::{ErrorKind, assets, compensate, grants, targets};
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::{Value, json};

use super::with;
use crate::support::{BUCKET, Deployment, PROJECT, key, spec, target_id, trace};

fn with_member(table: &str, conditions: &Value, more: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(with(&[table], more)).unwrap();
    for (key, value) in conditions.as_object().unwrap() {
        document["groups"][0]["dependencies"][0][key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

async fn done(d: &Deployment, table: &str, partition: &str) {
    let asset: AssetKey = key(table);
    let pushed = Pushed {
        id: format!("{table}-{partition}-{}", d.world.clock.now()),
        source: "writer".to_owned(),
        kind: EventKind::PartitionDone,
        time: None,
        asset: Named::Key(asset),
        facts: Facts { partition: Some(partition.to_owned()), ..Facts::default() },
    };
    push::push(&d.world.quiet_ports(), &pushed, &trace()).await.unwrap();
}

fn all_took(d: &Deployment) -> Vec<String> {
    let mut triggers = d.triggers("t");
    triggers.sort_by_key(|trigger| trigger.claimed_at);
    triggers.iter().map(|trigger| Deployment::took(trigger).join(" ")).collect()
}

async fn scan(d: &Deployment, table: &str) {
    let look = Message::Observe { asset: d.ids[table], is_again: false, trace: trace() };
    d.carry(&look).await.unwrap();
}

fn marks(d: &Deployment) -> Vec<String> {
    d.world.items.dump().into_iter().filter(|item| item.key.sk.starts_with("2#")).map(|item| item.key.sk).collect()
}

#[tokio::test]
async fn declared_again_partitions_begin_where_it_says() {
    let mut d = Deployment::with(&["a"]).await;
    let spec = with_member("a", &json!({"partition": "dt"}), &json!({"startFrom": "earliest"}));
    d.declare(&spec).await;
    d.commit("a", "APPEND").await;
    done(&d, "a", "dt=1").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1);
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    d.declare(&spec).await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 2, "{:?}", d.why("t").await.reason);
}

#[tokio::test]
async fn a_partition_that_is_asked_for_later_begins_where_it_says() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&with_member("a", &json!({}), &json!({}))).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    for day in 1..6 {
        done(&d, "a", &format!("dt={day}")).await;
    }
    d.declare(&with_member("a", &json!({"partition": "dt"}), &json!({}))).await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 1, "`startFrom: now`: only what comes later counts");
}

#[tokio::test]
async fn a_deregistered_member_keeps_no_prefix_from_taking_in() {
    let mut d = Deployment::with(&["ods_a", "x"]).await;
    let document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [
        {"name": "some", "dependencies": [{"asset": "paimon://ods_db/ods_*"}]},
        {"name": "one", "dependencies": [{"asset": key("x")}]},
    ]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    let ports = d.world.quiet_ports();
    assets::deregister(&ports, &key("x")).await.unwrap();
    d.create("ods_b");
    let spec = assets::AssetSpec::new(key("ods_b"), d.tables["ods_b"].location().parse().unwrap());
    let registered = assets::register(&ports, PROJECT, &spec, &trace()).await.map(|r| r.id);
    d.ids.insert("ods_b".into(), registered.expect("a target elsewhere must not fail a registration"));
    d.run_dispatcher().await;
    d.commit("ods_b", "APPEND").await;
    d.run_dispatcher().await;
    let why = d.why("t").await;
    assert_eq!(d.triggers("t").len(), 1, "{:?} {:?}", why.verdict, why.reason);
}

#[tokio::test]
async fn a_refused_declaration_leaves_no_mark_on_a_table() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    d.declare(&with(&["a"], &json!({"onRewrite": "follow"}))).await;
    // A table with more commits than a declaration may ask for, or as here a history that cannot be read now.
    d.table("a").rollback_to(1);
    d.table("a").commit("APPEND", 9);
    let mut other = with(&["a"], &json!({"coalesce": "each", "startFrom": "earliest"}));
    other.name = Some("other".parse().unwrap());
    let refused = targets::declare(&d.world.quiet_ports(), PROJECT, &other, &trace()).await;
    assert!(refused.is_err());
    for _ in 0..4 {
        scan(&d, "a").await;
        d.world.clock.advance(Duration::from_secs(61));
    }
    assert_eq!(d.head("a").state.epoch.0, 1, "{:?}", d.why("t").await.reason);
}

#[tokio::test]
async fn a_refused_alteration_leaves_the_marks_of_the_definition() {
    let mut d = Deployment::with(&["a"]).await;
    let kinds = lakebell_engine::observe::MAX_PAST + 2;
    for _ in 0..kinds {
        d.table("a").commit("APPEND", 1);
    }
    scan(&d, "a").await;
    d.declare(&with(&["a"], &json!({"onRewrite": "follow"}))).await;
    let mut altered =
        serde_json::to_value(with(&["a"], &json!({"coalesce": "each", "startFrom": "earliest"}))).unwrap();
    altered["groups"][0]["name"] = json!("other");
    let altered: TargetSpec = serde_json::from_value(altered).unwrap();
    targets::declare(&d.world.quiet_ports(), PROJECT, &altered, &trace()).await.expect_err("too many commits");
    d.table("a").rollback_to(5);
    d.table("a").commit("APPEND", 9);
    for _ in 0..4 {
        scan(&d, "a").await;
        d.world.clock.advance(Duration::from_secs(61));
    }
    assert_eq!(d.head("a").state.epoch.0, 1, "{:?}", d.why("t").await.reason);
}

#[tokio::test]
async fn registering_a_table_tells_nothing_of_another_project() {
    let mut d = Deployment::with(&["secret"]).await;
    let document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [
        {"name": "some", "dependencies": [{"asset": "paimon://ods_db/ods_*"}]},
        {"name": "one", "dependencies": [{"asset": key("secret")}]},
    ]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    let ports = d.world.quiet_ports();
    assets::deregister(&ports, &key("secret")).await.unwrap();
    d.create("ods_mine");
    let spec = assets::AssetSpec::new(key("ods_mine"), d.tables["ods_mine"].location().parse().unwrap());
    let stranger = lakebell_domain::ids::ProjectCode(8);
    let registered = assets::register(&ports, stranger, &spec, &trace()).await.map(|r| r.id);
    assert!(registered.is_ok(), "{}", registered.unwrap_err());
}

#[tokio::test]
async fn undeclaring_again_ends_what_a_death_left() {
    let d = Deployment::with(&["a"]).await;
    d.declare(&with(&["a"], &json!({}))).await;
    d.world.tap.fault(Op::Write, 2, Fault::DiesBefore);
    targets::undeclare(&d.world.ports(), &target_id("t")).await.expect_err("it dies");
    d.world.tap.revive();
    assert_eq!(marks(&d), ["2#7/t"]);
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    assert_eq!(marks(&d), [""; 0]);
}

#[tokio::test]
async fn the_next_look_ends_what_a_death_left() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&with(&["a", "b"], &json!({}))).await;
    // The pointer of `a`, the target, and then the pointer of `b`, which is gone.
    d.world.tap.fault(Op::Write, 3, Fault::DiesBefore);
    let died = targets::declare(&d.world.ports(), PROJECT, &with(&["a"], &json!({})), &trace()).await;
    died.expect_err("it dies");
    d.world.tap.revive();
    assert_eq!(marks(&d).len(), 2);
    d.commit("b", "APPEND").await;
    assert_eq!(marks(&d), ["2#7/t"]);
}

#[tokio::test]
async fn a_table_that_is_granted_again_is_not_taken_again() {
    let mut d = Deployment::with(&["ods_a"]).await;
    d.create("ods_b");
    let spec = assets::AssetSpec::new(key("ods_b"), d.tables["ods_b"].location().parse().unwrap());
    let owner = lakebell_domain::ids::ProjectCode(8);
    let ports = d.world.quiet_ports();
    let id = assets::register(&ports, owner, &spec, &trace()).await.unwrap().id;
    d.ids.insert("ods_b".into(), id);
    let project = PROJECT;
    grants::give(&ports, owner, &key("ods_b"), project, &trace()).await.unwrap();
    let document = json!({"name": "t", "workflowDefinitionCode": 11,
        "groups": [{"dependencies": [{"asset": "paimon://ods_db/ods_*"}]}]});
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.commit("ods_b", "APPEND").await;
    d.run_dispatcher().await;
    d.commit("ods_b", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 2);
    grants::take_back(&ports, owner, &key("ods_b"), project, &trace()).await.unwrap();
    let far = d.world.clock.now() + jiff::SignedDuration::from_mins(5);
    compensate::pass(&ports, &trace(), far).await.unwrap();
    d.run_dispatcher().await;
    d.commit("ods_a", "APPEND").await;
    d.run_dispatcher().await;
    let before = d.triggers("t").len();
    grants::give(&ports, owner, &key("ods_b"), project, &trace()).await.unwrap();
    d.run_dispatcher().await;
    let took: Vec<_> = d.triggers("t").iter().map(|t| Deployment::took(t).join(" ")).collect();
    assert_eq!(d.triggers("t").len(), before, "{took:?}");
}

#[tokio::test]
async fn a_batch_counts_from_where_the_group_begins() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..10 {
        d.commit("a", "APPEND").await;
    }
    d.declare(&with_member("a", &json!({"minNewSnapshots": 5}), &json!({"startFrom": 9}))).await;
    d.run_dispatcher().await;
    assert_eq!(all_took(&d), Vec::<String>::new(), "2 commits are no batch of 5");
}

#[tokio::test]
async fn rows_count_from_where_the_group_begins() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..10 {
        let id = d.table("a").commit("APPEND", 100);
        d.notify("a", id).await;
    }
    d.declare(&with_member("a", &json!({"minDeltaRecords": 500}), &json!({"startFrom": "current"}))).await;
    d.run_dispatcher().await;
    assert_eq!(all_took(&d), Vec::<String>::new(), "100 rows are no 500");
}

#[tokio::test]
async fn a_table_that_cannot_be_read_begins_where_it_is_told_or_not_at_all() {
    for (start, expected) in [(json!("current"), "a(2,3]"), (json!(2), "a(1,3]")] {
        let mut d = Deployment::with(&[]).await;
        d.create("a");
        for _ in 0..3 {
            d.table("a").commit("APPEND", 1);
        }
        d.world.storage.deny(BUCKET);
        d.register_table("a").await;
        let spec = with(&["a"], &json!({"startFrom": start}));
        let declared = targets::declare(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await;
        if start == "current" {
            let refused = declared.unwrap_err();
            assert_eq!((refused.kind(), refused.about("field")), (ErrorKind::Conflict, Some("startFrom")));
        } else {
            declared.expect("the number says where it begins");
        }
        d.world.storage.heal();
        d.declare(&spec).await;
        scan(&d, "a").await;
        d.run_dispatcher().await;
        assert_eq!(all_took(&d), [expected], "{start}");
    }
}

#[tokio::test]
async fn a_group_of_each_that_comes_back_passes_by_what_it_took() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let of = |groups: &[(&str, Value, &[&str])]| {
        let mut spec = spec("t", groups);
        spec.coalesce = Coalesce::Each;
        spec.start_from = StartFrom::Earliest;
        spec
    };
    let both = of(&[("g", json!("all"), &["a"]), ("h", json!("all"), &["b"])]);
    d.declare(&both).await;
    for _ in 0..12 {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    assert_eq!(d.triggers("t").len(), 12);
    d.declare(&of(&[("h", json!("all"), &["b"])])).await;
    let declared = targets::declare(&d.world.quiet_ports(), PROJECT, &both, &trace()).await;
    assert!(declared.is_ok(), "{declared:?}");
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.triggers("t").len(), 13);
}

#[tokio::test]
async fn a_group_that_comes_back_takes_its_failed_data_over() {
    let mut d = Deployment::with(&["a", "b"]).await;
    let of = |groups: &[(&str, Value, &[&str])]| {
        let mut spec = spec("t", groups);
        spec.start_from = StartFrom::Current;
        spec
    };
    let both = of(&[("g", json!("all"), &["a"]), ("h", json!("all"), &["b"])]);
    d.declare(&both).await;
    d.scheduler.fault(StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert!(matches!(d.triggers("t")[0].status(), Status::Failed { .. }));
    d.declare(&of(&[("h", json!("all"), &["b"])])).await;
    let again = targets::declare(&d.world.quiet_ports(), PROJECT, &both, &trace()).await;
    assert!(again.is_ok(), "{:?}", again.map(|_| ()));
    for _ in 0..2 {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    let shown: Vec<_> = d.triggers("t").iter().map(|t| (Deployment::took(t), t.status().clone())).collect();
    assert!(
        shown.iter().any(|(took, status)| matches!(status, Status::Success { .. }) && took[0].starts_with("a(-,")),
        "{shown:?}"
    );
}
