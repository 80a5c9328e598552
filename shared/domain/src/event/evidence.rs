//! What an event that is no commit says, typed, so that a history can be replayed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Event, EventKind, Outcome};
use crate::commit::Millis;
use crate::policy::Partition;
use crate::state::{BackfillStatus, CheckResult, Evidence, Mark, SchemaStatus, Severity, TagEntry, Verdict};
use crate::version::Position;

/// The facts of an event that is no commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "about")]
pub enum PushedEvidence {
    /// A finished check. The version that it counts for is the event's position.
    Check(CheckFacts),
    /// A decision about a schema.
    Schema {
        /// The schema.
        schema_id: i64,
        /// What was decided.
        status: SchemaStatus,
    },
    /// A backfill began or ended.
    Backfill {
        /// Its id.
        id: String,
        /// Whether it runs from now on.
        status: BackfillStatus,
    },
    /// CDC lag has recovered.
    CdcLag,
    /// A watermark.
    Watermark {
        /// Milliseconds since 1970.
        at: Millis,
    },
    /// A partition is done.
    Partition {
        /// The partition.
        partition: Partition,
        /// The snapshot that the writer named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot_id: Option<String>,
    },
    /// A tag appeared or is gone.
    Tag {
        /// Its name.
        name: String,
        /// The version that it names; absent for one that is gone or was only claimed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<TagEntry>,
    },
    /// A job reported its status; changes no register.
    Job {
        /// The status in the job's own words.
        status: String,
    },
}

/// What a writer said about a finished check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckFacts {
    /// The check or suite.
    pub check: String,
    /// What it found.
    pub result: CheckResult,
    /// How bad a failure is.
    pub severity: Severity,
    /// Orders two runs: milliseconds since 1970.
    pub run: i64,
    /// The run's own id, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The snapshot that the writer named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// When the check began, where the writer said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

impl CheckFacts {
    /// The verdict on the version with this position.
    pub fn verdict(&self, position: Position) -> Verdict {
        Verdict {
            ordinal: position.ordinal,
            fingerprint: None,
            check: self.check.clone(),
            result: self.result,
            severity: self.severity,
            run: self.run,
        }
    }
}

impl From<&Verdict> for CheckFacts {
    fn from(verdict: &Verdict) -> Self {
        Self {
            check: verdict.check.clone(),
            result: verdict.result,
            severity: verdict.severity,
            run: verdict.run,
            run_id: None,
            snapshot_id: None,
            started_at: None,
        }
    }
}

impl From<CheckResult> for EventKind {
    fn from(result: CheckResult) -> Self {
        match result {
            CheckResult::Passed => Self::QualityCheckPassed,
            CheckResult::Failed => Self::QualityCheckFailed,
            CheckResult::Errored => Self::QualityCheckErrored,
        }
    }
}

impl Event {
    /// What the event moved in the state, for a replay: `None` for commits, for what changes no
    /// register and for what was refused. `mark` looks up the version that a verdict counts for;
    /// one that was parked finds none at its time.
    pub fn replayed(&self, mark: impl FnOnce(Position) -> Option<Mark>) -> Option<Evidence> {
        if let Some(PushedEvidence::Check(facts)) = &self.evidence {
            // Without a position it was bound to no version; with one, whatever became of it then
            // becomes of it again.
            let position = self.position?;
            return Some(Evidence::Check(facts.verdict(position), mark(position)));
        }
        if matches!(self.outcome, Outcome::Ignored(_)) {
            return None;
        }
        match self.evidence.as_ref()? {
            PushedEvidence::Schema { schema_id, status } => Some(Evidence::SchemaDecided(*schema_id, *status)),
            PushedEvidence::Backfill { id, status } => Some(Evidence::Backfill(id.clone(), *status)),
            PushedEvidence::CdcLag => Some(Evidence::CdcLagRecovered),
            PushedEvidence::Watermark { at } => Some(Evidence::WatermarkPushed(*at)),
            PushedEvidence::Partition { partition, .. } => {
                Some(Evidence::PartitionDone(partition.clone(), self.position.map(|position| position.ordinal)))
            }
            PushedEvidence::Tag { name, version: Some(entry) } => {
                Some(Evidence::TagCreated(name.clone(), entry.clone()))
            }
            PushedEvidence::Tag { name, version: None } if self.kind == EventKind::TagDeleted => {
                Some(Evidence::TagDeleted(name.clone()))
            }
            PushedEvidence::Check(_) | PushedEvidence::Tag { .. } | PushedEvidence::Job { .. } => None,
        }
    }
}

/// The token of an event about a check of one version: two reports of one run are one event. The
/// epoch stands beside it in the identity, the result in the kind.
pub fn verdict_token(verdict: &Verdict) -> String {
    let severity = if verdict.severity == Severity::Warn { "warn" } else { "error" };
    format!("{:020}.{:020}.{severity}.{}", verdict.ordinal.0, verdict.run, verdict.check)
}
