//! What Lakebell's functions share of Lambda: when an invocation ends, and batches of queue
//! messages of which each succeeds or fails by itself.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsMessage};
use jiff::Timestamp;
use lakebell_aws::{Measure, Metrics};
use lakebell_engine::evaluate::Evaluated;
use lakebell_engine::inbox::Worked;
use lakebell_engine::lineage::FoundLoop;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::notices::Delivered;
use lambda_runtime::Diagnostic;
use serde::Deserialize;
use serde_json::Value;

/// No invocation ended before 2001: what a context says below that is no moment. `cargo lambda`
/// gives 600,000, a duration, to every invocation.
const FIRST_MOMENT: i64 = 1_000_000_000_000;

/// When Lambda ends an invocation, from the milliseconds since 1970 of its context. Where that is
/// no moment nobody knows, and the end is as far away as can be.
pub fn deadline(millis: u64) -> Timestamp {
    let known = i64::try_from(millis).ok().filter(|millis| *millis >= FIRST_MOMENT);
    known.and_then(|millis| Timestamp::from_millisecond(millis).ok()).unwrap_or(Timestamp::MAX)
}

/// One message of a batch: what it can be handed back by, and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The message's id; absent where the event gives none.
    pub id: Option<String>,
    /// Its body; absent where the event gives none.
    pub body: Option<String>,
}

impl Record {
    /// Reads a record of a batch. A record of another shape spoils nothing but itself.
    pub fn read(record: &Value) -> Self {
        let message = SqsMessage::deserialize(record).unwrap_or_default();
        let text = |field: &str| record[field].as_str().map(str::to_owned);
        let id = message.message_id.or_else(|| text("messageId"));
        Self { id: id.filter(|id| !id.is_empty()), body: message.body.or_else(|| text("body")) }
    }
}

/// Something has to come again that cannot be handed back alone, so that the whole invocation does.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{count} messages have to come again; the log says why")]
pub struct ComeAgain {
    /// How many.
    pub count: usize,
}

impl From<ComeAgain> for Diagnostic {
    fn from(come_again: ComeAgain) -> Self {
        Self { error_type: "ComeAgain".to_owned(), error_message: come_again.to_string() }
    }
}

/// The answer that hands back the messages with the places `again` in the batch whose ids are
/// `ids`, in the order of the batch.
///
/// An empty id, or one that is not in the batch, would make SQS hand back the whole batch, so only
/// ids of the batch are named. What has none fails the invocation.
pub fn hand_back(ids: &[Option<&str>], again: &BTreeSet<usize>) -> Result<SqsBatchResponse, ComeAgain> {
    let named: BTreeSet<&str> = again.iter().filter_map(|at| *ids.get(*at)?).collect();
    if again.iter().any(|at| ids.get(*at).copied().flatten().is_none()) {
        return Err(ComeAgain { count: again.len() });
    }
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = named
        .into_iter()
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            id.clone_into(&mut failure.item_identifier);
            failure
        })
        .collect();
    Ok(response)
}

/// Delivers the notices of an invocation, once its work is done. What is not taken is counted.
pub async fn deliver_notices(ports: &Ports, metrics: &Metrics) {
    let Delivered { sent, failed } = ports.notices.deliver().await;
    for _ in 0..failed {
        metrics.count(Measure::NoticeFailed, &[]);
    }
    if sent + failed > 0 {
        tracing::info!(sent, failed, "notices were delivered");
    }
}

/// Counts and logs evaluations of targets.
pub fn report_evaluated(metrics: &Metrics, evaluated: &[Evaluated]) {
    for Evaluated { evaluation, claimed, is_late } in evaluated {
        let target = evaluation.target.to_string();
        let measure = match evaluation.verdict {
            lakebell_domain::reason::Verdict::Ready => Measure::DependencyReady,
            verdict => Measure::DependencyBlocked { verdict },
        };
        metrics.count(measure, &[("target", &target)]);
        tracing::info!(
            target,
            status = evaluation.verdict.as_str(),
            reason = evaluation.reason.as_ref().map(|reason| reason.code.as_str()),
            triggerKey = claimed.as_ref().map(tracing::field::display),
            "a target was evaluated"
        );
        if *is_late {
            metrics.count(Measure::DeadlinePassed, &[("target", &target)]);
            tracing::warn!(
                target,
                deadline = evaluation.timed_out.map(tracing::field::display),
                reason = evaluation.reason.as_ref().map(|reason| reason.code.as_str()),
                "a deadline passed without a start"
            );
        }
    }
}

/// Counts and logs what became of a letter. Its reasons may quote what a writer sent, and are not logged. Neither its source nor its id is a dimension.
pub fn report_worked(metrics: &Metrics, receipt: &str, worked: &Worked) {
    for (became, format) in &worked.became {
        let about = [("assetKey", became.about.as_str())];
        if let (Some(_), Some(source_type)) = (became.kind, *format) {
            metrics.count(Measure::EventReceived { source_type }, &about);
            match became.outcome.as_str() {
                "duplicate" => metrics.count(Measure::EventDeduplicated { source_type }, &about),
                "advanced" => metrics.count(Measure::StateUpdated { source_type, outcome: "advanced" }, &about),
                "maintenance" => metrics.count(Measure::StateUpdated { source_type, outcome: "maintenance" }, &about),
                _ => {}
            }
        }
        let refused = match became.outcome.as_str() {
            "unknown" => Some("UNKNOWN_ASSET"),
            "refused" => Some("INVALID"),
            _ => None,
        };
        if let Some(reason) = refused {
            metrics.count(Measure::EventInvalid { source_type: *format, reason }, &about);
        }
        tracing::info!(
            receipt,
            assetKey = became.about,
            eventType = became.kind.map(lakebell_domain::event::EventKind::as_str),
            outcome = became.outcome,
            "a pushed event was worked on"
        );
    }
    report_evaluated(metrics, &worked.evaluated);
    report_loops(metrics, &worked.loops);
}

/// Counts and logs loops that were found just now: one alarm for each.
pub fn report_loops(metrics: &Metrics, loops: &[FoundLoop]) {
    for FoundLoop { target, tables } in loops {
        let target = target.to_string();
        let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
        metrics.count(Measure::SelfLoop, &[("target", &target)]);
        tracing::warn!(target, tables = tables.join(" -> "), "a target writes what starts it");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_deadline_that_is_no_moment_is_unknown() {
        assert_eq!([0, 600_000, u64::MAX].map(deadline), [Timestamp::MAX; 3]);
        assert_eq!(deadline(1_790_000_000_123).as_millisecond(), 1_790_000_000_123);
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation() {
        assert_eq!(hand_back(&[Some("m1"), None], &BTreeSet::from([1])), Err(ComeAgain { count: 1 }));
        assert_eq!(hand_back(&[Some("m1")], &BTreeSet::from([7])), Err(ComeAgain { count: 1 }));
    }

    #[test]
    fn a_record_of_any_shape_is_read() {
        let odd = Record::read(&serde_json::json!({"messageId": "", "body": 3}));
        assert_eq!(odd, Record { id: None, body: None });
        let plain = Record::read(&serde_json::json!({"messageId": "m1", "body": "{}"}));
        assert_eq!(plain, Record { id: Some("m1".to_owned()), body: Some("{}".to_owned()) });
    }

    proptest! {
        #[test]
        fn only_ids_of_the_batch_are_handed_back(count in 0_usize..12, again in proptest::collection::btree_set(0_usize..12, 0..12)) {
            let ids: Vec<String> = (0..count).map(|n| format!("m{n}")).collect();
            let named: Vec<Option<&str>> = ids.iter().map(|id| Some(id.as_str())).collect();
            if let Ok(response) = hand_back(&named, &again) {
                prop_assert_eq!(response.batch_item_failures.len(), again.len());
                for failure in response.batch_item_failures {
                    prop_assert!(ids.contains(&failure.item_identifier));
                }
            } else {
                prop_assert!(again.iter().any(|at| *at >= count));
            }
        }
    }
}
