//! From an event to the messages that have to come again.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::SqsBatchResponse;
use jiff::{SignedDuration, Timestamp};
use lakebell_engine::EngineError;
use lakebell_engine::dispatch::Order;
use lakebell_engine::ports::queue::Message;
pub use lakebell_lambda::ComeAgain;
use lakebell_lambda::{deadline, deliver_notices, hand_back};
use lambda_runtime::LambdaEvent;
use serde_json::Value;
use tracing::Instrument;

use crate::context::Context;
use crate::orders::deliveries;
use crate::report;

/// No question about a started workflow begins with less time than this.
const ENOUGH_TO_ASK: SignedDuration = SignedDuration::from_secs(10);

/// No comparison of a workflow begins with less time than this: a list has many pages.
const ENOUGH_TO_COMPARE: SignedDuration = SignedDuration::from_secs(25);

/// What is logged of a question that failed.
const QUESTION: &str = "a question to the scheduler could not be worked on";

/// Handles a batch of messages, or one that came without a queue.
///
/// The answer names the messages that a later try may help.
pub async fn handle(event: LambdaEvent<Value>, context: &Context) -> Result<SqsBatchResponse, ComeAgain> {
    let deadline = deadline(event.context.deadline);
    let deliveries = deliveries(&event.payload);
    let mut again: BTreeSet<usize> = BTreeSet::new();
    for (at, delivery) in deliveries.iter().enumerate() {
        let comes_again = match &delivery.message {
            Ok(message) => work_on(message, deadline, context).await,
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
    deliver_notices(&context.dispatcher.ports, &context.metrics).await;
    let ids: Vec<Option<&str>> = deliveries.iter().map(|delivery| delivery.id.as_deref()).collect();
    hand_back(&ids, &again)
}

/// Does what a message asks for. Whether it has to come again.
async fn work_on(message: &Message, deadline: Timestamp, context: &Context) -> bool {
    let Context { dispatcher, metrics } = context;
    match message {
        Message::Dispatch { target, trigger, attempt, trace } => {
            let span = tracing::info_span!("dispatch", traceId = %trace, triggerKey = %trigger, target = %target);
            let (target, trigger, trace) = (target.clone(), trigger.clone(), trace.clone());
            let order = Order { target, trigger, attempt: *attempt, trace };
            dispatch(&order, deadline, context).instrument(span).await
        }
        Message::Advise { target, trace } => {
            let span = tracing::info_span!("advise", traceId = %trace, target = %target);
            let asked = async {
                let advice = dispatcher.advise(target).await;
                let failed = "a declared workflow could not be looked at";
                answered(advice, failed, |advice| report::advised(advice.as_ref()))
            };
            asked.instrument(span).await
        }
        Message::LookAt { connection, trace } => {
            let span = tracing::info_span!("look", traceId = %trace, connection = %connection);
            let asked = async {
                let look = dispatcher.look_at(connection).await;
                let now = dispatcher.ports.clock.now();
                answered(look, QUESTION, |look| report::looked(metrics, connection, &look, now))
            };
            asked.instrument(span).await
        }
        // What there is no time for is named in its result.
        Message::Audit { project, audit, trace } => {
            let span = tracing::info_span!("audit", traceId = %trace, project = %project, audit = %audit);
            let asked = async {
                let audit = dispatcher.audit(*project, audit, deadline - ENOUGH_TO_COMPARE).await;
                answered(audit, QUESTION, |audit| report::audited(metrics, audit.as_ref()))
            };
            asked.instrument(span).await
        }
        // What is left out now is asked about later.
        Message::Follow { triggers, trace } => {
            let span = tracing::info_span!("follow", traceId = %trace);
            let asked = async {
                let told = dispatcher.follow_instances(triggers, deadline - ENOUGH_TO_ASK).await;
                answered(told, QUESTION, |told| report::told(metrics, &told))
            };
            asked.instrument(span).await
        }
        // These are the watcher's, and were refused as they were read.
        Message::Evaluate { .. }
        | Message::Letters { .. }
        | Message::Observe { .. }
        | Message::LookForTables { .. } => false,
    }
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

/// The same for a question to the scheduler: it started nothing, so no trigger failed.
fn answered<T>(answer: Result<T, EngineError>, failed: &'static str, report: impl FnOnce(T)) -> bool {
    match answer {
        Ok(answer) => {
            report(answer);
            false
        }
        Err(error) => {
            report::question_failed(&error, failed);
            error.retryable()
        }
    }
}
