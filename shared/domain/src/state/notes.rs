//! What the state keeps for people only: who wrote last, what was refused last, and whether notifications
//! come.
//!
//! Nothing is decided by it.

use jiff::{SignedDuration, Timestamp};
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

/// After so many scans in a row that found commits, without a notification in between, the bucket
/// counts as one that does not notify. One or two may have overtaken notifications on their way.
pub const UNNOTIFIED_SCANS: u32 = 3;
/// Scans closer to each other than this count as one.
const ONE_SCAN: SignedDuration = SignedDuration::from_secs(30);

/// Commits that only the clock's scans found, since the last notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unnotified {
    /// How many scans found some.
    pub scans: u32,
    /// How many commits and tags they found.
    pub commits: u64,
    /// When the first of these scans was.
    pub since: Timestamp,
    /// When the last of them was.
    pub last: Timestamp,
}

impl Unnotified {
    /// After one more scan that found so many.
    pub(super) fn after(before: Option<&Self>, commits: u64, now: Timestamp) -> Self {
        match before {
            None => Self { scans: 1, commits, since: now, last: now },
            Some(before) => {
                let is_another = now.duration_since(before.last) >= ONE_SCAN;
                Self {
                    scans: before.scans.saturating_add(u32::from(is_another)),
                    commits: before.commits.saturating_add(commits),
                    last: if is_another { now } else { before.last },
                    ..*before
                }
            }
        }
    }

    /// Whether the bucket's notifications are missing, and not merely late.
    pub const fn is_lasting(&self) -> bool {
        self.scans >= UNNOTIFIED_SCANS
    }
}

/// Most names in [`Demands::not_understood`], and the longest of them in characters: they stand in the
/// head.
const MAX_DEMANDS: usize = 8;
const MAX_DEMAND: usize = 64;

/// What a table asks of those who read it, beyond what its commits say by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Demands {
    /// A catalog decides which commits are visible. Nobody asks it: a commit counts once it lies in
    /// the table's log, which may be late.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub catalog_managed: bool,
    /// Versions and features of the format that this reader does not know, each as the table names it:
    /// its commits may mean something else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_understood: Vec<String>,
}

impl Demands {
    /// Demands with the first names of a list, and how many more there are.
    pub fn new(catalog_managed: bool, names: &[String]) -> Self {
        let short = |name: &String| name.chars().take(MAX_DEMAND).collect();
        let mut not_understood: Vec<String> = names.iter().take(MAX_DEMANDS).map(short).collect();
        if names.len() > MAX_DEMANDS {
            not_understood.push(format!("{} more", names.len() - MAX_DEMANDS));
        }
        Self { catalog_managed, not_understood }
    }

    /// Whether there is nothing to know.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The same in sentences, for people.
    pub fn told(&self) -> Vec<String> {
        let managed = self.catalog_managed.then(|| {
            "the table is catalog-managed: commits may become visible late, when the catalog publishes them".to_owned()
        });
        let names = self.not_understood.join(", ");
        let unknown = (!names.is_empty())
            .then(|| format!("the table demands what is not understood: {names}; commits may mean something else"));
        managed.into_iter().chain(unknown).collect()
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
