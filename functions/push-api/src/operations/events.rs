//! Events: push and list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lakebell_aws::Measure;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::{Event, Outcome};
use lakebell_domain::ids::{ProjectCode, TraceId};
use lakebell_engine::push::{self, Accepted, Named, Pushed, Receipt};
use lakebell_engine::{ErrorKind, history};
use lakebell_lambda::{report_evaluated, report_loops};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::answer::Answer;
use crate::context::Context;
use crate::handler::Call;
use crate::list::{self, Listed, Page};
use crate::operations::assets::{self, Readings};
use crate::problem::{ApiError, Code};
use crate::{auth, body, cloudevent};

/// Most events of a batch.
pub(crate) const MAX_BATCH: usize = 500;
/// Assets of a batch that are looked at side by side.
const SIDE_BY_SIDE: usize = 8;
/// How long a batch may take until what is left is refused for now: the gateway waits 29 s and
/// the function runs 25 s at most.
const BATCH_BUDGET: Duration = Duration::from_secs(18);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    asset_key: &'a AssetKey,
    #[serde(flatten)]
    event: Event,
}

/// What became of one pushed event.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    event_id: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Whether the same event may be stored if it is sent again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retryable: bool,
}

/// One event that could not be stored.
struct Failed {
    id: Option<String>,
    error: ApiError,
}

#[derive(Serialize)]
struct Batch {
    items: Vec<Item>,
}

/// An event of a batch with its place.
type Placed = (usize, Pushed);

pub(super) async fn push(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    match body::read_any(&call.request.body()?)? {
        Value::Array(documents) => batch(call, project, documents).await,
        document => single(call, project, document).await,
    }
}

/// The same by a token in the path. `CloudEvents` has an answer for a token that is stale.
pub(super) async fn push_by_path(call: &Call<'_>) -> Result<Answer, ApiError> {
    match call.caller.stale() {
        None => push(call).await,
        Some(_) => Err(auth::unauthenticated()),
    }
}

async fn single(call: &Call<'_>, project: ProjectCode, document: Value) -> Result<Answer, ApiError> {
    let pushed = cloudevent::parse(document, "").inspect_err(|error| count_refused(call.context, None, error))?;
    let item = store(call.context, project, &pushed, call.trace).await?;
    Answer::with(202, &item)
}

async fn batch(call: &Call<'_>, project: ProjectCode, documents: Vec<Value>) -> Result<Answer, ApiError> {
    if documents.len() > MAX_BATCH {
        let detail = format!("the batch has {} events, more than {MAX_BATCH}", documents.len());
        return Err(ApiError::too_large(detail, MAX_BATCH));
    }
    let mut results: BTreeMap<usize, Result<Item, Failed>> = BTreeMap::new();
    // Events of one asset stay in their order; assets go side by side.
    let mut by_asset: BTreeMap<String, Vec<Placed>> = BTreeMap::new();
    for (at, document) in documents.into_iter().enumerate() {
        let id = cloudevent::id_of(&document).map(str::to_owned);
        match cloudevent::parse(document, &format!("[{at}]")) {
            Ok(pushed) => by_asset.entry(name_of(&pushed)).or_default().push((at, pushed)),
            Err(error) => {
                count_refused(call.context, None, &error);
                results.insert(at, Err(Failed { id, error }));
            }
        }
    }
    for (at, result) in store_all(call, project, by_asset).await? {
        results.insert(at, result);
    }
    answer(results.into_values().collect())
}

/// A batch of which nothing could be stored for now is refused as a whole, which every client
/// repeats; any other one has an answer for each event.
fn answer(results: Vec<Result<Item, Failed>>) -> Result<Answer, ApiError> {
    let is_for_now = |result: &Result<Item, Failed>| result.as_ref().is_err_and(|failed| failed.error.is_retryable());
    if !results.is_empty() && results.iter().all(is_for_now) {
        let first = results.into_iter().next().and_then(Result::err).map(|failed| failed.error);
        return Err(first.unwrap_or_else(out_of_time));
    }
    let items = results.into_iter().map(|result| result.unwrap_or_else(Item::from)).collect();
    Answer::ok(&Batch { items })
}

impl From<Failed> for Item {
    fn from(Failed { id, error }: Failed) -> Self {
        Self {
            event_id: id,
            status: "refused",
            outcome: None,
            reason: Some(error.detail().to_owned()),
            code: Some(error.code().as_str()),
            field: error.field().map(str::to_owned),
            hint: error.hint_text().map(str::to_owned),
            retryable: error.is_retryable(),
        }
    }
}

fn name_of(pushed: &Pushed) -> String {
    match &pushed.asset {
        Named::Key(key) => key.to_string(),
        Named::Location(location) => location.to_string(),
    }
}

async fn store_all(
    call: &Call<'_>,
    project: ProjectCode,
    by_asset: BTreeMap<String, Vec<Placed>>,
) -> Result<Vec<(usize, Result<Item, Failed>)>, ApiError> {
    let slots = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let deadline = call.began + BATCH_BUDGET;
    let mut tasks = JoinSet::new();
    for events in by_asset.into_values() {
        let (context, slots, trace) = (call.context.clone(), Arc::clone(&slots), call.trace.clone());
        let task = async move {
            // The semaphore is never closed; without a slot there is only no bound.
            let _slot = slots.acquire().await.ok();
            store_in_order(&context, project, events, &trace, deadline).await
        };
        tasks.spawn(task.in_current_span());
    }
    let mut stored = Vec::new();
    while let Some(done) = tasks.join_next().await {
        stored.extend(done.map_err(|_| ApiError::new(Code::Engine(ErrorKind::Defect), "a task was aborted"))?);
    }
    Ok(stored)
}

async fn store_in_order(
    context: &Context,
    project: ProjectCode,
    events: Vec<Placed>,
    trace: &TraceId,
    deadline: Instant,
) -> Vec<(usize, Result<Item, Failed>)> {
    let mut stored = Vec::with_capacity(events.len());
    for (at, pushed) in events {
        let result = if Instant::now() < deadline {
            store(context, project, &pushed, trace).await.map_err(|error| match error.field().map(str::to_owned) {
                Some(field) => error.at(format!("[{at}].{field}")),
                None => error,
            })
        } else {
            Err(out_of_time())
        };
        stored.push((at, result.map_err(|error| Failed { id: Some(pushed.id), error })));
    }
    stored
}

fn out_of_time() -> ApiError {
    let detail = "there was no time left for this event";
    ApiError::new(Code::Engine(ErrorKind::Unavailable), detail).hint("send it again, in a smaller batch")
}

/// Stores one event about an asset of the project, or of none: one line in the log, and its metrics.
async fn store(context: &Context, project: ProjectCode, pushed: &Pushed, trace: &TraceId) -> Result<Item, ApiError> {
    let (format, name) = (cloudevent::format_of(pushed), name_of(pushed));
    let about = [("assetKey", name.as_str())];
    context.metrics.count(Measure::EventReceived { source_type: format }, &about);
    let pushed_from = Box::pin(push::push_from(&context.ports, project, pushed, trace)).await;
    let Accepted { receipt, evaluated, loops } = match pushed_from {
        Ok(accepted) => accepted,
        Err(error) => {
            let error = ApiError::from(error);
            if !error.is_retryable() {
                count_refused(context, Some(pushed), &error);
            }
            return Err(error);
        }
    };
    let mut item = Item { event_id: Some(pushed.id.clone()), status: "stored", ..Item::default() };
    match receipt {
        Receipt::Looked(outcome) => {
            item.outcome = Some(outcome.as_str());
            match &outcome {
                Outcome::Duplicate => {
                    context.metrics.count(Measure::EventDeduplicated { source_type: format }, &about);
                }
                Outcome::Advanced | Outcome::Maintenance => {
                    let measure = Measure::StateUpdated { source_type: format, outcome: outcome.as_str() };
                    context.metrics.count(measure, &about);
                }
                Outcome::Superseded => {}
                Outcome::Ignored(reason) => item.reason = Some(reason.clone()),
            }
        }
        Receipt::UnknownAsset => {
            let code = Code::UnknownAsset.as_str();
            context.metrics.count(Measure::EventInvalid { source_type: Some(format), reason: code }, &about);
            item.status = "refused";
            item.code = Some(code);
            item.reason = Some("no asset is registered under this key or at this location".to_owned());
            item.hint = Some("register the asset, or a warehouse that it lies in, and send the event again".to_owned());
        }
    }
    let event_type = pushed.kind.as_str();
    tracing::info!(
        assetKey = name,
        eventType = event_type,
        eventId = pushed.id,
        snapshotId = pushed.facts.snapshot_id,
        status = item.status,
        outcome = item.outcome,
        "pushed"
    );
    report_evaluated(&context.metrics, &evaluated);
    report_loops(&context.metrics, &loops);
    Ok(item)
}

fn count_refused(context: &Context, pushed: Option<&Pushed>, error: &ApiError) {
    let source_type = pushed.map(cloudevent::format_of);
    context.metrics.count(Measure::EventInvalid { source_type, reason: error.code().as_str() }, &[]);
}

pub(super) async fn list_of_asset(call: &Call<'_>) -> Result<Answer, ApiError> {
    let page = Page::of(&call.request.query)?;
    let Some(text) = call.request.query.get("assetKey") else {
        let hint = "name the asset as `?assetKey=paimon%3A%2F%2Fods_db%2Forders`";
        return Err(ApiError::invalid("assetKey", "it is missing", hint));
    };
    let asset = assets::named(call, text, Readings::All).await?;
    let after = page.history_after()?;
    let read = history::events(&call.context.ports, asset.id, page.limit, after.as_deref()).await;
    let read = read.map_err(list::about_mark)?;
    let key = &asset.head.value.key;
    let items = read.found.into_iter().map(|event| Shown { asset_key: key, event }).collect();
    Answer::ok(&Listed { items, next: list::history_next(read.next.as_deref()) })
}
