//! The form of a start.
//!
//! Source: `ExecutorController.java`, `ExecutorServiceImpl.java` and `BusinessTimeUtils.java` of
//! DolphinScheduler 3.1.9, 3.2.2 and the line that became 3.3, and its
//! `BackfillWorkflowRequestTransformer.java`.

use jiff::civil::Date;
use lakebell_engine::ports::scheduler::StartRequest;

use crate::spelling::Spelling;

/// The fields of a start. `alert_group` is what the definition has now, where 3.1 and 3.2 would
/// otherwise overwrite it with nothing.
pub(crate) fn form(
    spelling: &Spelling,
    request: &StartRequest,
    alert_group: Option<i64>,
) -> Vec<(&'static str, String)> {
    // Has to be there and is ignored for a plain start; without it the start is refused.
    let schedule = request.business_date.map_or_else(String::new, schedule_of);
    let kind = if request.business_date.is_some() { "COMPLEMENT_DATA" } else { "START_PROCESS" };
    let mut form = vec![
        (spelling.start_workflow, request.workflow.to_string()),
        ("scheduleTime", schedule),
        ("failureStrategy", "CONTINUE".to_owned()),
        ("warningType", "NONE".to_owned()),
        ("execType", kind.to_owned()),
        (spelling.start_priority, "MEDIUM".to_owned()),
        ("dryRun", "0".to_owned()),
        // A flat object of strings is the only form that every version keeps; anything else is
        // dropped without an error.
        ("startParams", serde_json::json!(request.parameters).to_string()),
    ];
    if request.business_date.is_some() {
        // One date, one instance, and no other workflow that depends on this one. Lines from 3.3 on
        // take an absent mode for parallel, and fail without a number.
        form.push(("runMode", "RUN_MODE_SERIAL".to_owned()));
        form.push(("expectedParallelismNumber", "1".to_owned()));
        form.push(("complementDependentMode", "OFF_MODE".to_owned()));
    }
    if let Some(task) = request.start_at {
        form.push(("startNodeList", task.to_string()));
        form.push(("taskDependType", "TASK_POST".to_owned()));
    }
    if let Some(group) = alert_group.filter(|group| *group > 0 && spelling.overwrites_alert_group()) {
        form.push(("warningGroupId", group.to_string()));
    }
    form
}

/// The schedule of a backfill of one business date.
///
/// In every line `${system.biz.date}` is the day before the scheduled one, so that is what is
/// sent. A list and not a range, because a range is expanded with the workflow's own cron and may
/// come out empty. Noon, because the time is read in the server's zone and the date is taken in
/// the workflow's: up to twelve hours apart they still mean the same day.
fn schedule_of(business_date: Date) -> String {
    let scheduled = business_date.tomorrow().unwrap_or(business_date);
    serde_json::json!({"complementScheduleDateList": format!("{scheduled} 12:00:00")}).to_string()
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
            business_date: None,
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
    #[test]
    fn a_business_date_makes_it_a_backfill_of_that_date() {
        for (spelling, noun) in
            [(Spelling::v3_1(), "process"), (Spelling::v3_2(), "process"), (Spelling::v3_3(), "workflow")]
        {
            let request = StartRequest { business_date: Some(Date::constant(2026, 12, 31)), ..request(None) };
            assert_eq!(
                text(&form(&spelling, &request, None)),
                format!(
                    "{noun}DefinitionCode=9752686452032\
                     &scheduleTime={{\"complementScheduleDateList\":\"2027-01-01 12:00:00\"}}\
                     &failureStrategy=CONTINUE&warningType=NONE&execType=COMPLEMENT_DATA\
                     &{noun}InstancePriority=MEDIUM&dryRun=0&startParams={{\"lakebell_trigger_key\":\"ab12\"}}\
                     &runMode=RUN_MODE_SERIAL&expectedParallelismNumber=1&complementDependentMode=OFF_MODE"
                )
            );
        }
    }
}
