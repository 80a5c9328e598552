//! Settings from the environment.
//!
//! | Variable | Meaning |
//! |---|---|
//! | `LAKEBELL_TABLE` | the DynamoDB table |
//! | `LAKEBELL_DISPATCH_QUEUE_URL` | the queue to the dispatcher |
//! | `LAKEBELL_EVALUATE_QUEUE_URL` | the queue to the watcher |
//! | `LAKEBELL_HINTS_QUEUE_URL` | the queue of notifications; only the push API needs it, as those with dead letters |
//! | `LAKEBELL_HINTS_DEAD_LETTERS_URL`, `LAKEBELL_EVALUATE_DEAD_LETTERS_URL`, `LAKEBELL_DISPATCH_DEAD_LETTERS_URL` | the dead-letter queues |
//! | `LAKEBELL_NOTICE_BUS` | name or ARN of the EventBridge bus that notices go to; without it there are none |
//! | `LAKEBELL_API_TOKEN_SECRET` | name or ARN of the secret with the API's token; only the push API needs it |
//! | `LAKEBELL_SIGNING_SECRET` | name or ARN of the secret that keys of signatures are derived from; only the push API uses it |
//! | `LAKEBELL_API_AUTHORIZATION` | `AWS_IAM` where the gateway checks who signed a request |
//! | `LAKEBELL_API_TOKEN_RATE` | requests a second that a token may send to one instance |
//!
//! Region, credentials and endpoint come from the usual variables of AWS (`AWS_REGION`,
//! `AWS_ENDPOINT_URL` and so on).

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use lakebell_engine::{EngineError, ErrorKind};

/// The cryptography of every TLS connection (docs/adr/0011).
pub(crate) const TLS: Provider = Provider::Rustls(CryptoMode::Ring);
/// The longest time until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest time of one try of a call, until its answer begins.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);
/// Tries of a call that the SDK makes. Writes of items are repeated by [`crate::DynamoItems`].
const MOST_ATTEMPTS: u32 = 3;

/// What a function of Lakebell is told about its deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The DynamoDB table.
    pub table: String,
    /// The URL of the queue to the dispatcher.
    pub dispatch_queue_url: String,
    /// The URL of the queue to the watcher.
    pub evaluate_queue_url: String,
    /// The queues behind the queues, for the function that can put their messages back.
    pub dead_letters: Option<DeadLetterUrls>,
    /// Name or ARN of the secret that holds the token of the API, for the function that serves it.
    pub api_token_secret: Option<String>,
    /// Name or ARN of the EventBridge bus that notices go to; without it there are none.
    pub notice_bus: Option<String>,
    /// Name or ARN of the secret that keys of signatures are derived from, where there is one.
    pub signing_secret: Option<String>,
    /// Whether the gateway checks who signed a request to the API.
    pub gateway_checks_signers: bool,
    /// Requests a second that a token may send to one instance; `None` for the usual number.
    pub api_token_rate: Option<u32>,
}

/// URLs that are needed to put dead letters back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterUrls {
    /// The queue of notifications, which nothing else is sent to.
    pub hints_queue: String,
    /// What lies behind it.
    pub hints: String,
    /// What lies behind the queue to the watcher.
    pub evaluate: String,
    /// What lies behind the queue to the dispatcher.
    pub dispatch: String,
}

impl DeadLetterUrls {
    fn from_lookup(lookup: impl Fn(&'static str) -> Option<String>) -> Option<Self> {
        Some(Self {
            hints_queue: lookup("LAKEBELL_HINTS_QUEUE_URL")?,
            hints: lookup("LAKEBELL_HINTS_DEAD_LETTERS_URL")?,
            evaluate: lookup("LAKEBELL_EVALUATE_DEAD_LETTERS_URL")?,
            dispatch: lookup("LAKEBELL_DISPATCH_DEAD_LETTERS_URL")?,
        })
    }
}

impl Settings {
    /// Settings from the environment. The error names the first variable that is missing.
    pub fn from_env() -> Result<Self, EngineError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Settings from anything that knows variables by name. An empty value is a missing one.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, EngineError> {
        let optional = |name| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let required = |name| optional(name).ok_or_else(|| missing(name));
        Ok(Self {
            table: required("LAKEBELL_TABLE")?,
            dispatch_queue_url: required("LAKEBELL_DISPATCH_QUEUE_URL")?,
            evaluate_queue_url: required("LAKEBELL_EVALUATE_QUEUE_URL")?,
            dead_letters: DeadLetterUrls::from_lookup(optional),
            api_token_secret: optional("LAKEBELL_API_TOKEN_SECRET"),
            notice_bus: optional("LAKEBELL_NOTICE_BUS"),
            signing_secret: optional("LAKEBELL_SIGNING_SECRET"),
            gateway_checks_signers: optional("LAKEBELL_API_AUTHORIZATION").as_deref() == Some("AWS_IAM"),
            api_token_rate: optional("LAKEBELL_API_TOKEN_RATE").and_then(|text| text.parse().ok()),
        })
    }

    /// The secret with the token of the API; the error names the variable where it is missing.
    pub fn api_token_secret(&self) -> Result<&str, EngineError> {
        self.api_token_secret.as_deref().ok_or_else(|| missing("LAKEBELL_API_TOKEN_SECRET"))
    }
}

/// What a deployment says whose functions were not told of their dead-letter queues.
pub(crate) fn no_dead_letters() -> EngineError {
    missing("LAKEBELL_HINTS_QUEUE_URL or one of LAKEBELL_{HINTS,EVALUATE,DISPATCH}_DEAD_LETTERS_URL")
}

fn missing(name: &str) -> EngineError {
    let message = format!("environment variable {name} is not set; infra/template.yaml sets it");
    EngineError::new(ErrorKind::Invalid, message).with("variable", name)
}

/// The SDK's configuration from the usual variables of AWS, with Lakebell's timeouts.
pub async fn sdk_config() -> SdkConfig {
    let timeouts =
        TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).operation_attempt_timeout(ATTEMPT_TIMEOUT).build();
    let retries = RetryConfig::standard().with_max_attempts(MOST_ATTEMPTS);
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(https_client());
    loader.timeout_config(timeouts).retry_config(retries).load().await
}

/// What the SDK sends its requests with.
pub fn https_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().tls_provider(TLS).build_https()
}

/// A client of S3. Where an endpoint is set (an emulator), the bucket goes into the path instead of
/// the host name, which would not resolve.
pub fn s3_client(sdk: &SdkConfig) -> aws_sdk_s3::Client {
    let path_style = endpoint_is_set(|name| std::env::var(name).ok());
    let config = aws_sdk_s3::config::Builder::from(sdk).force_path_style(path_style).build();
    aws_sdk_s3::Client::from_conf(config)
}

fn endpoint_is_set(lookup: impl Fn(&str) -> Option<String>) -> bool {
    ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"].iter().any(|name| lookup(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 4] =
        ["LAKEBELL_TABLE", "LAKEBELL_DISPATCH_QUEUE_URL", "LAKEBELL_EVALUATE_QUEUE_URL", "LAKEBELL_API_TOKEN_SECRET"];

    #[test]
    fn settings_are_read() {
        let settings = Settings::from_lookup(|name| Some(format!(" {name} "))).unwrap();
        assert_eq!(settings.table, "LAKEBELL_TABLE");
        assert_eq!(settings.dispatch_queue_url, "LAKEBELL_DISPATCH_QUEUE_URL");
        assert_eq!(settings.evaluate_queue_url, "LAKEBELL_EVALUATE_QUEUE_URL");
        assert_eq!(settings.api_token_secret().unwrap(), "LAKEBELL_API_TOKEN_SECRET");
    }

    #[test]
    fn an_error_names_the_missing_variable() {
        for gone in ALL {
            for value in [None, Some(String::new())] {
                let lookup = |name: &str| if name == gone { value.clone() } else { Some("x".to_owned()) };
                let settings = Settings::from_lookup(lookup);
                let error = settings.and_then(|settings| settings.api_token_secret().map(str::to_owned)).unwrap_err();
                assert!(error.message().contains(gone), "{error}");
            }
        }
    }

    #[test]
    fn emulators_get_buckets_in_the_path() {
        assert!(!endpoint_is_set(|_| None));
        assert!(!endpoint_is_set(|_| Some(String::new())));
        assert!(endpoint_is_set(|name| (name == "AWS_ENDPOINT_URL").then(|| "http://127.0.0.1:4566".to_owned())));
    }
}
