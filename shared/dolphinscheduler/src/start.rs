//! The form of a start.
//!
//! Source: `ExecutorController.java` of DolphinScheduler 3.1.9, 3.2.2 and the line that became 3.3.

use lakebell_engine::ports::scheduler::StartRequest;

use crate::spelling::Spelling;

/// The fields of a start. `alert_group` is what the definition has now, where 3.1 and 3.2 would
/// otherwise overwrite it with nothing.
pub(crate) fn form(
    spelling: &Spelling,
    request: &StartRequest,
    alert_group: Option<i64>,
) -> Vec<(&'static str, String)> {
    let mut form = vec![
        (spelling.start_workflow, request.workflow.to_string()),
        // Has to be there and is ignored for a plain start; without it the start is refused.
        ("scheduleTime", String::new()),
        ("failureStrategy", "CONTINUE".to_owned()),
        ("warningType", "NONE".to_owned()),
        ("execType", "START_PROCESS".to_owned()),
        (spelling.start_priority, "MEDIUM".to_owned()),
        ("dryRun", "0".to_owned()),
        // A flat object of strings is the only form that every version keeps; anything else is
        // dropped without an error.
        ("startParams", serde_json::json!(request.parameters).to_string()),
    ];
    if let Some(task) = request.start_at {
        form.push(("startNodeList", task.to_string()));
        form.push(("taskDependType", "TASK_POST".to_owned()));
    }
    if let Some(group) = alert_group.filter(|group| *group > 0 && spelling.overwrites_alert_group()) {
        form.push(("warningGroupId", group.to_string()));
    }
    form
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lakebell_domain::ids::{ProjectCode, TaskCode, TriggerKey, WorkflowCode};

    use super::*;

    fn request(start_at: Option<TaskCode>) -> StartRequest {
        StartRequest {
            project: ProjectCode(1),
            workflow: WorkflowCode(9_752_686_452_032),
            start_at,
            trigger: TriggerKey::new("ab12").unwrap(),
            parameters: BTreeMap::from([("lakebell_trigger_key".to_owned(), "ab12".to_owned())]),
        }
    }

    fn text(form: &[(&str, String)]) -> String {
        form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    #[test]
    fn a_start_has_the_names_of_its_line() {
        assert_eq!(
            text(&form(&Spelling::v3_3(), &request(None), Some(4))),
            "workflowDefinitionCode=9752686452032&scheduleTime=&failureStrategy=CONTINUE&warningType=NONE\
             &execType=START_PROCESS&workflowInstancePriority=MEDIUM&dryRun=0\
             &startParams={\"lakebell_trigger_key\":\"ab12\"}"
        );
        assert_eq!(
            text(&form(&Spelling::v3_1(), &request(Some(TaskCode(5))), Some(4))),
            "processDefinitionCode=9752686452032&scheduleTime=&failureStrategy=CONTINUE&warningType=NONE\
             &execType=START_PROCESS&processInstancePriority=MEDIUM&dryRun=0\
             &startParams={\"lakebell_trigger_key\":\"ab12\"}&startNodeList=5&taskDependType=TASK_POST&warningGroupId=4"
        );
    }
}
