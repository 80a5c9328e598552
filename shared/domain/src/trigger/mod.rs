//! One claim of a target, and the only arrows that move it to its end.

mod followed;
mod key;
mod machine;

pub use followed::{FOLLOWED_FOR, Followed, FollowedState, Sighting};
pub use key::{Distinct, trigger_key};
pub use machine::{Arrow, ArrowName, Decision, IllegalArrow, Status, StatusWord, WaitReason};

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::ids::{Alias, AssetId, ConnectionName, GroupName, InstanceId, TargetId, TaskCode, TraceId, TriggerKey};
use crate::policy::{Partition, Window};
use crate::reason::Reason;
use crate::sensor::Sensor;
use crate::start_params::start_parameters;
use crate::target::WorkflowRef;
use crate::version::Version;

/// Most passages kept in a trigger's own log; the oldest go first.
const MAX_LOG: usize = 24;

/// Why a target was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StartReason {
    /// A group was ready.
    Ready,
    /// A deadline passed.
    Deadline,
    /// An `orAt` time came.
    OrAt,
    /// A person asked for it.
    Manual,
}

impl StartReason {
    /// The word that the started workflow sees.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Deadline => "deadline",
            Self::OrAt => "orAt",
            Self::Manual => "manual",
        }
    }
}

/// From (exclusive) to (inclusive), of one group on one asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bounds {
    /// The last version that was consumed before; `None` before the first.
    pub from: Option<Version>,
    /// The last version that this trigger consumes; `None` for a member that never had one.
    pub to: Option<Version>,
}

/// What a trigger consumes of one asset, over all its groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// The asset.
    pub asset: AssetId,
    /// Its key when the trigger was claimed.
    pub key: AssetKey,
    /// What the started workflow calls it.
    pub aliases: BTreeSet<Alias>,
    /// What is consumed.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// The asset's watermark as read at evaluation, in milliseconds since 1970.
    pub watermark: Option<i64>,
    /// The partition that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// The tag by which the version was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Versions in the range whose checks failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_versions: Vec<Version>,
    /// Whether commits of a backfill are in the range.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_backfill: bool,
    /// The revision of the asset's state as read at evaluation.
    pub head_rev: u64,
}

/// One passage of a trigger along an arrow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Passage {
    /// When.
    pub at: Timestamp,
    /// Along which arrow.
    pub arrow: ArrowName,
    /// What was said, where something was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// One claim of a target.
///
/// Its status is private: [`Trigger::apply`] is the only way to change it, so that nothing but
/// the arrows of the protocol is possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Its key.
    pub key: TriggerKey,
    /// What it starts.
    pub target: TargetId,
    /// The target's generation when it was claimed.
    pub generation: u32,
    /// The revision of the target's definition when it was claimed.
    pub definition_rev: u64,
    /// The DolphinScheduler to start it on.
    pub connection: ConnectionName,
    /// The workflow.
    pub workflow: WorkflowRef,
    /// Start at this task and go on from there.
    pub start_at: Option<TaskCode>,
    /// Set where a waiting task takes it: nothing is started for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<Sensor>,
    /// Why.
    pub reason: StartReason,
    /// The groups that were ready, and those of a trigger that this one replaces.
    pub groups: BTreeSet<GroupName>,
    /// What it consumes, by asset.
    pub ranges: Vec<Range>,
    /// What it consumes, by group and asset; the next claim takes over the lower bounds if it fails.
    pub bounds: BTreeMap<GroupName, BTreeMap<AssetId, Bounds>>,
    /// The partition that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// The window that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The conditions that did not hold, where it was not started because all did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Reason>,
    /// What the started workflow receives.
    pub parameters: BTreeMap<String, String>,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// The trace of the hint that led to it.
    pub trace: TraceId,
    /// The failed or waiting trigger whose data it took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<TriggerKey>,
    status: Status,
    /// A fencing number: grows with every lease and redrive. A message that names an older one may
    /// start nothing.
    pub attempt: u32,
    /// Starts that were refused: the retry budget.
    pub tries: u32,
    /// Messages sent for it.
    pub sends: u32,
    /// The earliest time of its next step; absent once it has ended.
    pub due_at: Option<Timestamp>,
    /// The earliest start call that was tried, from which a duplicate check must look.
    pub first_tried_at: Option<Timestamp>,
    /// The workflow instance, once known.
    pub instance: Option<InstanceId>,
    /// Further instances that carry its key: started by the scheduler itself, reported to a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_instances: Vec<InstanceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    followed: Option<Followed>,
    /// Its way so far.
    pub log: Vec<Passage>,
}

/// What a claim fixes about a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// See the fields of [`Trigger`] of the same names.
    pub key: TriggerKey,
    /// Why.
    pub reason: StartReason,
    /// The groups.
    pub groups: BTreeSet<GroupName>,
    /// By asset.
    pub ranges: Vec<Range>,
    /// By group and asset.
    pub bounds: BTreeMap<GroupName, BTreeMap<AssetId, Bounds>>,
    /// The partition that it stands for.
    pub partition: Option<Partition>,
    /// The window that it stands for.
    pub window: Option<Window>,
    /// The conditions that did not hold.
    pub unmet: Vec<Reason>,
    /// The trigger whose data it takes over, with what it inherits.
    pub inherits: Option<Inheritance>,
}

impl Claim {
    /// What the started workflow receives. Built where a trigger is, not with each evaluation that
    /// finds one: there are six for each alias.
    pub fn parameters(&self) -> BTreeMap<String, String> {
        start_parameters(&self.key, self.reason, &self.groups, &self.ranges, self.window.as_ref())
    }
}

/// What a trigger inherits from the one that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inheritance {
    /// The replaced trigger.
    pub from: TriggerKey,
    /// Its refused starts.
    pub tries: u32,
    /// Set when it was waiting: the new one waits until the same time, for the same reason.
    pub waiting: Option<(WaitReason, Timestamp)>,
}

impl Trigger {
    /// A claimed trigger: queued, or waiting where it inherits a back-off. A queued one counts as
    /// sent once, and `resend_at` is when to send it again if nobody has leased it. One that a waiting
    /// task takes is queued for it, and is never sent.
    pub fn claimed(
        target: &crate::target::Target,
        definition_rev: u64,
        claim: Claim,
        trace: TraceId,
        now: Timestamp,
        resend_at: Timestamp,
    ) -> Self {
        let sensor = target.sensor().map(|task| Sensor { task, taken_by: None });
        let waiting = claim.inherits.as_ref().and_then(|inherited| inherited.waiting.clone());
        let (status, due_at) = match waiting {
            _ if sensor.is_some() => (Status::Queued, None),
            Some((reason, due_at)) => (Status::Waiting { reason }, Some(due_at)),
            None => (Status::Queued, Some(resend_at)),
        };
        let parameters = claim.parameters();
        Self {
            key: claim.key,
            target: target.id.clone(),
            generation: target.generation,
            definition_rev,
            connection: target.connection.clone(),
            workflow: target.workflow.clone(),
            start_at: target.start_at.filter(|_| sensor.is_none()),
            reason: claim.reason,
            groups: claim.groups,
            ranges: claim.ranges,
            bounds: claim.bounds,
            partition: claim.partition,
            window: claim.window,
            unmet: claim.unmet,
            parameters,
            claimed_at: now,
            trace,
            replaces: claim.inherits.as_ref().map(|inherited| inherited.from.clone()),
            status,
            attempt: 0,
            tries: claim.inherits.map_or(0, |inherited| inherited.tries),
            sends: u32::from(sensor.is_none()),
            due_at,
            first_tried_at: None,
            instance: None,
            extra_instances: Vec::new(),
            sensor,
            followed: None,
            log: vec![Passage { at: now, arrow: ArrowName::Claim, detail: None }],
        }
    }

    /// Whether it was claimed and waits for its task to ask.
    pub const fn waits_for_sensor(&self) -> bool {
        self.sensor.is_some() && matches!(self.status, Status::Queued)
    }

    /// Where it stands.
    pub const fn status(&self) -> &Status {
        &self.status
    }

    /// Whether it has reached an end status.
    pub const fn has_ended(&self) -> bool {
        matches!(self.status, Status::Success { .. } | Status::Failed { .. } | Status::Skipped { .. })
    }

    fn passed(&mut self, at: Timestamp, arrow: ArrowName, detail: Option<String>) {
        if self.log.len() >= MAX_LOG {
            self.log.remove(1); // the claim itself stays
        }
        self.log.push(Passage { at, arrow, detail });
    }
}
