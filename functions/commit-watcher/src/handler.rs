//! From an event to the messages that have to come again.

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::sqs::SqsBatchResponse;
use jiff::{SignedDuration, Timestamp};
use lakebell_domain::event::Source;
use lakebell_domain::ids::TraceId;
use lakebell_engine::evaluate::{Subject, evaluate_all};
use lakebell_engine::inbox::{self, Accepted, Content, Letter};
use lakebell_engine::observe::{Hint, Look};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::watch::Watched;
use lakebell_engine::{EngineError, ErrorKind, compensate, consumer, store};
pub use lakebell_lambda::ComeAgain;
use lakebell_lambda::{deadline, deliver_notices, hand_back, report_evaluated, report_worked};
use lambda_runtime::LambdaEvent;
use serde_json::Value;
use tracing::Instrument;

use crate::context::Context;
use crate::deliveries::{Delivery, deliveries};
use crate::plan::{Work, plan};
use crate::report;

/// A step is not begun with less time than this: what is left comes again instead of being cut off.
const ENOUGH_TIME: SignedDuration = SignedDuration::from_secs(5);

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
    deliver_notices(context.watcher.ports(), &context.metrics).await;
    let ids: Vec<Option<&str>> = deliveries.iter().map(|delivery| delivery.id.as_deref()).collect();
    hand_back(&ids, &again)
}

async fn work(work: &Work, trace: &TraceId, deadline: Timestamp, context: &Context) -> Result<(), EngineError> {
    let Context { watcher, metrics } = context;
    let ports = watcher.ports();
    enough_time(deadline, ports)?;
    match work {
        Work::Object(created) => {
            let watched = watcher.created(created, trace).await?;
            report::watched(metrics, &watched, ports.clock.now());
        }
        Work::Message(Message::Observe { asset, is_again, .. }) => {
            let source = if *is_again { Source::Notify } else { Source::Poll };
            let hint = Hint { asset: *asset, look: Look::Whole, source, trace: trace.clone() };
            let watched = watcher.look(&hint).await?;
            report::scanned(metrics, &watched, *is_again, ports.clock.now());
            if let Watched::Observed { observed, .. } = &watched {
                // Whatever comes of it: the asset has been looked at.
                report::kept(metrics, &observed.head.value, consumer::keep(ports, observed).await);
            }
        }
        Work::Message(Message::LookForTables { warehouse, .. }) => {
            let looked = compensate::look_for_tables(ports, warehouse, trace, deadline - ENOUGH_TIME).await?;
            report::looked_for_tables(metrics, warehouse, &looked);
        }
        Work::Message(Message::Evaluate { targets, .. }) => {
            let subject = |target: &_| Subject { target: Clone::clone(target), members: None };
            let subjects: Vec<Subject> = targets.iter().map(subject).collect();
            let evaluated = evaluate_all(ports, &subjects, &BTreeMap::new(), trace).await?;
            report_evaluated(metrics, &evaluated);
        }
        Work::Message(Message::Letters { receipts, .. }) => {
            for receipt in receipts {
                enough_time(deadline, ports)?;
                if let Some(worked) = Box::pin(inbox::work(ports, receipt, trace)).await? {
                    report_worked(metrics, receipt, &worked);
                }
            }
        }
        Work::Entry(entry) => {
            let named = (entry.source.clone(), entry.id.clone());
            let letter = Letter::new(ports, None, named, Content::Entry(entry.clone()), trace);
            if inbox::accept(ports, vec![letter], trace).await.contains(&Accepted::NotNow) {
                return Err(EngineError::new(ErrorKind::Unavailable, "the event could not be stored"));
            }
        }
        // The unwrapper refuses it.
        Work::Message(_) => {}
    }
    Ok(())
}

fn enough_time(deadline: Timestamp, ports: &Ports) -> Result<(), EngineError> {
    if deadline.duration_since(ports.clock.now()) < ENOUGH_TIME {
        return Err(EngineError::new(ErrorKind::Unavailable, "too little time is left in this invocation"));
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
        Work::Message(message) => Some(message.trace()),
        Work::Object(_) | Work::Entry(_) => None,
    }
}
