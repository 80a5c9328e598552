//! The API over HTTP.

use std::error::Error as _;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use serde::Serialize;
use serde_json::Value;

use crate::error::{CliError, Problem};
use crate::settings::Access;

/// A little more than the 29 s after which the gateway itself gives up.
const TIMEOUT: Duration = Duration::from_secs(31);
/// Every request of this client may be sent again: it declares, reads or removes, or it is a verb
/// that is refused the second time.
const ATTEMPTS: u32 = 3;
/// The longest wait between attempts that a person at a terminal should bear.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The largest page that the API serves.
const PAGE: usize = 200;
/// The code of a page that no gateway would carry: smaller ones are asked for.
const TOO_LARGE: &str = "ANSWER_TOO_LARGE";
/// Everything but the unreserved characters of a URL.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The API.
pub(crate) struct Api {
    http: reqwest::Client,
    access: Access,
}

/// One request.
pub(crate) struct Request<'a> {
    method: Method,
    path: &'a [&'a str],
    query: Vec<(&'a str, String)>,
    body: Option<Value>,
}

impl<'a> Request<'a> {
    pub(crate) fn get(path: &'a [&'a str]) -> Self {
        Self { method: Method::GET, path, query: Vec::new(), body: None }
    }

    pub(crate) fn delete(path: &'a [&'a str]) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }

    pub(crate) fn post(path: &'a [&'a str]) -> Self {
        Self { method: Method::POST, ..Self::get(path) }
    }

    pub(crate) fn put(path: &'a [&'a str]) -> Self {
        Self { method: Method::PUT, ..Self::get(path) }
    }

    pub(crate) fn query(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn body(mut self, body: &impl Serialize) -> Result<Self, CliError> {
        let body = serde_json::to_value(body)
            .map_err(|error| CliError::failed(format!("the request cannot be written: {error}"), "report this"))?;
        self.body = Some(body);
        Ok(self)
    }
}

impl Api {
    /// A client; nothing is sent yet.
    pub(crate) fn new(access: Access) -> Result<Self, CliError> {
        // Fails where there is one already, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder().timeout(TIMEOUT).connect_timeout(Duration::from_secs(10));
        if is_loopback(&access.url) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| CliError::failed(format!("no HTTP client: {error}"), "check the proxy settings"))?;
        Ok(Self { http, access })
    }

    /// Sends a request and reads the answer; `Null` where it has no body.
    pub(crate) async fn send(&self, request: &Request<'_>) -> Result<Value, CliError> {
        let mut attempt = 1;
        loop {
            let response = self.try_once(request).await?;
            let status = response.status();
            if status.is_success() {
                return self.read(response).await;
            }
            let wait = wait_of(&response);
            let may_retry = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
            if !may_retry || attempt == ATTEMPTS || wait > LONGEST_WAIT {
                return Err(self.refusal(response).await);
            }
            attempt += 1;
            tokio::time::sleep(wait).await;
        }
    }

    /// The URL of a path.
    pub(crate) fn url_of(&self, path: &[&str]) -> String {
        let mut url = self.access.url.clone();
        for segment in path {
            url.push('/');
            url.extend(utf8_percent_encode(segment, SEGMENT));
        }
        url
    }

    async fn try_once(&self, request: &Request<'_>) -> Result<Response, CliError> {
        let url = self.url_of(request.path);
        let mut builder =
            self.http.request(request.method.clone(), url).bearer_auth(&self.access.token).query(&request.query);
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        builder.send().await.map_err(|error| self.unreachable(&error))
    }

    async fn read(&self, response: Response) -> Result<Value, CliError> {
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes).map_err(|error| {
            CliError::failed(
                format!("the answer of {} is no JSON: {error}", self.access.url),
                "is this the URL of Lakebell's API?",
            )
        })
    }

    async fn refusal(&self, response: Response) -> CliError {
        let status = response.status();
        let body = match response.bytes().await {
            Ok(body) => body,
            Err(error) => return self.unreachable(&error),
        };
        let mut problem = serde_json::from_slice::<Problem>(&body).unwrap_or_default();
        problem.status = status.as_u16();
        if problem.title.is_empty() && problem.detail.is_empty() {
            let text: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            problem.detail = format!("the API answered {status}: {text}");
        }
        if problem.hint.is_none() && status == StatusCode::UNAUTHORIZED {
            problem.hint = Some("check --token or LAKEBELL_API_TOKEN".to_owned());
        }
        CliError::Refused(Box::new(problem))
    }

    fn unreachable(&self, error: &reqwest::Error) -> CliError {
        let mut causes = error.source();
        let mut said = error.to_string();
        while let Some(cause) = causes {
            said = cause.to_string();
            causes = cause.source();
        }
        let hint = if error.is_timeout() {
            "try again; every command may be repeated"
        } else {
            "check the URL, and that it can be reached from here; a local one starts with `cargo xtask up`"
        };
        CliError::failed(format!("{} does not answer: {said}", self.access.url), hint)
    }

    /// Every item of a list, or the first `limit`.
    pub(crate) async fn list(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        limit: Option<usize>,
    ) -> Result<Vec<Value>, CliError> {
        let mut items = Vec::new();
        let mut after: Option<String> = None;
        let mut size = PAGE;
        loop {
            let wanted = limit.map_or(size, |limit| limit.saturating_sub(items.len()).min(size));
            if wanted == 0 {
                return Ok(items);
            }
            let mut request = Request::get(path).query("limit", wanted.to_string());
            request.query.extend(query.iter().cloned());
            if let Some(after) = &after {
                request = request.query("after", after);
            }
            let mut page = match self.send(&request).await {
                Err(CliError::Refused(problem)) if problem.code == TOO_LARGE && wanted > 1 => {
                    size = wanted / 2;
                    continue;
                }
                page => page?,
            };
            if let Some(Value::Array(more)) = page.get_mut("items").map(Value::take) {
                items.extend(more);
            }
            match page.get("next").and_then(Value::as_str) {
                Some(next) => after = Some(next.to_owned()),
                None => return Ok(items),
            }
        }
    }
}

fn wait_of(response: &Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

fn is_loopback(url: &str) -> bool {
    reqwest::Url::parse(url).ok().is_some_and(|url| {
        url.host_str().is_some_and(|host| {
            host == "localhost"
                || host.trim_matches(['[', ']']).parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
        })
    })
}
