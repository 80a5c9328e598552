//! Assets: register, list, read, look, delete.

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::event::{EventKind, Outcome, Source};
use lakebell_domain::ids::{AssetId, ProjectCode};
use lakebell_domain::state::AssetState;
use lakebell_engine::asset_settings::AssetSettings;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::evaluate;
use lakebell_engine::history::{self, Withdrawn};
use lakebell_engine::observe::{self, Hint, Look, Observed};
use lakebell_engine::records::AssetHead;
use lakebell_engine::store::Stored;
use lakebell_engine::{EngineError, ErrorKind};
use lakebell_lambda::report_evaluated;
use serde::Serialize;

use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::list::Page;
use crate::path;
use crate::problem::{ApiError, Code};

/// The owner of assets that a warehouse without a project brought: every project sees them.
const NO_PROJECT: ProjectCode = ProjectCode(0);

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
    let spec: AssetSpec = body::read(&call.request.body()?)?;
    let registration = assets::register(&call.context.ports, project, &spec, call.trace).await?;
    let head = &registration.observed.head.value;
    if !is_visible(head, project) {
        // Whose it is is not said.
        let detail = format!("{} is registered by another project", spec.key);
        return Err(ApiError::new(Code::Engine(ErrorKind::Conflict), detail));
    }
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
    all.retain(|asset| asset.project == project || asset.project == NO_PROJECT);
    Answer::ok(&page.cut(all, |asset| asset.key.to_string())?)
}

pub(super) async fn state(call: &Call<'_>) -> Result<Answer, ApiError> {
    let Named { id, head } = named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let AssetHead { key, project, location, registered_at, settings, state, .. } = &head.value;
    let (project, registered_at, rev) = (*project, *registered_at, head.rev);
    Answer::ok(&StateOf { id, key, project, location, registered_at, rev, settings, state })
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = named(call, call.parameters.raw("assetKey"), Readings::First).await?;
    assets::deregister(&call.context.ports, &asset.head.value.key).await?;
    tracing::info!(assetKey = %asset.head.value.key, "deregistered");
    Ok(Answer::empty())
}

pub(super) async fn look(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    let hint = Hint { asset: asset.id, look: Look::Whole, source: Source::Poll, trace: call.trace.clone() };
    let observed = observe::observe(&call.context.ports, &hint).await?;
    let evaluated = evaluate::evaluate_dependents(&call.context.ports, &observed, call.trace).await?;
    report_evaluated(&call.context.metrics, &evaluated);
    Answer::ok(&Looked { outcomes: outcomes(&observed), state: &observed.head.value.state })
}

pub(super) async fn accept_rewrite(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = named(call, call.parameters.raw("assetKey"), Readings::First).await?;
    let withdrawn = history::withdrawn(&call.context.ports, asset.id).await?;
    let observed = observe::accept_rewrite(&call.context.ports, asset.id, call.trace).await?;
    let evaluated = evaluate::evaluate_dependents(&call.context.ports, &observed, call.trace).await?;
    report_evaluated(&call.context.metrics, &evaluated);
    tracing::info!(assetKey = %asset.head.value.key, "rewrite accepted");
    Answer::ok(&Accepted { state: &observed.head.value.state, withdrawn })
}

/// The triggers that took versions which a held rewrite withdrew.
pub(super) async fn withdrawn(call: &Call<'_>) -> Result<Answer, ApiError> {
    let asset = named(call, call.parameters.raw("assetKey"), Readings::All).await?;
    Answer::ok(&history::withdrawn(&call.context.ports, asset.id).await?)
}

pub(super) async fn unregistered(call: &Call<'_>) -> Result<Answer, ApiError> {
    call.project()?;
    let page = Page::of(&call.request.query)?;
    let all = assets::list_unregistered(&call.context.ports).await?;
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
        if head.value.deregistered_at.is_none() && is_visible(&head.value, project) {
            return Ok(Named { id, head });
        }
    }
    let Some(key) = keys.first() else {
        return Err(Invalid::new("assetKey", "it is empty", "name an asset").into());
    };
    Err(unknown(call, project, key).await?)
}

fn is_visible(head: &AssetHead, project: ProjectCode) -> bool {
    head.project == project || head.project == NO_PROJECT
}

async fn unknown(call: &Call<'_>, project: ProjectCode, key: &AssetKey) -> Result<ApiError, EngineError> {
    let nearest = assets::nearest(&call.context.ports, key).await?;
    let names: Vec<String> = nearest.iter().map(ToString::to_string).collect();
    let hint = if names.is_empty() {
        "no asset is registered yet".to_owned()
    } else {
        format!("the nearest registered ones are {}", names.join(", "))
    };
    Ok(ApiError::not_found("assetKey", format!("{key} is not registered in project {project}")).hint(hint))
}
