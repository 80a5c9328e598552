//! The content of the items.

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;
use lakebell_domain::asset::{AssetKey, Format, FormatChoice, Location};
use lakebell_domain::commit::Commit;
use lakebell_domain::evaluation::SwitchedOff;
use lakebell_domain::event::Event;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TaskCode, TriggerKey, WorkflowCode};
use lakebell_domain::policy::Length;
use lakebell_domain::sensor::SensorRun;
use lakebell_domain::state::AssetState;
use lakebell_domain::target::{AssetPrefix, Target, TargetSpec, WorkflowRef};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal};
use serde::{Deserialize, Serialize};

use crate::asset_settings::AssetSettings;

/// How many versions the ring holds.
pub const RING: usize = 64;
/// The owner of assets that a warehouse without a project brought: they are every project's own.
pub const NO_PROJECT: ProjectCode = ProjectCode(0);

/// An asset's head: what it is, and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssetHead {
    /// Its key.
    pub key: AssetKey,
    /// The project that owns it.
    pub project: ProjectCode,
    /// The other projects that may read it and depend on it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub granted: BTreeSet<ProjectCode>,
    /// Where the table lives.
    pub location: Location,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// The epoch that it was registered with; a later one than the first where it was registered before.
    #[serde(default, skip_serializing_if = "is_first")]
    pub registered_epoch: Epoch,
    /// Set once it is deregistered; the epoch lives on in the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deregistered_at: Option<Timestamp>,
    /// What was set for it.
    #[serde(default, skip_serializing_if = "AssetSettings::is_default")]
    pub settings: AssetSettings,
    /// Its registers.
    pub state: AssetState,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_first(epoch: &Epoch) -> bool {
    epoch.0 == 0
}

impl AssetHead {
    /// Whether a project may read it and depend on it.
    pub fn is_visible_to(&self, project: ProjectCode) -> bool {
        self.is_own_of(project) || self.granted.contains(&project)
    }

    /// Whether a project owns it, or nobody does.
    pub fn is_own_of(&self, project: ProjectCode) -> bool {
        self.project == project || self.project == NO_PROJECT
    }

    /// Whether an event is of the present registration: another project may have had the table before.
    pub fn owns(&self, event: &Event) -> bool {
        event.recorded_at >= self.registered_at
            && event.position.is_none_or(|position| position.epoch >= self.registered_epoch)
    }

    /// The registers, unless the asset is deregistered.
    pub fn live_state(&self) -> Option<&AssetState> {
        self.deregistered_at.is_none().then_some(&self.state)
    }
}

impl RegisteredAsset {
    /// Whether a project may read it and depend on it.
    pub fn is_visible_to(&self, project: ProjectCode) -> bool {
        self.project == project || self.project == NO_PROJECT || self.granted.contains(&project)
    }
}

/// One version in the ring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingEntry {
    /// Its ordinal.
    #[serde(rename = "o")]
    pub ordinal: Ordinal,
    /// Its fingerprint.
    #[serde(rename = "f")]
    pub fingerprint: Fingerprint,
    /// The entity tag of its commit file when it was read.
    #[serde(rename = "e")]
    pub etag: String,
}

/// The newest versions of the current epoch, newest last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ring {
    /// At most [`RING`].
    pub versions: VecDeque<RingEntry>,
    /// The oldest version from which the fast path went on without looking at it again: a
    /// rewrite could hide there until a scan has compared it.
    pub unverified: Option<Ordinal>,
    /// The tags that the last scan saw; absent before the first one and in a new epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<TagsSeen>,
}

/// The tags of a table as a scan saw them, so that the next one tells without a read whether any
/// appeared, moved or went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagsSeen {
    /// A digest of their names and entity tags.
    pub digest: String,
    /// When the newest of them was written, by the store's clock; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
}

impl Ring {
    /// Adds a version, dropping the oldest beyond the size.
    pub fn push(&mut self, entry: RingEntry) {
        self.versions.push_back(entry);
        while self.versions.len() > RING {
            self.versions.pop_front();
        }
    }

    /// Whether it is one of these commits.
    pub fn holds(&self, commit: &Commit) -> bool {
        let is_same = |entry: &RingEntry| entry.ordinal == commit.ordinal && entry.fingerprint == commit.fingerprint;
        self.versions.iter().any(is_same)
    }

    /// The version with this ordinal, where it is still held.
    pub fn find(&self, ordinal: Ordinal) -> Option<&RingEntry> {
        self.versions.iter().rev().find(|entry| entry.ordinal == ordinal)
    }

    /// The version with this ordinal, where it is still held and `etag` does not already say that
    /// the object is the one that was read.
    pub fn find_unless_same(&self, ordinal: Ordinal, etag: Option<&str>) -> Option<&RingEntry> {
        self.find(ordinal).filter(|entry| etag != Some(entry.etag.as_str()))
    }
}

/// The mark that a target depends on an asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pointer {
    /// The target.
    pub target: TargetId,
    /// Every asset of the target, so that one batch reads them all.
    pub members: Vec<AssetId>,
    /// The revision of the definition that put it.
    pub definition_rev: u64,
    /// The target looks at every commit: their events are kept for longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_history: bool,
    /// The target goes by the partitions that commits touched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_partitions: bool,
    /// The target follows rewrites by itself, once two reads that are this far apart agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_rewrites_after: Option<Length>,
}

/// The mark that a target takes in every asset of a database whose table name begins with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// The target.
    pub target: TargetId,
    /// What it takes in.
    pub prefix: AssetPrefix,
}

/// The switch of a project, or of all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Switch {
    /// Set while nothing may start.
    pub off: Option<SwitchedOff>,
}

/// What a run of a waiting task was answered: every later poll of it gets the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SensorAnswer {
    /// The target that it asked for.
    pub target: TargetId,
    /// The task.
    pub task: TaskCode,
    /// Its run.
    pub run: SensorRun,
    /// The trigger that it took.
    pub trigger: TriggerKey,
    /// When it was answered first.
    pub at: Timestamp,
}

/// A place for a poll that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SensorPlace {
    /// Taken until then; free after it, whatever became of the poll.
    pub until: Timestamp,
}

/// A target's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// As it was declared.
    pub spec: TargetSpec,
    /// Its assets resolved.
    pub target: Target,
    /// When it was declared or altered.
    pub declared_at: Timestamp,
    /// Set once it is undeclared; revision and generation go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undeclared_at: Option<Timestamp>,
}

/// An asset's place in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredAsset {
    /// Its id.
    pub id: AssetId,
    /// Its key.
    pub key: AssetKey,
    /// The project that owns it.
    pub project: ProjectCode,
    /// The other projects that may read it and depend on it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub granted: BTreeSet<ProjectCode>,
    /// Where it lives.
    pub location: Location,
    /// What was set for it.
    #[serde(default)]
    pub settings: AssetSettings,
}

/// A target's place in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredTarget {
    /// Its identity.
    pub id: TargetId,
    /// The workflow that it starts.
    pub workflow: WorkflowRef,
    /// Whether it takes in assets by prefix.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_prefixes: bool,
}

impl RegisteredTarget {
    /// Whether it starts the workflow with this code.
    pub fn starts(&self, workflow: WorkflowCode) -> bool {
        self.workflow == WorkflowRef::Code(workflow)
    }
}

/// What a name or a location leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    /// The asset.
    pub id: AssetId,
    /// The project that owns it, so that a push need not read the head to tell; `None` where it was
    /// not kept, and the head tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectCode>,
}

/// A registered prefix whose tables are found and registered by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Warehouse {
    /// The prefix: tables live at `<location>/<database>.db/<table>`.
    pub location: Location,
    /// The format of its tables, or that each table's own is recognised.
    pub format: FormatChoice,
    /// The catalog that asset keys name; absent for two-part keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The project that owns what is found.
    #[serde(default = "no_project")]
    pub project: ProjectCode,
}

const fn no_project() -> ProjectCode {
    ProjectCode(0)
}

/// A table that was seen and is not registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unregistered {
    /// Where it lives; its key or its name where a writer told no location.
    pub location: String,
    /// The project whose writer named it, which alone is told of it; absent where storage showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectCode>,
    /// Its format, where that is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// What pointed at it.
    pub object: String,
    /// Why nothing came of it.
    pub reason: String,
}
