//! The identity and the columns of a table.

use lakebell_domain::digest::hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::action::MetadataFields;
use crate::error::{FormatError, FormatErrorKind};
use crate::json::{missing, shorten};

/// Longest table id, in bytes. Real ones have 36.
const MAX_ID_BYTES: usize = 128;
/// Longest name that is kept, in characters.
const MAX_NAME_CHARS: usize = 256;
/// Properties of a column that move with the data and are no change of the schema.
const MOVING_PROPERTIES: [&str; 1] = ["delta.identity.highWaterMark"];

/// The `metaData` action, as far as commits need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The table's id: another one at the same place is another table.
    pub id: String,
    /// The table's name, where the writer gave one.
    pub name: Option<String>,
    /// 32 hex digits over the columns; see [`Metadata::schema_digest`] for what counts.
    schema_digest: String,
    /// When the table was created, in milliseconds since 1970-01-01T00:00:00Z.
    pub created_time: Option<i64>,
    /// Whether commits carry a timestamp that rises strictly.
    pub in_commit_timestamps: bool,
    /// Whether commits carry `cdc` files.
    pub change_data_feed: bool,
    /// The coordinator that decides which commits are visible, where there is one.
    pub commit_coordinator: Option<String>,
}

impl Metadata {
    pub(super) fn read(fields: &MetadataFields<'_>) -> Result<Self, FormatError> {
        let id = fields.id.text().ok_or_else(|| missing("metaData.id"))?;
        if id.len() > MAX_ID_BYTES {
            let problem = format!("`metaData.id` has {} bytes; at most {MAX_ID_BYTES} are read", id.len());
            return Err(FormatError::new(FormatErrorKind::WrongValue, problem));
        }
        let options = fields.configuration.as_ref();
        let is_on = |option: Option<&String>| option.is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let partitions = fields.partition_columns.as_deref().unwrap_or_default();
        let coordinator = options.and_then(|options| options.commit_coordinator.as_ref());
        Ok(Self {
            id: id.to_owned(),
            name: fields.name.text().map(|name| shorten(name, MAX_NAME_CHARS)),
            schema_digest: digest(fields.schema_string.text().unwrap_or_default(), partitions),
            created_time: fields.created_time.int(),
            in_commit_timestamps: is_on(options.and_then(|options| options.in_commit_timestamps.as_ref())),
            change_data_feed: is_on(options.and_then(|options| options.change_data_feed.as_ref())),
            commit_coordinator: coordinator.filter(|name| !name.is_empty()).map(|name| shorten(name, MAX_NAME_CHARS)),
        })
    }

    /// Equal for equal columns: names, types, nullability, their own properties and the partition
    /// columns, in any order of the JSON fields. The high-water mark of an identity column, which
    /// moves with every insert, is not in it.
    ///
    /// Recorded state holds these values: the digest must never change.
    pub fn schema_digest(&self) -> &str {
        &self.schema_digest
    }
}

/// The format has no schema ids: a schema is named by the version that brought it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaVersion {
    /// The version whose `metaData` brought this schema.
    pub since: u64,
    /// [`Metadata::schema_digest`] of it.
    pub digest: String,
}

impl SchemaVersion {
    /// The number as the schema id of a commit.
    pub fn schema_id(&self) -> Option<i64> {
        i64::try_from(self.since).ok()
    }
}

fn digest(schema: &str, partition_columns: &[String]) -> String {
    let mut text = String::with_capacity(schema.len() + 64);
    text.push_str("delta-schema-v1\n");
    match serde_json::from_str::<Value>(schema) {
        Ok(value) => canonical(&value, &mut text),
        Err(_) => text.push_str(schema),
    }
    text.push('\n');
    canonical(&Value::from(partition_columns), &mut text);
    hex(&Sha256::digest(text.as_bytes())[..16])
}

/// JSON with sorted fields, without those that move.
fn canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().filter(|(name, _)| !MOVING_PROPERTIES.contains(&name.as_str())).collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            for value in list {
                canonical(value, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests;
