//! What Lakebell tells whoever wants to react. A notice is told after what it tells of has happened,
//! and nothing depends on whether it arrives.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::ids::{ConnectionName, InstanceId, TargetId, TriggerKey};
use crate::reason::{ReasonCode, Verdict};
use crate::state::RewriteHold;
use crate::target::WorkflowRef;
use crate::trigger::{Followed, Status, Trigger};
use crate::version::Version;

/// Something that happened. Times and ids are those of the record that it is read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "notice")]
pub enum Notice {
    /// A table has a new version. One look at a table may find several commits: this is the newest.
    AssetAdvanced {
        /// The table.
        asset: AssetKey,
        /// Its version.
        version: Version,
    },
    /// A table's recorded history is contradicted by storage, and held.
    HistoryRewritten {
        /// The table.
        asset: AssetKey,
        /// What was seen.
        evidence: String,
        /// The recorded version that is not there any more.
        #[serde(skip_serializing_if = "Option::is_none")]
        withdrawn: Option<Version>,
        /// Since when.
        since: Timestamp,
    },
    /// A workflow was started.
    TriggerStarted(OfTrigger),
    /// A trigger will not start by itself.
    TriggerFailed(OfTrigger),
    /// Nobody can tell whether a workflow started: a person has to decide.
    TriggerHeld(OfTrigger),
    /// A started workflow has ended.
    WorkflowEnded {
        /// Its trigger.
        #[serde(flatten)]
        trigger: OfTrigger,
        /// How.
        followed: Followed,
    },
    /// Workflow instances carry a trigger's key beyond its first: stop them.
    ExtraInstance {
        /// The trigger.
        #[serde(flatten)]
        trigger: OfTrigger,
        /// The instances.
        extras: Vec<InstanceId>,
    },
    /// A target's deadline passed without a start.
    TargetLate {
        /// The target.
        target: TargetId,
        /// The deadline.
        deadline: Timestamp,
        /// What it waits for.
        verdict: Verdict,
        /// The leading reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<ReasonCode>,
    },
    /// A connection's token stops working soon.
    TokenExpiring {
        /// The connection.
        connection: ConnectionName,
        /// When it stops, by the scheduler's clock.
        expires_at: Timestamp,
    },
}

/// What a notice says of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfTrigger {
    /// Its key.
    pub trigger: TriggerKey,
    /// Its target.
    pub target: TargetId,
    /// The DolphinScheduler.
    pub connection: ConnectionName,
    /// The workflow.
    pub workflow: WorkflowRef,
    /// How often it was leased or redriven: the same trigger can fail more than once.
    pub attempt: u32,
    /// The workflow instance, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// The scheduler's or Lakebell's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<&Trigger> for OfTrigger {
    fn from(trigger: &Trigger) -> Self {
        let (code, detail) = match trigger.status() {
            Status::Failed { code, detail } | Status::Unknown { code, detail, .. } => {
                (Some(code.clone()), Some(detail.clone()))
            }
            _ => (None, None),
        };
        Self {
            trigger: trigger.key.clone(),
            target: trigger.target.clone(),
            connection: trigger.connection.clone(),
            workflow: trigger.workflow.clone(),
            attempt: trigger.attempt,
            instance: trigger.instance,
            code,
            detail,
        }
    }
}

impl Notice {
    /// What a trigger's new status tells; `None` where it is nothing to react to.
    pub fn of(trigger: &Trigger) -> Option<Self> {
        match trigger.status() {
            Status::Success { .. } => Some(Self::TriggerStarted(trigger.into())),
            Status::Failed { .. } => Some(Self::TriggerFailed(trigger.into())),
            Status::Unknown { held: true, .. } => Some(Self::TriggerHeld(trigger.into())),
            _ => None,
        }
    }

    /// A rewrite that is held.
    pub fn of_hold(asset: &AssetKey, hold: &RewriteHold) -> Self {
        Self::HistoryRewritten {
            asset: asset.clone(),
            evidence: hold.evidence.clone(),
            withdrawn: hold.withdrawn.clone(),
            since: hold.first_seen,
        }
    }

    /// Its type, in the form of a CloudEvents type.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::AssetAdvanced { .. } => "io.lakebell.asset.advanced.v1",
            Self::HistoryRewritten { .. } => "io.lakebell.history.rewritten.v1",
            Self::TriggerStarted(_) => "io.lakebell.trigger.started.v1",
            Self::TriggerFailed(_) => "io.lakebell.trigger.failed.v1",
            Self::TriggerHeld(_) => "io.lakebell.trigger.held.v1",
            Self::WorkflowEnded { .. } => "io.lakebell.workflow.ended.v1",
            Self::ExtraInstance { .. } => "io.lakebell.instance.extra.v1",
            Self::TargetLate { .. } => "io.lakebell.target.late.v1",
            Self::TokenExpiring { .. } => "io.lakebell.token.expiring.v1",
        }
    }

    /// What it is about: an asset key, a target or a connection.
    pub fn subject(&self) -> String {
        match self {
            Self::AssetAdvanced { asset, .. } | Self::HistoryRewritten { asset, .. } => asset.to_string(),
            Self::TriggerStarted(of) | Self::TriggerFailed(of) | Self::TriggerHeld(of) => of.target.to_string(),
            Self::WorkflowEnded { trigger, .. } | Self::ExtraInstance { trigger, .. } => trigger.target.to_string(),
            Self::TargetLate { target, .. } => target.to_string(),
            Self::TokenExpiring { connection, .. } => connection.to_string(),
        }
    }

    /// The same for the same happening, so that whoever hears of it twice can tell.
    pub fn id(&self) -> String {
        let of_trigger = |of: &OfTrigger| format!("{}.{}", of.trigger, of.attempt);
        let distinct = match self {
            Self::AssetAdvanced { version, .. } => {
                let position = version.position;
                format!("{}.{}.{}", position.epoch.0, position.ordinal, version.fingerprint.as_str())
            }
            Self::HistoryRewritten { since, .. } => since.to_string(),
            Self::TriggerStarted(of) | Self::TriggerFailed(of) | Self::TriggerHeld(of) => of_trigger(of),
            Self::WorkflowEnded { trigger, .. } => of_trigger(trigger),
            Self::ExtraInstance { trigger, extras } => {
                let extras: Vec<String> = extras.iter().map(ToString::to_string).collect();
                format!("{}.{}", trigger.trigger, extras.join("."))
            }
            Self::TargetLate { deadline, .. } => deadline.to_string(),
            Self::TokenExpiring { expires_at, .. } => expires_at.to_string(),
        };
        format!("{}/{}/{distinct}", self.type_name(), self.subject())
    }

    /// The notice as a CloudEvents 1.0 object, as it is sent.
    pub fn envelope(&self, time: Timestamp) -> serde_json::Value {
        let mut data = serde_json::to_value(self).unwrap_or_default();
        if let Some(data) = data.as_object_mut() {
            // The type says it.
            data.remove("notice");
        }
        serde_json::json!({
            "specversion": "1.0",
            "id": self.id(),
            "source": "lakebell",
            "type": self.type_name(),
            "subject": self.subject(),
            "time": time.to_string(),
            "datacontenttype": "application/json",
            "data": data,
        })
    }
}
