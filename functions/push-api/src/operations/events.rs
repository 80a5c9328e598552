//! Events: push, list, and what became of one.

use jiff::Timestamp;
use lakebell_aws::Measure;
use lakebell_domain::Invalid;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::{Event, EventKind};
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::inbox::{self, Accepted, Became, Content, Letter, MAX_LETTER, Progress};
use lakebell_engine::push;
use lakebell_engine::{ErrorKind, history};
use serde::Serialize;
use serde_json::Value;

use crate::answer::Answer;
use crate::auth;
use crate::body;
use crate::cloudevent::{self, Mode};
use crate::context::Context;
use crate::handler::Call;
use crate::list::{self, Listed, Page};
use crate::operations::assets::{self, Readings};
use crate::problem::{ApiError, Code};
use crate::routes::Needs;

/// The outcomes of kept events.
const OUTCOMES: [&str; 5] = ["advanced", "maintenance", "duplicate", "superseded", "ignored"];
/// Most events of a batch.
pub(crate) const MAX_BATCH: usize = 500;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    asset_key: &'a AssetKey,
    #[serde(flatten)]
    event: Event,
}

/// What became of one pushed event on its way into the store.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    event_id: Option<String>,
    status: &'static str,
    /// Under which what became of it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Whether the same event may be stored if it is sent again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) retryable: bool,
}

/// One event that could not be stored.
pub(super) struct Failed {
    pub(super) id: Option<String>,
    pub(super) error: ApiError,
}

/// What is known of one event of several: what to store, or why it is refused.
pub(super) type Taken = Result<(Option<String>, Letter), Failed>;

#[derive(Serialize)]
struct Batch {
    items: Vec<Item>,
}

impl Item {
    /// Whether the event is stored.
    pub(super) fn is_stored(&self) -> bool {
        self.status == "stored"
    }
}

impl From<Failed> for Item {
    fn from(Failed { id, error }: Failed) -> Self {
        Self {
            event_id: id,
            status: "refused",
            receipt: None,
            reason: Some(error.detail().to_owned()),
            code: Some(error.code().as_str()),
            field: error.field().map(str::to_owned),
            hint: error.hint_text().map(str::to_owned),
            retryable: error.is_retryable(),
        }
    }
}

/// `CloudEvents` in structured, batch or binary mode, and events of catalogs as they are.
pub(super) async fn push(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    // Who cannot set headers cannot say what it sends either.
    if !matches!(call.route.needs, Needs::PathToken(_)) {
        cloudevent::check_content_type(call.request)?;
    }
    let bytes = call.request.body()?;
    let document = match cloudevent::binary(call.request, &bytes)? {
        Some(event) => event,
        None => body::read_any(&bytes)?,
    };
    match (document, cloudevent::mode(call.request)) {
        (Value::Array(_), Mode::Single) => {
            Err(ApiError::invalid("body", "it is an array", "send batches as application/cloudevents-batch+json"))
        }
        (Value::Array(documents), _) => batch(call, project, documents).await,
        (_, Mode::Batch) => {
            Err(ApiError::invalid("body", "it is no array", "send one event as application/cloudevents+json"))
        }
        (document, _) => single(call, project, document).await,
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
    let letter = letter(call, project, document, "").inspect_err(|error| count_refused(call.context, error))?;
    match store(call, vec![Ok((Some(letter.id.clone()), letter))]).await.pop() {
        Some(Ok(item)) => Answer::with(202, &item),
        Some(Err(failed)) => Err(failed.error),
        None => Err(not_now()),
    }
}

async fn batch(call: &Call<'_>, project: ProjectCode, documents: Vec<Value>) -> Result<Answer, ApiError> {
    if documents.len() > MAX_BATCH {
        let detail = format!("the batch has {} events, more than {MAX_BATCH}", documents.len());
        return Err(ApiError::too_large(detail, MAX_BATCH));
    }
    let taken = documents.into_iter().enumerate().map(|(at, document)| {
        let id = cloudevent::id_of(&document).map(str::to_owned);
        match letter(call, project, document, &format!("[{at}]")) {
            Ok(letter) => Ok((Some(letter.id.clone()), letter)),
            Err(error) => Err(Failed { id, error }),
        }
    });
    let items = all_or_not_now(store(call, taken.collect()).await)?;
    Answer::ok(&Batch { items })
}

/// An event as it is stored: one of Lakebell's own kinds, of a catalog, or of Flink's listener.
fn letter(call: &Call<'_>, project: ProjectCode, document: Value, place: &str) -> Result<Letter, ApiError> {
    let ports = &call.context.ports;
    let within = |invalid: Invalid| if place.is_empty() { invalid } else { invalid.within(place) };
    let entry = cloudevent::foreign(&document).map(|entry| entry.map_err(|refusal| ApiError::from(within(refusal))));
    if let Some(entry) = entry {
        let entry = entry?;
        let named = (entry.source.clone(), entry.id.clone());
        return Ok(Letter::new(ports, Some(project), named, Content::Entry(Box::new(entry)), call.trace));
    }
    let pushed = cloudevent::parse(document, place)?;
    push::check(ports, &pushed).map_err(within)?;
    let named = (pushed.source.clone(), pushed.id.clone());
    Ok(Letter::new(ports, Some(project), named, Content::Event(Box::new(pushed)), call.trace))
}

/// Stores what is to be stored. The answers are in the order of what was taken.
pub(super) async fn store(call: &Call<'_>, taken: Vec<Taken>) -> Vec<Result<Item, Failed>> {
    let mut letters = Vec::with_capacity(taken.len());
    let mut results = Vec::with_capacity(taken.len());
    for one in taken {
        results.push(one.map(|(id, letter)| {
            letters.push(letter);
            id
        }));
    }
    let mut accepted = inbox::accept(&call.context.ports, letters, call.trace).await.into_iter();
    let answer = |id: Option<String>, accepted: Option<Accepted>| match accepted {
        Some(Accepted::Stored { receipt, is_new }) => {
            tracing::info!(receipt, eventId = id, isNew = is_new, "stored");
            Ok(Item { event_id: id, status: "stored", receipt: Some(receipt), ..Item::default() })
        }
        Some(Accepted::TooLarge { bytes }) => {
            let detail = format!("the event has {bytes} bytes as it would be stored");
            Err(Failed { id, error: ApiError::too_large(detail, MAX_LETTER) })
        }
        Some(Accepted::NotNow) | None => Err(Failed { id, error: not_now() }),
    };
    results
        .into_iter()
        .map(|one| one.and_then(|id| answer(id, accepted.next())))
        .inspect(|one| {
            if let Err(failed) = one
                && !failed.error.is_retryable()
            {
                count_refused(call.context, &failed.error);
            }
        })
        .collect()
}

/// A batch of which nothing could be stored for now is refused as a whole, which every client
/// repeats; any other one has an answer for each event.
pub(super) fn all_or_not_now(results: Vec<Result<Item, Failed>>) -> Result<Vec<Item>, ApiError> {
    let is_for_now = |result: &Result<Item, Failed>| result.as_ref().is_err_and(|failed| failed.error.is_retryable());
    if !results.is_empty() && results.iter().all(is_for_now) {
        return Err(not_now());
    }
    Ok(results.into_iter().map(|result| result.unwrap_or_else(Item::from)).collect())
}

pub(super) fn not_now() -> ApiError {
    let detail = "the event could not be stored";
    ApiError::new(Code::Engine(ErrorKind::Unavailable), detail).hint("send it again in a moment")
}

pub(super) fn count_refused(context: &Context, error: &ApiError) {
    context.metrics.count(Measure::EventInvalid { source_type: None, reason: error.code().as_str() }, &[]);
}

/// What became of a pushed event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    receipt: &'a str,
    event_id: &'a str,
    source: &'a str,
    received_at: Timestamp,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    outcomes: &'a [Became],
}

impl<'a> From<&'a Letter> for Outcome<'a> {
    fn from(letter: &'a Letter) -> Self {
        let (reason, body) = match &letter.content {
            Content::Quarantined { reason, body } => (Some(reason.as_str()), Some(body.as_str())),
            Content::Event(_) | Content::Entry(_) => (None, None),
        };
        let (status, outcomes) = match &letter.progress {
            _ if reason.is_some() => ("quarantined", &[][..]),
            Progress::Stored { .. } => ("stored", &[][..]),
            Progress::Settled { became, .. } => ("settled", became.as_slice()),
        };
        let Letter { receipt, id, source, received_at, .. } = letter;
        Self { receipt, event_id: id, source, received_at: *received_at, status, reason, body, outcomes }
    }
}

/// What became of an event, by its receipt, or by its own id and `source`.
pub(super) async fn outcome(call: &Call<'_>) -> Result<Answer, ApiError> {
    let project = call.project()?;
    let named = call.parameters.text("eventId");
    let receipt = match call.request.query.get("source") {
        Some(source) => inbox::receipt_of(Some(project), source, &named),
        None => named.clone(),
    };
    let found = inbox::find(&call.context.ports, &receipt).await?.map(|stored| stored.value);
    let visible = found.filter(|letter| letter.project.is_none() || letter.project == Some(project));
    let Some(letter) = visible else {
        let hint =
            "name it by the `receipt` of its answer, or by its own id and `?source=`; events are kept for 21 days";
        return Err(ApiError::not_found("eventId", "no such event was stored").hint(hint));
    };
    Answer::ok(&Outcome::from(&letter))
}

/// What was answered as if it were taken, and led to nothing.
pub(super) async fn quarantine(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (project, page) = (call.project()?, Page::of(&call.request.query)?);
    let after = page.history_after()?;
    let read = inbox::quarantined(&call.context.ports, Some(project), page.limit, after.as_deref()).await;
    let read = read.map_err(list::about_mark)?;
    let items: Vec<Outcome<'_>> = read.found.iter().map(Outcome::from).collect();
    Answer::ok(&Listed { items, next: list::history_next(read.next.as_deref()) })
}

pub(super) async fn list_of_asset(call: &Call<'_>) -> Result<Answer, ApiError> {
    let page = Page::of(&call.request.query)?;
    let Some(text) = call.request.query.get("assetKey") else {
        let hint = "name the asset as `?assetKey=paimon%3A%2F%2Fods_db%2Forders`";
        return Err(ApiError::invalid("assetKey", "it is missing", hint));
    };
    let asset = assets::named(call, text, Readings::All).await?;
    let query = &call.request.query;
    let kind = list::word(query, "kind", &EventKind::ALL, EventKind::as_str)?;
    let outcome = list::word(query, "outcome", &OUTCOMES, |word| word)?;
    let admits = |event: &Event| {
        kind.is_none_or(|kind| event.kind == kind) && outcome.is_none_or(|word| event.outcome.as_str() == word)
    };
    let ports = &call.context.ports;
    let (id, head) = (asset.id, &asset.head.value);
    let read = |limit: usize, after: Option<String>| -> list::Reading<'_, _> {
        Box::pin(async move { history::own_events(ports, id, head, limit, after.as_deref()).await })
    };
    let Listed { items, next } = list::filtered(&page, read, admits).await?;
    let key = &asset.head.value.key;
    let items = items.into_iter().map(|event| Shown { asset_key: key, event }).collect();
    Answer::ok(&Listed { items, next })
}
