//! The one evaluator: whether a target is ready, why, and what a claim would take.
//!
//! The explanation is the evaluator's own output. READY stands in it exactly when
//! [`evaluate_to_claim`] has a [`ClaimPlan`] for it.

mod barrier;
mod choice;
mod group;
mod member;
mod partition;
mod plan;
mod take;
mod timing;

pub use partition::complete as complete_partitions;
pub use plan::{ClaimPlan, consume, manual, manual_key, resumed};
pub use take::Take;
pub use timing::BACKFILL_HOLDS_FOR;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::cursor::{Taken, TargetCursor};
use crate::ids::{Alias, AssetId, GroupName, TargetId, TaskCode, TriggerKey};
use crate::policy::{Partition, Window};
use crate::reason::{Reason, Verdict};
use crate::state::{AssetState, Demands, Mark, RefusedEvidence, Writer};
use crate::target::{Conditions, Target, joined};
use crate::trigger::{StartReason, Trigger};
use crate::version::Version;

/// An asset as it was read.
#[derive(Debug, Clone, Copy)]
pub struct AssetView<'a> {
    /// The revision that was read.
    pub rev: u64,
    /// Its registers; `None` for one that never was. Those of a deregistered asset say where its
    /// cursors began, and nothing else counts of them.
    pub state: Option<&'a AssetState>,
    /// Whether it is registered.
    pub is_registered: bool,
    /// Its commits beyond the lowest cursor of the target, oldest first, where the target needs them
    /// one by one; empty otherwise.
    pub history: &'a [PastCommit],
}

impl<'a> AssetView<'a> {
    /// An asset whose commits are not needed one by one.
    pub const fn of(rev: u64, state: Option<&'a AssetState>) -> Self {
        Self { rev, state, is_registered: state.is_some(), history: &[] }
    }

    /// The registers of an asset that is registered.
    pub fn live(&self) -> Option<&'a AssetState> {
        self.state.filter(|_| self.is_registered)
    }
}

/// One commit of an asset's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCommit {
    /// Its facts.
    pub mark: Mark,
    /// What wrote it, where the format says so.
    pub application: Option<String>,
}

impl PastCommit {
    /// Whether it counts for a dependency, by its kind and by what wrote it: always the same answer.
    pub fn counts_for(&self, conditions: &Conditions) -> bool {
        choice::is_admitted(self, conditions)
    }
}

/// Who switched starting off, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SwitchedOff {
    /// `global`, or a project code.
    pub scope: String,
    /// Since when.
    pub since: Timestamp,
    /// By whom.
    pub by: String,
}

/// Everything that a verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The definition.
    pub target: &'a Target,
    /// The cursors.
    pub cursor: &'a TargetCursor,
    /// Each asset of each group.
    pub assets: &'a BTreeMap<AssetId, AssetView<'a>>,
    /// The trigger that the cursor calls open.
    pub open: Option<&'a Trigger>,
    /// The trigger that the cursor calls failed.
    pub failed: Option<&'a Trigger>,
    /// The switch that is off, global or of the project.
    pub switched_off: Option<&'a SwitchedOff>,
    /// The moment of the evaluation.
    pub now: Timestamp,
}

/// The verdict on a target with its explanation, and what a claim would take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The target.
    pub target: TargetId,
    /// Its verdict.
    pub verdict: Verdict,
    /// The leading reason, unless it is READY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The rule in plain words.
    pub rule: String,
    /// Its groups.
    pub groups: Vec<GroupEvaluation>,
    /// The task that takes it when it asks, where one waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<TaskCode>,
    /// The trigger that has not ended, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<TriggerKey>,
    /// What that trigger took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_takes: Vec<Take>,
    /// The deadline that has passed without a start; the flag `TIMED_OUT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<Timestamp>,
    /// When time alone can change the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// What a claim takes, where [`evaluate_to_claim`] has made one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<Take>,
    /// How it is ready; there exactly when the verdict is READY, and not in one that was read back.
    #[serde(skip)]
    ready: Option<Ready>,
    /// The cursor as it should be kept where nothing is claimed: timers and what was told. `None`
    /// where it is so already.
    #[serde(skip)]
    pub noted: Option<TargetCursor>,
}

/// The verdict on a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupEvaluation {
    /// Its name.
    pub group: GroupName,
    /// Its verdict.
    pub verdict: Verdict,
    /// The leading reason, unless it is READY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The rule in plain words.
    pub rule: String,
    /// The next window, where it has windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The next partition, where it goes by partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// Its members.
    pub members: Vec<MemberEvaluation>,
}

/// The verdict on a dependency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberEvaluation {
    /// The asset.
    pub asset: AssetKey,
    /// What the started workflow calls it.
    pub alias: Alias,
    /// Its verdict.
    pub verdict: Verdict,
    /// The reason, unless it is READY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What was consumed already; absent before the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Version>,
    /// The newest version that meets the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Version>,
    /// Who wrote the asset's newest commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<Writer>,
    /// No catalog is asked for the asset, although its format has them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_catalog: bool,
    /// What the table asks of its readers, as far as that is not met.
    #[serde(default, skip_serializing_if = "Demands::is_none")]
    pub demands: Demands,
    /// The evidence about the asset that was refused last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedEvidence>,
    /// The asset's id. It is not shown, and zero in an evaluation that was read back.
    #[serde(skip_serializing, default = "not_shown")]
    pub id: AssetId,
    /// What a claim would take of it; there exactly when it has advanced.
    #[serde(skip)]
    pub(crate) reach: Option<Taken>,
}

/// How a target is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// Its conditions hold.
    Met,
    /// A deadline or a time of `orAt` came: it starts with what is there.
    Due(StartReason, Timestamp),
}

const fn not_shown() -> AssetId {
    AssetId::from_bits(0)
}

impl MemberEvaluation {
    fn has_advanced(&self) -> bool {
        self.verdict == Verdict::Ready
    }
}

/// Evaluates a target. Pure: the same inputs give the same evaluation.
pub fn evaluate(inputs: &Inputs<'_>) -> Evaluation {
    let groups: Vec<GroupEvaluation> =
        inputs.target.groups.iter().map(|group| group::evaluate(inputs, group)).collect();
    let timing = timing::timing(inputs, &groups);
    let Decided { verdict, reason, ready } = decide(inputs, &groups, &timing);
    let mut evaluation = Evaluation {
        target: inputs.target.id.clone(),
        verdict,
        reason,
        rule: joined(groups.iter().map(|group| &group.rule)),
        groups,
        sensor: inputs.target.sensor(),
        open: inputs.cursor.open.clone(),
        open_takes: inputs.open.map(Take::by).unwrap_or_default(),
        timed_out: timing.timed_out,
        due_at: timing.due_at,
        takes: Vec::new(),
        ready,
        noted: None,
    };
    evaluation.noted = timing::noted(inputs, &evaluation);
    evaluation
}

/// Evaluates a target and, where it is READY, makes the claim that would succeed now; the evaluation
/// then says what it takes. Apart from [`evaluate`], because most evaluations end without a claim.
pub fn evaluate_to_claim(inputs: &Inputs<'_>) -> (Evaluation, Option<ClaimPlan>) {
    let mut evaluation = evaluate(inputs);
    let plan = evaluation.ready.map(|ready| match ready {
        Ready::Met => plan::ready(inputs, &evaluation.groups),
        Ready::Due(reason, tick) => plan::forced(inputs, &evaluation.groups, reason, Some(tick), None),
    });
    let plan = plan.map(|plan| plan.late_for(evaluation.timed_out));
    evaluation.takes = plan.as_ref().map(|plan| Take::of(&plan.claim)).unwrap_or_default();
    (evaluation, plan)
}

/// How the target is ready, or what is in the way.
struct Decided {
    verdict: Verdict,
    reason: Option<Reason>,
    ready: Option<Ready>,
}

impl Decided {
    const fn ready(ready: Ready) -> Self {
        Self { verdict: Verdict::Ready, reason: None, ready: Some(ready) }
    }

    const fn not(verdict: Verdict, reason: Option<Reason>) -> Self {
        Self { verdict, reason, ready: None }
    }
}

fn decide(inputs: &Inputs<'_>, groups: &[GroupEvaluation], timing: &timing::Timing) -> Decided {
    if let Some((verdict, reason)) = barrier::barrier(inputs) {
        return Decided::not(verdict, Some(reason));
    }
    let is_ready = groups.iter().any(|group| group.verdict == Verdict::Ready);
    if is_ready && timing.gate.is_none() {
        return Decided::ready(Ready::Met);
    }
    if let Some((reason, tick)) = timing.forced {
        return Decided::ready(Ready::Due(reason, tick));
    }
    if let (true, Some(gate)) = (is_ready, &timing.gate) {
        return Decided::not(Verdict::BlockedByGate, Some(gate.reason.clone()));
    }
    // The alternative that is nearest to ready leads: one that merely waits, else the first.
    let leading = groups.iter().find(|group| group.verdict == Verdict::Waiting).or_else(|| groups.first());
    let (verdict, reason) = leading.map_or((Verdict::Disabled, None), |group| (group.verdict, group.reason.clone()));
    Decided::not(verdict, reason)
}
