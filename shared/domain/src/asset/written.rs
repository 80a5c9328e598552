//! Keys whose format is left to the table that lies at the location.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AssetKey, Format, Names, split};
use crate::Invalid;

/// What stands in the place of a format that is to be recognised.
const AUTO: &str = "auto";

/// A table format, or whichever the table at the location has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FormatChoice {
    /// Each table's own, told from its folders.
    Auto,
    /// Apache Paimon.
    Paimon,
    /// Apache Iceberg.
    Iceberg,
    /// Apache Hudi.
    Hudi,
    /// Delta Lake.
    Delta,
}

impl FormatChoice {
    /// The format, unless it is to be recognised.
    pub const fn told(self) -> Option<Format> {
        match self {
            Self::Auto => None,
            Self::Paimon => Some(Format::Paimon),
            Self::Iceberg => Some(Format::Iceberg),
            Self::Hudi => Some(Format::Hudi),
            Self::Delta => Some(Format::Delta),
        }
    }

    /// Whether a table of a format is meant.
    pub fn takes(self, format: Format) -> bool {
        self.told().is_none_or(|told| told == format)
    }
}

impl From<Format> for FormatChoice {
    fn from(format: Format) -> Self {
        match format {
            Format::Paimon => Self::Paimon,
            Format::Iceberg => Self::Iceberg,
            Format::Hudi => Self::Hudi,
            Format::Delta => Self::Delta,
        }
    }
}

/// An asset's key as it may be written where the location stands beside it: an [`AssetKey`], or
/// `auto://[<catalog>/]<database>/<table>[@branch]`, whose format is that of the table there.
///
/// ```
/// use lakebell_domain::asset::{Format, WrittenKey};
///
/// let written: WrittenKey = "auto://sales/orders".parse().unwrap();
/// assert_eq!(written.told(), None);
/// assert_eq!(written.of(Format::Delta).unwrap().to_string(), "delta://sales/orders");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WrittenKey {
    /// `None` where it is to be recognised.
    format: Option<Format>,
    names: Arc<Names>,
}

impl WrittenKey {
    /// The key, where it names its format.
    pub fn told(&self) -> Option<AssetKey> {
        self.format.map(|format| AssetKey { format, names: self.names.clone() })
    }

    /// The key of a table of this format.
    ///
    /// Errors: `Invalid` where it is too long with the format's name.
    pub fn of(&self, format: Format) -> Result<AssetKey, Invalid> {
        AssetKey::of(format, self.names.clone())
    }

    /// The branch, `None` for the main line.
    pub fn branch(&self) -> Option<&str> {
        self.names.branch.as_deref()
    }

    /// Whether a key is what this one comes to, for a table of some format.
    pub fn may_be(&self, key: &AssetKey) -> bool {
        self.names == key.names && self.format.is_none_or(|format| format == key.format)
    }
}

impl From<AssetKey> for WrittenKey {
    fn from(key: AssetKey) -> Self {
        Self { format: Some(key.format), names: key.names }
    }
}

impl fmt::Display for WrittenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.format.map_or(AUTO, Format::as_str), self.names)
    }
}

impl FromStr for WrittenKey {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match split(text)? {
            (AUTO, rest) => Ok(Self { format: None, names: Arc::new(Names::read(rest, text)?) }),
            _ => text.parse::<AssetKey>().map(Self::from),
        }
    }
}

impl Serialize for WrittenKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WrittenKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
