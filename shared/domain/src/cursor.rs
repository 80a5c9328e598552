//! What a target's last triggers consumed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::commit::Millis;
use crate::ids::{AssetId, GroupName, TriggerKey};
use crate::policy::{Partition, Window};
use crate::state::{AssetState, Totals};
use crate::target::Conditions;
use crate::version::{Position, Version};

/// Most partitions that a group remembers as taken: more than an asset keeps.
pub const MAX_TAKEN_PARTITIONS: usize = 400;

/// A target's cursors and what stands in the way of its next claim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TargetCursor {
    /// The revision of the definition that the cursors belong to.
    pub definition_rev: u64,
    /// For each group and asset what the last trigger consumed. Absent for an asset that was not
    /// read when the group was declared: its first read is the beginning.
    pub taken: BTreeMap<GroupName, BTreeMap<AssetId, Taken>>,
    /// For each group with windows the last one that was taken.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub windows: BTreeMap<GroupName, Window>,
    /// For each group with partitions the ones that were taken. Each claim keeps
    /// [`MAX_TAKEN_PARTITIONS`] of them, those first that the tables still name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub partitions: BTreeMap<GroupName, BTreeSet<Partition>>,
    /// For each group and asset the version up to which it takes one step, although the target takes
    /// each: the newest when it was last resumed. Absent once it is taken.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub joined: BTreeMap<GroupName, BTreeMap<AssetId, Position>>,
    /// For each group and asset how far commits were looked through one by one, where those are many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub looked: BTreeMap<GroupName, BTreeMap<AssetId, Looked>>,
    /// The trigger that has not ended: at most one. A FAILED one stays here where the target holds
    /// for it.
    pub open: Option<TriggerKey>,
    /// The last trigger that failed and whose data the next claim takes over.
    pub failed: Option<TriggerKey>,
    /// The last trigger whose workflow started, whose own end is told beside the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<TriggerKey>,
    /// Set while an operator pauses the target.
    pub paused: Option<Paused>,
    /// When the target was declared or last resumed with `onResume: skip`: times of day and of a cron
    /// expression count from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When its last trigger was claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Timestamp>,
    /// The first moment at which a member was seen to have advanced since the last claim; kept where
    /// a deadline counts from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advanced_at: Option<Timestamp>,
    /// The last passed deadline that was told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alarmed: Option<Timestamp>,
    /// When time alone can change the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

/// What a group has consumed of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taken {
    /// Up to which version; absent: before the first.
    pub version: Option<Version>,
    /// What had been counted up to that version.
    pub totals: Totals,
    /// The watermark that was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark: Option<Millis>,
    /// The tag that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The schema id that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_id: Option<i64>,
    /// When the last finished backfill that was taken had finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Timestamp>,
    /// When the recovery from CDC lag that was taken had been reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cdc: Option<Timestamp>,
}

impl Taken {
    /// All that is there of an asset now, for a dependency with these conditions.
    pub fn everything(state: &AssetState, conditions: &Conditions) -> Self {
        let is_wanted = |name: &str| conditions.tag.as_ref().is_some_and(|tag| tag.matches(name));
        let tags = state.tags.iter().filter(|(name, _)| is_wanted(name));
        Self {
            version: state.table.clone(),
            totals: state.totals,
            watermark: state.watermark.as_ref().map(|watermark| watermark.at),
            tag: tags.max_by_key(|(_, entry)| entry.position).map(|(name, _)| name.clone()),
            schema_id: state.schema.current,
            backfill: state.finished_backfill(),
            cdc: state.cdc_lag_recovered_at,
        }
    }

    /// Where it ends; `None` before the first version.
    pub fn position(&self) -> Option<Position> {
        self.version.as_ref().map(|version| version.position)
    }

    /// Moves every part forward that the other is beyond in.
    fn advance(&mut self, beyond: &Self) {
        match beyond.position().cmp(&self.position()) {
            Ordering::Greater => {
                let epoch = |taken: &Self| taken.position().map(|position| position.epoch);
                // Another history has a watermark of its own.
                if self.version.is_some() && epoch(beyond) > epoch(self) {
                    self.watermark = None;
                }
                self.version.clone_from(&beyond.version);
                self.totals = beyond.totals;
                // A tag is one of its version.
                self.tag.clone_from(&beyond.tag);
                self.schema_id = beyond.schema_id.or(self.schema_id);
            }
            Ordering::Equal => {
                // Of two tags on one version the later name counts.
                if beyond.tag > self.tag {
                    self.tag.clone_from(&beyond.tag);
                }
                self.schema_id = beyond.schema_id.or(self.schema_id);
            }
            Ordering::Less => {}
        }
        self.watermark = self.watermark.max(beyond.watermark);
        self.backfill = self.backfill.max(beyond.backfill);
        self.cdc = self.cdc.max(beyond.cdc);
    }
}

/// How far a group's member was looked through, commit by commit, under the definition that the cursors
/// belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Looked {
    /// Up to here no commit beyond the cursor counts, but for the one that was found.
    pub up_to: Position,
    /// The newest that counts, where the newest is what is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Position>,
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
    /// Notes a partition as taken by a group.
    pub fn take_partition(&mut self, group: &GroupName, partition: Partition) {
        self.partitions.entry(group.clone()).or_default().insert(partition);
    }

    /// The version up to which a group's next step on an asset goes, where a resume joins several.
    pub fn joins_up_to(&self, group: &GroupName, asset: AssetId) -> Option<Position> {
        self.joined.get(group)?.get(&asset).copied()
    }

    /// What is taken is no step any more.
    pub fn forget_joined(&mut self) {
        let taken = &self.taken;
        self.joined.retain(|group, of_group| {
            let taken = taken.get(group);
            let at = |asset: &AssetId| taken.and_then(|taken| taken.get(asset)?.position());
            of_group.retain(|asset, up_to| at(asset) < Some(*up_to));
            !of_group.is_empty()
        });
    }

    /// What a group has taken from an asset, in every respect.
    pub fn at(&self, group: &GroupName, asset: AssetId) -> Option<&Taken> {
        self.taken.get(group)?.get(&asset)
    }

    /// The version that a group has taken from an asset.
    pub fn taken(&self, group: &GroupName, asset: AssetId) -> Option<&Version> {
        self.at(group, asset)?.version.as_ref()
    }

    /// Moves a group's cursor on an asset forward; what is not beyond it changes nothing. Nothing at
    /// all leaves an absent one absent, so that the first read of the asset is still its beginning.
    pub fn take(&mut self, group: &GroupName, asset: AssetId, beyond: &Taken) {
        if *beyond == Taken::default() {
            return;
        }
        self.taken.entry(group.clone()).or_default().entry(asset).or_default().advance(beyond);
    }
}
