//! When and how a target may start, in the words of its declaration.
//!
//! Everything here is pure: moments come in as arguments, time zones from a table that is compiled
//! in, so that the same declaration means the same on every machine.

mod cron;
mod daily;
mod length;
mod partition;
mod pattern;
mod window;

pub use cron::OrAt;
pub(crate) use daily::days_around;
pub use daily::{Deadline, NotBefore, RunWindow, TimeOfDay};
pub use length::Length;
pub use partition::{FullSet, MAX_PARTITION_BYTES, Partition, PartitionCondition, PartitionFrom, PartitionKeys};
pub use pattern::{Operations, Pattern};
pub use window::{Every, Window, Zone};

use serde::{Deserialize, Serialize};

use crate::target::WorkflowRef;

/// How commits that become ready while a trigger is open turn into triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Coalesce {
    /// One trigger up to the newest.
    #[default]
    Newest,
    /// One trigger for each version, in order.
    Each,
}

/// What commits count for while a backfill runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnBackfill {
    /// Nothing starts; one trigger over the range when it has completed.
    #[default]
    Hold,
    /// Its commits belong to ranges and start nothing.
    Ignore,
    /// They count as any other.
    Trigger,
}

/// What follows a rewrite of an asset's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnRewrite {
    /// A person accepts it.
    #[default]
    Hold,
    /// A new epoch opens by itself once two reads agree.
    Follow,
}

/// What becomes of the data of a trigger that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnFailed {
    /// The next trigger takes it over.
    #[default]
    Extend,
    /// Nothing starts until the trigger is redriven.
    Hold,
}

/// What becomes of a trigger of which the scheduler cannot tell whether it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnUndecided {
    /// A person decides.
    #[default]
    Hold,
    /// It counts as started, without an instance.
    AssumeStarted,
    /// It is started again.
    AssumeAbsent,
}

/// What a resumed target does about what came while it was paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnResume {
    /// One trigger over all of it.
    #[default]
    Latest,
    /// Nothing: it counts as taken.
    Skip,
}

/// What a passed deadline does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OnDeadline {
    /// It is shown as `TIMED_OUT` and alarmed once.
    #[default]
    Alarm,
    /// The target starts with what is there.
    Fire,
}

/// Whether a target starts anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It does.
    #[default]
    Live,
    /// It is evaluated, claimed and recorded, and never started.
    Shadow,
}

/// How the workflow of a target comes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StartAs {
    /// A plain start.
    #[default]
    Start,
    /// `COMPLEMENT_DATA` for the business date of the window, which sets `system.biz.date`.
    Complement,
    /// It runs already: a task of it waits, and takes what is ready.
    Sensor,
}

/// The policies of a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policies {
    /// How what becomes ready meanwhile turns into triggers.
    pub coalesce: Coalesce,
    /// What a running backfill does.
    pub on_backfill: OnBackfill,
    /// What a rewrite does.
    pub on_rewrite: OnRewrite,
    /// What a failed trigger does.
    pub on_failed: OnFailed,
    /// What an undecided trigger does.
    pub on_undecided: OnUndecided,
    /// What resuming does.
    pub on_resume: OnResume,
    /// Starts with what is there at these times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or_at: Option<OrAt>,
    /// How long no member may have moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_period: Option<Length>,
    /// How far apart two claims are at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_interval: Option<Length>,
    /// The earliest time of day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_before: Option<NotBefore>,
    /// The part of the day in which it may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_window: Option<RunWindow>,
    /// Most instances of the workflow that may be active when it is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active: Option<u32>,
    /// The workflow whose latest instance must have succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_workflow: Option<WorkflowRef>,
    /// By when it should have started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// What a passed deadline does.
    pub on_deadline: OnDeadline,
    /// Whether it starts anything.
    pub mode: Mode,
    /// How its workflow comes to run.
    pub start_as: StartAs,
}
