//! What Lakebell sees in an Iceberg table, from the metadata files of its folder.

mod row;

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;
use lakebell_domain::version::Ordinal;

use super::chain::{Anchor, Chain, ChainLink, resolve};
use super::keys::{IcebergObjectKind, METADATA_PREFIX, classify, name_of};
use super::metadata::{Metadata, Snapshot};
use super::ordinal::{first_ordinal, ordinal_after};
use super::read::ReadOptions;
use super::{MAIN, file_name};
use crate::inspect::{CommitRow, Damaged, Earliest, Inspection, Latest, Token};

/// What an inspection may be told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InspectOptions<'a> {
    /// How files are read.
    pub read: ReadOptions<'a>,
    /// The file that a catalog points to, as a name, key or URL; without one, the files themselves
    /// decide as far as they can.
    pub current: Option<&'a str>,
}

/// Whether [`inspect`] needs a file, by its key relative to the table's root: what may be a
/// metadata file, directly in the folder `metadata`. Hints are not wanted, because they are never
/// trusted.
pub fn wants(relative_key: &str) -> bool {
    wanted(relative_key).is_some()
}

fn wanted(relative_key: &str) -> Option<IcebergObjectKind> {
    let object = classify(relative_key)?;
    let lies_there = relative_key.strip_prefix(METADATA_PREFIX) == Some(&object.name);
    (lies_there && object.kind != IcebergObjectKind::VersionHint).then_some(object.kind)
}

/// Reads what a table says of itself, without a catalog. `files` holds the contents of files by
/// their key relative to the table's root; those that are not wanted are passed over.
pub fn inspect(files: &BTreeMap<String, Vec<u8>>) -> Inspection {
    inspect_with(files, InspectOptions::default())
}

/// Reads what a table says of itself: one row for each metadata file on the chain, whether or not a
/// snapshot was added.
///
/// A file that cannot be read is reported in [`Inspection::damaged`] and costs only its own row.
/// What lost a race is in [`Inspection::orphans`], together with files of a table that lay there
/// before; what nothing has decided yet is in [`Inspection::pending`].
pub fn inspect_with(files: &BTreeMap<String, Vec<u8>>, options: InspectOptions<'_>) -> Inspection {
    let found = Found::new(files, options.read);
    let anchor = options.current.map_or(Anchor::None, Anchor::Current);
    let chain = resolve(&found.links, anchor);
    let mut history = History::default();
    for name in &chain.accepted {
        let key = format!("{METADATA_PREFIX}{name}");
        // One file at a time is in memory besides the one before it.
        if let Some(metadata) = files.get(&key).and_then(|bytes| Metadata::parse(bytes, options.read).ok()) {
            history.add(key, metadata);
        }
    }
    history.into_inspection(chain, found)
}

/// The files of the folder, told apart.
#[derive(Default)]
struct Found {
    links: Vec<ChainLink>,
    not_commits: Vec<String>,
    damaged: Vec<Damaged>,
}

impl Found {
    fn new(files: &BTreeMap<String, Vec<u8>>, options: ReadOptions<'_>) -> Self {
        let mut found = Self::default();
        for (key, bytes) in files {
            match wanted(key) {
                Some(IcebergObjectKind::Metadata(_) | IcebergObjectKind::Placeholder) => found.add(key, bytes, options),
                Some(IcebergObjectKind::Temporary) => found.not_commits.push(key.clone()),
                Some(IcebergObjectKind::VersionHint) | None => {}
            }
        }
        found
    }

    fn add(&mut self, key: &str, bytes: &[u8], options: ReadOptions<'_>) {
        let is_placeholder = wanted(key) == Some(IcebergObjectKind::Placeholder);
        match Metadata::parse(bytes, options) {
            Ok(metadata) => self.links.push(metadata.link(key)),
            Err(_) if is_placeholder => self.not_commits.push(key.to_owned()),
            Err(error) => self.damaged.push(Damaged { file: key.to_owned(), problem: error.to_string() }),
        }
    }
}

/// The rows so far, and the file before.
#[derive(Default)]
struct History {
    rows: Vec<CommitRow>,
    newest_of_branch: BTreeMap<String, Token>,
    last: Option<(String, Ordinal, Metadata)>,
}

impl History {
    fn add(&mut self, key: String, metadata: Metadata) {
        let ordinal = match &self.last {
            None => first_ordinal(&key, &metadata),
            Some((known_key, known, _)) => ordinal_after(*known, known_key, &key, &metadata.log),
        };
        let before = self.last.as_ref().map(|(_, _, metadata)| metadata);
        let position = Token::Number(name_of(file_name(&key)).rising().unwrap_or(ordinal.0));
        for (branch, head) in metadata.branches() {
            if before.and_then(|before| before.head(branch)) != Some(head) {
                self.newest_of_branch.insert(branch.to_owned(), position.clone());
            }
        }
        self.rows.push(row::of(&key, position, ordinal, &metadata, before));
        self.last = Some((key, ordinal, metadata));
    }

    fn into_inspection(self, chain: Chain, found: Found) -> Inspection {
        let position = self.rows.last().map(|row| row.position.clone());
        let (file, last) = self.last.map(|(key, _, metadata)| (key, metadata)).unzip();
        let mut latest_by_branch = BTreeMap::from([(MAIN.to_owned(), None)]);
        for (branch, _) in last.iter().flat_map(Metadata::branches) {
            latest_by_branch.insert(branch.to_owned(), self.newest_of_branch.get(branch).cloned());
        }
        let keys = |names: Vec<String>| names.into_iter().map(|name| format!("{METADATA_PREFIX}{name}"));
        let mut orphans: Vec<_> = keys(chain.orphans).chain(keys(chain.foreign)).collect();
        orphans.sort();
        Inspection {
            format: Format::Iceberg,
            latest: Latest {
                branch: MAIN.to_owned(),
                position,
                snapshot_id: last.as_ref().and_then(Metadata::current_snapshot_id).map(row::id),
                file,
                schema_id_of_table: last.as_ref().and_then(|metadata| metadata.current_schema_id),
                table_id: last.as_ref().and_then(|metadata| metadata.table_uuid.clone()),
                total_records: last.as_ref().and_then(|metadata| main_head(metadata)?.total_records),
                sequence_number: last.as_ref().map(|metadata| metadata.last_sequence_number),
            },
            latest_by_branch,
            earliest: Earliest { position: self.rows.first().map(|row| row.position.clone()) },
            commits: self.rows,
            consumers: BTreeMap::new(),
            tags_without_snapshot: Vec::new(),
            pending: Some(keys(chain.pending).collect::<Vec<_>>()).filter(|pending| !pending.is_empty()),
            orphans,
            not_commits: found.not_commits,
            warnings: Vec::new(),
            damaged: found.damaged,
        }
    }
}

fn main_head(metadata: &Metadata) -> Option<&Snapshot> {
    metadata.snapshot(metadata.current_snapshot_id()?)
}
