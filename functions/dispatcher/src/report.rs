//! What a message came to, as log lines and counts.
//!
//! Fields and names are those of RFC apache/dolphinscheduler#18627, sections 6.2 and 6.1. A line
//! stands in a span with `traceId`, `triggerKey` and `target`.

use std::error::Error;

use jiff::Timestamp;
use lakebell_aws::{Measure, Metrics};
use lakebell_domain::ids::{ConnectionName, InstanceId};
use lakebell_domain::target::WorkflowRef;
use lakebell_domain::trigger::{Status, Trigger};
use lakebell_engine::EngineError;
use lakebell_engine::advice::Advice;
use lakebell_engine::audit::Audit;
use lakebell_engine::dispatch::Dispatched;
use lakebell_engine::doctor::{ConnectionLook, Saw};
use lakebell_engine::follow::Told;
use lakebell_lambda::report_evaluated;

use crate::orders::Refused;

/// The RFC's word for triggers that events led to; others come with later kinds of starts.
const TRIGGER_SOURCE: &str = "asset_event";

/// A message that asks for nothing that can be done.
pub(crate) fn refused(metrics: &Metrics, why: Refused) {
    metrics.count(Measure::EventInvalid { source_type: None, reason: why.as_str() }, &[]);
    tracing::warn!(outcome = "refused", reason = why.as_str(), "a message is not understood");
}

/// What the engine made of a message. `began` is when it was given to it.
pub(crate) fn dispatched(metrics: &Metrics, dispatched: &Dispatched, began: Timestamp) {
    match dispatched {
        Dispatched::Gone => tracing::info!(outcome = "gone", "there is no such trigger, or its target is gone"),
        Dispatched::Later { trigger, due_at } => {
            if moved(trigger, began) {
                let measure = Measure::TriggerRetry { trigger_status: trigger.status().word() };
                metrics.count(measure, &about(trigger));
            }
            log(trigger, Some(*due_at), "a trigger waits");
        }
        Dispatched::Done { trigger, evaluated } => {
            if moved(trigger, began) {
                ended(metrics, trigger);
                extra(metrics, trigger, &trigger.extra_instances);
            }
            log(trigger, None, "a trigger was carried on");
            if let Some(evaluated) = evaluated {
                report_evaluated(metrics, std::slice::from_ref(&**evaluated));
            }
        }
    }
}

/// What a look at the workflow of a declared target found.
pub(crate) fn advised(advice: Option<&Advice>) {
    let Some(advice) = advice else {
        tracing::info!(outcome = "gone", "the target of a check is gone");
        return;
    };
    tracing::info!(
        outcome = "advised",
        connection = advice.connection.as_str(),
        reason = advice.finding.as_str(),
        warns = advice.warning().is_some(),
        "a declared workflow was looked at"
    );
}

/// What was told about started workflows.
pub(crate) fn told(metrics: &Metrics, told: &[Told]) {
    let mut unavailable = 0_usize;
    for told in told {
        match told {
            Told::Nothing => {}
            Told::News { trigger, has_ended, extras } => {
                let Some(followed) = trigger.followed() else { continue };
                if *has_ended {
                    metrics.count(Measure::WorkflowEnded { state: followed.state }, &about(trigger));
                }
                tracing::info!(
                    target = %trigger.target,
                    triggerKey = %trigger.key,
                    connection = trigger.connection.as_str(),
                    workflowInstanceId = trigger.instance.map(|instance| instance.0),
                    state = followed.state.as_str(),
                    "news of a started workflow"
                );
                extra(metrics, trigger, extras);
            }
            Told::Unavailable { refusal, .. } => {
                unavailable += 1;
                tracing::warn!(reason = %refusal, "the scheduler was not asked about a started workflow; it will be");
            }
        }
    }
    tracing::info!(questions = told.len(), unavailable, "started workflows were asked about");
}

/// What was seen of a connection.
pub(crate) fn looked(metrics: &Metrics, connection: &ConnectionName, look: &ConnectionLook, now: Timestamp) {
    let about = [("connection", connection.as_str())];
    match &look.saw {
        Saw::Token { expires_at } if look.is_expiring(now) => {
            metrics.count(Measure::TokenExpiring, &about);
            tracing::warn!(expiresAt = %expires_at, "a connection's token ends soon: put a new one into its secret");
        }
        Saw::Refused { code, detail } => tracing::warn!(reason = code, detail, "a connection cannot be used"),
        Saw::Token { .. } | Saw::NoEnd { .. } => tracing::info!("a connection answers"),
    }
}

/// What an audit came to.
#[allow(non_snake_case)] // the field names of the logs
pub(crate) fn audited(metrics: &Metrics, audit: Option<&Audit>) {
    let Some(result) = audit.and_then(|audit| audit.result.as_ref()) else {
        tracing::info!(outcome = "gone", "an audit is done already, or forgotten");
        return;
    };
    for finding in &result.findings {
        let about = [("triggerKey", finding.trigger.as_ref().map_or("", |key| key.as_str()))];
        metrics.count(Measure::AuditFinding { kind: finding.kind }, &about);
        tracing::warn!(
            triggerKey = finding.trigger.as_ref().map(tracing::field::display),
            workflowInstanceId = finding.instance.map(|instance| instance.0),
            kind = ?finding.kind,
            reason = finding.detail,
            "an audit found something"
        );
    }
    let (findings, notCompared) = (result.findings.len(), result.not_compared.len());
    tracing::info!(triggers = result.triggers, instances = result.instances, findings, notCompared, "audited");
}

/// A question that failed.
pub(crate) fn question_failed(error: &EngineError, message: &'static str) {
    let (again, code) = (error.retryable(), error.kind().code());
    let cause: &(dyn Error + 'static) = error;
    tracing::warn!(error = cause, reason = code, again, "{message}");
}

/// Workflow instances that carry a trigger's key beyond the first.
fn extra(metrics: &Metrics, trigger: &Trigger, extras: &[InstanceId]) {
    if extras.is_empty() {
        return;
    }
    for _ in extras {
        metrics.count(Measure::ExtraInstance, &about(trigger));
    }
    let instances: Vec<i64> = extras.iter().map(|instance| instance.0).collect();
    tracing::error!(
        triggerKey = %trigger.key,
        workflowInstanceId = trigger.instance.map(|instance| instance.0),
        ?instances,
        "a trigger has more than one workflow instance: stop all but the first"
    );
}

/// A message that failed.
pub(crate) fn failed(metrics: &Metrics, error: &EngineError) {
    let again = error.retryable();
    let code = error.kind().code();
    let cause: &(dyn Error + 'static) = error;
    if again {
        tracing::warn!(error = cause, reason = code, again, "a message has to come again");
    } else {
        metrics.count(Measure::TriggerFailed { reason: code }, &[]);
        tracing::error!(error = cause, reason = code, again, "a message failed for good");
    }
}

/// Whether this run moved the trigger: a message for one that ended before counts no second start.
fn moved(trigger: &Trigger, began: Timestamp) -> bool {
    trigger.log.last().is_some_and(|passage| passage.at >= began)
}

fn ended(metrics: &Metrics, trigger: &Trigger) {
    let measure = match trigger.status() {
        Status::Success { .. } => Measure::TriggerSuccess { trigger_source: TRIGGER_SOURCE },
        Status::Failed { code, .. } => Measure::TriggerFailed { reason: failure(code) },
        Status::Unknown { held: true, .. } => Measure::TriggerFailed { reason: "held" },
        _ => return,
    };
    metrics.count(measure, &about(trigger));
}

/// A closed set of words for the codes of any scheduler. The code itself is in the log.
fn failure(code: &str) -> &'static str {
    match code {
        "WORKFLOW_MISSING" => "workflow_missing",
        _ if code.starts_with("HTTP_") => "http_error",
        _ => "command_create_failed",
    }
}

fn about(trigger: &Trigger) -> [(&'static str, &str); 2] {
    [("triggerKey", trigger.key.as_str()), ("connection", trigger.connection.as_str())]
}

fn log(trigger: &Trigger, due_at: Option<Timestamp>, message: &'static str) {
    let (code, name) = match &trigger.workflow {
        WorkflowRef::Code(code) => (Some(code.0), None),
        WorkflowRef::Name(name) => (None, Some(name.as_str())),
    };
    let reason = match trigger.status() {
        Status::Waiting { reason } => Some(format!("{}: {}", reason.code, reason.detail)),
        Status::Unknown { code, detail, .. } | Status::Failed { code, detail } => Some(format!("{code}: {detail}")),
        Status::Skipped { why, .. } => Some(why.clone()),
        Status::Queued | Status::Leased { .. } | Status::Success { .. } => None,
    };
    tracing::info!(
        connection = trigger.connection.as_str(),
        workflowDefinitionCode = code,
        workflowDefinitionName = name,
        taskDefinitionCode = trigger.start_at.map(|task| task.0),
        workflowInstanceId = trigger.instance.map(|instance| instance.0),
        status = trigger.status().word().as_str(),
        step = trigger.status().step(),
        attempt = trigger.attempt,
        reason,
        dueAt = due_at.map(tracing::field::display),
        "{message}"
    );
}
