//! The timeline: what completed, in which order, what is under way, and what proves a rewrite.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::commit::CommitId;
use super::instant::Instant;
use super::keys::{Action, ArchiveFile, HudiObjectKind, InstantFile, Layout, State, classify};

/// Where a completed instant is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// On the timeline.
    OnTimeline,
    /// Moved to the archive.
    Archived,
    /// Perhaps moved to the archive, whose file names do not tell: layout 1, with a savepoint on the
    /// timeline, beyond which a table may be set to archive. Proves nothing.
    MayBeArchived,
    /// Nowhere: a restore took it away, or the table is another one.
    Gone,
}

/// What proves that the history which was read before is no longer the table's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewrite {
    /// Restores that completed since.
    Restored(Vec<CommitId>),
    /// Some known writes are neither on the timeline nor archived.
    Vanished(Vec<CommitId>),
    /// No known write is left, no restore took them away, and the table's first one is later: it was
    /// dropped and created again.
    OtherTable {
        /// The first write of the table that is there now.
        first: CommitId,
    },
}

/// The instants of a table, from the keys of its files; no contents are needed.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    completed: Vec<InstantFile>,
    pending: Vec<InstantFile>,
    archived_ranges: Vec<(Instant, Instant)>,
    has_archive_log: bool,
}

impl Timeline {
    /// The timeline of the keys, relative to the table's root, that lie in the folders of both
    /// layouts ([`super::Layout::folder`]), and of the archives
    /// ([`super::LAYOUT_1_ARCHIVE_FOLDER`], [`super::HISTORY_FOLDER`]). Other keys are passed over.
    ///
    /// **List the timeline first and the archives after it.** Instants are archived before they are
    /// removed, so that in this order none is missed in between.
    ///
    /// Both layouts are read whatever the table's properties say: an upgrade moves instants from one
    /// to the other before it rewrites the properties, and whoever looks at one folder only would take
    /// that for a rewrite. An instant that lies in both counts once, with its completion time.
    pub fn from_keys<'a>(relative_keys: impl IntoIterator<Item = &'a str>) -> Self {
        let mut timeline = Self::default();
        let mut completed: BTreeMap<CommitId, InstantFile> = BTreeMap::new();
        let objects = relative_keys.into_iter().filter_map(classify).filter(|object| object.root.is_empty());
        for object in objects {
            match object.kind {
                HudiObjectKind::Instant(file) if file.state == State::Completed => {
                    let kept = completed.entry(CommitId::of(&file)).or_insert(file);
                    if preference(&file) < preference(kept) {
                        *kept = file;
                    }
                }
                HudiObjectKind::Instant(file) => timeline.pending.push(file),
                HudiObjectKind::Archive(ArchiveFile::Range(first, last)) => {
                    timeline.archived_ranges.push((first, last));
                }
                HudiObjectKind::Archive(ArchiveFile::Log) => timeline.has_archive_log = true,
                HudiObjectKind::Properties => {}
            }
        }
        timeline.completed = completed.into_values().collect();
        timeline.completed.sort_by_key(|file| (file.position(), CommitId::of(file)));
        timeline.drop_completed_from_pending();
        timeline
    }

    fn drop_completed_from_pending(&mut self) {
        let is_savepoint = |file: &InstantFile| file.action == Action::Savepoint;
        let done: BTreeSet<_> = self.completed.iter().map(|file| (file.instant, is_savepoint(file))).collect();
        self.pending.retain(|file| !done.contains(&(file.instant, is_savepoint(file))));
        self.pending.sort_by_key(|file| (file.instant, file.action, file.state, file.layout));
        self.pending.dedup_by_key(|file| (file.instant, file.action, file.state));
    }

    /// What completed, in the order of completion. In layout 1, which does not write that down, in the
    /// order of the instants: commits that completed in another order are then in the wrong place,
    /// which [`Timeline::unseen`] is there to mend.
    pub fn completed(&self) -> &[InstantFile] {
        &self.completed
    }

    /// Files of what was planned or begun and has not completed, oldest first.
    pub fn pending(&self) -> &[InstantFile] {
        &self.pending
    }

    /// What completed and is not among `known`, in the order in which to apply it. In layout 1, where
    /// the order of first observation is the table's order, an instant that is older than known ones
    /// is simply the next; it is never stale.
    ///
    /// `known` holds every completed instant of earlier reads, or at least those that were still on
    /// the timeline at the last one.
    pub fn unseen(&self, known: &BTreeSet<CommitId>) -> Vec<InstantFile> {
        self.completed.iter().filter(|file| !known.contains(&CommitId::of(file))).copied().collect()
    }

    /// Where a completed write is now. Of other actions `Gone` proves nothing: cleans and rollbacks
    /// are archived on their own.
    pub fn fate(&self, id: CommitId) -> Fate {
        if self.completed.iter().any(|file| CommitId::of(file) == id) {
            return Fate::OnTimeline;
        }
        let in_range = |(first, last): &(Instant, Instant)| (*first..=*last).contains(&id.instant);
        let oldest = self.writes().map(|file| file.instant).min();
        let is_before_timeline = oldest.is_some_and(|oldest| id.instant < oldest);
        if self.archived_ranges.iter().any(in_range) || (self.has_archive_log && is_before_timeline) {
            return Fate::Archived;
        }
        let has_savepoint = self.completed.iter().any(|file| file.action == Action::Savepoint);
        if self.has_archive_log && has_savepoint { Fate::MayBeArchived } else { Fate::Gone }
    }

    /// What proves that the table's history is no longer the one of which `known` completed instants
    /// were read. A rollback proves nothing, because it removes only what never completed; nor does a
    /// change of layout, which keeps instants and actions.
    ///
    /// What it cannot see: instants that a restore took away and that lie within a range which was
    /// archived since, if the restore itself was archived too; and a table that was dropped and created
    /// again with an archive of its own by now. Compare [`super::TableProperties::may_be`] as well.
    pub fn rewrite(&self, known: &BTreeSet<CommitId>) -> Option<Rewrite> {
        if known.is_empty() {
            return None;
        }
        let unseen = self.unseen(known);
        let restores: Vec<_> = unseen.iter().filter(|file| file.action == Action::Restore).map(CommitId::of).collect();
        if !restores.is_empty() {
            return Some(Rewrite::Restored(restores));
        }
        let writes = || known.iter().copied().filter(|id| id.action.writes());
        let gone: Vec<_> = writes().filter(|id| self.fate(*id) == Fate::Gone).collect();
        let newest_known = writes().next_back()?;
        let first = self.writes().map(CommitId::of).min();
        match first {
            _ if gone.is_empty() => None,
            Some(first) if gone.len() == writes().count() && first > newest_known => {
                Some(Rewrite::OtherTable { first })
            }
            _ => Some(Rewrite::Vanished(gone)),
        }
    }

    fn writes(&self) -> impl Iterator<Item = &InstantFile> {
        self.completed.iter().filter(|file| file.action.writes())
    }
}

/// Of two files of one instant the one with a completion time counts, and of two completion times,
/// which an upgrade that was run twice can leave, the earlier; else the one in layout 2.
const fn preference(file: &InstantFile) -> (bool, Option<Instant>, Reverse<Layout>) {
    (file.completion.is_none(), file.completion, Reverse(file.layout))
}

#[cfg(test)]
mod tests;
