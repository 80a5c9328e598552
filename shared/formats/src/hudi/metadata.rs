//! Commit metadata: what a completed write says of itself.

use std::collections::BTreeSet;

use super::avro::MAGIC;
use super::{MAX_FILE_BYTES, decode};
use crate::error::{FormatError, FormatErrorKind};
use crate::json::shorten;

/// Most names of one kind that are kept of one file.
const MAX_NAMES: usize = 1000;
/// Longest name that is kept as it is, in characters.
pub(super) const MAX_NAME_CHARS: usize = 1024;
/// Longest operation type, in bytes. The longest known one has 22.
const MAX_OPERATION_BYTES: usize = 64;

/// How a completed file is written. Layout and name do not tell: an upgraded table keeps JSON under
/// new names, and cleans and rollbacks are Avro in both layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// JSON text.
    Json,
    /// An Avro container.
    Avro,
    /// Nothing at all, which is legal and means empty metadata.
    Empty,
}

impl Encoding {
    /// The encoding of a file, by its bytes.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(MAGIC) {
            Self::Avro
        } else if bytes.iter().all(u8::is_ascii_whitespace) {
            Self::Empty
        } else {
            Self::Json
        }
    }

    /// Its name in what `lakebell table inspect` shows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Avro => "avro",
            Self::Empty => "empty",
        }
    }
}

/// Names that a file lists, of which the first thousand are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    kept: BTreeSet<String>,
    listed: u64,
}

impl Names {
    pub(super) fn add(&mut self, name: &str) {
        self.listed += 1;
        if self.kept.len() < MAX_NAMES {
            self.kept.insert(shorten(name, MAX_NAME_CHARS));
        }
    }

    /// The names that were kept, sorted. Very long ones end in an ellipsis.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(String::as_str)
    }

    /// How many the file lists.
    pub const fn listed(&self) -> u64 {
        self.listed
    }

    /// Whether the file lists none.
    pub const fn is_empty(&self) -> bool {
        self.listed == 0
    }
}

/// What the completed file of a write says, summed up while it is read: a write of many files has
/// tens of megabytes of statistics, none of which are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitMetadata {
    /// How the file is written.
    pub encoding: Encoding,
    /// `INSERT`, `UPSERT`, `COMPACT`, `CLUSTER`, ... or one that is not known yet, kept as it is.
    /// Absent in old files.
    pub operation_type: Option<String>,
    /// The mark of a compaction in files older than operation types.
    pub compacted: bool,
    /// Files written.
    pub write_stats: u64,
    /// Rows inserted.
    pub inserts: i64,
    /// Rows updated.
    pub updates: i64,
    /// Rows deleted.
    pub deletes: i64,
    /// Partitions written to; an unpartitioned table has one, named by an empty text.
    pub partitions: Names,
    /// Partitions of which files were replaced.
    pub replaced_partitions: Names,
    /// What the writer added under names of its own, without the values. `schema` is usual.
    pub extra_metadata_keys: Names,
}

impl CommitMetadata {
    /// Metadata that says nothing.
    pub fn empty(encoding: Encoding) -> Self {
        Self {
            encoding,
            operation_type: None,
            compacted: false,
            write_stats: 0,
            inserts: 0,
            updates: 0,
            deletes: 0,
            partitions: Names::default(),
            replaced_partitions: Names::default(),
            extra_metadata_keys: Names::default(),
        }
    }

    /// Reads the completed file of a commit, delta commit or replace commit of at most
    /// [`MAX_FILE_BYTES`]. JSON, Avro and the empty file are told apart by the bytes.
    ///
    /// Nothing is required, because old writers left out nearly everything; a known field that holds
    /// something else than the format says is an error.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > MAX_FILE_BYTES {
            let problem = format!("the file has {} bytes, at most {MAX_FILE_BYTES} are read", bytes.len());
            return Err(FormatError::new(FormatErrorKind::TooLarge, problem));
        }
        let encoding = Encoding::of(bytes);
        let mut metadata = Self::empty(encoding);
        match encoding {
            Encoding::Empty => {}
            Encoding::Json => decode::json(bytes, &mut metadata)?,
            Encoding::Avro => decode::avro(bytes, &mut metadata)?,
        }
        match &metadata.operation_type {
            Some(operation) if operation.is_empty() || operation.len() > MAX_OPERATION_BYTES => {
                let shown = shorten(operation, 60);
                let problem = format!("`operationType` is `{shown}`; it has 1 to {MAX_OPERATION_BYTES} bytes");
                Err(FormatError::new(FormatErrorKind::WrongValue, problem))
            }
            _ => Ok(metadata),
        }
    }

    /// Rows added less rows removed. `numWrites` does not tell: it counts every row of a file that
    /// was rewritten.
    pub const fn delta_records(&self) -> i64 {
        self.inserts.saturating_sub(self.deletes)
    }

    /// All partitions that the write touched: those written to and those of which files were replaced.
    /// Of more than a thousand of either kind some are missing.
    pub fn partitions_touched(&self) -> BTreeSet<&str> {
        self.partitions.iter().chain(self.replaced_partitions.iter()).collect()
    }

    pub(super) fn add_write(&mut self, inserts: i64, updates: i64, deletes: i64) -> Result<(), FormatError> {
        self.write_stats += 1;
        let sums = [(&mut self.inserts, inserts), (&mut self.updates, updates), (&mut self.deletes, deletes)];
        for (sum, more) in sums {
            *sum = sum.checked_add(more).ok_or_else(|| {
                FormatError::new(FormatErrorKind::WrongValue, "the row counts of the write stats exceed 64 bits")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
