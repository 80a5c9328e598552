//! What a catalog is shown: a bearer token, or one that `OAuth2` gives for a client's credentials.
//!
//! A secret names the catalog that it is for (`url`), so that a setting of an asset, which more people
//! may write than secrets, cannot send it elsewhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lakebell_engine::{EngineError, ErrorKind};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::Secrets;
use crate::http::{Http, Request, away};

/// Largest answer of a token endpoint.
const MAX_ANSWER: usize = 64 << 10;
/// How long a token is used whose answer does not say how long it is good for.
const UNKNOWN_AGE: Duration = Duration::from_mins(5);
/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_mins(1);
/// Most tokens that are kept.
const MOST_TOKENS: usize = 64;

/// What a secret holds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    /// The catalog that it is for: the base URL of the setting, or what that begins with.
    url: String,
    token: Option<String>,
    #[serde(alias = "client_id")]
    client_id: Option<String>,
    #[serde(alias = "client_secret")]
    client_secret: Option<String>,
    /// `catalog` where absent.
    scope: Option<String>,
    /// The catalog's own, `/v1/oauth/tokens`, where absent.
    #[serde(alias = "token_url")]
    token_url: Option<String>,
}

#[derive(Deserialize)]
struct Given {
    access_token: String,
    expires_in: Option<u64>,
}

/// Tokens by secret.
pub(super) struct Tokens {
    http: Http,
    secrets: Arc<Secrets>,
    kept: Mutex<HashMap<String, (String, Instant)>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    pub(super) fn new(http: Http, secrets: Arc<Secrets>) -> Self {
        Self { http, secrets, kept: Mutex::default() }
    }

    /// The token for a catalog by the secret of this name. `fresh` takes none that was used before.
    pub(super) async fn token(&self, secret: &str, url: &str, fresh: bool) -> Result<String, EngineError> {
        let name = format!("{secret} {url}");
        if !fresh && let Some(token) = self.kept(&name) {
            return Ok(token);
        }
        let text = self.secrets.text(secret, fresh).await.map_err(of_secret)?;
        let held: Held = serde_json::from_str(&text).map_err(|_| {
            let form = r#"{"url": "...", "token": "..."} or {"url": "...", "clientId": "...", "clientSecret": "..."}"#;
            denied(secret, &format!("is not of the form {form}"))
        })?;
        if !is_for(&held.url, url) {
            return Err(denied(secret, "is for another catalog: its `url` is not what the setting's begins with"));
        }
        match (held.token, held.client_id, held.client_secret) {
            (Some(token), None, None) if !token.is_empty() => Ok(token),
            (None, Some(id), Some(key)) => {
                let token_url = held.token_url.unwrap_or_else(|| format!("{url}/v1/oauth/tokens"));
                let scope = held.scope.as_deref().unwrap_or("catalog");
                let (token, age) = self
                    .exchange(secret, &token_url, &[("client_id", &id), ("client_secret", &key), ("scope", scope)])
                    .await?;
                self.keep(name, &token, age);
                Ok(token)
            }
            _ => Err(denied(secret, "needs either `token`, or `clientId` and `clientSecret`")),
        }
    }

    /// `OAuth2`'s client credentials grant (RFC 6749, 4.4), the credentials in the form, as Iceberg's
    /// REST protocol has it.
    async fn exchange(
        &self,
        secret: &str,
        token_url: &str,
        fields: &[(&str, &str)],
    ) -> Result<(String, Duration), EngineError> {
        let is_local = ["http://127.0.0.1", "http://localhost"].iter().any(|local| token_url.starts_with(local));
        if !token_url.starts_with("https://") && !is_local {
            return Err(denied(secret, "has a `tokenUrl` that is not https"));
        }
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut form = "grant_type=client_credentials".to_owned();
        for (name, value) in fields {
            form.push_str(&["&", name, "=", &encoded(value)].concat());
        }
        let request = Request::post(token_url.to_owned(), "application/x-www-form-urlencoded", form.into_bytes());
        let mut answer = self.http.send(&request).await?;
        match answer.status {
            200 => {}
            429 | 500.. => return Err(away(format!("the catalog's token endpoint failed ({})", answer.status))),
            status => {
                // What it says is not told: it may repeat what it was sent.
                return Err(denied(secret, &format!("was refused by the token endpoint ({status})")));
            }
        }
        let unclear = || EngineError::new(ErrorKind::Damaged, "the token endpoint's answer holds no access_token");
        let body = answer.bytes(MAX_ANSWER).await?.ok_or_else(unclear)?;
        let given: Given = serde_json::from_slice(&body).map_err(|_| unclear())?;
        let age = given.expires_in.map_or(UNKNOWN_AGE, Duration::from_secs);
        // Of a short one at least the first half is used.
        Ok((given.access_token, age.saturating_sub(MARGIN).max(age / 2)))
    }

    fn kept(&self, name: &str) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(name).filter(|(_, until)| Instant::now() < *until).map(|(token, _)| token.clone())
    }

    fn keep(&self, name: String, token: &str, age: Duration) {
        let Some(until) = Instant::now().checked_add(age) else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_TOKENS {
            kept.clear();
        }
        kept.insert(name, (token.to_owned(), until));
    }
}

/// Whether a secret for one place may be shown at another: at the same one, or below it.
fn is_for(place: &str, url: &str) -> bool {
    let place = place.trim_end_matches('/');
    let has_host = place.split_once("://").is_some_and(|(_, rest)| !rest.is_empty());
    has_host && url.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A secret that cannot be read is the setting's fault, not the table's.
fn of_secret(error: EngineError) -> EngineError {
    match error.kind() {
        ErrorKind::Unavailable => error,
        _ => EngineError::new(ErrorKind::Denied, error.message().to_owned()).caused_by(error),
    }
}

fn denied(secret: &str, problem: &str) -> EngineError {
    EngineError::new(ErrorKind::Denied, format!("secret `{secret}` {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_for_its_own_catalog() {
        let table = [
            ("https://c.internal", "https://c.internal", true),
            ("https://c.internal/", "https://c.internal/api/catalog", true),
            ("https://c.internal/api", "https://c.internal/api/catalog", true),
            ("https://c.internal/api", "https://c.internal/apis", false),
            ("https://c.internal", "https://c.internal.evil.example", false),
            ("https://c.internal", "https://c.internal:444", false),
            ("https://c.internal", "http://c.internal", false),
            ("https://", "https://c.internal", false),
            ("", "https://c.internal", false),
        ];
        for (place, url, expected) in table {
            assert_eq!(is_for(place, url), expected, "{place} {url}");
        }
    }
}
