//! The kept record of what a hint or a read found, with its outcome for the state.

mod evidence;

pub use evidence::{CheckFacts, PushedEvidence, verdict_token};

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commit::{Commit, CommitKind, Millis};
use crate::evaluation::PastCommit;
use crate::ids::{AssetId, TraceId};
use crate::state::{Mark, Totals};
use crate::version::{Fingerprint, Position, Version};

/// Longest name of an application that is kept, in characters.
const MAX_APPLICATION: usize = 64;

/// What an event says about an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)] // each name is its own sentence; the documentation has a table of them
pub enum EventKind {
    SnapshotCommitted,
    WatermarkAdvanced,
    TagCreated,
    TagDeleted,
    QualityCheckPassed,
    QualityCheckFailed,
    QualityCheckErrored,
    SchemaChanged,
    SchemaChangeApproved,
    SchemaChangeRejected,
    BackfillStarted,
    BackfillCompleted,
    CdcLagRecovered,
    HistoryRewritten,
    PartitionDone,
    TableCreated,
    TableAltered,
    TableRenamed,
    TableDropped,
    JobStatusChanged,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 20] = [
        Self::SnapshotCommitted,
        Self::WatermarkAdvanced,
        Self::TagCreated,
        Self::TagDeleted,
        Self::QualityCheckPassed,
        Self::QualityCheckFailed,
        Self::QualityCheckErrored,
        Self::SchemaChanged,
        Self::SchemaChangeApproved,
        Self::SchemaChangeRejected,
        Self::BackfillStarted,
        Self::BackfillCompleted,
        Self::CdcLagRecovered,
        Self::HistoryRewritten,
        Self::PartitionDone,
        Self::TableCreated,
        Self::TableAltered,
        Self::TableRenamed,
        Self::TableDropped,
        Self::JobStatusChanged,
    ];

    /// The name on the wire, as in `SNAPSHOT_COMMITTED`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SnapshotCommitted => "SNAPSHOT_COMMITTED",
            Self::WatermarkAdvanced => "WATERMARK_ADVANCED",
            Self::TagCreated => "TAG_CREATED",
            Self::TagDeleted => "TAG_DELETED",
            Self::QualityCheckPassed => "QUALITY_CHECK_PASSED",
            Self::QualityCheckFailed => "QUALITY_CHECK_FAILED",
            Self::QualityCheckErrored => "QUALITY_CHECK_ERRORED",
            Self::SchemaChanged => "SCHEMA_CHANGED",
            Self::SchemaChangeApproved => "SCHEMA_CHANGE_APPROVED",
            Self::SchemaChangeRejected => "SCHEMA_CHANGE_REJECTED",
            Self::BackfillStarted => "BACKFILL_STARTED",
            Self::BackfillCompleted => "BACKFILL_COMPLETED",
            Self::CdcLagRecovered => "CDC_LAG_RECOVERED",
            Self::HistoryRewritten => "HISTORY_REWRITTEN",
            Self::PartitionDone => "PARTITION_DONE",
            Self::TableCreated => "TABLE_CREATED",
            Self::TableAltered => "TABLE_ALTERED",
            Self::TableRenamed => "TABLE_RENAMED",
            Self::TableDropped => "TABLE_DROPPED",
            Self::JobStatusChanged => "JOB_STATUS_CHANGED",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an event reached Lakebell. An attribute only: two paths never store one commit twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Source {
    /// A scan found it.
    Poll,
    /// A writer pushed it.
    Push,
    /// A storage notification pointed at it.
    Notify,
}

/// What an event meant for the state. Every event has exactly one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "outcome", content = "reason")]
pub enum Outcome {
    /// A register that readiness looks at moved.
    Advanced,
    /// The table version moved and the data version did not (compaction, analyze).
    Maintenance,
    /// The state had it already. Counted, not stored.
    Duplicate,
    /// The state was past it already.
    Superseded,
    /// It changed nothing, for this reason.
    Ignored(String),
}

impl Outcome {
    /// The one word for logs and metric labels.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Advanced => "advanced",
            Self::Maintenance => "maintenance",
            Self::Duplicate => "duplicate",
            Self::Superseded => "superseded",
            Self::Ignored(_) => "ignored",
        }
    }
}

/// One kept event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// The asset that it is about.
    pub asset: AssetId,
    /// What it says.
    pub kind: EventKind,
    /// With asset and kind its identity; see [`commit_token`].
    pub token: String,
    /// How it came.
    pub source: Source,
    /// What it meant for the state.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When Lakebell recorded it.
    pub recorded_at: Timestamp,
    /// The trace of the hint that led to it.
    pub trace: TraceId,
    /// Where in the asset's history, where it is about one version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// The facts of the commit, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitFacts>,
    /// The facts of what is no commit: with them its register can be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<PushedEvidence>,
    /// What the writer attached to a pushed event, as it stands.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
    /// What else a person should know, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The facts of a commit that its event keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitFacts {
    /// The id that the format gives it.
    pub snapshot_id: String,
    /// The format's name for what it did.
    pub commit_kind: String,
    /// Whether it changed data; `null` where the kind is unknown.
    pub changes_data: Option<bool>,
    /// The schema it was written with.
    pub schema_id: Option<i64>,
    /// Its watermark in milliseconds since 1970.
    pub watermark: Option<Millis>,
    /// The writer's clock in milliseconds since 1970.
    pub commit_time: Option<Millis>,
    /// Rows added less rows removed.
    pub delta_record_count: Option<i64>,
    /// What wrote it, where the format says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// What had been counted up to and with it.
    #[serde(default)]
    pub totals: Totals,
}

impl From<&Commit> for CommitFacts {
    fn from(commit: &Commit) -> Self {
        Self {
            snapshot_id: commit.snapshot_id.clone(),
            commit_kind: commit.kind.0.clone(),
            changes_data: commit.changes_data,
            schema_id: commit.schema_id,
            watermark: commit.watermark,
            commit_time: commit.committed_at,
            delta_record_count: commit.delta_records,
            application: application_of(commit),
            totals: Totals::default(),
        }
    }
}

/// Under which name a writer commits: Paimon's commit user, and what the other formats call engine
/// or application.
pub(crate) fn application_of(commit: &Commit) -> Option<String> {
    let named = ["commit_user", "engine", "application"].into_iter().find_map(|name| commit.extra.get(name)?.as_str());
    named.map(|name| name.chars().take(MAX_APPLICATION).collect())
}

impl Event {
    /// The version that an event of a commit is about, with its facts; `None` for other events and
    /// for commits that the state did not take.
    pub fn mark(&self) -> Option<Mark> {
        let commit =
            self.commit.as_ref().filter(|_| matches!(self.outcome, Outcome::Advanced | Outcome::Maintenance))?;
        let (_, fingerprint) = self.token.split_once('.')?;
        Some(Mark {
            version: Version {
                position: self.position?,
                fingerprint: Fingerprint::from(fingerprint),
                snapshot_id: commit.snapshot_id.as_str().into(),
            },
            kind: CommitKind(commit.commit_kind.clone()),
            is_data: commit.changes_data.unwrap_or(true),
            is_empty: commit.delta_record_count == Some(0),
            schema_id: commit.schema_id,
            totals: commit.totals,
            since: self.recorded_at,
        })
    }

    /// The same for an evaluation that looks at commits one by one.
    pub fn past_commit(&self) -> Option<PastCommit> {
        Some(PastCommit { mark: self.mark()?, application: self.commit.as_ref()?.application.clone() })
    }
}

/// The version token of an event about one commit: ordinal and fingerprint. The epoch stands
/// beside it in the identity.
pub fn commit_token(commit: &Commit) -> String {
    format!("{:020}.{}", commit.ordinal.0, commit.fingerprint)
}
