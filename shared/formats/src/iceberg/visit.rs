//! The visitors that keep what is needed of a metadata file while it streams by.

mod parts;
mod values;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde::de::{self, Deserializer, IgnoredAny, MapAccess};

use super::MAIN;
use super::metadata::{LogEntry, Metadata, Ref, RefKind, Snapshot};
use crate::error::{FormatError, FormatErrorKind};
use crate::json::missing;
use parts::{Log, OldSchema, Refs, Snapshots};
use values::{Key, List, Long, Object, Text};

/// The versions of the format that are read.
const VERSIONS: std::ops::RangeInclusive<i64> = 1..=3;

/// What has been read so far. Fields may come in any order, and the last of two counts.
pub(super) struct Draft<'a> {
    watermark_property: &'a str,
    fields: RefCell<Kept>,
    problem: RefCell<Option<FormatError>>,
}

#[derive(Default)]
struct Kept {
    format_version: Option<i64>,
    table_uuid: Option<String>,
    location: Option<String>,
    last_sequence_number: Option<i64>,
    last_updated_ms: Option<i64>,
    current_snapshot_id: Option<i64>,
    current_schema_id: Option<i64>,
    old_schema_id: Option<i64>,
    refs: BTreeMap<String, Ref>,
    log: VecDeque<LogEntry>,
    snapshots: Vec<Snapshot>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(watermark_property: &'a str) -> Self {
        Self { watermark_property, fields: RefCell::default(), problem: RefCell::default() }
    }

    /// Reads a whole file.
    pub(super) fn read<'de, D: Deserializer<'de>>(&self, file: D) -> Result<(), D::Error> {
        file.deserialize_map(Object(File(self)))
    }

    /// What stopped the reading, where serde's own error says less.
    pub(super) fn problem(&self) -> Option<FormatError> {
        self.problem.borrow().clone()
    }

    /// Checks what must be there, and what must agree.
    pub(super) fn finish(self) -> Result<Metadata, FormatError> {
        let fields = self.fields.into_inner();
        let version = fields.format_version.ok_or_else(|| missing("format-version"))?;
        let mut refs = fields.refs;
        // -1 is what Java writes for "none" up to version 2; version 3 writes null.
        if let Some(snapshot_id) = fields.current_snapshot_id.filter(|id| *id != -1) {
            let main = refs.entry(MAIN.to_owned()).or_insert(Ref { kind: RefKind::Branch, snapshot_id });
            if main.kind != RefKind::Branch || main.snapshot_id != snapshot_id {
                let problem = format!(
                    "`current-snapshot-id` is {snapshot_id}, and `refs` says that main is at {}",
                    main.snapshot_id
                );
                return Err(FormatError::new(FormatErrorKind::WrongValue, problem));
            }
        }
        let mut by_id: Vec<u32> = (0..).take(fields.snapshots.len()).collect();
        by_id.sort_by_key(|place| fields.snapshots[*place as usize].id);
        Ok(Metadata {
            format_version: u8::try_from(version).map_err(|_| unsupported(version))?,
            table_uuid: fields.table_uuid.filter(|uuid| !uuid.is_empty()),
            location: fields.location.ok_or_else(|| missing("location"))?,
            last_sequence_number: fields.last_sequence_number.unwrap_or(0),
            last_updated_ms: fields.last_updated_ms,
            current_schema_id: fields.current_schema_id.or(fields.old_schema_id),
            refs,
            log: fields.log.into(),
            snapshots: fields.snapshots,
            by_id,
        })
    }

    /// Stops the reading with an error that serde's own kinds cannot tell.
    fn stop<E: de::Error>(&self, kind: FormatErrorKind, problem: String) -> E {
        let error = E::custom(&problem);
        *self.problem.borrow_mut() = Some(FormatError::new(kind, problem));
        error
    }

    fn set(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.fields.borrow_mut());
    }
}

fn unsupported(version: i64) -> FormatError {
    let problem = format!("`format-version` is {version}; versions 1 to 3 are read");
    FormatError::new(FormatErrorKind::Unsupported, problem)
}

/// The whole file.
struct File<'d>(&'d Draft<'d>);

enum Field {
    FormatVersion,
    TableUuid,
    Location,
    LastSequenceNumber,
    LastUpdatedMs,
    CurrentSnapshotId,
    CurrentSchemaId,
    OldSchema,
    Refs,
    Snapshots,
    MetadataLog,
    Other,
}

impl Field {
    fn of(name: &str) -> Self {
        match name {
            "format-version" => Self::FormatVersion,
            "table-uuid" => Self::TableUuid,
            "location" => Self::Location,
            "last-sequence-number" => Self::LastSequenceNumber,
            "last-updated-ms" => Self::LastUpdatedMs,
            "current-snapshot-id" => Self::CurrentSnapshotId,
            "current-schema-id" => Self::CurrentSchemaId,
            "schema" => Self::OldSchema,
            "refs" => Self::Refs,
            "snapshots" => Self::Snapshots,
            "metadata-log" => Self::MetadataLog,
            _ => Self::Other,
        }
    }
}

impl values::Fields for File<'_> {
    type Value = ();
    const EXPECTED: &'static str = "table metadata: a JSON object";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(draft) = self;
        while let Some(field) = map.next_key_seed(Key(Field::of))? {
            match field {
                Field::FormatVersion => {
                    let version = map.next_value_seed(Long("format-version"))?;
                    if let Some(version) = version.filter(|version| !VERSIONS.contains(version)) {
                        let FormatError { kind, problem } = unsupported(version);
                        return Err(draft.stop(kind, problem));
                    }
                    draft.set(|fields| fields.format_version = version);
                }
                Field::TableUuid => {
                    let uuid = map.next_value_seed(Text("table-uuid"))?;
                    draft.set(|fields| fields.table_uuid = uuid);
                }
                Field::Location => {
                    let location = map.next_value_seed(Text("location"))?;
                    draft.set(|fields| fields.location = location);
                }
                Field::LastSequenceNumber => {
                    let number = map.next_value_seed(Long("last-sequence-number"))?;
                    draft.set(|fields| fields.last_sequence_number = number);
                }
                Field::LastUpdatedMs => {
                    let time = map.next_value_seed(Long("last-updated-ms"))?;
                    draft.set(|fields| fields.last_updated_ms = time);
                }
                Field::CurrentSnapshotId => {
                    let id = map.next_value_seed(Long("current-snapshot-id"))?;
                    draft.set(|fields| fields.current_snapshot_id = id);
                }
                Field::CurrentSchemaId => {
                    let id = map.next_value_seed(Long("current-schema-id"))?;
                    draft.set(|fields| fields.current_schema_id = id);
                }
                Field::OldSchema => map.next_value_seed(Object(OldSchema(draft)))?,
                Field::Refs => map.next_value_seed(Object(Refs(draft)))?,
                Field::Snapshots => map.next_value_seed(List(Snapshots(draft)))?,
                Field::MetadataLog => map.next_value_seed(List(Log(draft)))?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
