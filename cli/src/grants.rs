//! `grants`: list, give and take back.

use lakebell_domain::ids::ProjectCode;
use serde_json::json;

use crate::args::GrantsCommand;
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{Table, at, moment};

/// Runs a command on the grants of a project's assets.
pub(crate) async fn run(api: &Api, owner: ProjectCode, command: &GrantsCommand) -> Result<Report, CliError> {
    let owner = owner.to_string();
    let path = ["projects", owner.as_str(), "grants"];
    match command {
        GrantsCommand::List => list(api, &path).await,
        GrantsCommand::Give { key, to } => {
            let request = Request::put(&path).body(&json!({ "assetKey": key, "project": to }))?;
            let answer = api.send(&request).await?;
            Ok(Report::new(format!("Project {to} may read {key} and depend on it.\n"), answer))
        }
        GrantsCommand::TakeBack { key, from } => {
            let request = Request::delete(&path).query("assetKey", key.to_string()).query("project", from.to_string());
            api.send(&request).await?;
            let text = format!("Project {from} does not see {key} any more; its targets on it are blocked.\n");
            Ok(Report::new(text, json!({ "assetKey": key, "project": from })))
        }
    }
}

async fn list(api: &Api, path: &[&str]) -> Result<Report, CliError> {
    let items = api.list(path, &[], None).await?;
    let mut table = Table::new(["ASSET", "PROJECT", "STANDING"]);
    for item in &items {
        let asked = item.get("askedAt").map(|_| format!("asked for {}", moment(&at(item, "/askedAt"))));
        table.row([at(item, "/assetKey"), at(item, "/project"), asked.unwrap_or_else(|| "given".to_owned())]);
    }
    let text = table.or("Nothing is granted or asked for.");
    Ok(Report::new(text, json!({ "items": items })))
}
