//! What was told of a table before it was registered counts once it is.

use lakebell_domain::policy::PartitionFrom;
use lakebell_domain::state::QualityVerdict;
use lakebell_domain::target::TargetSpec;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::inbox::MAX_REOPENED;
use lakebell_testkit::PaimonTable;

use super::*;
use crate::support::BUCKET;

fn check_of(table: TableRef, at: jiff::Timestamp) -> Report {
    let says = Says::Check {
        check: "suite".to_owned(),
        result: CheckResult::Passed,
        severity: Severity::Error,
        run: None,
        started_at: None,
        snapshot: Some("1".to_owned()),
    };
    Report { table, says, at: Some(at) }
}

fn outcomes(letter: &Letter) -> Vec<String> {
    let Progress::Settled { became, .. } = &letter.progress else { panic!("{letter:?}") };
    became.iter().map(|became| became.outcome.clone()).collect()
}

impl Deployment {
    async fn letter_of(&self, id: &str) -> Letter {
        let receipt = inbox::receipt_of(Some(PROJECT), "a writer", id);
        inbox::find(&self.world.quiet_ports(), &receipt).await.unwrap().unwrap().value
    }

    async fn unregistered(&self, reader: ProjectCode) -> Vec<String> {
        let seen = assets::list_unregistered(&self.world.quiet_ports(), Some(reader)).await.unwrap();
        seen.into_iter().map(|seen| seen.location).collect()
    }

    /// A table with one commit that nobody has registered yet.
    fn written(&self, name: &str) -> PaimonTable {
        let mut table = PaimonTable::new(self.world.storage.clone(), BUCKET, &format!("wh/ods_db.db/{name}"));
        table.commit("APPEND", 1);
        table
    }
}

#[tokio::test]
async fn a_verdict_and_a_done_partition_count_after_the_registration_and_start_what_waits_for_them() {
    let mut d = Deployment::with(&["a"]).await;
    let waits: TargetSpec = serde_json::from_value(json!({"name": "t", "workflowDefinitionCode": 11, "groups": [
        {"name": "g", "dependencies": [{"asset": "paimon://ods_db/b*", "qualityStatus": "PASSED"}]}]}))
    .unwrap();
    d.declare(&waits).await;
    let _table = d.written("b");
    let partition = Report { table: table("b"), says: Says::Partition { partition: "dt=1".to_owned() }, at: None };
    let reports = vec![touched("a"), check_of(table("b"), d.world.clock.now()), partition];
    assert_eq!(d.sent("1", entry("1", reports)).await, ["duplicate", "unknown", "unknown"]);
    assert_eq!(d.unregistered(PROJECT).await, ["s3://lake/wh/ods_db.db/b"]);
    assert_eq!(d.unregistered(ProjectCode(8)).await, Vec::<String>::new(), "others are not told of it");

    let spec = AssetSpec::new(key("b"), "s3://lake/wh/ods_db.db/b".parse().unwrap());
    let registered = assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    d.ids.insert("b".to_owned(), registered.id);
    assert_eq!(d.unregistered(PROJECT).await, Vec::<String>::new());
    d.run_dispatcher().await;
    assert_eq!(outcomes(&d.letter_of("1").await), ["duplicate", "advanced", "advanced"]);
    let state = d.head("b").state;
    let verdict = state.quality.verdict(state.data.as_ref().unwrap().mark.version.position, &[]);
    assert_eq!(verdict, QualityVerdict::Passed);
    assert_eq!(state.partitions.visible(PartitionFrom::Done).count(), 1);
    d.assert_started("t", 1);

    // Said once more, it finds nothing to open.
    assets::register(&d.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    assert!(d.world.queue.drain().iter().all(|message| !matches!(message, Message::Letters { .. })));
}

#[tokio::test]
async fn by_key_by_name_and_after_a_deregistration_too() {
    let mut d = Deployment::with(&[]).await;
    let by_name = TableRef { names: vec![CatalogName::new("", &["ods_db", "b"]).unwrap()], ..TableRef::named("b") };
    let pushed = Pushed {
        id: "2".to_owned(),
        source: "a writer".to_owned(),
        kind: EventKind::CdcLagRecovered,
        asset: Named::Key(key("b")),
        time: None,
        facts: Facts::default(),
    };
    assert_eq!(d.sent("1", entry("1", vec![check_of(by_name, d.world.clock.now())])).await, ["unknown"]);
    assert_eq!(d.sent("2", Content::Event(Box::new(pushed.clone()))).await, ["unknown"]);
    assert_eq!(d.unregistered(PROJECT).await, ["ods_db.b", "paimon://ods_db/b"]);
    d.register("b").await;
    d.table("b").commit("APPEND", 1);
    let mut came = d.work().await.into_iter().map(|became| became.outcome).collect::<Vec<_>>();
    came.sort();
    assert_eq!(came, ["advanced", "advanced"]);
    assert_eq!(d.unregistered(PROJECT).await, Vec::<String>::new());

    assets::deregister(&d.world.quiet_ports(), &key("b")).await.unwrap();
    let again = Pushed { id: "3".to_owned(), ..pushed };
    assert_eq!(d.sent("3", Content::Event(Box::new(again))).await, ["ignored"]);
    d.register("b").await;
    assert_eq!(d.work().await[0].outcome, "advanced");
}

#[tokio::test]
async fn a_registration_between_the_look_and_the_note_is_not_missed() {
    let d = Deployment::with(&[]).await;
    d.accept(vec![d.letter("1", entry("1", vec![touched("b")]))]).await;
    d.world.tap.take_log();
    d.work().await;
    let calls: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).collect();
    let noted = calls.iter().position(|op| *op == Op::Write).expect("it is kept as waiting");
    assert!(calls[noted + 1..].contains(&Op::Get), "and looked for once more: {calls:?}");
}

#[tokio::test]
async fn a_registration_opens_so_many_letters_the_newest_first_and_the_next_one_the_others() {
    let mut d = Deployment::with(&[]).await;
    let more = 5;
    for at in 0..MAX_REOPENED + more {
        let id = format!("{at:05}");
        d.accept(vec![d.letter(&id, entry(&id, vec![touched("b")]))]).await;
        d.world.clock.advance(Duration::from_millis(1));
    }
    d.work().await;
    d.register("b").await;
    assert_eq!(d.work().await.len(), MAX_REOPENED);
    assert_eq!(outcomes(&d.letter_of("00000").await), ["unknown"], "the oldest stays as it is");
    d.register("b").await;
    assert_eq!(d.work().await.len(), more);
    assert_eq!(outcomes(&d.letter_of("00000").await), ["duplicate"]);
}

#[tokio::test]
async fn a_letter_of_another_project_stays_unknown_and_unseen() {
    let mut d = Deployment::with(&[]).await;
    let _table = d.written("b");
    let named = ("a writer".to_owned(), "1".to_owned());
    let letter =
        Letter::new(&d.world.quiet_ports(), Some(ProjectCode(8)), named, entry("1", vec![touched("b")]), &trace());
    d.accept(vec![letter.clone()]).await;
    d.work().await;
    d.register("b").await;
    assert_eq!(d.work().await[0].outcome, "unknown");
    assert_eq!(d.unregistered(PROJECT).await, Vec::<String>::new());
    // To whom a table is not told, one that is registered looks like one that is not.
    assert_eq!(d.unregistered(ProjectCode(8)).await, ["s3://lake/wh/ods_db.db/b"]);
}
