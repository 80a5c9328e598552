//! `pause`, `resume`, `redrive`, `skip` and `decide`: what an operator does.

use std::fmt::Write as _;

use lakebell_domain::ids::{ProjectCode, TargetName, TriggerKey};
use serde_json::{Map, Value, json};

use crate::args::{By, DecideArgs, DecisionWord, RedriveArgs};
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{BAD, Table, at, paint, painted_word};
use crate::why;

/// What became of one trigger of `redrive --all`.
enum Outcome {
    Redriven(Value),
    /// Its data has gone on in another trigger, or nothing is left to redrive.
    LeftAlone(CliError),
    Failed(CliError),
    NotTried,
}

impl Outcome {
    const fn word(&self) -> &'static str {
        match self {
            Self::Redriven(_) => "redriven",
            Self::LeftAlone(_) => "leftAlone",
            Self::Failed(_) => "failed",
            Self::NotTried => "notTried",
        }
    }

    fn detail(&self) -> String {
        match self {
            Self::Redriven(_) => "redriven".to_owned(),
            Self::LeftAlone(why) => format!("left alone: {why}"),
            Self::Failed(error) => paint(BAD, &format!("failed: {error}")),
            Self::NotTried => paint(BAD, "not tried"),
        }
    }
}

/// Pauses a target.
pub(crate) async fn pause(api: &Api, project: ProjectCode, name: &TargetName, by: &By) -> Result<Report, CliError> {
    let answer = of_target(api, project, name, "pause", by).await?;
    let text =
        format!("{} is paused; its tables go on being read.\n\n{}", at(&answer, "/target"), why::explain(&answer));
    Ok(Report::new(text, answer))
}

/// Resumes a target.
pub(crate) async fn resume(api: &Api, project: ProjectCode, name: &TargetName, by: &By) -> Result<Report, CliError> {
    let answer = of_target(api, project, name, "resume", by).await?;
    let text = format!("{} goes on.\n{}\n{}", at(&answer, "/target"), claimed(&answer), why::explain(&answer));
    Ok(Report::new(text, answer))
}

async fn of_target(api: &Api, project: ProjectCode, name: &TargetName, verb: &str, by: &By) -> Result<Value, CliError> {
    let path = ["projects", &project.to_string(), "asset-dependencies", name.as_str(), verb];
    api.send(&Request::post(&path).body(&body(by))?).await
}

/// Redrives one trigger, or every one that failed.
pub(crate) async fn redrive(api: &Api, project: ProjectCode, args: &RedriveArgs) -> Result<Report, CliError> {
    match &args.key {
        Some(key) => {
            let answer = of_trigger(api, project, key, "redrive", body(&args.by)).await?;
            Ok(Report::new(operated(&answer), answer))
        }
        None => redrive_all(api, project, args).await,
    }
}

async fn redrive_all(api: &Api, project: ProjectCode, args: &RedriveArgs) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "asset-trigger-history"];
    let mut items = api.list(&path, &[("status", "FAILED".to_owned())], None).await?;
    items.retain(|item| args.code.as_ref().is_none_or(|code| at(item, "/status/code") == *code));
    let mut outcomes = Vec::with_capacity(items.len());
    let mut is_stopped = false;
    for item in &items {
        let outcome = if is_stopped { Outcome::NotTried } else { redrive_one(api, project, item, &args.by).await };
        is_stopped |= matches!(&outcome, Outcome::Failed(error) if error.stops_everything());
        outcomes.push(outcome);
    }
    let is_complete = !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::NotTried));
    let mut table = Table::new(["KEY", "TARGET", "CODE", "OUTCOME"]);
    let mut shown = Vec::with_capacity(items.len());
    for (item, outcome) in items.iter().zip(&outcomes) {
        table.row([at(item, "/key"), at(item, "/target"), at(item, "/status/code"), outcome.detail()]);
        shown.push(to_json(item, outcome));
    }
    let empty = if args.code.is_some() { "No trigger has failed with this code." } else { "No trigger has failed." };
    Ok(Report { is_complete, ..Report::new(table.or(empty), json!({ "items": shown })) })
}

async fn redrive_one(api: &Api, project: ProjectCode, item: &Value, by: &By) -> Outcome {
    let key = match at(item, "/key").parse::<TriggerKey>() {
        Ok(key) => key,
        Err(error) => return Outcome::Failed(CliError::failed(error.to_string(), "report this")),
    };
    match of_trigger(api, project, &key, "redrive", body(by)).await {
        Ok(answer) => Outcome::Redriven(answer),
        Err(CliError::Refused(problem)) if problem.status == 409 => Outcome::LeftAlone(CliError::Refused(problem)),
        Err(error) => Outcome::Failed(error),
    }
}

fn to_json(item: &Value, outcome: &Outcome) -> Value {
    let mut json = json!({
        "key": item.get("key"),
        "target": item.get("target"),
        "code": item.pointer("/status/code"),
        "outcome": outcome.word(),
    });
    match outcome {
        Outcome::Redriven(answer) => json["trigger"] = answer.clone(),
        Outcome::LeftAlone(error) | Outcome::Failed(error) => json["error"] = error.to_json()["error"].take(),
        Outcome::NotTried => {}
    }
    json
}

/// Skips a trigger.
pub(crate) async fn skip(api: &Api, project: ProjectCode, key: &TriggerKey, by: &By) -> Result<Report, CliError> {
    let answer = of_trigger(api, project, key, "skip", body(by)).await?;
    Ok(Report::new(operated(&answer), answer))
}

/// Decides a held trigger.
pub(crate) async fn decide(api: &Api, project: ProjectCode, args: &DecideArgs) -> Result<Report, CliError> {
    let mut body = body(&args.by);
    body.insert("decision".to_owned(), args.decision.as_str().into());
    if let Some(instance) = args.instance {
        body.insert("instance".to_owned(), instance.0.into());
    }
    let answer = of_trigger(api, project, &args.key, "decide", body).await?;
    Ok(Report::new(operated(&answer), answer))
}

/// What the command line itself has wrong.
pub(crate) fn check(args: &DecideArgs) -> Result<(), CliError> {
    if args.instance.is_some() && args.decision != DecisionWord::Started {
        let hint = "leave --instance out, or decide `started`";
        return Err(CliError::usage("only a workflow that started has an instance", hint));
    }
    Ok(())
}

async fn of_trigger(
    api: &Api,
    project: ProjectCode,
    key: &TriggerKey,
    verb: &str,
    body: Map<String, Value>,
) -> Result<Value, CliError> {
    let path = ["projects", &project.to_string(), "asset-trigger-history", key.as_str(), verb];
    api.send(&Request::post(&path).body(&body)?).await
}

pub(crate) fn body(by: &By) -> Map<String, Value> {
    by.by.iter().map(|by| ("by".to_owned(), by.as_str().into())).collect()
}

/// A trigger after a verb, and where its target stands.
pub(crate) fn operated(answer: &Value) -> String {
    let (status, step) = (at(answer, "/triggerStatus"), at(answer, "/status/step"));
    let step = if step.eq_ignore_ascii_case(&status) { String::new() } else { format!(", {step}") };
    let status = painted_word(&status);
    let mut text = format!("trigger {} of {}: {status}{step}\n", at(answer, "/key"), at(answer, "/target"));
    text.push_str(&claimed(answer));
    if at(answer, "/claimed").is_empty() {
        let verdict = painted_word(&at(answer, "/evaluation/verdict"));
        let code = at(answer, "/evaluation/reason/code");
        if !code.is_empty() {
            let _ = writeln!(text, "its target: {verdict}, {code}: {}", at(answer, "/evaluation/reason/actual"));
        }
    }
    text
}

pub(crate) fn claimed(answer: &Value) -> String {
    match at(answer, "/claimed").as_str() {
        "" => String::new(),
        key => format!("trigger {key} takes what has advanced meanwhile\n"),
    }
}
