//! From the bytes of commit metadata to its sums, in both encodings.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::MAX_FILE_BYTES;
use super::avro::{Budget, Input, Node, Schema, broken, read_record};
use super::metadata::{CommitMetadata, MAX_NAME_CHARS, Names};
use crate::error::{FormatError, FormatErrorKind};
use crate::json::shorten;

/// Longest error text of the JSON reader that is passed on, in characters.
const MAX_PROBLEM_CHARS: usize = 200;

/// Reads JSON. A field that comes twice is summed up twice; no writer does that.
pub(super) fn json(bytes: &[u8], metadata: &mut CommitMetadata) -> Result<(), FormatError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let read = Document(metadata).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    read.map_err(|error| {
        if error.is_eof() {
            let problem = format!("the file is truncated: it ends after {} bytes, inside the JSON object", bytes.len());
            return FormatError::new(FormatErrorKind::Truncated, problem);
        }
        let text = shorten(&error.to_string(), MAX_PROBLEM_CHARS);
        if error.is_data() {
            FormatError::new(
                FormatErrorKind::WrongValue,
                format!("the commit metadata does not hold what it should: {text}"),
            )
        } else {
            FormatError::new(FormatErrorKind::NotJson, format!("the file is neither Avro nor JSON: {text}"))
        }
    })
}

struct Document<'a>(&'a mut CommitMetadata);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of commit metadata")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let metadata = self.0;
        while let Some(field) = map.next_key::<String>()? {
            match field.as_str() {
                "operationType" => metadata.operation_type = map.next_value()?,
                "compacted" => metadata.compacted = map.next_value::<Option<bool>>()?.unwrap_or_default(),
                "partitionToWriteStats" => map.next_value_seed(Nullable(Partitions(metadata)))?,
                "partitionToReplaceFileIds" => {
                    map.next_value_seed(Nullable(KeysOnly(&mut metadata.replaced_partitions)))?;
                }
                "extraMetadata" => map.next_value_seed(Nullable(KeysOnly(&mut metadata.extra_metadata_keys)))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A value that may be null, read by what it wraps otherwise.
struct Nullable<T>(T);

impl<'de, T: Visitor<'de, Value = ()>> DeserializeSeed<'de> for Nullable<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Visitor<'de, Value = ()>> Visitor<'de> for Nullable<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.0.visit_seq(seq)
    }
}

/// An object of which only the keys are read.
struct KeysOnly<'a>(&'a mut Names);

impl<'de> Visitor<'de> for KeysOnly<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.add(&key);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Write statistics by partition.
struct Partitions<'a>(&'a mut CommitMetadata);

impl<'de> Visitor<'de> for Partitions<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of write stats by partition, or null")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(partition) = map.next_key::<String>()? {
            self.0.partitions.add(&partition);
            map.next_value_seed(Nullable(WriteStats(&mut *self.0)))?;
        }
        Ok(())
    }
}

struct WriteStats<'a>(&'a mut CommitMetadata);

#[derive(Deserialize)]
struct WriteStat {
    #[serde(rename = "numInserts")]
    inserts: Option<i64>,
    #[serde(rename = "numUpdateWrites")]
    updates: Option<i64>,
    #[serde(rename = "numDeletes")]
    deletes: Option<i64>,
}

impl<'de> Visitor<'de> for WriteStats<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of write stats, or null")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut stats: A) -> Result<(), A::Error> {
        while let Some(stat) = stats.next_element::<WriteStat>()? {
            let count = Option::unwrap_or_default;
            let (inserts, updates, deletes) = (count(stat.inserts), count(stat.updates), count(stat.deletes));
            self.0.add_write(inserts, updates, deletes).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// Reads an Avro container.
pub(super) fn avro(bytes: &[u8], metadata: &mut CommitMetadata) -> Result<(), FormatError> {
    let budget = Budget { max_bytes: MAX_FILE_BYTES as u64 };
    read_record(bytes, &budget, |input, schema| {
        let Node::Record(fields) = schema.node(schema.root()) else {
            return Err(broken("the Avro schema is no record of commit metadata"));
        };
        input.fields(fields, |input, name, kind| match name {
            "operationType" => {
                metadata.operation_type = optional_text(input, schema, kind)?;
                Ok(())
            }
            "compacted" => {
                metadata.compacted = optional_boolean(input, schema, kind)?;
                Ok(())
            }
            "partitionToWriteStats" => for_each_key(input, schema, kind, |input, partition, stats| {
                metadata.partitions.add(partition);
                write_stats(input, schema, stats, metadata)
            }),
            "partitionToReplaceFileIds" => for_each_key(input, schema, kind, |input, partition, files| {
                metadata.replaced_partitions.add(partition);
                input.skip(schema, files)
            }),
            "extraMetadata" => for_each_key(input, schema, kind, |input, key, value| {
                metadata.extra_metadata_keys.add(key);
                input.skip(schema, value)
            }),
            _ => input.skip(schema, kind),
        })
    })
}

fn write_stats(
    input: &mut Input<'_>,
    schema: &Schema,
    index: usize,
    metadata: &mut CommitMetadata,
) -> Result<(), FormatError> {
    let items = match input.resolve(schema, index)? {
        Node::Null => return Ok(()),
        Node::Array(items) => *items,
        _ => return Err(broken("the write stats of a partition are no list")),
    };
    input.entries(|input| {
        let Node::Record(fields) = input.resolve(schema, items)? else {
            return Err(broken("a write stat is no record"));
        };
        let (mut inserts, mut updates, mut deletes) = (0, 0, 0);
        input.fields(fields, |input, name, kind| {
            let count = match name {
                "numInserts" => &mut inserts,
                "numUpdateWrites" => &mut updates,
                "numDeletes" => &mut deletes,
                _ => return input.skip(schema, kind),
            };
            *count = optional_long(input, schema, kind)?;
            Ok(())
        })?;
        metadata.add_write(inserts, updates, deletes)
    })
}

fn for_each_key(
    input: &mut Input<'_>,
    schema: &Schema,
    index: usize,
    mut each: impl FnMut(&mut Input<'_>, &str, usize) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    match input.resolve(schema, index)? {
        Node::Null => Ok(()),
        Node::Map(values) => input.entries(|input| {
            let key = input.text(MAX_NAME_CHARS)?;
            each(input, &key, *values)
        }),
        _ => Err(broken("a field of the commit metadata that should be a map is none")),
    }
}

pub(super) fn optional_text(
    input: &mut Input<'_>,
    schema: &Schema,
    index: usize,
) -> Result<Option<String>, FormatError> {
    match input.resolve(schema, index)? {
        Node::Null => Ok(None),
        Node::Bytes => input.text(MAX_NAME_CHARS).map(Some),
        Node::Enum(symbols) => {
            let chosen = input.long()?;
            let symbol = usize::try_from(chosen).ok().and_then(|chosen| symbols.get(chosen));
            symbol.cloned().map(Some).ok_or_else(|| broken(format!("an Avro enum has no symbol {chosen}")))
        }
        _ => Err(broken("a field of the Avro record that should be a text is none")),
    }
}

fn optional_boolean(input: &mut Input<'_>, schema: &Schema, index: usize) -> Result<bool, FormatError> {
    match input.resolve(schema, index)? {
        Node::Null => Ok(false),
        Node::Boolean => input.boolean(),
        _ => Err(broken("a field of the commit metadata that should be a boolean is none")),
    }
}

fn optional_long(input: &mut Input<'_>, schema: &Schema, index: usize) -> Result<i64, FormatError> {
    match input.resolve(schema, index)? {
        Node::Null => Ok(0),
        Node::Long => input.long(),
        _ => Err(broken("a field of a write stat that should be a count is none")),
    }
}
