//! Notices on an EventBridge bus.
//!
//! `PutEvents` is one signed POST. It is made here with the signer and the HTTP client that the other
//! SDKs bring along, because an SDK of its own would make each function larger by more than all of
//! this (docs/adr/0014-notices.md).
//!
//! Source: Amazon EventBridge API Reference, `PutEvents`: at most 10 entries and 256 KiB of one
//! request; the answer counts the entries that were not taken.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use lakebell_domain::notice::Notice;
use lakebell_engine::ports::notices::{Delivered, Notices};
use lakebell_engine::ports::time::Clock;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

/// Most entries of one request.
const MOST_ENTRIES: usize = 10;
/// Most bytes of one notice: ten of them stay below the limit of a request.
const MOST_BYTES: usize = 24 * 1024;
/// Most notices that are kept for one delivery; a batch of hints leads to a few dozen.
const MOST_KEPT: usize = 500;
/// The longest time of one delivery. An invocation has done its work by then, and waits for nothing else.
const LONGEST_DELIVERY: Duration = Duration::from_secs(3);
/// What EventBridge calls who sends.
const SOURCE: &str = "lakebell";
/// The operation, in the header that names it.
const TARGET: &str = "AWSEvents.PutEvents";

/// [`Notices`] on a bus.
pub struct BusNotices {
    bus: String,
    endpoint: String,
    region: String,
    credentials: SharedCredentialsProvider,
    connector: SharedHttpConnector,
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

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("credentials: {0}")]
    Credentials(#[from] aws_credential_types::provider::error::CredentialsError),
    #[error("signing: {0}")]
    Signing(String),
    #[error("sending: {0}")]
    Sending(String),
    #[error("EventBridge answered {0}")]
    Answer(u16),
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
    /// Notices on the bus with this name or ARN; `None` where region or credentials are not known, or
    /// there is no HTTP client: then nobody can be told.
    pub fn new(bus: &str, sdk: &SdkConfig, clock: Arc<dyn Clock>) -> Option<Self> {
        let region = sdk.region()?.to_string();
        let settings = HttpConnectorSettings::builder()
            .connect_timeout(Duration::from_secs(1))
            .read_timeout(Duration::from_secs(2))
            .build();
        Some(Self {
            bus: bus.to_owned(),
            endpoint: sdk.endpoint_url().map_or_else(|| endpoint_of(&region), str::to_owned),
            region,
            credentials: sdk.credentials_provider()?,
            connector: aws_smithy_http_client::default_connector(&settings, sdk.sleep_impl())?,
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

    async fn put(&self, entries: &[Value]) -> Result<Answer, Trouble> {
        let body = json!({ "Entries": entries }).to_string();
        let request = self.signed(body).await?;
        let answer = self.connector.call(request).await.map_err(|error| Trouble::Sending(error.to_string()))?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(Trouble::Answer(status));
        }
        let body = ByteStream::new(answer.into_body()).collect().await;
        let body = body.map_err(|error| Trouble::Sending(error.to_string()))?;
        Ok(serde_json::from_slice(&body.into_bytes()).unwrap_or_default())
    }

    async fn signed(&self, body: String) -> Result<HttpRequest, Trouble> {
        let failed = |error: &dyn fmt::Display| Trouble::Signing(error.to_string());
        let identity = self.credentials.provide_credentials().await?.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("events")
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| failed(&error))?
            .into();
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", TARGET)];
        let uri = format!("{}/", self.endpoint.trim_end_matches('/'));
        let signable = SignableRequest::new("POST", &uri, headers.into_iter(), SignableBody::Bytes(body.as_bytes()));
        let signable = signable.map_err(|error| failed(&error))?;
        let (instructions, _) = sign(signable, &params).map_err(|error| failed(&error))?.into_parts();
        let (signed, _) = instructions.into_parts();
        let mut request = HttpRequest::new(SdkBody::from(body));
        request.set_method("POST").map_err(|error| failed(&error))?;
        request.set_uri(uri).map_err(|error| failed(&error))?;
        for (name, value) in headers {
            request.headers_mut().insert(name, value);
        }
        for header in signed {
            request.headers_mut().insert(header.name(), header.value().to_owned());
        }
        Ok(request)
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
                    Err(trouble) => {
                        // The rest would fare the same, and the invocation waits.
                        tracing::warn!(bus = self.bus, error = %trouble, "notices were not taken");
                        break;
                    }
                }
            }
            taken
        };
        match timeout(LONGEST_DELIVERY, sending).await {
            Ok(taken) => delivered.sent = taken,
            Err(_) => tracing::warn!(bus = self.bus, "notices were not taken in time"),
        }
        delivered.failed += total - delivered.sent;
        delivered
    }
}
