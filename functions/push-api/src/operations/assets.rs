//! Assets: register, list, read, look, delete.

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Format, Location, WrittenKey};
use lakebell_domain::event::{EventKind, Outcome, Source};
use lakebell_domain::ids::{AssetId, ProjectCode};
use lakebell_domain::state::{AssetState, Trouble};
use lakebell_domain::version::Version;
use lakebell_engine::EngineError;
use lakebell_engine::asset_settings::AssetSettings;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::evaluate;
use lakebell_engine::history::{self, Withdrawn};
use lakebell_engine::observe::{self, Hint, Look, Observed};
use lakebell_engine::records::AssetHead;
use lakebell_engine::store::Stored;
use lakebell_lambda::report_evaluated;
use serde::Serialize;

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::list::{self, Page};
use crate::path;
use crate::problem::{ApiError, Code};

/// An asset that a path or a query names.
pub(super) struct Named {
    /// Its id.
    pub(super) id: AssetId,
    /// Its head.
    pub(super) head: Stored<AssetHead>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Registered<'a> {
    id: AssetId,
    key: &'a AssetKey,
    location: &'a Location,
    is_new: bool,
    settings: &'a AssetSettings,
    state: &'a AssetState,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StateOf<'a> {
    id: AssetId,
    key: &'a AssetKey,
    project: ProjectCode,
    location: &'a Location,
    registered_at: Timestamp,
    rev: u64,
    settings: &'a AssetSettings,
    state: &'a AssetState,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    id: AssetId,
    key: &'a AssetKey,
    project: ProjectCode,
    location: &'a Location,
    registered_at: Timestamp,
    rev: u64,
    settings: &'a AssetSettings,
    /// Its newest version.
    table: Option<&'a Version>,
    /// Why the last read failed, where it did.
    trouble: Option<&'a Trouble>,
}

#[derive(Serialize)]
struct Found<'a> {
    kind: EventKind,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

#[derive(Serialize)]
struct Looked<'a> {
    outcomes: Vec<Found<'a>>,
    state: &'a AssetState,
}

#[derive(Serialize)]
struct Accepted<'a> {
    state: &'a AssetState,
    /// What the rewrite had withdrawn, as it stood before it was accepted.
    withdrawn: Withdrawn,
}

pub(super) async fn register(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let spec: AssetSpec<WrittenKey> = body::read(&call.request.body()?)?;
    let registration = assets::register_written(&call.context.ports, project, spec, call.trace).await;
    let registration = registration.map_err(|error| match error.about(assets::GRANT) {
        // What is taken, and whose it is, is not said.
        Some(_) => {
            ApiError::new(Code::GrantRequested, "the key or the location is taken; its owner was asked for a grant")
                .hint("wait until the owner gives it, and register again")
        }
        None => error.into(),
    })?;
    let head = &registration.observed.head.value;
    tracing::info!(assetKey = %head.key, new = registration.is_new, "registered");
    let answer = Registered {
        id: registration.id,
        key: &head.key,
        location: &head.location,
        is_new: registration.is_new,
        settings: &head.settings,
        state: &head.state,
    };
    Answer::with(if registration.is_new { 201 } else { 200 }, &answer)
}

pub(super) async fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (project, page) = (call.project()?, Page::of(&call.request.query)?);
    let mut all = assets::list(&call.context.ports, None).await?;
    let format = format(call)?;
    let prefix = call.request.query.get("prefix").map_or("", String::as_str);
    all.retain(|asset| {
        let is_of_format = format.is_none_or(|format| asset.key.format() == format);
        asset.is_visible_to(project) && is_of_format && asset.key.to_string().starts_with(prefix)
    });
    Answer::ok(&page.cut(all, |asset| asset.key.to_string())?)
}

/// The format that a list is to be of.
fn format(call: &Call<'_>) -> Result<Option<Format>, ApiError> {
    list::word(&call.request.query, "format", &Format::ALL, Format::as_str)
}

/// An asset without its registers.
pub(super) async fn read(call: &Call<'_>) -> Result<Answer, ApiError> {
    let Named { id, head } = named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let AssetHead { key, project, location, registered_at, settings, state, .. } = &head.value;
    let (project, registered_at, rev) = (*project, *registered_at, head.rev);
    let (table, trouble) = (state.table.as_ref(), state.trouble.as_ref());
    Answer::ok(&Shown { id, key, project, location, registered_at, rev, settings, table, trouble })
}

pub(super) async fn state(call: &Call<'_>) -> Result<Answer, ApiError> {
    let Named { id, head } = named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let AssetHead { key, project, location, registered_at, settings, state, .. } = &head.value;
    let (project, registered_at, rev) = (*project, *registered_at, head.rev);
    Answer::ok(&StateOf { id, key, project, location, registered_at, rev, settings, state })
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = own(call, call.parameters.raw("assetKey"), Readings::First).await?;
    assets::deregister(&call.context.ports, &asset.head.value.key).await?;
    tracing::info!(assetKey = %asset.head.value.key, "deregistered");
    Ok(Answer::empty())
}

pub(super) async fn look(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = own(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let hint = Hint { asset: asset.id, look: Look::Whole, source: Source::Poll, trace: call.trace.clone() };
    let observed = observe::observe(&call.context.ports, &hint).await?;
    let evaluated = evaluate::evaluate_dependents(&call.context.ports, &observed, call.trace).await?;
    report_evaluated(&call.context.metrics, &evaluated);
    Answer::ok(&Looked { outcomes: outcomes(&observed), state: &observed.head.value.state })
}

pub(super) async fn accept_rewrite(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = own(call, call.parameters.raw("assetKey"), Readings::First).await?;
    let withdrawn = history::withdrawn(&call.context.ports, asset.id, call.caller.project()).await?;
    let observed = observe::accept_rewrite(&call.context.ports, asset.id, call.trace).await?;
    let evaluated = evaluate::evaluate_dependents(&call.context.ports, &observed, call.trace).await?;
    report_evaluated(&call.context.metrics, &evaluated);
    tracing::info!(assetKey = %asset.head.value.key, "rewrite accepted");
    Answer::ok(&Accepted { state: &observed.head.value.state, withdrawn })
}

/// The triggers that took versions which a held rewrite withdrew: those of the caller's project. Of other
/// projects, whose targets depend on the asset by grant, only the number is told.
pub(super) async fn withdrawn(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    Answer::ok(&history::withdrawn(&call.context.ports, asset.id, call.caller.project()).await?)
}

pub(super) async fn unregistered(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (project, page) = (call.project()?, Page::of(&call.request.query)?);
    let mut all = assets::list_unregistered(&call.context.ports, Some(project)).await?;
    let format = format(call)?;
    all.retain(|seen| format.is_none_or(|format| seen.format == Some(format)));
    Answer::ok(&page.cut(all, |seen| seen.location.clone())?)
}

fn outcomes(observed: &Observed) -> Vec<Found<'_>> {
    observed.outcomes.iter().map(|(kind, outcome)| Found { kind: *kind, outcome }).collect()
}

/// Which readings of a segment count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readings {
    /// The first one that is registered.
    All,
    /// Only the most likely one: what takes something away must not guess.
    First,
}

/// The registered asset of this project that a segment or a value names.
///
/// Errors: `Invalid` where it is no key; `NotFound`, naming the most likely key and the nearest
/// registered ones.
pub(super) async fn named(call: &Call<'_>, segment: &str, readings: Readings) -> Result<Named, ApiError> {
    let project = call.project()?;
    let ports = &call.context.ports;
    let keys = path::candidates(segment)?;
    let most = if readings == Readings::First { 1 } else { keys.len() };
    for key in keys.iter().take(most) {
        let Some(id) = assets::lookup(ports, key).await? else { continue };
        let head = assets::head(ports, id).await?;
        if head.value.deregistered_at.is_none() && head.value.is_visible_to(project) {
            return Ok(Named { id, head });
        }
    }
    let Some(key) = keys.first() else {
        return Err(Invalid::new("assetKey", "it is empty", "name an asset").into());
    };
    Err(unknown(call, project, key).await?)
}

/// The asset of this project, or of none, that a segment names.
///
/// Errors: those of [`named`]; 403 where it is another project's by grant.
pub(super) async fn own(call: &Call<'_>, segment: &str, readings: Readings) -> Result<Named, ApiError> {
    let asset = named(call, segment, readings).await?;
    if asset.head.value.is_own_of(call.project()?) {
        return Ok(asset);
    }
    let error = ApiError::new(Code::Forbidden, "the asset is another project's, which granted reading it");
    Err(error.at("assetKey").hint("ask its owner to do it"))
}

async fn unknown(call: &Call<'_>, project: ProjectCode, key: &AssetKey) -> Result<ApiError, EngineError> {
    let nearest = assets::nearest(&call.context.ports, project, key).await?;
    let names: Vec<String> = nearest.iter().map(ToString::to_string).collect();
    let hint = if names.is_empty() {
        "no asset is registered yet".to_owned()
    } else {
        format!("the nearest registered ones are {}", names.join(", "))
    };
    Ok(ApiError::not_found("assetKey", format!("{key} is not registered in project {project}")).hint(hint))
}
