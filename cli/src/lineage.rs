//! `lineage`: what a table is made from, and what is made from it.

use std::fmt::Write as _;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::ProjectCode;
use serde_json::Value;

use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{BOLD, Table, WAIT, at, moment, paint};

/// The API's word for the direction that two options ask for.
pub(crate) const fn direction(is_upstream: bool, is_downstream: bool) -> &'static str {
    match (is_upstream, is_downstream) {
        (true, false) => "upstream",
        (false, true) => "downstream",
        _ => "both",
    }
}

/// Shows the lineage of an asset.
pub(crate) async fn run(api: &Api, project: ProjectCode, key: &AssetKey, direction: &str) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "assets", &key.to_string(), "lineage"];
    let answer = api.send(&Request::get(&path).query("direction", direction)).await?;
    Ok(Report::new(text(&answer), answer))
}

fn text(answer: &Value) -> String {
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut edges = Table::new(["STEPS", "FROM", "TO", "BY", "LAST SEEN"]);
    for edge in &list("edges") {
        let last_seen = moment(&at(edge, "/lastSeen"));
        edges.row([at(edge, "/steps"), at(edge, "/from"), at(edge, "/to"), at(edge, "/via"), last_seen]);
    }
    let mut text = format!("{}\n{}", paint(BOLD, &at(answer, "/asset")), edges.or("No lineage has been reported."));
    let targets = list("targets");
    if !targets.is_empty() {
        let mut started = Table::new(["TABLE", "STARTS", "WHICH WRITES"]);
        for target in &targets {
            let writes = target.get("writes").and_then(Value::as_array).into_iter().flatten();
            let writes: Vec<&str> = writes.filter_map(Value::as_str).collect();
            started.row([at(target, "/asset"), at(target, "/target"), writes.join(", ")]);
        }
        let _ = write!(text, "\n{}", started.or(""));
    }
    for target in &targets {
        for warning in target.get("warnings").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
            let _ = writeln!(text, "{}  {}: {warning}", paint(WAIT, "warning"), at(target, "/target"));
        }
    }
    if answer.get("isCut").and_then(Value::as_bool) == Some(true) {
        text.push_str("There is more: the walk ended at its limit. Ask for one of the tables above.\n");
    }
    text
}
