//! From an event to the messages that have to come again.

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse};
use jiff::{SignedDuration, Timestamp};
use lakebell_domain::event::Source;
use lakebell_domain::ids::TraceId;
use lakebell_engine::evaluate::{Subject, evaluate_all};
use lakebell_engine::observe::{Hint, Look};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::{EngineError, ErrorKind, store};
use lambda_runtime::{Diagnostic, LambdaEvent};
use serde_json::Value;
use tracing::Instrument;

use crate::context::Context;
use crate::deliveries::{Delivery, deliveries};
use crate::plan::{Work, plan};
use crate::report;

/// A step is not begun with less time than this: what is left comes again instead of being cut off.
const ENOUGH_TIME: SignedDuration = SignedDuration::from_secs(5);

/// Something has to come again that cannot be handed back alone, so that the whole invocation does.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} hints have to come again; the log says why")]
pub struct ComeAgain {
    /// How many deliveries.
    count: usize,
}

impl From<ComeAgain> for Diagnostic {
    fn from(come_again: ComeAgain) -> Self {
        Self { error_type: "ComeAgain".to_owned(), error_message: come_again.to_string() }
    }
}

/// Handles an event of any shape that [`crate::unwrap`] knows.
///
/// The answer names the messages that a later try may help; it is empty for an event that came
/// without a queue.
pub async fn handle(event: LambdaEvent<Value>, context: &Context) -> Result<SqsBatchResponse, ComeAgain> {
    let deadline = deadline(event.context.deadline);
    let deliveries = deliveries(&event.payload);
    let traces = traces(&deliveries, context)?;
    let mut again: BTreeSet<usize> = BTreeSet::new();
    for (at, delivery) in deliveries.iter().enumerate() {
        let _span = tracing::info_span!("hint", traceId = %traces[at], messageId = delivery.id.as_deref()).entered();
        delivery.findings.iter().for_each(|finding| report::finding(&context.metrics, finding));
        if delivery.is_unreadable() {
            again.insert(at);
        }
    }
    let steps = plan(&deliveries);
    for step in &steps {
        let trace = trace_of(&step.work).unwrap_or(&traces[step.deliveries[0]]);
        let span = tracing::info_span!("hint", traceId = %trace);
        let done = async {
            let done = work(&step.work, trace, deadline, context).await;
            done.inspect_err(|error| report::failed(&context.metrics, error))
        };
        if done.instrument(span).await.is_err_and(|error| error.retryable()) {
            again.extend(&step.deliveries);
        }
    }
    tracing::info!(deliveries = deliveries.len(), steps = steps.len(), again = again.len(), "an event was handled");
    answer(&deliveries, &again)
}

async fn work(work: &Work, trace: &TraceId, deadline: Timestamp, context: &Context) -> Result<(), EngineError> {
    let Context { watcher, metrics } = context;
    let ports = watcher.ports();
    if deadline.duration_since(ports.clock.now()) < ENOUGH_TIME {
        return Err(EngineError::new(ErrorKind::Unavailable, "too little time is left in this invocation"));
    }
    match work {
        Work::Object(created) => {
            let watched = watcher.created(created, trace).await?;
            report::watched(metrics, &watched, ports.clock.now());
        }
        Work::Message(Message::Observe { asset, .. }) => {
            let hint = Hint { asset: *asset, look: Look::Whole, source: Source::Poll, trace: trace.clone() };
            let watched = watcher.look(&hint).await?;
            report::scanned(metrics, &watched, ports.clock.now());
        }
        Work::Message(Message::Evaluate { targets, .. }) => {
            let subject = |target: &_| Subject { target: Clone::clone(target), members: None };
            let subjects: Vec<Subject> = targets.iter().map(subject).collect();
            let evaluated = evaluate_all(ports, &subjects, &BTreeMap::new(), trace).await?;
            report::evaluated(metrics, &evaluated);
        }
        // The unwrapper refuses it.
        Work::Message(Message::Dispatch { .. }) => {}
    }
    Ok(())
}

/// A fresh trace for each delivery.
fn traces(deliveries: &[Delivery], context: &Context) -> Result<Vec<TraceId>, ComeAgain> {
    let random = &*context.watcher.ports().random;
    let traces = deliveries.iter().map(|_| store::new_trace(random)).collect::<Result<_, _>>();
    traces.map_err(|_| ComeAgain { count: deliveries.len() })
}

/// A message of Lakebell goes on with the trace that it carries.
const fn trace_of(work: &Work) -> Option<&TraceId> {
    match work {
        Work::Message(
            Message::Dispatch { trace, .. } | Message::Evaluate { trace, .. } | Message::Observe { trace, .. },
        ) => Some(trace),
        Work::Object(_) => None,
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
