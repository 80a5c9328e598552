//! Delta Lake: which objects of a table are commits, and what they say.
//!
//! A table's root holds data and `_delta_log/`. The file `_delta_log/N.json`, N written with 20
//! digits, *is* the commit of version N: once it exists, the commit is visible. Versions rise by
//! one from 0. Dropping and creating a table, and writers without a lock, use a version again with
//! other content, so a version alone never identifies a commit; see [`DeltaCommit::fingerprint`].
//!
//! A commit file holds one JSON action a line and can have hundreds of megabytes; it is read as a
//! stream by [`CommitReader`]. Checkpoints are not needed to follow a log.
//!
//! Facts are those of the public protocol (`PROTOCOL.md` of delta-io/delta) and of files written by
//! Spark with Delta Lake and by delta-rs 1.6.

mod action;
mod checkpoint;
mod commit;
mod files;
mod inspect;
mod keys;
mod metadata;
mod protocol;
mod reader;
mod search;

pub use checkpoint::{Checksum, LastCheckpoint};
pub use commit::{CommitInfo, DeltaCommit, FileTotals, RecordTotal};
pub use inspect::{inspect, reads, wants};
pub use keys::{
    CheckpointShape, DeltaObject, DeltaObjectKind, LOG_FOLDER, NUMBERED_PREFIX, checksum_key, classify, commit_key,
    last_checkpoint_key,
};
pub use metadata::{Metadata, SchemaVersion};
pub use protocol::Protocol;
pub use reader::CommitReader;
pub use search::NewestSearch;

/// Longest line of a log file that is read, in bytes. A line is one action; the longest real ones
/// carry the schema of a table with thousands of columns.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Largest `_last_checkpoint` or checksum file that is parsed, in bytes.
pub const MAX_FILE_BYTES: usize = 16 << 20;
