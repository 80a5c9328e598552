//! `audit` and `doctor`: what is wrong, and what to do. Both ask the API, which asks the dispatcher, and
//! wait for its answer.

use std::fmt::Write as _;
use std::time::Duration;

use lakebell_domain::ids::ProjectCode;
use serde_json::{Map, Value};

use crate::args::AuditArgs;
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{BAD, DIM, GOOD, Table, WAIT, at, moment, paint};

/// How long until the API is asked again.
const BETWEEN: Duration = Duration::from_secs(2);
/// How long a look at connections is waited for. A cold dispatcher takes a few seconds.
const LOOK_TAKES: Duration = Duration::from_secs(40);

/// Has recorded state held against the rules and against the scheduler's instances.
pub(crate) async fn audit(api: &Api, project: ProjectCode, args: &AuditArgs) -> Result<Report, CliError> {
    let project = project.to_string();
    let mut body = Map::new();
    if let Some(since) = args.since {
        body.insert("since".to_owned(), since.to_string().into());
    }
    let mut answer = api.send(&Request::post(&["projects", &project, "audits"]).body(&body)?).await?;
    let id = at(&answer, "/id");
    let mut waited = Duration::ZERO;
    while answer.get("result").is_none_or(Value::is_null) {
        if waited >= Duration::from_secs(args.wait) {
            let why = format!("audit {id} was not done within {} s", args.wait);
            let hint = "look at the dispatch queue and the dispatcher's log, or give it longer with --wait";
            return Err(CliError::failed(why, hint));
        }
        tokio::time::sleep(BETWEEN).await;
        waited += BETWEEN;
        answer = api.send(&Request::get(&["projects", &project, "audits", &id])).await?;
    }
    let is_clean = answer.pointer("/result/isClean") == Some(&Value::Bool(true));
    Ok(Report { is_complete: is_clean, ..Report::new(audited(&answer, is_clean), answer) })
}

fn audited(answer: &Value, is_clean: bool) -> String {
    let count = |name: &str| at(answer, &format!("/result/{name}"));
    let mut table = Table::new(["KIND", "TRIGGER", "INSTANCE", "WHAT"]);
    let list = |name: &str| answer.pointer(&format!("/result/{name}")).and_then(Value::as_array).into_iter().flatten();
    for finding in list("findings") {
        table.row([at(finding, "/kind"), at(finding, "/trigger"), at(finding, "/instance"), at(finding, "/detail")]);
    }
    for workflow in list("notCompared") {
        let which = format!("workflow {} on {}", at(workflow, "/workflow"), at(workflow, "/connection"));
        table.row([
            "not compared".to_owned(),
            String::new(),
            String::new(),
            format!("{which}: {}", at(workflow, "/why")),
        ]);
    }
    let mut text = table.or("nothing that is wrong");
    let more = count("moreFindings");
    if more != "0" {
        let _ = writeln!(text, "and {more} more");
    }
    if let Some(since) = answer.pointer("/result/onlySince").and_then(Value::as_str) {
        let _ = writeln!(text, "There are more triggers than one audit looks at: only those since {}.", moment(since));
    }
    let (triggers, instances) = (count("triggers"), count("instances"));
    let word = if is_clean { paint(GOOD, "clean") } else { paint(BAD, "not clean") };
    let since = moment(&at(answer, "/since"));
    let _ = writeln!(text, "{word}: {triggers} triggers since {since}, compared with {instances} instances");
    text
}

/// Looks whether the deployment is well.
pub(crate) async fn doctor(api: &Api) -> Result<Report, CliError> {
    let mut waited = Duration::ZERO;
    let mut answer = api.send(&Request::get(&["doctor"])).await?;
    while statuses(&answer).any(|status| status == "pending") && waited < LOOK_TAKES {
        tokio::time::sleep(BETWEEN).await;
        waited += BETWEEN;
        answer = api.send(&Request::get(&["doctor"])).await?;
    }
    add_own_version(&mut answer);
    let is_well = !statuses(&answer).any(|status| status == "bad" || status == "pending");
    let mut text = String::new();
    for check in answer.get("checks").and_then(Value::as_array).into_iter().flatten() {
        let word = match at(check, "/status").as_str() {
            "ok" => paint(GOOD, "ok     "),
            "warning" => paint(WAIT, "warning"),
            "pending" => paint(BAD, "silent "),
            _ => paint(BAD, "bad    "),
        };
        let subject = at(check, "/subject");
        let subject = if subject.is_empty() { String::new() } else { format!(" {subject}") };
        let _ = writeln!(text, "{word}  {}{subject}: {}", at(check, "/check"), at(check, "/detail"));
        let todo = at(check, "/todo");
        if !todo.is_empty() {
            let _ = writeln!(text, "         {} {todo}", paint(DIM, "to do:"));
        }
    }
    Ok(Report { is_complete: is_well, ..Report::new(text, answer) })
}

fn statuses(answer: &Value) -> impl Iterator<Item = &str> {
    let checks = answer.get("checks").and_then(Value::as_array).into_iter().flatten();
    checks.filter_map(|check| check.get("status")?.as_str())
}

/// Whether this command line is of the deployment's version.
fn add_own_version(answer: &mut Value) {
    let own = env!("CARGO_PKG_VERSION");
    let theirs = at(answer, "/version");
    let check = if theirs == own {
        serde_json::json!({"check": "versions", "subject": "lakebell", "status": "ok", "detail": format!("this is {own}")})
    } else {
        serde_json::json!({
            "check": "versions", "subject": "lakebell", "status": "warning",
            "detail": format!("this is {own} and the deployment {theirs}"),
            "todo": "install `lakebell` from the checkout that is deployed",
        })
    };
    if let Some(checks) = answer.get_mut("checks").and_then(Value::as_array_mut) {
        checks.insert(0, check);
    }
}
