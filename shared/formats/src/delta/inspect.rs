//! What Lakebell sees in a Delta table, from the log files of its folder.

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;
use serde_json::Value;

use super::checkpoint::Checksum;
use super::commit::DeltaCommit;
use super::files::LiveFiles;
use super::keys::{CheckpointShape, DeltaObject, DeltaObjectKind, classify};
use super::metadata::SchemaVersion;
use super::protocol::Protocol;
use super::reader::Parser;
use crate::error::FormatError;
use crate::inspect::{CommitRow, Damaged, Earliest, Inspection, Latest};

const MAIN: &str = "main";

/// Whether [`inspect`] takes notice of a file, by its key relative to the table's root: everything
/// in the log but Parquet and hints, which are never trusted.
pub fn wants(relative_key: &str) -> bool {
    wanted(relative_key).is_some()
}

/// Whether [`inspect`] also reads the file's contents. Of others that it wants, the name is enough
/// and the contents may be left empty.
pub fn reads(relative_key: &str) -> bool {
    wanted(relative_key).is_some_and(|object| {
        let is_json_checkpoint = matches!(object.kind, DeltaObjectKind::Checkpoint { .. });
        is_json_checkpoint || matches!(object.kind, DeltaObjectKind::Commit(_) | DeltaObjectKind::Checksum(_))
    })
}

/// Reads what a table's log says of itself. `files` holds the contents of files by their key
/// relative to the table's root; those that are not wanted are passed over.
///
/// A commit that cannot be read is reported in [`Inspection::damaged`]; the newest readable one is
/// the latest. The number of rows in the table is known where the log is read from version 0 or
/// from a version 2 checkpoint in JSON without sidecars; after a log clean-up that leaves Parquet
/// checkpoints only, `total_records` is null. So is `table_id` there, unless a later commit or a
/// checksum file has it. A commit has no schema id in this format: `schema_id` is null,
/// `extra.schema_since` names the version that brought the schema.
pub fn inspect(files: &BTreeMap<String, Vec<u8>>) -> Inspection {
    let mut log = Log::default();
    for (key, bytes) in files {
        if let Some(object) = wanted(key) {
            log.sort_in(key, &object.kind, bytes);
        }
    }
    log.read()
}

/// The object of a relative key, if it lies directly below the root and is looked at.
fn wanted(relative_key: &str) -> Option<DeltaObject> {
    let object = classify(relative_key)?;
    let is_looked_at = match &object.kind {
        DeltaObjectKind::Checkpoint { shape, .. } => matches!(shape, CheckpointShape::Json(_)),
        DeltaObjectKind::LastCheckpoint | DeltaObjectKind::Sidecar(_) => false,
        _ => true,
    };
    (is_looked_at && object.root.is_empty() && object.relative_key() == relative_key).then_some(object)
}

type Content<'a> = (&'a str, &'a [u8]);

/// The files of a log, by version.
#[derive(Default)]
struct Log<'a> {
    commits: BTreeMap<u64, Content<'a>>,
    checkpoints: BTreeMap<u64, Content<'a>>,
    checksums: BTreeMap<u64, Content<'a>>,
    staged: Vec<(u64, &'a str)>,
    summaries: Vec<&'a str>,
}

impl<'a> Log<'a> {
    fn sort_in(&mut self, key: &'a str, kind: &DeltaObjectKind, bytes: &'a [u8]) {
        match *kind {
            DeltaObjectKind::Commit(version) => drop(self.commits.insert(version, (key, bytes))),
            DeltaObjectKind::Checksum(version) => drop(self.checksums.insert(version, (key, bytes))),
            DeltaObjectKind::Checkpoint { version, .. } => {
                self.summaries.push(key);
                self.checkpoints.insert(version, (key, bytes));
            }
            DeltaObjectKind::Compacted { .. } => self.summaries.push(key),
            DeltaObjectKind::StagedCommit { version, .. } => self.staged.push((version, key)),
            DeltaObjectKind::LastCheckpoint | DeltaObjectKind::Sidecar(_) => {}
        }
    }

    fn read(&self) -> Inspection {
        let mut table = Table::before(self.commits.keys().next().copied());
        let before_first = self.commits.keys().next().and_then(|first| first.checked_sub(1));
        if let Some(version) = before_first {
            self.seed(&mut table, version);
        }
        for (version, content) in &self.commits {
            table.expect(*version);
            table.add(*version, *content, |table| self.seed(table, *version));
        }
        if table.id.is_none() {
            self.ask_checksums(&mut table);
        }
        self.inspection(table)
    }

    /// Where the live files are not known, takes them from the checkpoint of a version.
    fn seed(&self, table: &mut Table, version: u64) {
        let Some((key, bytes)) = self.checkpoints.get(&version) else { return };
        if table.live.total().is_some() {
            return;
        }
        match read_checkpoint(bytes, version) {
            Ok((state, live)) => {
                table.take_state(&state);
                if !state.actions.contains_key("sidecar") {
                    table.live = live;
                }
            }
            Err(error) => table.damage(key, &error),
        }
    }

    /// Takes the table's id and protocol from the newest readable checksum.
    fn ask_checksums(&self, table: &mut Table) {
        for (key, bytes) in self.checksums.values().rev() {
            match Checksum::parse(bytes) {
                Ok(Checksum { metadata: Some(metadata), protocol, .. }) => {
                    table.id = Some(metadata.id);
                    table.protocol = table.protocol.take().or(protocol);
                    return;
                }
                Ok(_) => {}
                Err(error) => table.damage(key, &error),
            }
        }
    }

    fn inspection(&self, mut table: Table) -> Inspection {
        let is_published = |version: &u64| self.commits.contains_key(version);
        let (published, pending): (Vec<_>, Vec<_>) = self.staged.iter().partition(|(version, _)| is_published(version));
        let key = |(_, key): &(u64, &str)| (*key).to_owned();
        let mut not_commits: Vec<String> = self.summaries.iter().map(|key| (*key).to_owned()).collect();
        not_commits.extend(published.into_iter().map(key));
        not_commits.sort();
        table.damaged.sort_by(|one, other| one.file.cmp(&other.file));
        let newest = table.rows.last();
        let position = newest.map(|row| row.position.clone());
        Inspection {
            format: Format::Delta,
            latest: Latest {
                branch: MAIN.to_owned(),
                snapshot_id: position.clone(),
                position: position.clone(),
                file: newest.map(|row| row.file.clone()),
                schema_id_of_table: table.schema.as_ref().and_then(SchemaVersion::schema_id),
                total_records: newest.and_then(|row| row.total_records),
                sequence_number: None,
                table_id: table.id.clone(),
            },
            latest_by_branch: BTreeMap::from([(MAIN.to_owned(), position)]),
            earliest: Earliest { position: table.rows.first().map(|row| row.position.clone()) },
            consumers: BTreeMap::new(),
            tags_without_snapshot: Vec::new(),
            orphans: Vec::new(),
            pending: Some(pending.into_iter().map(key).collect()),
            not_commits,
            warnings: table.all_warnings(),
            commits: table.rows,
            damaged: table.damaged,
        }
    }
}

fn read_checkpoint(bytes: &[u8], version: u64) -> Result<(DeltaCommit, LiveFiles), FormatError> {
    let mut parser = Parser::new(version, LiveFiles::of_new_table());
    parser.push(bytes)?;
    let (state, mut live) = parser.finish()?;
    live.end_commit();
    Ok((state, live))
}

/// The table while its log is read.
struct Table {
    live: LiveFiles,
    last_version: Option<u64>,
    last_in_commit_timestamp: Option<i64>,
    id: Option<String>,
    schema: Option<SchemaVersion>,
    protocol: Option<Protocol>,
    is_coordinated: bool,
    rows: Vec<CommitRow>,
    warnings: Vec<String>,
    damaged: Vec<Damaged>,
}

impl Table {
    fn before(first_version: Option<u64>) -> Self {
        Self {
            live: if first_version == Some(0) { LiveFiles::of_new_table() } else { LiveFiles::of_unknown_table() },
            last_version: None,
            last_in_commit_timestamp: None,
            id: None,
            schema: None,
            protocol: None,
            is_coordinated: false,
            rows: Vec::new(),
            warnings: Vec::new(),
            damaged: Vec::new(),
        }
    }

    /// Notices versions that are missing before this one.
    fn expect(&mut self, version: u64) {
        let first_missing = self.last_version.replace(version).map_or(version, |last| last + 1);
        if first_missing < version {
            self.warnings.push(match version - 1 {
                one if one == first_missing => format!("version {one} is missing from the log"),
                last => format!("versions {first_missing} to {last} are missing from the log"),
            });
            self.live.lose();
        }
    }

    fn add(&mut self, version: u64, (key, bytes): Content<'_>, seed: impl FnOnce(&mut Self)) {
        let mut parser = Parser::new(version, std::mem::take(&mut self.live));
        let read = parser.push(bytes).and_then(|()| parser.finish());
        let (commit, live) = match read {
            Ok(read) => read,
            Err(error) => {
                self.live.lose();
                self.last_in_commit_timestamp = None;
                self.damage(key, &error);
                return seed(self);
            }
        };
        self.live = live;
        self.check(&commit);
        let delta_records = self.live.end_commit();
        self.take_state(&commit);
        seed(self);
        let mut row = commit.to_commit(self.schema.as_ref());
        row.delta_records = delta_records;
        row.total_records = self.live.total();
        row.extra.remove("partitions");
        row.extra.insert("schema_since".to_owned(), row.schema_id.take().map_or(Value::Null, Value::from));
        let always = [
            ("blind_append", Value::Null),
            ("deletion_vector_rows", Value::from(0)),
            ("txn", Value::Object(serde_json::Map::new())),
        ];
        for (field, absent) in always {
            row.extra.entry(field.to_owned()).or_insert(absent);
        }
        let has_kind = commit.info.as_ref().is_some_and(|info| info.operation.is_some());
        let mut row = CommitRow::new(key.to_owned(), MAIN, row);
        row.commit_kind = row.commit_kind.filter(|_| has_kind);
        self.rows.push(row);
    }

    /// Notices what speaks against one history.
    fn check(&mut self, commit: &DeltaCommit) {
        let version = commit.version;
        if commit.link_holds(self.last_in_commit_timestamp) == Some(false) {
            self.warnings
                .push(format!("version {version} has an in-commit timestamp that is not above the one before"));
        }
        self.last_in_commit_timestamp = commit.in_commit_timestamp();
        if let (Some(known), Some(said)) = (self.id.as_deref(), commit.table_id())
            && known != said
        {
            self.warnings
                .push(format!("from version {version} on the log is that of another table: {said}, not {known}"));
        }
    }

    fn take_state(&mut self, commit: &DeltaCommit) {
        self.schema = commit.schema_after(self.schema.as_ref());
        if let Some(metadata) = &commit.metadata {
            self.id = Some(metadata.id.clone());
            self.is_coordinated = metadata.commit_coordinator.is_some();
        }
        if commit.protocol.is_some() {
            self.protocol.clone_from(&commit.protocol);
        }
    }

    fn damage(&mut self, key: &str, error: &FormatError) {
        self.damaged.push(Damaged { file: key.to_owned(), problem: error.to_string() });
    }

    fn all_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let protocol = self.protocol.as_ref();
        if self.is_coordinated || protocol.is_some_and(Protocol::is_catalog_managed) {
            let words = "the table is catalog-managed: the catalog decides which commits are visible, \
                         and their files may follow late";
            warnings.push(words.to_owned());
        }
        let not_understood = protocol.map(Protocol::not_understood).unwrap_or_default();
        if !not_understood.is_empty() {
            let names = not_understood.join(", ");
            warnings
                .push(format!("the table demands what is not understood: {names}; commits may mean something else"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests;
