//! What a dependency names: one asset, or all whose names begin alike.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Invalid;
use crate::asset::{AssetKey, Format};

/// One asset, or every asset of a database whose table name begins with a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AssetSelector {
    /// By its key or one of its aliases.
    Key(AssetKey),
    /// `paimon://dw_db/ods_*`: also tables that are registered later.
    Prefix(AssetPrefix),
}

impl AssetSelector {
    /// The key, where it names one asset.
    pub const fn key(&self) -> Option<&AssetKey> {
        match self {
            Self::Key(key) => Some(key),
            Self::Prefix(_) => None,
        }
    }

    /// The prefix, where it names one.
    pub const fn prefix(&self) -> Option<&AssetPrefix> {
        match self {
            Self::Key(_) => None,
            Self::Prefix(prefix) => Some(prefix),
        }
    }
}

impl fmt::Display for AssetSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Prefix(prefix) => prefix.fmt(f),
        }
    }
}

impl FromStr for AssetSelector {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text.strip_suffix('*') {
            Some(start) => AssetPrefix::parse(start, text).map(Self::Prefix),
            None => text.parse().map(Self::Key),
        }
    }
}

impl From<AssetKey> for AssetSelector {
    fn from(key: AssetKey) -> Self {
        Self::Key(key)
    }
}

impl Serialize for AssetSelector {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AssetSelector {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Every table of a database whose name begins with a text, on its main line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetPrefix {
    format: Format,
    catalog: Option<String>,
    database: String,
    start: String,
}

impl AssetPrefix {
    fn parse(start: &str, whole: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new(
                "asset",
                format!("`{}` is no prefix of asset keys", whole.escape_debug()),
                "write <format>://[<catalog>/]<database>/<start of the table name>*, as in paimon://dw_db/ods_*",
            )
        };
        if start.contains('*') || start.contains('@') {
            return Err(wrong());
        }
        // An asset key needs a table of at least one character.
        let key: AssetKey = format!("{start}_").parse().map_err(|_| wrong())?;
        let table = key.table();
        Ok(Self {
            format: key.format(),
            catalog: key.catalog().map(str::to_owned),
            database: key.database().to_owned(),
            start: table[..table.len() - 1].to_owned(),
        })
    }

    /// The database, as `<format>://[<catalog>/]<database>`.
    pub fn database(&self) -> String {
        let catalog = self.catalog.as_ref().map(|catalog| format!("{catalog}/")).unwrap_or_default();
        format!("{}://{catalog}{}", self.format, self.database)
    }

    /// Whether it takes in an asset.
    pub fn takes_in(&self, key: &AssetKey) -> bool {
        key.branch().is_none()
            && key.format() == self.format
            && key.catalog() == self.catalog.as_deref()
            && key.database() == self.database
            && key.table().starts_with(&self.start)
    }
}

impl fmt::Display for AssetPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = format!("{}_", self.start);
        match AssetKey::new(self.format, self.catalog.as_deref(), &self.database, &table, None) {
            Ok(key) => {
                let text = key.to_string();
                write!(f, "{}*", &text[..text.len() - 1])
            }
            Err(_) => write!(f, "{}://{}/{}*", self.format, self.database, self.start),
        }
    }
}

impl Serialize for AssetPrefix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AssetPrefix {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse() {
            Ok(AssetSelector::Prefix(prefix)) => Ok(prefix),
            Ok(AssetSelector::Key(_)) => Err(serde::de::Error::custom("a prefix of asset keys ends with `*`")),
            Err(invalid) => Err(serde::de::Error::custom(invalid)),
        }
    }
}
