//! The one evaluator: whether a target is ready, why, and what a claim would take.
//!
//! The explanation is the evaluator's own output. READY stands in it exactly when there is a
//! [`ClaimPlan`].

mod member;
mod plan;

pub use plan::ClaimPlan;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::cursor::TargetCursor;
use crate::ids::{Alias, AssetId, GroupName, TargetId, TriggerKey};
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::state::AssetState;
use crate::target::{Advance, Group, Target};
use crate::trigger::{Status, Trigger};
use crate::version::Version;

/// An asset as it was read.
#[derive(Debug, Clone, Copy)]
pub struct AssetView<'a> {
    /// The revision that was read.
    pub rev: u64,
    /// Its registers; `None` once it is deregistered.
    pub state: Option<&'a AssetState>,
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
    /// The trigger that has not ended, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<TriggerKey>,
    /// What a claim would take; there exactly when the verdict is READY.
    #[serde(skip)]
    pub plan: Option<ClaimPlan>,
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
    /// The asset's id. It is not shown, and zero in an evaluation that was read back.
    #[serde(skip_serializing, default = "not_shown")]
    pub id: AssetId,
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
    let groups: Vec<GroupEvaluation> = inputs.target.groups.iter().map(|group| evaluate_group(inputs, group)).collect();
    let (verdict, reason) = verdict_of_target(inputs, &groups);
    let plan = (verdict == Verdict::Ready).then(|| plan::plan(inputs, &groups));
    Evaluation {
        target: inputs.target.id.clone(),
        verdict,
        reason,
        rule: inputs.target.rule(),
        groups,
        open: inputs.cursor.open.clone(),
        plan,
    }
}

fn verdict_of_target(inputs: &Inputs<'_>, groups: &[GroupEvaluation]) -> (Verdict, Option<Reason>) {
    if let Some((verdict, reason)) = barrier(inputs) {
        return (verdict, Some(reason));
    }
    if groups.iter().any(|group| group.verdict == Verdict::Ready) {
        return (Verdict::Ready, None);
    }
    // The alternative that is nearest to ready leads: one that merely waits, else the first.
    let leading = groups.iter().find(|group| group.verdict == Verdict::Waiting).or_else(|| groups.first());
    leading.map_or((Verdict::Disabled, None), |group| (group.verdict, group.reason.clone()))
}

/// What stands in the way of every claim, whatever the groups say.
fn barrier(inputs: &Inputs<'_>) -> Option<(Verdict, Reason)> {
    let plain = |code, expected: &str, actual: String, since, unblock: String| Reason {
        code,
        asset: None,
        expected: expected.to_owned(),
        actual,
        since,
        unblock,
    };
    if !inputs.target.enabled {
        let reason = plain(
            ReasonCode::TargetDisabled,
            "enabledFlag 1",
            "enabledFlag 0".to_owned(),
            None,
            "declare the target with `enabledFlag: 1`; its cursors are kept".to_owned(),
        );
        return Some((Verdict::Disabled, reason));
    }
    if let Some(paused) = &inputs.cursor.paused {
        let reason = plain(
            ReasonCode::TargetPaused,
            "not paused",
            format!("paused by {}", paused.by),
            Some(paused.since),
            "resume the target; what has advanced meanwhile becomes one trigger".to_owned(),
        );
        return Some((Verdict::Paused, reason));
    }
    let open = inputs.open.filter(|open| !open.has_ended())?;
    match open.status() {
        // Not sent for a while yet: the next claim replaces it and takes its data along.
        Status::Waiting { .. } => None,
        Status::Unknown { held: true, detail, since, .. } => Some((
            Verdict::Waiting,
            plain(
                ReasonCode::TriggerHeld,
                "no open trigger",
                format!("trigger {} is held: {detail}", open.key),
                Some(*since),
                format!("decide trigger {}: did its workflow start?", open.key),
            ),
        )),
        status => Some((
            Verdict::Waiting,
            plain(
                ReasonCode::TriggerInFlight,
                "no open trigger",
                format!("trigger {} is {}", open.key, status.step()),
                Some(open.claimed_at),
                "nothing to do: what advances meanwhile becomes the next trigger".to_owned(),
            ),
        )),
    }
}

fn evaluate_group(inputs: &Inputs<'_>, group: &Group) -> GroupEvaluation {
    let members: Vec<MemberEvaluation> =
        group.members.iter().map(|member| member::evaluate(inputs, &group.name, member)).collect();
    let (verdict, reason) = verdict_of_group(group, &members);
    GroupEvaluation { group: group.name.clone(), verdict, reason, rule: group.rule(), members }
}

fn verdict_of_group(group: &Group, members: &[MemberEvaluation]) -> (Verdict, Option<Reason>) {
    // What blocks outright leads over what merely has not come yet.
    let blocking = members
        .iter()
        .find(|member| matches!(member.verdict, Verdict::BlockedByRewrite | Verdict::BlockedByUnknownAsset));
    if let Some(member) = blocking {
        return (member.verdict, member.reason.clone());
    }
    let advanced = members.iter().filter(|member| member.has_advanced()).count();
    let needed = match group.advance {
        Advance::All => members.len(),
        Advance::Any => 1,
        Advance::AtLeast(k) => k,
    };
    if advanced >= needed {
        return (Verdict::Ready, None);
    }
    let lacking = || members.iter().filter(|member| !member.has_advanced());
    let leading = lacking().find(|member| member.verdict != Verdict::Waiting).or_else(|| lacking().next());
    match (group.advance, leading) {
        (Advance::AtLeast(k), Some(_)) => {
            let missing: Vec<&str> = lacking().map(|member| member.alias.as_str()).collect();
            let reason = Reason {
                code: ReasonCode::TooFewAdvanced,
                asset: None,
                expected: format!("at least {k} members advanced"),
                actual: format!("{advanced} advanced"),
                since: None,
                unblock: format!("{} more of {}", k.saturating_sub(advanced), missing.join(", ")),
            };
            (Verdict::Waiting, Some(reason))
        }
        (_, Some(member)) => (member.verdict, member.reason.clone()),
        (_, None) => (Verdict::Disabled, None), // a group without members cannot be declared
    }
}
