//! Each reason code is what some input leads to: a code that nothing gives would be a page for nothing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lakebell_domain::commit::Commit;
use lakebell_domain::cursor::{Paused, TargetCursor};
use lakebell_domain::evaluation::{AssetView, Inputs, SwitchedOff};
use lakebell_domain::policy::{OnBackfill, Policies};
use lakebell_domain::reason::ReasonCode;
use lakebell_domain::state::{
    AssetState, BackfillStatus, CheckResult, Evidence, Hole, RewriteHold, SchemaStatus, Trouble, TroubleCode,
};
use lakebell_domain::target::{Advance, Conditions, Group, Member, QualityCondition, Target};
use lakebell_domain::trigger::{Arrow, Trigger};
use lakebell_domain::version::Ordinal;
use serde_json::{Value, json};

use crate::registers::check;
use crate::support::{
    Judged, asset_id, at, commit, evidence, group, group_name, judge, mark, member, sighting, state_of, taken, target,
    version,
};

/// Of partitions; the engine's tests of partitions lead to them.
const ELSEWHERE: [ReasonCode; 2] = [ReasonCode::NoNewPartition, ReasonCode::PartitionMissing];

struct Case {
    target: Target,
    cursor: TargetCursor,
    state: Option<AssetState>,
    open: Option<Trigger>,
    off: Option<SwitchedOff>,
}

fn case(conditions: Conditions, all: impl IntoIterator<Item = Evidence>) -> Case {
    let declared = Member { conditions, ..member(0) };
    Case {
        target: target(vec![group("g", Advance::All, vec![declared])]),
        cursor: TargetCursor::default(),
        state: Some(state_of(all)),
        open: None,
        off: None,
    }
}

fn ready() -> Case {
    case(Conditions::default(), [evidence(commit(1, "APPEND"))])
}

fn gated(policies: Value) -> Case {
    let mut case = ready();
    case.target.policies = serde_json::from_value::<Policies>(policies).unwrap();
    case.cursor.claimed_at = Some(at(0));
    case
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// With a trigger of this target that has gone along these arrows.
    fn open(mut self, arrows: &[Arrow]) -> Self {
        let claim = self.evaluate(at(10)).plan.unwrap().claim;
        let trigger = Trigger::claimed(&self.target, 1, claim, "t".parse().unwrap(), at(10), at(10));
        self.open = Some(arrows.iter().fold(trigger, |trigger, arrow| trigger.apply(arrow, at(10)).unwrap()));
        self
    }

    fn evaluate(&self, now: Timestamp) -> Judged {
        judge(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &BTreeMap::from([(asset_id(0), AssetView::of(1, self.state.as_ref()))]),
            open: self.open.as_ref(),
            failed: None,
            switched_off: self.off.as_ref(),
            now,
        })
    }

    fn code(&self) -> ReasonCode {
        self.evaluate(at(30)).evaluation.reason.expect("it is ready").code
    }
}

fn of_schema(status: Option<SchemaStatus>, asks: bool) -> Case {
    let decided = status.map(|status| Evidence::SchemaDecided(3, status));
    let under = |schema, ordinal| evidence(Commit { schema_id: Some(schema), ..commit(ordinal, "APPEND") });
    let mut state = state_of([under(0, 1)].into_iter().chain(decided).chain([under(3, 2)]));
    state.schema.approval_required = asks;
    case(Conditions { schema_compatible: true, ..Conditions::default() }, []).with(|case| {
        case.state = Some(state);
        // What came before the change was taken.
        case.cursor.take(&group_name("g"), asset_id(0), &taken(0, 1));
    })
}

fn cases() -> Vec<(ReasonCode, Case)> {
    use ReasonCode as R;
    let plain = Conditions::default;
    let append = || evidence(commit(1, "APPEND"));
    let trouble = |code| Evidence::Trouble(Trouble { code, detail: "no".to_owned(), since: at(1) });
    let quality = || Conditions { quality: Some(QualityCondition::default()), ..plain() };
    let failed = Evidence::Check(check(1, "rows", CheckResult::Failed, 1), Some(mark(0, 1)));
    let watermark =
        |conditions| case(conditions, [evidence(crate::support::with_watermark(1, "APPEND", at(0).as_millisecond()))]);
    let every = || serde_json::from_value(json!({ "period": "1d", "timeZone": "UTC" })).unwrap();
    let runs = || Evidence::Backfill("b".to_owned(), BackfillStatus::Running);
    let lease = || Arrow::Lease { until: at(90) };
    let lost = Arrow::LoseSight { code: "T".to_owned(), detail: "t".to_owned(), check_at: at(10) };
    let hold = RewriteHold { confirmed_at: Some(at(2)), ..sighting(&version(0, 1), at(1)) };
    let window = |from: &str, to: &str| json!({ "runWindow": { "from": from, "to": to, "timeZone": "UTC" } });
    let minimum = json!({ "minimum": { "snapshotId": "9", "epoch": 0, "ordinal": 9 } });
    let later = at(7_200);
    vec![
        (R::NoNewVersion, ready().with(|case| case.cursor = case.evaluate(at(10)).plan.unwrap().cursor)),
        (R::NoVersionYet, case(plain(), [])),
        (R::MinSnapshotNotReached, case(serde_json::from_value(minimum).unwrap(), [append()])),
        (R::NeverRead, case(plain(), []).with(|case| case.state = Some(AssetState::default()))),
        (R::LocationUnreadable, case(plain(), [trouble(TroubleCode::Unreadable)])),
        (R::CommitDamaged, case(plain(), [trouble(TroubleCode::Damaged)])),
        (R::CatalogAway, case(plain(), [trouble(TroubleCode::CatalogAway)])),
        (R::CatalogRefused, case(plain(), [trouble(TroubleCode::CatalogRefused)])),
        (R::CatalogUnclear, case(plain(), [trouble(TroubleCode::CatalogUnclear)])),
        (R::NotInCatalog, case(plain(), [trouble(TroubleCode::NotInCatalog)])),
        (R::CommitMissing, case(plain(), [Evidence::Hole(Hole { ordinal: Ordinal(1), first_seen: at(1) })])),
        (R::RewriteSuspected, case(plain(), [append(), Evidence::RewriteSighted(sighting(&version(0, 1), at(1)))])),
        (R::RewriteHeld, case(plain(), [append(), Evidence::RewriteSighted(hold)])),
        (R::AssetUnknown, case(plain(), []).with(|case| case.state = None)),
        (R::TooFewAdvanced, case(plain(), []).with(|case| case.target.groups[0].advance = Advance::AtLeast(1))),
        (R::TriggerInFlight, ready().open(&[])),
        (R::TriggerHeld, ready().open(&[lease(), lost, Arrow::Hold { detail: "two".to_owned() }])),
        (
            R::TriggerFailed,
            ready().open(&[lease(), Arrow::Fail { code: "X".to_owned(), detail: "no".to_owned() }]).with(|case| {
                case.target.policies.on_failed = lakebell_domain::policy::OnFailed::Hold;
            }),
        ),
        (
            R::TargetPaused,
            ready().with(|case| case.cursor.paused = Some(Paused { since: at(1), by: "ops".to_owned() })),
        ),
        (R::TargetDisabled, ready().with(|case| case.target.enabled = false)),
        (R::TargetInvalid, ready().with(|case| case.target.invalid = Some("its table is gone".to_owned()))),
        (
            R::SwitchedOff,
            ready().with(|case| {
                case.off = Some(SwitchedOff { scope: "global".to_owned(), since: at(1), by: "ops".to_owned() });
            }),
        ),
        (R::QualityUnknown, case(quality(), [append()])),
        (R::QualityFailed, case(quality(), [append(), failed])),
        (R::SchemaPending, of_schema(None, true)),
        (R::SchemaRejected, of_schema(Some(SchemaStatus::Rejected), false)),
        (R::SchemaUndecided, of_schema(None, false)),
        (R::TagMissing, case(Conditions { tag: Some("d*".parse().unwrap()), ..plain() }, [append()])),
        (R::WatermarkAbsent, case(Conditions { watermark: Some(later), ..plain() }, [append()])),
        (R::WatermarkNotReached, watermark(Conditions { watermark: Some(later), ..plain() })),
        (R::WatermarkTooOld, watermark(Conditions { max_lag: Some("1s".parse().unwrap()), ..plain() })),
        (R::WindowOpen, watermark(Conditions { every: Some(every()), ..plain() })),
        (R::BackfillRunning, case(plain(), [runs(), append()])),
        (
            R::BackfillIgnored,
            case(plain(), [runs(), append()]).with(|case| case.target.policies.on_backfill = OnBackfill::Ignore),
        ),
        (R::BackfillNotCompleted, case(Conditions { backfill_completed: true, ..plain() }, [append()])),
        (R::CdcLagNotRecovered, case(Conditions { cdc_lag_recovered: true, ..plain() }, [append()])),
        (
            R::RegisterNotMoved,
            watermark(Conditions { snapshot_required: false, watermark: Some(at(0)), ..plain() })
                .with(|case| case.cursor = case.evaluate(at(10)).plan.unwrap().cursor),
        ),
        (R::TooFewSnapshots, case(Conditions { min_new_snapshots: 2, ..plain() }, [append()])),
        (R::TooFewRecords, case(Conditions { min_delta_records: Some(2), ..plain() }, [append()])),
        (
            R::NoMemberYet,
            ready().with(|case| {
                let group = &mut case.target.groups[0];
                *group = Group { members: Vec::new(), prefixes: Vec::new(), ..group.clone() };
            }),
        ),
        (R::QuietPeriod, gated(json!({ "quietPeriod": "10m" }))),
        (R::MinInterval, gated(json!({ "minInterval": "10m" }))),
        (R::NotBefore, gated(json!({ "notBefore": { "time": "23:59", "timeZone": "UTC" } }))),
        (R::OutsideRunWindow, gated(window("23:58", "23:59"))),
    ]
}

#[test]
fn each_reason_code_is_given_for_something() {
    let cases = cases();
    for (code, case) in &cases {
        assert_eq!(case.code(), *code);
    }
    let given: BTreeSet<ReasonCode> = cases.iter().map(|(code, _)| *code).chain(ELSEWHERE).collect();
    let missing: Vec<_> = ReasonCode::ALL.into_iter().filter(|code| !given.contains(code)).collect();
    assert!(missing.is_empty(), "nothing here leads to {missing:?}");
}
