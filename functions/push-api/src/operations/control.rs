//! What an operator does to a target beside pausing it, and the switches.

use lakebell_domain::asset::AssetKey;
use lakebell_domain::evaluation::SwitchedOff;
use lakebell_domain::ids::{ProjectCode, TriggerKey};
use lakebell_domain::target::TargetSpec;
use lakebell_engine::evaluate::Evaluated;
use lakebell_engine::{operate, replay};
use lakebell_lambda::report_evaluated;
use serde::{Deserialize, Serialize};

use super::assets::{self, Readings};
use super::operate::{OperatedTarget, by, declared, plain};
use crate::answer::Answer;
use crate::body;
use crate::handler::Call;
use crate::operations::triggers::Shown;
use crate::problem::ApiError;

/// Longest request id.
const MAX_REQUEST_ID: usize = 128;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fired {
    request_id: String,
    #[serde(default)]
    by: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PassedOver {
    #[serde(default)]
    asset_key: Option<AssetKey>,
    #[serde(default)]
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Switched {
    on: bool,
    #[serde(default)]
    by: Option<String>,
}

/// A switch as it stands.
#[derive(Debug, Serialize)]
struct ShownSwitch {
    /// `global`, or a project code.
    scope: String,
    on: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<SwitchedOff>,
}

/// Starts the target now with what is there.
pub(super) async fn fire(call: &Call<'_>) -> Result<Answer, ApiError> {
    call.project()?;
    let Fired { request_id, by: given } = body::read(&call.request.body()?)?;
    let by = by(call, given)?;
    let is_id = !request_id.is_empty()
        && request_id.len() <= MAX_REQUEST_ID
        && request_id.bytes().all(|b| b.is_ascii_graphic());
    if !is_id {
        let hint = format!("use 1 to {MAX_REQUEST_ID} visible ASCII characters; the same id again is the same start");
        return Err(ApiError::invalid("requestId", "it is no request id", hint));
    }
    let target = declared(call).await?.target;
    let trigger = operate::fire(&call.context.ports, &target, &request_id, call.trace).await?.value;
    tracing::info!(%target, triggerKey = %trigger.key, by, "target fired by hand");
    Answer::ok(&Shown::from(trigger))
}

/// Begins the target anew.
pub(super) async fn reset(call: &Call<'_>) -> Result<Answer, ApiError> {
    let by = by(call, plain(call)?.by)?;
    let target = declared(call).await?.target;
    let evaluated = operate::reset(&call.context.ports, &target, call.trace).await?;
    tracing::info!(%target, by, "target reset");
    answer(call, evaluated).await
}

/// Counts what is there as taken.
pub(super) async fn pass_over(call: &Call<'_>) -> Result<Answer, ApiError> {
    call.project()?;
    let bytes = call.request.body()?;
    let passed: PassedOver =
        if bytes.iter().all(u8::is_ascii_whitespace) { PassedOver::default() } else { body::read(&bytes)? };
    let by = by(call, passed.by)?;
    let target = declared(call).await?.target;
    let ports = &call.context.ports;
    let asset = match &passed.asset_key {
        Some(key) => Some(assets::named(call, &key.to_string(), Readings::First).await?.id),
        None => None,
    };
    let evaluated = operate::pass_over(ports, &target, asset, call.trace).await?;
    let asset = passed.asset_key.as_ref().map(tracing::field::display);
    tracing::info!(%target, assetKey = asset, by, "versions passed over");
    answer(call, evaluated).await
}

async fn answer(call: &Call<'_>, evaluated: Option<Evaluated>) -> Result<Answer, ApiError> {
    report_evaluated(&call.context.metrics, evaluated.as_slice());
    let claimed: Option<TriggerKey> = evaluated.and_then(|evaluated| evaluated.claimed);
    Answer::ok(&OperatedTarget { explained: declared(call).await?, claimed })
}

pub(super) async fn read_project_switch(call: &Call<'_>) -> Result<Answer, ApiError> {
    show(call, Some(call.project()?)).await
}

pub(super) async fn read_global_switch(call: &Call<'_>) -> Result<Answer, ApiError> {
    show(call, None).await
}

pub(super) async fn set_project_switch(call: &Call<'_>) -> Result<Answer, ApiError> {
    set(call, Some(call.project()?)).await
}

pub(super) async fn set_global_switch(call: &Call<'_>) -> Result<Answer, ApiError> {
    set(call, None).await
}

async fn show(call: &Call<'_>, project: Option<ProjectCode>) -> Result<Answer, ApiError> {
    let switch = operate::switched(&call.context.ports, project).await?;
    Answer::ok(&shown(project, switch.off))
}

async fn set(call: &Call<'_>, project: Option<ProjectCode>) -> Result<Answer, ApiError> {
    let Switched { on, by: given } = body::read(&call.request.body()?)?;
    let by = by(call, given)?;
    let switch = operate::switch(&call.context.ports, project, on, &by, call.trace).await?;
    let scope = shown(project, switch.off);
    tracing::warn!(scope = scope.scope, on = scope.on, by, "starting switched");
    Answer::ok(&scope)
}

fn shown(project: Option<ProjectCode>, off: Option<SwitchedOff>) -> ShownSwitch {
    let scope = project.map_or_else(|| "global".to_owned(), |project| project.to_string());
    ShownSwitch { scope, on: off.is_none(), off }
}

/// When the declared target would have started, by the recorded history of its assets.
pub(super) async fn replay_declared(call: &Call<'_>) -> Result<Answer, ApiError> {
    let target = declared(call).await?.target;
    Answer::ok(&replay::of_declared(&call.context.ports, &target).await?)
}

/// The same for a target that is not declared.
pub(super) async fn replay_spec(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let spec: TargetSpec = body::read(&call.request.body()?)?;
    spec.check()?;
    Answer::ok(&replay::of_spec(&call.context.ports, project, &spec).await?)
}
