//! Schema files: the columns and options of a Paimon table.

use serde_json::Value;

use super::MAX_FILE_BYTES;
use crate::error::{FormatError, FormatErrorKind};
use crate::json::{Object, wrong};

/// Who writes a table's changelog: the option `changelog-producer`
/// (`CoreOptions.ChangelogProducer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangelogProducer {
    /// Nobody; the default.
    None,
    /// The writer's own input, with each commit of data.
    Input,
    /// Compaction, by looking up what was there before.
    Lookup,
    /// Full compactions only.
    FullCompaction,
}

impl ChangelogProducer {
    /// The producer of an option's value, in any case of letters. `None` for a value that is not
    /// known, which readers treat as a schema that cannot be read: the commit kind alone decides.
    pub fn from_option(value: &str) -> Option<Self> {
        let known = [
            ("none", Self::None),
            ("input", Self::Input),
            ("lookup", Self::Lookup),
            ("full-compaction", Self::FullCompaction),
        ];
        known.into_iter().find(|(name, _)| value.eq_ignore_ascii_case(name)).map(|(_, producer)| producer)
    }

    /// Whether changes become visible to followers through changelogs.
    pub const fn writes_changelog(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// What a schema file says, as far as commits need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Its number, from 0 upwards, equal to that of the file.
    pub id: u64,
    /// The top-level columns in order.
    pub field_names: Vec<String>,
    /// Columns that the table is partitioned by.
    pub partition_keys: Vec<String>,
    /// Columns of the primary key; empty for an append table.
    pub primary_keys: Vec<String>,
    /// Who writes the changelog; [`ChangelogProducer::None`] where the option is not set, `None`
    /// where its value is not known.
    pub changelog_producer: Option<ChangelogProducer>,
}

impl Schema {
    /// Reads a schema file of at most [`MAX_FILE_BYTES`]. Only `id` is required.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let object = Object::parse(bytes, MAX_FILE_BYTES)?;
        Ok(Self {
            id: object.required_id("id")?,
            field_names: names(&object, "fields", |field| field.get("name"))?,
            partition_keys: names(&object, "partitionKeys", Some)?,
            primary_keys: names(&object, "primaryKeys", Some)?,
            changelog_producer: changelog_producer(&object)?,
        })
    }

    /// Reads the file `schema-<expected_id>`, which must say that it is that schema.
    pub fn parse_named(bytes: &[u8], expected_id: u64) -> Result<Self, FormatError> {
        let schema = Self::parse(bytes)?;
        if schema.id == expected_id {
            return Ok(schema);
        }
        let problem = format!("the file is named schema-{expected_id} and says that it is schema {}", schema.id);
        Err(FormatError::new(FormatErrorKind::IdMismatch, problem))
    }
}

fn changelog_producer(object: &Object) -> Result<Option<ChangelogProducer>, FormatError> {
    let options = match object.get("options") {
        None => return Ok(Some(ChangelogProducer::None)),
        Some(Value::Object(options)) => options,
        Some(other) => return Err(wrong("options", other, "an object of options is needed")),
    };
    match options.get("changelog-producer") {
        None | Some(Value::Null) => Ok(Some(ChangelogProducer::None)),
        Some(Value::String(value)) => Ok(ChangelogProducer::from_option(value)),
        Some(_) => Ok(None),
    }
}

fn names<'a>(
    object: &'a Object,
    field: &str,
    name_of: impl Fn(&'a Value) -> Option<&'a Value>,
) -> Result<Vec<String>, FormatError> {
    let list = match object.get(field) {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong(field, other, "an array is needed")),
    };
    list.iter()
        .map(|entry| match name_of(entry) {
            Some(Value::String(name)) => Ok(name.clone()),
            _ => Err(wrong(field, entry, "a column with a name is needed")),
        })
        .collect()
}

#[cfg(test)]
mod tests;
