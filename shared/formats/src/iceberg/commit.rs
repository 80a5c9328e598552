//! A metadata file in terms that all formats share.

use lakebell_domain::digest::hex;
use std::collections::BTreeMap;

use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::version::{Fingerprint, Ordinal};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::keys::file_name;
use super::lineage::{Movement, Step};
use super::metadata::{Metadata, Snapshot};
use crate::json::shorten;

/// Most operations that `extra` lists, the newest ones.
const MAX_LISTED: usize = 20;
/// Longest text in `extra`, in characters.
const MAX_EXTRA_CHARS: usize = 256;

impl Metadata {
    /// What tells this commit from another one with the same ordinal: 32 hex digits of a SHA-256
    /// over the table's uuid, the file's name and the snapshot that the branch is at.
    ///
    /// Recorded state holds these values: the digest must never change.
    pub fn fingerprint(&self, file: &str, branch: &str) -> Fingerprint {
        let uuid = self.table_uuid.as_ref().map(|uuid| uuid.to_ascii_lowercase());
        let parts = json!([uuid, file_name(file), self.head(branch)]);
        let digest = Sha256::digest(format!("iceberg-commit-v1\n{parts}").as_bytes());
        Fingerprint::from(hex(&digest[..16]))
    }

    /// The commit of a metadata file to a branch, given its ordinal and the step that it made.
    /// `None` where the branch has no snapshot.
    ///
    /// A file is one commit, however many snapshots it adds: `kind` is the operation of the newest,
    /// `delta_records` sums them up, `watermark` is the highest of them, and `tags` name any of
    /// them. `schema_id` is the table's, which may have moved without a snapshot.
    ///
    /// `extra` holds `file`, `format_version`, `sequence_number` where above 0, `table_uuid`,
    /// `operations` where there are several, and `movement` where it is a gap or a rewrite.
    pub fn to_commit(&self, file: &str, branch: &str, ordinal: Ordinal, step: &Step<'_>) -> Option<Commit> {
        let head_id = step.head_id?;
        let newest = step.new.last().copied().or(step.head);
        let named: Vec<i64> = step.new.iter().map(|snapshot| snapshot.id).chain([head_id]).collect();
        Some(Commit {
            ordinal,
            fingerprint: self.fingerprint(file, branch),
            snapshot_id: head_id.to_string(),
            parent_id: step.head.and_then(|head| head.parent_id).map(|id| id.to_string()),
            kind: CommitKind(newest.map_or("overwrite", Snapshot::kind).to_owned()),
            changes_data: step.changes_data(),
            watermark: step.new.iter().copied().chain(step.head).filter_map(|snapshot| snapshot.watermark).max(),
            committed_at: self.last_updated_ms.or_else(|| step.head?.timestamp_ms).map(Millis),
            schema_id: self.current_schema_id,
            total_records: step.head.and_then(|head| head.total_records),
            delta_records: delta(&step.new),
            tags: self.tags().filter(|(_, id)| named.contains(id)).map(|(name, _)| name.to_owned()).collect(),
            extra: self.commit_extra(file, step),
        })
    }

    fn commit_extra(&self, file: &str, step: &Step<'_>) -> BTreeMap<String, Value> {
        let text = |text: &str| Value::from(shorten(text, MAX_EXTRA_CHARS));
        let operations = || {
            let from = step.new.len().saturating_sub(MAX_LISTED);
            step.new[from..].iter().map(|snapshot| snapshot.kind()).collect::<Vec<_>>()
        };
        let movement = match step.movement {
            Movement::PastGap => Some("gap"),
            Movement::Rewritten => Some("rewrite"),
            Movement::Unchanged | Movement::Advanced | Movement::Gone => None,
        };
        let number = step.head.map(|head| head.sequence_number).filter(|number| *number > 0);
        let entries = [
            ("file", Some(text(file_name(file)))),
            ("format_version", Some(Value::from(self.format_version))),
            ("table_uuid", self.table_uuid.as_deref().map(text)),
            ("sequence_number", number.map(Value::from)),
            ("operations", (step.new.len() > 1).then(|| Value::from(operations()))),
            ("movement", movement.map(Value::from)),
        ];
        entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Rows added less rows removed, over all snapshots; `None` where there are none, and where one
/// does not count.
fn delta(snapshots: &[&Snapshot]) -> Option<i64> {
    let of = |snapshot: &Snapshot| match (snapshot.added_records, snapshot.deleted_records) {
        (None, None) if snapshot.total_records.is_none() => None,
        (added, deleted) => added.unwrap_or(0).checked_sub(deleted.unwrap_or(0)),
    };
    let mut snapshots = snapshots.iter().copied();
    let first = of(snapshots.next()?)?;
    snapshots.try_fold(first, |sum, snapshot| sum.checked_add(of(snapshot)?))
}

#[cfg(test)]
mod tests;
