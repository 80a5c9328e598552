//! The conditions of a resolved dependency.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::commit::CommitKind;
use crate::policy::{Every, Length, Operations, PartitionCondition, Pattern};
use crate::version::{Epoch, Ordinal};

/// What a failed version means for a dependency that asks for PASSED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnFailedVersion {
    /// While the newest version with a verdict is FAILED, nothing is taken.
    #[default]
    Block,
    /// The newest PASSED version is taken and the failed ones are listed.
    PassOver,
}

/// A `minSnapshotId` after it has been looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Minimum {
    /// As it was declared.
    pub snapshot_id: String,
    /// The history that it belonged to when it was declared.
    pub epoch: Epoch,
    /// Its ordinal there.
    pub ordinal: Ordinal,
}

/// Which checks a version must have passed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QualityCondition {
    /// By name; empty means all that have reported on the version.
    pub checks: Vec<String>,
    /// What a failed version means.
    pub on_failed: OnFailedVersion,
}

/// What must hold of one asset, all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools)] // each is a key of its own in the declaration
pub struct Conditions {
    /// A version beyond the cursor is needed; otherwise a register that is named has to move.
    pub snapshot_required: bool,
    /// Which commits count; `None` for those that change data.
    pub commit_kinds: Option<BTreeSet<CommitKind>>,
    /// The lowest version that counts.
    pub minimum: Option<Minimum>,
    /// Commits that say themselves that they changed no row do not count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_empty: bool,
    /// Which writers and operations count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Operations>,
    /// How many commits that count there must be beyond the cursor.
    #[serde(skip_serializing_if = "is_one")]
    pub min_new_snapshots: u64,
    /// How many rows they must have added together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_delta_records: Option<i64>,
    /// The event time that the watermark must have reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Timestamp>,
    /// How far behind now the watermark may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_lag: Option<Length>,
    /// One trigger for each window that the watermark has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// The version must have PASSED.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<QualityCondition>,
    /// The version's schema must be COMPATIBLE.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub schema_compatible: bool,
    /// The version must have a tag of this form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Pattern>,
    /// A backfill must have finished since the last trigger, and none may run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub backfill_completed: bool,
    /// CDC lag must have recovered since the last trigger.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cdc_lag_recovered: bool,
    /// The partitions that it goes by: one trigger for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionCondition>,
    /// It may be absent, and must not have failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_one(count: &u64) -> bool {
    *count == 1
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            snapshot_required: true,
            commit_kinds: None,
            minimum: None,
            ignore_empty: false,
            operations: None,
            min_new_snapshots: 1,
            min_delta_records: None,
            watermark: None,
            max_lag: None,
            every: None,
            quality: None,
            schema_compatible: false,
            tag: None,
            backfill_completed: false,
            cdc_lag_recovered: false,
            partition: None,
            optional: false,
        }
    }
}

impl Conditions {
    /// Whether some register other than the version is named.
    pub const fn names_a_register(&self) -> bool {
        self.watermark.is_some()
            || self.max_lag.is_some()
            || self.every.is_some()
            || self.partition.is_some()
            || self.quality.is_some()
            || self.schema_compatible
            || self.tag.is_some()
            || self.backfill_completed
            || self.cdc_lag_recovered
    }

    /// Whether a failed check blocks the group although the member may be absent.
    pub fn must_not_fail(&self) -> bool {
        let passes_over = |quality: &QualityCondition| quality.on_failed == OnFailedVersion::PassOver;
        self.optional && !self.quality.as_ref().is_some_and(passes_over)
    }

    /// Whether each commit must be looked at, not only the newest of its kind.
    pub const fn needs_history(&self) -> bool {
        self.operations.is_some()
    }
}
