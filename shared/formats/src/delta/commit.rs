//! One commit of a Delta table.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::version::{Fingerprint, Ordinal};
use serde_json::Value;

use super::metadata::{Metadata, SchemaVersion};
use super::protocol::Protocol;
use super::reader::CommitReader;
use crate::error::FormatError;

/// The kind of a commit that does not say what it did.
const UNNAMED: &str = "UNKNOWN";
/// Longest transaction id that is taken for a fingerprint as it is, in bytes. Real ones have 36.
const MAX_TXN_ID_BYTES: usize = 64;

/// The `commitInfo` action. All of it is free text of the writer: nothing here is required, and
/// values of other types than expected read as absent. Long texts are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// The writer's clock, in milliseconds since 1970-01-01T00:00:00Z.
    pub timestamp: Option<i64>,
    /// The commit's own time on tables with in-commit timestamps: rises strictly.
    pub in_commit_timestamp: Option<i64>,
    /// What the writer did: `WRITE`, `MERGE`, `OPTIMIZE`, ... Never what decides whether data changed.
    pub operation: Option<String>,
    /// The id of the transaction, unique for each attempt.
    pub txn_id: Option<String>,
    /// The software that wrote it.
    pub engine_info: Option<String>,
    /// Whether it only added files, without having read the table.
    pub is_blind_append: Option<bool>,
    /// The version that the transaction had read.
    pub read_version: Option<i64>,
}

/// Records of files, by the files' statistics, without regard to deletion vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordTotal {
    /// How many files.
    pub files: u64,
    /// How many of them have no statistics.
    pub files_without_count: u64,
    /// Records of those that have.
    pub records: i64,
}

impl RecordTotal {
    pub(super) fn count(&mut self, records: Option<i64>) {
        self.files += 1;
        match records {
            Some(records) => self.records = self.records.saturating_add(records),
            None => self.files_without_count += 1,
        }
    }

    /// The records, where every file says how many it has.
    pub const fn all(&self) -> Option<i64> {
        if self.files_without_count == 0 { Some(self.records) } else { None }
    }
}

/// Most partitions of one commit that are kept.
pub(super) const MAX_PARTITIONS: usize = 32;

/// What a commit's `add` and `remove` actions amount to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTotals {
    /// Files added.
    pub added: RecordTotal,
    /// Files removed. Their statistics are often left out.
    pub removed: RecordTotal,
    /// Rows that the deletion vectors of added files take off.
    pub added_deleted_rows: i64,
    /// Rows that the deletion vectors of removed files had taken off.
    pub removed_deleted_rows: i64,
}

/// What a commit file says, in bounded size: files are counted and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaCommit {
    /// Its number, from 0, as in the file's name: the file itself does not say it.
    pub version: u64,
    /// Who committed what and when; absent where the writer left it out.
    pub info: Option<CommitInfo>,
    /// The table's identity and columns, where the commit set them: the first commit, changes of
    /// columns and options, and, by some writers, any commit.
    pub metadata: Option<Metadata>,
    /// What the table demands, where the commit set it.
    pub protocol: Option<Protocol>,
    /// How many actions there are of each name, unknown ones with theirs.
    pub actions: BTreeMap<String, u64>,
    /// For each application that committed through this one, its own version.
    pub txns: BTreeMap<String, i64>,
    /// Files added and removed.
    pub files: FileTotals,
    /// Partitions of files that change data, [`MAX_PARTITIONS`] at most.
    pub partitions: BTreeSet<String>,
    pub(super) has_data_change: bool,
    pub(super) has_unknown_change: bool,
    pub(super) digest: String,
}

impl DeltaCommit {
    /// Reads a commit file that is in memory; [`CommitReader`] reads one as a stream.
    pub fn parse(bytes: &[u8], version: u64) -> Result<Self, FormatError> {
        let mut reader = CommitReader::new(version);
        reader.push(bytes)?;
        reader.finish()
    }

    /// What tells this commit from another one of the same version: the transaction id of its
    /// `commitInfo` where there is one, else 32 hex digits of a SHA-256 over the `commitInfo` line as
    /// written, the paths of the first file added and the first removed (file names are random), and
    /// the table's id, as far as they are there; where nothing of that is, over the first line.
    ///
    /// The version is not in it, because fingerprints are compared beside the ordinal. A file that is
    /// written again with the same bytes keeps its fingerprint.
    ///
    /// Recorded state holds these values: the digest must never change.
    pub fn fingerprint(&self) -> Fingerprint {
        let txn_id = self.info.as_ref().and_then(|info| info.txn_id.as_ref());
        let usable = txn_id.filter(|id| id.len() <= MAX_TXN_ID_BYTES);
        Fingerprint::from(usable.unwrap_or(&self.digest).as_str())
    }

    /// Whether the commit changed data: whether any `add` or `remove` says so. Operations are free
    /// text and decide nothing. `None` where no file says yes and one does not say at all.
    pub const fn changes_data(&self) -> Option<bool> {
        match (self.has_data_change, self.has_unknown_change) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }

    /// The table's id, where the commit sets it. Another one than before is another table.
    pub fn table_id(&self) -> Option<&str> {
        self.metadata.as_ref().map(|metadata| metadata.id.as_str())
    }

    /// When it was committed: the in-commit timestamp, else the writer's clock.
    pub fn committed_at(&self) -> Option<Millis> {
        let info = self.info.as_ref()?;
        info.in_commit_timestamp.or(info.timestamp).map(Millis)
    }

    /// The commit's in-commit timestamp.
    pub fn in_commit_timestamp(&self) -> Option<i64> {
        self.info.as_ref()?.in_commit_timestamp
    }

    /// Whether this commit can follow directly on one with the given in-commit timestamp: they rise
    /// strictly. `None` where either is missing.
    ///
    /// The check is free and catches some histories that were rewritten below a version already
    /// seen. That it holds proves nothing, and that it does not is a reason to look (to read the
    /// known version again and compare its fingerprint), no proof of a rewrite: there are logs whose
    /// writer's clock was turned back by hand.
    pub fn link_holds(&self, previous_in_commit_timestamp: Option<i64>) -> Option<bool> {
        Some(self.in_commit_timestamp()? > previous_in_commit_timestamp?)
    }

    /// The schema after this commit, given the one before it. A `metaData` that repeats the known
    /// columns brings no new one. `None` where neither is known.
    pub fn schema_after(&self, known: Option<&SchemaVersion>) -> Option<SchemaVersion> {
        let digest = self.metadata.as_ref().map(Metadata::schema_digest);
        match (digest, known) {
            (None, known) => known.cloned(),
            (Some(digest), Some(known)) if known.digest == digest => Some(known.clone()),
            (Some(digest), _) => Some(SchemaVersion { since: self.version, digest: digest.to_owned() }),
        }
    }

    /// Whether the commit says that the catalog decides which commits are visible. `None` where it
    /// does not set what would say so.
    pub fn is_catalog_managed(&self) -> Option<bool> {
        let coordinated = self.metadata.as_ref().map(|metadata| metadata.commit_coordinator.is_some());
        let by_protocol = self.protocol.as_ref().map(Protocol::is_catalog_managed);
        match (by_protocol, coordinated) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, None) => None,
            _ => Some(false),
        }
    }

    /// Rows added less rows removed, by the files' statistics, where every file has them. Removed
    /// files often have none: then the commit alone does not tell.
    pub fn delta_records(&self) -> Option<i64> {
        self.files.added.all()?.checked_sub(self.files.removed.all()?)
    }

    /// The commit in terms that all formats share.
    ///
    /// `schema` is [`DeltaCommit::schema_after`]; its version is the schema id. `total_records` is
    /// empty, because only the whole log knows it, and so are `watermark`, which the format does not
    /// have, and `tags`. A commit that does not name its operation is of the kind `UNKNOWN`.
    ///
    /// `extra` holds `actions` (counts by name), `partitions` that it touched where there are any, `metadata_changed` and `protocol_changed`, and where
    /// present `txn`, `deletion_vector_rows`, `blind_append`, `in_commit_timestamp`, `timestamp`,
    /// `engine_info`, `table_id`, `catalog_managed` where true, and `not_understood`, the features
    /// that are not.
    pub fn to_commit(&self, schema: Option<&SchemaVersion>) -> Commit {
        let operation = self.info.as_ref().and_then(|info| info.operation.clone());
        Commit {
            ordinal: Ordinal(self.version),
            fingerprint: self.fingerprint(),
            snapshot_id: self.version.to_string(),
            parent_id: self.version.checked_sub(1).map(|parent| parent.to_string()),
            kind: CommitKind(operation.unwrap_or_else(|| UNNAMED.to_owned())),
            changes_data: self.changes_data(),
            watermark: None,
            committed_at: self.committed_at(),
            schema_id: schema.and_then(SchemaVersion::schema_id),
            total_records: None,
            delta_records: self.delta_records(),
            tags: Vec::new(),
            extra: self.extra(),
        }
    }

    fn extra(&self) -> BTreeMap<String, Value> {
        let info = self.info.as_ref();
        let counts = self.actions.iter().map(|(name, count)| (name.clone(), Value::from(*count))).collect();
        let txns = self.txns.iter().map(|(app, version)| (app.clone(), Value::from(*version))).collect();
        let not_understood = self.protocol.as_ref().map(Protocol::not_understood).filter(|names| !names.is_empty());
        let deleted = Some(self.files.added_deleted_rows).filter(|rows| *rows > 0);
        let entries = [
            ("actions", Some(Value::Object(counts))),
            ("partitions", (!self.partitions.is_empty()).then(|| self.partitions.iter().cloned().collect())),
            ("metadata_changed", Some(self.metadata.is_some().into())),
            ("protocol_changed", Some(self.protocol.is_some().into())),
            ("txn", (!self.txns.is_empty()).then_some(Value::Object(txns))),
            ("deletion_vector_rows", deleted.map(Value::from)),
            ("blind_append", info.and_then(|info| info.is_blind_append).map(Value::from)),
            ("in_commit_timestamp", info.and_then(|info| info.in_commit_timestamp).map(Value::from)),
            ("timestamp", info.and_then(|info| info.timestamp).map(Value::from)),
            ("engine_info", info.and_then(|info| info.engine_info.clone()).map(Value::from)),
            ("table_id", self.table_id().map(Value::from)),
            ("catalog_managed", self.is_catalog_managed().filter(|managed| *managed).map(Value::from)),
            ("not_understood", not_understood.map(Value::from)),
        ];
        entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

#[cfg(test)]
mod tests;
