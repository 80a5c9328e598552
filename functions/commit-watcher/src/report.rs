//! What a step came to, as log lines and counts.
//!
//! Fields and names are those of RFC apache/dolphinscheduler#18627, sections 6.2 and 6.1. A line
//! stands in a span with the `traceId`. Bodies of messages are never logged.

use std::error::Error;

use jiff::Timestamp;
use lakebell_aws::{Measure, Metrics};
use lakebell_domain::asset::Format;
use lakebell_domain::event::Outcome;
use lakebell_domain::state::AssetState;
use lakebell_engine::EngineError;
use lakebell_engine::observe::Observed;
use lakebell_engine::watch::Watched;
use lakebell_lambda::report_evaluated;

use crate::unwrap::Finding;

/// Findings on which nothing is done.
pub(crate) fn finding(metrics: &Metrics, finding: &Finding) {
    match finding {
        Finding::Ignored(why) => {
            tracing::info!(outcome = "ignored", reason = why.as_str(), "a hint means nothing here");
        }
        Finding::Refused(why) => {
            metrics.count(Measure::EventInvalid { source_type: None, reason: why.as_str() }, &[]);
            tracing::warn!(outcome = "refused", reason = why.as_str(), "a hint is not understood");
        }
        Finding::Object { created, is_key_raw: true } => {
            metrics.count(Measure::EventInvalid { source_type: None, reason: "malformed_key" }, &[]);
            tracing::warn!(
                bucket = created.bucket,
                key = created.key,
                reason = "malformed_key",
                "a key is kept as it came"
            );
        }
        Finding::Object { .. } | Finding::Message(_) => {}
    }
}

/// A look at a table, with the evaluations that followed.
pub(crate) fn watched(metrics: &Metrics, watched: &Watched, now: Timestamp) {
    match watched {
        Watched::NotACommit => tracing::debug!(outcome = "ignored", reason = "not_a_commit", "the object is no commit"),
        Watched::UnknownTable { location, format, is_new } => {
            if let Some(source_type) = *format {
                metrics.count(Measure::EventReceived { source_type }, &[("location", location)]);
            }
            let invalid = Measure::EventInvalid { source_type: *format, reason: "unknown_table" };
            metrics.count(invalid, &[("location", location)]);
            tracing::info!(
                location,
                isNew = is_new,
                outcome = "ignored",
                reason = "unknown_table",
                "a table is not registered"
            );
        }
        Watched::Observed { observed, evaluated, others } => {
            self::observed(metrics, observed, now);
            report_evaluated(metrics, evaluated);
            for other in others {
                self::watched(metrics, other, now);
            }
        }
    }
}

/// A look at a table by the clock. It normally finds nothing, which is no event; what it does find
/// was missed by every notification, unless one of them began the look (`is_again`).
pub(crate) fn scanned(metrics: &Metrics, watched: &Watched, is_again: bool, now: Timestamp) {
    if let Watched::Observed { observed, evaluated, .. } = watched {
        let source_type = observed.head.value.key.format();
        let asset_key = observed.head.value.key.to_string();
        let is_new = |outcome: &Outcome| !is_again && matches!(outcome, Outcome::Advanced | Outcome::Maintenance);
        for _ in observed.outcomes.iter().filter(|(_, outcome)| is_new(outcome)) {
            metrics.count(Measure::CompensationMissed { source_type }, &[("assetKey", &asset_key)]);
        }
        if observed.outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Duplicate) {
            tracing::info!(assetKey = asset_key, outcome = "duplicate", "a scan found nothing new");
            lags(metrics, &observed.head.value.state, source_type, &[("assetKey", &asset_key)], now);
            report_evaluated(metrics, evaluated);
            return;
        }
    }
    self::watched(metrics, watched, now);
}

fn observed(metrics: &Metrics, observed: &Observed, now: Timestamp) {
    let head = &observed.head.value;
    let source_type = head.key.format();
    let asset_key = head.key.to_string();
    let about = [("assetKey", asset_key.as_str())];
    let state = &head.state;
    let snapshot_id = state.table.as_ref().map(|version| version.snapshot_id.as_str());
    let watermark = state.watermark.as_ref().and_then(|watermark| Timestamp::from_millisecond(watermark.at.0).ok());
    for (kind, outcome) in &observed.outcomes {
        metrics.count(Measure::EventReceived { source_type }, &about);
        let reason = match outcome {
            Outcome::Duplicate => {
                metrics.count(Measure::EventDeduplicated { source_type }, &about);
                None
            }
            Outcome::Advanced | Outcome::Maintenance => {
                metrics.count(Measure::StateUpdated { source_type, outcome: outcome.as_str() }, &about);
                None
            }
            Outcome::Ignored(reason) => {
                // The reason is a sentence with names and numbers in it: for the log only.
                metrics.count(Measure::EventInvalid { source_type: Some(source_type), reason: "ignored" }, &about);
                Some(reason.as_str())
            }
            Outcome::Superseded => None,
        };
        tracing::info!(
            assetKey = asset_key,
            snapshotId = snapshot_id,
            schemaId = state.schema.current,
            watermark = watermark.map(tracing::field::display),
            eventType = kind.as_str(),
            outcome = outcome.as_str(),
            reason,
            "an asset was looked at"
        );
    }
    lags(metrics, &head.state, source_type, &about, now);
}

/// How old the newest commit and the watermark are. Recorded at every look, by the clock too, so
/// that an age also grows where nothing arrives.
fn lags(metrics: &Metrics, state: &AssetState, source_type: Format, about: &[(&'static str, &str)], now: Timestamp) {
    let age = |millis: i64| Timestamp::from_millisecond(millis).ok().map(|at| now.duration_since(at).as_secs_f64());
    if let Some(seconds) = state.committed_at.and_then(|at| age(at.0)) {
        metrics.record(Measure::StateLag { source_type }, seconds, about);
    }
    if let Some(seconds) = state.watermark.as_ref().and_then(|watermark| age(watermark.at.0)) {
        metrics.record(Measure::WatermarkLag { source_type }, seconds, about);
    }
}

/// A step that failed. `again` says that its messages are handed back.
pub(crate) fn failed(metrics: &Metrics, error: &EngineError) {
    let again = error.retryable();
    let code = error.kind().code();
    let cause: &(dyn Error + 'static) = error;
    if again {
        tracing::warn!(error = cause, reason = code, again, "a hint has to come again");
    } else {
        metrics.count(Measure::EventInvalid { source_type: None, reason: code }, &[]);
        tracing::error!(error = cause, reason = code, again, "a hint failed for good");
    }
}
