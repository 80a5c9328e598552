//! From an event to the messages that have to come again.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse};
use jiff::Timestamp;
use lakebell_engine::dispatch::Order;
use lambda_runtime::{Diagnostic, LambdaEvent};
use serde_json::Value;
use tracing::Instrument;

use crate::context::Context;
use crate::orders::{Delivery, deliveries};
use crate::report;

/// Something has to come again that cannot be handed back alone, so that the whole invocation does.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} messages have to come again; the log says why")]
pub struct ComeAgain {
    /// How many.
    count: usize,
}

impl From<ComeAgain> for Diagnostic {
    fn from(come_again: ComeAgain) -> Self {
        Self { error_type: "ComeAgain".to_owned(), error_message: come_again.to_string() }
    }
}

/// Handles a batch of messages, or one that came without a queue.
///
/// The answer names the messages that a later try may help.
pub async fn handle(event: LambdaEvent<Value>, context: &Context) -> Result<SqsBatchResponse, ComeAgain> {
    let deadline = deadline(event.context.deadline);
    let deliveries = deliveries(&event.payload);
    let mut again: BTreeSet<usize> = BTreeSet::new();
    for (at, delivery) in deliveries.iter().enumerate() {
        let comes_again = match &delivery.order {
            Ok(order) => {
                let span = tracing::info_span!(
                    "dispatch", traceId = %order.trace, triggerKey = %order.trigger, target = %order.target
                );
                dispatch(order, deadline, context).instrument(span).await
            }
            Err(why) => {
                let _span = tracing::info_span!("dispatch", messageId = delivery.id.as_deref()).entered();
                report::refused(&context.metrics, *why);
                delivery.is_unreadable()
            }
        };
        if comes_again {
            again.insert(at);
        }
    }
    answer(&deliveries, &again)
}

/// Whether the message has to come again.
async fn dispatch(order: &Order, deadline: Timestamp, context: &Context) -> bool {
    let began = context.dispatcher.ports.clock.now();
    match context.dispatcher.dispatch(order, deadline).await {
        Ok(dispatched) => {
            report::dispatched(&context.metrics, &dispatched, began);
            // A trigger whose time has not come waits in its state and in the sweep, which sends it
            // when it has. Handed back, an outage of hours would end in the dead-letter queue.
            false
        }
        Err(error) => {
            report::failed(&context.metrics, &error);
            error.retryable()
        }
    }
}

/// When Lambda ends the invocation; 0 stands for nobody knows.
fn deadline(millis: u64) -> Timestamp {
    let known = i64::try_from(millis).ok().filter(|millis| *millis > 0);
    known.and_then(|millis| Timestamp::from_millisecond(millis).ok()).unwrap_or(Timestamp::MAX)
}

/// An empty id, or one that is not in the batch, would make SQS hand back the whole batch, so only
/// ids of the batch are named. What has none fails the invocation.
fn answer(deliveries: &[Delivery], again: &BTreeSet<usize>) -> Result<SqsBatchResponse, ComeAgain> {
    let ids: BTreeSet<&str> = again.iter().filter_map(|at| deliveries[*at].id.as_deref()).collect();
    if again.iter().any(|at| deliveries[*at].id.is_none()) {
        return Err(ComeAgain { count: again.len() });
    }
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = ids
        .into_iter()
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            id.clone_into(&mut failure.item_identifier);
            failure
        })
        .collect();
    Ok(response)
}
