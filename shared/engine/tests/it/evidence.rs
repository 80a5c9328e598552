//! What writers alone can know, from the push to the registers and the start.

mod registers;
mod settings;
mod trusted;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::event::{Event, EventKind, Outcome};
use lakebell_domain::reason::Verdict;
use lakebell_domain::state::{PARKED, PARKED_TOO_LONG, QualityVerdict, Severity};
use lakebell_domain::target::TargetSpec;
use lakebell_domain::version::{Epoch, Ordinal, Position};
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{self, Accepted, Facts, Named, Pushed, Receipt};
use lakebell_engine::{EngineError, ErrorKind, compensate, history, observe};
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::support::{Deployment, key, spec, target_id, trace};

/// The target `t` on table `a`, its dependency with these keys.
fn asks(conditions: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), &["a"])])).unwrap();
    for (key, value) in conditions.as_object().unwrap() {
        document["groups"][0]["dependencies"][0][key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

/// A check `rows` of a snapshot, with a run of its own.
fn checked(snapshot: u64, run: i64) -> Facts {
    let run_at = Some(Timestamp::from_second(1_767_225_600 + run).unwrap());
    Facts { snapshot_id: Some(snapshot.to_string()), check: Some("rows".to_owned()), run_at, ..Facts::default() }
}

impl Deployment {
    async fn try_push(&self, kind: EventKind, id: &str, facts: Facts) -> Result<Accepted, EngineError> {
        let time = Some(self.world.clock.now());
        let asset = Named::Key(key("a"));
        let pushed = Pushed { id: id.to_owned(), source: "job".to_owned(), kind, asset, time, facts };
        Box::pin(push::push(&self.world.ports(), &pushed, &trace())).await
    }

    /// Pushes an event about table `a`.
    async fn push(&self, kind: EventKind, id: &str, facts: Facts) -> Outcome {
        match self.try_push(kind, id, facts).await.expect("push").receipt {
            Receipt::Looked(outcome) => outcome,
            Receipt::UnknownAsset => panic!("table a is registered"),
        }
    }

    async fn passed(&self, snapshot: u64, run: i64) -> Outcome {
        self.push(EventKind::QualityCheckPassed, &format!("p{snapshot}.{run}"), checked(snapshot, run)).await
    }

    async fn failed(&self, snapshot: u64, run: i64) -> Outcome {
        self.push(EventKind::QualityCheckFailed, &format!("f{snapshot}.{run}"), checked(snapshot, run)).await
    }

    /// The events of table `a`, oldest first.
    async fn events(&self) -> Vec<Event> {
        let page = history::events(&self.world.quiet_ports(), self.ids["a"], 1_000, None).await.unwrap();
        page.found.into_iter().rev().collect()
    }

    async fn events_of(&self, kind: EventKind) -> Vec<Event> {
        self.events().await.into_iter().filter(|event| event.kind == kind).collect()
    }

    fn quality(&self, snapshot: u64) -> QualityVerdict {
        let state = self.head("a").state;
        state.quality.verdict(Position { epoch: state.epoch, ordinal: Ordinal(snapshot) }, &[])
    }

    /// What the triggers of `t` took.
    async fn started(&self) -> Vec<String> {
        self.run_dispatcher().await;
        self.triggers("t").iter().flat_map(Deployment::took).collect()
    }
}

fn ignored(reason: &str) -> Outcome {
    Outcome::Ignored(reason.to_owned())
}

fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Ignored(reason) => reason,
        other => panic!("{other:?} is not ignored"),
    }
}

#[tokio::test]
async fn a_version_that_passed_is_taken_and_a_later_one_inherits_nothing() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedByQuality);
    assert_eq!(d.passed(1, 1).await, Outcome::Advanced);
    assert_eq!(d.started().await, ["a(-,1]"], "the unchecked one starves nothing");
    assert_eq!(d.quality(2), QualityVerdict::Unknown);
    assert_eq!(d.passed(2, 2).await, Outcome::Advanced);
    assert_eq!(d.started().await, ["a(-,1]", "a(1,2]"]);
    let events = d.events_of(EventKind::QualityCheckPassed).await;
    assert_eq!(events[0].position, Some(Position { epoch: Epoch(0), ordinal: Ordinal(1) }));
}

#[tokio::test]
async fn a_failure_blocks_until_a_later_run_passes_and_is_passed_over_where_asked() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    d.failed(2, 1).await;
    d.passed(1, 1).await;
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedByQuality);
    assert!(d.started().await.is_empty());
    d.passed(2, 2).await;
    assert_eq!(d.started().await, ["a(-,2]"]);

    d.declare(&asks(&json!({"qualityStatus": "PASSED", "onFailedVersion": "pass-over"}))).await;
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    d.failed(4, 3).await;
    d.passed(3, 3).await;
    assert_eq!(d.started().await, ["a(-,2]", "a(2,3]"]);
}

#[tokio::test]
async fn the_later_run_of_a_check_wins_in_any_order_and_repetitions_change_nothing() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let mut d = Deployment::with(&["a"]).await;
        d.commit("a", "APPEND").await;
        for run in order.into_iter().chain(order) {
            match run {
                1 => d.failed(1, 1).await,
                2 => d.push(EventKind::QualityCheckErrored, "e", checked(1, 2)).await,
                _ => d.passed(1, 3).await,
            };
        }
        assert_eq!(d.quality(1), QualityVerdict::Passed, "{order:?}");
        assert_eq!(d.events().await.len(), 4, "each once, and the commit");
    }
}

#[tokio::test]
async fn one_verdict_under_two_ids_is_one_event() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.push(EventKind::QualityCheckPassed, "1", checked(1, 1)).await, Outcome::Advanced);
    assert_eq!(d.push(EventKind::QualityCheckPassed, "1", checked(1, 1)).await, Outcome::Duplicate);
    assert_eq!(d.push(EventKind::QualityCheckPassed, "2", checked(1, 1)).await, Outcome::Duplicate);
    assert_eq!(d.events_of(EventKind::QualityCheckPassed).await.len(), 1);
    assert_eq!(d.failed(1, 0).await, Outcome::Superseded, "an earlier run that is told later");
    assert_eq!(d.failed(1, 0).await, Outcome::Duplicate);
}

#[tokio::test]
async fn warnings_are_kept_and_errors_of_the_check_itself_are_no_verdict() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"qualityStatus": "PASSED", "checks": ["rows", "nulls"]}))).await;
    d.commit("a", "APPEND").await;
    d.passed(1, 1).await;
    assert_eq!(d.why("t").await.verdict, Verdict::BlockedByQuality, "`nulls` has not reported");
    let nulls = Facts { check: Some("nulls".to_owned()), severity: Some(Severity::Warn), ..checked(1, 1) };
    d.push(EventKind::QualityCheckErrored, "e", nulls.clone()).await;
    assert_eq!(d.quality(1), QualityVerdict::Unknown);
    assert!(d.started().await.is_empty());
    let later = Facts { run_at: checked(1, 2).run_at, ..nulls };
    assert_eq!(d.push(EventKind::QualityCheckFailed, "w", later).await, Outcome::Advanced);
    assert_eq!(d.started().await, ["a(-,1]"]);
}

#[tokio::test]
async fn a_verdict_that_comes_before_its_commit_waits_for_it() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.passed(2, 1).await, ignored(PARKED));
    assert_eq!(d.passed(2, 1).await, Outcome::Duplicate);
    assert!(d.started().await.is_empty());
    d.commit("a", "APPEND").await;
    assert_eq!(d.started().await, ["a(-,2]"]);
    assert_eq!(d.passed(2, 1).await, Outcome::Duplicate);
    let events = d.events_of(EventKind::QualityCheckPassed).await;
    assert_eq!((events.len(), &events[0].outcome), (1, &ignored(PARKED)), "it keeps its event");
    assert!(events[0].replayed(|_| None).is_some());
}

#[tokio::test]
async fn a_lost_notification_is_no_reason_to_park() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
    let table = d.table("a");
    table.commit("APPEND", 1);
    table.commit("APPEND", 1);
    assert_eq!(d.passed(2, 1).await, Outcome::Advanced);
    assert_eq!(d.started().await, ["a(-,2]"]);
}

#[tokio::test]
async fn a_verdict_that_is_parked_for_too_long_says_so() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    for snapshot in 100..117 {
        assert_eq!(d.passed(snapshot, 1).await, ignored(PARKED));
    }
    let outcomes: Vec<Outcome> =
        d.events_of(EventKind::QualityCheckPassed).await.into_iter().map(|event| event.outcome).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == ignored(PARKED_TOO_LONG)).count(), 1);
    assert_eq!(outcomes.len(), 17);
    // Told once more, it waits again.
    assert_eq!(d.passed(100, 1).await, ignored(PARKED));
    assert_eq!(d.events_of(EventKind::QualityCheckPassed).await.len(), 17);
}

#[tokio::test]
async fn an_older_version_is_found_by_its_recorded_commit() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..5 {
        d.commit("a", "APPEND").await;
    }
    assert_eq!(d.passed(2, 1).await, Outcome::Advanced);
    assert_eq!(d.quality(2), QualityVerdict::Passed);
}

#[tokio::test]
async fn a_version_that_went_unread_or_was_never_one_is_refused() {
    let mut d = Deployment::with(&["a"]).await;
    let table = d.table("a");
    for _ in 0..5 {
        table.commit("APPEND", 1);
    }
    table.expire_below(4);
    d.notify("a", 5).await;
    let unread = d.passed(2, 1).await;
    assert!(reason(&unread).contains("not recorded"), "{unread:?}");
    let facts = Facts { snapshot_id: Some("latest".to_owned()), ..checked(1, 1) };
    let nameless = d.push(EventKind::QualityCheckPassed, "n", facts).await;
    assert!(reason(&nameless).contains("latest"), "{nameless:?}");
    assert_eq!(d.events_of(EventKind::QualityCheckPassed).await.len(), 2, "each refusal is accounted for");
}

/// A check that names no snapshot, begun this many seconds ago.
fn unnamed(d: &Deployment, ago: i64) -> Facts {
    let began = d.world.clock.now() - SignedDuration::from_secs(ago);
    Facts { check: Some("rows".to_owned()), check_started_at: Some(began), ..Facts::default() }
}

#[tokio::test]
async fn a_verdict_without_a_version_counts_for_the_only_one_that_was_current() {
    let mut d = Deployment::with(&["a"]).await;
    let kind = EventKind::QualityCheckPassed;
    let none = d.push(kind, "0", unnamed(&d, 10)).await;
    assert!(reason(&none).contains("no version yet"), "{none:?}");
    d.commit("a", "APPEND").await;
    d.world.clock.advance(Duration::from_mins(10));
    d.commit("a", "COMPACT").await;
    assert_eq!(d.push(kind, "1", unnamed(&d, 60)).await, Outcome::Advanced);
    assert_eq!(d.quality(1), QualityVerdict::Passed, "a compaction moves no data");

    // One that nobody was told of moved the table meanwhile.
    d.table("a").commit("APPEND", 1);
    let moved = d.push(kind, "2", unnamed(&d, 60)).await;
    assert!(reason(&moved).starts_with("the table moved during the check"), "{moved:?}");
    assert_eq!(d.quality(3), QualityVerdict::Unknown);
    let silent = Facts { check_started_at: None, ..unnamed(&d, 0) };
    let silent = d.push(kind, "3", silent).await;
    assert!(reason(&silent).contains("when the check began"), "{silent:?}");
    let ahead = Facts { run_at: Some(d.world.clock.now() + SignedDuration::from_hours(1)), ..unnamed(&d, 0) };
    let ahead = Facts { check_started_at: None, ..ahead };
    let ahead = d.push(kind, "4", ahead).await;
    assert!(reason(&ahead).starts_with("the table moved"), "a clock that is ahead: {ahead:?}");
}

#[tokio::test]
async fn what_a_verdict_lacks_is_named() {
    let d = Deployment::with(&["a"]).await;
    let long = "x".repeat(129);
    let whole = checked(1, 1);
    let table = [
        (Facts { check: None, ..whole.clone() }, "data.check"),
        (Facts { check: Some(String::new()), ..whole.clone() }, "data.check"),
        (Facts { check: Some("a\nb".to_owned()), ..whole.clone() }, "data.check"),
        (Facts { check: Some(long.clone()), ..whole.clone() }, "data.check"),
        (Facts { run_id: Some(long), ..whole.clone() }, "data.runId"),
        (Facts { check_started_at: Some(Timestamp::MAX), ..whole.clone() }, "data.checkStartedAt"),
        (Facts { extra: [("rows".to_owned(), json!("x".repeat(5_000)))].into(), ..whole }, "data.extra"),
    ];
    for (facts, field) in table {
        let error = d.try_push(EventKind::QualityCheckPassed, "1", facts).await.unwrap_err();
        assert_eq!((error.kind(), error.about("field")), (ErrorKind::Invalid, Some(field)));
    }
    let asset = Named::Key(key("a"));
    let (kind, facts) = (EventKind::QualityCheckPassed, Facts { run_at: None, ..checked(1, 1) });
    let timeless = Pushed { id: "1".to_owned(), source: "job".to_owned(), kind, asset, time: None, facts };
    let error = Box::pin(push::push(&d.world.ports(), &timeless, &trace())).await.unwrap_err();
    assert_eq!(error.about("field"), Some("data.runAt"));
}

#[tokio::test]
async fn a_new_epoch_forgets_verdicts_and_what_waits() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    d.passed(3, 1).await;
    d.passed(5, 1).await;
    let table = d.table("a");
    table.rollback_to(2);
    table.commit("APPEND", 7);
    d.notify("a", 3).await;
    d.world.clock.advance(Duration::from_secs(61));
    d.notify("a", 3).await;
    observe::accept_rewrite(&d.world.quiet_ports(), d.ids["a"], &trace()).await.unwrap();
    assert_eq!((d.head("a").state.epoch, d.quality(3)), (Epoch(1), QualityVerdict::Unknown));
    d.commit("a", "APPEND").await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.quality(5), QualityVerdict::Unknown, "it was parked for another history");
    assert_eq!(d.passed(5, 1).await, Outcome::Advanced, "told again, it is about this one");
}

#[tokio::test]
async fn a_lost_race_and_a_lost_answer_write_once() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
    d.commit("a", "APPEND").await;
    // Another verdict lands between the read and the write.
    let (ports, asset) = (d.world.quiet_ports(), Named::Key(key("a")));
    d.world.tap.before(Op::Write, 1, move || async move {
        let facts = Facts { check: Some("nulls".to_owned()), ..checked(1, 1) };
        let kind = EventKind::QualityCheckPassed;
        let time = Some(ports.clock.now());
        let other = Pushed { id: "o".to_owned(), source: "job".to_owned(), kind, asset, time, facts };
        Box::pin(push::push(&ports, &other, &trace())).await.unwrap();
    });
    assert_eq!(d.passed(1, 1).await, Outcome::Advanced);
    assert_eq!(d.events_of(EventKind::QualityCheckPassed).await.len(), 2);
    assert_eq!(d.started().await, ["a(-,1]"]);

    d.commit("a", "APPEND").await;
    d.world.tap.fault(Op::Write, 1, Fault::LostAnswer);
    let lost = d.try_push(EventKind::QualityCheckPassed, "l", checked(2, 1)).await.unwrap_err();
    assert!(lost.retryable());
    let again = d.push(EventKind::QualityCheckPassed, "l", checked(2, 1)).await;
    assert_eq!(again, Outcome::Duplicate, "the write had landed");
    assert_eq!(d.started().await, ["a(-,1]", "a(1,2]"], "a repetition is evaluated");
}

#[tokio::test]
async fn a_verdict_on_a_visible_version_costs_one_query_and_one_transaction() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    let calls = |d: &Deployment| d.world.tap.take_log().into_iter().map(|call| call.op).collect::<Vec<_>>();
    calls(&d);
    d.passed(1, 1).await;
    assert_eq!(calls(&d), [Op::Get, Op::Query, Op::Write], "the first finds the asset by its key");
    d.passed(1, 1).await;
    assert_eq!(calls(&d), [Op::Get, Op::Query], "a repetition writes nothing");

    d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
    d.commit("a", "APPEND").await;
    calls(&d);
    d.passed(2, 1).await;
    let found = calls(&d);
    assert_eq!(found[..3], [Op::Get, Op::Query, Op::Write]);
    assert_eq!(found[3..], [Op::Get, Op::Write, Op::Send], "and the evaluation with its claim");
    assert_eq!(d.triggers("t")[0].target, target_id("t"));
}

/// Whatever fails: pushed again until it is stored, each verdict counts once and each start happens once.
#[tokio::test]
async fn verdicts_survive_whatever_fails() {
    for seed in 0..40 {
        let mut d = Deployment::with(&["a"]).await;
        d.declare(&asks(&json!({"qualityStatus": "PASSED"}))).await;
        for snapshot in 1..=3 {
            d.table("a").commit("APPEND", 1);
            d.world.tap.chance(seed * 10 + snapshot, 20);
            let mut tries = 0;
            while d.try_push(EventKind::QualityCheckPassed, &snapshot.to_string(), checked(snapshot, 1)).await.is_err()
            {
                tries += 1;
                assert!(tries < 200, "seed {seed}");
            }
            d.world.tap.calm();
        }
        // A claim whose message was lost is sent again by the clock.
        d.started().await;
        d.world.clock.advance(Duration::from_mins(5));
        compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
        let started = d.started().await;
        assert_eq!(started.last().map(|took| took.ends_with(",3]")), Some(true), "seed {seed}: {started:?}");
        assert_eq!(d.events_of(EventKind::QualityCheckPassed).await.len(), 3, "seed {seed}");
        assert_eq!(d.quality(3), QualityVerdict::Passed);
    }
}
