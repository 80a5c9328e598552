//! `fire`, `reset`, `pass-over`, `switch`, `replay` and `withdrawn`.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{ProjectCode, TargetName};
use serde_json::{Map, Value, json};

use crate::args::{FireArgs, PassOverArgs, ReplayArgs, SwitchArgs, SwitchState};
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::file;
use crate::operate::{body, claimed, operated};
use crate::report::Report;
use crate::text::{Table, at, moment, snapshot};
use crate::why;

/// Starts a target now with what is there.
pub(crate) async fn fire(api: &Api, project: ProjectCode, args: &FireArgs) -> Result<Report, CliError> {
    // The time of the call: whoever repeats a call that may have been lost gives the same id by hand.
    let made_up = || format!("cli-{}", Timestamp::now().as_microsecond());
    let request_id = args.request_id.clone().unwrap_or_else(made_up);
    let mut body = body(&args.by);
    body.insert("requestId".to_owned(), request_id.clone().into());
    let answer = post(api, project, &args.target, "fire", &body).await?;
    let text = format!("{}with the request id {request_id}: the same id again is the same start\n", operated(&answer));
    Ok(Report::new(text, answer))
}

/// Begins a target anew.
pub(crate) async fn reset(
    api: &Api,
    project: ProjectCode,
    target: &TargetName,
    by: &crate::args::By,
) -> Result<Report, CliError> {
    let answer = post(api, project, target, "reset", &body(by)).await?;
    let text = format!("{} begins anew.\n{}\n{}", at(&answer, "/target"), claimed(&answer), why::explain(&answer));
    Ok(Report::new(text, answer))
}

/// Counts what is there as taken.
pub(crate) async fn pass_over(api: &Api, project: ProjectCode, args: &PassOverArgs) -> Result<Report, CliError> {
    let mut body = body(&args.by);
    if let Some(key) = &args.asset {
        body.insert("assetKey".to_owned(), key.to_string().into());
    }
    let answer = post(api, project, &args.target, "pass-over", &body).await?;
    let what = args.asset.as_ref().map_or_else(|| "every table".to_owned(), ToString::to_string);
    let target = at(&answer, "/target");
    let text = format!("{target}: what is there of {what} counts as taken.\n\n{}", why::explain(&answer));
    Ok(Report::new(text, answer))
}

async fn post(
    api: &Api,
    project: ProjectCode,
    target: &TargetName,
    verb: &str,
    body: &Map<String, Value>,
) -> Result<Value, CliError> {
    let path = ["projects", &project.to_string(), "asset-dependencies", target.as_str(), verb];
    api.send(&Request::post(&path).body(body)?).await
}

/// Shows a switch, or sets it. Without a project it is the one of all projects.
pub(crate) async fn switch(api: &Api, project: Option<ProjectCode>, args: &SwitchArgs) -> Result<Report, CliError> {
    let project = project.map(|project| project.to_string());
    let path: Vec<&str> = match &project {
        Some(project) => vec!["projects", project, "switch"],
        None => vec!["switch"],
    };
    let answer = match args.state {
        None => api.send(&Request::get(&path)).await?,
        Some(state) => {
            let mut body = body(&args.by);
            body.insert("on".to_owned(), (state == SwitchState::On).into());
            api.send(&Request::put(&path).body(&body)?).await?
        }
    };
    let scope = match at(&answer, "/scope").as_str() {
        "global" => "all projects".to_owned(),
        project => format!("project {project}"),
    };
    let text = if answer["on"] == true {
        format!("Starting is on for {scope}.\n")
    } else {
        let (since, by) = (moment(&at(&answer, "/off/since")), at(&answer, "/off/by"));
        format!("Starting is off for {scope}, since {since} by {by}. Nothing is lost meanwhile.\n")
    };
    Ok(Report::new(text, answer))
}

/// Lists when a target would have started.
pub(crate) async fn replay(api: &Api, project: ProjectCode, args: &ReplayArgs) -> Result<Report, CliError> {
    let answer = match &args.file {
        None => {
            let path = ["projects", &project.to_string(), "asset-dependencies", args.target.as_str(), "replay"];
            api.send(&Request::get(&path)).await?
        }
        Some(file) => {
            let spec = of_file(file, project, &args.target)?;
            api.send(&Request::post(&["projects", &project.to_string(), "replay"]).body(&spec)?).await?
        }
    };
    let mut table = Table::new(["AT", "REASON", "WINDOW", "TOOK"]);
    for start in answer["starts"].as_array().into_iter().flatten() {
        let step =
            [at(start, "/partition"), at(start, "/window/businessDate")].into_iter().find(|text| !text.is_empty());
        let took: Vec<String> = start["ranges"].as_array().into_iter().flatten().map(range).collect();
        table.row([moment(&at(start, "/at")), at(start, "/reason"), step.unwrap_or_default(), took.join("; ")]);
    }
    let mut text = table.or("It would not have started.");
    let since = moment(&at(&answer, "/since"));
    let _ = writeln!(text, "\n{} events replayed, the first of {since}.", answer["events"]);
    if answer["isCut"] == true {
        text.push_str("There was more: the replay stopped at its limit.\n");
    }
    Ok(Report::new(text, answer))
}

fn range(range: &Value) -> String {
    let place = |name: &str| range.get(name).filter(|version| !version.is_null()).map_or("-".to_owned(), snapshot);
    format!("{} ({}, {}]", at(range, "/key"), place("from"), place("to"))
}

fn of_file(
    path: &Path,
    project: ProjectCode,
    target: &TargetName,
) -> Result<lakebell_domain::target::TargetSpec, CliError> {
    let declared = file::read(path, Some(project))?;
    let found = declared.targets.into_iter().find(|(id, _)| id.name == *target);
    found.map(|(_, spec)| spec).ok_or_else(|| {
        CliError::failed(
            format!("{} declares no target `{target}`", path.display()),
            "give the name of one of its targets",
        )
    })
}

/// Lists the triggers that took versions which a rewrite has withdrawn.
pub(crate) async fn withdrawn(api: &Api, project: ProjectCode, key: &AssetKey) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "assets", &key.to_string(), "withdrawn"];
    let answer = api.send(&Request::get(&path)).await?;
    let mut table = Table::new(["KEY", "TARGET", "TOOK", "CERTAIN"]);
    for trigger in answer["triggers"].as_array().into_iter().flatten() {
        let certain = if trigger["isCertain"] == json!(true) { "yes" } else { "no" };
        let took = trigger.get("to").map_or_else(String::new, snapshot);
        table.row([at(trigger, "/trigger"), at(trigger, "/target"), took, certain.to_owned()]);
    }
    let mut text = table.or("No trigger took what was withdrawn.");
    let of_others = answer["ofOthers"].as_u64().unwrap_or_default();
    if of_others > 0 {
        text = if answer["triggers"].as_array().is_some_and(Vec::is_empty) { String::new() } else { text };
        let _ =
            writeln!(text, "{of_others} triggers of other projects took withdrawn versions; their owners see them.");
    }
    Ok(Report::new(text, answer))
}
