//! What Lakebell sees in a Paimon table, from the metadata files of its folder.

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;
use serde_json::Value;

use super::consumer::Consumer;
use super::keys::{PaimonObject, PaimonObjectKind, classify};
use super::schema::{ChangelogProducer, Schema};
use super::snapshot::Snapshot;
use super::tag::Tag;
use crate::error::FormatError;
use crate::inspect::{CommitRow, Damaged, Earliest, Inspection, Latest, TagWithoutSnapshot, Token};

const MAIN: &str = "main";

/// The fields of `extra` that every row has, null where the snapshot does not say.
const ALWAYS_IN_EXTRA: [&str; 5] = ["uuid", "commit_user", "commit_identifier", "changelog_records", "next_row_id"];

/// Whether [`inspect`] needs a file, by its key relative to the table's root: snapshots, tags and
/// schemas of all branches, and the main line's consumers. Hints are not wanted, because they are
/// never trusted, and data and manifests never are.
pub fn wants(relative_key: &str) -> bool {
    wanted(relative_key).is_some()
}

/// Reads what a table says of itself. `files` holds the contents of files by their key relative to
/// the table's root; those that are not wanted are passed over.
///
/// A file that cannot be read is reported in [`Inspection::damaged`] and costs only what it says
/// itself: without a schema, the commit kind alone decides what changed data; without a snapshot,
/// the newest readable one is the latest.
pub fn inspect(files: &BTreeMap<String, Vec<u8>>) -> Inspection {
    let mut table = Table::default();
    for (key, bytes) in files {
        if let Some(object) = wanted(key)
            && let Err(error) = table.add(key, object, bytes)
        {
            table.damaged.push(Damaged { file: key.clone(), problem: error.to_string() });
        }
    }
    table.into_inspection()
}

/// The object of a relative key, if it lies where a reader looks for it: directly below the root,
/// and not in a folder `branch-main`, which no reader opens.
fn wanted(relative_key: &str) -> Option<PaimonObject> {
    let object = classify(relative_key)?;
    let kind_is_read = match object.kind {
        PaimonObjectKind::Snapshot(_) | PaimonObjectKind::Tag(_) | PaimonObjectKind::Schema(_) => true,
        PaimonObjectKind::Consumer(_) => object.branch.is_none(),
        PaimonObjectKind::Changelog(_) | PaimonObjectKind::SnapshotHint(_) => false,
    };
    (kind_is_read && object.relative_key() == relative_key).then_some(object)
}

/// One line of a table's history: main or a branch.
#[derive(Default)]
struct Line {
    snapshots: BTreeMap<u64, (String, Snapshot)>,
    schemas: BTreeMap<u64, Option<ChangelogProducer>>,
    tags: BTreeMap<String, (String, Tag)>,
}

#[derive(Default)]
struct Table {
    main: Line,
    branches: BTreeMap<String, Line>,
    consumers: BTreeMap<String, u64>,
    damaged: Vec<Damaged>,
}

impl Table {
    fn add(&mut self, key: &str, object: PaimonObject, bytes: &[u8]) -> Result<(), FormatError> {
        let line = match object.branch {
            None => &mut self.main,
            Some(name) => self.branches.entry(name).or_default(),
        };
        match object.kind {
            PaimonObjectKind::Snapshot(id) => {
                line.snapshots.insert(id, (key.to_owned(), Snapshot::parse_named(bytes, id)?));
            }
            PaimonObjectKind::Schema(id) => {
                line.schemas.insert(id, Schema::parse_named(bytes, id)?.changelog_producer);
            }
            PaimonObjectKind::Tag(name) => {
                line.tags.insert(name, (key.to_owned(), Tag::parse(bytes)?));
            }
            PaimonObjectKind::Consumer(name) => {
                self.consumers.insert(name, Consumer::parse(bytes)?.next_snapshot);
            }
            PaimonObjectKind::Changelog(_) | PaimonObjectKind::SnapshotHint(_) => {}
        }
        Ok(())
    }

    fn into_inspection(self) -> Inspection {
        let lines: Vec<(&str, &Line)> = std::iter::once((MAIN, &self.main))
            .chain(self.branches.iter().map(|(name, line)| (name.as_str(), line)))
            .collect();
        let newest = self.main.snapshots.last_key_value();
        let position = newest.map(|(id, _)| Token::Number(*id));
        Inspection {
            format: Format::Paimon,
            commits: lines.iter().flat_map(|(name, line)| line.rows(name)).collect(),
            latest: Latest {
                branch: MAIN.to_owned(),
                snapshot_id: position.clone(),
                position,
                file: newest.map(|(_, (file, _))| file.clone()),
                schema_id_of_table: self.main.schemas.last_key_value().and_then(|(id, _)| i64::try_from(*id).ok()),
                table_id: None,
                total_records: None,
                sequence_number: None,
            },
            latest_by_branch: lines.iter().map(|(name, line)| ((*name).to_owned(), line.newest())).collect(),
            earliest: Earliest { position: self.main.snapshots.keys().next().map(|id| Token::Number(*id)) },
            tags_without_snapshot: lines.iter().flat_map(|(_, line)| line.tags_without_snapshot()).collect(),
            consumers: self.consumers,
            pending: None,
            orphans: Vec::new(),
            not_commits: Vec::new(),
            warnings: Vec::new(),
            damaged: self.damaged,
        }
    }
}

impl Line {
    fn newest(&self) -> Option<Token> {
        self.snapshots.keys().next_back().map(|id| Token::Number(*id))
    }

    fn rows(&self, branch: &str) -> Vec<CommitRow> {
        self.snapshots.values().map(|(file, snapshot)| self.row(branch, file, snapshot)).collect()
    }

    fn row(&self, branch: &str, file: &str, snapshot: &Snapshot) -> CommitRow {
        let mut commit = snapshot.to_commit(self.producer_of(snapshot));
        let naming = self.tags.iter().filter(|(_, (_, tag))| tag.names(snapshot));
        commit.tags = naming.map(|(name, _)| name.clone()).collect();
        for field in ALWAYS_IN_EXTRA {
            commit.extra.entry(field.to_owned()).or_insert(Value::Null);
        }
        commit.extra.insert("has_changelog".to_owned(), Value::Bool(snapshot.has_changelog()));
        CommitRow::new(file.to_owned(), branch, commit)
    }

    fn producer_of(&self, snapshot: &Snapshot) -> Option<ChangelogProducer> {
        let schema_id = u64::try_from(snapshot.schema_id?).ok()?;
        self.schemas.get(&schema_id).copied().flatten()
    }

    fn tags_without_snapshot(&self) -> Vec<TagWithoutSnapshot> {
        let gone = |tag: &Tag| !self.snapshots.get(&tag.snapshot.id).is_some_and(|(_, snapshot)| tag.names(snapshot));
        self.tags
            .iter()
            .filter(|(_, (_, tag))| gone(tag))
            .map(|(name, (file, tag))| TagWithoutSnapshot {
                tag: name.clone(),
                file: file.clone(),
                snapshot_id: Token::Number(tag.snapshot.id),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
