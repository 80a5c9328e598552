//! The tables' own files.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{EngineError, ErrorKind};

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
    /// When the store took it, by the store's clock and to the second; where it says so.
    pub modified: Option<Timestamp>,
}

/// Which objects to list: those whose key starts with `prefix`, by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    /// What the keys start with.
    pub prefix: &'a str,
    /// Only keys after this one, which need not be there; `None` for all.
    pub after: Option<&'a str>,
    /// Only objects directly below the prefix (which then ends in `/`), none of the folders below.
    pub is_flat: bool,
    /// At most so many.
    pub limit: usize,
}

impl<'a> Listing<'a> {
    /// Everything that starts with a prefix.
    pub const fn below(prefix: &'a str, limit: usize) -> Self {
        Self { prefix, after: None, is_flat: false, limit }
    }

    /// The objects directly in a folder.
    pub const fn folder(prefix: &'a str, limit: usize) -> Self {
        Self { prefix, after: None, is_flat: true, limit }
    }

    /// Only what comes after a key.
    #[must_use]
    pub const fn after(mut self, key: &'a str) -> Self {
        self.after = Some(key);
        self
    }
}

/// The content of an object, as it comes.
#[async_trait]
pub trait Pieces: Send {
    /// The next piece, never empty; `None` at the end.
    ///
    /// Errors: `Unavailable` where the store broke off.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, EngineError>;
}

/// An object that is about to be read.
pub struct Opened {
    /// The store's entity tag, without quotes.
    pub etag: String,
    /// How many bytes it has.
    pub size: u64,
    /// Its content.
    pub pieces: Box<dyn Pieces>,
}

/// Read access to object storage.
///
/// Errors: `Unavailable` where a later try may succeed, `Denied` where the object or its bucket
/// may not be read (a store that refuses to list answers so for a missing object, too), `Damaged`
/// where an object is larger than `limit`.
#[async_trait]
pub trait TableStorage: Send + Sync {
    /// The object, or `None` where there is none. Reading is up to the caller, who may stop early.
    async fn open(&self, bucket: &str, key: &str) -> Result<Option<Opened>, EngineError>;

    /// The objects of a listing, by key. What a store lists is as new as what it reads.
    async fn list(&self, bucket: &str, listing: Listing<'_>) -> Result<Vec<Listed>, EngineError>;

    /// The names of the folders directly below `prefix` (which ends in `/`), without slashes, in the
    /// order of their keys; only those behind the folder `after`, where one is named, and at most
    /// `limit` of them.
    async fn folders(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, EngineError>;

    /// The whole object, or `None` where there is none. At most `limit` bytes are read.
    async fn get(&self, bucket: &str, key: &str, limit: usize) -> Result<Option<Object>, EngineError> {
        let Some(Opened { etag, size, mut pieces }) = self.open(bucket, key).await? else { return Ok(None) };
        let announced = usize::try_from(size).unwrap_or(usize::MAX);
        if announced > limit {
            return Err(too_large(bucket, key, limit));
        }
        let mut bytes = Vec::with_capacity(announced);
        while let Some(piece) = pieces.next().await? {
            if bytes.len() + piece.len() > limit {
                return Err(too_large(bucket, key, limit));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Some(Object { bytes, etag }))
    }
}

fn too_large(bucket: &str, key: &str, limit: usize) -> EngineError {
    let message = format!("the object is larger than the {limit} bytes that are read of it");
    EngineError::new(ErrorKind::Damaged, message).with("bucket", bucket).with("key", key)
}

/// Writing the consumer files of Paimon tables, and nothing else of a lake.
///
/// Errors: `Unavailable` where a later try may succeed, `Denied` where the right to write is missing.
#[async_trait]
pub trait ConsumerFiles: Send + Sync {
    /// Puts a small object in the place of the one with the entity tag `over`, or where there is
    /// none. `false` where another one stands there by now.
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>, over: Option<&str>) -> Result<bool, EngineError>;
}
