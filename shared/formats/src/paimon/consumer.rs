//! Consumer files: how far a reader of a Paimon table has come.

use super::MAX_FILE_BYTES;
use crate::error::FormatError;
use crate::json::Object;

/// A consumer's position. Expiry keeps the snapshots that consumers have not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Consumer {
    /// The first snapshot id that it has not read yet; that snapshot may not exist.
    pub next_snapshot: u64,
}

impl Consumer {
    /// Reads a consumer file of at most [`MAX_FILE_BYTES`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        Ok(Self { next_snapshot: Object::parse(bytes, MAX_FILE_BYTES)?.required_id("nextSnapshot")? })
    }
}

#[cfg(test)]
mod tests;
