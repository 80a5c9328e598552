//! Logs as lines of JSON on standard output.
//!
//! A line has `timestamp`, `level`, `logger` and `message`, the fields of the spans it stands in,
//! and its own fields, all on one level. Fields are named as in RFC apache/dolphinscheduler#18627,
//! section 6.2: `traceId`, `assetKey`, `partitionKey`, `snapshotId`, `schemaId`, `watermark`,
//! `eventType`, `eventId`, `workflowDefinitionCode`, `taskDefinitionCode`, `workflowInstanceId`,
//! `taskInstanceId`, `triggerKey`, `status`, `reason`; Lakebell adds `target`, `connection`,
//! `outcome` and `attempt`. Secrets are never fields.
//!
//! A handler opens a span with `traceId` and writes at least one line for each event, also where
//! nothing changed: that line is how a hint is followed to its workflow.
//!
//! `LAKEBELL_LOG` sets the level (`info` where it is not set) or levels by module, as in
//! `info,lakebell_engine=debug` (`Targets` of tracing-subscriber, which unlike `EnvFilter` brings no
//! regular expressions into the functions).

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Scope};
use tracing_subscriber::util::SubscriberInitExt;

/// The level where none is set, or one that is not understood.
const DEFAULT_LEVEL: LevelFilter = LevelFilter::INFO;

/// Sends logs to standard output from now on. A second call changes nothing.
pub fn init() {
    let wanted = std::env::var("LAKEBELL_LOG").ok().filter(|level| !level.trim().is_empty());
    let parsed = wanted.as_deref().map(str::parse::<Targets>);
    let refused = matches!(parsed, Some(Err(_)));
    let filter = parsed.and_then(Result::ok).unwrap_or_else(|| Targets::new().with_default(DEFAULT_LEVEL));
    let lines = JsonLines::new(io::stdout());
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() && refused {
        tracing::warn!(LAKEBELL_LOG = wanted, "the log level is not understood, `info` is used");
    }
}

/// Writes each event as one line of JSON.
pub struct JsonLines<W> {
    out: Mutex<W>,
}

impl<W: Write> JsonLines<W> {
    /// Lines to `out`.
    pub const fn new(out: W) -> Self {
        Self { out: Mutex::new(out) }
    }
}

/// The fields of a span.
struct Fields(Map<String, Value>);

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields(Map::new());
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Fields(Map::new());
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.clone());
            }
        }
        event.record(&mut line);
        let Fields(mut line) = line;
        line.insert("timestamp".to_owned(), format!("{:.3}", Timestamp::now()).into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        line.insert("logger".to_owned(), event.metadata().target().into());
        let line = format!("{}\n", Value::Object(line));
        // A line that cannot be written is dropped: no event fails for its log.
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(line.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut chain = value.to_string();
        let mut source = value.source();
        while let Some(cause) = source {
            chain.push_str(": ");
            chain.push_str(&cause.to_string());
            source = cause.source();
        }
        self.put(field, chain);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lakebell_engine::{EngineError, ErrorKind};

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

    fn logged(log: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let filter = Targets::new().with_default(DEFAULT_LEVEL);
        let subscriber = tracing_subscriber::registry().with(filter).with(JsonLines::new(lines.clone()));
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_has_the_fields_of_its_spans() {
        let lines = logged(|| {
            let outer = tracing::info_span!("event", traceId = "t1", assetKey = tracing::field::Empty);
            let _outer = outer.enter();
            outer.record("assetKey", "paimon://ods/orders");
            let _inner = tracing::info_span!("observe", snapshotId = 7_u64).entered();
            tracing::info!(status = "READY", late = false, share = 0.5, delta = -1, "dependency ready");
            tracing::debug!("not at this level");
        });
        let [line] = lines.as_slice() else { panic!("one line: {lines:?}") };
        let expected = serde_json::json!({
            "timestamp": line["timestamp"], "level": "INFO", "logger": "lakebell_aws::logging::tests",
            "message": "dependency ready", "traceId": "t1", "assetKey": "paimon://ods/orders", "snapshotId": 7,
            "status": "READY", "late": false, "share": 0.5, "delta": -1,
        });
        assert_eq!(*line, expected);
        assert!(line["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok());
    }

    #[test]
    fn an_error_is_logged_with_its_causes() {
        let cause = EngineError::new(ErrorKind::Denied, "the inner one");
        let error = EngineError::new(ErrorKind::Unavailable, "the outer one").caused_by(cause);
        let error: &(dyn std::error::Error + 'static) = &error;
        let lines = logged(|| tracing::error!(error, shown = %"a\nb", "failed"));
        assert_eq!(lines[0]["error"], "UNAVAILABLE: the outer one: DENIED: the inner one");
        assert_eq!(lines[0]["shown"], "a\nb");
    }
}
