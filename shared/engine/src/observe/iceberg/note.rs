//! What the reader of Iceberg tables keeps from one look to the next.

use lakebell_domain::version::Ordinal;
use lakebell_formats::iceberg::{ChainLink, Known, LogEntry, Metadata, file_number, first_ordinal, ordinal_after};
use serde::{Deserialize, Serialize};

use super::files::File;
use super::tags;

/// Most files that lost a race whose names are kept: enough for all that one look can meet.
const MAX_LOST: usize = 32;
/// Most files that are waited for: those of writers that are at work at the same time.
const MAX_WAITING: usize = 16;

/// The newest accepted file, and what is needed of it once it is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Note {
    /// Its name; empty where none was accepted yet.
    pub(super) file: String,
    /// The name of the file that it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    /// Where it stands on its chain: the format's ordinal.
    pub(super) ordinal: u64,
    /// The table's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uuid: Option<String>,
    /// The snapshot that the branch was at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<i64>,
    /// That snapshot's sequence number: writers take away the ids of expired parents, so that
    /// ancestry alone would not tell a gap from a rewrite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sequence_number: Option<i64>,
    /// The writer's clock, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) updated: Option<i64>,
    /// The store's clock, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) modified: Option<i64>,
    /// Its entity tag, where the catalog's files may be written over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) etag: Option<String>,
    /// A digest of the tags that it names; absent where it names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tags: Option<String>,
    /// Files that were notified and that the catalog has not named, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waiting: Vec<String>,
    /// Files beside the chain that need not be read again, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) lost: Vec<String>,
}

impl Note {
    /// Whether a file was accepted already.
    pub(super) const fn knows_a_file(&self) -> bool {
        !self.file.is_empty()
    }

    /// The known snapshot of the branch.
    pub(super) fn known(&self) -> Known {
        self.head.map_or(Known::Nothing, |id| Known::Snapshot { id, sequence_number: self.sequence_number })
    }

    /// The known file's place on the chain; it may be gone by now.
    pub(super) fn link(&self) -> ChainLink {
        ChainLink {
            name: self.file.clone(),
            table_uuid: self.uuid.clone(),
            log: self.parent.clone().into_iter().collect(),
            head: self.head,
            recent: self.head.into_iter().collect(),
            last_updated_ms: self.updated,
        }
    }

    /// Whether a file is one of the known table. A table of version 1 may have no uuid.
    pub(super) fn is_same_table(&self, metadata: &Metadata) -> bool {
        match (&self.uuid, &metadata.table_uuid) {
            (Some(known), Some(uuid)) => known.eq_ignore_ascii_case(uuid),
            _ => true,
        }
    }

    /// The format's ordinal of a file that follows the known one.
    pub(super) fn ordinal_of(&self, name: &str, metadata: &Metadata, log: &[LogEntry]) -> u64 {
        if self.knows_a_file() {
            ordinal_after(Ordinal(self.ordinal), &self.file, name, log).0
        } else if let Some(first) = log.first() {
            // Counted along the log, so that it is the same whether or not the files before were read.
            let start = file_number(&first.file).unwrap_or(1);
            ordinal_after(Ordinal(start), &first.file, name, log).0
        } else {
            first_ordinal(name, metadata).0
        }
    }

    /// Moves on to an accepted file. The branch is taken to be at its head there.
    pub(super) fn accept(&mut self, file: &File, branch: &str, ordinal: u64) {
        let metadata = &file.metadata;
        self.file.clone_from(&file.name);
        self.parent = file.link.log.last().cloned();
        self.ordinal = ordinal;
        self.uuid.clone_from(&file.link.table_uuid);
        self.updated = metadata.last_updated_ms;
        self.modified = file.modified;
        self.etag = Some(file.etag.clone());
        self.tags = tags::digest(metadata);
        self.head = metadata.head(branch);
        let number = self.head.and_then(|id| metadata.snapshot(id)).map(|head| head.sequence_number);
        self.sequence_number = number.filter(|number| *number > 0);
    }

    /// Moves on to a file at which the branch was set back for a while: what is known of the branch
    /// stays.
    pub(super) fn pass(&mut self, file: &File, branch: &str, ordinal: u64) {
        let (head, sequence_number) = (self.head, self.sequence_number);
        self.accept(file, branch, ordinal);
        (self.head, self.sequence_number) = (head, sequence_number);
    }

    /// Waits for a file that the catalog may name yet.
    pub(super) fn wait(&mut self, name: &str) {
        if !self.waiting.iter().any(|known| known == name) {
            self.waiting.push(name.to_owned());
        }
        self.waiting.drain(..self.waiting.len().saturating_sub(MAX_WAITING));
    }

    /// Keeps files that are beside the chain for good.
    pub(super) fn lose(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if !self.lost.contains(&name) {
                self.lost.push(name);
            }
        }
        self.lost.drain(..self.lost.len().saturating_sub(MAX_LOST));
    }
}
