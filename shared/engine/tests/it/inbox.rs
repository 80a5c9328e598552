//! What writers send: stored in few calls, worked on later, each thing that it says with its outcome.

mod lifecycle;
mod names;
mod registered_later;
mod runs;

use std::time::Duration;

use lakebell_decoders::{CatalogName, Content as Said, Entry, Job, Mention, Report, Says, TableRef};
use lakebell_domain::event::EventKind;
use lakebell_domain::ids::ProjectCode;
use lakebell_domain::state::{CheckResult, Severity};
use lakebell_engine::inbox::{self, Accepted, Became, Content, Letter, Progress};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{Facts, Named, Pushed};
use lakebell_engine::{ErrorKind, compensate};
use lakebell_testkit::{Fault, Op};
use serde_json::json;

use crate::support::{Deployment, PROJECT, key, spec, trace};

fn table(name: &str) -> TableRef {
    let location = format!("s3://lake/wh/ods_db.db/{name}").parse().unwrap();
    TableRef { location: Some(location), ..TableRef::named(name) }
}

fn entry(id: &str, reports: Vec<Report>) -> Content {
    let content = Said { reports, ..Said::default() };
    Content::Entry(Box::new(Entry { source: "a writer".to_owned(), id: id.to_owned(), content }))
}

fn touched(name: &str) -> Report {
    Report { table: table(name), says: Says::Touched, at: None }
}

impl Deployment {
    fn letter(&self, id: &str, content: Content) -> Letter {
        let named = ("a writer".to_owned(), id.to_owned());
        Letter::new(&self.world.quiet_ports(), Some(PROJECT), named, content, &trace())
    }

    async fn accept(&self, letters: Vec<Letter>) -> Vec<Accepted> {
        inbox::accept(&self.world.ports(), letters, &trace()).await
    }

    /// Works on every letter that a message names.
    async fn work(&self) -> Vec<Became> {
        let mut became = Vec::new();
        for message in self.world.queue.drain() {
            let Message::Letters { receipts, trace } = message else { continue };
            for receipt in receipts {
                let worked = inbox::work(&self.world.ports(), &receipt, &trace).await.expect("work");
                became.extend(worked.into_iter().flat_map(|worked| worked.became).map(|(became, _)| became));
            }
        }
        became
    }

    async fn sent(&self, id: &str, content: Content) -> Vec<String> {
        self.accept(vec![self.letter(id, content)]).await;
        self.work().await.into_iter().map(|became| became.outcome).collect()
    }
}

#[tokio::test]
async fn one_event_is_stored_in_two_calls_and_500_in_less_than_one_for_ten() {
    let d = Deployment::with(&["a"]).await;
    d.world.tap.take_log();
    let accepted = d.accept(vec![d.letter("1", entry("1", vec![touched("a")]))]).await;
    assert!(matches!(accepted[0], Accepted::Stored { is_new: true, .. }));
    let calls: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).collect();
    assert_eq!(calls, [Op::Write, Op::Send]);
    let letters: Vec<Letter> =
        (0..500).map(|at| d.letter(&format!("b{at}"), entry(&format!("b{at}"), vec![touched("a")]))).collect();
    let accepted = d.accept(letters.clone()).await;
    assert!(accepted.iter().all(|one| matches!(one, Accepted::Stored { is_new: true, .. })));
    let first = d.world.tap.take_log().len();
    assert!(first <= 50, "{first} calls");
    let again = d.accept(letters).await;
    assert!(again.iter().all(|one| matches!(one, Accepted::Stored { is_new: false, .. })));
    let second = d.world.tap.take_log().len();
    assert!(second <= 50, "{second} calls");
}

#[tokio::test]
async fn a_report_is_a_hint_and_is_worked_on_once() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.table("a").commit("APPEND", 1);
    assert_eq!(d.sent("1", entry("1", vec![touched("a")])).await, ["advanced"]);
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    // The same event again has nothing to do.
    assert!(d.sent("1", entry("1", vec![touched("a")])).await.is_empty());
    let receipt = inbox::receipt_of(Some(PROJECT), "a writer", "1");
    let letter = inbox::find(&d.world.quiet_ports(), &receipt).await.unwrap().unwrap().value;
    let Progress::Settled { became, .. } = letter.progress else { panic!("{letter:?}") };
    assert_eq!((became[0].kind, became[0].outcome.as_str()), (Some(EventKind::SnapshotCommitted), "advanced"));
}

#[tokio::test]
async fn what_one_thing_lacks_does_not_keep_the_others_back() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    let check = |snapshot: &str| Report {
        table: table("a"),
        says: Says::Check {
            check: "suite".to_owned(),
            result: CheckResult::Passed,
            severity: Severity::Error,
            run: None,
            started_at: None,
            snapshot: Some(snapshot.to_owned()),
        },
        at: Some(d.world.clock.now()),
    };
    let partition = |partition: &str| Report {
        table: table("a"),
        says: Says::Partition { partition: partition.to_owned() },
        at: None,
    };
    let reports = vec![touched("nowhere"), partition("no partition"), partition("dt=1"), check("1"), touched("a")];
    let outcomes = d.sent("1", entry("1", reports)).await;
    assert_eq!(outcomes, ["unknown", "refused", "advanced", "advanced", "duplicate"]);
    let seen = lakebell_engine::assets::list_unregistered(&d.world.quiet_ports(), None).await.unwrap();
    assert_eq!(seen[0].location, "s3://lake/wh/ods_db.db/nowhere");
}

#[tokio::test]
async fn an_unknown_table_may_be_sent_again_once_it_is_registered() {
    let mut d = Deployment::with(&["a"]).await;
    assert_eq!(d.sent("1", entry("1", vec![touched("b")])).await, ["unknown"]);
    d.register("b").await;
    d.table("b").commit("APPEND", 1);
    assert_eq!(d.sent("1", entry("1", vec![touched("b")])).await, ["advanced"]);
}

#[tokio::test]
async fn a_letter_whose_message_was_lost_is_sent_by_its_timer() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    d.world.tap.fault(Op::Send, 1, Fault::Before(ErrorKind::Unavailable));
    let accepted = d.accept(vec![d.letter("1", entry("1", vec![touched("a")]))]).await;
    assert!(matches!(accepted[0], Accepted::Stored { .. }), "it is stored all the same");
    assert!(d.world.queue.is_empty());
    let ports = d.world.quiet_ports();
    assert_eq!(compensate::sweep(&ports, &trace()).await.unwrap().letters, 0, "not yet");
    d.world.clock.advance(Duration::from_secs(61));
    assert_eq!(compensate::sweep(&ports, &trace()).await.unwrap().letters, 1);
    assert_eq!(d.work().await[0].outcome, "advanced");
    d.world.clock.advance(Duration::from_hours(2));
    assert_eq!(compensate::sweep(&ports, &trace()).await.unwrap().letters, 0, "it is done");
}

#[tokio::test]
async fn what_cannot_be_stored_is_said_not_to_be() {
    let d = Deployment::with(&["a"]).await;
    d.world.tap.fault(Op::Write, 1, Fault::Before(ErrorKind::Unavailable));
    let accepted = d.accept(vec![d.letter("1", entry("1", vec![touched("a")]))]).await;
    assert_eq!(accepted, [Accepted::NotNow]);
    let large = TableRef::named(&"x".repeat(256));
    let reports = (0..200).map(|at| Report {
        table: TableRef {
            names: (0..8)
                .filter_map(|n| CatalogName::new(&"c".repeat(500), &[&format!("{at}-{n}{}", "y".repeat(200)), "t"]))
                .collect(),
            ..large.clone()
        },
        says: Says::Touched,
        at: None,
    });
    let accepted = d.accept(vec![d.letter("2", entry("2", reports.collect()))]).await;
    assert!(matches!(accepted[0], Accepted::TooLarge { .. }), "{accepted:?}");
}

#[tokio::test]
async fn a_writer_of_another_project_speaks_for_none_of_its_tables() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    let named = ("a writer".to_owned(), "1".to_owned());
    let content = entry("1", vec![touched("a")]);
    let letter = Letter::new(&d.world.quiet_ports(), Some(ProjectCode(8)), named, content, &trace());
    d.accept(vec![letter]).await;
    assert_eq!(d.work().await[0].outcome, "unknown");
    let aliases = inbox::aliases(&d.world.quiet_ports(), d.ids["a"]).await.unwrap();
    assert!(aliases.aliases.is_empty(), "nor does it claim names");
}

#[tokio::test]
async fn a_claimed_name_finds_nothing_until_it_is_confirmed() {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.table("a").commit("APPEND", 1);
    let name = CatalogName::new("hive://metastore:9083", &["other", "name"]).unwrap();
    let claimed = TableRef { names: vec![name.clone()], ..table("a") };
    d.sent("1", entry("1", vec![Report { table: claimed, says: Says::Touched, at: None }])).await;
    let ports = d.world.quiet_ports();
    let aliases = inbox::aliases(&ports, d.ids["a"]).await.unwrap().aliases;
    assert_eq!(
        (aliases[0].name.clone(), aliases[0].is_verified, aliases[0].by.as_str()),
        (name.clone(), false, "a writer")
    );
    let by_name = TableRef { names: vec![name.clone()], ..TableRef::named("other.name") };
    let report = |id: &str| entry(id, vec![Report { table: by_name.clone(), says: Says::Touched, at: None }]);
    assert_eq!(d.sent("2", report("2")).await, ["unknown"]);
    inbox::confirm(&ports, d.ids["a"], &name, "somebody", &trace()).await.unwrap();
    assert_eq!(d.sent("2", report("2")).await, ["duplicate"], "found, and nothing is new");
    let taken = inbox::confirm(&ports, d.ids["b"], &name, "somebody", &trace()).await.unwrap_err();
    assert_eq!((taken.kind(), taken.message().contains("paimon")), (ErrorKind::Conflict, false), "{taken}");
}

#[tokio::test]
async fn a_name_that_is_a_key_finds_its_asset_where_the_format_fits() {
    let d = Deployment::with(&["a"]).await;
    let named = |format| TableRef {
        names: vec![CatalogName::new("lake", &["ods_db", "a"]).unwrap()],
        format,
        ..TableRef::named("a")
    };
    let report = |id: &str, table| entry(id, vec![Report { table, says: Says::Touched, at: None }]);
    assert_eq!(d.sent("1", report("1", named(None))).await, ["duplicate"]);
    assert_eq!(d.sent("2", report("2", named(Some(lakebell_domain::asset::Format::Paimon)))).await, ["duplicate"]);
    assert_eq!(d.sent("3", report("3", named(Some(lakebell_domain::asset::Format::Delta)))).await, ["unknown"]);
    let mut wrong = table("a");
    wrong.format = Some(lakebell_domain::asset::Format::Iceberg);
    assert_eq!(d.sent("4", report("4", wrong)).await, ["unknown"], "another format at the same location");
}

#[tokio::test]
async fn a_job_leaves_lineage_and_shows_a_loop() {
    let d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("t", &[("g", json!("any"), &["a", "b"])])).await;
    let job = Job {
        name: "spark/daily".to_owned(),
        inputs: vec![table("a")],
        outputs: vec![table("b")],
        mentions: Mention::workflow("7/11"),
    };
    let content = Said { job: Some(job), ..Said::default() };
    let entry = Entry { source: "openlineage:spark/daily".to_owned(), id: "1".to_owned(), content };
    d.accept(vec![d.letter("1", Content::Entry(Box::new(entry)))]).await;
    let Some(Message::Letters { receipts, trace }) = d.world.queue.drain().pop() else { panic!() };
    let worked = inbox::work(&d.world.quiet_ports(), &receipts[0], &trace).await.unwrap().unwrap();
    assert_eq!(worked.loops[0].tables, [key("b")]);
    assert_eq!(worked.became[0].0.outcome, "lineage");
}

#[tokio::test]
async fn a_native_event_goes_the_same_way_and_quarantined_ones_are_listed() {
    let mut d = Deployment::with(&["a"]).await;
    d.table("a").commit("APPEND", 1);
    let pushed = Pushed {
        id: "n1".to_owned(),
        source: "a writer".to_owned(),
        kind: EventKind::SnapshotCommitted,
        asset: Named::Key(key("a")),
        time: None,
        facts: Facts { snapshot_id: Some("1".to_owned()), ..Facts::default() },
    };
    assert_eq!(d.sent("n1", Content::Event(Box::new(pushed))).await, ["advanced"]);
    let quarantined = Content::Quarantined { reason: "the token has expired".to_owned(), body: "{}".to_owned() };
    d.accept(vec![d.letter("q1", quarantined)]).await;
    assert!(d.world.queue.is_empty(), "nothing follows from it");
    let page = inbox::quarantined(&d.world.quiet_ports(), Some(PROJECT), 10, None).await.unwrap();
    assert_eq!(page.found.iter().map(|letter| letter.id.as_str()).collect::<Vec<_>>(), ["q1"]);
}
