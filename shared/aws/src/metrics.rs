//! Metrics as CloudWatch's embedded metric format: one line of JSON on standard output for each
//! measurement, which CloudWatch turns into a metric without a call
//! (Amazon CloudWatch User Guide, "Specification: Embedded metric format").
//!
//! **Rule: a dimension has few values, and all of them stand in the code.** Each set of values is a
//! metric of its own, kept and paid for. So dimensions are enums or constants (format, reason,
//! verdict, status), and a [`Measure`] says which ones it has. Asset keys, targets, trigger keys
//! and ids are never dimensions: they go into the line as properties, where CloudWatch Logs
//! Insights finds them.
//!
//! Names are those of RFC apache/dolphinscheduler#18627, section 6.1; the labels there that hold
//! asset keys and workflow codes became properties by the rule above.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use lakebell_domain::asset::Format;
use lakebell_domain::reason::Verdict;
use lakebell_domain::trigger::{FollowedState, StatusWord};
use lakebell_engine::audit::FindingKind;
use lakebell_engine::ports::time::{Clock, SystemClock};
use serde_json::{Map, Value, json};

/// The namespace where `LAKEBELL_METRICS_NAMESPACE` is not set.
const DEFAULT_NAMESPACE: &str = "Lakebell";

/// What is measured, with its dimensions.
///
/// Words such as `reason` are constants of the program, which `&'static str` stands
/// for: text from a request or a table does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Events that came in, whatever became of them.
    EventReceived {
        /// The format of the table.
        source_type: Format,
    },
    /// Events that the state had already.
    EventDeduplicated {
        /// The format of the table.
        source_type: Format,
    },
    /// Input that was refused.
    EventInvalid {
        /// The format of the table; `None` where it is not known.
        source_type: Option<Format>,
        /// Why, as an error code or reason code.
        reason: &'static str,
    },
    /// Events that changed the state.
    StateUpdated {
        /// The format of the table.
        source_type: Format,
        /// How, as in `advanced` or `maintenance`.
        outcome: &'static str,
    },
    /// Seconds since the newest commit of an asset.
    StateLag {
        /// The format of the table.
        source_type: Format,
    },
    /// Looks at assets whose newest commit is older than so much, so that a silent table is seen
    /// where nothing arrives.
    AssetOlder {
        /// The format of the table.
        source_type: Format,
        /// How old.
        older_than: OlderThan,
    },
    /// Seconds that a watermark is behind the time.
    WatermarkLag {
        /// The format of the table.
        source_type: Format,
    },
    /// Evaluations of a target that found it ready.
    DependencyReady,
    /// Evaluations of a target that found it blocked.
    DependencyBlocked {
        /// By what.
        verdict: Verdict,
    },
    /// Deadlines that passed without a start, each counted once.
    DeadlinePassed,
    /// Targets found to write what starts them, each counted once, unless they say that they may.
    SelfLoop,
    /// Workflows started.
    TriggerSuccess {
        /// What led to the start, as in `asset_event`.
        trigger_source: &'static str,
    },
    /// Triggers that ended without a start.
    TriggerFailed {
        /// Why, as an error code or reason code.
        reason: &'static str,
    },
    /// Polls of waiting tasks.
    SensorAnswered {
        /// What they were told, as in `ready` or `waiting`.
        answer: &'static str,
    },
    /// Started workflows that came to their end.
    WorkflowEnded {
        /// How.
        state: FollowedState,
    },
    /// Workflow instances that carry the key of a trigger beyond its first.
    ExtraInstance,
    /// Looks at a connection that found the end of its token near.
    TokenExpiring,
    /// Findings of audits.
    AuditFinding {
        /// What was found.
        kind: FindingKind,
    },
    /// Notices that the bus did not take.
    NoticeFailed,
    /// Passes of the compensator.
    CompensationScan,
    /// Commits that only the compensator found.
    CompensationMissed {
        /// The format of the table.
        source_type: Format,
    },
    /// Scans that found commits of an asset whose bucket has not notified for several scans.
    NotificationsMissing {
        /// The format of the table.
        source_type: Format,
    },
    /// Tables of a warehouse that a scan found and registered.
    TableDiscovered {
        /// The format of the table.
        source_type: Format,
    },
    /// Consumer files of Paimon tables that were to be moved.
    ConsumerFile {
        /// How that went: `moved`, `lost`, `failed`.
        outcome: &'static str,
    },
    /// Further tries of a trigger.
    TriggerRetry {
        /// The status that it was tried in.
        trigger_status: StatusWord,
    },
}

/// Ages of a table's newest commit that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OlderThan {
    /// One hour.
    Hour,
    /// Six hours.
    SixHours,
    /// 24 hours.
    Day,
    /// Seven times 24 hours.
    Week,
}

impl OlderThan {
    const ALL: [Self; 4] = [Self::Hour, Self::SixHours, Self::Day, Self::Week];

    /// The ages that so many seconds have passed.
    pub fn passed_by(seconds: f64) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |age| seconds > age.seconds())
    }

    const fn seconds(self) -> f64 {
        match self {
            Self::Hour => 3_600.0,
            Self::SixHours => 21_600.0,
            Self::Day => 86_400.0,
            Self::Week => 604_800.0,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "1d",
            Self::Week => "7d",
        }
    }
}

impl Measure {
    /// The metric's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventReceived { .. } => "lakehouse_asset_event_received_total",
            Self::EventDeduplicated { .. } => "lakehouse_asset_event_deduplicated_total",
            Self::EventInvalid { .. } => "lakehouse_asset_event_invalid_total",
            Self::StateUpdated { .. } => "lakehouse_asset_state_updated_total",
            Self::StateLag { .. } => "lakehouse_asset_state_lag_seconds",
            Self::WatermarkLag { .. } => "lakehouse_asset_watermark_lag_seconds",
            Self::DependencyReady => "lakehouse_asset_dependency_ready_total",
            Self::DeadlinePassed => "lakehouse_asset_deadline_passed_total",
            Self::SelfLoop => "lakehouse_asset_self_loop_total",
            Self::DependencyBlocked { .. } => "lakehouse_asset_dependency_blocked_by",
            Self::TriggerSuccess { .. } => "lakehouse_asset_trigger_success_total",
            Self::TriggerFailed { .. } => "lakehouse_asset_trigger_failed_total",
            Self::SensorAnswered { .. } => "lakehouse_asset_sensor_answered_total",
            Self::WorkflowEnded { .. } => "lakehouse_asset_workflow_ended_total",
            Self::TokenExpiring => "lakehouse_asset_token_expiring_total",
            Self::AuditFinding { .. } => "lakehouse_asset_audit_finding_total",
            Self::NoticeFailed => "lakehouse_asset_notice_failed_total",
            Self::ExtraInstance => "lakehouse_asset_extra_instance_total",
            Self::CompensationScan => "lakehouse_asset_compensation_scan_total",
            Self::CompensationMissed { .. } => "lakehouse_asset_compensation_missed_events",
            Self::AssetOlder { .. } => "lakehouse_asset_older_than_total",
            Self::NotificationsMissing { .. } => "lakehouse_asset_notifications_missing_total",
            Self::TableDiscovered { .. } => "lakehouse_asset_table_discovered_total",
            Self::ConsumerFile { .. } => "lakehouse_asset_consumer_file_total",
            Self::TriggerRetry { .. } => "lakehouse_asset_trigger_history_retry_total",
        }
    }

    /// The metric's unit, as CloudWatch spells it.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::StateLag { .. } | Self::WatermarkLag { .. } => "Seconds",
            _ => "Count",
        }
    }

    /// The metric's dimensions and their values.
    pub fn dimensions(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::EventReceived { source_type }
            | Self::EventDeduplicated { source_type }
            | Self::StateLag { source_type }
            | Self::WatermarkLag { source_type }
            | Self::NotificationsMissing { source_type }
            | Self::TableDiscovered { source_type }
            | Self::CompensationMissed { source_type } => vec![("source_type", source_type.as_str())],
            Self::EventInvalid { source_type, reason } => {
                vec![("source_type", source_type.map_or("unknown", Format::as_str)), ("reason", reason)]
            }
            Self::StateUpdated { source_type, outcome } => {
                vec![("source_type", source_type.as_str()), ("outcome", outcome)]
            }
            Self::AssetOlder { source_type, older_than } => {
                vec![("source_type", source_type.as_str()), ("older_than", older_than.as_str())]
            }
            Self::ConsumerFile { outcome } => vec![("outcome", outcome)],
            Self::DependencyReady
            | Self::DeadlinePassed
            | Self::ExtraInstance
            | Self::NoticeFailed
            | Self::TokenExpiring
            | Self::SelfLoop
            | Self::CompensationScan => Vec::new(),
            Self::DependencyBlocked { verdict } => vec![("blocked_by", blocked_by(verdict))],
            Self::TriggerSuccess { trigger_source } => vec![("trigger_source", trigger_source)],
            Self::AuditFinding { kind } => vec![("kind", kind.as_str())],
            Self::WorkflowEnded { state } => vec![("state", state.as_str())],
            Self::TriggerFailed { reason } => vec![("reason", reason)],
            Self::SensorAnswered { answer } => vec![("answer", answer)],
            Self::TriggerRetry { trigger_status } => vec![("trigger_status", trigger_status.as_str())],
        }
    }
}

/// The RFC's word for what a verdict waits for.
const fn blocked_by(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ready => "ready",
        Verdict::Waiting => "waiting",
        Verdict::BlockedBySnapshot => "snapshot",
        Verdict::BlockedByWatermark => "watermark",
        Verdict::BlockedByQuality => "quality",
        Verdict::BlockedBySchema => "schema",
        Verdict::BlockedByTag => "tag",
        Verdict::BlockedByBackfill => "backfill",
        Verdict::BlockedByRewrite => "rewrite",
        Verdict::BlockedByUnknownAsset => "unknown_asset",
        Verdict::BlockedByGate => "gate",
        Verdict::Paused => "paused",
        Verdict::Disabled => "disabled",
    }
}

/// Writes measurements. Clones write to the same place.
#[derive(Clone)]
pub struct Metrics {
    namespace: String,
    clock: Arc<dyn Clock>,
    out: Arc<Mutex<dyn Write + Send>>,
}

impl Metrics {
    /// Metrics on standard output, in the namespace that `LAKEBELL_METRICS_NAMESPACE` names, or
    /// else in `Lakebell`.
    pub fn from_env() -> Self {
        let namespace = std::env::var("LAKEBELL_METRICS_NAMESPACE").ok().filter(|name| !name.is_empty());
        let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        Self::new(namespace, Arc::new(SystemClock), io::stdout())
    }

    /// Metrics in this namespace, written to `out`.
    pub fn new(namespace: impl Into<String>, clock: Arc<dyn Clock>, out: impl Write + Send + 'static) -> Self {
        Self { namespace: namespace.into(), clock, out: Arc::new(Mutex::new(out)) }
    }

    /// Counts one.
    pub fn count(&self, measure: Measure, properties: &[(&str, &str)]) {
        self.record(measure, 1.0, properties);
    }

    /// Records a value, in the unit of the measure. Properties are what it was about, as in
    /// `assetKey`; they are searched, never counted.
    ///
    /// A line that cannot be written is dropped: no event fails for its metric.
    pub fn record(&self, measure: Measure, value: f64, properties: &[(&str, &str)]) {
        let line = self.line(measure, value, properties);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // One write for the whole line, so that no log line comes in between.
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
    }

    fn line(&self, measure: Measure, value: f64, properties: &[(&str, &str)]) -> String {
        let dimensions = measure.dimensions();
        let names: Vec<&str> = dimensions.iter().map(|(name, _)| *name).collect();
        let mut line = Map::new();
        line.extend(properties.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        line.extend(dimensions.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
        line.insert(measure.name().to_owned(), number(value));
        line.insert(
            "_aws".to_owned(),
            json!({
                "Timestamp": self.clock.now().as_millisecond(),
                "CloudWatchMetrics": [{
                    "Namespace": self.namespace,
                    "Dimensions": [names],
                    "Metrics": [{"Name": measure.name(), "Unit": measure.unit()}],
                }],
            }),
        );
        format!("{}\n", Value::Object(line))
    }
}

/// Whole numbers without a fraction; what is no number counts as 0.
fn number(value: f64) -> Value {
    #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { json!(value) }
}

#[cfg(test)]
mod tests {
    use lakebell_testkit::SimClock;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(record: impl FnOnce(&Metrics)) -> String {
        let lines = Lines::default();
        record(&Metrics::new("Lakebell", Arc::new(SimClock::default()), lines.clone()));
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_is_as_cloudwatch_reads_it() {
        let measure = Measure::EventInvalid { source_type: Some(Format::Paimon), reason: "INVALID" };
        let line =
            written(|metrics| metrics.count(measure, &[("assetKey", "paimon://ods/orders"), ("reason", "never")]));
        let golden = concat!(
            r#"{"_aws":{"CloudWatchMetrics":[{"Dimensions":[["source_type","reason"]],"#,
            r#""Metrics":[{"Name":"lakehouse_asset_event_invalid_total","Unit":"Count"}],"Namespace":"Lakebell"}],"#,
            r#""Timestamp":1767225600000},"assetKey":"paimon://ods/orders","#,
            r#""lakehouse_asset_event_invalid_total":1,"reason":"INVALID","source_type":"paimon"}"#,
            "\n"
        );
        assert_eq!(line, golden);
    }

    #[test]
    fn lags_are_seconds_and_a_metric_may_have_no_dimension() {
        let lag = written(|metrics| metrics.record(Measure::StateLag { source_type: Format::Delta }, 2.5, &[]));
        assert!(
            lag.contains(r#""Unit":"Seconds""#) && lag.contains(r#""lakehouse_asset_state_lag_seconds":2.5"#),
            "{lag}"
        );
        let scan = written(|metrics| metrics.count(Measure::CompensationScan, &[]));
        assert!(scan.contains(r#""Dimensions":[[]]"#), "{scan}");
        let odd = written(|metrics| metrics.record(Measure::CompensationScan, f64::NAN, &[]));
        assert!(odd.contains(r#""lakehouse_asset_compensation_scan_total":null"#), "{odd}");
    }

    #[test]
    fn an_age_passes_every_shorter_one() {
        let passed = |seconds: f64| OlderThan::passed_by(seconds).map(OlderThan::as_str).collect::<Vec<_>>();
        assert_eq!(passed(3_600.0), [""; 0]);
        assert_eq!(passed(90_000.0), ["1h", "6h", "1d"]);
    }

    #[test]
    fn dimensions_come_from_a_closed_set() {
        let closed = [
            "source_type",
            "reason",
            "outcome",
            "blocked_by",
            "trigger_source",
            "trigger_status",
            "older_than",
            "answer",
            "state",
            "kind",
        ];
        let all = [
            Measure::EventReceived { source_type: Format::Paimon },
            Measure::EventDeduplicated { source_type: Format::Paimon },
            Measure::EventInvalid { source_type: None, reason: "INVALID" },
            Measure::StateUpdated { source_type: Format::Hudi, outcome: "advanced" },
            Measure::StateLag { source_type: Format::Paimon },
            Measure::WatermarkLag { source_type: Format::Paimon },
            Measure::DependencyReady,
            Measure::DeadlinePassed,
            Measure::SelfLoop,
            Measure::DependencyBlocked { verdict: Verdict::BlockedByQuality },
            Measure::TriggerSuccess { trigger_source: "asset_event" },
            Measure::TriggerFailed { reason: "HTTP_401" },
            Measure::SensorAnswered { answer: "waiting" },
            Measure::WorkflowEnded { state: FollowedState::Failure },
            Measure::ExtraInstance,
            Measure::NoticeFailed,
            Measure::TokenExpiring,
            Measure::AuditFinding { kind: FindingKind::Extra },
            Measure::AssetOlder { source_type: Format::Delta, older_than: OlderThan::Week },
            Measure::NotificationsMissing { source_type: Format::Paimon },
            Measure::TableDiscovered { source_type: Format::Paimon },
            Measure::ConsumerFile { outcome: "moved" },
            Measure::CompensationScan,
            Measure::CompensationMissed { source_type: Format::Iceberg },
            Measure::TriggerRetry { trigger_status: StatusWord::Unknown },
        ];
        for measure in all {
            assert!(measure.name().starts_with("lakehouse_asset_"));
            assert!(measure.dimensions().iter().all(|(name, _)| closed.contains(name)), "{measure:?}");
        }
        assert_eq!(all[2].dimensions()[0], ("source_type", "unknown"));
        let blocked = Measure::DependencyBlocked { verdict: Verdict::BlockedByQuality };
        assert_eq!(blocked.dimensions(), [("blocked_by", "quality")]);
    }
}
