//! One commit as read from a table's own files, in terms that all formats share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::version::{Fingerprint, Ordinal};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

/// The format's own name for what a commit did, kept as it is: `APPEND`, `COMPACT`, `OVERWRITE`, ...
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CommitKind(pub String);

impl std::fmt::Display for CommitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One commit of a table, or of a branch of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its place within the current epoch.
    pub ordinal: Ordinal,
    /// Tells it apart from another commit with the same ordinal.
    pub fingerprint: Fingerprint,
    /// The id that the format gives it.
    pub snapshot_id: String,
    /// The id of the commit before it, where the format says.
    pub parent_id: Option<String>,
    /// The format's own name for what it did.
    pub kind: CommitKind,
    /// Whether it changed data; `None` where the kind is unknown. The state counts `None` as data
    /// and reports it, because a missed run costs more than a needless one.
    pub changes_data: Option<bool>,
    /// The event-time watermark that it carries; absent where the format says none.
    pub watermark: Option<Millis>,
    /// The writer's clock when it committed. Not monotone.
    pub committed_at: Option<Millis>,
    /// The schema that it was written with.
    pub schema_id: Option<i64>,
    /// Rows in the table after it, as the format counts them (before merging on primary-key tables).
    pub total_records: Option<i64>,
    /// Rows that it added, less those that it removed; may be negative.
    pub delta_records: Option<i64>,
    /// Tags that name this commit at the time of reading.
    pub tags: Vec<String>,
    /// What else the format says that only a person would read.
    pub extra: BTreeMap<String, serde_json::Value>,
}
