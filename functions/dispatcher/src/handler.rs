//! From an event to the messages that have to come again.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::SqsBatchResponse;
use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::{AuditId, ConnectionName, ProjectCode, TargetId, TriggerKey};
use lakebell_engine::dispatch::Order;
pub use lakebell_lambda::ComeAgain;
use lakebell_lambda::{deadline, deliver_notices, hand_back};
use lambda_runtime::LambdaEvent;
use serde_json::Value;
use tracing::Instrument;

use crate::context::Context;
use crate::orders::{Work, deliveries};
use crate::report;

/// No question about a started workflow begins with less time than this.
const ENOUGH_TO_ASK: SignedDuration = SignedDuration::from_secs(10);

/// No comparison of a workflow begins with less time than this: a list has many pages.
const ENOUGH_TO_COMPARE: SignedDuration = SignedDuration::from_secs(25);

/// Handles a batch of messages, or one that came without a queue.
///
/// The answer names the messages that a later try may help.
pub async fn handle(event: LambdaEvent<Value>, context: &Context) -> Result<SqsBatchResponse, ComeAgain> {
    let deadline = deadline(event.context.deadline);
    let deliveries = deliveries(&event.payload);
    let mut again: BTreeSet<usize> = BTreeSet::new();
    for (at, delivery) in deliveries.iter().enumerate() {
        let comes_again = match &delivery.work {
            Ok(Work::Advise { target, trace }) => {
                let span = tracing::info_span!("advise", traceId = %trace, target = %target);
                advise(target, context).instrument(span).await
            }
            Ok(Work::LookAt { connection, trace }) => {
                let span = tracing::info_span!("look", traceId = %trace, connection = %connection);
                look_at(connection, context).instrument(span).await
            }
            Ok(Work::Audit { project, audit, trace }) => {
                let span = tracing::info_span!("audit", traceId = %trace, project = %project, audit = %audit);
                do_audit(*project, audit, deadline, context).instrument(span).await
            }
            Ok(Work::Follow { triggers, trace }) => {
                let span = tracing::info_span!("follow", traceId = %trace);
                follow(triggers, deadline, context).instrument(span).await
            }
            Ok(Work::Dispatch(order)) => {
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
    deliver_notices(&context.dispatcher.ports, &context.metrics).await;
    let ids: Vec<Option<&str>> = deliveries.iter().map(|delivery| delivery.id.as_deref()).collect();
    hand_back(&ids, &again)
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

/// The same for a look at a connection.
async fn look_at(connection: &ConnectionName, context: &Context) -> bool {
    match context.dispatcher.look_at(connection).await {
        Ok(look) => {
            report::looked(&context.metrics, connection, &look, context.dispatcher.ports.clock.now());
            false
        }
        Err(error) => {
            report::question_failed(&error);
            error.retryable()
        }
    }
}

/// The same for an audit. What there is no time for is named in its result.
async fn do_audit(project: ProjectCode, audit: &AuditId, deadline: Timestamp, context: &Context) -> bool {
    match context.dispatcher.audit(project, audit, deadline - ENOUGH_TO_COMPARE).await {
        Ok(audit) => {
            report::audited(&context.metrics, audit.as_ref());
            false
        }
        Err(error) => {
            report::question_failed(&error);
            error.retryable()
        }
    }
}

/// The same for a question about started workflows. What is left out now is asked about later.
async fn follow(triggers: &[TriggerKey], deadline: Timestamp, context: &Context) -> bool {
    match context.dispatcher.follow_instances(triggers, deadline - ENOUGH_TO_ASK).await {
        Ok(told) => {
            report::told(&context.metrics, &told);
            false
        }
        Err(error) => {
            report::question_failed(&error);
            error.retryable()
        }
    }
}

/// The same for a look at a workflow.
async fn advise(target: &TargetId, context: &Context) -> bool {
    match context.dispatcher.advise(target).await {
        Ok(advice) => {
            report::advised(advice.as_ref());
            false
        }
        Err(error) => {
            report::advice_failed(&error);
            error.retryable()
        }
    }
}
