//! The files of a table along its log, as far as counting their records needs them.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::action::FileFields;
use super::reader::FileSink;

/// Which file, in a few bytes however long its path is.
type FileKey = [u8; 16];

/// The live files of a table and how many records they have, by their statistics.
///
/// Removed files often come without statistics, so only who followed the log from its start, or
/// from a checkpoint, knows how many records went.
#[derive(Debug, Default)]
pub(super) struct LiveFiles {
    records: HashMap<FileKey, Option<i64>>,
    /// Whether the files that were there before the first commit read are known.
    is_complete: bool,
    total: i64,
    without_count: usize,
    /// What the current commit did, `None` once something about it is not known.
    delta: Option<i64>,
}

impl LiveFiles {
    /// A table before its first commit.
    pub(super) fn of_new_table() -> Self {
        Self { is_complete: true, delta: Some(0), ..Self::default() }
    }

    /// A table whose files are not known.
    pub(super) fn of_unknown_table() -> Self {
        Self { delta: Some(0), ..Self::default() }
    }

    /// Records of the live files.
    pub(super) fn total(&self) -> Option<i64> {
        (self.is_complete && self.without_count == 0).then_some(self.total)
    }

    /// Ends a commit: records that it added less those that it removed.
    pub(super) fn end_commit(&mut self) -> Option<i64> {
        self.delta.replace(0)
    }

    /// Something was not read: what is live is known no more.
    pub(super) fn lose(&mut self) {
        *self = Self::of_unknown_table();
    }

    fn change(&mut self, by: Option<i64>) {
        self.total = self.total.saturating_add(by.unwrap_or(0));
        self.delta = self.delta.zip(by).and_then(|(delta, by)| delta.checked_add(by));
    }

    /// Takes a file out, if it is there, and says whether it was.
    fn take_out(&mut self, key: &FileKey) -> bool {
        let Some(records) = self.records.remove(key) else { return false };
        self.without_count -= usize::from(records.is_none());
        self.change(records.map(|records| -records));
        true
    }
}

impl FileSink for LiveFiles {
    fn added(&mut self, file: &FileFields<'_>) {
        let key = key_of(file);
        // A file that is added again is the same file with other statistics.
        self.take_out(&key);
        let records = file.records();
        self.records.insert(key, records);
        self.without_count += usize::from(records.is_none());
        self.change(records);
    }

    fn removed(&mut self, file: &FileFields<'_>) {
        let was_there = self.take_out(&key_of(file));
        if !was_there && !self.is_complete {
            self.change(file.records().map(|records| -records));
        }
    }
}

fn key_of(file: &FileFields<'_>) -> FileKey {
    let digest: [u8; 32] = Sha256::digest(file.identity().as_bytes()).into();
    let mut key = FileKey::default();
    key.copy_from_slice(&digest[..16]);
    key
}

#[cfg(test)]
mod tests;
