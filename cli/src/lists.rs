//! `assets`, `unregistered`, `events`, `observe` and `accept-rewrite`.

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::ProjectCode;
use lakebell_domain::state::{AssetState, Register, Unnotified};
use lakebell_domain::version::Version;
use lakebell_engine::catalog::Catalog;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{BAD, BOLD, Table, WAIT, at, fields, millis, moment, paint};
use crate::why::WITHOUT_CATALOG;

/// Every asset of a project.
pub(crate) async fn assets(api: &Api, project: ProjectCode) -> Result<Report, CliError> {
    let items = api.list(&["projects", &project.to_string(), "assets"], &[], None).await?;
    let mut table = Table::new(["KEY", "LOCATION", "PROJECT"]);
    for item in &items {
        table.row([at(item, "/key"), at(item, "/location"), at(item, "/project")]);
    }
    let text = table.or("No asset is registered. `lakebell apply` registers those of a file.");
    Ok(Report::new(text, json!({ "items": items })))
}

/// Tables that were seen and are not registered.
pub(crate) async fn unregistered(api: &Api, project: ProjectCode) -> Result<Report, CliError> {
    let items = api.list(&["projects", &project.to_string(), "unregistered-assets"], &[], None).await?;
    let mut table = Table::new(["LOCATION", "FORMAT", "FIRST SEEN", "REASON"]);
    for item in &items {
        let first_seen = moment(&at(item, "/firstSeen"));
        table.row([at(item, "/location"), at(item, "/format"), first_seen, at(item, "/reason")]);
    }
    let text = table.or("No table was seen that is not registered.");
    Ok(Report::new(text, json!({ "items": items })))
}

/// The state of one asset.
pub(crate) async fn asset(api: &Api, project: ProjectCode, key: &AssetKey) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "assets", &key.to_string(), "state"];
    let answer = api.send(&Request::get(&path)).await?;
    let mut rows = vec![
        ("location", at(&answer, "/location")),
        ("project", at(&answer, "/project")),
        ("registered", moment(&at(&answer, "/registeredAt"))),
        ("revision", at(&answer, "/rev")),
    ];
    rows.extend(catalog(&answer).map(|catalog| ("catalog", catalog)));
    rows.extend(state_rows(&answer));
    let text = format!("{}\n{}", paint(BOLD, &at(&answer, "/key")), fields("  ", &rows));
    Ok(Report::new(text, answer))
}

/// Who decides what is a commit, where the format leaves that to a catalog.
fn catalog(answer: &Value) -> Option<String> {
    if !at(answer, "/key").starts_with("iceberg://") {
        return None;
    }
    let setting = answer.pointer("/settings/catalog");
    match setting.map(Catalog::deserialize) {
        None | Some(Ok(Catalog::None)) => Some(WITHOUT_CATALOG.to_owned()),
        Some(Ok(catalog)) => Some(catalog.describe()),
        // A newer API's.
        Some(Err(_)) => setting.map(ToString::to_string),
    }
}

/// The state in an answer, for people.
fn state_rows(answer: &Value) -> Vec<(&'static str, String)> {
    match answer.get("state").map(AssetState::deserialize) {
        Some(Ok(state)) => registers(&state),
        _ => vec![("state", "this version cannot show it; --json does".to_owned())],
    }
}

fn registers(state: &AssetState) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("newest", state.table.as_ref().map_or_else(|| "no commit".to_owned(), version)),
        ("data", state.data.as_ref().map_or_else(|| "no commit that changes data".to_owned(), register)),
    ];
    rows.extend(state.kinds.iter().map(|(kind, of_kind)| ("kind", format!("{}: {}", kind.0, register(of_kind)))));
    rows.push(("watermark", state.watermark.as_ref().map_or_else(String::new, |mark| millis(Some(mark.at.0)))));
    rows.push(("schema", state.schema.current.map_or_else(String::new, |id| id.to_string())));
    rows.extend(state.tags.iter().map(|(name, tag)| ("tag", format!("{name}: snapshot {}", tag.snapshot_id))));
    rows.extend(state.demands.told().into_iter().map(|told| ("format", paint(WAIT, &told))));
    if let Some(hold) = &state.hold {
        let word = if hold.confirmed_at.is_some() { "confirmed" } else { "suspected" };
        let text = format!("{word} since {}: {}", hold.first_seen, hold.evidence);
        rows.push(("rewrite", paint(BAD, &text)));
    }
    if let Some(trouble) = &state.trouble {
        rows.push(("trouble", paint(BAD, &format!("since {}: {}", trouble.since, trouble.detail))));
    }
    if let Some(unnotified) = state.unnotified.filter(Unnotified::is_lasting) {
        let text = format!(
            "none since {}: {} commits were found by {} scans alone; does the bucket still notify?",
            unnotified.since, unnotified.commits, unnotified.scans
        );
        rows.push(("notifications", paint(WAIT, &text)));
    }
    if let Some(hole) = &state.hole {
        rows.push(("missing", paint(WAIT, &format!("commit {} since {}", hole.ordinal, hole.first_seen))));
    }
    if let Some(gap) = &state.gap {
        rows.push(("gap", format!("commits {} to {} went unread: {}", gap.first, gap.last, gap.cause)));
    }
    rows
}

fn version(version: &Version) -> String {
    match version.position.epoch.0 {
        0 => format!("snapshot {}", version.snapshot_id),
        epoch => format!("snapshot {} of history {epoch}", version.snapshot_id),
    }
}

fn register(register: &Register) -> String {
    format!(
        "{}, {} counted, since {}",
        version(&register.mark.version),
        register.count,
        moment(&register.mark.since.to_string())
    )
}

/// The events of an asset.
pub(crate) async fn events(api: &Api, project: ProjectCode, key: &AssetKey, limit: usize) -> Result<Report, CliError> {
    let query = [("assetKey", key.to_string())];
    let items = api.list(&["projects", &project.to_string(), "asset-events"], &query, Some(limit)).await?;
    let mut table = Table::new(["RECORDED", "KIND", "SNAPSHOT", "COMMIT", "OUTCOME", "SOURCE", "DETAIL"]);
    for item in &items {
        let details = [at(item, "/reason"), at(item, "/detail")];
        let details: Vec<String> = details.into_iter().filter(|detail| !detail.is_empty()).collect();
        table.row([
            moment(&at(item, "/recordedAt")),
            at(item, "/kind"),
            at(item, "/commit/snapshotId"),
            at(item, "/commit/commitKind"),
            at(item, "/outcome"),
            at(item, "/source"),
            details.join("; "),
        ]);
        table.paint_last(4);
    }
    Ok(Report::new(table.or("No event yet."), json!({ "items": items })))
}

/// Looks at the whole table.
pub(crate) async fn observe(api: &Api, project: ProjectCode, key: &AssetKey) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "assets", &key.to_string(), "observe"];
    let answer = api.send(&Request::post(&path)).await?;
    let mut table = Table::new(["KIND", "OUTCOME", "REASON"]);
    for outcome in answer.get("outcomes").and_then(Value::as_array).into_iter().flatten() {
        table.row([at(outcome, "/kind"), at(outcome, "/outcome"), at(outcome, "/reason")]);
        table.paint_last(1);
    }
    let text = format!("{}\n{}", table.or("Nothing new."), fields("  ", &state_rows(&answer)));
    Ok(Report::new(text, answer))
}

/// Accepts a rewrite.
pub(crate) async fn accept_rewrite(api: &Api, project: ProjectCode, key: &AssetKey) -> Result<Report, CliError> {
    let path = ["projects", &project.to_string(), "assets", &key.to_string(), "accept-rewrite"];
    let answer = api.send(&Request::post(&path)).await?;
    let text = format!("The rewrite of {key} is accepted.\n{}", fields("  ", &state_rows(&answer)));
    Ok(Report::new(text, answer))
}
