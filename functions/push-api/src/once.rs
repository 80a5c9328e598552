//! Calls under a key of their caller, which are carried out once.

use lakebell_engine::EngineError;
use lakebell_engine::idempotency::{self, Begun, Claim, Kept, Request};

use crate::answer::Answer;
use crate::handler::Call;
use crate::operations;
use crate::problem::{ApiError, Code};

/// The header of the key.
const HEADER: &str = "idempotency-key";
/// Longest key.
const MAX_KEY_BYTES: usize = 255;

/// Carries out a call: once, where it changes something and has a key.
///
/// Errors: those of the call; `Invalid` for a key that is none; `IDEMPOTENCY_KEY_REUSED` where the
/// key was used for another call, `IDEMPOTENCY_RUNNING` while the same one runs.
pub(crate) async fn run(call: &Call<'_>) -> Result<Answer, ApiError> {
    match key(call)? {
        Some(key) if call.route.is_write() => under(call, key).await,
        _ => operations::run(call.route.operation, call).await,
    }
}

/// The key that the caller gave, or the id of the message that it signed.
fn key<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>, ApiError> {
    let Some(key) = call.request.header(HEADER) else { return Ok(call.caller.message()) };
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        let hint = format!("use 1 to {MAX_KEY_BYTES} visible ASCII characters, a random UUID for example");
        return Err(ApiError::invalid("Idempotency-Key", "it is no key", hint));
    }
    Ok(Some(key))
}

async fn under(call: &Call<'_>, key: &str) -> Result<Answer, ApiError> {
    let ports = &call.context.ports;
    let (caller, key) = (call.caller.name().to_owned(), key.to_owned());
    let claim = match idempotency::begin(ports, Request { caller, key, digest: digest(call)? }).await? {
        Begun::Claimed(claim) => claim,
        Begun::Ended(kept) => return again(kept),
        Begun::Running => {
            let error = ApiError::new(Code::IdempotencyRunning, "the same call under this key has not ended yet");
            return Err(error.hint("send it again after `Retry-After`"));
        }
        Begun::Other => {
            let error =
                ApiError::new(Code::IdempotencyKeyReused, "the key was used for another call").at("Idempotency-Key");
            return Err(error.hint("give each call a key of its own, and the same key only to the same call"));
        }
    };
    let answer = Box::pin(operations::run(call.route.operation, call)).await;
    if let Err(error) = close(call, &claim, &answer).await {
        // What was done is done. Until the lease ends the same call is told that it runs.
        tracing::warn!(%error, "what came of a call was not kept under its key");
    }
    answer
}

async fn close(call: &Call<'_>, claim: &Claim, answer: &Result<Answer, ApiError>) -> Result<(), EngineError> {
    let ports = &call.context.ports;
    match answer {
        Ok(answer) => {
            let kept = Kept { status: answer.status(), body: answer.to_keep().map(str::to_owned) };
            idempotency::end(ports, claim, kept).await
        }
        Err(_) => idempotency::forget(ports, claim).await,
    }
}

fn again(kept: Kept) -> Result<Answer, ApiError> {
    let Some(body) = kept.body else {
        let detail = format!("the call was carried out, with the status {}; its answer is not kept", kept.status);
        return Err(ApiError::new(Code::IdempotencyAnswerGone, detail).hint("read what it made"));
    };
    Ok(Answer::replayed(kept.status, body))
}

fn digest(call: &Call<'_>) -> Result<String, ApiError> {
    let request = call.request;
    let mut query: Vec<(&String, &String)> = request.query.iter().collect();
    query.sort();
    let mut parts = vec![request.method.as_str(), call.route.template];
    parts.extend(call.parameters.values());
    parts.extend(query.into_iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
    // In binary mode the headers say what an event is, and its data may be the same as another one's.
    parts.push(request.header("content-type").unwrap_or_default());
    let mut attributes: Vec<(&str, &str)> = request.headers_below("ce-").collect();
    attributes.sort_unstable();
    parts.extend(attributes.into_iter().flat_map(|(name, value)| [name, value]));
    let body = request.body()?;
    let body = String::from_utf8_lossy(&body);
    parts.push(&body);
    Ok(idempotency::digest(&parts))
}
