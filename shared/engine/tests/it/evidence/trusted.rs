//! Assets with `trust: writer`: nothing is read, and what is pushed counts.

use lakebell_engine::assets::{self, AssetSpec};

use super::*;
use crate::support::PROJECT;

const ICEBERG: &str = "iceberg://ods_db/i";

impl Deployment {
    /// Registers a table that Lakebell cannot read, with nothing there.
    async fn register_trusted(&mut self, name: &str, key: &str) {
        let document = json!({"key": key, "location": format!("s3://not-ours/{name}"), "trust": "writer"});
        let spec: AssetSpec = serde_json::from_value(document).unwrap();
        let registered = assets::register(&self.world.ports(), PROJECT, &spec, &trace()).await.expect("register");
        self.ids.insert(name.to_owned(), registered.id);
    }

    async fn tell(&self, table: &str, kind: EventKind, facts: Facts) -> Outcome {
        let asset = Named::Key(table.parse().unwrap());
        let id = format!("{kind} {facts:?}");
        let pushed = Pushed { id, source: "job".to_owned(), kind, asset, time: Some(self.world.clock.now()), facts };
        match Box::pin(push::push(&self.world.ports(), &pushed, &trace())).await.expect("push").receipt {
            Receipt::Looked(outcome) => outcome,
            Receipt::UnknownAsset => panic!("{table} is registered"),
        }
    }

    async fn committed(&self, table: &str, snapshot: &str, more: impl FnOnce(&mut Facts)) -> Outcome {
        let mut facts = Facts { snapshot_id: Some(snapshot.to_owned()), ..Facts::default() };
        more(&mut facts);
        self.tell(table, EventKind::SnapshotCommitted, facts).await
    }
}

fn ignored(outcome: &Outcome) -> &str {
    let Outcome::Ignored(reason) = outcome else { panic!("{outcome:?}") };
    reason
}

async fn paimon() -> Deployment {
    let mut d = Deployment::with(&[]).await;
    d.world.tap.take_log();
    d.register_trusted("a", "paimon://ods_db/a").await;
    d.declare(&asks(&json!({}))).await;
    d
}

#[tokio::test]
async fn a_pushed_version_starts_what_depends_on_it_and_nothing_is_read() {
    let d = paimon().await;
    assert_eq!(d.why("t").await.verdict, Verdict::Waiting);
    assert_eq!(d.committed("paimon://ods_db/a", "3", |_| {}).await, Outcome::Advanced);
    assert_eq!(d.committed("paimon://ods_db/a", "3", |facts| facts.records = Some(5)).await, Outcome::Duplicate);
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    assert_eq!(Deployment::took(&d.triggers("t")[0]), ["a(-,3]"]);
    let later = d.committed("paimon://ods_db/a", "5", |facts| facts.operation = Some("COMPACT".to_owned())).await;
    assert_eq!(later, Outcome::Maintenance);
    assert_eq!(d.committed("paimon://ods_db/a", "4", |_| {}).await, Outcome::Superseded);
    let state = d.head("a").state;
    assert_eq!((state.position().ordinal, state.data.unwrap().mark.version.snapshot_id.as_str()), (Ordinal(5), "3"));
    // Scans and hints find nothing to read either.
    compensate::pass(&d.world.ports(), &trace(), d.world.clock.now() + SignedDuration::from_mins(1)).await.unwrap();
    d.run_dispatcher().await;
    let reads = d.world.tap.take_log().into_iter().filter(|call| matches!(call.op, Op::Read | Op::List)).count();
    assert_eq!(reads, 0);
}

#[tokio::test]
async fn verdicts_tags_and_replays_go_by_the_versions_that_were_told() {
    let d = paimon().await;
    d.committed("paimon://ods_db/a", "1", |facts| facts.schema_id = Some(4)).await;
    d.committed("paimon://ods_db/a", "2", |facts| facts.watermark = Some(lakebell_domain::commit::Millis(9))).await;
    assert_eq!(d.passed(2, 1).await, Outcome::Advanced);
    let state = d.head("a").state;
    assert_eq!(state.watermark.as_ref().unwrap().at.0, 9);
    let tag = |name: &str| Facts { tag: Some(name.to_owned()), ..Facts::default() };
    let named = Facts { snapshot_id: Some("1".to_owned()), ..tag("v1") };
    assert_eq!(d.tell("paimon://ods_db/a", EventKind::TagCreated, named.clone()).await, Outcome::Advanced);
    assert_eq!(d.head("a").state.tags["v1"].snapshot_id, "1");
    let unknown = Facts { snapshot_id: Some("7".to_owned()), ..tag("v7") };
    let unknown = d.tell("paimon://ods_db/a", EventKind::TagCreated, unknown).await;
    assert!(ignored(&unknown).contains("was not told of"), "{unknown:?}");
    assert_eq!(d.tell("paimon://ods_db/a", EventKind::TagDeleted, tag("v1")).await, Outcome::Advanced);
    assert!(d.head("a").state.tags.is_empty());
    let events = history::events(&d.world.quiet_ports(), d.ids["a"], 50, None).await.unwrap().found;
    let commits = events.iter().filter(|event| event.commit.is_some()).count();
    assert_eq!(commits, 2, "each commit has one event, as one that was read");
}

#[tokio::test]
async fn where_ids_tell_no_order_the_writer_does() {
    let mut d = Deployment::with(&[]).await;
    d.register_trusted("i", ICEBERG).await;
    let lacks = d.committed(ICEBERG, "8744736658442914487", |_| {}).await;
    assert!(ignored(&lacks).contains("give `ordinal`"), "{lacks:?}");
    let at = |ordinal| move |facts: &mut Facts| facts.ordinal = Some(ordinal);
    assert_eq!(d.committed(ICEBERG, "874", at(2)).await, Outcome::Advanced);
    assert_eq!(d.committed(ICEBERG, "111", at(1)).await, Outcome::Superseded);
    let other = d.committed(ICEBERG, "999", at(2)).await;
    assert!(ignored(&other).contains("another snapshot stands at 2"), "{other:?}");
    assert_eq!(d.head("i").state.table.unwrap().snapshot_id.as_str(), "874");
    let without = d.tell(ICEBERG, EventKind::SnapshotCommitted, Facts::default()).await;
    assert!(ignored(&without).contains("names no snapshot"), "{without:?}");
}

#[tokio::test]
async fn a_rewrite_that_is_told_of_holds_until_a_person_accepts_it() {
    let d = paimon().await;
    d.committed("paimon://ods_db/a", "9", |_| {}).await;
    d.run_dispatcher().await;
    assert_eq!(d.tell("paimon://ods_db/a", EventKind::HistoryRewritten, Facts::default()).await, Outcome::Advanced);
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedByRewrite);
    let held = d.committed("paimon://ods_db/a", "10", |_| {}).await;
    assert!(ignored(&held).contains("history is held"), "{held:?}");
    d.world.clock.advance(Duration::from_secs(61));
    let ports = d.world.quiet_ports();
    let source = lakebell_domain::event::Source::Poll;
    let hint = observe::Hint { asset: d.ids["a"], look: observe::Look::Whole, source, trace: trace() };
    observe::observe(&ports, &hint).await.unwrap();
    observe::accept_rewrite(&ports, d.ids["a"], &trace()).await.unwrap();
    assert_eq!(d.committed("paimon://ods_db/a", "1", |_| {}).await, Outcome::Advanced);
    let position = d.head("a").state.position();
    assert_eq!((position.epoch, position.ordinal), (Epoch(1), Ordinal(1)));
}

#[tokio::test]
async fn settings_of_reading_and_a_change_of_trust_are_refused() {
    let mut d = Deployment::with(&["b"]).await;
    let of = |more: &Value| {
        let mut document = json!({"key": ICEBERG, "location": "s3://not-ours/i", "trust": "writer"});
        for (name, value) in more.as_object().unwrap() {
            document[name] = value.clone();
        }
        let spec: AssetSpec = serde_json::from_value(document).unwrap();
        spec.check().map_err(|invalid| invalid.field)
    };
    assert_eq!(of(&json!({})), Ok(()));
    for setting in [json!({"catalog": "glue"}), json!({"watermarkProperty": "w"}), json!({"scanInterval": "1m"})] {
        assert_eq!(of(&setting), Err(setting.as_object().unwrap().keys().next().unwrap().clone()));
    }
    d.register_trusted("a", "paimon://ods_db/a").await;
    let other: AssetSpec =
        serde_json::from_value(json!({"key": "paimon://ods_db/a", "location": "s3://not-ours/a"})).unwrap();
    let refused = assets::register(&d.world.ports(), PROJECT, &other, &trace()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.about("field")), (ErrorKind::Conflict, Some("trust")));
}
