//! Messages that nobody tries any more.

use jiff::SignedDuration;
use lakebell_engine::dead_letters;
use lakebell_engine::ports::dead_letters::DeadQueue;
use serde_json::json;

use crate::answer::Answer;
use crate::handler::Call;
use crate::problem::ApiError;

/// For how long one request puts back: the function has 25 s, and the gateway 29.
const TAKES: SignedDuration = SignedDuration::from_secs(15);

pub(super) async fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let lying = dead_letters::lying(&*call.context.dead_letters).await?;
    Answer::ok(&json!({ "items": lying }))
}

pub(super) async fn drain(call: &Call<'_>) -> Result<Answer, ApiError> {
    let queue: DeadQueue = call.named("queue")?;
    let clock = &*call.context.ports.clock;
    let drained = dead_letters::drain(&*call.context.dead_letters, clock, queue, clock.now() + TAKES).await?;
    tracing::info!(%queue, put_back = drained.put_back, is_empty = drained.is_empty, "dead letters were put back");
    Answer::ok(&drained)
}
