//! The registers of an asset's state, other than the one of quality.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::kept;
use crate::commit::{Commit, CommitKind, Millis};
use crate::event::Outcome;
use crate::version::{Epoch, Fingerprint, Ordinal, Position, Version};

/// Most schema ids whose decision is kept; the lowest goes first.
const MAX_SCHEMA_DECISIONS: usize = 32;
/// Most earlier schemas whose newest version is kept; the one of the oldest version goes first.
const MAX_EARLIER_SCHEMAS: usize = 4;

/// What has been counted in an epoch up to and with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Commits that count as data.
    #[serde(skip_serializing_if = "is_zero")]
    pub data: u64,
    /// Those of them that say themselves that they changed no row.
    #[serde(skip_serializing_if = "is_zero")]
    pub empty: u64,
    /// The rows that they added, less those that they removed.
    #[serde(skip_serializing_if = "is_zero_rows")]
    pub rows: i64,
}

impl Totals {
    /// What has been counted with one more commit. An unknown kind counts as data.
    #[must_use]
    pub fn with(self, commit: &Commit) -> Self {
        if !commit.changes_data.unwrap_or(true) {
            return self;
        }
        Self {
            data: self.data + 1,
            empty: self.empty + u64::from(commit.delta_records == Some(0)),
            rows: self.rows.saturating_add(commit.delta_records.unwrap_or(0)),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_zero_rows(rows: &i64) -> bool {
    *rows == 0
}

/// A version with everything that the conditions on it are judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The version.
    pub version: Version,
    /// The format's name for what it did.
    pub kind: CommitKind,
    /// Whether it counts as data.
    pub is_data: bool,
    /// Whether it says itself that it changed no row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_empty: bool,
    /// The schema that it was written with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<i64>,
    /// What has been counted up to and with it.
    #[serde(default)]
    pub totals: Totals,
    /// When it was recorded.
    pub since: Timestamp,
}

/// The newest version of one kind of commit, and how many there have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Register {
    /// The newest.
    #[serde(flatten)]
    pub mark: Mark,
    /// How many were counted in this epoch.
    pub count: u64,
    /// Their delta records, summed.
    pub delta_records: i64,
}

impl Register {
    pub(super) fn after(before: Option<&Self>, mark: Mark, delta: i64) -> Self {
        let (count, sum) = before.map_or((0, 0), |register| (register.count, register.delta_records));
        Self { mark, count: count + 1, delta_records: sum.saturating_add(delta) }
    }
}

/// What the first successful read of a table found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    /// The newest commit then; absent for a table that had none.
    pub version: Option<Version>,
    /// What had been counted by then.
    #[serde(default)]
    pub totals: Totals,
    /// The watermark then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Millis>,
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
    /// The first one of this epoch: windows of a group that has taken none are counted from here.
    pub first: Millis,
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
    /// The schema that it began with: of the first read, because it was there before anybody was asked, or,
    /// unless approval is required, of the first commit to a table that was empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial: Option<i64>,
    /// The newest version that counts as data under each earlier schema, so that a new schema does
    /// not hide what came before it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub newest: BTreeMap<i64, Mark>,
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
        if schema_id.is_none() {
            return;
        }
        // The first schema of a table that was empty changes nothing. Nobody could look at it when approval was
        // asked for, so there it is as new as any other.
        if self.current.is_none() && !self.approval_required {
            self.initial = schema_id;
        }
        self.current = schema_id;
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

    /// Keeps the newest version under the schema that another one follows.
    pub(super) fn keep_newest(&mut self, mark: &Mark) {
        let Some(schema_id) = mark.schema_id else { return };
        self.newest.insert(schema_id, mark.clone());
        while self.newest.len() > MAX_EARLIER_SCHEMAS {
            let oldest = self.newest.iter().min_by_key(|(_, mark)| mark.version.position).map(|(id, _)| *id);
            oldest.and_then(|id| self.newest.remove(&id));
        }
    }

    /// The status of the current schema.
    pub fn status(&self) -> SchemaStatus {
        self.current.map_or(SchemaStatus::Unknown, |current| self.status_of(current))
    }

    /// The status of a schema. The one that it began with is compatible unless somebody said otherwise.
    pub fn status_of(&self, schema_id: i64) -> SchemaStatus {
        match self.decisions.get(&schema_id) {
            Some(status) => *status,
            None if self.initial == Some(schema_id) => SchemaStatus::Compatible,
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
    /// The schema that it was written with, where the tag says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<i64>,
    /// The format's name for what it did, where the tag says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CommitKind>,
}

impl From<&Mark> for TagEntry {
    fn from(mark: &Mark) -> Self {
        Self {
            position: mark.version.position,
            fingerprint: mark.version.fingerprint.clone(),
            snapshot_id: mark.version.snapshot_id.to_string(),
            schema_id: mark.schema_id,
            kind: Some(mark.kind.clone()),
        }
    }
}

/// One backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    /// Whether it still runs.
    pub status: BackfillStatus,
    /// Since when.
    pub since: Timestamp,
    /// Where the asset stood when it began: later commits are its own.
    #[serde(default)]
    pub from: Position,
    /// Where the asset stood when it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Position>,
    /// The newest version that counts as data from before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Mark>,
}

impl TagEntry {
    /// The tagged version with the facts that the tag itself has; counted as data.
    pub fn mark(&self) -> Mark {
        Mark {
            version: Version {
                position: self.position,
                fingerprint: self.fingerprint.clone(),
                snapshot_id: self.snapshot_id.as_str().into(),
            },
            kind: self.kind.clone().unwrap_or_else(|| CommitKind("TAGGED".to_owned())),
            is_data: true,
            is_empty: false,
            schema_id: self.schema_id,
            totals: Totals::default(),
            since: Timestamp::UNIX_EPOCH,
        }
    }
}

impl Backfill {
    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        self.status == BackfillStatus::Running
    }

    /// Whether it has ended, and did so in this epoch.
    pub fn has_finished_in(&self, epoch: Epoch) -> bool {
        !self.is_running() && self.to.is_none_or(|to| to.epoch == epoch)
    }

    /// Whether a commit was made while it ran.
    pub fn covers(&self, position: Position) -> bool {
        self.from < position && self.to.is_none_or(|to| position <= to)
    }
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
    /// The table's catalog did not answer, or not in time.
    CatalogAway,
    /// The table's catalog refuses to say where the table is, or cannot be asked as it is set.
    CatalogRefused,
    /// The table's catalog answered something that cannot be understood.
    CatalogUnclear,
    /// The table's catalog does not know the table.
    NotInCatalog,
}
