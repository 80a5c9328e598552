//! Restore metadata: which instants a restore took away.

use super::MAX_FILE_BYTES;
use super::avro::{Budget, Node, broken, read_record};
use super::decode::optional_text;
use super::metadata::{Encoding, Names};
use crate::error::FormatError;

/// What the completed file of a restore says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreMetadata {
    /// The instants that it took away: completed ones and such that never completed.
    pub removed_instants: Names,
}

impl RestoreMetadata {
    /// Reads the completed file of a restore, an Avro container in both layouts. Of anything else
    /// nothing is known; that the file exists is what counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut removed_instants = Names::default();
        if Encoding::of(bytes) != Encoding::Avro {
            return Ok(Self { removed_instants });
        }
        let budget = Budget { max_bytes: MAX_FILE_BYTES as u64 };
        read_record(bytes, &budget, |input, schema| {
            let Node::Record(fields) = schema.node(schema.root()) else {
                return Err(broken("the Avro schema is no record of restore metadata"));
            };
            input.fields(fields, |input, name, kind| {
                if name != "instantsToRollback" {
                    return input.skip(schema, kind);
                }
                match input.resolve(schema, kind)? {
                    Node::Null => Ok(()),
                    Node::Array(items) => input.entries(|input| {
                        if let Some(instant) = optional_text(input, schema, *items)? {
                            removed_instants.add(&instant);
                        }
                        Ok(())
                    }),
                    _ => Err(broken("the instants of a restore are no list")),
                }
            })
        })?;
        Ok(Self { removed_instants })
    }
}
