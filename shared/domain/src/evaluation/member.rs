//! The verdict on one dependency.

mod registers;
mod versions;

use std::borrow::Cow;

use jiff::Timestamp;

use super::choice::{self, Candidate, Refused};
use super::timing::backfill_that_holds;
use super::{AssetView, Inputs, MemberEvaluation};
use crate::cursor::Taken;
use crate::ids::GroupName;
use crate::policy::{OnBackfill, Partition, Window};
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::state::{AssetState, Mark, QualityVerdict};
use crate::target::{Conditions, Member};
use crate::version::{Position, Version};

type Obstacle = (Verdict, Reason);

/// The window or the partition that a group would take next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) window: Option<Window>,
    pub(super) partition: Option<&'a Partition>,
}

pub(super) fn evaluate(inputs: &Inputs<'_>, group: &GroupName, member: &Member, step: Step<'_>) -> MemberEvaluation {
    let view = inputs.assets.get(&member.asset).copied().unwrap_or(AssetView::of(0, None));
    let taken = taken(inputs, group, member, view.state);
    let joined = inputs.cursor.joins_up_to(group, member.asset);
    let Judged { obstacle, newest, reach } = Judge { inputs, member, view, taken: &taken, joined, step }.judge();
    let (verdict, reason) = match obstacle {
        Some((verdict, reason)) => (verdict, Some(reason)),
        None => (Verdict::Ready, None),
    };
    MemberEvaluation {
        asset: member.key.clone(),
        alias: member.alias.clone(),
        verdict,
        reason,
        taken: match taken {
            Cow::Borrowed(taken) => taken.version.clone(),
            Cow::Owned(taken) => taken.version,
        },
        newest,
        written_by: view.live().and_then(|state| state.writer.clone()),
        without_catalog: view.live().is_some_and(|state| state.without_catalog),
        demands: view.live().map(|state| state.demands.clone()).unwrap_or_default(),
        refused: view.live().and_then(|state| state.refused.clone()),
        id: member.asset,
        reach,
    }
}

/// What counts as consumed: the cursor, or what the first read found where nothing was taken yet.
pub(super) fn taken<'a>(
    inputs: &Inputs<'a>,
    group: &GroupName,
    member: &Member,
    state: Option<&AssetState>,
) -> Cow<'a, Taken> {
    if let Some(taken) = inputs.cursor.at(group, member.asset) {
        return Cow::Borrowed(taken);
    }
    let baseline = state.and_then(|state| state.baseline.as_ref());
    Cow::Owned(baseline.map_or_else(Taken::default, |baseline| Taken {
        version: baseline.version.clone(),
        totals: baseline.totals,
        watermark: baseline.watermark,
        schema_id: state.filter(|_| baseline.version.is_some()).and_then(|state| state.schema.initial),
        ..Taken::default()
    }))
}

/// The same for a plan that is not asked for by conditions: the newest version that meets them, or
/// else the newest that changes data, or else what was taken.
pub(super) fn at_hand<'a>(inputs: &Inputs<'a>, group: &GroupName, member: &Member) -> Cow<'a, Taken> {
    let view = inputs.assets.get(&member.asset).copied().unwrap_or(AssetView::of(0, None));
    let taken = taken(inputs, group, member, view.state);
    let Some(state) = view.live().filter(|state| state.hold.is_none()) else { return taken };
    let joined = inputs.cursor.joins_up_to(group, member.asset);
    let chosen = choice::choose(inputs, view, state, &member.conditions, taken.position(), joined).ok();
    let data = || {
        let data = state.data.as_ref().map(|data| &data.mark);
        data.filter(|mark| Some(mark.version.position) > taken.position())
    };
    let chosen = chosen.or_else(|| data().map(|mark| Candidate { mark: Cow::Borrowed(mark), tag: None }));
    Cow::Owned(choice::reach(state, chosen.as_ref(), &taken))
}

/// Whether a member that may be absent has failed, which blocks its group. An older version that failed
/// does not, once a newer one has passed.
pub(super) fn has_failed(inputs: &Inputs<'_>, member: &Member) -> bool {
    let state = || inputs.assets.get(&member.asset).and_then(AssetView::live);
    member.conditions.must_not_fail()
        && state().is_some_and(|state| failed_version(state, &member.conditions).is_some())
}

/// The newest version with a verdict, where it failed and must not.
fn failed_version<'a>(state: &'a AssetState, conditions: &Conditions) -> Option<&'a Mark> {
    if !conditions.must_not_fail() {
        return None;
    }
    let required = conditions.quality.as_ref().map_or(&[][..], |quality| &quality.checks);
    let (mark, verdict) = state.quality.newest_verdict(required)?;
    (verdict == QualityVerdict::Failed).then_some(mark)
}

struct Judge<'a, 'b> {
    inputs: &'b Inputs<'a>,
    member: &'b Member,
    view: AssetView<'a>,
    taken: &'b Taken,
    joined: Option<Position>,
    step: Step<'b>,
}

/// What stands in the way, or else what a claim would take.
struct Judged {
    obstacle: Option<Obstacle>,
    newest: Option<Version>,
    reach: Option<Taken>,
}

impl<'a> Judge<'a, '_> {
    fn judge(&self) -> Judged {
        let Some(state) = self.view.live() else {
            return Judged { obstacle: Some(self.unknown_asset()), newest: None, reach: None };
        };
        let conditions = &self.member.conditions;
        let needs_version =
            conditions.snapshot_required && conditions.every.is_none() && conditions.partition.is_none();
        let beyond = if needs_version { self.taken.position() } else { None };
        let chosen = choice::choose(self.inputs, self.view, state, conditions, beyond, self.joined);
        let newest = match &chosen {
            Ok(candidate) => Some(candidate.mark.version.clone()),
            Err(_) => choice::choose(self.inputs, self.view, state, conditions, None, None)
                .ok()
                .map(|c| c.mark.version.clone()),
        };
        let obstacle = self.failed_optional(state).or_else(|| self.hold(state)).or_else(|| match &chosen {
            // Without a commit that is asked for, having none at all is no obstacle of its own.
            Err(Refused::NothingNew) if !needs_version => None,
            Err(refused) => Some(self.refusal(state, refused)),
            Ok(candidate) => self.too_few(candidate),
        });
        let obstacle = obstacle.or_else(|| self.registers(state, chosen.as_ref().ok()));
        let reach = obstacle.is_none().then(|| choice::reach(state, chosen.as_ref().ok(), self.taken));
        Judged { obstacle, newest, reach }
    }

    fn reason(
        &self,
        code: ReasonCode,
        expected: String,
        actual: String,
        since: Option<Timestamp>,
        unblock: &'static str,
    ) -> Reason {
        Reason { code, asset: Some(self.member.key.clone()), expected, actual, since, unblock: unblock.into() }
    }

    fn unknown_asset(&self) -> Obstacle {
        let unblock = "register the asset again, or take it out of the target";
        let (expected, actual) = ("a registered asset".to_owned(), "it was deregistered".to_owned());
        (Verdict::BlockedByUnknownAsset, self.reason(ReasonCode::AssetUnknown, expected, actual, None, unblock))
    }

    fn hold(&self, state: &AssetState) -> Option<Obstacle> {
        if let Some(hold) = &state.hold {
            let (code, unblock) = match hold.confirmed_at {
                Some(_) => (ReasonCode::RewriteHeld, "accept the rewrite of the asset"),
                None => (ReasonCode::RewriteSuspected, "nothing to do yet: a second read decides"),
            };
            let expected = "the recorded history".to_owned();
            let reason = self.reason(code, expected, hold.evidence.clone(), Some(hold.first_seen), unblock);
            return Some((Verdict::BlockedByRewrite, reason));
        }
        if self.inputs.target.policies.on_backfill != OnBackfill::Hold {
            return None;
        }
        let (id, backfill) = backfill_that_holds(state, self.inputs.now)?;
        let (expected, actual) = ("no running backfill".to_owned(), format!("backfill {id} runs"));
        let unblock = "the end of the backfill, or pushing BACKFILL_COMPLETED for it";
        let reason = self.reason(ReasonCode::BackfillRunning, expected, actual, Some(backfill.since), unblock);
        Some((Verdict::BlockedByBackfill, reason))
    }

    fn failed_optional(&self, state: &'a AssetState) -> Option<Obstacle> {
        failed_version(state, &self.member.conditions).map(|mark| self.quality_failed(state, mark))
    }
}
