//! One line of a log file: an action, read as far as commits need it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::json::shorten;

/// Longest name of an action that is not known, in characters.
const MAX_NAME_CHARS: usize = 64;

/// The actions of the protocol, as they are named.
pub(super) const NAMES: [&str; 10] = [
    "commitInfo",
    "protocol",
    "metaData",
    "add",
    "remove",
    "cdc",
    "txn",
    "domainMetadata",
    "checkpointMetadata",
    "sidecar",
];

/// An action. What is not needed of it is skipped without being kept.
pub(super) enum Action<'a> {
    CommitInfo(Box<CommitInfoFields<'a>>),
    Protocol(ProtocolFields<'a>),
    Metadata(Box<MetadataFields<'a>>),
    Add(FileFields<'a>),
    Remove(FileFields<'a>),
    Txn(TxnFields<'a>),
    /// Any other one of [`NAMES`].
    Known,
    /// One that is not known, or one of [`NAMES`] that is null.
    Other,
}

/// The actions of one line with their names; the protocol has one a line.
pub(super) struct Line<'a>(pub(super) Vec<(Name, Action<'a>)>);

/// The name of an action.
pub(super) enum Name {
    /// Its place in [`NAMES`].
    Known(usize),
    Unknown(String),
}

/// A value that may be of any type; only plain ones are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    /// Null or absent.
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Text(Cow<'a, str>),
    /// A fraction, a list, an object, a number above 63 bits.
    Other,
}

impl Scalar<'_> {
    pub(super) fn bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// An integer, also where a writer put it into a string.
    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// A text that is not empty.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text.as_ref()).filter(|text| !text.is_empty()) } else { None }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CommitInfoFields<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Scalar<'a>,
    #[serde(borrow)]
    pub(super) in_commit_timestamp: Scalar<'a>,
    #[serde(borrow)]
    pub(super) operation: Scalar<'a>,
    #[serde(borrow)]
    pub(super) txn_id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) engine_info: Scalar<'a>,
    #[serde(borrow)]
    pub(super) is_blind_append: Scalar<'a>,
    #[serde(borrow)]
    pub(super) read_version: Scalar<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProtocolFields<'a> {
    #[serde(borrow)]
    pub(super) min_reader_version: Scalar<'a>,
    #[serde(borrow)]
    pub(super) min_writer_version: Scalar<'a>,
    pub(super) reader_features: Option<Vec<String>>,
    pub(super) writer_features: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MetadataFields<'a> {
    #[serde(borrow)]
    pub(super) id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) name: Scalar<'a>,
    #[serde(borrow)]
    pub(super) schema_string: Scalar<'a>,
    pub(super) partition_columns: Option<Vec<String>>,
    #[serde(borrow)]
    pub(super) created_time: Scalar<'a>,
    pub(super) configuration: Option<Configuration>,
}

/// The options of a table that mean something to a reader of commits.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Configuration {
    #[serde(rename = "delta.enableInCommitTimestamps")]
    pub(super) in_commit_timestamps: Option<String>,
    #[serde(rename = "delta.enableChangeDataFeed")]
    pub(super) change_data_feed: Option<String>,
    #[serde(rename = "delta.coordinatedCommits.commitCoordinator-preview")]
    pub(super) commit_coordinator: Option<String>,
}

/// An `add` or a `remove`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FileFields<'a> {
    #[serde(borrow)]
    pub(super) path: Scalar<'a>,
    #[serde(borrow)]
    pub(super) data_change: Scalar<'a>,
    #[serde(rename = "partitionValues")]
    partition: PartitionName,
    /// The statistics, of which only the count is kept.
    #[serde(rename = "stats")]
    count: RecordCount,
    #[serde(borrow)]
    pub(super) deletion_vector: Option<DeletionVectorFields<'a>>,
}

/// Longest name of a partition that is kept, in bytes.
const MAX_PARTITION_BYTES: usize = 256;

/// The partition of a file, as `dt=2024-09-10/hour=05`; empty where it has none, or a null, or one that
/// is too long or no text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PartitionName(String);

impl<'de> Deserialize<'de> for PartitionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(values) = Option::<Ordered<'de>>::deserialize(deserializer)? else { return Ok(Self::default()) };
        let mut name = String::new();
        for (key, value) in values.0 {
            let Some(value) = value.text() else { return Ok(Self::default()) };
            let separator = if name.is_empty() { "" } else { "/" };
            let _ = write!(name, "{separator}{key}={value}");
        }
        Ok(Self(if name.len() > MAX_PARTITION_BYTES { String::new() } else { name }))
    }
}

/// The members of an object in their order; of anything else none.
struct Ordered<'a>(Vec<(Cow<'a, str>, Scalar<'a>)>);

impl<'de> Deserialize<'de> for Ordered<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Ordered<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the values of a partition")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Ordered(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeletionVectorFields<'a> {
    #[serde(borrow)]
    pub(super) storage_type: Scalar<'a>,
    #[serde(borrow)]
    pub(super) path_or_inline_dv: Scalar<'a>,
    #[serde(borrow)]
    pub(super) offset: Scalar<'a>,
    #[serde(borrow)]
    pub(super) cardinality: Scalar<'a>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TxnFields<'a> {
    #[serde(borrow)]
    pub(super) app_id: Scalar<'a>,
    #[serde(borrow)]
    pub(super) version: Scalar<'a>,
}

/// The number of records that a file's statistics give: a JSON text within the JSON, which can be
/// long and is read where it stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RecordCount(Option<i64>);

impl RecordCount {
    fn of_stats(stats: &str) -> Self {
        // Writers put the count first: then the rest, column by column, need not be read.
        let counted = stats.strip_prefix("{\"numRecords\":").and_then(|rest| {
            let end = rest.find([',', '}'])?;
            rest[..end].parse::<i64>().ok()
        });
        let records = counted.or_else(|| serde_json::from_str::<Stats<'_>>(stats).ok()?.num_records.int());
        Self(records.filter(|records| *records >= 0))
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Stats<'a> {
    #[serde(borrow)]
    num_records: Scalar<'a>,
}

impl FileFields<'_> {
    /// Rows of the file, by its statistics.
    pub(super) const fn records(&self) -> Option<i64> {
        self.count.0
    }

    /// The partition that the file belongs to; `None` where it has none that can be named.
    pub(super) fn partition(&self) -> Option<&str> {
        Some(self.partition.0.as_str()).filter(|name| !name.is_empty())
    }

    /// Rows that the file's deletion vector takes off.
    pub(super) fn deleted_rows(&self) -> i64 {
        let cardinality = self.deletion_vector.as_ref().and_then(|vector| vector.cardinality.int());
        cardinality.filter(|rows| *rows > 0).unwrap_or(0)
    }

    /// What makes the file the same one in another commit: its path and its deletion vector.
    pub(super) fn identity(&self) -> String {
        let path = self.path.text().unwrap_or_default();
        let Some(vector) = &self.deletion_vector else { return path.to_owned() };
        let text = |scalar: &Scalar<'_>| scalar.text().unwrap_or_default().to_owned();
        let offset = vector.offset.int().unwrap_or(0);
        format!("{path}\n{}\n{}\n{offset}", text(&vector.storage_type), text(&vector.path_or_inline_dv))
    }
}

impl<'de> Deserialize<'de> for Line<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Actions;
        impl<'de> Visitor<'de> for Actions {
            type Value = Line<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that holds an action")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut actions = Vec::with_capacity(1);
                while let Some(name) = map.next_key::<Name>()? {
                    let action = match name {
                        Name::Known(0) => map.next_value::<Option<_>>()?.map(Action::CommitInfo),
                        Name::Known(1) => map.next_value::<Option<_>>()?.map(Action::Protocol),
                        Name::Known(2) => map.next_value::<Option<_>>()?.map(Action::Metadata),
                        Name::Known(3) => map.next_value::<Option<_>>()?.map(Action::Add),
                        Name::Known(4) => map.next_value::<Option<_>>()?.map(Action::Remove),
                        Name::Known(6) => map.next_value::<Option<_>>()?.map(Action::Txn),
                        Name::Known(_) => map.next_value::<Option<IgnoredAny>>()?.map(|_| Action::Known),
                        Name::Unknown(_) => map.next_value::<IgnoredAny>().map(|_| Some(Action::Other))?,
                    };
                    // A line may hold at most as many actions as there are names.
                    if actions.len() < NAMES.len() {
                        actions.extend(action.map(|action| (name, action)));
                    }
                }
                Ok(Line(actions))
            }
        }
        deserializer.deserialize_map(Actions)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an action")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                let known = NAMES.iter().position(|known| *known == name);
                Ok(known.map_or_else(|| Name::Unknown(shorten(name, MAX_NAME_CHARS)), Name::Known))
            }
        }
        deserializer.deserialize_identifier(Text)
    }
}

impl<'de> Deserialize<'de> for RecordCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyStats;
        impl<'de> Visitor<'de> for AnyStats {
            type Value = RecordCount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_str<E>(self, stats: &str) -> Result<RecordCount, E> {
                Ok(RecordCount::of_stats(stats))
            }

            fn visit_unit<E>(self) -> Result<RecordCount, E> {
                Ok(RecordCount(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<RecordCount, E> {
                Ok(RecordCount(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<RecordCount, E> {
                Ok(RecordCount(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<RecordCount, E> {
                Ok(RecordCount(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<RecordCount, E> {
                Ok(RecordCount(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RecordCount, A::Error> {
                ScalarVisitor.visit_seq(list).map(|_| RecordCount(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RecordCount, A::Error> {
                ScalarVisitor.visit_map(map).map(|_| RecordCount(None))
            }
        }
        deserializer.deserialize_any(AnyStats)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Scalar::Other, Scalar::Int))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}
