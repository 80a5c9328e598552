//! A target as a person declares it.

mod dependency;

pub(super) use dependency::default_group;
pub use dependency::{Compatible, Completed, DependencySpec, GroupSpec, Passed, SnapshotIdText};

use serde::{Deserialize, Serialize};

use super::WorkflowRef;
use crate::Invalid;
use crate::ids::{ConnectionName, TargetName, TaskCode, WorkflowCode};
use crate::policy::{
    Coalesce, Deadline, Length, Mode, NotBefore, OnBackfill, OnDeadline, OnFailed, OnResume, OnRewrite, OnUndecided,
    OrAt, Policies, RunWindow, StartAs,
};

/// A target as a person declares it, by asset keys. Every key is described in `docs/lakebell-yaml.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TargetSpec {
    /// Its name within the project; absent, `workflow-<code or name>[-task-<code>]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<TargetName>,
    /// The DolphinScheduler to start it on.
    #[serde(default = "default_connection")]
    pub connection: ConnectionName,
    /// The workflow, by code. Either this or the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_definition_code: Option<WorkflowCode>,
    /// The workflow, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_definition_name: Option<String>,
    /// The task that waits in a running workflow, or, with `startAs: start`, the one to start at; absent, the
    /// whole workflow starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_definition_code: Option<TaskCode>,
    /// Alternatives: any group that is ready starts the target.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 20)))]
    pub groups: Vec<GroupSpec>,
    /// 1 or absent: on. 0: switched off, cursors kept.
    #[serde(default = "on", skip_serializing_if = "is_on")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub enabled_flag: u8,
    /// Commits that become ready while a trigger is open: `newest`, one trigger over all of them, or
    /// `each`, one for each version, in order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub coalesce: Coalesce,
    /// Where a group that is new begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start_from: StartFrom,
    /// While a backfill runs: `hold` starts nothing until it completes, `ignore` lets its commits start
    /// nothing, `trigger` counts them as any other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_backfill: OnBackfill,
    /// When the history of a table was rewritten: `hold` for a person, or `follow` it by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_rewrite: OnRewrite,
    /// How far apart the two reads must be that together prove a rewrite, with `onRewrite: follow`;
    /// absent, 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Length>,
    /// After a trigger has failed: `extend` lets the next one take over its data, `hold` starts nothing
    /// until it is redriven. Absent, `extend`, and `hold` where ranges cannot be joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failed: Option<OnFailed>,
    /// When nobody can tell whether a workflow started: `hold` for a person, `assume-started` or
    /// `assume-absent`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_undecided: OnUndecided,
    /// After a pause: `latest`, one trigger over all that came meanwhile, or `skip` it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_resume: OnResume,
    /// Starts with what is there at these times, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or_at: Option<OrAt>,
    /// Starts only once no member has moved for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_period: Option<Length>,
    /// How far apart two starts are at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_interval: Option<Length>,
    /// The earliest time of day of a start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<NotBefore>,
    /// The part of the day in which it may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_window: Option<RunWindow>,
    /// Most instances of the workflow that may be active when it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_active: Option<u32>,
    /// The workflow, by code or name, whose latest instance must have succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_workflow: Option<WorkflowRef>,
    /// By when it should have started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// When the deadline passes: `alarm` once and show `TIMED_OUT`, or `fire` with what is there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_deadline: OnDeadline,
    /// `live`, or `shadow`: evaluated, claimed and recorded, and never started.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// `start`; `complement` for a run with the business date of the window; `sensor`: the task waits in a
    /// running workflow, and asks. Absent, `sensor` where a task is named, else `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_as: Option<StartAs>,
    /// The workflow may write a table that starts it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allow_self_loop: bool,
    /// How long a sensor waits, in minutes: the same as a deadline `within` that alarms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub timeout_minutes: Option<u32>,
    /// How often a sensor asks, in seconds. DolphinScheduler counts whole minutes: it is rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub check_interval_seconds: Option<u32>,
}

fn default_connection() -> ConnectionName {
    // A literal that satisfies the type's own rules.
    ConnectionName::new("default").unwrap_or_else(|_| unreachable!("`default` is a valid name"))
}

const fn on() -> u8 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde asks for
const fn is_on(flag: &u8) -> bool {
    *flag == 1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Where a group that is new begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "SnapshotIdText", into = "String")]
pub enum StartFrom {
    /// Only later commits count.
    #[default]
    Now,
    /// The newest commit counts as new.
    Current,
    /// Everything that can be read counts.
    Earliest,
    /// This snapshot and everything after it.
    Snapshot(String),
}

impl From<SnapshotIdText> for StartFrom {
    fn from(text: SnapshotIdText) -> Self {
        match text.0.as_str() {
            "now" => Self::Now,
            "current" => Self::Current,
            "earliest" => Self::Earliest,
            _ => Self::Snapshot(text.0),
        }
    }
}

impl From<StartFrom> for String {
    fn from(start: StartFrom) -> Self {
        match start {
            StartFrom::Now => "now".to_owned(),
            StartFrom::Current => "current".to_owned(),
            StartFrom::Earliest => "earliest".to_owned(),
            StartFrom::Snapshot(id) => id,
        }
    }
}

impl TargetSpec {
    /// A target that starts a workflow, with every policy at its default.
    pub fn starting(workflow: WorkflowRef, groups: Vec<GroupSpec>) -> Self {
        let (code, name) = match workflow {
            WorkflowRef::Code(code) => (Some(code), None),
            WorkflowRef::Name(name) => (None, Some(name)),
        };
        Self {
            name: None,
            connection: default_connection(),
            workflow_definition_code: code,
            workflow_definition_name: name,
            task_definition_code: None,
            groups,
            enabled_flag: 1,
            coalesce: Coalesce::default(),
            start_from: StartFrom::default(),
            on_backfill: OnBackfill::default(),
            on_rewrite: OnRewrite::default(),
            settle: None,
            on_failed: None,
            on_undecided: OnUndecided::default(),
            on_resume: OnResume::default(),
            or_at: None,
            quiet_period: None,
            min_interval: None,
            not_before: None,
            run_window: None,
            max_active: None,
            after_workflow: None,
            deadline: None,
            on_deadline: OnDeadline::default(),
            mode: Mode::default(),
            start_as: None,
            allow_self_loop: false,
            timeout_minutes: None,
            check_interval_seconds: None,
        }
    }

    /// The name that the target gets.
    pub fn target_name(&self) -> Result<TargetName, Invalid> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let workflow = match self.workflow()? {
            WorkflowRef::Code(code) => code.to_string(),
            WorkflowRef::Name(name) => name,
        };
        let task = self.task_definition_code.map(|code| format!("-task-{code}")).unwrap_or_default();
        TargetName::new(format!("workflow-{workflow}{task}")).map_err(|_| {
            Invalid::new("name", "no name can be derived from the workflow's name", "give the target a `name`")
        })
    }

    /// The workflow that it starts.
    pub fn workflow(&self) -> Result<WorkflowRef, Invalid> {
        match (self.workflow_definition_code, self.workflow_definition_name.as_deref()) {
            (Some(code), None) if code.0 > 0 => Ok(WorkflowRef::Code(code)),
            (None, Some(name)) if !name.is_empty() && name.len() <= 255 => Ok(WorkflowRef::Name(name.to_owned())),
            (Some(_), Some(_)) => Err(Invalid::new(
                "workflowDefinitionName",
                "both a code and a name are given",
                "give either `workflowDefinitionCode` or `workflowDefinitionName`",
            )),
            (None, Some(name)) => Err(Invalid::new(
                "workflowDefinitionName",
                format!("it has {} bytes", name.len()),
                "use the workflow's name of 1 to 255 bytes",
            )),
            (code, None) => Err(Invalid::new(
                "workflowDefinitionCode",
                code.map_or_else(
                    || "no workflow is named".to_owned(),
                    |code| format!("{code} is no workflow definition code"),
                ),
                "give its positive code as `workflowDefinitionCode`, or its name as `workflowDefinitionName`",
            )),
        }
    }

    /// Whether each trigger stands for one window or one partition.
    pub fn goes_step_by_step(&self) -> bool {
        let mut dependencies = self.groups.iter().flat_map(|group| &group.dependencies);
        dependencies.any(|dependency| dependency.every.is_some() || dependency.partition.is_some())
    }

    /// Whether some dependency asks for windows.
    pub fn has_windows(&self) -> bool {
        self.groups.iter().flat_map(|group| &group.dependencies).any(|dependency| dependency.every.is_some())
    }

    /// How far apart two reads must be that together prove a rewrite, where the target follows one.
    pub fn settle_time(&self) -> Result<Length, Invalid> {
        self.settle.map_or_else(|| Length::from_seconds(60), Ok)
    }

    /// How its workflow comes to run: a named task waits in it, unless the target says otherwise.
    pub fn start_as(&self) -> StartAs {
        let of_task = if self.task_definition_code.is_some() { StartAs::Sensor } else { StartAs::Start };
        self.start_as.unwrap_or(of_task)
    }

    /// The policies that it asks for.
    pub fn policies(&self) -> Policies {
        // Where each trigger stands for one version or one window, a later one cannot take over the
        // data of one that failed.
        let is_apart = self.coalesce == Coalesce::Each || self.goes_step_by_step();
        let deadline = self.timeout_minutes.and_then(|minutes| Length::from_seconds(i64::from(minutes) * 60).ok());
        Policies {
            coalesce: self.coalesce,
            on_backfill: self.on_backfill,
            on_rewrite: self.on_rewrite,
            on_failed: self.on_failed.unwrap_or(if is_apart { OnFailed::Hold } else { OnFailed::Extend }),
            on_undecided: self.on_undecided,
            on_resume: self.on_resume,
            or_at: self.or_at.clone(),
            quiet_period: self.quiet_period,
            min_interval: self.min_interval,
            not_before: self.not_before.clone(),
            run_window: self.run_window.clone(),
            max_active: self.max_active,
            after_workflow: self.after_workflow.clone(),
            deadline: self.deadline.clone().or_else(|| deadline.map(Deadline::Within)),
            on_deadline: self.on_deadline,
            mode: self.mode,
            start_as: self.start_as(),
        }
    }
}
