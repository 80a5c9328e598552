//! `triggers` and `trigger`.

use std::fmt::Write as _;

use clap::ValueEnum;
use lakebell_domain::ids::{ProjectCode, TriggerKey};
use serde_json::{Value, json};

use crate::args::TriggersArgs;
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{BOLD, Table, at, fields, moment, paint, painted_word, snapshot, window};

/// The trigger history.
pub(crate) async fn list(api: &Api, project: ProjectCode, args: &TriggersArgs) -> Result<Report, CliError> {
    let mut query = Vec::new();
    if let Some(target) = &args.target {
        query.push(("target", target.to_string()));
    }
    if let Some(status) = args.status.and_then(|status| status.to_possible_value()) {
        query.push(("status", status.get_name().to_owned()));
    }
    let path = ["projects", &project.to_string(), "asset-trigger-history"];
    let items = api.list(&path, &query, Some(args.limit)).await?;
    let mut table = Table::new(["KEY", "CLAIMED", "TARGET", "STATUS", "WORKFLOW", "INSTANCE", "ENDED", "TAKES"]);
    for item in &items {
        table.row([
            at(item, "/key"),
            moment(&at(item, "/claimedAt")),
            target_name(item),
            at(item, "/triggerStatus"),
            at(item, "/workflow"),
            at(item, "/instance"),
            ended(item),
            summary(item),
        ]);
        table.paint_last(3);
    }
    Ok(Report::new(table.or("No trigger yet. `lakebell why` says what is missing."), json!({ "items": items })))
}

/// The name within the project, which the command line named already.
fn target_name(item: &Value) -> String {
    let target = at(item, "/target");
    target.split_once('/').map_or(target.clone(), |(_, name)| name.to_owned())
}

/// How the workflow that it started is getting on: the end, or that there is none yet.
fn ended(trigger: &Value) -> String {
    match at(trigger, "/followed/state").as_str() {
        "" => String::new(),
        "UNSEEN" => "not yet".to_owned(),
        state => state.to_lowercase(),
    }
}

/// What it takes, its window, and why it was started where not because all conditions held.
fn summary(trigger: &Value) -> String {
    let mut parts: Vec<String> = takes(trigger).into_iter().map(|(name, range)| format!("{name} {range}")).collect();
    if let Some(date) = trigger.pointer("/window/businessDate").and_then(Value::as_str) {
        parts.push(format!("window {date}"));
    }
    match (at(trigger, "/reason").as_str(), unmet(trigger).len()) {
        ("" | "ready", _) => {}
        (reason, 0) => parts.push(format!("by {reason}")),
        (reason, count) => parts.push(format!("by {reason} ({count} unmet)")),
    }
    if trigger.get("sensor").is_some() {
        parts.push(sensor(trigger));
    }
    parts.join(", ")
}

/// The task that took it, or is to take it.
fn sensor(trigger: &Value) -> String {
    let task = at(trigger, "/sensor/task");
    let run = at(trigger, "/sensor/takenBy/run");
    let asker = at(trigger, "/sensor/takenBy/asker/workflowInstance");
    let token = at(trigger, "/sensor/takenBy/asker/token");
    match (task.as_str(), asker.as_str(), token.as_str()) {
        ("", ..) => String::new(),
        (_, "", "") => format!("waits for task {task} to ask"),
        (_, "", _) => format!("task {task} of token {token}, run {run}"),
        _ => format!("task {task} of instance {asker}, run {run}"),
    }
}

/// The conditions that did not hold.
fn unmet(trigger: &Value) -> &[Value] {
    trigger.get("unmet").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What it takes of each asset: alias and snapshots.
fn takes(trigger: &Value) -> Vec<(String, String)> {
    let ranges = trigger.get("ranges").and_then(Value::as_array);
    ranges
        .into_iter()
        .flatten()
        .map(|range| {
            let aliases = range.get("aliases").and_then(Value::as_array).into_iter().flatten();
            let aliases: Vec<&str> = aliases.filter_map(Value::as_str).collect();
            let name = if aliases.is_empty() { at(range, "/key") } else { aliases.join("/") };
            (name, snapshots(&side(range, "from"), &side(range, "to")) + &remarks(range))
        })
        .collect()
}

/// The tag by which the version was taken, versions that failed their checks, a backfill.
fn remarks(range: &Value) -> String {
    let mut remarks = Vec::new();
    let tag = at(range, "/tag");
    if !tag.is_empty() {
        remarks.push(format!("tag {tag}"));
    }
    let failed = range.get("failedVersions").and_then(Value::as_array).into_iter().flatten();
    let failed: Vec<String> = failed.map(snapshot).collect();
    if !failed.is_empty() {
        remarks.push(format!("failed: {}", failed.join(" ")));
    }
    if range.get("hasBackfill") == Some(&Value::Bool(true)) {
        remarks.push("with a backfill".to_owned());
    }
    if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join("; ")) }
}

fn side(range: &Value, name: &str) -> String {
    range.get(name).map(snapshot).unwrap_or_default()
}

/// From (exclusive) to (inclusive), as people read it.
fn snapshots(from: &str, to: &str) -> String {
    match (from, to) {
        (_, "") => "nothing".to_owned(),
        (from, to) if from == to => "nothing new".to_owned(),
        ("", to) => format!("up to {to}"),
        (from, to) => format!("{from} -> {to}"),
    }
}

/// Further workflow instances that carry its key.
fn extras(trigger: &Value) -> String {
    let extras = trigger.get("extraInstances").and_then(Value::as_array).into_iter().flatten();
    let extras: Vec<String> = extras.map(ToString::to_string).collect();
    if extras.is_empty() { String::new() } else { format!("{} (stop these)", extras.join(", ")) }
}

/// One trigger.
pub(crate) async fn show(api: &Api, project: ProjectCode, key: &TriggerKey) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "asset-trigger-history", key.as_str()];
    let answer = api.send(&Request::get(&path)).await?;
    Ok(Report::new(detail(&answer), answer))
}

fn detail(trigger: &Value) -> String {
    let status = painted_word(&at(trigger, "/triggerStatus"));
    let mut text = format!("{}  {status}\n", paint(BOLD, &at(trigger, "/key")));
    text.push_str(&fields(
        "  ",
        &[
            ("target", at(trigger, "/target")),
            ("workflow", at(trigger, "/workflow")),
            ("connection", at(trigger, "/connection")),
            ("instance", at(trigger, "/instance")),
            ("sensor", sensor(trigger)),
            ("extra", extras(trigger)),
            ("workflow is", ended(trigger)),
            ("began", moment(&at(trigger, "/followed/startedAt"))),
            ("ended", moment(&at(trigger, "/followed/endedAt"))),
            ("step", at(trigger, "/status/step")),
            ("code", at(trigger, "/status/code")),
            ("detail", at(trigger, "/status/detail")),
            ("reason", at(trigger, "/reason")),
            ("window", trigger.get("window").map(window).unwrap_or_default()),
            ("claimed", moment(&at(trigger, "/claimedAt"))),
            ("due", moment(&at(trigger, "/dueAt"))),
            ("attempt", at(trigger, "/attempt")),
            ("replaces", at(trigger, "/replaces")),
            ("trace", at(trigger, "/trace")),
        ],
    ));
    text.push_str("\nTakes:\n");
    let taken = takes(trigger);
    let rows: Vec<(&str, String)> = taken.iter().map(|(name, range)| (name.as_str(), range.clone())).collect();
    text.push_str(&fields("  ", &rows));
    let unmet = unmet(trigger);
    if !unmet.is_empty() {
        text.push_str("\nDid not hold:\n");
        for reason in unmet {
            let code = at(reason, "/code");
            let _ = writeln!(text, "  {}  {}  docs/reasons/{code}.md", paint(BOLD, &code), at(reason, "/asset"));
            let rows = [("expected", at(reason, "/expected")), ("actual", at(reason, "/actual"))];
            text.push_str(&fields("    ", &rows));
        }
    }
    text.push_str("\nIts way:\n");
    let mut log = Table::new(["AT", "ARROW", "DETAIL"]);
    for passage in trigger.get("log").and_then(Value::as_array).into_iter().flatten() {
        log.row([moment(&at(passage, "/at")), at(passage, "/arrow"), at(passage, "/detail")]);
    }
    text.push_str(&log.or("  nothing yet"));
    if let Some(Value::Object(parameters)) = trigger.get("parameters") {
        text.push_str("\nParameters of the workflow:\n");
        for (name, value) in parameters {
            let _ = writeln!(text, "  {name} = {}", value.as_str().unwrap_or_default());
        }
    }
    text
}
