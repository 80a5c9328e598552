//! Notices on an EventBridge bus.
//!
//! `PutEvents` is one signed POST. It is made with the signer and the HTTP client that the SDKs bring
//! along, as questions to catalogs are, because an SDK of its own would make each function larger by
//! more than all of this (docs/adr/0014-notices.md).
//!
//! Source: Amazon EventBridge API Reference, `PutEvents`: at most 10 entries and 256 KiB of one
//! request; the answer counts the entries that were not taken.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use lakebell_domain::notice::Notice;
use lakebell_engine::ports::notices::{Delivered, Notices};
use lakebell_engine::ports::time::Clock;
use lakebell_engine::{EngineError, ErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::catalogs::sign::Signer;
use crate::http::{Http, Request};

/// Most entries of one request.
const MOST_ENTRIES: usize = 10;
/// Most bytes of one notice: ten of them stay below the limit of a request.
const MOST_BYTES: usize = 24 * 1024;
/// Most notices that are kept for one delivery; a batch of hints leads to a few dozen.
const MOST_KEPT: usize = 500;
/// The longest time of one delivery. An invocation has done its work by then, and waits for nothing else.
const LONGEST_DELIVERY: Duration = Duration::from_secs(3);
/// The longest time of one request.
const LONGEST_REQUEST: Duration = Duration::from_secs(2);
/// Most bytes of an answer.
const MOST_ANSWER: usize = 64 * 1024;
/// What EventBridge calls who sends.
const SOURCE: &str = "lakebell";
/// The operation, in the header that names it.
const TARGET: &str = "AWSEvents.PutEvents";

/// [`Notices`] on a bus.
pub struct BusNotices {
    bus: String,
    endpoint: String,
    region: String,
    signer: Signer,
    http: Http,
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: Vec<Value>,
    dropped: usize,
}

impl fmt::Debug for BusNotices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BusNotices({})", self.bus)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Answer {
    failed_entry_count: usize,
    entries: Vec<AnswerEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct AnswerEntry {
    error_code: Option<String>,
}

impl BusNotices {
    /// Notices on the bus with this name or ARN; `None` where the region is not known: then nobody can be
    /// told.
    pub fn new(bus: &str, sdk: &SdkConfig, clock: Arc<dyn Clock>) -> Option<Self> {
        let region = sdk.region()?.to_string();
        Some(Self {
            bus: bus.to_owned(),
            endpoint: sdk.endpoint_url().map_or_else(|| endpoint_of(&region), str::to_owned),
            region,
            signer: Signer::new(sdk),
            http: Http::new(sdk, LONGEST_REQUEST, "EventBridge"),
            clock,
            kept: Mutex::default(),
        })
    }

    fn entry(&self, notice: &Notice) -> Value {
        let envelope = notice.envelope(self.clock.now());
        json!({
            "EventBusName": self.bus,
            "Source": SOURCE,
            "DetailType": notice.type_name(),
            "Time": self.clock.now().as_second(),
            "Detail": envelope.to_string(),
        })
    }

    async fn put(&self, entries: &[Value]) -> Result<Answer, EngineError> {
        let body = json!({ "Entries": entries }).to_string().into_bytes();
        let url = format!("{}/", self.endpoint.trim_end_matches('/'));
        let request = Request::post(url, "application/x-amz-json-1.1", body).with("x-amz-target", TARGET.to_owned());
        let request = self.signer.sign(request, "events", &self.region).await?;
        let mut answer = self.http.send(&request).await?;
        if answer.status != 200 {
            return Err(EngineError::new(ErrorKind::Denied, format!("EventBridge answered {}", answer.status)));
        }
        let bytes = answer.bytes(MOST_ANSWER).await?.unwrap_or_default();
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// The endpoint of a region. Source: AWS General Reference, EventBridge endpoints.
fn endpoint_of(region: &str) -> String {
    let suffix = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://events.{region}.{suffix}")
}

#[async_trait]
impl Notices for BusNotices {
    fn tell(&self, notice: Notice) {
        let entry = self.entry(&notice);
        let is_too_long = entry["Detail"].as_str().is_none_or(|detail| detail.len() > MOST_BYTES);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if is_too_long || kept.entries.len() >= MOST_KEPT {
            kept.dropped += 1;
        } else {
            kept.entries.push(entry);
        }
    }

    async fn deliver(&self) -> Delivered {
        let Kept { entries, dropped } = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let mut delivered = Delivered { sent: 0, failed: dropped };
        let total = entries.len();
        let sending = async {
            let mut taken = 0;
            for chunk in entries.chunks(MOST_ENTRIES) {
                match self.put(chunk).await {
                    Ok(answer) => {
                        taken += chunk.len() - answer.failed_entry_count.min(chunk.len());
                        if let Some(code) = answer.entries.iter().find_map(|entry| entry.error_code.as_ref()) {
                            tracing::warn!(bus = self.bus, code, "the bus did not take every notice");
                        }
                    }
                    Err(error) => {
                        // The rest would fare the same, and the invocation waits.
                        let cause: &(dyn std::error::Error + 'static) = &error;
                        tracing::warn!(bus = self.bus, error = cause, "notices were not taken");
                        break;
                    }
                }
            }
            taken
        };
        if let Ok(taken) = timeout(LONGEST_DELIVERY, sending).await {
            delivered.sent = taken;
        } else {
            tracing::warn!(bus = self.bus, "notices were not taken in time");
        }
        delivered.failed += total - delivered.sent;
        delivered
    }
}
