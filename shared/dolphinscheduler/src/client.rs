//! HTTP: one client for all connections, one attempt for each call.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};

use crate::envelope::{Answer, Transport};

/// The largest answer that is read, in bytes.
const BODY_LIMIT: usize = 8 * 1024 * 1024;

/// The shortest time that a start may be given. From 3.3 on the scheduler itself waits 3 s for a
/// master, so that shorter times would make ambiguous what an answer was under way for.
const SHORTEST_START: Duration = Duration::from_secs(10);

/// Limits of calls, and what to trust.
#[derive(Debug, Clone)]
pub struct Options {
    /// The longest time for a start, connection included; at least 10 s whatever is given.
    pub start_timeout: Duration,
    /// The longest time for a read.
    pub read_timeout: Duration,
    /// The longest time for making a connection.
    pub connect_timeout: Duration,
    /// Certificate authorities to trust besides the system's, as PEM text.
    pub ca_pem: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            start_timeout: SHORTEST_START,
            read_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            ca_pem: None,
        }
    }
}

/// Why the client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The given certificate authorities are not PEM, or hold no certificate.
    #[error("the certificate authority is not usable: give PEM text with at least one certificate")]
    Authority(#[source] Option<reqwest::Error>),
    /// TLS or the resolver cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// Sends calls.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub(crate) start_timeout: Duration,
    read_timeout: Duration,
}

/// Where a call goes and with which token.
pub(crate) struct Target<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) token: &'a str,
}

impl Client {
    pub(crate) fn new(options: &Options) -> Result<Self, BuildError> {
        let mut headers = HeaderMap::new();
        // Texts are matched, so the language must not depend on the server's or the user's.
        headers.insert("language", HeaderValue::from_static("en_US"));
        // Somebody in this process may have installed one already, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(options.connect_timeout)
            // A function may be frozen between calls: a connection from before it is dead, and a
            // start written to it would be ambiguous for nothing. It also rules out the transport's
            // own second try on a connection that was closed meanwhile.
            .pool_max_idle_per_host(0)
            .retry(reqwest::retry::never())
            // The token goes to the declared address and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false);
        if let Some(pem) = &options.ca_pem {
            let authorities = reqwest::Certificate::from_pem_bundle(pem.as_bytes())
                .map_err(|error| BuildError::Authority(Some(error)))?;
            if authorities.is_empty() {
                return Err(BuildError::Authority(None));
            }
            builder = builder.tls_certs_merge(authorities);
        }
        let http = builder.build().map_err(BuildError::Client)?;
        Ok(Self { http, start_timeout: options.start_timeout.max(SHORTEST_START), read_timeout: options.read_timeout })
    }

    /// Reads.
    pub(crate) async fn get(&self, target: &Target<'_>, path: &str, query: &[(&str, String)]) -> Answer {
        let request = self.http.get(url(target, path)).query(query).timeout(self.read_timeout);
        answer(request, target.token).await
    }

    /// Sends a form, once.
    pub(crate) async fn post(&self, target: &Target<'_>, path: &str, form: &[(&str, String)]) -> Answer {
        let request = self.http.post(url(target, path)).form(form).timeout(self.start_timeout);
        answer(request, target.token).await
    }
}

fn url(target: &Target<'_>, path: &str) -> String {
    format!("{}/{path}", target.base_url.trim_end_matches('/'))
}

async fn answer(request: reqwest::RequestBuilder, token: &str) -> Answer {
    let Ok(mut token) = HeaderValue::from_str(token) else {
        let detail = "the connection's secret holds no text that can be sent as a token".to_owned();
        return Answer::None { transport: Transport::NotSent, detail };
    };
    token.set_sensitive(true);
    let mut response = match request.header("token", token).send().await {
        Ok(response) => response,
        Err(error) => return none(&error),
    };
    let status = response.status().as_u16();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > BODY_LIMIT => {
                let detail = format!("the answer is larger than {BODY_LIMIT} bytes");
                return Answer::None { transport: Transport::MaybeSent, detail };
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Answer::read(status, &body),
            // 401 and 429 say all they have to say in the status.
            Err(_) if matches!(status, 401 | 429) => return Answer::read(status, &[]),
            Err(error) => return none(&error),
        }
    }
}

fn none(error: &reqwest::Error) -> Answer {
    let unsent = error.is_connect() || error.is_builder();
    let transport = if unsent { Transport::NotSent } else { Transport::MaybeSent };
    Answer::None { transport, detail: describe(error) }
}

/// What happened, with its causes and without the URL, which names hosts and query values.
fn describe(error: &reqwest::Error) -> String {
    let what = if error.is_builder() {
        "the address is not usable"
    } else if error.is_connect() {
        "no connection"
    } else if error.is_timeout() {
        "no answer in time"
    } else {
        "the connection broke"
    };
    let mut text = what.to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_never_given_less_than_ten_seconds() {
        let options = Options { start_timeout: Duration::from_secs(1), ..Options::default() };
        assert_eq!(Client::new(&options).unwrap().start_timeout, Duration::from_secs(10));
    }

    #[test]
    fn a_private_authority_is_taken_from_pem_text() {
        let pem = include_str!("../tests/data/authority.pem");
        for text in [pem.to_owned(), pem.repeat(2)] {
            let options = Options { ca_pem: Some(text), ..Options::default() };
            assert!(Client::new(&options).is_ok());
        }
    }

    #[test]
    fn an_unusable_authority_is_refused() {
        for pem in ["", "not PEM", "-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----"] {
            let options = Options { ca_pem: Some(pem.to_owned()), ..Options::default() };
            assert!(matches!(Client::new(&options), Err(BuildError::Authority(_) | BuildError::Client(_))), "{pem}");
        }
    }
}
