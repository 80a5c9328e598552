//! What the simulation found, each as the smallest test that shows it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lakebell_domain::event::{EventKind, Outcome, Source};
use lakebell_domain::ids::AttemptId;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::target::TargetSpec;
use lakebell_domain::version::Epoch;
use lakebell_engine::observe::{self, Hint, Look};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::items::{Index, Item, ItemStore, Key, Page, Range, Write, Written};
use lakebell_engine::push::{self, Facts, Named, Pushed, Receipt};
use lakebell_engine::{EngineError, assets, evaluate, layout, operate, store, targets};
use lakebell_testkit::{Fault, Op, PaimonTable};
use serde_json::json;

use crate::support::{BUCKET, Deployment, PROJECT, key, spec, target_id, trace};

/// A store in which a batch is no snapshot: a target's definition is read first, and the rest after it was
/// altered.
struct Torn {
    ports: Ports,
    altered: TargetSpec,
}

#[async_trait]
impl ItemStore for Torn {
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError> {
        self.ports.items.query(range, limit, after).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        let (first, rest): (Vec<Key>, Vec<Key>) = keys.iter().cloned().partition(|key| key.sk == "DEF");
        let mut found = self.ports.items.get(&first).await?;
        targets::declare(&self.ports, PROJECT, &self.altered, &trace()).await?;
        found.extend(self.ports.items.get(&rest).await?);
        Ok(found)
    }

    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        self.ports.items.write(actions, attempt).await
    }

    async fn index(
        &self,
        index: Index,
        pk: &str,
        up_to: Option<&str>,
        backwards: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Page<Key>, EngineError> {
        self.ports.items.index(index, pk, up_to, backwards, limit, after).await
    }
}

#[tokio::test]
async fn nothing_is_claimed_by_a_definition_that_was_altered_in_the_middle_of_the_read() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("any"), &["a", "b"])])).await;
    d.table("a").commit("APPEND", 1);
    // The table has advanced, and the one who saw it died before it evaluated.
    d.world.tap.fault(Op::Get, 2, Fault::DiesBefore);
    assert!(d.try_notify("a", 1).await.is_err());
    d.world.tap.calm();
    let altered = spec("t", &[("g", json!("all"), &["a", "b"])]);
    let ports = d.world.quiet_ports();
    let torn = Ports { items: Arc::new(Torn { ports: ports.clone(), altered }), ..ports };
    evaluate::evaluate_one(&torn, &target_id("t"), &trace()).await.unwrap();
    let claimed = d.triggers("t");
    assert!(claimed.is_empty(), "by `any`, when `all` was declared: {claimed:#?}");
}

#[tokio::test]
async fn switching_on_again_evaluates_what_the_first_one_left() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    operate::switch(&d.world.quiet_ports(), None, false, "ops", &trace()).await.unwrap();
    d.commit("a", "APPEND").await;
    d.world.queue.drain();
    // It is on, and the one who switched it on died before it sent the targets.
    d.world.tap.fault(Op::Write, 1, Fault::DiesAfter);
    assert!(operate::switch(&d.world.ports(), None, true, "ops", &trace()).await.is_err());
    d.world.tap.calm();
    operate::switch(&d.world.quiet_ports(), None, true, "ops", &trace()).await.unwrap();
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

/// A target that takes in tables by a prefix, and a table that was registered without its knowledge.
async fn with_a_table_that_was_not_taken_in() -> (Deployment, TargetSpec) {
    let mut d = Deployment::with(&[]).await;
    let document = json!({
        "name": "t", "workflowDefinitionCode": 11,
        "groups": [{"dependencies": [{"asset": "paimon://ods_db/ods_*"}]}],
    });
    let spec: TargetSpec = serde_json::from_value(document).unwrap();
    d.declare(&spec).await;
    let ports = d.world.quiet_ports();
    let subscriptions = layout::subscriptions("paimon://ods_db");
    let found = ports.items.query(&subscriptions, None, None).await.unwrap().found.remove(0);
    let remove = [Write::Remove(found.key.clone(), found.rev)];
    store::write(&*ports.items, &*ports.random, &remove).await.unwrap();
    let mut paimon = PaimonTable::new(Arc::clone(&d.world.storage), BUCKET, "wh/ods_db.db/ods_b");
    paimon.commit("APPEND", 1);
    d.tables.insert("ods_b".to_owned(), paimon);
    register(&mut d).await;
    d.world.items.plant(found);
    (d, spec)
}

async fn register(d: &mut Deployment) {
    let location = d.tables["ods_b"].location().parse().unwrap();
    let spec = lakebell_engine::assets::AssetSpec::new(key("ods_b"), location);
    let registered = lakebell_engine::assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    d.ids.insert("ods_b".to_owned(), registered.id);
}

#[tokio::test]
async fn declaring_the_same_again_takes_tables_in_from_their_first_commit() {
    let (d, spec) = with_a_table_that_was_not_taken_in().await;
    d.declare(&spec).await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn registering_again_takes_in_what_the_first_one_left() {
    let (mut d, _) = with_a_table_that_was_not_taken_in().await;
    register(&mut d).await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

/// Table `a` with a rollback in it, which a second look would confirm.
async fn with_a_rewrite(target: &TargetSpec) -> (Deployment, u64) {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(target).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
        d.run_dispatcher().await;
    }
    d.table("a").rollback_to(1);
    let id = d.table("a").commit("APPEND", 9);
    d.notify("a", id).await;
    d.world.clock.advance(Duration::from_secs(61));
    (d, id)
}

#[tokio::test]
async fn a_look_goes_on_where_another_one_has_accepted_the_rewrite_meanwhile() {
    let mut target = spec("t", &[("g", json!("all"), &["a"])]);
    target.on_rewrite = serde_json::from_value(json!("follow")).unwrap();
    let (d, id) = with_a_rewrite(&target).await;
    let (ports, asset) = (d.world.quiet_ports(), d.ids["a"]);
    // Between what this look confirms and its own acceptance.
    d.world.tap.before(Op::Query, 2, move || async move {
        let hint = Hint { asset, look: Look::Whole, source: Source::Poll, trace: trace() };
        observe::observe(&ports, &hint).await.unwrap();
    });
    d.try_notify("a", id).await.unwrap();
    assert_eq!((d.head("a").state.epoch, d.head("a").state.hold), (Epoch(1), None));
    d.run_dispatcher().await;
    d.assert_started("t", 4);
}

impl Deployment {
    async fn tell_backfill(&self, has_ended: bool) -> Outcome {
        let (kind, id) =
            if has_ended { (EventKind::BackfillCompleted, "ended") } else { (EventKind::BackfillStarted, "begun") };
        let facts = Facts { backfill_id: Some("b".to_owned()), ..Facts::default() };
        let asset = Named::Key(key("a"));
        let pushed = Pushed { id: id.to_owned(), source: "job".to_owned(), kind, asset, time: None, facts };
        match Box::pin(push::push(&self.world.quiet_ports(), &pushed, &trace())).await.unwrap().receipt {
            Receipt::Looked(outcome) => outcome,
            Receipt::UnknownAsset => panic!("table a is registered"),
        }
    }
}

#[tokio::test]
async fn a_backfill_whose_start_comes_after_its_end_and_a_rewrite_holds_nothing() {
    let held = spec("t", &[("g", json!("all"), &["a"])]);
    let (mut d, id) = with_a_rewrite(&held).await;
    let mut finished = spec("finished", &[("g", json!("all"), &["a"])]);
    finished.groups[0].dependencies[0].backfill = serde_json::from_value(json!("COMPLETED")).unwrap();
    d.declare(&finished).await;
    operate::pause(&d.world.quiet_ports(), &target_id("finished"), "ops").await.unwrap();
    assert_eq!(d.tell_backfill(true).await, Outcome::Advanced);
    d.notify("a", id).await;
    observe::accept_rewrite(&d.world.quiet_ports(), d.ids["a"], &trace()).await.unwrap();
    assert_eq!(d.tell_backfill(false).await, Outcome::Superseded);
    operate::resume(&d.world.quiet_ports(), &target_id("finished"), &trace()).await.unwrap();
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert!(!d.triggers("t").is_empty() && d.why("t").await.verdict != Verdict::BlockedByBackfill);
    assert_eq!(Deployment::took(d.triggers("t").last().unwrap()).last().map(|took| took.ends_with(",3]")), Some(true));
    // What ended in a history that is gone meets no condition either.
    assert_eq!(d.triggers("finished"), []);
    assert_eq!(d.why("finished").await.reason.unwrap().code, ReasonCode::BackfillNotCompleted);

    // Registered again, it is another history still.
    assets::deregister(&d.world.quiet_ports(), &key("a")).await.unwrap();
    let location = d.tables["a"].location().parse().unwrap();
    let again = assets::AssetSpec::new(key("a"), location);
    assets::register(&d.world.quiet_ports(), PROJECT, &again, &trace()).await.unwrap();
    assert_eq!(d.tell_backfill(false).await, Outcome::Duplicate, "the same push");
    let backfills = d.head("a").state.backfills;
    assert_eq!((backfills.len(), backfills["b"].is_running()), (1, false));
}

#[tokio::test]
async fn a_backfill_that_runs_goes_on_holding_in_a_rewritten_history() {
    let (mut d, id) = with_a_rewrite(&spec("t", &[("g", json!("all"), &["a"])])).await;
    let before = d.triggers("t").len();
    assert_eq!(d.tell_backfill(false).await, Outcome::Advanced);
    d.notify("a", id).await;
    observe::accept_rewrite(&d.world.quiet_ports(), d.ids["a"], &trace()).await.unwrap();
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!((d.why("t").await.verdict, d.triggers("t").len()), (Verdict::BlockedByBackfill, before));
    assert_eq!(d.tell_backfill(true).await, Outcome::Advanced);
    d.run_dispatcher().await;
    d.assert_started("t", before + 1);
}
