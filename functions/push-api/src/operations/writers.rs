//! What writers send in forms of their own: OpenLineage, callbacks of Paimon, Hudi and Iceberg, and results
//! of quality tools. Each has the answer that its sender takes for success, and says it only once what was
//! sent is stored.

use lakebell_decoders::quality::Tool;
use lakebell_decoders::{Entry, digest, hooks, openlineage, quality};
use lakebell_domain::Invalid;
use lakebell_engine::inbox::{self, Accepted, Content, Letter, MAX_KEPT_BODY};
use serde::Serialize;

use super::events::{self, Failed, Item, Taken};
use crate::answer::Answer;
use crate::handler::Call;
use crate::problem::ApiError;

/// What Paimon's `http-report` takes for success; anything else fails the writer's commit.
const SUCCESS: Answered = Answered { result: "SUCCESS" };

#[derive(Serialize)]
struct Answered {
    result: &'static str,
}

fn letter(call: &Call<'_>, entry: Entry) -> Letter {
    let named = (entry.source.clone(), entry.id.clone());
    Letter::new(&call.context.ports, call.writer(), named, Content::Entry(Box::new(entry)), call.trace)
}

fn taken(call: &Call<'_>, entry: Result<Entry, Invalid>) -> Taken {
    match entry {
        Ok(entry) => Ok((Some(entry.id.clone()), letter(call, entry))),
        Err(refusal) => Err(Failed { id: None, error: refusal.into() }),
    }
}

/// Stores one; a status for success.
async fn one(call: &Call<'_>, entry: Result<Entry, Invalid>, status: u16) -> Result<Answer, ApiError> {
    match events::store(call, vec![taken(call, entry)]).await.pop() {
        Some(Ok(item)) => Answer::with(status, &item),
        Some(Err(failed)) => Err(failed.error),
        None => Err(events::not_now()),
    }
}

/// One event of OpenLineage: 201, as its clients know it.
pub(super) async fn lineage(call: &Call<'_>) -> Result<Answer, ApiError> {
    one(call, openlineage::decode(&call.request.body()?), 201).await
}

/// The summary of a batch, in the form of OpenLineage's API description.
#[derive(Serialize)]
struct Batch {
    status: &'static str,
    summary: Summary,
    failed_events: Vec<FailedEvent>,
    items: Vec<Item>,
}

#[derive(Serialize)]
struct Summary {
    received: usize,
    successful: usize,
    failed: usize,
}

#[derive(Serialize)]
struct FailedEvent {
    index: usize,
    reason: String,
    retriable: bool,
}

/// A batch of events of OpenLineage: each succeeds or is refused by itself.
pub(super) async fn lineage_batch(call: &Call<'_>) -> Result<Answer, ApiError> {
    let entries = openlineage::decode_batch(&call.request.body()?)?;
    let within = |at: usize| move |refusal: Invalid| refusal.within(&format!("[{at}]"));
    let entries = entries.into_iter().enumerate().map(|(at, entry)| taken(call, entry.map_err(within(at))));
    let items = events::all_or_not_now(events::store(call, entries.collect()).await)?;
    let of_item = |(index, item): (usize, &Item)| {
        let reason = item.reason.clone().unwrap_or_default();
        (!item.is_stored()).then_some(FailedEvent { index, reason, retriable: item.retryable })
    };
    let failed_events: Vec<FailedEvent> = items.iter().enumerate().filter_map(of_item).collect();
    let summary =
        Summary { received: items.len(), successful: items.len() - failed_events.len(), failed: failed_events.len() };
    let status = match (summary.failed, summary.successful) {
        (0, _) => "success",
        (_, 0) => "failure",
        _ => "partial_success",
    };
    Answer::ok(&Batch { status, summary, failed_events, items })
}

/// A partition that Paimon has marked done.
///
/// Whatever is wrong with what was sent, the answer is SUCCESS once it is stored: anything else would
/// fail the commit of the writer's job. A stale token or a body that cannot be read is quarantined.
///
/// Errors: 503 where nothing could be stored, which Paimon tries again five times.
pub(super) async fn paimon(call: &Call<'_>) -> Result<Answer, ApiError> {
    hook(call, "paimon:http-report", hooks::paimon_mark_done).await
}

/// A commit that Hudi tells of. Its writer only logs what is no success; it is answered alike.
pub(super) async fn hudi(call: &Call<'_>) -> Result<Answer, ApiError> {
    hook(call, "hudi:commit-callback", hooks::hudi_commit).await
}

/// A commit that an Iceberg client tells of in a metrics report.
pub(super) async fn iceberg(call: &Call<'_>) -> Result<Answer, ApiError> {
    hook(call, "iceberg:metrics-report", hooks::iceberg_metrics).await
}

async fn hook(
    call: &Call<'_>,
    source: &'static str,
    decode: fn(&[u8]) -> Result<Entry, Invalid>,
) -> Result<Answer, ApiError> {
    let (body, read) = match call.request.body() {
        Ok(body) => {
            let read = decode(&body);
            (body, read.map_err(|refusal| format!("{}: {}", refusal.field, refusal.problem)))
        }
        Err(error) => (Vec::new(), Err(error.detail().to_owned())),
    };
    let stale = call.caller.stale().map(|because| format!("the token is not good any more: {}", because.as_str()));
    let letter = match (stale, read) {
        (None, Ok(mut entry)) => {
            // None of these has a time of its own that tells a partition that was opened and done again.
            let day = call.context.ports.clock.now().strftime("%Y%m%d");
            entry.id = format!("{}.{day}", entry.id);
            letter(call, entry)
        }
        (Some(reason), _) | (None, Err(reason)) => quarantined(call, source, reason, &body),
    };
    match inbox::accept(&call.context.ports, vec![letter], call.trace).await.pop() {
        Some(Accepted::Stored { receipt, .. }) => {
            tracing::info!(receipt, source, "stored");
            Answer::ok(&SUCCESS)
        }
        // It cannot become smaller: its writer is not to suffer from it.
        Some(Accepted::TooLarge { bytes }) => {
            let letter = quarantined(call, source, format!("it has {bytes} bytes as it would be stored"), &[]);
            match inbox::accept(&call.context.ports, vec![letter], call.trace).await.pop() {
                Some(Accepted::Stored { .. }) => Answer::ok(&SUCCESS),
                _ => Err(events::not_now()),
            }
        }
        Some(Accepted::NotNow) | None => Err(events::not_now()),
    }
}

/// What is kept for a person and leads to nothing. The same again is the same letter.
fn quarantined(call: &Call<'_>, source: &str, reason: String, body: &[u8]) -> Letter {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_KEPT_BODY)]).into_owned();
    let id = digest(&[&reason, &text, &body.len().to_string()]);
    let error = ApiError::invalid("body", reason.clone(), "");
    events::count_refused(call.context, &error);
    let content = Content::Quarantined { reason, body: text };
    Letter::new(&call.context.ports, call.writer(), (source.to_owned(), id), content, call.trace)
}

/// What a quality tool found.
pub(super) async fn quality(call: &Call<'_>) -> Result<Answer, ApiError> {
    call.project()?;
    let name = call.parameters.text("tool");
    let Some(tool) = Tool::named(&name) else {
        return Err(ApiError::invalid("tool", format!("`{name}` is no tool that is known"), "use dbt, gx or soda"));
    };
    one(call, quality::decode(tool, &call.request.body()?), 202).await
}
