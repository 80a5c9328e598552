//! One request and its answer, bounded in time and size.

use std::fmt;
use std::time::Duration;

use crate::config::TLS;
use aws_config::SdkConfig;
use aws_smithy_http_client::Connector;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::byte_stream::ByteStream;
use lakebell_engine::{EngineError, ErrorKind};
use tokio::time::{Instant, sleep, timeout_at};

/// The longest time until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Tries of one question.
const MOST_TRIES: u32 = 2;
/// How long after a try that failed the next one begins.
const PAUSE: Duration = Duration::from_millis(250);

/// A request, kept so that it can be sent again.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    /// Name in lower case, and value.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// Without headers and body, which may hold secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url)
    }
}

impl Request {
    pub(crate) fn get(url: String) -> Self {
        Self { method: "GET", url, headers: vec![("accept", "application/json".to_owned())], body: Vec::new() }
    }

    pub(crate) fn post(url: String, content_type: &str, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", content_type.to_owned()), ("accept", "application/json".to_owned())];
        Self { method: "POST", url, headers, body }
    }

    pub(crate) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    fn build(&self, whom: &str) -> Result<HttpRequest, EngineError> {
        let unsound = |_| {
            // A token that holds a line break, for example; it is not shown.
            let problem = format!("the request to {whom} cannot be written: check URL and secret");
            EngineError::new(ErrorKind::Denied, problem)
        };
        let mut request = HttpRequest::new(SdkBody::from(self.body.clone()));
        request.set_method(self.method).map_err(unsound)?;
        request.set_uri(self.url.as_str()).map_err(unsound)?;
        for (name, value) in &self.headers {
            request.headers_mut().try_insert(*name, value.clone()).map_err(unsound)?;
        }
        if !self.body.is_empty() {
            request.headers_mut().try_insert("content-length", self.body.len().to_string()).map_err(unsound)?;
        }
        Ok(request)
    }
}

/// An answer whose body has not been read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: ByteStream,
    until: Instant,
    whom: &'static str,
}

impl Answer {
    /// The next piece of the body; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        match timeout_at(self.until, self.body.try_next()).await {
            Ok(Ok(piece)) => Ok(piece.map(|piece| piece.to_vec())),
            Ok(Err(error)) => Err(away(format!("the answer of {} broke off", self.whom)).caused_by(error)),
            Err(_) => Err(too_slow(self.whom)),
        }
    }

    /// The body; `None` where it has more than `limit` bytes.
    pub(crate) async fn bytes(&mut self, limit: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.next().await? {
            if bytes.len() + piece.len() > limit {
                return Ok(None);
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(Some(bytes))
    }
}

/// A client of one kind of service: catalogs, or EventBridge.
#[derive(Clone)]
pub(crate) struct Http {
    connector: SharedHttpConnector,
    timeout: Duration,
    whom: &'static str,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Http {
    /// Asks `whom`, as errors call it.
    pub(crate) fn new(sdk: &SdkConfig, timeout: Duration, whom: &'static str) -> Self {
        let settings = HttpConnectorSettings::builder().connect_timeout(CONNECT_TIMEOUT.min(timeout)).build();
        let mut connector = Connector::builder().connector_settings(settings);
        connector.set_sleep_impl(sdk.sleep_impl());
        Self { connector: SharedHttpConnector::new(connector.tls_provider(TLS).build()), timeout, whom }
    }

    /// Sends a request. One that had no answer, or that the other side was too busy or too broken for, is
    /// sent once more: requests change nothing, or nothing that must happen only once.
    ///
    /// Errors: `Unavailable` where there was no answer in time.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, EngineError> {
        let until = Instant::now() + self.timeout;
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = self.try_once(request, until).await;
            let is_worth_another = match &answer {
                Ok(answer) => answer.status == 429 || answer.status >= 500,
                Err(error) => error.retryable() && Instant::now() + PAUSE < until,
            };
            if !is_worth_another || tries >= MOST_TRIES {
                return answer;
            }
            sleep(PAUSE).await;
        }
    }

    async fn try_once(&self, request: &Request, until: Instant) -> Result<Answer, EngineError> {
        let answer =
            timeout_at(until, self.connector.call(request.build(self.whom)?)).await.map_err(|_| too_slow(self.whom))?;
        let answer = answer.map_err(|error| away(format!("{} could not be reached", self.whom)).caused_by(error))?;
        let status = answer.status().as_u16();
        Ok(Answer { status, body: ByteStream::new(answer.into_body()), until, whom: self.whom })
    }
}

pub(crate) fn away(message: impl Into<String>) -> EngineError {
    EngineError::new(ErrorKind::Unavailable, message)
}

fn too_slow(whom: &str) -> EngineError {
    away(format!("{whom} did not answer in time"))
}
