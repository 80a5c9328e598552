//! What a table demands of those who read and write it.

use std::collections::BTreeSet;

use super::action::{ProtocolFields, Scalar};
use crate::error::FormatError;
use crate::json::{missing, shorten};

/// The newest protocol versions that this reader was written for.
const KNOWN_READER_VERSION: i64 = 3;
const KNOWN_WRITER_VERSION: i64 = 7;
/// Most features that are kept. Real tables have a dozen.
const MAX_FEATURES: usize = 128;
/// Longest name of a feature, in characters.
const MAX_FEATURE_CHARS: usize = 64;

/// Features of tables whose visible commits come from a catalog, in the order in which they came.
const CATALOG_MANAGED: [&str; 4] =
    ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview", "managedCommits-dev"];

/// Features that are known not to change what a commit file means. Names may end in `-preview`.
const UNDERSTOOD: [&str; 28] = [
    "allowColumnDefaults",
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "checkpointProtection",
    "clustering",
    "collations",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "geospatial",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "icebergWriterCompatV3",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
    "materializePartitionColumns",
    "rowTracking",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
    "variantShredding",
    "variantType",
];

/// The `protocol` action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// The version that a reader must understand: 1 to 3 are known.
    pub min_reader_version: i64,
    /// The version that a writer must understand: 1 to 7 are known.
    pub min_writer_version: i64,
    /// Features that a reader must understand, sorted.
    pub reader_features: BTreeSet<String>,
    /// Features that a writer must understand, sorted.
    pub writer_features: BTreeSet<String>,
}

impl Protocol {
    pub(super) fn read(fields: ProtocolFields<'_>) -> Result<Self, FormatError> {
        let version = |field: &str, value: &Scalar<'_>| value.int().ok_or_else(|| missing(field));
        let features = |names: Option<Vec<String>>| {
            let names = names.unwrap_or_default().into_iter().take(MAX_FEATURES);
            names.map(|name| shorten(&name, MAX_FEATURE_CHARS)).collect()
        };
        Ok(Self {
            min_reader_version: version("protocol.minReaderVersion", &fields.min_reader_version)?,
            min_writer_version: version("protocol.minWriterVersion", &fields.min_writer_version)?,
            reader_features: features(fields.reader_features),
            writer_features: features(fields.writer_features),
        })
    }

    /// Whether the catalog decides which commits are visible. Then a commit file follows the commit
    /// late, maybe much later, and the newest file is not the newest version.
    pub fn is_catalog_managed(&self) -> bool {
        self.features().any(|feature| CATALOG_MANAGED.contains(&feature))
    }

    /// What this table demands that is not understood, each named as the table names it: features,
    /// and `minReaderVersion=N` or `minWriterVersion=N` above the known ones.
    ///
    /// Commits are read all the same, by the rule that unknown actions are ignored; a person should
    /// know that they may mean something else.
    pub fn not_understood(&self) -> Vec<String> {
        let versions = [
            ("minReaderVersion", self.min_reader_version, KNOWN_READER_VERSION),
            ("minWriterVersion", self.min_writer_version, KNOWN_WRITER_VERSION),
        ];
        let versions = versions.into_iter().filter(|(_, version, known)| version > known);
        let versions = versions.map(|(name, version, _)| format!("{name}={version}"));
        let is_understood = |feature: &str| {
            let stable = feature.strip_suffix("-preview").unwrap_or(feature);
            UNDERSTOOD.contains(&stable) || CATALOG_MANAGED.contains(&feature)
        };
        let features: BTreeSet<&str> = self.features().filter(|feature| !is_understood(feature)).collect();
        versions.chain(features.into_iter().map(str::to_owned)).collect()
    }

    fn features(&self) -> impl Iterator<Item = &str> {
        self.reader_features.iter().chain(&self.writer_features).map(String::as_str)
    }
}

#[cfg(test)]
mod tests;
