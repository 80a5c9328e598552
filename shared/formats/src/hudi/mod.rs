//! Apache Hudi: which objects of a table are commits, and what they say.
//!
//! A table's root holds data and `.hoodie/`. An action is three files, written one after the
//! other: requested, inflight, completed. The completed one makes it visible. Layout 1 of the
//! timeline (table versions up to 7) has `.hoodie/INSTANT.ACTION`; layout 2 has
//! `.hoodie/timeline/INSTANT_COMPLETION.ACTION`. The instant is when an action began and names it
//! for ever; commits are ordered by when they completed, which only layout 2 writes down.
//!
//! `.hoodie/metadata/` is a whole Hudi table of its own inside the table, with the same file names:
//! nothing in it is a commit of the table around it.
//!
//! Facts are those of the public sources: `HoodieTimeline`, `InstantFileNameGeneratorV1` and `V2`,
//! `CommitMetadataSerDeV2`, `LSMTimeline`, `UpgradeDowngradeUtils` and the Avro schemas of
//! apache/hudi, `timeline/instant.rs` of apache/hudi-rs, and files of table versions 6, 8 and 9.

mod avro;
mod commit;
mod decode;
mod inspect;
mod instant;
mod keys;
mod metadata;
mod properties;
mod restore;
mod timeline;

pub use commit::{CommitId, NotACommitId, changes_data, ordinal, to_commit};
pub use inspect::{inspect, reads, wants};
pub use instant::{Instant, NotAnInstant};
pub use keys::{
    Action, ArchiveFile, HISTORY_FOLDER, HudiObject, HudiObjectKind, InstantFile, LAYOUT_1_ARCHIVE_FOLDER, Layout,
    PROPERTIES_KEY, State, classify,
};
pub use metadata::{CommitMetadata, Encoding, Names};
pub use properties::{TableProperties, named_partition};
pub use restore::RestoreMetadata;
pub use timeline::{Fate, Rewrite, Timeline};

/// Largest completed file that is parsed, in bytes, and the most that a compressed one may expand
/// to. A write of 100,000 files leaves about 60 MB of JSON; it is counted and not kept.
pub const MAX_FILE_BYTES: usize = 128 << 20;
