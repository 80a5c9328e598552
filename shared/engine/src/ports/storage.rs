//! The tables' own files.

use async_trait::async_trait;

use crate::EngineError;

/// An object as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its content.
    pub bytes: Vec<u8>,
    /// The store's entity tag, without quotes.
    pub etag: String,
}

/// One row of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The object's key.
    pub key: String,
    /// Its entity tag, without quotes.
    pub etag: String,
}

/// Read access to object storage.
///
/// Errors: `Unavailable` where a later try may succeed, `Denied` where the object or its bucket
/// may not be read (a store that refuses to list answers so for a missing object, too), `Damaged`
/// where an object is larger than `limit`.
#[async_trait]
pub trait TableStorage: Send + Sync {
    /// The object, or `None` where there is none. At most `limit` bytes are read.
    async fn get(&self, bucket: &str, key: &str, limit: usize) -> Result<Option<Object>, EngineError>;

    /// Every object whose key starts with `prefix`, by key; at most `limit` of them.
    async fn list(&self, bucket: &str, prefix: &str, limit: usize) -> Result<Vec<Listed>, EngineError>;

    /// The names of the folders directly below `prefix` (which ends in `/`), without slashes; at
    /// most `limit` of them.
    async fn folders(&self, bucket: &str, prefix: &str, limit: usize) -> Result<Vec<String>, EngineError>;
}
