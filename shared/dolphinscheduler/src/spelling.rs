//! How each version line spells its paths and parameters.
//!
//! Source: `ExecutorController`, `ProcessInstanceController` / `WorkflowInstanceController`,
//! `DataAnalysisController` and `MonitorController` of DolphinScheduler 3.1.9, 3.2.2 and the line
//! that became 3.3.

use lakebell_domain::ids::{InstanceId, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::VersionLine;

use crate::rows;

/// The spelling of one version line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    /// The line, never `auto`.
    pub line: VersionLine,
    /// `process` or `workflow`, in paths and field names.
    pub noun: &'static str,
    /// The start parameter that names the workflow.
    pub start_workflow: &'static str,
    /// The start parameter of the priority.
    pub start_priority: &'static str,
    /// The filter of the instance list that names the workflow ("Define" in 3.1 and 3.2 is no slip).
    pub list_workflow: &'static str,
    /// The field of command and definition rows that names the workflow.
    pub row_workflow: &'static str,
    /// The field of command rows that names the instance made with it, 0 where there is none yet.
    pub row_instance: &'static str,
    /// The object with the definition in a definition's detail.
    pub definition: &'static str,
    /// The path that lists live masters.
    pub masters: &'static str,
    /// Whether pending and failed commands can be listed, parameters included.
    pub lists_commands: bool,
    /// Whether rows of the instance list carry `commandParam`.
    pub rows_have_parameters: bool,
    /// The names of the states that an instance leaves by itself.
    pub active_states: &'static [&'static str],
}

const V3_1: Spelling = Spelling {
    line: VersionLine::V3_1,
    noun: "process",
    start_workflow: "processDefinitionCode",
    start_priority: "processInstancePriority",
    list_workflow: "processDefineCode",
    row_workflow: "processDefinitionCode",
    row_instance: "processInstanceId",
    definition: "processDefinition",
    masters: "monitor/masters",
    lists_commands: false,
    rows_have_parameters: false,
    active_states: rows::ACTIVE_3_1,
};

const V3_2: Spelling = Spelling {
    line: VersionLine::V3_2,
    masters: "monitor/MASTER",
    lists_commands: true,
    rows_have_parameters: true,
    active_states: rows::ACTIVE_3_2,
    ..V3_1
};

const V3_3: Spelling = Spelling {
    line: VersionLine::V3_3,
    noun: "workflow",
    start_workflow: "workflowDefinitionCode",
    start_priority: "workflowInstancePriority",
    list_workflow: "workflowDefinitionCode",
    row_workflow: "workflowDefinitionCode",
    row_instance: "workflowInstanceId",
    definition: "workflowDefinition",
    active_states: rows::ACTIVE_3_3,
    ..V3_2
};

impl Spelling {
    /// The spelling of a line; `None` for `auto`, which has to be found out first.
    pub const fn of(line: VersionLine) -> Option<Self> {
        match line {
            VersionLine::Auto => None,
            VersionLine::V3_1 => Some(V3_1),
            VersionLine::V3_2 => Some(V3_2),
            VersionLine::V3_3 => Some(V3_3),
        }
    }

    /// 3.1.
    pub(crate) const fn v3_1() -> Self {
        V3_1
    }

    /// 3.2.
    pub(crate) const fn v3_2() -> Self {
        V3_2
    }

    /// 3.3 and later.
    pub(crate) const fn v3_3() -> Self {
        V3_3
    }

    /// Whether a start overwrites the alert group of the definition (3.1 and 3.2).
    pub(crate) const fn overwrites_alert_group(&self) -> bool {
        matches!(self.line, VersionLine::V3_1 | VersionLine::V3_2)
    }

    /// Where a workflow is started.
    pub fn start(&self, project: ProjectCode) -> String {
        format!("projects/{project}/executors/start-{}-instance", self.noun)
    }

    /// The list of instances.
    pub fn instances(&self, project: ProjectCode) -> String {
        format!("projects/{project}/{}-instances", self.noun)
    }

    /// One instance.
    pub fn instance(&self, project: ProjectCode, instance: InstanceId) -> String {
        format!("projects/{project}/{}-instances/{instance}", self.noun)
    }

    /// One definition by code.
    pub fn definition_by_code(&self, project: ProjectCode, workflow: WorkflowCode) -> String {
        format!("projects/{project}/{}-definition/{workflow}", self.noun)
    }

    /// One definition by name.
    pub fn definition_by_name(&self, project: ProjectCode) -> String {
        format!("projects/{project}/{}-definition/query-by-name", self.noun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_each_line() {
        let (project, workflow) = (ProjectCode(5), WorkflowCode(7));
        assert_eq!(V3_1.start(project), "projects/5/executors/start-process-instance");
        assert_eq!(V3_3.start(project), "projects/5/executors/start-workflow-instance");
        assert_eq!(V3_2.definition_by_code(project, workflow), "projects/5/process-definition/7");
        assert_eq!(V3_3.definition_by_name(project), "projects/5/workflow-definition/query-by-name");
        assert_eq!((V3_1.list_workflow, V3_3.list_workflow), ("processDefineCode", "workflowDefinitionCode"));
        assert_eq!((V3_1.masters, V3_2.masters), ("monitor/masters", "monitor/MASTER"));
        assert_eq!(V3_2.row_instance, "processInstanceId");
        assert!(Spelling::of(VersionLine::Auto).is_none());
    }
}
