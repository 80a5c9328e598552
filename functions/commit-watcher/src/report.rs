//! What a step came to, as log lines and counts.
//!
//! Fields and names are those of RFC apache/dolphinscheduler#18627, sections 6.2 and 6.1. A line
//! stands in a span with the `traceId`. Bodies of messages are never logged.

use std::error::Error;

use jiff::Timestamp;
use lakebell_aws::{Measure, Metrics, OlderThan};
use lakebell_domain::asset::{Format, Location};
use lakebell_domain::event::Outcome;
use lakebell_domain::state::AssetState;
use lakebell_engine::EngineError;
use lakebell_engine::compensate::Looked;
use lakebell_engine::consumer::Kept;
use lakebell_engine::observe::{Observed, was_untold};
use lakebell_engine::records::AssetHead;
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
        Finding::Object { .. } | Finding::Message(_) | Finding::Service(_) => {}
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
        let untold = observed.outcomes.iter().filter(|(kind, outcome)| was_untold(*kind, outcome)).count();
        let missed = if is_again { 0 } else { untold };
        for _ in 0..missed {
            metrics.count(Measure::CompensationMissed { source_type }, &[("assetKey", &asset_key)]);
        }
        let unnotified =
            observed.head.value.state.unnotified.filter(|unnotified| missed > 0 && unnotified.is_lasting());
        if let Some(unnotified) = unnotified {
            metrics.count(Measure::NotificationsMissing { source_type }, &[("assetKey", &asset_key)]);
            tracing::warn!(
                assetKey = asset_key,
                reason = "notifications_missing",
                scans = unnotified.scans,
                since = %unnotified.since,
                "only scans find commits of this asset: does its bucket still notify?"
            );
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
        for older_than in OlderThan::passed_by(seconds) {
            metrics.count(Measure::AssetOlder { source_type, older_than }, about);
        }
    }
    if let Some(seconds) = state.watermark.as_ref().and_then(|watermark| age(watermark.at.0)) {
        metrics.record(Measure::WatermarkLag { source_type }, seconds, about);
    }
}

/// What became of an asset's consumer file.
pub(crate) fn kept(metrics: &Metrics, head: &AssetHead, kept: Result<Kept, EngineError>) {
    let asset_key = head.key.to_string();
    let outcome = match kept {
        Ok(Kept::NotAsked | Kept::Unchanged) => return,
        Ok(Kept::Moved(next)) => {
            tracing::info!(assetKey = asset_key, nextSnapshot = next, "the consumer file was moved");
            "moved"
        }
        Ok(Kept::Lost) => "lost",
        Err(error) => {
            let cause: &(dyn Error + 'static) = &error;
            tracing::error!(
                assetKey = asset_key,
                error = cause,
                reason = error.kind().code(),
                "the consumer file could not be kept up to date: snapshots may expire unread"
            );
            "failed"
        }
    };
    metrics.count(Measure::ConsumerFile { outcome }, &[("assetKey", &asset_key)]);
}

/// A look for new tables of a warehouse.
pub(crate) fn looked_for_tables(metrics: &Metrics, warehouse: &Location, looked: &Looked) {
    let warehouse = warehouse.to_string();
    for table in &looked.registered {
        let about = [("warehouse", warehouse.as_str()), ("assetKey", &table.to_string())];
        metrics.count(Measure::TableDiscovered { source_type: table.format() }, &about);
        tracing::info!(warehouse, assetKey = %table, "a scan found a new table of a warehouse");
    }
    for refused in &looked.refused {
        let location = refused.location.to_string();
        metrics.count(Measure::EventInvalid { source_type: None, reason: "table_refused" }, &[("location", &location)]);
        tracing::warn!(warehouse, location, reason = refused.reason, "a table of a warehouse could not be registered");
    }
    tracing::info!(
        warehouse,
        tables = looked.tables,
        registered = looked.registered.len(),
        isComplete = looked.is_complete,
        "looked for new tables"
    );
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
