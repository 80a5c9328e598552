//! Partitions that a writer has finished, or that a commit touched.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Outcome;
use crate::policy::{Partition, PartitionFrom};
use crate::version::Ordinal;

/// Most partitions kept; beyond it the one that was recorded first goes.
pub const MAX_PARTITIONS: usize = 128;
/// Most partitions of one commit that are taken.
const MAX_OF_COMMIT: usize = 32;

/// One partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Short", into = "Short")]
pub struct PartitionEntry {
    /// When it was recorded.
    pub at: Timestamp,
    /// The commit that must be visible first, where the writer named one.
    pub needs: Option<Ordinal>,
    /// Whether a commit that changes data at or after it is visible.
    pub is_visible: bool,
    /// What it comes from.
    pub from: PartitionFrom,
}

/// As it is kept: there can be many of them in one item.
#[derive(Serialize, Deserialize)]
struct Short(i64, Option<u64>, bool, bool);

impl From<Short> for PartitionEntry {
    fn from(Short(at, needs, is_visible, by_commit): Short) -> Self {
        Self {
            at: Timestamp::from_millisecond(at).unwrap_or(Timestamp::UNIX_EPOCH),
            needs: needs.map(Ordinal),
            is_visible,
            from: if by_commit { PartitionFrom::Commit } else { PartitionFrom::Done },
        }
    }
}

impl From<PartitionEntry> for Short {
    fn from(entry: PartitionEntry) -> Self {
        let by_commit = entry.from == PartitionFrom::Commit;
        Self(entry.at.as_millisecond(), entry.needs.map(|needs| needs.0), entry.is_visible, by_commit)
    }
}

/// The partitions of an asset that were recorded last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partitions(BTreeMap<Partition, PartitionEntry>);

impl Partitions {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that are visible and come from this.
    pub fn visible(&self, from: PartitionFrom) -> impl Iterator<Item = (&Partition, Timestamp)> {
        let visible = self.0.iter().filter(move |(_, entry)| entry.is_visible && entry.from == from);
        visible.map(|(partition, entry)| (partition, entry.at))
    }

    /// A writer says that a partition is done. `newest` is the newest commit that changed data.
    pub(super) fn done(
        &mut self,
        partition: &Partition,
        needs: Option<Ordinal>,
        newest: Option<Ordinal>,
        now: Timestamp,
    ) -> Outcome {
        // One that a commit touched may be done later; one that is done stays so.
        if self.0.get(partition).is_some_and(|known| known.from == PartitionFrom::Done) {
            return Outcome::Duplicate;
        }
        let is_visible = newest.is_some_and(|newest| needs.is_none_or(|needs| needs <= newest));
        self.insert(partition, PartitionEntry { at: now, needs, is_visible, from: PartitionFrom::Done });
        if is_visible {
            Outcome::Advanced
        } else {
            Outcome::Ignored("parked until a commit at or after it is visible".to_owned())
        }
    }

    /// A commit that changed data is visible.
    pub(super) fn see(&mut self, ordinal: Ordinal) {
        for entry in self.0.values_mut().filter(|entry| !entry.is_visible) {
            entry.is_visible = entry.needs.is_none_or(|needs| needs <= ordinal);
        }
    }

    /// A commit names the partitions that it touched.
    pub(super) fn touched(&mut self, partitions: &[Partition], now: Timestamp) {
        for partition in partitions.iter().take(MAX_OF_COMMIT) {
            if !self.0.contains_key(partition) {
                self.insert(
                    partition,
                    PartitionEntry { at: now, needs: None, is_visible: true, from: PartitionFrom::Commit },
                );
            }
        }
    }

    fn insert(&mut self, partition: &Partition, entry: PartitionEntry) {
        self.0.insert(partition.clone(), entry);
        while self.0.len() > MAX_PARTITIONS {
            let oldest = self.0.iter().min_by_key(|(partition, entry)| (entry.at, *partition)).map(|(p, _)| p.clone());
            oldest.and_then(|partition| self.0.remove(&partition));
        }
    }
}
