//! Who wrote last, and what was refused last: kept for people, shown in every evaluation.

use std::collections::BTreeMap;

use lakebell_domain::commit::{Commit, Millis};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Evaluation, Inputs, Take};
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::state::{
    AssetState, CheckResult, Evidence, MAX_REFUSAL, RefusedEvidence, Severity, Verdict, Writer,
};
use lakebell_domain::target::Advance;
use lakebell_domain::trigger::Trigger;
use lakebell_domain::version::{Fingerprint, Ordinal};
use serde_json::json;

use crate::support::{
    Judged, asset_id, at, commit, evidence, group, judge, mark, member, sighting, state_of, target, version,
    with_watermark,
};

fn written_by(name: &str, ordinal: u64) -> Commit {
    Commit { extra: [("commit_user".to_owned(), name.into())].into(), ..commit(ordinal, "APPEND") }
}

fn about_another_commit() -> Evidence {
    let verdict = Verdict {
        ordinal: Ordinal(1),
        fingerprint: Some(Fingerprint::from("other")),
        check: "row_count".to_owned(),
        result: CheckResult::Failed,
        severity: Severity::Error,
        run: 1,
    };
    Evidence::Check(verdict, Some(mark(0, 1)))
}

#[test]
fn the_newest_commit_says_who_wrote_last() {
    let clock = Commit { committed_at: Some(Millis(1_790_000_005_000)), ..written_by("flink", 1) };
    let mut state = state_of([evidence(clock)]);
    assert_eq!(state.writer, Some(Writer { name: "flink".to_owned(), at: at(5) }), "by the writer's clock");
    state = state.apply(&evidence(written_by("spark", 2)), at(9)).state;
    assert_eq!(state.writer, Some(Writer { name: "spark".to_owned(), at: at(9) }), "as recorded");
    let late = state.apply(&evidence(written_by("late", 1)), at(10)).state;
    assert_eq!(late.writer, state.writer, "a commit that is not taken wrote nothing");
    let long = state.apply(&evidence(written_by(&"x".repeat(500), 3)), at(11)).state;
    assert_eq!(long.writer.unwrap().name.len(), 64);
    let nobody = state.apply(&evidence(commit(3, "APPEND")), at(11)).state;
    assert_eq!(nobody.writer, None, "the newest commit does not say");
}

#[test]
fn a_refusal_is_kept_once_and_replaced_by_another() {
    let state = state_of([evidence(commit(1, "APPEND"))]);
    let first = state.apply(&about_another_commit(), at(5));
    let refused = first.state.refused.clone().unwrap();
    assert_eq!((refused.kind, refused.at), (EventKind::QualityCheckFailed, at(5)));
    assert!(matches!(&first.outcome, Outcome::Ignored(reason) if *reason == refused.reason), "{:?}", first.outcome);

    let again = first.state.apply(&about_another_commit(), at(6)).state;
    assert_eq!(again, first.state, "the same refusal costs no write");

    let other = again.apply(&Evidence::WatermarkPushed(Millis(i64::MIN)), at(7)).state;
    assert_eq!(other.refused.as_ref().unwrap().kind, EventKind::WatermarkAdvanced);
    let taken = other.apply(&Evidence::WatermarkPushed(Millis(5)), at(8)).state;
    assert_eq!(taken.refused, other.refused, "what was taken later does not undo that it was refused");
}

#[test]
fn what_waits_and_what_storage_tells_is_not_refused() {
    let parked = Verdict {
        ordinal: Ordinal(9),
        fingerprint: None,
        check: "row_count".to_owned(),
        result: CheckResult::Passed,
        severity: Severity::Error,
        run: 1,
    };
    let state = state_of([
        evidence(commit(1, "APPEND")),
        Evidence::Check(parked, None),
        evidence(with_watermark(2, "APPEND", i64::MIN)),
    ]);
    assert_eq!(state.refused, None);
}

#[test]
fn a_refusal_of_the_push_itself_is_bounded() {
    let mut state = AssetState::default();
    assert!(state.refuse(EventKind::TagCreated, &"é".repeat(1_000), at(1)));
    assert!(!state.refuse(EventKind::TagCreated, &"é".repeat(1_000), at(2)), "the same");
    let RefusedEvidence { reason, at: first, .. } = state.refused.unwrap();
    assert_eq!((reason.chars().count(), first), (MAX_REFUSAL, at(1)));
}

#[test]
fn a_new_epoch_knows_nothing_of_either() {
    let state = state_of([evidence(written_by("flink", 1)), about_another_commit()]);
    let held = state.apply(&Evidence::RewriteSighted(sighting(&version(0, 1), at(9))), at(9)).state;
    let fresh = held.apply(&Evidence::RewriteAccepted(vec![commit(1, "APPEND")]), at(100)).state;
    assert_eq!((fresh.writer, fresh.refused), (None, None));
}

fn evaluated(state: &AssetState) -> Judged {
    let target = target(vec![group("default", Advance::All, vec![member(1)])]);
    let assets = BTreeMap::from([(asset_id(1), AssetView::of(1, Some(state)))]);
    judge(&Inputs {
        target: &target,
        cursor: &TargetCursor::default(),
        assets: &assets,
        open: None,
        failed: None,
        switched_off: None,
        now: at(100),
    })
}

#[test]
fn an_evaluation_shows_both_where_there_is_something() {
    let shown = |state: &AssetState| serde_json::to_value(&evaluated(state).groups[0].members[0]).unwrap();
    let bare = shown(&state_of([evidence(commit(1, "COMPACT"))]));
    assert_eq!((bare.get("writtenBy"), bare.get("refused")), (None, None));

    let member = shown(&state_of([evidence(written_by("flink", 1)), about_another_commit()]));
    assert_eq!(member["writtenBy"], json!({"name": "flink", "at": at(1).to_string()}));
    assert_eq!(member["refused"]["kind"], "QUALITY_CHECK_FAILED");
    assert_eq!(member["refused"]["reason"], "the verdict is about another commit with this number");
}

#[test]
fn what_is_ready_says_what_would_be_taken_and_an_open_trigger_what_was() {
    let state = state_of([evidence(commit(1, "APPEND")), evidence(commit(2, "APPEND"))]);
    let ready = evaluated(&state);
    let shown = serde_json::to_value(&ready).unwrap();
    assert_eq!(shown["verdict"], "READY");
    assert_eq!(shown["takes"], json!([{"asset": "paimon://ods/t1", "to": version(0, 2)}]));
    assert_eq!(shown.get("openTakes"), None);
    let read: Evaluation = serde_json::from_value(shown.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), shown, "what is shown can be read back");

    let waiting = evaluated(&state_of([evidence(commit(1, "COMPACT"))]));
    assert_eq!(serde_json::to_value(&waiting).unwrap().get("takes"), None);

    let target = target(vec![group("default", Advance::All, vec![member(1)])]);
    let plan = ready.plan.unwrap();
    let open = Trigger::claimed(&target, 1, plan.claim, "trace".parse().unwrap(), at(100), at(160));
    let assets = BTreeMap::from([(asset_id(1), AssetView::of(1, Some(&state)))]);
    let in_flight = judge(&Inputs {
        target: &target,
        cursor: &plan.cursor,
        assets: &assets,
        open: Some(&open),
        failed: None,
        switched_off: None,
        now: at(101),
    });
    let taken = Take { asset: member(1).key, from: None, to: Some(version(0, 2)), tag: None, window: None };
    assert_eq!((in_flight.evaluation.open, in_flight.evaluation.open_takes), (Some(open.key), vec![taken]));
}
