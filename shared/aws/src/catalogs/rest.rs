//! Iceberg's REST protocol: where a table's current metadata file is, by `LoadTable`.
//!
//! <https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml>

use std::sync::Arc;
use std::time::{Duration, Instant};

use lakebell_domain::asset::AssetKey;
use lakebell_engine::catalog::{Access, RestCatalog};
use lakebell_engine::{EngineError, ErrorKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::answer::{Finder, Found};
use super::sign::Signer;
use super::tokens::Tokens;
use crate::Secrets;
use crate::cache::Cache;
use crate::http::{Answer, Http, Request, away};

/// The longest time that a catalog's answer about its paths is used.
const CONFIG_AGE: Duration = Duration::from_mins(10);
/// Largest answer about the catalog itself, and of one that says what is wrong.
const MAX_SMALL_ANSWER: usize = 1 << 20;
/// Largest answer about a table that is looked through: it holds the whole metadata.
const MAX_ANSWER: usize = 256 << 20;
/// Longest part of a catalog's message that is told.
const MAX_SAID: usize = 200;
/// Everything but the unreserved characters of RFC 3986.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Between the levels of a namespace in a path, by the protocol.
const LEVELS: &str = "%1F";

/// Asks REST catalogs.
#[derive(Debug)]
pub(super) struct Rest {
    http: Http,
    signer: Signer,
    tokens: Tokens,
    prefixes: Cache<String>,
}

#[derive(Deserialize, Default)]
struct Config {
    #[serde(default)]
    overrides: Paths,
    #[serde(default)]
    defaults: Paths,
}

#[derive(Deserialize, Default)]
struct Paths {
    prefix: Option<String>,
}

#[derive(Deserialize)]
struct Problem {
    error: Said,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    message: String,
    r#type: String,
}

impl Rest {
    pub(super) fn new(http: Http, signer: Signer, secrets: Arc<Secrets>) -> Self {
        let tokens = Tokens::new(http.clone(), secrets);
        Self { http, signer, tokens, prefixes: Cache::new(CONFIG_AGE) }
    }

    pub(super) async fn current(&self, catalog: &RestCatalog, key: &AssetKey) -> Result<String, EngineError> {
        let prefix = self.prefix(catalog).await?;
        let (database, table) = (catalog.table.database(key), catalog.table.table(key));
        let namespace: Vec<String> = database.split('.').map(segment).collect();
        // Only the snapshots that branches and tags are at, from catalogs that know the parameter.
        let url = format!(
            "{}/v1/{prefix}namespaces/{}/tables/{}?snapshots=refs",
            catalog.url,
            namespace.join(LEVELS),
            segment(table)
        );
        let mut answer = self.get(catalog, url).await?;
        if answer.status != 200 {
            return Err(refused(&mut answer, &format!("{database}.{table}")).await);
        }
        location(&mut answer).await
    }

    /// What comes after `v1/` in the catalog's paths, with a slash at the end where there is something.
    async fn prefix(&self, catalog: &RestCatalog) -> Result<String, EngineError> {
        let warehouse = catalog.warehouse.as_deref().map(segment);
        let query = warehouse.map(|warehouse| format!("?warehouse={warehouse}")).unwrap_or_default();
        let url = format!("{}/v1/config{query}", catalog.url);
        let asked_at = Instant::now();
        if let Some(known) = self.prefixes.get(&url, asked_at) {
            return Ok(known);
        }
        let mut answer = self.get(catalog, url.clone()).await?;
        if answer.status != 200 {
            let error = refused(&mut answer, "the catalog's configuration").await;
            // Nothing is known of the table yet.
            let is_missing = error.kind() == ErrorKind::NotFound;
            return Err(if is_missing {
                EngineError::new(ErrorKind::Denied, error.message().to_owned())
            } else {
                error
            });
        }
        let unclear =
            || EngineError::new(ErrorKind::Damaged, "the catalog's answer to /v1/config cannot be understood");
        let body = answer.bytes(MAX_SMALL_ANSWER).await?.ok_or_else(unclear)?;
        let config: Config = serde_json::from_slice(&body).map_err(|error| unclear().caused_by(error))?;
        let prefix = config.overrides.prefix.or(config.defaults.prefix).unwrap_or_default();
        let prefix = prefix.trim_matches('/');
        // It is put into paths as it is, encoded or not, as the protocol's own clients do.
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%/:@!$&'()*+,;=".contains(&byte);
        if !prefix.bytes().all(is_path) || prefix.split('/').any(|part| part == "..") {
            return Err(unclear());
        }
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        self.prefixes.put(&url, prefix.clone(), asked_at);
        Ok(prefix)
    }

    /// Asks, as whoever the setting says. A token that was refused is fetched anew once: it may have
    /// expired early, or the secret may have been replaced.
    async fn get(&self, catalog: &RestCatalog, url: String) -> Result<Answer, EngineError> {
        let request = Request::get(url);
        match &catalog.access {
            Access::Open => self.http.send(&request).await,
            Access::Signed { service, region } => {
                let region = self.region(catalog, region.as_deref())?;
                let signed = self.signer.sign(request, service.as_str(), region).await?;
                self.http.send(&signed).await
            }
            Access::Secret(secret) => {
                let mut fresh = false;
                loop {
                    let token = self.tokens.token(secret, &catalog.url, fresh).await?;
                    let answer =
                        self.http.send(&request.clone().with("authorization", format!("Bearer {token}"))).await?;
                    // 419 is what the protocol has for an expired token.
                    if fresh || !matches!(answer.status, 401 | 419) {
                        return Ok(answer);
                    }
                    fresh = true;
                }
            }
        }
    }

    /// The region to sign for: the one that is set, that of the host, or the function's own. A signed
    /// request goes to AWS alone, or to the emulator that stands for it.
    fn region<'a>(&'a self, catalog: &'a RestCatalog, set: Option<&'a str>) -> Result<&'a str, EngineError> {
        let host = catalog.url.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', ':']).next().unwrap_or_default();
        let is_aws = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"].iter().any(|suffix| host.ends_with(suffix));
        if !is_aws && !["localhost", "127.0.0.1"].contains(&host) {
            let message = format!("{host} is no host of AWS, and requests are signed for those alone");
            return Err(EngineError::new(ErrorKind::Denied, message));
        }
        let of_host = host.split('.').nth(1).filter(|_| is_aws);
        set.or(of_host).or_else(|| self.signer.region()).ok_or_else(|| {
            EngineError::new(ErrorKind::Denied, "the region to sign for is not known: set `region` of the catalog")
        })
    }
}

/// A text as a segment of a path or a value of a query.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// The place of the metadata file, from the answer about a table.
async fn location(answer: &mut Answer) -> Result<String, EngineError> {
    let unclear = |problem: &str| EngineError::new(ErrorKind::Damaged, format!("the catalog's answer {problem}"));
    let mut finder = Finder::new("metadata-location");
    let mut size = 0;
    while let Some(piece) = answer.next().await? {
        size += piece.len();
        match finder.push(&piece) {
            Found::Text(location) => return Ok(location),
            Found::NoText => return Err(unclear("holds no metadata-location: the table may not be committed yet")),
            Found::NoObject => return Err(unclear("is no JSON object")),
            Found::NotYet if size > MAX_ANSWER => return Err(unclear("is larger than 256 MiB")),
            Found::NotYet => {}
        }
    }
    Err(unclear("ends before it is complete"))
}

/// Why the catalog did not say it.
async fn refused(answer: &mut Answer, about: &str) -> EngineError {
    let status = answer.status;
    if status == 429 || status >= 500 {
        return away(format!("the catalog failed ({status})"));
    }
    let body = answer.bytes(MAX_SMALL_ANSWER).await.ok().flatten().unwrap_or_default();
    let problem = serde_json::from_slice::<Problem>(&body).ok().map(|problem| problem.error);
    let is_of_the_protocol = problem.as_ref().is_some_and(|said| !said.r#type.is_empty());
    let Said { message, r#type: kind } = problem.unwrap_or_default();
    let said: String = format!("{kind}: {message}").chars().filter(|it| !it.is_control()).take(MAX_SAID).collect();
    match status {
        404 if is_of_the_protocol => {
            EngineError::new(ErrorKind::NotFound, format!("the catalog has no table {about} ({said})"))
        }
        404 | 300..=399 => {
            let message =
                format!("there is no Iceberg REST catalog at that URL ({status}): check `url` and `warehouse`");
            EngineError::new(ErrorKind::Denied, message)
        }
        401 | 419 => EngineError::new(ErrorKind::Denied, format!("the catalog takes no such token ({status})")),
        403 => {
            let message = format!("the catalog refuses to show {about}: let Lakebell read it ({said})");
            EngineError::new(ErrorKind::Denied, message)
        }
        _ => EngineError::new(ErrorKind::Denied, format!("the catalog refuses the question ({status} {said})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_segments() {
        assert_eq!(segment("a b/c"), "a%20b%2Fc");
        assert_eq!(
            segment("arn:aws:s3tables:eu-central-1:1:bucket/x"),
            "arn%3Aaws%3As3tables%3Aeu-central-1%3A1%3Abucket%2Fx"
        );
    }
}
