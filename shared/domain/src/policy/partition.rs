//! Partitions of a table, by name.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Length;
use crate::Invalid;

/// Longest partition as text, in bytes.
pub const MAX_PARTITION_BYTES: usize = 256;
/// Most keys of a partition.
const MAX_KEYS: usize = 8;
/// Most values of a full set.
const MAX_SET: usize = 400;

/// One partition: `dt=20240910/hour=05`. Case counts, and so does the order of the keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(Vec<(String, String)>);

impl Partition {
    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// The part with these keys, in their order; `None` where it lacks one.
    pub fn only(&self, keys: &[String]) -> Option<Self> {
        let parts = keys.iter().map(|key| Some((key.clone(), self.value(key)?.to_owned())));
        parts.collect::<Option<Vec<_>>>().map(Self)
    }
}

impl FromStr for Partition {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new(
                "partition",
                format!("`{}` is no partition", text.escape_debug()),
                format!(
                    "write key=value, with `/` between several, as in dt=20240910/hour=05, {MAX_PARTITION_BYTES} bytes at most"
                ),
            )
        };
        let part = |part: &str| {
            let (key, value) = part.split_once('=')?;
            let is_sound = is_key(key) && !value.is_empty() && !value.chars().any(char::is_control);
            is_sound.then(|| (key.to_owned(), value.to_owned()))
        };
        let parts: Vec<_> = text.trim_matches('/').split('/').map(part).collect::<Option<_>>().ok_or_else(wrong)?;
        let keys: BTreeSet<&str> = parts.iter().map(|(key, _)| key.as_str()).collect();
        if text.len() > MAX_PARTITION_BYTES || parts.len() > MAX_KEYS || keys.len() < parts.len() {
            return Err(wrong());
        }
        Ok(Self(parts))
    }
}

fn is_key(key: &str) -> bool {
    !key.is_empty() && key.len() <= 64 && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "/" };
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

impl Serialize for Partition {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Partition {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Keys of a partition: `dt`, or `[dt, hour]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "OneOrMany", into = "OneOrMany")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "OneOrMany"))]
pub struct PartitionKeys(pub Vec<String>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl TryFrom<OneOrMany> for PartitionKeys {
    type Error = Invalid;

    fn try_from(keys: OneOrMany) -> Result<Self, Invalid> {
        let keys = match keys {
            OneOrMany::One(key) => vec![key],
            OneOrMany::Many(keys) => keys,
        };
        let different: BTreeSet<&String> = keys.iter().collect();
        if keys.is_empty()
            || keys.len() > MAX_KEYS
            || different.len() < keys.len()
            || !keys.iter().all(|key| is_key(key))
        {
            return Err(Invalid::new(
                "partition",
                format!("`{}` are no partition keys", keys.join(", ")),
                format!("name 1 to {MAX_KEYS} different columns, as in dt or [dt, hour]"),
            ));
        }
        Ok(Self(keys))
    }
}

impl From<PartitionKeys> for OneOrMany {
    fn from(keys: PartitionKeys) -> Self {
        match <[String; 1]>::try_from(keys.0) {
            Ok([key]) => Self::One(key),
            Err(keys) => Self::Many(keys),
        }
    }
}

/// The values of one key that must all be there: `{key: hour, values: 00..23}`, or a list of values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SpelledSet", into = "SpelledSet")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "SpelledSet"))]
pub struct FullSet {
    /// The key.
    pub key: String,
    /// Its values.
    pub values: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SpelledSet {
    key: String,
    values: SpelledValues,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
enum SpelledValues {
    Range(String),
    List(Vec<String>),
}

impl TryFrom<SpelledSet> for FullSet {
    type Error = Invalid;

    fn try_from(spelled: SpelledSet) -> Result<Self, Invalid> {
        let wrong = |problem: String| {
            Invalid::new(
                "fullSet",
                problem,
                format!(
                    "give `key` and `values`: a range of numbers of one width as 00..23, or a list of 1 to {MAX_SET}"
                ),
            )
        };
        if !is_key(&spelled.key) {
            return Err(wrong(format!("`{}` is no partition key", spelled.key.escape_debug())));
        }
        let values: BTreeSet<String> = match spelled.values {
            SpelledValues::List(values) => values.into_iter().collect(),
            SpelledValues::Range(text) => {
                range(&text).ok_or_else(|| wrong(format!("`{}` is no range", text.escape_debug())))?
            }
        };
        if values.is_empty()
            || values.len() > MAX_SET
            || values.iter().any(|value| value.is_empty() || value.contains('/'))
        {
            return Err(wrong(format!("it has {} values", values.len())));
        }
        Ok(Self { key: spelled.key, values })
    }
}

/// `00..23`, both ends included, with the width of its beginning.
fn range(text: &str) -> Option<BTreeSet<String>> {
    let (first, last) = text.split_once("..")?;
    let (from, to): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let is_sound = from <= to && (to - from) < 10_000;
    is_sound.then(|| (from..=to).map(|number| format!("{number:0width$}", width = first.len())).collect())
}

impl From<FullSet> for SpelledSet {
    fn from(set: FullSet) -> Self {
        Self { key: set.key, values: SpelledValues::List(set.values.into_iter().collect()) }
    }
}

/// What makes a partition present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PartitionFrom {
    /// A pushed `PARTITION_DONE`, and a commit that changes data at or after it.
    #[default]
    Done,
    /// A commit that names it among those that it touched (Hudi, Delta).
    Commit,
}

/// The partitions that a dependency goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionCondition {
    /// The keys that a partition must have.
    pub keys: Vec<String>,
    /// The keys by which it is joined with the other members, and started: one trigger for each value.
    pub join: Vec<String>,
    /// The values of a further key that must all be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_set: Option<FullSet>,
    /// After which time a value that is not complete is given up, from its first partition on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Length>,
    /// What makes one present.
    #[serde(default)]
    pub from: PartitionFrom,
}

impl PartitionCondition {
    /// What this goes by of a partition: the value that is joined, and the piece of its set.
    pub fn part_of<'a>(&self, partition: &'a Partition) -> Option<(Partition, &'a str)> {
        let has_all = self.keys.iter().all(|key| partition.value(key).is_some());
        let value = partition.only(&self.join).filter(|_| has_all)?;
        let piece = self.full_set.as_ref().map_or(Some(""), |set| partition.value(&set.key))?;
        Some((value, piece))
    }
}
