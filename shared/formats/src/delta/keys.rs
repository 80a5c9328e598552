//! Object keys: what an object of a Delta table is, told from its key alone, and the keys to read.

/// Where the log of a table lies, relative to its root.
pub const LOG_FOLDER: &str = "_delta_log/";

/// What the keys of all numbered objects of the log start with, and no other object: a version has
/// at most 19 digits and is written with 20. A listing below this prefix meets no staged commit, no
/// sidecar and no hint.
pub const NUMBERED_PREFIX: &str = "_delta_log/0";

const LOG: &str = "_delta_log";
const STAGED: &str = "_staged_commits";
const SIDECARS: &str = "_sidecars";
const LAST_CHECKPOINT: &str = "_last_checkpoint";

/// How a checkpoint is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CheckpointShape {
    /// `N.checkpoint.parquet`.
    Single,
    /// `N.checkpoint.PART.PARTS.parquet`, one of several.
    Part {
        /// Which one, from 1.
        part: u64,
        /// Of how many.
        parts: u64,
    },
    /// `N.checkpoint.ID.json`, version 2: one JSON action a line, as in a commit, and no commit.
    Json(String),
    /// `N.checkpoint.ID.parquet`, version 2.
    Parquet(String),
}

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeltaObjectKind {
    /// `_delta_log/N.json`, N from 0 with 20 digits: the commit of version N. The only kind that is
    /// one.
    Commit(u64),
    /// A checkpoint: the table's whole state at a version.
    Checkpoint {
        /// The version whose state it is.
        version: u64,
        /// How it is written.
        shape: CheckpointShape,
    },
    /// `_delta_log/FROM.TO.compacted.json`: what several commits amount to. Not a commit.
    Compacted {
        /// The first version that it covers.
        from: u64,
        /// The last version that it covers.
        to: u64,
    },
    /// `_delta_log/N.crc`: facts to check version N against.
    Checksum(u64),
    /// `_delta_log/_last_checkpoint`: a hint that may be stale, wrong or absent.
    LastCheckpoint,
    /// `_delta_log/_staged_commits/N.ID.json`: a proposal for version N of a catalog-managed table.
    /// Only the catalog knows whether it won; the commit follows under its own name, maybe later.
    StagedCommit {
        /// The version that it is proposed for.
        version: u64,
        /// Tells it from other proposals.
        id: String,
    },
    /// `_delta_log/_sidecars/NAME`: a part of a version 2 checkpoint.
    Sidecar(String),
}

/// An object of a Delta table's log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeltaObject {
    /// The table's root, without a slash at the end; empty where the key is relative to the root.
    pub root: String,
    /// What it is.
    pub kind: DeltaObjectKind,
}

impl DeltaObject {
    /// The object's key relative to the table's root.
    pub fn relative_key(&self) -> String {
        match &self.kind {
            DeltaObjectKind::Commit(version) => commit_key(*version),
            DeltaObjectKind::Checkpoint { version, shape } => {
                let rest = match shape {
                    CheckpointShape::Single => "parquet".to_owned(),
                    CheckpointShape::Part { part, parts } => format!("{part:010}.{parts:010}.parquet"),
                    CheckpointShape::Json(id) => format!("{id}.json"),
                    CheckpointShape::Parquet(id) => format!("{id}.parquet"),
                };
                format!("{LOG_FOLDER}{version:020}.checkpoint.{rest}")
            }
            DeltaObjectKind::Compacted { from, to } => format!("{LOG_FOLDER}{from:020}.{to:020}.compacted.json"),
            DeltaObjectKind::Checksum(version) => checksum_key(*version),
            DeltaObjectKind::LastCheckpoint => last_checkpoint_key(),
            DeltaObjectKind::StagedCommit { version, id } => format!("{LOG_FOLDER}{STAGED}/{version:020}.{id}.json"),
            DeltaObjectKind::Sidecar(name) => format!("{LOG_FOLDER}{SIDECARS}/{name}"),
        }
    }

    /// The version whose number the object's name starts with; `None` for hints and sidecars.
    pub const fn version(&self) -> Option<u64> {
        match &self.kind {
            DeltaObjectKind::Commit(version)
            | DeltaObjectKind::Checkpoint { version, .. }
            | DeltaObjectKind::Compacted { from: version, .. }
            | DeltaObjectKind::Checksum(version)
            | DeltaObjectKind::StagedCommit { version, .. } => Some(*version),
            DeltaObjectKind::LastCheckpoint | DeltaObjectKind::Sidecar(_) => None,
        }
    }
}

/// Tells what an object is from its key, which must already be decoded (S3 notifications encode
/// it; EventBridge does not).
///
/// `None` for everything else: data, `_change_data/`, deletion vectors, directory markers, temporary
/// objects (`.tmp/N.json.ID`, `_commit_ID.json.tmp`), and numbers that no writer makes: with other
/// than 20 digits or above 63 bits.
///
/// Only the segments from the last `_delta_log` on decide, because the path of the root may itself
/// contain any word.
///
/// ```
/// use lakebell_formats::delta::{DeltaObjectKind, classify};
///
/// let object = classify("lake/orders/_delta_log/00000000000000000007.json").unwrap();
/// assert_eq!((object.root.as_str(), object.kind), ("lake/orders", DeltaObjectKind::Commit(7)));
/// let compacted = "lake/orders/_delta_log/00000000000000000001.00000000000000000004.compacted.json";
/// assert_eq!(classify(compacted).unwrap().kind, DeltaObjectKind::Compacted { from: 1, to: 4 });
/// assert!(classify("lake/orders/_change_data/00000000000000000007.json").is_none());
/// ```
pub fn classify(object_key: &str) -> Option<DeltaObject> {
    let (path, name) = object_key.rsplit_once('/')?;
    let (above, folder) = split_last(path);
    let (root, kind) = match folder {
        LOG => (above, in_log(name)?),
        STAGED | SIDECARS => {
            let (root, log) = split_last(above);
            let kind = if folder == STAGED { staged(name)? } else { sidecar(name)? };
            (root, (log == LOG).then_some(kind)?)
        }
        _ => return None,
    };
    Some(DeltaObject { root: root.to_owned(), kind })
}

/// The key of a commit, relative to the table's root.
///
/// In a listing, every object of a version comes before its commit, so that a listing that starts
/// after this key shows later versions only.
pub fn commit_key(version: u64) -> String {
    format!("{LOG_FOLDER}{version:020}.json")
}

/// The key of a version's checksum file, relative to the table's root.
pub fn checksum_key(version: u64) -> String {
    format!("{LOG_FOLDER}{version:020}.crc")
}

/// The key of the hint to the newest checkpoint, relative to the table's root.
pub fn last_checkpoint_key() -> String {
    format!("{LOG_FOLDER}{LAST_CHECKPOINT}")
}

fn in_log(name: &str) -> Option<DeltaObjectKind> {
    if name == LAST_CHECKPOINT {
        return Some(DeltaObjectKind::LastCheckpoint);
    }
    let (digits, rest) = name.split_once('.')?;
    let version = number(digits, 20)?;
    match rest {
        "json" => return Some(DeltaObjectKind::Commit(version)),
        "crc" => return Some(DeltaObjectKind::Checksum(version)),
        _ => {}
    }
    if let Some(rest) = rest.strip_prefix("checkpoint.") {
        return Some(DeltaObjectKind::Checkpoint { version, shape: checkpoint_shape(rest)? });
    }
    let to = number(rest.strip_suffix(".compacted.json")?, 20)?;
    Some(DeltaObjectKind::Compacted { from: version, to })
}

fn checkpoint_shape(rest: &str) -> Option<CheckpointShape> {
    let parts: Vec<&str> = rest.split('.').collect();
    match parts.as_slice() {
        ["parquet"] => Some(CheckpointShape::Single),
        [part, parts, "parquet"] => Some(CheckpointShape::Part { part: number(part, 10)?, parts: number(parts, 10)? }),
        [id, "json"] if !id.is_empty() => Some(CheckpointShape::Json((*id).to_owned())),
        [id, "parquet"] if !id.is_empty() => Some(CheckpointShape::Parquet((*id).to_owned())),
        _ => None,
    }
}

fn staged(name: &str) -> Option<DeltaObjectKind> {
    let (digits, rest) = name.split_once('.')?;
    let id = rest.strip_suffix(".json").filter(|id| !id.is_empty())?;
    Some(DeltaObjectKind::StagedCommit { version: number(digits, 20)?, id: id.to_owned() })
}

fn sidecar(name: &str) -> Option<DeltaObjectKind> {
    (!name.is_empty()).then(|| DeltaObjectKind::Sidecar(name.to_owned()))
}

fn split_last(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A number as writers write it: exactly so many decimal digits, 63 bits.
fn number(digits: &str, width: usize) -> Option<u64> {
    if digits.len() != width || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok())
}

#[cfg(test)]
mod tests;
