//! A store of items under a partition key and a sort key, with conditional atomic writes.
//!
//! The protocol's conditions all reduce to two: an item does not exist yet, or it has the revision
//! that was read. Every write raises the revision, so a condition on the revision implies every
//! condition on what the item holds.

use async_trait::async_trait;
use jiff::Timestamp;
use lakebell_domain::ids::AttemptId;

use crate::EngineError;

/// Where an item is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition key.
    pub pk: String,
    /// Sort key within the partition.
    pub sk: String,
}

impl Key {
    /// A key of both parts.
    pub fn new(pk: impl Into<String>, sk: impl Into<String>) -> Self {
        Self { pk: pk.into(), sk: sk.into() }
    }
}

/// Places an item in an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The index's partition.
    pub pk: String,
    /// The place within it.
    pub sk: String,
}

/// The indexes. Both are eventually consistent: a hit is read again before anything is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// What has a timer: sharded partition, due time.
    Sweep,
    /// What has a history: project and workflow or asset, time.
    History,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Where it is kept.
    pub key: Key,
    /// Its revision: 1 when it is made, one more with each write.
    pub rev: u64,
    /// The attempt that wrote it.
    pub attempt: AttemptId,
    /// Its content as JSON.
    pub doc: String,
    /// Its timer, if it has one.
    pub sweep: Option<IndexEntry>,
    /// Its place in a history, if it has one.
    pub history: Option<IndexEntry>,
    /// When the store may forget it.
    pub expires_at: Option<Timestamp>,
}

/// The content of an item to be written; revision and attempt come with the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where it is kept.
    pub key: Key,
    /// Its content as JSON.
    pub doc: String,
    /// Its timer, if it has one.
    pub sweep: Option<IndexEntry>,
    /// Its place in a history, if it has one.
    pub history: Option<IndexEntry>,
    /// When the store may forget it.
    pub expires_at: Option<Timestamp>,
}

impl Draft {
    /// Content without timer, history and expiry.
    pub fn new(key: Key, doc: String) -> Self {
        Self { key, doc, sweep: None, history: None, expires_at: None }
    }
}

/// One action of an atomic write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Makes the item, if there is none. It gets revision 1.
    Create(Draft),
    /// Replaces the item that has this revision. It gets the next one.
    Replace(Draft, u64),
    /// Raises the revision of an item that exists and leaves its content.
    Bump(Key),
    /// Nothing is written, but the item must have this revision.
    Expect(Key, u64),
    /// Removes the item that has this revision.
    Remove(Key, u64),
}

impl Write {
    /// Replaces the item as it was read, or makes it where there was none.
    pub fn put(draft: Draft, rev: Option<u64>) -> Self {
        match rev {
            Some(rev) => Self::Replace(draft, rev),
            None => Self::Create(draft),
        }
    }

    /// The item that the action is about.
    pub const fn key(&self) -> &Key {
        match self {
            Self::Create(draft) | Self::Replace(draft, _) => &draft.key,
            Self::Bump(key) | Self::Expect(key, _) | Self::Remove(key, _) => key,
        }
    }
}

/// An action whose condition did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Which action of the write.
    pub action: usize,
    /// The item that stands there; `None` where there is none.
    pub existing: Option<Item>,
}

/// What came of an atomic write: all of it, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Every action took effect.
    Done,
    /// Nothing took effect: these conditions did not hold.
    Lost(Vec<Lost>),
}

/// A range of sort keys of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The partition.
    pub pk: String,
    /// The first sort key, inclusive.
    pub from: String,
    /// The last sort key, inclusive.
    pub to: String,
}

impl Range {
    /// Every sort key that begins with `prefix`.
    pub fn prefix(pk: impl Into<String>, prefix: &str) -> Self {
        Self { pk: pk.into(), from: prefix.to_owned(), to: format!("{prefix}\u{10ffff}") }
    }
}

/// One page of a look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What was found, in order.
    pub found: Vec<T>,
    /// Where to go on; `None` at the end. Opaque.
    pub next: Option<String>,
}

/// The store. Reads are strongly consistent unless said otherwise.
#[async_trait]
pub trait ItemStore: Send + Sync {
    /// Items of a range of one partition, by sort key. Not a snapshot: lower sort keys may be read
    /// earlier than higher ones. At most `limit` items, where one is given.
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError>;

    /// The items with these keys, in any order; keys without an item are left out. All are read:
    /// what a store leaves unprocessed is asked for again before this returns.
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError>;

    /// Writes all actions or none. No two may be about one item; at most 100.
    ///
    /// An error of kind `Unavailable` says nothing about whether it took effect; one of kind
    /// `Contention` says that it did not.
    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError>;

    /// Keys in an index partition up to a place (inclusive), newest first if `backwards`.
    /// Eventually consistent.
    async fn index(
        &self,
        index: Index,
        pk: &str,
        up_to: Option<&str>,
        backwards: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Page<Key>, EngineError>;
}
