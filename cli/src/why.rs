//! `why`: the evaluator's explanation as a tree.
//!
//! Verdicts and codes are texts here, so that an older command line shows those of a newer API.

use lakebell_domain::ids::ProjectCode;
use lakebell_domain::state::Demands;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{BAD, BOLD, DIM, GOOD, WAIT, at, moment, paint, painted_word, snapshot, window};

/// The verdict on a target.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TargetVerdict {
    target: String,
    verdict: String,
    reason: Option<Reason>,
    groups: Vec<GroupVerdict>,
    open: Option<String>,
    open_takes: Vec<Value>,
    timed_out: Option<String>,
    sensor: Option<i64>,
}

/// The verdict on a group.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GroupVerdict {
    group: String,
    verdict: String,
    reason: Option<Reason>,
    rule: String,
    window: Option<Value>,
    members: Vec<MemberVerdict>,
}

/// The verdict on a dependency.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MemberVerdict {
    asset: String,
    alias: String,
    verdict: String,
    reason: Option<Reason>,
    taken: Option<Value>,
    newest: Option<Value>,
    written_by: Option<Value>,
    refused: Option<Value>,
    without_catalog: bool,
    demands: Demands,
}

/// Why it is not READY.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Reason {
    code: String,
    asset: Option<String>,
    expected: String,
    actual: String,
    since: Option<String>,
    unblock: String,
}

const READY: &str = "READY";
/// What is said of an Iceberg table whose catalog is not asked.
pub(crate) const WITHOUT_CATALOG: &str = "none is asked: what the metadata files say of each other decides, and one that lost a race \
                                          is told only by a later one";

/// Explains the targets of a project, or those of one name or workflow.
pub(crate) async fn run(api: &Api, project: ProjectCode, target: Option<&str>) -> Result<Report, CliError> {
    let project = project.to_string();
    let items = match target {
        None => api.list(&["projects", &project, "asset-dependencies"], &[], None).await?,
        Some(target) => {
            let path = ["projects", &project, "asset-dependencies", target];
            let mut answer = api.send(&Request::get(&path)).await?;
            let items = answer.get_mut("items").map(Value::take);
            items.and_then(|items| serde_json::from_value(items).ok()).unwrap_or_default()
        }
    };
    let text = if items.is_empty() {
        "No target is declared. `lakebell apply` declares those of a file.\n".to_owned()
    } else {
        items.iter().map(explain).collect::<Vec<_>>().join("\n")
    };
    Ok(Report::new(text, json!({ "items": items })))
}

/// One target with its verdict.
pub(crate) fn explain(item: &Value) -> String {
    match item.get("evaluation").map(TargetVerdict::deserialize) {
        Some(Ok(target)) => tree(&target, &warnings(item), last_start(item).as_deref()),
        _ => format!("{}: not evaluated yet\n", paint(BOLD, &at(item, "/definition/name"))),
    }
}

/// What the scheduler said about the workflow.
fn warnings(item: &Value) -> Vec<&str> {
    let warnings = item.get("warnings").and_then(Value::as_array).into_iter().flatten();
    warnings.filter_map(Value::as_str).collect()
}

/// The last start, and how its workflow is getting on.
fn last_start(item: &Value) -> Option<String> {
    let start = item.get("lastStart")?;
    let state = at(start, "/followed/state");
    let is = match state.as_str() {
        "" => String::new(),
        "UNSEEN" => ", its workflow was not seen yet".to_owned(),
        "LOST" => ", its workflow had not ended when it was followed no longer".to_owned(),
        "GONE" => ", its workflow is gone from the scheduler".to_owned(),
        state => format!(", its workflow: {}", painted_word(state)),
    };
    let ended = match at(start, "/followed/endedAt").as_str() {
        "" => String::new(),
        ended => format!(" at {}", moment(ended)),
    };
    Some(format!("{}  {}{is}{ended}", at(start, "/trigger"), moment(&at(start, "/claimedAt"))))
}

fn tree(target: &TargetVerdict, warnings: &[&str], last_start: Option<&str>) -> String {
    let timed_out = target.timed_out.as_ref().map(|deadline| {
        format!("  {}  the deadline of {} has passed without a start", paint(BAD, "TIMED_OUT"), moment(deadline))
    });
    let mut lines = vec![format!(
        "{}  {}{}",
        paint(BOLD, &target.target),
        painted_word(&target.verdict),
        timed_out.unwrap_or_default()
    )];
    let of_groups = target.groups.iter().any(|group| group.reason == target.reason);
    if let Some(reason) = target.reason.as_ref().filter(|_| !of_groups) {
        let remedy = of_target(reason, target).map(|command| row("run", &command));
        lines.extend(full(reason).into_iter().chain(remedy).map(|line| format!("│  {line}")));
    }
    if let Some(task) = target.sensor {
        let waits = if target.verdict == READY { "takes it with its next poll" } else { "waits for it" };
        lines.push(format!("│  {}  task {task} {waits}", paint(DIM, "sensor")));
    }
    if let Some(open) = &target.open {
        lines.push(format!("│  {}  {open}  (lakebell trigger {open})", paint(DIM, "open trigger")));
        lines.extend(target.open_takes.iter().map(|taken| {
            let versions = span(taken.get("from"), taken.get("to"));
            format!("│  {}  {}  {versions}", paint(DIM, "which took"), at(taken, "/asset"))
        }));
    }
    lines.extend(last_start.map(|start| format!("│  {}  {start}", paint(DIM, "last start"))));
    lines.extend(warnings.iter().map(|warning| format!("│  {}  {warning}", paint(WAIT, "warning"))));
    for (at, group) in target.groups.iter().enumerate() {
        let (branch, below) = if at + 1 == target.groups.len() { ("└─", "   ") } else { ("├─", "│  ") };
        let mut of_group = group_lines(group).into_iter();
        lines.extend(of_group.next().map(|first| format!("{branch} {first}")));
        lines.extend(of_group.map(|line| format!("{below}{line}")));
    }
    lines.iter().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

fn group_lines(group: &GroupVerdict) -> Vec<String> {
    let mut lines = vec![
        format!("group {}  {}", paint(BOLD, &group.group), painted_word(&group.verdict)),
        format!("│  {}", group.rule),
    ];
    lines.extend(
        group.window.as_ref().map(|of_group| format!("│  {}  {}", paint(DIM, "next window"), window(of_group))),
    );
    let of_members = group.members.iter().any(|member| member.reason == group.reason);
    if let Some(reason) = group.reason.as_ref().filter(|_| !of_members) {
        lines.extend(full(reason).into_iter().map(|line| format!("│  {line}")));
    }
    for (at, member) in group.members.iter().enumerate() {
        let (branch, below) = if at + 1 == group.members.len() { ("└─", "   ") } else { ("├─", "│  ") };
        let mut of_member = member_lines(member, group.verdict == READY).into_iter();
        lines.extend(of_member.next().map(|first| format!("{branch} {first}")));
        lines.extend(of_member.map(|line| format!("{below}{line}")));
    }
    lines
}

fn member_lines(member: &MemberVerdict, is_group_ready: bool) -> Vec<String> {
    let mut lines =
        vec![format!("{}  {}  {}", paint(BOLD, &member.alias), painted_word(&member.verdict), member.asset)];
    if member.verdict == READY {
        let lead = if is_group_ready { "would take" } else { "has advanced" };
        lines.push(format!("   {}  {}", paint(GOOD, lead), range(member)));
    }
    if let Some(reason) = &member.reason {
        lines.extend(full(reason).into_iter().map(|line| format!("   {line}")));
    }
    let written = member.written_by.as_ref().map(|by| format!("{}, {}", at(by, "/name"), moment(&at(by, "/at"))));
    let refused = member.refused.as_ref().map(|refused| {
        let (kind, reason) = (at(refused, "/kind"), at(refused, "/reason"));
        format!("{kind}, {}: {reason}", moment(&at(refused, "/at")))
    });
    let without_catalog = member.without_catalog.then(|| WITHOUT_CATALOG.to_owned());
    for (name, value) in [("written by", written), ("refused", refused), ("catalog", without_catalog)] {
        lines.extend(value.map(|value| format!("   {}", row(name, &value))));
    }
    lines.extend(member.demands.told().iter().map(|told| format!("   {}", row("format", told))));
    lines
}

/// The versions that a claim would take.
fn range(member: &MemberVerdict) -> String {
    span(member.taken.as_ref(), member.newest.as_ref())
}

/// The versions after one and up to another.
fn span(from: Option<&Value>, to: Option<&Value>) -> String {
    match (from, to.map(snapshot)) {
        (_, None) => "nothing".to_owned(),
        (Some(from), Some(to)) => format!("snapshots after {} up to {to}", snapshot(from)),
        (None, Some(to)) => format!("everything up to snapshot {to}"),
    }
}

fn full(reason: &Reason) -> Vec<String> {
    let mut lines = vec![format!("{}  docs/reasons/{}.md", paint(BOLD, &reason.code), reason.code)];
    let rows = [
        ("expected", Some(reason.expected.clone())),
        ("actual", Some(reason.actual.clone())),
        ("since", reason.since.as_deref().map(moment)),
        ("to unblock", Some(reason.unblock.clone())),
    ];
    for (name, value) in rows {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| row(name, &value)));
    }
    lines.extend(command(reason).map(|command| row("run", &command)));
    lines
}

fn row(name: &str, value: &str) -> String {
    format!("  {}{}  {value}", paint(DIM, name), " ".repeat(10 - name.len()))
}

/// What to type for an obstacle of the whole target.
fn of_target(reason: &Reason, target: &TargetVerdict) -> Option<String> {
    match reason.code.as_str() {
        "TRIGGER_HELD" => {
            let open = target.open.as_ref()?;
            Some(format!("lakebell decide {open} started  (or: absent, failed)"))
        }
        "TARGET_PAUSED" => {
            let name = target.target.split_once('/').map_or(target.target.as_str(), |(_, name)| name);
            Some(format!("lakebell resume {name}"))
        }
        _ => None,
    }
}

/// What to type, where one command is the answer.
fn command(reason: &Reason) -> Option<String> {
    let asset = reason.asset.as_ref()?;
    match reason.code.as_str() {
        "REWRITE_HELD" => Some(format!("lakebell accept-rewrite {asset}")),
        "NEVER_READ" => Some(format!("lakebell observe {asset}")),
        _ => None,
    }
}
