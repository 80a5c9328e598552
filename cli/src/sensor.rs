//! `sensor task`: the DolphinScheduler task that waits for a target.
//!
//! DolphinScheduler's HTTP task asks once and has no loop of its own: polling is its retries, which it
//! counts in whole minutes, and each of them is a task instance of its own. What differs between
//! version lines is how the body is given and whether a task is told its workflow instance.

use std::fmt::Write as _;

use lakebell_domain::ids::ProjectCode;
use lakebell_domain::policy::StartAs;
use lakebell_domain::target::TargetSpec;
use serde_json::{Map, Value, json};

use crate::args::{SensorTaskArgs, SensorVersion};
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::at;

/// What stands in the body exactly when the task may go on.
const MARKER: &str = r#""sensor":"READY""#;
/// The local parameter that holds the workflow instance.
const INSTANCE: &str = "lakebell_instance";
/// A little more than the 29 s after which a gateway itself gives up, in milliseconds.
const TIMEOUT_MILLIS: u32 = 30_000;
/// How long a task waits that no `timeoutMinutes` ends, in minutes.
const USUAL_MINUTES: u32 = 24 * 60;

/// What the task is made of.
struct Form<'a> {
    url: String,
    target: &'a str,
    task: i64,
    version: SensorVersion,
    wait_seconds: u32,
    interval_minutes: u32,
    retries: u32,
    api_token: &'a str,
    run_token: &'a str,
}

/// Prints the task for a target.
pub(crate) async fn task(api: &Api, project: ProjectCode, args: &SensorTaskArgs) -> Result<Report, CliError> {
    let project_text = project.to_string();
    let path = ["projects", &project_text, "asset-dependencies", args.target.as_str()];
    let answer = api.send(&Request::get(&path)).await?;
    let items = answer.get("items").and_then(Value::as_array).into_iter().flatten();
    // Digits would be the code of a workflow to this route, and name several targets.
    let name = format!("{project}/{}", args.target);
    let item = items.into_iter().find(|item| at(item, "/target") == name || at(item, "/name") == args.target.as_str());
    let spec: Option<TargetSpec> = item.and_then(|item| serde_json::from_value(item.get("definition")?.clone()).ok());
    let spec = spec.ok_or_else(|| {
        CliError::failed(format!("target {name} is not declared"), "`lakebell why` lists those of the project")
    })?;
    let Some(task) = spec.task_definition_code.filter(|_| spec.start_as() == StartAs::Sensor) else {
        return Err(CliError::failed(
            format!("no task waits for target {name}: Lakebell starts its workflow"),
            "declare it with a `taskDefinitionCode` and without `startAs`",
        ));
    };
    let version = match args.scheduler_version {
        Some(version) => version,
        None => version_of(api, spec.connection.as_str()).await?,
    };
    let mut notes = Vec::new();
    let interval_minutes = interval(&spec, &mut notes);
    let retries = retries(&spec, interval_minutes, args.wait_seconds, &mut notes);
    let form = Form {
        url: api.url_of(&["projects", &project_text, "asset-dependencies", args.target.as_str(), "sensor"]),
        target: args.target.as_str(),
        task: task.0,
        version,
        wait_seconds: args.wait_seconds,
        interval_minutes,
        retries,
        api_token: &args.api_token_parameter,
        run_token: &args.token_parameter,
    };
    notes.extend(form.notes());
    let task = form.task();
    let mut text = format!("{task:#}\n");
    for note in &notes {
        let _ = writeln!(text, "note: {note}");
    }
    Ok(Report::new(text, json!({ "task": task, "notes": notes })))
}

async fn version_of(api: &Api, connection: &str) -> Result<SensorVersion, CliError> {
    let connections = api.list(&["connections"], &[], None).await?;
    let known = connections.iter().find(|known| at(known, "/name") == connection);
    match known.map(|known| at(known, "/version")).as_deref() {
        Some("3.1") => Ok(SensorVersion::V3_1),
        Some("3.2") => Ok(SensorVersion::V3_2),
        Some("3.3") => Ok(SensorVersion::V3_3),
        _ => Err(CliError::usage(
            format!("which DolphinScheduler is connection `{connection}`?"),
            "give --scheduler-version 3.1, 3.2, 3.3 or 3.4, or declare the connection with its `version`",
        )),
    }
}

/// The pause between two polls, in DolphinScheduler's whole minutes.
fn interval(spec: &TargetSpec, notes: &mut Vec<String>) -> u32 {
    let seconds = spec.check_interval_seconds.unwrap_or(60);
    let minutes = seconds.div_ceil(60).max(1);
    if minutes * 60 != seconds {
        notes.push(format!(
            "checkIntervalSeconds {seconds} is rounded up to {minutes} min: DolphinScheduler counts whole minutes"
        ));
    }
    minutes
}

/// How often the task asks again before it fails.
fn retries(spec: &TargetSpec, interval_minutes: u32, wait_seconds: u32, notes: &mut Vec<String>) -> u32 {
    let minutes = spec.timeout_minutes.unwrap_or(USUAL_MINUTES);
    let round = interval_minutes.saturating_mul(60).saturating_add(wait_seconds);
    let retries = minutes.saturating_mul(60).div_ceil(round).max(1);
    notes.push(match spec.timeout_minutes {
        Some(_) => format!(
            "timeoutMinutes {minutes}: the task fails after {} polls; the target's own deadline counts from its first \
             advance and alarms",
            retries + 1
        ),
        None => format!("the target has no timeoutMinutes: the task fails after {} polls, about a day", retries + 1),
    });
    retries
}

impl Form<'_> {
    /// The task definition, as an element of `taskDefinitionJson`.
    fn task(&self) -> Value {
        json!({
            "code": self.task,
            "name": format!("wait-for-{}", self.target),
            "description": format!("Waits for the Lakebell target {}", self.target),
            "taskType": "HTTP",
            "taskParams": self.parameters(),
            "flag": "YES",
            "taskPriority": "MEDIUM",
            "workerGroup": "default",
            "environmentCode": -1,
            "failRetryTimes": self.retries,
            "failRetryInterval": self.interval_minutes,
            "timeoutFlag": "CLOSE",
            "timeoutNotifyStrategy": "",
            "timeout": 0,
            "delayTime": 0,
            "taskExecuteType": "BATCH",
            "isCache": "NO",
            "cpuQuota": -1,
            "memoryMax": -1,
            "taskGroupId": 0,
            "taskGroupPriority": 0,
        })
    }

    fn parameters(&self) -> Value {
        let mut headers = vec![header("Authorization", &format!("Bearer ${{{}}}", self.api_token))];
        let body = self.body();
        let mut parameters = json!({
            "localParams": [],
            "resourceList": [],
            "url": self.url,
            "httpMethod": "POST",
            "httpCheckCondition": "BODY_CONTAINS",
            "condition": MARKER,
            "connectTimeout": TIMEOUT_MILLIS,
        });
        if self.version == SensorVersion::V3_1 {
            let of_body = |(name, value): (&String, &Value)| json!({ "prop": name, "httpParametersType": "BODY", "value": value });
            headers.extend(body.iter().map(of_body));
        } else {
            let value = "${system.workflow.instance.id}";
            parameters["localParams"] =
                json!([{ "prop": INSTANCE, "direct": "IN", "type": "VARCHAR", "value": value }]);
            parameters["httpBody"] = Value::Object(body).to_string().into();
        }
        if matches!(self.version, SensorVersion::V3_1 | SensorVersion::V3_2) {
            parameters["socketTimeout"] = TIMEOUT_MILLIS.into();
        }
        parameters["httpParams"] = headers.into();
        parameters
    }

    /// A flat object of texts: all that version 3.3 sends.
    fn body(&self) -> Map<String, Value> {
        let (name, asker) = match self.version {
            SensorVersion::V3_1 => ("token", format!("${{{}}}", self.run_token)),
            _ => ("workflowInstanceId", format!("${{{INSTANCE}}}")),
        };
        let pairs = [
            (name, asker),
            ("taskDefinitionCode", self.task.to_string()),
            ("run", "1".to_owned()),
            ("waitSeconds", self.wait_seconds.to_string()),
        ];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "the API's token is read from the parameter `{}`: keep it as a parameter of the project, not in the task",
            self.api_token
        )];
        match self.version {
            SensorVersion::V3_1 => {
                notes.push(format!(
                    "3.1 tells a task no workflow instance: start the workflow with a parameter `{}` of its own for \
                     each run, and declare it as a global parameter",
                    self.run_token
                ));
                notes.push(
                    "3.1 keeps no answer: a later task asks again with the same token and gets the same versions"
                        .to_owned(),
                );
            }
            _ => notes.push(format!(
                "later tasks find the answer as `${{wait-for-{}.response}}`; asking again from them gives the same",
                self.target
            )),
        }
        if self.wait_seconds > 0 {
            notes.push(format!(
                "each poll may keep a function for {} s, which is paid for; docs/sensor.md says what it costs",
                self.wait_seconds
            ));
        }
        notes
    }
}

fn header(name: &str, value: &str) -> Value {
    json!({ "prop": name, "httpParametersType": "HEADERS", "value": value })
}
