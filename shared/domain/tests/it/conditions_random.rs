//! The conditions against the reference, over random histories of commits, verdicts, decisions, tags,
//! backfills and watermarks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs};
use lakebell_domain::ids::TriggerKey;
use lakebell_domain::policy::OnBackfill;
use lakebell_domain::reason::Verdict;
use lakebell_domain::state::{
    AssetState, BackfillStatus, CheckResult, Evidence, Mark, SchemaStatus, Severity, Verdict as Checked,
};
use lakebell_domain::target::{Advance, Conditions, Member, Minimum, OnFailedVersion, QualityCondition, Target};
use lakebell_domain::version::{Epoch, Ordinal};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::conditions_reference::{Answer, Fill, Had, Past, Question, Run, Story, is_ready};
use crate::evaluator::check_explanation;
use crate::support::{Judged, asset_id, at, commit, group, judge, member, tag, target};

const ASSETS: usize = 3;
/// As many versions with a verdict as a head keeps: nothing is evicted.
const MOST_CHECKED: usize = 8;

/// One thing that happens to one table, or to all.
#[derive(Debug, Clone)]
enum Step {
    Commit { kind: &'static str, delta: i64, schema: i64, watermark: Option<i64> },
    Check { of: Index, check: &'static str, result: CheckResult, severity: Severity, run: i64, early: bool },
    Decide { schema: i64, status: SchemaStatus },
    Tag { name: &'static str, of: Index },
    Untag { name: &'static str },
    Fill { id: &'static str, ends: bool },
    Recover,
    Wait { hours: i64 },
    Claim,
}

struct World {
    target: Target,
    cursor: TargetCursor,
    stories: Vec<Story>,
    states: Vec<AssetState>,
    marks: Vec<BTreeMap<u64, Mark>>,
    had: Vec<Had>,
    keys: BTreeSet<TriggerKey>,
    now: Timestamp,
    /// Whether the kept marks must suffice.
    is_exact: bool,
}

impl World {
    fn new(target: Target, approval: bool, is_exact: bool) -> Self {
        let mut state = AssetState::default();
        state.schema.approval_required = approval;
        Self {
            target,
            cursor: TargetCursor::default(),
            stories: vec![Story { approval, ..Story::default() }; ASSETS],
            states: vec![state; ASSETS],
            marks: vec![BTreeMap::new(); ASSETS],
            had: vec![Had::default(); ASSETS],
            keys: BTreeSet::new(),
            now: at(0),
            is_exact,
        }
    }

    fn tell(&mut self, asset: usize, evidence: &Evidence) {
        self.states[asset] = self.states[asset].apply(evidence, self.now).state;
    }

    fn past(&self, asset: usize, step: &Step) -> (Past, Commit) {
        let Step::Commit { kind, delta, schema, watermark } = *step else { unreachable!("a commit") };
        let ordinal = self.stories[asset].newest() + 1;
        let made = Commit {
            schema_id: Some(schema),
            delta_records: Some(delta),
            watermark: watermark.map(|seconds| Millis(at(seconds).as_millisecond())),
            ..commit(ordinal, kind)
        };
        (Past { ordinal, kind, delta, schema }, made)
    }

    /// What is there before anybody looks.
    fn begin(&mut self, asset: usize, commits: &[Step]) {
        let mut found = Vec::new();
        for step in commits {
            let (past, made) = self.past(asset, step);
            self.stories[asset].watermarks.extend(made.watermark.map(|at| at.0));
            self.stories[asset].commits.push(past);
            found.push(made);
        }
        self.tell(asset, &Evidence::FirstRead(found));
        let story = &mut self.stories[asset];
        story.read_at = commits.len();
        story.watermark_at_first = story.watermarks.iter().copied().max();
        self.had[asset] = self.stories[asset].beginning();
    }

    fn step(&mut self, asset: usize, step: &Step) {
        self.now += jiff::SignedDuration::from_secs(10);
        match step {
            Step::Commit { .. } => {
                let (past, made) = self.past(asset, step);
                let (ordinal, kind) = (past.ordinal, made.kind.clone());
                self.stories[asset].watermarks.extend(made.watermark.map(|at| at.0));
                self.stories[asset].commits.push(past);
                self.tell(asset, &Evidence::Commit(Box::new(made)));
                let mark = self.states[asset].kinds[&kind].mark.clone();
                self.marks[asset].insert(ordinal, mark);
            }
            Step::Check { of, check, result, severity, run, early } => {
                let story = &mut self.stories[asset];
                let known: Vec<u64> = self.marks[asset].keys().copied().collect();
                // a check may be told before its commit is seen
                let ordinal =
                    if *early || known.is_empty() { story.newest() + 1 } else { known[of.index(known.len())] };
                let mut checked: BTreeSet<u64> = story.runs.iter().map(|run| run.ordinal).collect();
                checked.insert(ordinal);
                if checked.len() > MOST_CHECKED {
                    return;
                }
                let run = run * 1_000 + i64::try_from(story.runs.len()).unwrap();
                story.runs.push(Run { ordinal, check, result: *result, severity: *severity, at: run });
                let verdict = Checked {
                    ordinal: Ordinal(ordinal),
                    fingerprint: None,
                    check: (*check).to_owned(),
                    result: *result,
                    severity: *severity,
                    run,
                };
                let mark = self.marks[asset].get(&ordinal).cloned();
                self.tell(asset, &Evidence::Check(verdict, mark));
            }
            Step::Decide { schema, status } => {
                self.stories[asset].decisions.insert(*schema, *status);
                self.tell(asset, &Evidence::SchemaDecided(*schema, *status));
            }
            Step::Tag { name, of } => {
                let commits = &self.stories[asset].commits;
                if commits.is_empty() {
                    return;
                }
                let past = commits[of.index(commits.len())].clone();
                let mut entry = tag(0, past.ordinal);
                entry.schema_id = Some(past.schema);
                entry.kind = Some(CommitKind(past.kind.to_owned()));
                self.stories[asset].tags.insert((*name).to_owned(), past.ordinal);
                self.tell(asset, &Evidence::TagCreated((*name).to_owned(), entry));
            }
            Step::Untag { name } => {
                self.stories[asset].tags.remove(*name);
                self.tell(asset, &Evidence::TagDeleted((*name).to_owned()));
            }
            Step::Fill { id, ends } => {
                let (now, here) = (self.now, self.stories[asset].newest());
                let begun = Fill { began: now, from: here, ended: None };
                let fills = &mut self.stories[asset].fills;
                if *ends {
                    let fill = fills.entry((*id).to_owned()).or_insert(begun);
                    fill.ended = fill.ended.or(Some((now, here)));
                } else {
                    fills.entry((*id).to_owned()).or_insert(begun);
                }
                let status = if *ends { BackfillStatus::Completed } else { BackfillStatus::Running };
                self.tell(asset, &Evidence::Backfill((*id).to_owned(), status));
            }
            Step::Recover => {
                self.stories[asset].recovered = Some(self.now);
                self.tell(asset, &Evidence::CdcLagRecovered);
            }
            Step::Wait { hours } => self.now += jiff::SignedDuration::from_hours(*hours),
            Step::Claim => {}
        }
    }

    fn evaluate(&self) -> Judged {
        let views = (0..).zip(&self.states).map(|(n, state)| (asset_id(n), AssetView::of(1, Some(state))));
        judge(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &views.collect(),
            open: None,
            failed: None,
            switched_off: None,
            now: self.now,
        })
    }

    fn answers(&self) -> Vec<Answer> {
        let members = self.target.groups[0].members.iter().enumerate();
        let question = |(asset, member): (usize, &Member)| {
            Question {
                story: &self.stories[asset],
                conditions: &member.conditions,
                on_backfill: self.target.policies.on_backfill,
                had: &self.had[asset],
                now: self.now,
            }
            .answer()
        };
        members.map(question).collect()
    }

    /// Whether a version that the reference would take is no longer among the marks: the documented
    /// blind spot.
    fn is_blind(&self, answers: &[Answer]) -> bool {
        answers.iter().enumerate().any(|(asset, answer)| {
            let is_tagged = self.target.groups[0].members[asset].conditions.tag.is_some();
            answer.candidate.is_some_and(|candidate| {
                !is_tagged && !self.states[asset].marks().any(|mark| mark.version.position.ordinal.0 == candidate)
            })
        })
    }

    /// `false` where the blind spot makes the comparison moot.
    fn compare(&mut self, claims: bool) -> Result<bool, TestCaseError> {
        let evaluation = self.evaluate();
        check_explanation(&evaluation)?;
        let answers = self.answers();
        if self.is_blind(&answers) {
            prop_assert!(!self.is_exact, "a version was forgotten");
            return Ok(false);
        }
        let members = &evaluation.groups[0].members;
        for (asset, (member, answer)) in members.iter().zip(&answers).enumerate() {
            let is_ready = member.verdict == Verdict::Ready;
            prop_assert_eq!(is_ready, answer.takes.is_some(), "asset {}: {:?} and {:?}", asset, member, answer);
        }
        let declared = &self.target.groups[0];
        let with: Vec<_> = declared.members.iter().map(|member| &member.conditions).zip(&answers).collect();
        let expected = is_ready(declared.advance, &with);
        prop_assert_eq!(evaluation.plan.is_some(), expected, "{:?} and {:?}", evaluation.groups[0].reason, answers);
        let Some(plan) = evaluation.plan else { return Ok(true) };
        for (asset, answer) in answers.iter().enumerate() {
            let after = answer.takes.as_ref().unwrap_or(&self.had[asset]);
            let range = plan.claim.ranges.iter().find(|range| range.asset == asset_id(asset as u128)).unwrap();
            let ordinal = |version: &Option<lakebell_domain::version::Version>| {
                version.as_ref().map(|version| version.position.ordinal.0)
            };
            prop_assert_eq!(ordinal(&range.bounds.from), self.had[asset].ordinal);
            prop_assert_eq!(ordinal(&range.bounds.to), after.ordinal);
            if let (Some(quality), Some(to)) = (&declared.members[asset].conditions.quality, after.ordinal) {
                let failed = self.stories[asset].failed_inside(self.had[asset].ordinal, to, &quality.checks);
                let listed: Vec<u64> = range.failed_versions.iter().map(|version| version.position.ordinal.0).collect();
                prop_assert_eq!(listed, failed);
            }
        }
        if claims {
            prop_assert!(self.keys.insert(plan.claim.key.clone()), "one key for two triggers");
            self.cursor = TargetCursor { open: None, ..plan.cursor };
            for (had, answer) in self.had.iter_mut().zip(answers) {
                *had = answer.takes.unwrap_or_else(|| had.clone());
            }
            let again = self.evaluate();
            prop_assert!(again.plan.is_none(), "ready again, and nothing has moved: {:?}", again.groups[0]);
        }
        Ok(true)
    }
}

fn a_quality() -> impl Strategy<Value = Option<QualityCondition>> {
    let checks = select(vec![vec![], vec![], vec!["rows"], vec!["rows", "nulls"]]);
    let quality = (checks, any::<bool>()).prop_map(|(checks, passes_over)| QualityCondition {
        checks: checks.into_iter().map(str::to_owned).collect(),
        on_failed: if passes_over { OnFailedVersion::PassOver } else { OnFailedVersion::Block },
    });
    proptest::option::weighted(0.4, quality)
}

fn a_condition() -> impl Strategy<Value = Conditions> {
    let kinds = select(vec![None, None, None, Some(vec!["APPEND"]), Some(vec!["COMPACT", "OVERWRITE"])]);
    let versions = (kinds, any::<bool>(), proptest::option::weighted(0.2, 1_u64..15), a_quality());
    let counts = (select(vec![1_u64, 1, 1, 2, 4]), proptest::option::weighted(0.2, 1_i64..8));
    let registers = (
        proptest::option::weighted(0.2, 0_i64..200),
        proptest::option::weighted(0.2, 10_i64..4_000),
        select(vec![None, None, None, Some("*"), Some("d*"), Some("day-1")]),
        proptest::collection::vec(proptest::bool::weighted(0.2), 4),
    );
    (versions, counts, registers, any::<bool>()).prop_map(|(versions, counts, registers, snapshot)| {
        let ((kinds, ignore_empty, minimum, quality), (wanted, rows)) = (versions, counts);
        let (watermark, lag, tag, flags) = registers;
        let mut conditions = Conditions {
            commit_kinds: kinds.map(|kinds| kinds.into_iter().map(|kind| CommitKind(kind.to_owned())).collect()),
            ignore_empty,
            minimum: minimum.map(|ordinal| Minimum {
                snapshot_id: ordinal.to_string(),
                epoch: Epoch(0),
                ordinal: Ordinal(ordinal),
            }),
            quality,
            min_new_snapshots: wanted,
            min_delta_records: rows,
            watermark: watermark.map(at),
            max_lag: lag.map(|seconds| lakebell_domain::policy::Length::from_seconds(seconds).unwrap()),
            tag: tag.map(|tag| tag.parse().unwrap()),
            schema_compatible: flags[0],
            backfill_completed: flags[1],
            cdc_lag_recovered: flags[2],
            optional: flags[3],
            ..Conditions::default()
        };
        conditions.snapshot_required = snapshot || !conditions.names_a_register();
        settle(&mut conditions);
        conditions
    })
}

/// What a declaration is refused for is taken out.
fn settle(conditions: &mut Conditions) {
    if !conditions.snapshot_required {
        conditions.commit_kinds = None;
        conditions.minimum = None;
        conditions.ignore_empty = false;
    }
    if !conditions.snapshot_required || conditions.commit_kinds.is_some() || conditions.tag.is_some() {
        conditions.min_new_snapshots = 1;
        conditions.min_delta_records = None;
    }
    if conditions.commit_kinds.is_some() || conditions.tag.is_some() {
        conditions.ignore_empty = false;
    }
}

/// Only such conditions as the kept marks suffice for.
fn suffices(mut conditions: Conditions, on_backfill: OnBackfill) -> Conditions {
    let by_another = conditions.quality.is_some() || conditions.schema_compatible;
    if by_another || on_backfill == OnBackfill::Ignore {
        conditions.commit_kinds = None;
        conditions.ignore_empty = false;
    }
    if on_backfill == OnBackfill::Ignore {
        conditions.schema_compatible = false;
        conditions.quality = None;
        conditions.snapshot_required |= !conditions.names_a_register();
    }
    if conditions.commit_kinds.is_some() {
        conditions.minimum = None;
    }
    conditions
}

fn a_commit() -> impl Strategy<Value = Step> {
    let kind = select(vec!["APPEND", "APPEND", "OVERWRITE", "COMPACT"]);
    (kind, 0_i64..4, 1_i64..4, proptest::option::weighted(0.3, 0_i64..300))
        .prop_map(|(kind, delta, schema, watermark)| Step::Commit { kind, delta, schema, watermark })
}

fn a_step() -> impl Strategy<Value = Step> {
    let result = select(vec![CheckResult::Passed, CheckResult::Passed, CheckResult::Failed, CheckResult::Errored]);
    let severity = select(vec![Severity::Error, Severity::Error, Severity::Warn]);
    let check =
        (any::<Index>(), select(vec!["rows", "nulls"]), result, severity, 0_i64..5, proptest::bool::weighted(0.1));
    let status = select(vec![SchemaStatus::Compatible, SchemaStatus::Compatible, SchemaStatus::Rejected]);
    let name = || select(vec!["day-1", "day-2", "draft"]);
    prop_oneof![
        8 => a_commit(),
        6 => check.prop_map(|(of, check, result, severity, run, early)| {
            Step::Check { of, check, result, severity, run, early }
        }),
        2 => (1_i64..4, status).prop_map(|(schema, status)| Step::Decide { schema, status }),
        2 => (name(), any::<Index>()).prop_map(|(name, of)| Step::Tag { name, of }),
        1 => name().prop_map(|name| Step::Untag { name }),
        2 => (select(vec!["b1", "b2"]), any::<bool>()).prop_map(|(id, ends)| Step::Fill { id, ends }),
        1 => Just(Step::Recover),
        1 => (0_i64..30).prop_map(|hours| Step::Wait { hours }),
        6 => Just(Step::Claim),
    ]
}

fn on_backfill() -> impl Strategy<Value = OnBackfill> {
    select(vec![OnBackfill::Hold, OnBackfill::Ignore, OnBackfill::Trigger])
}

fn a_target(conditions: Vec<Conditions>, how: usize, on_backfill: OnBackfill) -> Target {
    let required = conditions.iter().filter(|conditions| !conditions.optional).count().max(1);
    let advance = [Advance::All, Advance::Any, Advance::AtLeast(2.min(required))][how];
    let mut members: Vec<Member> =
        (0..).zip(conditions).map(|(n, conditions)| Member { conditions, ..member(n) }).collect();
    members[0].conditions.optional &= required > 1;
    let mut target = target(vec![group("g", advance, members)]);
    target.policies.on_backfill = on_backfill;
    target
}

type Story1 = (Vec<(usize, Step)>, Vec<Vec<Step>>, bool);

fn a_story() -> impl Strategy<Value = Story1> {
    let before = proptest::collection::vec(proptest::collection::vec(a_commit(), 0..3), ASSETS);
    (proptest::collection::vec((0..ASSETS, a_step()), 1..60), before, any::<bool>())
}

fn play(target: Target, (steps, before, approval): Story1, is_exact: bool) -> Result<(), TestCaseError> {
    let mut world = World::new(target, approval, is_exact);
    for (asset, commits) in before.iter().enumerate() {
        world.begin(asset, commits);
    }
    world.compare(false)?;
    for (asset, step) in &steps {
        world.step(*asset, step);
        if !world.compare(matches!(step, Step::Claim))? {
            break;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4, ..ProptestConfig::default() })]

    /// All conditions together; a history ends where its version is no longer among the marks.
    #[test]
    fn conditions_together_agree_with_the_reference(
        conditions in proptest::collection::vec(a_condition(), ASSETS),
        how in 0_usize..3,
        on_backfill in on_backfill(),
        story in a_story(),
    ) {
        play(a_target(conditions, how, on_backfill), story, false)?;
    }

    /// Where each condition goes by marks that are kept for it, none is ever missing.
    #[test]
    fn kept_marks_suffice_for_conditions_of_one_kind(
        conditions in proptest::collection::vec(a_condition(), ASSETS),
        how in 0_usize..3,
        on_backfill in on_backfill(),
        story in a_story(),
    ) {
        let conditions = conditions.into_iter().map(|conditions| suffices(conditions, on_backfill)).collect();
        play(a_target(conditions, how, on_backfill), story, true)?;
    }
}
