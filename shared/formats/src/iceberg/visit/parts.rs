//! Snapshots with their summaries, references, and the log of earlier files.

use lakebell_domain::commit::Millis;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::Draft;
use super::values::{Counter, CounterValue, Elements, Fields, Key, Long, Object, Text};
use crate::error::FormatErrorKind;
use crate::iceberg::metadata::{LogEntry, Operation, Ref, RefKind, Snapshot};
use crate::iceberg::{MAX_LOG_ENTRIES, MAX_REFS, MAX_SNAPSHOTS, watermark};

/// Longest name of a branch or a tag that is kept, in bytes.
const MAX_REF_NAME_BYTES: usize = 1_024;
/// By how many snapshots the list grows at least.
const GROWTH: usize = 64;

/// `schema`: the only schema in old files of version 1. Its id may be left out.
pub(super) struct OldSchema<'d>(pub(super) &'d Draft<'d>);

impl Fields for OldSchema<'_> {
    type Value = ();
    const EXPECTED: &'static str = "an object in `schema`";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(is_id) = map.next_key_seed(Key(|name: &str| name == "schema-id"))? {
            if is_id {
                id = map.next_value_seed(Long("schema-id"))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        self.0.set(|kept| kept.old_schema_id = id.or(Some(0)));
        Ok(())
    }
}

/// `refs`: branches and tags by name.
pub(super) struct Refs<'d>(pub(super) &'d Draft<'d>);

impl Fields for Refs<'_> {
    type Value = ();
    const EXPECTED: &'static str = "an object in `refs`";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(draft) = self;
        draft.set(|kept| kept.refs.clear());
        let mut count = 0;
        let kept = |name: &str| (name.len() <= MAX_REF_NAME_BYTES).then(|| name.to_owned());
        while let Some(name) = map.next_key_seed(Key(kept))? {
            let Some(name) = name else {
                let problem = format!("`refs` holds a name of more than {MAX_REF_NAME_BYTES} bytes");
                return Err(draft.stop(FormatErrorKind::TooLarge, problem));
            };
            count += 1;
            if count > MAX_REFS {
                let problem = format!("`refs` holds more than {MAX_REFS} branches and tags");
                return Err(draft.stop(FormatErrorKind::TooLarge, problem));
            }
            if let Some(it) = map.next_value_seed(Object(OneRef(draft)))? {
                draft.set(|kept| kept.refs.extend([(name, it)]));
            }
        }
        Ok(())
    }
}

struct OneRef<'d>(&'d Draft<'d>);

enum RefField {
    SnapshotId,
    Type,
    Other,
}

impl Fields for OneRef<'_> {
    type Value = Option<Ref>;
    const EXPECTED: &'static str = "an object for each name in `refs`";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let field = |name: &str| match name {
            "snapshot-id" => RefField::SnapshotId,
            "type" => RefField::Type,
            _ => RefField::Other,
        };
        let (mut id, mut kind) = (None, None);
        while let Some(field) = map.next_key_seed(Key(field))? {
            match field {
                RefField::SnapshotId => id = map.next_value_seed(Long("snapshot-id"))?,
                RefField::Type => kind = map.next_value_seed(Text("type"))?,
                RefField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let stop = |kind, problem: &str| self.0.stop(kind, format!("a reference in `refs`: {problem}"));
        let snapshot_id = id.ok_or_else(|| stop(FormatErrorKind::MissingField, "`snapshot-id` is missing"))?;
        let kind = match kind.as_deref() {
            Some(name) if name.eq_ignore_ascii_case("branch") => RefKind::Branch,
            Some(name) if name.eq_ignore_ascii_case("tag") => RefKind::Tag,
            Some(_) => return Err(stop(FormatErrorKind::WrongValue, "`type` is neither `branch` nor `tag`")),
            None => return Err(stop(FormatErrorKind::MissingField, "`type` is missing")),
        };
        Ok(Some(Ref { kind, snapshot_id }))
    }
}

/// `metadata-log`: the earlier files, of which the newest are kept.
pub(super) struct Log<'d>(pub(super) &'d Draft<'d>);

impl Elements for Log<'_> {
    const EXPECTED: &'static str = "an array in `metadata-log`";

    fn read<'de, A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Self(draft) = self;
        draft.set(|kept| kept.log.clear());
        while let Some(entry) = elements.next_element_seed(Object(OneEntry))? {
            draft.set(|kept| {
                if kept.log.len() == MAX_LOG_ENTRIES {
                    kept.log.pop_front();
                }
                kept.log.extend(entry);
            });
        }
        Ok(())
    }
}

struct OneEntry;

enum EntryField {
    File,
    Time,
    Other,
}

impl Fields for OneEntry {
    type Value = Option<LogEntry>;
    const EXPECTED: &'static str = "an object for each file in `metadata-log`";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let field = |name: &str| match name {
            "metadata-file" => EntryField::File,
            "timestamp-ms" => EntryField::Time,
            _ => EntryField::Other,
        };
        let (mut file, mut timestamp_ms) = (None, None);
        while let Some(field) = map.next_key_seed(Key(field))? {
            match field {
                EntryField::File => file = map.next_value_seed(Text("metadata-file"))?,
                EntryField::Time => timestamp_ms = map.next_value_seed(Long("timestamp-ms"))?,
                EntryField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(file.map(|file| LogEntry { file, timestamp_ms }))
    }
}

/// `snapshots`.
pub(super) struct Snapshots<'d>(pub(super) &'d Draft<'d>);

impl Elements for Snapshots<'_> {
    const EXPECTED: &'static str = "an array in `snapshots`";

    fn read<'de, A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Self(draft) = self;
        let mut snapshots: Vec<Snapshot> = Vec::new();
        while let Some(snapshot) = elements.next_element_seed(Object(OneSnapshot(draft)))? {
            if snapshots.len() == MAX_SNAPSHOTS {
                let problem = format!("`snapshots` holds more than {MAX_SNAPSHOTS}");
                return Err(draft.stop(FormatErrorKind::TooLarge, problem));
            }
            if snapshots.len() == snapshots.capacity() {
                // By half, not by two: while a list grows, both of its places are in memory.
                snapshots.reserve_exact(GROWTH.max(snapshots.len() / 2));
            }
            snapshots.extend(snapshot);
        }
        draft.set(|kept| kept.snapshots = snapshots);
        Ok(())
    }
}

struct OneSnapshot<'d>(&'d Draft<'d>);

enum SnapshotField {
    Id,
    Parent,
    SequenceNumber,
    Time,
    SchemaId,
    Summary,
    Other,
}

impl Fields for OneSnapshot<'_> {
    type Value = Option<Snapshot>;
    const EXPECTED: &'static str = "an object for each snapshot in `snapshots`";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Self(draft) = self;
        let field = |name: &str| match name {
            "snapshot-id" => SnapshotField::Id,
            "parent-snapshot-id" => SnapshotField::Parent,
            "sequence-number" => SnapshotField::SequenceNumber,
            "timestamp-ms" => SnapshotField::Time,
            "schema-id" => SnapshotField::SchemaId,
            "summary" => SnapshotField::Summary,
            _ => SnapshotField::Other,
        };
        let (mut id, mut parent_id, mut sequence_number, mut timestamp_ms, mut schema_id) =
            (None, None, None, None, None);
        let mut summary = Summed::default();
        while let Some(field) = map.next_key_seed(Key(field))? {
            match field {
                SnapshotField::Id => id = map.next_value_seed(Long("snapshot-id"))?,
                SnapshotField::Parent => parent_id = map.next_value_seed(Long("parent-snapshot-id"))?,
                SnapshotField::SequenceNumber => sequence_number = map.next_value_seed(Long("sequence-number"))?,
                SnapshotField::Time => timestamp_ms = map.next_value_seed(Long("timestamp-ms"))?,
                SnapshotField::SchemaId => schema_id = map.next_value_seed(Long("schema-id"))?,
                SnapshotField::Summary => summary = map.next_value_seed(Object(Summary(draft.watermark_property)))?,
                SnapshotField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let Some(id) = id else {
            let problem = "a snapshot in `snapshots`: `snapshot-id` is missing".to_owned();
            return Err(draft.stop(FormatErrorKind::MissingField, problem));
        };
        Ok(Some(Snapshot {
            id,
            // -1 is how early writers said "none", here as in `current-snapshot-id`.
            parent_id: parent_id.filter(|parent| *parent != -1),
            sequence_number: sequence_number.unwrap_or(0),
            timestamp_ms,
            schema_id: schema_id.and_then(|id| i32::try_from(id).ok()),
            operation: summary.operation,
            total_records: summary.total_records,
            total_data_files: summary.total_data_files,
            total_delete_files: summary.total_delete_files,
            added_records: summary.added_records,
            deleted_records: summary.deleted_records,
            counts_a_change: summary.counts_a_change,
            watermark: summary.watermark,
        }))
    }
}

/// What is kept of a summary.
#[derive(Default)]
struct Summed {
    operation: Option<Operation>,
    total_records: Option<i64>,
    total_data_files: Option<i64>,
    total_delete_files: Option<i64>,
    added_records: Option<i64>,
    deleted_records: Option<i64>,
    counts_a_change: bool,
    watermark: Option<Millis>,
}

/// `summary`; holds the name of the property with the watermark.
struct Summary<'d>(&'d str);

#[derive(Clone, Copy)]
enum SummaryField {
    Operation,
    Watermark,
    TotalRecords,
    TotalDataFiles,
    TotalDeleteFiles,
    AddedRecords,
    DeletedRecords,
    /// Any other counter of things added, deleted or removed.
    Change,
    Other,
}

impl SummaryField {
    fn of(name: &str, watermark: &str) -> Self {
        match name {
            "operation" => Self::Operation,
            _ if name == watermark => Self::Watermark,
            "total-records" => Self::TotalRecords,
            "total-data-files" => Self::TotalDataFiles,
            "total-delete-files" => Self::TotalDeleteFiles,
            "added-records" => Self::AddedRecords,
            "deleted-records" => Self::DeletedRecords,
            _ if ["added-", "deleted-", "removed-"].iter().any(|start| name.starts_with(start)) => Self::Change,
            _ => Self::Other,
        }
    }
}

impl Fields for Summary<'_> {
    type Value = Summed;
    const EXPECTED: &'static str = "an object in `summary`";

    fn read<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Summed, A::Error> {
        // A summary without an operation is read as an overwrite.
        let mut summed = Summed { operation: Some(Operation::Overwrite), ..Summed::default() };
        while let Some(field) = map.next_key_seed(Key(|name: &str| SummaryField::of(name, self.0)))? {
            match field {
                SummaryField::Operation => summed.operation = Some(operation(&mut map)?),
                SummaryField::Watermark => summed.watermark = time(&mut map)?,
                SummaryField::Other => drop(map.next_value::<IgnoredAny>()?),
                counter => {
                    let value = map.next_value_seed(Counter(|text: &str| text.parse().ok()))?;
                    summed.count(counter, &value);
                }
            }
        }
        Ok(summed)
    }
}

impl Summed {
    fn count(&mut self, field: SummaryField, value: &CounterValue<Option<i64>>) {
        let number = match *value {
            CounterValue::Number(number) => Some(number),
            CounterValue::Text(number) => number,
            CounterValue::Absent | CounterValue::Odd => None,
        };
        match field {
            SummaryField::TotalRecords => self.total_records = number,
            SummaryField::TotalDataFiles => self.total_data_files = number,
            SummaryField::TotalDeleteFiles => self.total_delete_files = number,
            SummaryField::AddedRecords => self.added_records = number,
            SummaryField::DeletedRecords => self.deleted_records = number,
            _ => {}
        }
        let is_change =
            matches!(field, SummaryField::AddedRecords | SummaryField::DeletedRecords | SummaryField::Change);
        let is_absent = matches!(value, CounterValue::Absent);
        // One that cannot be read proves nothing, and so counts.
        self.counts_a_change |= is_change && !is_absent && number.is_none_or(|number| number > 0);
    }
}

fn operation<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Operation, A::Error> {
    Ok(match map.next_value_seed(Counter(Operation::from_text))? {
        CounterValue::Text(operation) => operation,
        CounterValue::Absent => Operation::Overwrite,
        CounterValue::Number(number) => Operation::from_text(&number.to_string()),
        CounterValue::Odd => Operation::Unknown("(not a text)".into()),
    })
}

fn time<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Millis>, A::Error> {
    Ok(match map.next_value_seed(Counter(watermark::parse))? {
        CounterValue::Text(time) => time,
        CounterValue::Number(millis) if millis != i64::MIN => Some(Millis(millis)),
        _ => None,
    })
}
