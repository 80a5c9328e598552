//! From a completed instant to a commit in terms that all formats share.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use lakebell_domain::commit::{Commit, CommitKind};
use lakebell_domain::version::{Fingerprint, Ordinal};
use serde_json::Value;

use super::instant::Instant;
use super::keys::{Action, InstantFile};
use super::metadata::{CommitMetadata, Names};
use crate::json::shorten;

/// Most names of one kind in `extra`, so that a strange file cannot fill a store's item.
const MAX_EXTRA_NAMES: usize = 50;
/// Longest text in `extra`, in characters.
const MAX_EXTRA_CHARS: usize = 256;

/// Operations that rewrite files without changing what a reader sees.
const MAINTENANCE: [&str; 5] = ["COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA"];

/// What names a commit for ever, in every layout: its instant and its action. A savepoint has the
/// instant of the commit that it protects, so the instant alone does not name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId {
    /// When it began.
    pub instant: Instant,
    /// What it did.
    pub action: Action,
}

impl CommitId {
    /// The id of a file's instant.
    pub const fn of(file: &InstantFile) -> Self {
        Self { instant: file.instant, action: file.action }
    }

    /// Its text, which recorded state holds and [`CommitId::from_str`] reads: `INSTANT.ACTION`.
    pub fn fingerprint(self) -> Fingerprint {
        Fingerprint::from(self.to_string())
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.instant, self.action)
    }
}

/// A text that is no `INSTANT.ACTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a Hudi commit is its instant and a known action, with a dot between them")]
pub struct NotACommitId;

impl FromStr for CommitId {
    type Err = NotACommitId;

    fn from_str(text: &str) -> Result<Self, NotACommitId> {
        let (instant, action) = text.split_once('.').ok_or(NotACommitId)?;
        let instant = instant.parse().map_err(|_| NotACommitId)?;
        Ok(Self { instant, action: Action::from_name(action).ok_or(NotACommitId)? })
    }
}

/// Whether a completed action changed data: by the action first, since only commits, delta commits,
/// replace commits and restores can, and then by the operation type.
///
/// An absent operation type (old files) and one that is not known count as data, because a missed
/// run costs more than a needless one. The one exception is a file without operation type that
/// carries the older mark of a compaction. Counts decide nothing.
pub fn changes_data(action: Action, metadata: &CommitMetadata) -> bool {
    match metadata.operation_type.as_deref() {
        _ if !action.can_change_data() => false,
        _ if !action.writes() => true,
        Some(operation) => !MAINTENANCE.contains(&operation),
        None => !metadata.compacted,
    }
}

/// The ordinal that the format itself gives: the completion time as a number. `None` in layout 1 and
/// for instants that an upgrade took over under their old names; there, ordinals are the order in
/// which the commits were first observed, which the caller keeps.
pub fn ordinal(file: &InstantFile) -> Option<Ordinal> {
    file.completion.map(|completion| Ordinal(completion.as_number()))
}

/// The commit in terms that all formats share, with an ordinal from [`ordinal`] or from the caller.
/// For actions that write nothing, give [`CommitMetadata::empty`].
///
/// `extra` holds `instant`, `completion` where written, else `order` = `observation`;
/// `operation_type` where written, `encoding`, `inserts`, `updates`, `deletes`, `write_stats`, and
/// the lists `partitions`, `replaced_partitions` where there are any, and `extra_metadata_keys`,
/// of which at most 50 entries are kept; `<list>_listed` says how many there are.
pub fn to_commit(file: &InstantFile, metadata: &CommitMetadata, ordinal: Ordinal) -> Commit {
    let changes_data = changes_data(file.action, metadata);
    Commit {
        ordinal,
        fingerprint: CommitId::of(file).fingerprint(),
        snapshot_id: file.instant.to_string(),
        parent_id: None,
        kind: CommitKind(file.action.name().to_owned()),
        changes_data: Some(changes_data),
        watermark: None,
        committed_at: file.position().millis_as_utc(),
        schema_id: None,
        total_records: None,
        delta_records: (changes_data && file.action.writes()).then(|| metadata.delta_records()),
        tags: Vec::new(),
        extra: extra(file, metadata),
    }
}

fn extra(file: &InstantFile, metadata: &CommitMetadata) -> BTreeMap<String, Value> {
    let observed = file.completion.is_none().then(|| Value::from("observation"));
    let entries = [
        ("instant", Some(Value::from(file.instant.to_string()))),
        ("completion", file.completion.map(|completion| Value::from(completion.to_string()))),
        ("order", observed),
        ("operation_type", metadata.operation_type.as_deref().map(Value::from)),
        ("encoding", Some(Value::from(metadata.encoding.name()))),
        ("inserts", Some(Value::from(metadata.inserts))),
        ("updates", Some(Value::from(metadata.updates))),
        ("deletes", Some(Value::from(metadata.deletes))),
        ("write_stats", Some(Value::from(metadata.write_stats))),
    ];
    let mut extra: BTreeMap<_, _> =
        entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    add_names(&mut extra, "partitions", &metadata.partitions);
    add_names(&mut extra, "extra_metadata_keys", &metadata.extra_metadata_keys);
    if !metadata.replaced_partitions.is_empty() {
        add_names(&mut extra, "replaced_partitions", &metadata.replaced_partitions);
    }
    extra
}

/// Adds a list of names, and how many there are where some are left out.
pub(super) fn add_names(extra: &mut BTreeMap<String, Value>, field: &str, names: &Names) {
    let shown: Vec<_> = names.iter().take(MAX_EXTRA_NAMES).map(|name| shorten(name, MAX_EXTRA_CHARS)).collect();
    if names.listed() > shown.len() as u64 {
        extra.insert(format!("{field}_listed"), Value::from(names.listed()));
    }
    extra.insert(field.to_owned(), Value::from(shown));
}

#[cfg(test)]
mod tests;
