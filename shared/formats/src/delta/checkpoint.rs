//! Files beside the commits: the hint to the newest checkpoint, and checksums.

use serde::Deserialize;

use super::MAX_FILE_BYTES;
use super::action::{MetadataFields, ProtocolFields, Scalar};
use super::metadata::Metadata;
use super::protocol::Protocol;
use crate::error::{FormatError, FormatErrorKind};
use crate::json::{Object, shorten};

/// `_last_checkpoint`: where a search for the newest version may start. A hint: the checkpoint that
/// it names may be gone, and newer ones may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LastCheckpoint {
    /// The version of the checkpoint.
    pub version: u64,
}

impl LastCheckpoint {
    /// Reads the hint, a JSON object of at most [`MAX_FILE_BYTES`] whose `version` is required.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        Ok(Self { version: Object::parse(bytes, MAX_FILE_BYTES)?.required_id("version")? })
    }
}

/// `N.crc`: what the table is at version N, as its writer says. Not every writer makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// The table's identity and columns.
    pub metadata: Option<Metadata>,
    /// What the table demands.
    pub protocol: Option<Protocol>,
    /// The id of the transaction that committed the version: that of its `commitInfo`.
    pub txn_id: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ChecksumFields<'a> {
    #[serde(borrow)]
    metadata: Option<MetadataFields<'a>>,
    #[serde(borrow)]
    protocol: Option<ProtocolFields<'a>>,
    #[serde(borrow)]
    txn_id: Scalar<'a>,
}

impl Checksum {
    /// Reads a checksum file of at most [`MAX_FILE_BYTES`]. Nothing is required.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > MAX_FILE_BYTES {
            let problem = format!("the file has {} bytes, at most {MAX_FILE_BYTES} are read", bytes.len());
            return Err(FormatError::new(FormatErrorKind::TooLarge, problem));
        }
        let fields: ChecksumFields<'_> = serde_json::from_slice(bytes).map_err(|error| {
            let kind = if error.is_eof() { FormatErrorKind::Truncated } else { FormatErrorKind::NotJson };
            FormatError::new(kind, format!("the file is no checksum: {}", shorten(&error.to_string(), 160)))
        })?;
        Ok(Self {
            metadata: fields.metadata.as_ref().map(Metadata::read).transpose()?,
            protocol: fields.protocol.map(Protocol::read).transpose()?,
            txn_id: fields.txn_id.text().map(|id| shorten(id, 64)),
        })
    }
}

#[cfg(test)]
mod tests;
