//! One row of an inspection: what a metadata file did, compared with the one before it.

use std::collections::{BTreeMap, HashSet};

use lakebell_domain::version::Ordinal;
use serde_json::{Map, Value, json};

use crate::iceberg::MAIN;
use crate::iceberg::lineage::Known;
use crate::iceberg::metadata::{Metadata, Operation, RefKind, Snapshot};
use crate::inspect::{CommitRow, Token};

/// Most snapshots that one row lists; a file that is the first one to be there, or that comes after
/// a long gap, may add thousands.
const MAX_LISTED: usize = 1_000;

/// The row of a file.
pub(super) fn of(
    file: &str,
    position: Token,
    ordinal: Ordinal,
    metadata: &Metadata,
    before: Option<&Metadata>,
) -> CommitRow {
    let change = Change::new(metadata, before);
    let shown = change.branch_head.and_then(|id| metadata.snapshot(id));
    CommitRow {
        file: file.to_owned(),
        position,
        snapshot_id: change.branch_head.map(id),
        parent_id: shown.and_then(|shown| shown.parent_id).map(id),
        schema_id: metadata.current_schema_id,
        commit_kind: change.added.last().and_then(|newest| newest.operation.as_ref()).map(|it| it.as_str().to_owned()),
        changes_data: change.changes_data(),
        watermark: shown.and_then(|shown| shown.watermark).map(|watermark| watermark.0),
        commit_time_ms: metadata.last_updated_ms,
        total_records: shown.and_then(|shown| shown.total_records),
        delta_records: change.delta_records(),
        tags: metadata.tags().map(|(name, _)| name.to_owned()).collect(),
        branch: change.branch.to_owned(),
        extra: extra(ordinal, &change, shown),
    }
}

/// A snapshot's id: a number, as the format has it.
pub(super) fn id(id: i64) -> Token {
    u64::try_from(id).map_or_else(|_| Token::Text(id.to_string()), Token::Number)
}

/// A file beside the one before it.
struct Change<'m> {
    metadata: &'m Metadata,
    before: Option<&'m Metadata>,
    /// The branch that moved: main if it did or none did.
    branch: &'m str,
    branch_head: Option<i64>,
    /// The snapshots that the file before did not list, in the file's order, on whatever line. Of
    /// the first file, only the current one can be said to be new.
    added: Vec<&'m Snapshot>,
    removed: Vec<i64>,
    main_moved: bool,
}

impl<'m> Change<'m> {
    fn new(metadata: &'m Metadata, before: Option<&'m Metadata>) -> Self {
        let current = metadata.current_snapshot_id();
        let main_moved = current != before.and_then(Metadata::current_snapshot_id);
        let old_head = |branch: &str| before.and_then(|before| before.head(branch));
        let moved = metadata.branches().find(|(name, head)| old_head(name) != Some(*head)).map(|(name, _)| name);
        let branch = if main_moved { MAIN } else { moved.unwrap_or(MAIN) };
        let (added, removed) = match before {
            None => (current.and_then(|id| metadata.snapshot(id)).into_iter().collect(), Vec::new()),
            Some(before) => differences(metadata, before),
        };
        Self { metadata, before, branch, branch_head: metadata.head(branch), added, removed, main_moved }
    }

    fn was_listed(&self, id: i64) -> bool {
        self.before.is_some_and(|before| before.snapshot(id).is_some())
    }

    /// The rule of the step from what the file before says of the branch. Cutting a branch at a
    /// snapshot that was there changes nothing.
    fn changes_data(&self) -> Option<bool> {
        let is_cut = self.branch != MAIN && self.branch_head.is_some_and(|head| self.was_listed(head));
        let before = self.before.and_then(|before| Some((before, before.head(self.branch)?)));
        let known = match (self.before, before) {
            (_, Some((before, id))) => {
                Known::Snapshot { id, sequence_number: before.snapshot(id).map(|snapshot| snapshot.sequence_number) }
            }
            (Some(_), None) if is_cut => return Some(false),
            (Some(before), None) => return self.changes_since(before),
            // Nothing is known of what came before the first file, and so only of its head.
            (None, None) => {
                let head = self.branch_head.and_then(|id| self.metadata.snapshot(id));
                return head.map_or(Some(false), |head| self.metadata.changes_data(head));
            }
        };
        self.metadata.step(self.branch, known).changes_data()
    }

    /// A branch that was not there, or main without a snapshot: what its line holds that is new.
    fn changes_since(&self, before: &Metadata) -> Option<bool> {
        let step = self.metadata.step(self.branch, Known::Nothing);
        let new: Vec<_> = step.new.iter().filter(|snapshot| before.snapshot(snapshot.id).is_none()).collect();
        if new.is_empty() {
            return step.changes_data();
        }
        let answers: Vec<_> = new.into_iter().map(|snapshot| self.metadata.changes_data(snapshot)).collect();
        if answers.contains(&Some(true)) {
            Some(true)
        } else if answers.contains(&None) {
            None
        } else {
            Some(false)
        }
    }

    fn delta_records(&self) -> Option<i64> {
        let of = |snapshot: &Snapshot| {
            snapshot.added_records.unwrap_or(0).checked_sub(snapshot.deleted_records.unwrap_or(0))
        };
        let mut added = self.added.iter();
        let first = of(added.next()?)?;
        added.try_fold(first, |sum, snapshot| sum.checked_add(of(snapshot)?))
    }
}

fn differences<'m>(metadata: &'m Metadata, before: &Metadata) -> (Vec<&'m Snapshot>, Vec<i64>) {
    let added = metadata.snapshots().iter().filter(|snapshot| before.snapshot(snapshot.id).is_none()).collect();
    let removed: HashSet<i64> =
        before.snapshots().iter().map(|old| old.id).filter(|id| metadata.snapshot(*id).is_none()).collect();
    let mut removed: Vec<_> = removed.into_iter().collect();
    removed.sort_unstable();
    (added, removed)
}

fn extra(ordinal: Ordinal, change: &Change<'_>, shown: Option<&Snapshot>) -> BTreeMap<String, Value> {
    let metadata = change.metadata;
    let current = metadata.current_snapshot_id();
    let to_older = change.main_moved && current.is_some_and(|id| change.was_listed(id));
    let first_listed = change.added.len().saturating_sub(MAX_LISTED);
    let added: Vec<_> = change.added[first_listed..].iter().map(|snapshot| details(snapshot)).collect();
    let entries = [
        ("ordinal", json!(ordinal.0)),
        ("format_version", json!(metadata.format_version)),
        ("table_uuid", json!(metadata.table_uuid)),
        ("current_snapshot_id", json!(current)),
        ("current_snapshot_moved", json!(change.main_moved)),
        ("moved_to_older_snapshot", json!(to_older)),
        ("snapshots_added", json!(added)),
        ("snapshots_removed", json!(&change.removed[..change.removed.len().min(MAX_LISTED)])),
        ("snapshots_in_file", json!(metadata.snapshots().len())),
        ("sequence_number", json!(shown.map(|shown| shown.sequence_number))),
        ("last_sequence_number", json!(metadata.last_sequence_number)),
        ("snapshot_schema_id", json!(shown.and_then(|shown| shown.schema_id))),
        ("refs", refs(metadata)),
    ];
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn details(snapshot: &Snapshot) -> Value {
    json!({
        "snapshot_id": snapshot.id,
        "parent_id": snapshot.parent_id,
        "sequence_number": snapshot.sequence_number,
        "timestamp_ms": snapshot.timestamp_ms,
        "operation": snapshot.operation.as_ref().map(Operation::as_str),
        "added_records": snapshot.added_records.unwrap_or(0),
        "deleted_records": snapshot.deleted_records.unwrap_or(0),
    })
}

fn refs(metadata: &Metadata) -> Value {
    let entries = metadata.refs.iter().take(MAX_LISTED).map(|(name, it)| {
        let kind = match it.kind {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        };
        (name.clone(), json!({"type": kind, "snapshot_id": it.snapshot_id}))
    });
    Value::Object(entries.collect::<Map<_, _>>())
}
