//! A task that waits inside a running workflow asks whether it may go on.
//!
//! DolphinScheduler's HTTP task sends every value as text, and decides by a text in the body: so the
//! answer is 200 whether it is ready or not, and `"sensor":"READY"` stands in no other. Quotes inside a
//! string are escaped, so no name or reason can look like it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use lakebell_aws::Measure;
use lakebell_domain::Invalid;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{InstanceId, TargetId, TaskCode, TriggerKey};
use lakebell_domain::policy::Mode;
use lakebell_domain::reason::{Reason, Verdict};
use lakebell_domain::sensor::{Asker, SensorRun};
use lakebell_engine::sensor::{self, Answer as Told, Ask, LONGEST_WAIT, Patience};
use serde::{Deserialize, Deserializer, Serialize};

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::problem::ApiError;

/// What led to the start, in the metric of starts.
const TRIGGER_SOURCE: &str = "sensor";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    workflow_instance_id: Text,
    #[serde(default)]
    token: Text,
    #[serde(default)]
    task_definition_code: Text,
    #[serde(default)]
    run: Text,
    #[serde(default)]
    wait_seconds: Text,
}

/// A value as a number or as text; an empty one is none.
#[derive(Debug, Default)]
struct Text(Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NumberOrText {
            Number(i64),
            Text(String),
            Null(()),
        }
        Ok(Self(match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Some(number.to_string()),
            NumberOrText::Text(text) => Some(text).filter(|text| !text.is_empty()),
            NumberOrText::Null(()) => None,
        }))
    }
}

impl Text {
    /// The value, read by `read`.
    fn read<T>(&self, field: &str, read: impl FnOnce(&str) -> Result<T, Invalid>) -> Result<Option<T>, Invalid> {
        let Some(text) = &self.0 else { return Ok(None) };
        if text.contains("${") {
            return Err(Invalid::new(
                field,
                format!("DolphinScheduler did not fill in `{text}`"),
                "give a parameter that this version has and that the workflow was started with; \
                 3.1 tells no workflow instance, so give a `token`",
            ));
        }
        let value = read(text).map_err(|invalid| Invalid { field: field.to_owned(), ..invalid })?;
        Ok(Some(value))
    }
}

impl Asked {
    fn run(&self) -> Result<SensorRun, Invalid> {
        let instance = self.workflow_instance_id.read("workflowInstanceId", str::parse::<InstanceId>)?;
        let token = self.token.read("token", str::parse)?;
        let asker = match (instance, token) {
            (Some(instance), None) => Asker::WorkflowInstance(instance),
            (None, Some(token)) => Asker::Token(token),
            (Some(_), Some(_)) => {
                return Err(Invalid::new("token", "a workflow instance is given, too", "give one of them"));
            }
            (None, None) => {
                return Err(Invalid::new(
                    "workflowInstanceId",
                    "nothing says which run of the task asks",
                    "give `${system.workflow.instance.id}`, or on 3.1 a `token` from the start parameters",
                ));
            }
        };
        let run = self.run.read("run", |text| number(text, 1, i64::from(u32::MAX)))?.unwrap_or(1);
        Ok(SensorRun { asker, run: u32::try_from(run).unwrap_or(u32::MAX) })
    }

    fn wait(&self) -> Result<SignedDuration, Invalid> {
        let seconds = self.wait_seconds.read("waitSeconds", |text| number(text, 0, LONGEST_WAIT.as_secs()))?;
        Ok(SignedDuration::from_secs(seconds.unwrap_or(0)))
    }
}

fn number(text: &str, least: i64, most: i64) -> Result<i64, Invalid> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        let hint = format!("use a whole number from {least} to {most}, or leave it out");
        Invalid::new("", format!("`{text}` is not from {least} to {most}"), hint)
    })
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Word {
    Ready,
    Waiting,
    TimedOut,
}

/// What the task is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<T> {
    sensor: Word,
    target: TargetId,
    #[serde(flatten)]
    told: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    trigger_key: TriggerKey,
    /// An earlier poll of the run had it already.
    recorded: bool,
    /// The same as a workflow gets that Lakebell starts.
    parameters: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotYet {
    verdict: Verdict,
    reason: Option<Reason>,
    timed_out: Option<Timestamp>,
    mode: Mode,
}

/// Answers one poll.
pub(super) async fn ask(call: &Call<'_>) -> Result<Answer, ApiError> {
    let target = call.target()?;
    let asked: Asked = body::read(&call.request.body()?)?;
    let task = asked.task_definition_code.read("taskDefinitionCode", str::parse::<TaskCode>)?;
    let ask = Ask { target, task, run: asked.run()? };
    let sensors = &call.context.sensors;
    let patience = Patience { time: asked.wait()?, places: sensors.places, pause: &*sensors.pause };
    let told = sensor::ask(&call.context.ports, &ask, patience, call.trace).await.map_err(|error| {
        let is_unknown = error.kind() == lakebell_engine::ErrorKind::NotFound;
        let error = ApiError::from(error);
        let hint = "give the name of a target; GET /projects/{p}/asset-dependencies lists them";
        if is_unknown { error.hint(hint) } else { error }
    })?;
    answer(call, ask, told)
}

fn answer(call: &Call<'_>, ask: Ask, told: Told) -> Result<Answer, ApiError> {
    let metrics = &call.context.metrics;
    let count = |answer| metrics.count(Measure::SensorAnswered { answer }, &[]);
    let workflow_instance = ask.run.asker.instance().map(|instance| instance.0);
    let target = ask.target;
    match told {
        Told::Ready { trigger, is_recorded } => {
            count(if is_recorded { "recorded" } else { "ready" });
            if !is_recorded {
                let properties = [("triggerKey", trigger.key.as_str()), ("connection", trigger.connection.as_str())];
                metrics.count(Measure::TriggerSuccess { trigger_source: TRIGGER_SOURCE }, &properties);
            }
            tracing::info!(
                %target,
                triggerKey = %trigger.key,
                connection = trigger.connection.as_str(),
                taskDefinitionCode = trigger.sensor.as_ref().map(|sensor| sensor.task.0),
                workflowInstanceId = workflow_instance,
                recorded = is_recorded,
                "a waiting task goes on"
            );
            let told = Ready { trigger_key: trigger.key, recorded: is_recorded, parameters: trigger.parameters };
            Answer::ok(&Shown { sensor: Word::Ready, target, told })
        }
        Told::NotYet { evaluation, is_shadow } => {
            let Evaluation { verdict, reason, timed_out, .. } = *evaluation;
            let (sensor, word) =
                if timed_out.is_some() { (Word::TimedOut, "timed_out") } else { (Word::Waiting, "waiting") };
            count(word);
            let reason_code = reason.as_ref().map(|reason| reason.code.as_str());
            tracing::info!(
                %target,
                workflowInstanceId = workflow_instance,
                verdict = verdict.as_str(),
                reason = reason_code,
                "a waiting task asks again later"
            );
            let mode = if is_shadow { Mode::Shadow } else { Mode::Live };
            Answer::ok(&Shown { sensor, target, told: NotYet { verdict, reason, timed_out, mode } })
        }
    }
}
