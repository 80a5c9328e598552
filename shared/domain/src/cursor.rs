//! What a target's last triggers consumed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{AssetId, GroupName, TriggerKey};
use crate::version::Version;

/// A target's cursors and what stands in the way of its next claim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetCursor {
    /// The revision of the definition that the cursors belong to.
    pub definition_rev: u64,
    /// For each group and asset the version that the last trigger consumed. Absent for an asset
    /// that nothing was taken from and that had no version when the group was declared.
    pub taken: BTreeMap<GroupName, BTreeMap<AssetId, Version>>,
    /// The trigger that has not ended: at most one.
    pub open: Option<TriggerKey>,
    /// The last trigger that failed and whose data the next claim takes over.
    pub failed: Option<TriggerKey>,
    /// Set while an operator pauses the target.
    pub paused: Option<Paused>,
}

/// Who paused a target, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Paused {
    /// Since when.
    pub since: Timestamp,
    /// By whom.
    pub by: String,
}

impl TargetCursor {
    /// What a group has taken from an asset.
    pub fn taken(&self, group: &GroupName, asset: AssetId) -> Option<&Version> {
        self.taken.get(group)?.get(&asset)
    }

    /// Moves a group's cursor on an asset forward; a version that is not beyond it changes nothing.
    pub fn take(&mut self, group: &GroupName, asset: AssetId, version: &Version) {
        let taken = self.taken.entry(group.clone()).or_default();
        let is_beyond = taken.get(&asset).is_none_or(|known| known.position < version.position);
        if is_beyond {
            taken.insert(asset, version.clone());
        }
    }
}
