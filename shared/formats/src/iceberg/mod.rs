//! Apache Iceberg: which objects of a table may be commits, and what they say.
//!
//! Every commit writes a new metadata file, which holds the whole table: its snapshots, its
//! branches and tags, and the names of the metadata files before it. Unlike with the other formats
//! **the object alone proves nothing**: writers put it there before the catalog decides, and who
//! loses a race leaves its file behind. So a reader
//!
//! 1. tells metadata files from other objects by their key: [`classify`];
//! 2. reads one in a single pass and in little memory: [`Metadata::parse`], [`Metadata::read`];
//! 3. finds out which files are on the table's chain, by the catalog's pointer where there is a
//!    catalog, else by what the files say of each other: [`resolve`];
//! 4. gives each file on the chain its ordinal: [`first_ordinal`], [`ordinal_after`];
//! 5. asks what happened to a branch since the snapshot that it knows: [`Metadata::step`];
//! 6. and turns that into a commit: [`Metadata::to_commit`].
//!
//! Snapshot ids are random and order nothing; neither do times, nor, in version 1, sequence
//! numbers. Format versions 1 to 3 are read.
//!
//! Facts are those of the public format: `format/spec.md` and the classes `TableMetadataParser`,
//! `SnapshotParser`, `SnapshotRefParser`, `SnapshotSummary`, `BaseMetastoreTableOperations` and
//! `HadoopTableOperations` of apache/iceberg, and files written by Java, Spark and pyiceberg 0.12.

mod chain;
mod commit;
mod gzip;
mod inspect;
mod keys;
mod lineage;
mod metadata;
mod ordinal;
mod read;
mod visit;
mod watermark;

pub use chain::{Anchor, Chain, ChainLink, resolve};
pub use inspect::{InspectOptions, inspect, inspect_with, wants};
pub use keys::{
    IcebergObject, IcebergObjectKind, METADATA_PREFIX, MetadataName, VERSION_HINT, classify, file_name, file_number,
};
pub use lineage::{Descent, Known, Movement, Step};
pub use metadata::{LogEntry, Metadata, Operation, Ref, RefKind, Snapshot};
pub use ordinal::{first_ordinal, ordinal_after};
pub use read::ReadOptions;

/// The branch that a table's readers see unless they name another.
pub const MAIN: &str = "main";

/// Most JSON that is read of one metadata file, in bytes, after decompression. A file of 50,000
/// snapshots has about 35 MB.
pub const MAX_JSON_BYTES: u64 = 256 << 20;
/// Most snapshots that one metadata file may hold. What is kept of a snapshot has about 200 bytes.
pub const MAX_SNAPSHOTS: usize = 150_000;
/// Most branches and tags that one metadata file may hold.
pub const MAX_REFS: usize = 20_000;
/// How many entries of the log of earlier metadata files are kept, the newest ones. Writers keep
/// 100 unless told otherwise.
pub const MAX_LOG_ENTRIES: usize = 1_000;
