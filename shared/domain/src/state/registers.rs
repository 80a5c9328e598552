//! The registers of an asset's state, other than the one of quality.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::kept;
use crate::commit::Millis;
use crate::event::Outcome;
use crate::version::{Fingerprint, Ordinal, Position, Version};

/// Most schema ids whose decision is kept; the lowest goes first.
const MAX_SCHEMA_DECISIONS: usize = 32;

/// The newest version of one kind of commit, how many there have been, and their summed delta.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Register {
    /// The newest.
    pub version: Version,
    /// How many were counted in this epoch.
    pub count: u64,
    /// Their delta records, summed.
    pub delta_records: i64,
    /// When the newest was recorded.
    pub since: Timestamp,
}

impl Register {
    pub(super) fn after(before: Option<&Self>, version: Version, delta: i64, now: Timestamp) -> Self {
        let (count, sum) = before.map_or((0, 0), |register| (register.count, register.delta_records));
        Self { version, count: count + 1, delta_records: sum.saturating_add(delta), since: now }
    }
}

/// What the first successful read of a table found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// The newest commit then; absent for a table that had none.
    pub version: Option<Version>,
}

/// A watermark and the version that brought it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatermarkRegister {
    /// Milliseconds since 1970.
    pub at: Millis,
    /// The commit that carried it; absent for a pushed one.
    pub version: Option<Version>,
    /// When it was recorded.
    pub since: Timestamp,
}

/// The schema of the newest commit, what reading needs of it, and decisions by schema id.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SchemaRegister {
    /// The schema id of the newest commit.
    pub current: Option<i64>,
    /// What the reader of the format keeps about the current schema so that it need not be read
    /// for each commit (Paimon: the changelog producer).
    pub detail: Option<SchemaDetail>,
    /// Whether a new schema id waits for a decision.
    pub approval_required: bool,
    /// Decisions, by schema id.
    pub decisions: BTreeMap<i64, SchemaStatus>,
}

/// A fact about one schema that the format's reader keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SchemaDetail {
    /// The schema that it is about.
    pub schema_id: i64,
    /// The fact, in the reader's own words; absent where the schema file could not be read.
    pub text: Option<String>,
}

impl SchemaRegister {
    pub(super) fn see(&mut self, schema_id: Option<i64>) {
        if schema_id.is_some() {
            self.current = schema_id;
        }
    }

    pub(super) fn decide(&mut self, schema_id: i64, status: SchemaStatus) -> Outcome {
        if self.decisions.get(&schema_id) == Some(&status) {
            return Outcome::Duplicate;
        }
        self.decisions.insert(schema_id, status);
        while self.decisions.len() > MAX_SCHEMA_DECISIONS {
            self.decisions.pop_first();
        }
        kept(self.decisions.contains_key(&schema_id), MAX_SCHEMA_DECISIONS, "decisions about newer schemas")
    }

    /// The status of the current schema.
    pub fn status(&self) -> SchemaStatus {
        let Some(current) = self.current else { return SchemaStatus::Unknown };
        match self.decisions.get(&current) {
            Some(status) => *status,
            None if self.approval_required => SchemaStatus::PendingApproval,
            None => SchemaStatus::Unknown,
        }
    }
}

/// What is known of a schema's fitness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SchemaStatus {
    /// Nothing was said.
    Unknown,
    /// Approved.
    Compatible,
    /// New, and the asset asks for approval.
    PendingApproval,
    /// Rejected.
    Rejected,
}

/// The version that a tag names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TagEntry {
    /// Where the tagged commit stands.
    pub position: Position,
    /// Which commit it is.
    pub fingerprint: Fingerprint,
    /// Its snapshot id.
    pub snapshot_id: String,
}

/// One backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    /// Whether it still runs.
    pub status: BackfillStatus,
    /// Since when.
    pub since: Timestamp,
}

/// Whether a backfill runs or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BackfillStatus {
    /// It runs.
    Running,
    /// It has ended; a late start of the same id is ignored.
    Completed,
}

/// Storage contradicts the recorded history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RewriteHold {
    /// What was seen, in a sentence.
    pub evidence: String,
    /// The recorded version that storage contradicts.
    pub withdrawn: Option<Version>,
    /// The newest commit that storage showed.
    pub storage_newest: Option<(Ordinal, Fingerprint)>,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When a second read, a settle time later, agreed; absent until then.
    pub confirmed_at: Option<Timestamp>,
}

impl RewriteHold {
    /// Two sightings agree when they contradict the same recorded version.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.withdrawn == other.withdrawn
    }
}

/// A commit that is missing although a later one is there. Not an expiry: expiry takes the oldest
/// first, so everything below would be gone as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hole {
    /// The first missing ordinal.
    pub ordinal: Ordinal,
    /// When it was first seen.
    pub first_seen: Timestamp,
}

/// Commits that went unread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The first of them.
    pub first: Ordinal,
    /// The last of them.
    pub last: Ordinal,
    /// When it was recorded.
    pub at: Timestamp,
    /// Why they could not be read.
    pub cause: String,
}

/// Why a read failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// The kind of trouble.
    pub code: TroubleCode,
    /// What was said, in a sentence without secrets.
    pub detail: String,
    /// Since when.
    pub since: Timestamp,
}

/// The kinds of trouble with reading a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TroubleCode {
    /// The location could not be read: access, bucket, network.
    Unreadable,
    /// A commit file is there and cannot be understood.
    Damaged,
}
