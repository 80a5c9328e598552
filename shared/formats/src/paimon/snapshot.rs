//! Snapshot files: one commit of a Paimon table, in every version of the format.

use lakebell_domain::digest::hex;
use std::collections::BTreeMap;
use std::fmt;

use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::version::{Fingerprint, Ordinal};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::MAX_FILE_BYTES;
use super::schema::ChangelogProducer;
use crate::error::{FormatError, FormatErrorKind};
use crate::json::{Object, missing, shorten, wrong};

/// The watermark that means "none": Java's `Long.MIN_VALUE`, which Flink writes before its first
/// watermark and batch jobs always (`SnapshotManager.isMissingWatermark`).
pub const WATERMARK_NONE: i64 = i64::MIN;

/// Longest uuid that is taken for a fingerprint as it is, in bytes. Real ones have 36.
const MAX_UUID_BYTES: usize = 64;
/// Longest commit kind, in bytes. The longest known one has 9.
const MAX_KIND_BYTES: usize = 64;
/// Longest text of [`Snapshot::to_commit`]'s `extra`, in characters.
const MAX_EXTRA_CHARS: usize = 256;

/// A writer's own number of a commit: a checkpoint id, or `9223372036854775807` for a batch job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CommitIdentifier {
    /// As written since 0.3.
    Number(i64),
    /// As written before 0.3.
    Text(String),
}

impl fmt::Display for CommitIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// What a snapshot file says. Fields that the reader does not need are left out, unknown ones are
/// ignored, as the format demands; null and absent are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its number, from 1 upwards, equal to that of the file.
    pub id: u64,
    /// Version of the snapshot format: 3 now, 2 in early 0.3, absent or 1 in table store 0.2. Later
    /// ones are read the same way.
    pub version: Option<i64>,
    /// The commit's identity, written since 2.x.
    pub uuid: Option<String>,
    /// The schema that it was written with.
    pub schema_id: Option<i64>,
    /// The writer: one name per streaming job.
    pub commit_user: Option<String>,
    /// The writer's own number of the commit. One number may give an APPEND and then a COMPACT.
    pub commit_identifier: Option<CommitIdentifier>,
    /// `APPEND`, `COMPACT`, `OVERWRITE`, `ANALYZE`, or one that is not known yet, kept as it is.
    pub commit_kind: String,
    /// The writer's clock at the commit, in milliseconds since 1970-01-01T00:00:00Z. Not monotone.
    pub time_millis: Option<i64>,
    /// The watermark as written, which may be [`WATERMARK_NONE`]; see [`Snapshot::watermark`].
    pub watermark_raw: Option<i64>,
    /// Rows after the commit, before merging: no row count on a table with a primary key.
    pub total_record_count: Option<i64>,
    /// Rows added less rows removed. Negative for overwrites, and a COMPACT's may differ from 0.
    pub delta_record_count: Option<i64>,
    /// Rows of the changelog: 0 or absent where there is none.
    pub changelog_record_count: Option<i64>,
    /// The file that lists the changelog; present exactly when the snapshot carries one.
    pub changelog_manifest_list: Option<String>,
    /// The next row id of a table with row tracking.
    pub next_row_id: Option<i64>,
    /// The software that wrote it, since 2.x.
    pub writer_version: Option<String>,
    /// What the writer was asked to do, since 2.x: `WRITE`, `DELETE`, `MERGE`, ...
    pub operation: Option<String>,
}

impl Snapshot {
    /// Reads a snapshot file of at most [`MAX_FILE_BYTES`].
    ///
    /// Only `id` and `commitKind` are required, which all versions write. A known field that holds
    /// something else than the format says is an error, because guessing at a commit's identity,
    /// kind or watermark would start work that should not start.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        Self::from_object(&Object::parse(bytes, MAX_FILE_BYTES)?)
    }

    /// Reads the file `snapshot-<expected_id>`, which must say that it is that snapshot.
    pub fn parse_named(bytes: &[u8], expected_id: u64) -> Result<Self, FormatError> {
        let snapshot = Self::parse(bytes)?;
        if snapshot.id == expected_id {
            return Ok(snapshot);
        }
        let problem = format!("the file is named snapshot-{expected_id} and says that it is snapshot {}", snapshot.id);
        Err(FormatError::new(FormatErrorKind::IdMismatch, problem))
    }

    pub(super) fn from_object(object: &Object) -> Result<Self, FormatError> {
        let id = object.required_id("id")?;
        if id == 0 {
            return Err(wrong("id", &Value::from(id), "snapshots are numbered from 1"));
        }
        let commit_kind = object.text("commitKind")?.ok_or_else(|| missing("commitKind"))?;
        if commit_kind.is_empty() || commit_kind.len() > MAX_KIND_BYTES {
            let value = Value::from(commit_kind);
            return Err(wrong("commitKind", &value, &format!("a kind has 1 to {MAX_KIND_BYTES} bytes")));
        }
        Ok(Self {
            id,
            version: object.long("version")?,
            uuid: object.text("uuid")?.filter(|uuid| !uuid.is_empty()),
            schema_id: object.long("schemaId")?,
            commit_user: object.text("commitUser")?,
            commit_identifier: commit_identifier(object)?,
            commit_kind,
            time_millis: object.long("timeMillis")?,
            watermark_raw: object.long("watermark")?,
            total_record_count: object.long("totalRecordCount")?,
            delta_record_count: object.long("deltaRecordCount")?,
            changelog_record_count: object.long("changelogRecordCount")?,
            changelog_manifest_list: object.text("changelogManifestList")?,
            next_row_id: object.long("nextRowId")?,
            writer_version: object.text("writerVersion")?,
            operation: object.text("operation")?,
        })
    }

    /// What tells this commit from another one with the same id: the uuid, or, in files older than
    /// uuids, 32 hex digits of a SHA-256 over commit user, identifier, kind and time. The id itself
    /// is not in it, because fingerprints are compared beside the ordinal.
    ///
    /// Recorded state holds these values: the digest must never change.
    pub fn fingerprint(&self) -> Fingerprint {
        if let Some(uuid) = self.uuid.as_ref().filter(|uuid| uuid.len() <= MAX_UUID_BYTES) {
            return Fingerprint::from(uuid.as_str());
        }
        let identifier = self.commit_identifier.as_ref().map(ToString::to_string);
        let mut parts = json!([self.commit_user, identifier, self.commit_kind, self.time_millis]);
        if let (Some(overlong), Value::Array(list)) = (&self.uuid, &mut parts) {
            list.push(Value::from(overlong.as_str()));
        }
        let digest = Sha256::digest(format!("paimon-snapshot-v1\n{parts}").as_bytes());
        Fingerprint::from(hex(&digest[..16]))
    }

    /// The event-time watermark; `None` where none was written or the one that means none.
    pub fn watermark(&self) -> Option<Millis> {
        self.watermark_raw.filter(|raw| *raw != WATERMARK_NONE).map(Millis)
    }

    /// Whether the commit carries a changelog. The count does not tell: old files write 0 without
    /// one, new ones leave it out.
    pub const fn has_changelog(&self) -> bool {
        self.changelog_manifest_list.is_some()
    }

    /// Whether the commit changed data, given the changelog producer of its schema. `None` as an
    /// argument is a schema that could not be read or a producer that is not known; then, as on a
    /// table without a producer, the commit kind alone decides. `None` as an answer is "unknown".
    ///
    /// | producer | APPEND | OVERWRITE | COMPACT, ANALYZE | unknown kind |
    /// |---|---|---|---|---|
    /// | none or unknown | yes | yes | no | unknown |
    /// | input, lookup, full-compaction | with a changelog | yes | with a changelog | yes with a changelog, else unknown |
    ///
    /// A delta count of 0 proves nothing: it may be an empty commit, or rows rewritten in place.
    ///
    /// With a producer, readers see a change when its changelog does (`ChangelogFollowUpScanner`),
    /// which for lookup and full-compaction is in a COMPACT; only OVERWRITE changes data without a
    /// changelog. A kind from the future that carries none might do as OVERWRITE does, or nothing,
    /// as COMPACT; so it is unknown, which is counted as data and reported rather than lost.
    pub fn changes_data(&self, producer: Option<ChangelogProducer>) -> Option<bool> {
        let writes_changelog = producer.is_some_and(ChangelogProducer::writes_changelog);
        match self.commit_kind.as_str() {
            "OVERWRITE" => Some(true),
            _ if writes_changelog && self.has_changelog() => Some(true),
            "APPEND" => Some(!writes_changelog),
            "COMPACT" | "ANALYZE" => Some(false),
            _ => None,
        }
    }

    /// Whether this snapshot can follow directly on one after which the table had `previous_total`
    /// rows: its total less its delta is that number. `None` where a count is missing.
    ///
    /// The check is free, because both counts are in the file, and catches most histories that were
    /// rewritten below a snapshot already seen. That it holds proves nothing: two histories can have
    /// equal counts.
    pub fn link_holds(&self, previous_total: Option<i64>) -> Option<bool> {
        let (previous, total, delta) = (previous_total?, self.total_record_count?, self.delta_record_count?);
        Some(previous.checked_add(delta) == Some(total))
    }

    /// The id of the snapshot before it on the same branch. It may have expired.
    pub const fn parent_id(&self) -> Option<u64> {
        if self.id > 1 { Some(self.id - 1) } else { None }
    }

    /// The commit in terms that all formats share. `tags` is empty: tags are other files.
    ///
    /// `extra` holds, where present: `uuid`, `commit_user`, `commit_identifier`,
    /// `changelog_records`, `next_row_id`, `writer_version`, `operation`, `format_version` unless 3,
    /// `has_changelog` where true, and `watermark_raw` where it is [`WATERMARK_NONE`]. Long texts are
    /// cut, so that a strange file cannot fill a store's item.
    pub fn to_commit(&self, producer: Option<ChangelogProducer>) -> Commit {
        Commit {
            ordinal: Ordinal(self.id),
            fingerprint: self.fingerprint(),
            snapshot_id: self.id.to_string(),
            parent_id: self.parent_id().map(|id| id.to_string()),
            kind: CommitKind(self.commit_kind.clone()),
            changes_data: self.changes_data(producer),
            watermark: self.watermark(),
            committed_at: self.time_millis.map(Millis),
            schema_id: self.schema_id,
            total_records: self.total_record_count,
            delta_records: self.delta_record_count,
            tags: Vec::new(),
            extra: self.extra(),
        }
    }

    fn extra(&self) -> BTreeMap<String, Value> {
        let text = |text: &Option<String>| text.as_deref().map(|text| Value::from(shorten(text, MAX_EXTRA_CHARS)));
        let identifier = self.commit_identifier.as_ref().map(|identifier| match identifier {
            CommitIdentifier::Number(number) => Value::from(*number),
            CommitIdentifier::Text(text) => Value::from(shorten(text, MAX_EXTRA_CHARS)),
        });
        let entries = [
            ("uuid", text(&self.uuid)),
            ("commit_user", text(&self.commit_user)),
            ("commit_identifier", identifier),
            ("changelog_records", self.changelog_record_count.map(Value::from)),
            ("next_row_id", self.next_row_id.map(Value::from)),
            ("writer_version", text(&self.writer_version)),
            ("operation", text(&self.operation)),
            ("format_version", self.version.filter(|version| *version != 3).map(Value::from)),
            ("has_changelog", self.has_changelog().then_some(Value::Bool(true))),
            ("watermark_raw", self.watermark_raw.filter(|raw| *raw == WATERMARK_NONE).map(Value::from)),
        ];
        entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

fn commit_identifier(object: &Object) -> Result<Option<CommitIdentifier>, FormatError> {
    let field = "commitIdentifier";
    match object.get(field) {
        Some(Value::String(text)) => Ok(Some(CommitIdentifier::Text(text.clone()))),
        _ => Ok(object.long(field)?.map(CommitIdentifier::Number)),
    }
}

#[cfg(test)]
mod tests;
