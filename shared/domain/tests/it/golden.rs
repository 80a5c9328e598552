//! Formats that are stored or sent: what is written today is read tomorrow.
//!
//! A drift fails. Where it is wanted, run the tests with `LAKEBELL_BLESS=1`, and look at the
//! difference: what is stored already must still be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lakebell_domain::commit::{Commit, Millis};
use lakebell_domain::cursor::{Paused, TargetCursor};
use lakebell_domain::evaluation::{AssetView, Evaluation, Inputs};
use lakebell_domain::event::{
    CheckFacts, CommitFacts, Event, EventKind, Outcome, PushedEvidence, Source, commit_token, verdict_token,
};
use lakebell_domain::ids::{InstanceId, TaskCode};
use lakebell_domain::sensor::{Asker, SensorRun, answer_key};
use lakebell_domain::state::{
    AssetState, BackfillStatus, CheckResult, Evidence, Gap, Hole, PARKED, SchemaDetail, SchemaStatus, Severity,
    Trouble, TroubleCode,
};
use lakebell_domain::target::{Advance, Target, TargetSpec};
use lakebell_domain::trigger::{Bounds, Distinct, Range, Trigger, trigger_key};
use lakebell_domain::version::{Fingerprint, Ordinal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::machine::steps;
use crate::registers::check;
use crate::support::{
    Judged, asset_id, asset_key, at, commit, evidence, group, group_name, judge, member, position, sighting, state_of,
};
use crate::support::{mark, taken, target, version};
use crate::target_refusals::resolve;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.json"))
}

/// The text that is kept for a value; rewritten where that is asked for.
#[track_caller]
pub(crate) fn golden<T: Serialize>(name: &str, value: &T) -> Value {
    let written = serde_json::to_value(value).unwrap();
    if std::env::var_os("LAKEBELL_BLESS").is_some_and(|flag| flag == "1") {
        std::fs::write(path(name), serde_json::to_string_pretty(&written).unwrap() + "\n").unwrap();
    }
    let kept = std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(written, kept, "{name} has drifted; if that is wanted, run again with LAKEBELL_BLESS=1");
    kept
}

/// The same, and what is kept is read back as the value.
#[track_caller]
fn golden_both_ways<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, value: &T) {
    let kept = golden(name, value);
    let read: T = serde_json::from_value(kept).unwrap_or_else(|error| panic!("{name} cannot be read: {error}"));
    assert_eq!(&read, value, "{name} is read as something else");
}

/// Something in every register.
fn full_state() -> AssetState {
    let tag = crate::support::tag(0, 5);
    let mut state = state_of([
        evidence(commit(4, "COMPACT")),
        evidence(Commit {
            schema_id: Some(2),
            watermark: Some(Millis(1_790_000_000_000)),
            total_records: Some(120),
            ..commit(5, "APPEND")
        }),
        Evidence::TagCreated("2026-11-30".to_owned(), tag),
        Evidence::Check(check(5, "row_count", CheckResult::Passed, 9), Some(mark(0, 5))),
        Evidence::Check(check(6, "row_count", CheckResult::Errored, 10), None),
        Evidence::SchemaRead(SchemaDetail { schema_id: 2, text: Some("input".to_owned()) }),
        Evidence::SchemaDecided(2, SchemaStatus::Compatible),
        Evidence::Backfill("b1".to_owned(), BackfillStatus::Completed),
        Evidence::Backfill("b2".to_owned(), BackfillStatus::Running),
        Evidence::CdcLagRecovered,
        Evidence::Expired(Gap { first: Ordinal(6), last: Ordinal(7), at: at(11), cause: "expired unread".to_owned() }),
        Evidence::Hole(Hole { ordinal: Ordinal(8), first_seen: at(12) }),
        Evidence::Trouble(Trouble { code: TroubleCode::Damaged, detail: "no JSON".to_owned(), since: at(13) }),
        Evidence::RewriteSighted(sighting(&version(0, 5), at(14))),
    ]);
    state.schema.approval_required = true;
    state
}

#[test]
fn asset_states() {
    golden_both_ways("asset_state", &full_state());
    golden_both_ways("asset_state_unread", &AssetState::default());
    // a register that did not exist when a state was stored is empty
    assert_eq!(serde_json::from_str::<AssetState>("{}").unwrap(), AssetState::default());
}

fn declaration() -> Value {
    json!({
        "name": "gmv",
        "connection": "prod",
        "workflowDefinitionCode": 11,
        "taskDefinitionCode": 12,
        "groups": [
            {
                "name": "both",
                "advance": "all",
                "dependencies": [
                    { "asset": "paimon://ods/orders", "alias": "o", "minSnapshotId": 42, "commitKinds": ["OVERWRITE", "APPEND"] },
                    { "asset": "paimon://ods/payments@dev" },
                ],
            },
            { "name": "either", "advance": "any", "dependencies": [{ "asset": "paimon://lake/ods/a%20b", "alias": "ab" }] },
            { "name": "one", "advance": { "atLeast": 1 }, "dependencies": [{ "asset": "paimon://ods/refunds" }] },
        ],
        "enabledFlag": 0,
    })
}

#[test]
fn declarations_and_targets() {
    let spec: TargetSpec = serde_json::from_value(declaration()).unwrap();
    golden_both_ways("target_spec", &spec);
    golden_both_ways::<Target>("target", &resolve(&declaration()).unwrap());
    let smallest = json!({
        "workflowDefinitionName": "daily",
        "groups": [{ "dependencies": [{ "asset": "paimon://ods/orders" }] }],
    });
    golden_both_ways("target_spec_smallest", &serde_json::from_value::<TargetSpec>(smallest.clone()).unwrap());
    golden_both_ways::<Target>("target_smallest", &resolve(&smallest).unwrap());
}

#[test]
fn cursors() {
    let mut cursor = TargetCursor { definition_rev: 4, ..TargetCursor::default() };
    cursor.take(&group_name("both"), asset_id(0), &taken(0, 5));
    cursor.take(&group_name("both"), asset_id(1), &taken(1, 2));
    cursor.joined.entry(group_name("both")).or_default().insert(asset_id(0), position(0, 9));
    cursor.open = Some("00aa".parse().unwrap());
    cursor.failed = Some("00bb".parse().unwrap());
    cursor.paused = Some(Paused { since: at(1), by: "ops".to_owned() });
    golden_both_ways("target_cursor", &cursor);
    assert_eq!(serde_json::from_str::<TargetCursor>("{}").unwrap(), TargetCursor::default());
}

#[test]
fn triggers_in_each_status() {
    for (step, trigger) in steps() {
        if !step.contains(',') || step == "waiting, due" {
            let name = format!("trigger_{}", trigger.status().step());
            let name = if step == "superseded" { "trigger_superseded".to_owned() } else { name };
            golden_both_ways::<Trigger>(&name, &trigger);
        }
        if let Some((step, "for a task")) = step.split_once(", ") {
            golden_both_ways::<Trigger>(&format!("trigger_{step}_for_a_task"), &trigger);
        }
    }
}

#[test]
fn events_with_each_outcome() {
    let commit = Commit {
        changes_data: None,
        watermark: Some(Millis(1_790_000_000_000)),
        committed_at: Some(Millis(1_790_000_000_500)),
        schema_id: Some(2),
        ..commit(5, "NEW")
    };
    let event = |outcome, kind, token: &str| Event {
        asset: asset_id(0),
        kind,
        token: token.to_owned(),
        source: Source::Notify,
        outcome,
        recorded_at: at(1),
        trace: "trace-1".parse().unwrap(),
        position: None,
        commit: None,
        evidence: None,
        extra: BTreeMap::new(),
        detail: None,
    };
    let full = Event {
        position: Some(position(1, 5)),
        commit: Some(CommitFacts::from(&commit)),
        detail: Some("of an unknown kind".to_owned()),
        ..event(Outcome::Advanced, EventKind::SnapshotCommitted, &commit_token(&commit))
    };
    let events = vec![
        full,
        Event { source: Source::Poll, ..event(Outcome::Maintenance, EventKind::SnapshotCommitted, "6") },
        Event { source: Source::Push, ..event(Outcome::Duplicate, EventKind::QualityCheckPassed, "7") },
        event(Outcome::Superseded, EventKind::WatermarkAdvanced, "8"),
        event(Outcome::Ignored("parked".to_owned()), EventKind::QualityCheckFailed, "9"),
    ];
    golden_both_ways("events", &events);
    golden_both_ways("events_with_evidence", &events_with_evidence(event));
}

/// One event for each register that is no commit, and what a replay makes of it.
fn events_with_evidence(event: impl Fn(Outcome, EventKind, &str) -> Event) -> Vec<Event> {
    let check = CheckFacts {
        check: "orders_suite".to_owned(),
        result: CheckResult::Failed,
        severity: Severity::Warn,
        run: 1_790_000_000_000,
        run_id: Some("0190a1b2".to_owned()),
        snapshot_id: Some("5".to_owned()),
        started_at: Some(at(0)),
    };
    let decided = |status| PushedEvidence::Schema { schema_id: 3, status };
    let tag = crate::support::tag(0, 5);
    let kept = [
        (EventKind::QualityCheckFailed, PushedEvidence::Check(check)),
        (EventKind::SchemaChangeApproved, decided(SchemaStatus::Compatible)),
        (EventKind::SchemaChangeRejected, decided(SchemaStatus::Rejected)),
        (EventKind::BackfillStarted, PushedEvidence::Backfill { id: "b1".to_owned(), status: BackfillStatus::Running }),
        (EventKind::CdcLagRecovered, PushedEvidence::CdcLag),
        (EventKind::WatermarkAdvanced, PushedEvidence::Watermark { at: Millis(1_790_000_000_000) }),
        (EventKind::TagCreated, PushedEvidence::Tag { name: "daily".to_owned(), version: Some(tag) }),
        (EventKind::TagDeleted, PushedEvidence::Tag { name: "daily".to_owned(), version: None }),
        (EventKind::JobStatusChanged, PushedEvidence::Job { status: "FINISHED".to_owned() }),
    ];
    let kept = kept.into_iter().enumerate().map(|(n, (kind, evidence))| Event {
        position: (n == 0).then(|| position(0, 5)),
        extra: if n == 0 { BTreeMap::from([("unexpected".to_owned(), json!(1))]) } else { BTreeMap::new() },
        evidence: Some(evidence),
        ..event(Outcome::Advanced, kind, &n.to_string())
    });
    kept.collect()
}

#[test]
fn events_are_replayed_into_their_registers() {
    let text = std::fs::read_to_string(path("events_with_evidence")).unwrap();
    let events: Vec<Event> = serde_json::from_str(&text).unwrap();
    let replayed: Vec<_> = events.iter().map(|event| event.replayed(|_| Some(mark(0, 5)))).collect();
    assert!(matches!(&replayed[0], Some(Evidence::Check(verdict, Some(_))) if verdict.ordinal == Ordinal(5)));
    assert_eq!(replayed[1], Some(Evidence::SchemaDecided(3, SchemaStatus::Compatible)));
    assert_eq!(replayed[4], Some(Evidence::CdcLagRecovered));
    assert_eq!(replayed[7], Some(Evidence::TagDeleted("daily".to_owned())));
    assert_eq!(replayed.iter().filter(|evidence| evidence.is_none()).count(), 1, "a job's status moves nothing");
    let refused = Event { outcome: Outcome::Ignored("no".to_owned()), ..events[5].clone() };
    assert_eq!(refused.replayed(|_| None), None);
    let token = verdict_token(&check(5, "rows", CheckResult::Failed, 17));
    assert_eq!(token, "00000000000000000005.00000000000000000017.error.rows");
    let unbound = Event { position: None, ..events[0].clone() };
    assert_eq!(unbound.replayed(|_| None), None);
    let parked = Event { outcome: Outcome::Ignored(PARKED.to_owned()), ..events[0].clone() };
    assert!(matches!(parked.replayed(|_| None), Some(Evidence::Check(_, None))));
}

fn evaluation(open: Option<&Trigger>) -> Judged {
    let target = target(vec![
        group("both", Advance::All, vec![member(0), member(1)]),
        group("either", Advance::AtLeast(1), vec![member(2)]),
    ]);
    let (ahead, held) = (state_of([evidence(commit(4, "APPEND"))]), full_state());
    let view = |state| AssetView::of(3, state);
    let assets = BTreeMap::from([
        (asset_id(0), view(Some(&ahead))),
        (asset_id(1), view(Some(&held))),
        (asset_id(2), view(if open.is_some() { None } else { Some(&ahead) })),
    ]);
    let mut cursor = TargetCursor { open: open.map(|open| open.key.clone()), ..TargetCursor::default() };
    cursor.take(&group_name("both"), asset_id(0), &taken(0, 1));
    judge(&Inputs {
        target: &target,
        cursor: &cursor,
        assets: &assets,
        open,
        failed: None,
        switched_off: None,
        now: at(90),
    })
}

#[test]
fn evaluations() {
    let ready = evaluation(None);
    assert!(ready.plan.is_some());
    golden("evaluation_ready", &ready);
    let (_, queued) = steps().swap_remove(0);
    golden("evaluation_in_flight", &evaluation(Some(&queued)));
}

/// What `why` and the tests of others read: everything that is shown.
#[test]
fn an_evaluation_can_be_read_back() {
    let (_, queued) = steps().swap_remove(0);
    let shown = serde_json::to_value(evaluation(Some(&queued))).unwrap();
    let read: Evaluation = serde_json::from_value(shown.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), shown);
}

/// The digest under which an answer is kept must be the same as long as answers are.
#[test]
fn sensor_answers() {
    let run = |asker, run| SensorRun { asker, run };
    let instance = || Asker::WorkflowInstance(InstanceId(31));
    let key = |connection: &str, target: &str, task, run: &SensorRun| {
        answer_key(&connection.parse().unwrap(), &target.parse().unwrap(), TaskCode(task), run)
    };
    let keys = [
        key("prod", "7/gmv", 12, &run(instance(), 1)),
        key("prod", "7/gmv", 12, &run(instance(), 2)),
        key("prod", "7/gmv", 13, &run(instance(), 1)),
        key("prod", "7/other", 12, &run(instance(), 1)),
        key("test", "7/gmv", 12, &run(instance(), 1)),
        key("prod", "7/gmv", 12, &run(Asker::WorkflowInstance(InstanceId(32)), 1)),
        // A token that looks like an instance is none.
        key("prod", "7/gmv", 12, &run(Asker::Token("31".parse().unwrap()), 1)),
    ];
    golden("sensor_answer_keys", &json!(keys));
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    golden_both_ways("sensor_run", &run(instance(), 1));
    golden_both_ways("sensor_run_of_token", &run(Asker::Token("k-1".parse().unwrap()), 2));
}

/// Digests must be the same for ever: a trigger is claimed once over all releases.
#[test]
fn trigger_keys() {
    let range = |asset, from: Option<u64>, to: Option<(u32, u64)>| Range {
        asset: asset_id(asset),
        key: asset_key("t"),
        aliases: BTreeSet::new(),
        bounds: Bounds { from: from.map(|from| version(0, from)), to: to.map(|(epoch, to)| version(epoch, to)) },
        watermark: Some(7),
        partition: None,
        tag: None,
        failed_versions: Vec::new(),
        has_backfill: false,
        head_rev: 9,
    };
    let digest = |target: &str, generation, groups: &[&str], ranges: &[Range]| {
        let groups = groups.iter().map(|name| group_name(name)).collect();
        let target = target.parse().unwrap();
        let parts = Distinct {
            target: &target,
            generation,
            groups: &groups,
            ranges,
            window: None,
            partition: None,
            tick: None,
            request: None,
            registers: &[],
        };
        trigger_key(&parts).to_string()
    };
    let plain = digest("7/daily", 1, &["default"], &[range(0, None, Some((0, 4)))]);
    let two = digest("7/daily", 2, &["b", "a"], &[range(1, Some(2), Some((1, 9))), range(0, Some(3), None)]);
    let largest = digest("9223372036854775807/x", u32::MAX, &["g"], &[range(2, None, Some((u32::MAX, u64::MAX)))]);
    golden("trigger_keys", &json!({ "plain": plain, "two": two, "largest": largest }));

    // neither the order of ranges nor where they begin is part of it; everything else is
    assert_eq!(two, digest("7/daily", 2, &["a", "b"], &[range(0, None, None), range(1, None, Some((1, 9)))]));
    let mut other = range(0, None, Some((0, 4)));
    other.bounds.to.as_mut().unwrap().fingerprint = Fingerprint::from("other");
    let distinct = BTreeSet::from([
        plain.clone(),
        digest("7/daily2", 1, &["default"], &[range(0, None, Some((0, 4)))]),
        digest("8/daily", 1, &["default"], &[range(0, None, Some((0, 4)))]),
        digest("7/daily", 2, &["default"], &[range(0, None, Some((0, 4)))]),
        digest("7/daily", 1, &["g"], &[range(0, None, Some((0, 4)))]),
        digest("7/daily", 1, &["default"], &[range(1, None, Some((0, 4)))]),
        digest("7/daily", 1, &["default"], &[range(0, None, Some((1, 4)))]),
        digest("7/daily", 1, &["default"], &[range(0, None, Some((0, 5)))]),
        digest("7/daily", 1, &["default"], &[other]),
        digest("7/daily", 1, &["default"], &[]),
    ]);
    assert_eq!(distinct.len(), 10);
    assert!(distinct.iter().all(|key| key.len() == 32));
}

#[test]
fn start_parameters() {
    let plan = evaluation(None).plan.unwrap();
    golden("start_parameters", &plan.claim.parameters());
    let (_, trigger) = steps().swap_remove(0);
    golden("start_parameters_claimed", &trigger.parameters);
}
