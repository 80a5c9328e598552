//! What the state keeps for people only: who wrote last, and what was refused last.
//!
//! Nothing is decided by it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AssetState, Evidence, PARKED};
use crate::commit::Commit;
use crate::event::{EventKind, Outcome, application_of};

/// Longest reason of a refusal that is kept, in characters: it stands in the head.
pub const MAX_REFUSAL: usize = 160;

/// Who wrote the newest commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    /// The commit user, engine or application, as the format calls it.
    pub name: String,
    /// When it committed, by its own clock; where the format does not say, when it was recorded.
    pub at: Timestamp,
}

impl Writer {
    /// Who wrote a commit, where its format says so.
    pub(super) fn of(commit: &Commit, now: Timestamp) -> Option<Self> {
        let committed = commit.committed_at.and_then(|at| Timestamp::from_millisecond(at.0).ok());
        Some(Self { name: application_of(commit)?, at: committed.unwrap_or(now) })
    }
}

/// Evidence from a writer that changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedEvidence {
    /// What it said.
    pub kind: EventKind,
    /// Why it changed nothing, at most [`MAX_REFUSAL`] characters.
    pub reason: String,
    /// When it was refused; of the same refusal several times, the first.
    pub at: Timestamp,
}

impl AssetState {
    /// Keeps that a writer's evidence was refused. The same refusal again moves nothing, so that
    /// it costs no write; whether it moved anything is returned.
    pub fn refuse(&mut self, kind: EventKind, reason: &str, now: Timestamp) -> bool {
        let reason: String = reason.chars().take(MAX_REFUSAL).collect();
        if self.refused.as_ref().is_some_and(|known| known.kind == kind && known.reason == reason) {
            return false;
        }
        self.refused = Some(RefusedEvidence { kind, reason, at: now });
        true
    }

    /// The same for evidence that was applied, from what became of it.
    pub(super) fn note_refusal(&mut self, evidence: &Evidence, outcome: &Outcome, now: Timestamp) {
        // A verdict that waits for its commit is not refused.
        if let (Outcome::Ignored(reason), Some(kind)) = (outcome, pushed_kind(evidence))
            && reason != PARKED
        {
            self.refuse(kind, reason, now);
        }
    }
}

/// Under which kind a writer pushes the evidence; `None` for what storage alone tells, tags among it.
fn pushed_kind(evidence: &Evidence) -> Option<EventKind> {
    use super::{BackfillStatus, SchemaStatus};
    match evidence {
        Evidence::Check(verdict, _) => Some(verdict.result.into()),
        Evidence::SchemaDecided(_, SchemaStatus::Rejected) => Some(EventKind::SchemaChangeRejected),
        Evidence::SchemaDecided(..) => Some(EventKind::SchemaChangeApproved),
        Evidence::Backfill(_, BackfillStatus::Running) => Some(EventKind::BackfillStarted),
        Evidence::Backfill(_, BackfillStatus::Completed) => Some(EventKind::BackfillCompleted),
        Evidence::WatermarkPushed(_) => Some(EventKind::WatermarkAdvanced),
        _ => None,
    }
}
