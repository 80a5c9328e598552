//! Apache Paimon: which objects of a table are commits, and what they say.
//!
//! A table's root holds `snapshot/`, `schema/`, `tag/`, `consumer/`, `changelog/`, data, and
//! `branch/branch-NAME/`, which repeats the layout. The file `snapshot/snapshot-N` *is* commit N:
//! once it exists, the commit is visible. Ids rise by one per branch, but a rollback, a
//! fast-forward of a branch or a drop and create uses them again with other content, so an id
//! alone never identifies a commit; see [`Snapshot::fingerprint`].
//!
//! Facts are those of the public format: `docs/docs/concepts/spec/snapshot.md` and the classes
//! `Snapshot`, `SnapshotManager`, `BranchManager`, `HintFileUtils`, `Tag` and `Consumer` of
//! apache/paimon (2.x line), and files written by Paimon 0.2 to 2.x and pypaimon 2.1.

mod consumer;
mod inspect;
mod keys;
mod schema;
mod snapshot;
mod tag;

pub use consumer::Consumer;
pub use inspect::{inspect, wants};
pub use keys::{
    BRANCH_PREFIX, Hint, PaimonObject, PaimonObjectKind, classify, consumer_key, consumer_prefix, schema_key,
    schema_prefix, snapshot_key, snapshot_prefix, tag_key, tag_prefix,
};
pub use schema::{ChangelogProducer, Schema};
pub use snapshot::{CommitIdentifier, Snapshot, WATERMARK_NONE};
pub use tag::{Tag, TagCreateTime};

/// Largest snapshot, schema, tag or consumer file that is parsed, in bytes. Real ones have a few
/// hundred bytes; a schema of a thousand columns has about 100 KB.
pub const MAX_FILE_BYTES: usize = 1 << 20;
