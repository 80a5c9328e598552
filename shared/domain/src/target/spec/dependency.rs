//! A group and its dependencies as a person declares them.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::commit::CommitKind;
use crate::ids::{Alias, GroupName};
use crate::policy::{Every, FullSet, Length, Operations, PartitionFrom, PartitionKeys, Pattern};
use crate::target::Advance;
use crate::target::conditions::OnFailedVersion;
use crate::target::selector::AssetSelector;

/// A group as a person declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name within the target.
    #[serde(default = "default_group")]
    pub name: GroupName,
    /// How many members must have advanced; absent, all, and any where a prefix is among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advance: Option<Advance>,
    /// What other alternatives consume stays new for this one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub independent: bool,
    /// What must hold, all of it.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 99)))]
    pub dependencies: Vec<DependencySpec>,
}

impl GroupSpec {
    /// How many members must have advanced.
    pub fn advance(&self) -> Advance {
        let has_prefix = self.dependencies.iter().any(|dependency| dependency.asset.key().is_none());
        self.advance.unwrap_or(if has_prefix { Advance::Any } else { Advance::All })
    }
}

pub(in crate::target) fn default_group() -> GroupName {
    GroupName::new("default").unwrap_or_else(|_| unreachable!("`default` is a valid name"))
}

/// A dependency as a person declares it.
#[allow(clippy::struct_excessive_bools)] // each is a key of its own in the file
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DependencySpec {
    /// The asset's key or one of its aliases, or a prefix of keys that ends with `*`.
    pub asset: AssetSelector,
    /// What the started workflow calls it; absent, derived from the table's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<Alias>,
    /// A new commit is needed. `false`: a register that is named below has to move.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub snapshot_required: bool,
    /// That snapshot or a later one of the same history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_snapshot_id: Option<SnapshotIdText>,
    /// How many commits that count there must be beyond the cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))]
    pub min_new_snapshots: Option<u64>,
    /// Only commits of these kinds count; absent, those that change data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_kinds: Option<BTreeSet<CommitKind>>,
    /// Commits that say themselves that they changed no row do not count.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ignore_empty: bool,
    /// Which writers and operations count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Operations>,
    /// How many rows must have been added, summed over the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub min_delta_records: Option<i64>,
    /// The event time that the watermark must have reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// How far behind now the watermark may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lag: Option<Length>,
    /// One trigger for each window that the watermark has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// The version must have passed its checks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_status: Option<Passed>,
    /// Which checks; absent, all that have reported on the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<BTreeSet<String>>,
    /// What a failed version means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failed_version: Option<OnFailedVersion>,
    /// The version's schema must be compatible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_status: Option<Compatible>,
    /// The version must have a tag of this form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Pattern>,
    /// A backfill must have finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Completed>,
    /// CDC lag must have recovered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cdc_lag_recovered: bool,
    /// It goes by partitions with these keys: one trigger for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionKeys>,
    /// The keys by which the members of a group are joined; absent, all of them but the one of the set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<PartitionKeys>,
    /// The values of one key that must all be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_set: Option<FullSet>,
    /// After which time a value that is not complete is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon: Option<Length>,
    /// What makes a partition present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_from: Option<PartitionFrom>,
    /// It may be absent, and must not have failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub optional: bool,
}

impl DependencySpec {
    /// A dependency on any new commit of an asset that changes data.
    pub fn on(asset: impl Into<AssetSelector>) -> Self {
        Self {
            asset: asset.into(),
            alias: None,
            snapshot_required: true,
            min_snapshot_id: None,
            min_new_snapshots: None,
            commit_kinds: None,
            ignore_empty: false,
            operations: None,
            min_delta_records: None,
            watermark: None,
            max_lag: None,
            every: None,
            quality_status: None,
            checks: None,
            on_failed_version: None,
            schema_status: None,
            tag: None,
            backfill: None,
            cdc_lag_recovered: false,
            partition: None,
            join: None,
            full_set: None,
            horizon: None,
            partition_from: None,
            optional: false,
        }
    }
}

const fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_yes(flag: &bool) -> bool {
    *flag
}

/// The one quality status that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Passed {
    /// Every required check passed.
    Passed,
}

/// The one schema status that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Compatible {
    /// Approved, or there from the beginning.
    Compatible,
}

/// The one backfill status that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Completed {
    /// It has finished.
    Completed,
}

/// A snapshot id, which JSON and YAML may give as a number or as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SnapshotIdText(pub String);

impl<'de> Deserialize<'de> for SnapshotIdText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NumberOrText {
            Number(u64),
            Text(String),
        }
        Ok(Self(match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => number.to_string(),
            NumberOrText::Text(text) => text,
        }))
    }
}
