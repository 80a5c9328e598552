//! What each register does with each kind of evidence, case by case.

use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::event::Outcome;
use lakebell_domain::state::{
    AssetState, BackfillStatus, CheckResult, Evidence, Gap, Hole, QualityVerdict, SchemaDetail, SchemaStatus, Severity,
    Transition, Trouble, TroubleCode, Verdict,
};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal};

use crate::support::{at, commit, evidence, mark, position, sighting, state_of, version, with_watermark};

fn apply(state: &mut AssetState, evidence: &Evidence, second: i64) -> Outcome {
    let Transition { state: next, outcome } = state.apply(evidence, at(second));
    *state = next;
    outcome
}

#[test]
fn what_moves_which_register() {
    let mut state = state_of([]);
    assert_eq!(apply(&mut state, &evidence(commit(1, "APPEND")), 1), Outcome::Advanced);
    assert_eq!(apply(&mut state, &evidence(commit(2, "COMPACT")), 2), Outcome::Maintenance);
    assert_eq!(apply(&mut state, &evidence(with_watermark(3, "COMPACT", 500)), 3), Outcome::Advanced);
    assert_eq!(apply(&mut state, &evidence(commit(3, "COMPACT")), 4), Outcome::Duplicate);
    assert_eq!(apply(&mut state, &evidence(commit(2, "COMPACT")), 5), Outcome::Superseded);
    let other = Commit { fingerprint: Fingerprint::from("other"), ..commit(3, "APPEND") };
    assert_eq!(apply(&mut state, &evidence(other), 6), Outcome::Superseded, "another commit is no way back");

    assert_eq!(state.table, Some(version(0, 3)));
    assert_eq!(state.position(), position(0, 3));
    let data = state.data.as_ref().unwrap();
    assert_eq!((&data.mark.version, data.count, data.delta_records, data.mark.since), (&version(0, 1), 1, 1, at(1)));
    let compact = &state.kinds[&CommitKind("COMPACT".to_owned())];
    assert_eq!((&compact.mark.version, compact.count, compact.mark.since), (&version(0, 3), 2, at(3)));
    let watermark = state.watermark.as_ref().unwrap();
    assert_eq!((watermark.at, &watermark.version), (Millis(500), &Some(version(0, 3))));
}

#[test]
fn an_unknown_kind_counts_as_data() {
    let mut state = state_of([]);
    assert_eq!(apply(&mut state, &evidence(commit(1, "FUTURE_KIND")), 1), Outcome::Advanced);
    assert_eq!(state.data.unwrap().mark.version, version(0, 1));
    assert!(state.kinds.contains_key(&CommitKind("FUTURE_KIND".to_owned())));
}

#[test]
fn the_first_read_is_the_baseline_and_there_is_one() {
    let unread = AssetState::default();
    let first = unread.apply(&Evidence::FirstRead(vec![commit(3, "APPEND"), commit(5, "COMPACT")]), at(1)).state;
    assert_eq!(first.baseline.as_ref().unwrap().version, Some(version(0, 5)));
    assert_eq!(first.data.as_ref().unwrap().mark.version, version(0, 3));
    let again = first.apply(&Evidence::FirstRead(vec![commit(9, "APPEND")]), at(2));
    assert_eq!((again.outcome, &again.state), (Outcome::Duplicate, &first));

    let empty = state_of([]);
    assert_eq!((empty.baseline.unwrap().version, empty.table), (None, None));
}

#[test]
fn case_73_the_watermark_is_a_maximum() {
    let mut state = state_of([evidence(with_watermark(1, "APPEND", 700)), evidence(with_watermark(2, "APPEND", 300))]);
    let watermark = state.watermark.clone().unwrap();
    assert_eq!((watermark.at, watermark.version), (Millis(700), Some(version(0, 1))));
    assert_eq!(apply(&mut state, &Evidence::WatermarkPushed(Millis(700)), 3), Outcome::Superseded);
    assert_eq!(apply(&mut state, &Evidence::WatermarkPushed(Millis(701)), 4), Outcome::Advanced);
    let watermark = state.watermark.unwrap();
    assert_eq!((watermark.at, watermark.version, watermark.since), (Millis(701), None, at(4)));
}

#[test]
fn case_72_the_minimum_long_is_no_watermark() {
    let mut state = state_of([]);
    let pushed = apply(&mut state, &Evidence::WatermarkPushed(Millis(i64::MIN)), 1);
    assert!(matches!(pushed, Outcome::Ignored(_)), "{pushed:?}");
    assert_eq!(apply(&mut state, &evidence(with_watermark(1, "COMPACT", i64::MIN)), 2), Outcome::Maintenance);
    assert_eq!(state.watermark, None);
    assert_eq!(
        apply(&mut state, &Evidence::WatermarkPushed(Millis(-5)), 3),
        Outcome::Advanced,
        "before 1970 is a time"
    );
}

#[test]
fn while_history_is_held_nothing_advances() {
    let mut state = state_of([evidence(commit(5, "APPEND"))]);
    assert_eq!(apply(&mut state, &Evidence::RewriteSighted(sighting(&version(0, 5), at(10))), 10), Outcome::Advanced);
    let before = state.clone();
    let outcome = apply(&mut state, &evidence(commit(6, "APPEND")), 11);
    assert!(matches!(&outcome, Outcome::Ignored(why) if why.contains("held")), "{outcome:?}");
    assert_eq!(state, before);
    assert_eq!(apply(&mut state, &Evidence::RewriteWithdrawn, 12), Outcome::Advanced);
    assert_eq!(apply(&mut state, &Evidence::RewriteWithdrawn, 13), Outcome::Duplicate);
    assert_eq!(apply(&mut state, &evidence(commit(6, "APPEND")), 14), Outcome::Advanced);
}

#[test]
fn a_rewrite_is_confirmed_by_a_second_read_a_settle_time_later() {
    let mut state = state_of([evidence(commit(5, "APPEND"))]);
    let confirmed = |state: &AssetState| state.hold.as_ref().unwrap().confirmed_at;
    let sight = |second| Evidence::RewriteSighted(sighting(&version(0, 5), at(second)));
    apply(&mut state, &sight(10), 10);
    for second in [10, 11, 69] {
        assert_eq!(apply(&mut state, &sight(second), second), Outcome::Duplicate);
        assert_eq!(confirmed(&state), None, "{second} is too soon");
    }
    assert_eq!(apply(&mut state, &sight(70), 70), Outcome::Advanced);
    assert_eq!(apply(&mut state, &sight(500), 500), Outcome::Duplicate);
    let hold = state.hold.clone().unwrap();
    assert_eq!((hold.first_seen, hold.confirmed_at), (at(10), Some(at(70))));

    // one that contradicts something else begins anew
    apply(&mut state, &Evidence::RewriteSighted(sighting(&version(0, 4), at(600))), 600);
    assert_eq!(confirmed(&state), None);
}

#[test]
fn a_new_epoch_drops_everything_but_the_settings_and_the_baseline() {
    let tag = crate::support::tag(0, 5);
    let mut state = state_of([
        evidence(Commit { schema_id: Some(2), ..with_watermark(5, "APPEND", 900) }),
        Evidence::TagCreated("day-1".to_owned(), tag),
        Evidence::Check(check(5, "rows", CheckResult::Passed, 1), Some(mark(0, 5))),
        Evidence::Check(check(2, "rows", CheckResult::Failed, 1), None),
        Evidence::SchemaRead(SchemaDetail { schema_id: 2, text: Some("none".to_owned()) }),
        Evidence::SchemaDecided(2, SchemaStatus::Compatible),
        Evidence::Backfill("b1".to_owned(), BackfillStatus::Running),
        Evidence::CdcLagRecovered,
        Evidence::Expired(Gap { first: Ordinal(6), last: Ordinal(7), at: at(1), cause: "expired".to_owned() }),
        Evidence::Trouble(trouble(TroubleCode::Damaged, 3)),
        Evidence::Hole(Hole { ordinal: Ordinal(8), first_seen: at(3) }),
        Evidence::RewriteSighted(sighting(&version(0, 5), at(9))),
    ]);
    state.schema.approval_required = true;
    let accepted = Evidence::RewriteAccepted(vec![commit(1, "COMPACT"), commit(2, "APPEND")]);
    assert_eq!(apply(&mut state, &accepted, 100), Outcome::Advanced);

    let mut expected = AssetState { epoch: Epoch(1), ..state_of([]) };
    for commit in [commit(1, "COMPACT"), commit(2, "APPEND")] {
        apply(&mut expected, &evidence(commit), 100);
    }
    expected.schema.approval_required = true;
    // A backfill is a job, which goes on: as if it had begun with the epoch.
    let fill = Evidence::Backfill("b1".to_owned(), BackfillStatus::Running);
    apply(&mut expected, &fill, 7);
    assert_eq!(state, expected);
    assert_eq!(state.position(), position(1, 2));
    // the verdict that was parked for snapshot 2 of the old history says nothing about the new one
    assert_eq!(state.quality.verdict(position(1, 2), &[]), QualityVerdict::Unknown);
    assert_eq!(apply(&mut state, &accepted, 101), Outcome::Duplicate, "one acceptance opens one epoch");

    let gone = state_of([evidence(commit(5, "APPEND")), Evidence::RewriteSighted(sighting(&version(0, 5), at(9)))]);
    let emptied = gone.apply(&Evidence::RewriteAccepted(Vec::new()), at(100)).state;
    assert_eq!((emptied.position(), emptied.table), (position(1, 0), None), "a table that was dropped");
}

#[test]
fn tags_name_a_version_until_they_are_deleted() {
    let create = |name: &str, ordinal| Evidence::TagCreated(name.to_owned(), crate::support::tag(0, ordinal));
    let mut state = state_of([]);
    assert_eq!(apply(&mut state, &create("day", 5), 1), Outcome::Advanced);
    assert_eq!(apply(&mut state, &create("day", 5), 2), Outcome::Duplicate);
    assert_eq!(apply(&mut state, &create("day", 4), 3), Outcome::Advanced, "a tag may be moved to an older version");
    assert_eq!(state.tags["day"], crate::support::tag(0, 4));
    assert_eq!(apply(&mut state, &Evidence::TagDeleted("day".to_owned()), 4), Outcome::Advanced);
    assert_eq!(apply(&mut state, &Evidence::TagDeleted("day".to_owned()), 5), Outcome::Duplicate);

    for ordinal in 1..=48 {
        assert_eq!(apply(&mut state, &create(&format!("tag-{ordinal}"), ordinal + 10), 6), Outcome::Advanced);
    }
    assert_eq!(apply(&mut state, &create("new", 99), 7), Outcome::Advanced);
    assert!(state.tags.len() == 48 && !state.tags.contains_key("tag-1"), "the one with the lowest version goes");
    let outcome = apply(&mut state, &create("old", 3), 8);
    assert!(matches!(outcome, Outcome::Ignored(_)) && !state.tags.contains_key("old"), "{outcome:?}");
}

#[test]
fn a_completed_backfill_absorbs_a_late_start() {
    let mut state = state_of([]);
    let mut tell = |id: &str, status, second| apply(&mut state, &Evidence::Backfill(id.to_owned(), status), second);
    assert_eq!(tell("a", BackfillStatus::Running, 1), Outcome::Advanced);
    assert_eq!(tell("a", BackfillStatus::Running, 2), Outcome::Duplicate);
    assert_eq!(tell("a", BackfillStatus::Completed, 3), Outcome::Advanced);
    assert_eq!(tell("a", BackfillStatus::Completed, 4), Outcome::Duplicate);
    assert_eq!(tell("a", BackfillStatus::Running, 5), Outcome::Superseded);
    assert_eq!(tell("b", BackfillStatus::Completed, 6), Outcome::Advanced, "an end whose start was lost");
    assert_eq!(tell("b", BackfillStatus::Running, 7), Outcome::Superseded);
    for n in 0..15 {
        tell(&format!("n{n:02}"), BackfillStatus::Running, 10 + n);
    }
    let kept: Vec<&str> = state.backfills.keys().map(String::as_str).collect();
    assert_eq!((kept.len(), kept[0]), (16, "b"), "the oldest completed one goes first");
    assert_eq!(state.backfills["n03"].since, at(13));
}

#[test]
fn a_backfill_that_ended_before_a_rewrite_takes_no_late_start_after_it() {
    let fill = |id: &str, status| Evidence::Backfill(id.to_owned(), status);
    let held = Evidence::RewriteSighted(sighting(&version(0, 5), at(9)));
    let mut state = state_of([
        evidence(commit(4, "APPEND")),
        fill("ended", BackfillStatus::Running),
        evidence(commit(5, "APPEND")),
        fill("ended", BackfillStatus::Completed),
        fill("runs", BackfillStatus::Running),
        held.clone(),
    ]);
    assert_eq!(state.finished_backfill(), Some(at(4)));
    apply(&mut state, &Evidence::RewriteAccepted(vec![commit(3, "APPEND"), commit(6, "COMPACT")]), 100);
    assert_eq!(state.finished_backfill(), None, "no condition is met by what ended in a history that is gone");
    assert!(state.marks().all(|mark| mark.version.position.epoch == state.epoch));
    assert!(!state.backfills["ended"].covers(position(1, 6)));
    assert_eq!(apply(&mut state, &fill("ended", BackfillStatus::Running), 101), Outcome::Superseded);
    assert_eq!(apply(&mut state, &fill("ended", BackfillStatus::Completed), 102), Outcome::Duplicate);
    assert_eq!(state.finished_backfill(), None);

    // the one that runs goes on, for as long as it would have, and what it commits from now on is its own
    let runs = &state.backfills["runs"];
    assert_eq!((runs.is_running(), runs.since, runs.from), (true, at(5), position(1, 6)));
    assert_eq!(runs.before.as_ref().map(|mark| mark.version.position), Some(position(1, 3)));
    apply(&mut state, &fill("runs", BackfillStatus::Completed), 103);
    assert_eq!(state.finished_backfill(), Some(at(103)));

    // and so through the next rewrite, and where the asset is registered again
    apply(&mut state, &held, 104);
    apply(&mut state, &Evidence::RewriteAccepted(Vec::new()), 200);
    let mut again = state.registered_again();
    assert_eq!((again.epoch, again.backfills.len()), (Epoch(3), 2));
    for id in ["ended", "runs"] {
        for state in [&mut state, &mut again] {
            assert_eq!(apply(state, &fill(id, BackfillStatus::Running), 201), Outcome::Superseded, "{id}");
        }
    }
    assert_eq!((state.finished_backfill(), again.finished_backfill()), (None, None));
    apply(&mut again, &fill("new", BackfillStatus::Running), 202);
    assert!(!again.registered_again().backfills.contains_key("new"), "whoever registers a table again begins anew");
}

#[test]
fn the_first_schema_of_a_table_that_was_empty_is_new_only_where_approval_is_asked_for() {
    let under = |schema, ordinal| evidence(Commit { schema_id: Some(schema), ..commit(ordinal, "APPEND") });
    let empty = state_of([]);
    assert_eq!(empty.schema.status(), SchemaStatus::Unknown, "no schema yet");
    let mut state = empty.apply(&evidence(commit(1, "APPEND")), at(1)).state;
    apply(&mut state, &under(5, 2), 2);
    assert_eq!(state.schema.status_of(5), SchemaStatus::Compatible, "nothing has changed");
    apply(&mut state, &under(6, 3), 3);
    assert_eq!(state.schema.status_of(6), SchemaStatus::Unknown, "and this is a change");
    state.schema.approval_required = true;
    assert_eq!(state.schema.status_of(5), SchemaStatus::Compatible, "asked for later: it is no new one");
    assert_eq!(state.schema.status_of(6), SchemaStatus::PendingApproval);

    let mut asked = empty;
    asked.schema.approval_required = true;
    let waiting = asked.apply(&under(5, 1), at(1)).state;
    assert_eq!(waiting.schema.status(), SchemaStatus::PendingApproval, "nobody has looked at it yet");
    apply(&mut asked, &Evidence::SchemaDecided(5, SchemaStatus::Compatible), 1);
    apply(&mut asked, &under(5, 1), 2);
    assert_eq!(asked.schema.status(), SchemaStatus::Compatible, "approved before the first commit came");
}

#[test]
fn a_table_that_was_emptied_begins_with_the_schema_of_its_next_commit() {
    let under = |schema, ordinal| evidence(Commit { schema_id: Some(schema), ..commit(ordinal, "APPEND") });
    let seen = Evidence::RewriteSighted(sighting(&version(0, 1), at(9)));
    let dropped = state_of([under(3, 1), seen]).apply(&Evidence::RewriteAccepted(Vec::new()), at(100)).state;
    assert_eq!(dropped.schema.status_of(3), SchemaStatus::Unknown, "that was another history");
    let again = dropped.apply(&under(0, 1), at(101)).state;
    assert_eq!(again.schema.status(), SchemaStatus::Compatible);
}

#[test]
fn a_schema_decision_is_about_a_schema_id() {
    let mut state = state_of([evidence(Commit { schema_id: Some(0), ..commit(1, "APPEND") })]);
    apply(&mut state, &evidence(Commit { schema_id: Some(1), ..commit(2, "APPEND") }), 1);
    assert_eq!(state.schema.status(), SchemaStatus::Unknown, "nobody asked for approval");
    state.schema.approval_required = true;
    assert_eq!(state.schema.status(), SchemaStatus::PendingApproval);
    assert_eq!(apply(&mut state, &Evidence::SchemaDecided(2, SchemaStatus::Compatible), 2), Outcome::Advanced);
    assert_eq!(state.schema.status(), SchemaStatus::PendingApproval, "that was about another one");
    apply(&mut state, &evidence(Commit { schema_id: Some(2), ..commit(3, "APPEND") }), 3);
    assert_eq!(state.schema.status(), SchemaStatus::Compatible, "a decision may come before the schema is used");
    assert_eq!(apply(&mut state, &Evidence::SchemaDecided(2, SchemaStatus::Compatible), 4), Outcome::Duplicate);
    assert_eq!(apply(&mut state, &Evidence::SchemaDecided(2, SchemaStatus::Rejected), 5), Outcome::Advanced);
    assert_eq!(state.schema.status(), SchemaStatus::Rejected);
    apply(&mut state, &evidence(commit(4, "APPEND")), 6);
    assert_eq!(state.schema.current, Some(2), "a commit that names no schema changes none");
    for id in 10..60 {
        apply(&mut state, &Evidence::SchemaDecided(id, SchemaStatus::Compatible), 7);
    }
    assert_eq!(state.schema.decisions.len(), 32);
    let outcome = apply(&mut state, &Evidence::SchemaDecided(3, SchemaStatus::Rejected), 8);
    assert!(matches!(outcome, Outcome::Ignored(_)), "{outcome:?} of a decision that is not kept");
}

#[test]
fn troubles_holes_and_gaps_are_told_until_they_are_over() {
    let mut state = state_of([evidence(commit(5, "APPEND"))]);
    let damaged = |second| Evidence::Trouble(trouble(TroubleCode::Damaged, second));
    assert_eq!(apply(&mut state, &damaged(10), 10), Outcome::Ignored("said at 10".to_owned()));
    apply(&mut state, &damaged(20), 20);
    let told = state.trouble.clone().unwrap();
    assert_eq!(
        (told.since, told.detail.as_str()),
        (at(10), "said at 20"),
        "since when it lasts, and what was said last"
    );
    apply(&mut state, &Evidence::Trouble(trouble(TroubleCode::Unreadable, 30)), 30);
    assert_eq!(state.trouble.as_ref().unwrap().since, at(30), "another trouble begins anew");
    assert_eq!(apply(&mut state, &Evidence::Readable, 40), Outcome::Advanced);
    assert_eq!(apply(&mut state, &Evidence::Readable, 41), Outcome::Duplicate);

    apply(&mut state, &Evidence::Hole(Hole { ordinal: Ordinal(6), first_seen: at(50) }), 50);
    let gap = |first, last| Gap { first: Ordinal(first), last: Ordinal(last), at: at(60), cause: "expired".to_owned() };
    assert_eq!(apply(&mut state, &Evidence::Expired(gap(3, 5)), 60), Outcome::Superseded, "those were read");
    assert!(state.hole.is_some());
    assert_eq!(apply(&mut state, &Evidence::Expired(gap(6, 7)), 61), Outcome::Advanced);
    assert_eq!((&state.hole, &state.gap), (&None, &Some(gap(6, 7))));

    apply(&mut state, &Evidence::Hole(Hole { ordinal: Ordinal(8), first_seen: at(70) }), 70);
    apply(&mut state, &damaged(71), 71);
    apply(&mut state, &evidence(commit(8, "COMPACT")), 72);
    assert_eq!((state.hole, state.trouble), (None, None), "a commit that is read ends both");
    assert_eq!(state.gap, Some(gap(6, 7)), "a recorded gap stays");
}

#[test]
fn cdc_lag_recovers_forwards_only() {
    let mut state = state_of([]);
    assert_eq!(apply(&mut state, &Evidence::CdcLagRecovered, 50), Outcome::Advanced);
    assert_eq!(apply(&mut state, &Evidence::CdcLagRecovered, 50), Outcome::Duplicate);
    apply(&mut state, &Evidence::CdcLagRecovered, 40);
    assert_eq!(state.cdc_lag_recovered_at, Some(at(50)), "another host's clock is behind");
}

fn trouble(code: TroubleCode, second: i64) -> Trouble {
    Trouble { code, detail: format!("said at {second}"), since: at(second) }
}

/// A finished check whose failure would be an error.
pub(crate) fn check(ordinal: u64, name: &str, result: CheckResult, run: i64) -> Verdict {
    Verdict {
        ordinal: Ordinal(ordinal),
        fingerprint: None,
        check: name.to_owned(),
        result,
        severity: Severity::Error,
        run,
    }
}

/// The verdict on version 5 after these checks of it.
fn quality(checks: &[Verdict], required: &[&str]) -> QualityVerdict {
    let all = checks.iter().map(|verdict| Evidence::Check(verdict.clone(), Some(mark(0, 5))));
    let state = state_of([evidence(commit(5, "APPEND"))].into_iter().chain(all));
    let required: Vec<String> = required.iter().map(|name| (*name).to_owned()).collect();
    state.quality.verdict(position(0, 5), &required)
}

#[test]
fn a_version_is_what_the_latest_runs_of_its_checks_say() {
    use CheckResult::{Errored, Failed, Passed};
    use QualityVerdict as Q;
    let warn = |ordinal, name, run| Verdict { severity: Severity::Warn, ..check(ordinal, name, Failed, run) };
    assert_eq!(quality(&[], &[]), Q::Unknown, "no verdict is never PASSED");
    assert_eq!(quality(&[check(5, "a", Passed, 1)], &[]), Q::Passed);
    assert_eq!(quality(&[check(5, "a", Failed, 1)], &[]), Q::Failed);
    assert_eq!(quality(&[check(5, "a", Errored, 1)], &[]), Q::Unknown);
    assert_eq!(quality(&[warn(5, "a", 1)], &[]), Q::Passed, "a warning is kept and does not block");
    assert_eq!(quality(&[check(5, "a", Passed, 1), check(5, "b", Failed, 1)], &[]), Q::Failed);
    assert_eq!(quality(&[check(5, "a", Passed, 1), check(5, "b", Errored, 1)], &[]), Q::Unknown);
    // the later run wins, in whatever order the runs are told
    assert_eq!(quality(&[check(5, "a", Failed, 1), check(5, "a", Passed, 2)], &[]), Q::Passed);
    assert_eq!(quality(&[check(5, "a", Passed, 2), check(5, "a", Failed, 1)], &[]), Q::Passed);
    assert_eq!(quality(&[check(5, "a", Passed, 1), check(5, "a", Failed, 2)], &[]), Q::Failed);
    assert_eq!(quality(&[check(5, "a", Failed, 1), check(5, "a", Errored, 2)], &[]), Q::Unknown);
    assert_eq!(quality(&[check(5, "a", Failed, 3), warn(5, "a", 4)], &[]), Q::Passed);
    // of two at the same time the graver one
    for (one, other, verdict) in
        [(Failed, Passed, Q::Failed), (Failed, Errored, Q::Failed), (Errored, Passed, Q::Unknown)]
    {
        assert_eq!(quality(&[check(5, "a", one, 1), check(5, "a", other, 1)], &[]), verdict);
        assert_eq!(quality(&[check(5, "a", other, 1), check(5, "a", one, 1)], &[]), verdict);
    }
    // required checks
    assert_eq!(quality(&[check(5, "a", Passed, 1)], &["a"]), Q::Passed);
    assert_eq!(quality(&[check(5, "a", Passed, 1)], &["a", "b"]), Q::Unknown, "b has not reported");
    assert_eq!(quality(&[check(5, "a", Passed, 1), check(5, "b", Errored, 1)], &["a"]), Q::Passed);
    assert_eq!(
        quality(&[check(5, "a", Passed, 1), check(5, "b", Failed, 1)], &["a"]),
        Q::Failed,
        "any check that failed"
    );
    assert_eq!(quality(&[check(5, "b", Passed, 1)], &["a"]), Q::Unknown);
}

#[test]
fn a_verdict_belongs_to_its_version() {
    let passed = check(5, "a", CheckResult::Passed, 1);
    let mut state = state_of([evidence(commit(5, "APPEND")), Evidence::Check(passed, Some(mark(0, 5)))]);
    apply(&mut state, &evidence(commit(6, "APPEND")), 9);
    assert_eq!(state.quality.verdict(position(0, 5), &[]), QualityVerdict::Passed);
    assert_eq!(state.quality.verdict(position(0, 6), &[]), QualityVerdict::Unknown, "a later version inherits nothing");

    let about_another =
        Verdict { fingerprint: Some(Fingerprint::from("other")), ..check(6, "a", CheckResult::Failed, 1) };
    let outcome = apply(&mut state, &Evidence::Check(about_another, Some(mark(0, 6))), 10);
    assert!(matches!(&outcome, Outcome::Ignored(why) if why.contains("another commit")), "{outcome:?}");
    assert_eq!(state.quality.verdict(position(0, 6), &[]), QualityVerdict::Unknown);
}

#[test]
fn a_verdict_that_comes_first_is_parked_and_bound() {
    let mut state = state_of([evidence(commit(5, "APPEND"))]);
    let fingerprinted = |name: &str, print: &str| Verdict {
        fingerprint: Some(Fingerprint::from(print)),
        ..check(6, name, CheckResult::Failed, 1)
    };
    for verdict in [
        check(6, "a", CheckResult::Failed, 1),
        check(6, "a", CheckResult::Passed, 2),
        fingerprinted("b", "other"),
        check(7, "a", CheckResult::Failed, 3),
    ] {
        let outcome = apply(&mut state, &Evidence::Check(verdict.clone(), None), 2);
        assert!(matches!(&outcome, Outcome::Ignored(why) if why.contains("parked")), "{outcome:?}");
        assert_eq!(apply(&mut state, &Evidence::Check(verdict, None), 3), Outcome::Duplicate);
    }
    apply(&mut state, &evidence(commit(6, "APPEND")), 4);
    let verdict = |state: &AssetState, ordinal| state.quality.verdict(position(0, ordinal), &[]);
    assert_eq!(verdict(&state, 6), QualityVerdict::Passed, "the later run, and not the one about another commit");
    assert_eq!(verdict(&state, 7), QualityVerdict::Unknown);
    apply(&mut state, &evidence(commit(7, "COMPACT")), 5);
    assert_eq!(verdict(&state, 7), QualityVerdict::Failed);
}

#[test]
fn what_was_bound_joins_what_was_known() {
    let mut state = state_of([
        evidence(commit(5, "APPEND")),
        Evidence::Check(check(7, "a", CheckResult::Passed, 1), Some(mark(0, 7))),
        Evidence::Check(check(7, "b", CheckResult::Failed, 1), None),
    ]);
    apply(&mut state, &evidence(commit(7, "APPEND")), 9);
    assert_eq!(state.quality.verdict(position(0, 7), &[]), QualityVerdict::Failed, "both are about one version");
}
