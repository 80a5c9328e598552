//! What a metadata file says, as far as it is kept.

use std::collections::BTreeMap;

use lakebell_domain::commit::Millis;

use super::MAIN;

/// What a writer did, by a snapshot's summary.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Files added.
    Append,
    /// Files exchanged for others with the same rows: compaction, rewritten manifests.
    Replace,
    /// Rows added and removed. Also what a summary without an operation means.
    Overwrite,
    /// Rows removed.
    Delete,
    /// One that is not known, kept as it is, at most 64 characters.
    Unknown(Box<str>),
}

impl Operation {
    pub(super) fn from_text(text: &str) -> Self {
        match text {
            "append" => Self::Append,
            "replace" => Self::Replace,
            "overwrite" => Self::Overwrite,
            "delete" => Self::Delete,
            unknown => Self::Unknown(crate::json::shorten(unknown, 64).into()),
        }
    }

    /// The format's own name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Overwrite => "overwrite",
            Self::Delete => "delete",
            Self::Unknown(name) => name,
        }
    }
}

/// A snapshot, as far as it is kept: the counters that say what it did, no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id: random, orders nothing.
    pub id: i64,
    /// The snapshot that it was made from; it may have expired. Absent for the first one.
    pub parent_id: Option<i64>,
    /// Rises with every snapshot of a table since version 2; 0 where the file does not say.
    pub sequence_number: i64,
    /// The writer's clock. Not monotone.
    pub timestamp_ms: Option<i64>,
    /// The schema that it was written with.
    pub schema_id: Option<i32>,
    /// What it did; absent where it has no summary at all, which is read as [`Operation::Overwrite`].
    pub operation: Option<Operation>,
    /// Rows in data files after it, before deletes are applied.
    pub total_records: Option<i64>,
    /// Data files after it.
    pub total_data_files: Option<i64>,
    /// Files of deletes after it.
    pub total_delete_files: Option<i64>,
    /// Rows that it added.
    pub added_records: Option<i64>,
    /// Rows that it removed with their files.
    pub deleted_records: Option<i64>,
    /// Whether any counter of things added, deleted or removed is above 0, or cannot be read.
    pub counts_a_change: bool,
    /// The watermark property of its summary, where it has one that can be read.
    pub watermark: Option<Millis>,
}

impl Snapshot {
    /// The format's own name of what it did. A missing operation is read as an overwrite.
    pub fn kind(&self) -> &str {
        self.operation.as_ref().map_or("overwrite", Operation::as_str)
    }
}

/// Whether a reference moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefKind {
    /// It moves with every commit to it.
    Branch,
    /// It names one snapshot.
    Tag,
}

/// A branch or a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ref {
    /// Branch or tag.
    pub kind: RefKind,
    /// The snapshot that it names.
    pub snapshot_id: i64,
}

/// An earlier metadata file of the same chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogEntry {
    /// Where it is, as the writer names it: mostly a URL. Compare [`super::file_name`] of it.
    pub file: String,
    /// When it was written, by its writer's clock.
    pub timestamp_ms: Option<i64>,
}

/// What a metadata file says, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// 1, 2 or 3.
    pub format_version: u8,
    /// The table's identity: another one at the same place is another table. Optional in version 1.
    pub table_uuid: Option<String>,
    /// Where the table lies, as its writers name it.
    pub location: String,
    /// The newest sequence number; 0 throughout version 1. It stands still where no snapshot is
    /// added.
    pub last_sequence_number: i64,
    /// The writer's clock.
    pub last_updated_ms: Option<i64>,
    /// The table's schema now. It may move without a snapshot.
    pub current_schema_id: Option<i64>,
    /// Branches and tags by name. `main` is among them if, and only if, the table has a current
    /// snapshot.
    pub refs: BTreeMap<String, Ref>,
    /// The metadata files before this one, oldest first, this one not among them. Writers keep only
    /// the newest.
    pub log: Vec<LogEntry>,
    pub(super) snapshots: Vec<Snapshot>,
    /// Places in `snapshots`, by id.
    pub(super) by_id: Vec<u32>,
}

impl Metadata {
    /// All snapshots that the file lists, in its order, those of other branches and staged ones
    /// among them.
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// A snapshot that the file lists.
    pub fn snapshot(&self, id: i64) -> Option<&Snapshot> {
        let found = self.by_id.binary_search_by_key(&id, |place| self.id_at(*place)).ok()?;
        self.snapshots.get(self.by_id[found] as usize)
    }

    /// The id of the snapshot that a branch is at. `main` without a snapshot, and a branch that is
    /// not there, have none.
    pub fn head(&self, branch: &str) -> Option<i64> {
        self.refs.get(branch).filter(|it| it.kind == RefKind::Branch).map(|it| it.snapshot_id)
    }

    /// The current snapshot: that of `main`.
    pub fn current_snapshot_id(&self) -> Option<i64> {
        self.head(MAIN)
    }

    /// The names of all tags, sorted, each with the snapshot that it names.
    pub fn tags(&self) -> impl Iterator<Item = (&str, i64)> {
        self.refs_of(RefKind::Tag)
    }

    /// The names of all branches, sorted, each with the snapshot that it is at.
    pub fn branches(&self) -> impl Iterator<Item = (&str, i64)> {
        self.refs_of(RefKind::Branch)
    }

    /// Whether both are the same table. A table of version 1 may have no uuid; then this is unknown.
    pub fn same_table(&self, other: &Self) -> Option<bool> {
        let (one, other) = (self.table_uuid.as_ref()?, other.table_uuid.as_ref()?);
        Some(one.eq_ignore_ascii_case(other))
    }

    fn refs_of(&self, kind: RefKind) -> impl Iterator<Item = (&str, i64)> {
        self.refs.iter().filter(move |(_, it)| it.kind == kind).map(|(name, it)| (name.as_str(), it.snapshot_id))
    }

    fn id_at(&self, place: u32) -> i64 {
        self.snapshots[place as usize].id
    }
}
