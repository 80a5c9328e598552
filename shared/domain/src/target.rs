//! What is started, and the groups of dependencies that start it.

mod check;
mod conditions;
mod partitions;
mod resolve;
mod rfc;
mod rule;
mod selector;
mod spec;

pub use conditions::{Conditions, Minimum, OnFailedVersion, QualityCondition};
pub use resolve::{KnownAsset, KnownAssets, ordinal_of, snapshot_at};
pub use rfc::{DependencyRecord, Gathered, gather};
pub(crate) use rule::joined;
pub use selector::{AssetPrefix, AssetSelector};
pub use spec::{Compatible, Completed, DependencySpec, GroupSpec, Passed, SnapshotIdText, StartFrom, TargetSpec};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::ids::{Alias, AssetId, ConnectionName, GroupName, TargetId, TaskCode, WorkflowCode};
use crate::policy::{Coalesce, Mode, PartitionFrom, Policies, StartAs};

/// Most members of one group: a claim reads and names each of them.
pub const MAX_GROUP_MEMBERS: usize = 99;
/// Most groups of one target.
pub const MAX_GROUPS: usize = 20;
/// Most members of a target over all its groups, so that its cursors fit one item.
pub const MAX_TARGET_MEMBERS: usize = 1_000;
/// Most commit kinds that one dependency may name.
pub const MAX_COMMIT_KINDS: usize = 16;

/// A workflow as a target names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum WorkflowRef {
    /// By its code, which never changes.
    Code(WorkflowCode),
    /// By its name within the project; looked up before each start, with a bounded cache.
    Name(String),
}

impl std::fmt::Display for WorkflowRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{code}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// How many members of a group must have advanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Advance {
    /// Every one.
    #[default]
    All,
    /// One.
    Any,
    /// This many.
    AtLeast(usize),
}

/// A declared target, its assets resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its identity.
    pub id: TargetId,
    /// Grows when the target is undeclared and declared again, and when its cursor is reset.
    pub generation: u32,
    /// The DolphinScheduler to start it on.
    pub connection: ConnectionName,
    /// The workflow.
    pub workflow: WorkflowRef,
    /// The task that it is about: with `startAs: sensor` the one that waits, otherwise the one to start at.
    pub start_at: Option<TaskCode>,
    /// Alternatives.
    pub groups: Vec<Group>,
    /// Whether it is switched on.
    pub enabled: bool,
    /// Why it cannot be what it was declared to be any more, as where its prefixes take in too many
    /// tables: its cursors are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// When and how it may start.
    #[serde(default)]
    pub policies: Policies,
    /// Its workflow may write what starts it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allows_self_loop: bool,
}

/// Dependencies that must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Its name within the target.
    pub name: GroupName,
    /// How many members must have advanced.
    pub advance: Advance,
    /// What other alternatives consume stays new for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub independent: bool,
    /// Its members.
    pub members: Vec<Member>,
    /// The prefixes that take in more of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<AssetPrefix>,
}

/// One asset and the conditions on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The asset.
    pub asset: AssetId,
    /// Its key, for people.
    pub key: AssetKey,
    /// What the started workflow calls it.
    pub alias: Alias,
    /// What must hold of it.
    #[serde(default)]
    pub conditions: Conditions,
}

impl Group {
    /// Whether an asset is a member.
    pub fn has(&self, asset: AssetId) -> bool {
        self.members.iter().any(|member| member.asset == asset)
    }
}

impl Target {
    /// Every asset of every group, once.
    pub fn assets(&self) -> BTreeMap<AssetId, &AssetKey> {
        self.groups.iter().flat_map(|group| &group.members).map(|member| (member.asset, &member.key)).collect()
    }

    /// Whether an asset is a member of some group.
    pub fn depends_on(&self, asset: AssetId) -> bool {
        self.groups.iter().any(|group| group.has(asset))
    }

    /// Whether some dependency goes by the partitions that commits touched.
    pub fn reads_partitions(&self) -> bool {
        let mut members = self.groups.iter().flat_map(|group| &group.members);
        members.any(|member| {
            member.conditions.partition.as_ref().is_some_and(|partition| partition.from == PartitionFrom::Commit)
        })
    }

    /// The task that waits for it in a running workflow, where one does.
    pub fn sensor(&self) -> Option<TaskCode> {
        self.start_at.filter(|_| self.policies.start_as == StartAs::Sensor)
    }

    /// Whether what is ready is claimed when its task asks, and not before.
    pub fn waits_for_sensor(&self) -> bool {
        self.sensor().is_some() && self.policies.mode == Mode::Live
    }

    /// The group with a name.
    pub fn group(&self, name: &GroupName) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == *name)
    }

    /// Whether each commit of its assets must be looked at, not only the newest of its kind.
    pub fn needs_history(&self) -> bool {
        let mut members = self.groups.iter().flat_map(|group| &group.members);
        self.policies.coalesce == Coalesce::Each || members.any(|member| member.conditions.needs_history())
    }

    /// Whether each trigger stands for one version, one window or one partition, so that none may join another.
    pub fn is_apart(&self) -> bool {
        let mut members = self.groups.iter().flat_map(|group| &group.members);
        self.policies.coalesce == Coalesce::Each
            || members.any(|member| member.conditions.every.is_some() || member.conditions.partition.is_some())
    }
}
