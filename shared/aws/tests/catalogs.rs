//! Catalogs of Iceberg tables, asked over HTTP: the REST protocol with `OAuth2`, bearer tokens and
//! signatures, and Glue, against a stand-in with the faults of real ones.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use lakebell_aws::{AwsCatalogs, Secrets};
use lakebell_catalog_standin::{CatalogStandin, Fault};
use lakebell_domain::asset::AssetKey;
use lakebell_engine::catalog::{Catalog, RemoteCatalog};
use lakebell_engine::ports::catalog::Catalogs;
use lakebell_engine::{EngineError, ErrorKind};
use serde_json::{Value, json};

const FILE: &str = "s3://lake/wh/t/metadata/00001-a.metadata.json";

struct Bench {
    standin: CatalogStandin,
    catalogs: AwsCatalogs,
}

impl Bench {
    async fn new() -> Self {
        let standin = CatalogStandin::start().await.unwrap();
        let credentials = Credentials::new("key", "secret", Some("session".to_owned()), None, "test");
        let sdk = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .endpoint_url(standin.url())
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .sleep_impl(aws_sdk_s3::config::SharedAsyncSleep::new(Sleep))
            .build();
        let secrets = Arc::new(Secrets::new(aws_sdk_secretsmanager::Client::new(&sdk)));
        let catalogs = AwsCatalogs::with_timeout(&sdk, secrets, Duration::from_secs(3));
        standin.point("sales", "orders", FILE);
        Self { standin, catalogs }
    }

    async fn ask(&self, setting: &Value) -> Result<String, EngineError> {
        self.ask_for(setting, "iceberg://sales/orders").await
    }

    async fn ask_for(&self, setting: &Value, key: &str) -> Result<String, EngineError> {
        let catalog: Catalog = serde_json::from_value(setting.clone()).unwrap();
        let Catalog::Remote(remote) = catalog else { panic!("{setting} is a service") };
        let key: AssetKey = key.parse().unwrap();
        self.catalogs.current(&remote, &key).await
    }

    fn rest(&self, more: &Value) -> Value {
        let mut setting = json!({"type": "rest", "url": self.standin.url()});
        for (name, value) in more.as_object().unwrap() {
            setting[name] = value.clone();
        }
        setting
    }

    /// A REST catalog that `OAuth2` guards, and the setting that opens it.
    fn guarded(&self, expires_in: Option<u64>) -> Value {
        self.standin.require_client("lakebell", "s3cr&t=", expires_in);
        let secret = json!({"url": self.standin.url(), "clientId": "lakebell", "clientSecret": "s3cr&t="});
        self.standin.secret("lakebell/x/catalogs/c", &secret.to_string());
        self.rest(&json!({"secret": "lakebell/x/catalogs/c"}))
    }

    /// How often each route was asked: configuration, tokens, tables, secrets.
    fn counts(&self) -> [usize; 4] {
        let requests = self.standin.take_requests();
        let of = |part: &str| requests.iter().filter(|line| line.contains(part)).count();
        [of("/v1/config"), of("/v1/oauth/tokens"), of("/tables/"), of("#GetSecretValue")]
    }
}

/// The machine's own time.
#[derive(Debug)]
struct Sleep;

impl aws_sdk_s3::config::AsyncSleep for Sleep {
    fn sleep(&self, duration: Duration) -> aws_sdk_s3::config::Sleep {
        aws_sdk_s3::config::Sleep::new(tokio::time::sleep(duration))
    }
}

fn kind<T: std::fmt::Debug>(answer: &Result<T, EngineError>) -> (ErrorKind, bool) {
    let error = answer.as_ref().expect_err("an error");
    (error.kind(), error.retryable())
}

#[tokio::test]
async fn an_open_rest_catalog_says_where_the_file_is() {
    let bench = Bench::new().await;
    let setting = bench.rest(&json!({"warehouse": "w h"}));
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
    let expected = ["GET /v1/config?warehouse=w%20h", "GET /v1/namespaces/sales/tables/orders?snapshots=refs"];
    assert_eq!(bench.standin.take_requests(), expected);
    // Paths are kept, tables are not.
    bench.standin.point("sales", "orders", "s3://lake/wh/t/metadata/00002-b.metadata.json");
    assert!(bench.ask(&setting).await.unwrap().contains("00002-b"));
    assert_eq!(bench.counts(), [0, 0, 1, 0]);
}

#[tokio::test]
async fn prefixes_nested_namespaces_and_other_names() {
    let bench = Bench::new().await;
    bench.standin.set_prefix("arn%3Aaws%3As3tables/x");
    bench.standin.point("a.b", "t u", "s3://x/y");
    let named = bench.rest(&json!({"database": "a.b", "table": "t u"}));
    assert_eq!(bench.ask(&named).await.unwrap(), "s3://x/y");
    let expected = "GET /v1/arn%3Aaws%3As3tables/x/namespaces/a%1Fb/tables/t%20u?snapshots=refs";
    assert_eq!(bench.standin.take_requests()[1], expected);
    assert_eq!(bench.ask_for(&bench.rest(&json!({})), "iceberg://cat/a.b/t%20u@audit").await.unwrap(), "s3://x/y");
}

#[tokio::test]
async fn a_token_of_oauth2_is_used_until_it_ends_and_fetched_anew_when_it_is_refused() {
    let bench = Bench::new().await;
    let setting = bench.guarded(Some(3_600));
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
    assert_eq!(bench.counts(), [1, 1, 1, 1]);
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
    assert_eq!(bench.counts(), [0, 0, 1, 0], "the token is kept");
    bench.standin.expire_tokens();
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
    assert_eq!(bench.counts(), [0, 1, 2, 1], "refused once, then with a new token and the secret as it is now");
}

#[tokio::test]
async fn a_token_that_ends_at_once_is_not_used_twice() {
    let bench = Bench::new().await;
    let setting = bench.guarded(Some(0));
    bench.ask(&setting).await.unwrap();
    assert_eq!(bench.counts(), [1, 2, 1, 1]);
}

#[tokio::test]
async fn credentials_that_are_refused_are_trouble_and_never_told() {
    let bench = Bench::new().await;
    let setting = bench.guarded(None);
    let wrong = json!({"url": bench.standin.url(), "client_id": "lakebell", "client_secret": "hush"});
    bench.standin.secret("lakebell/x/catalogs/c", &wrong.to_string());
    let answer = bench.ask(&setting).await;
    assert_eq!(kind(&answer), (ErrorKind::Denied, false));
    let said = format!("{:?} {}", answer.as_ref().unwrap_err(), answer.as_ref().unwrap_err());
    assert!(said.contains("was refused by the token endpoint (401)") && !said.contains("hush"), "{said}");
}

#[tokio::test]
async fn a_bearer_token_that_was_replaced_is_read_again() {
    let bench = Bench::new().await;
    let secret = |token: &str| json!({"url": bench.standin.url(), "token": token}).to_string();
    let setting = bench.rest(&json!({"secret": "c"}));
    bench.standin.secret("c", &secret("old"));
    bench.standin.require_bearer("old");
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
    bench.standin.secret("c", &secret("new"));
    bench.standin.require_bearer("new");
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
    bench.standin.require_bearer("newer");
    let answer = bench.ask(&setting).await;
    assert_eq!(kind(&answer), (ErrorKind::Denied, false));
    assert!(!answer.unwrap_err().to_string().contains("new"));
}

#[tokio::test]
async fn a_secret_for_another_place_is_not_shown() {
    let bench = Bench::new().await;
    let secrets = [
        (json!({"url": "https://elsewhere.internal", "token": "t"}).to_string(), "is for another catalog"),
        ("a-token-of-dolphinscheduler".to_owned(), "is not of the form"),
        (json!({"token": "t"}).to_string(), "is not of the form"),
        (json!({"url": bench.standin.url()}).to_string(), "needs either"),
        (json!({"url": bench.standin.url(), "token": "t", "clientId": "c"}).to_string(), "needs either"),
        (
            json!({"url": bench.standin.url(), "clientId": "c", "clientSecret": "s", "tokenUrl": "http://idp.internal"})
                .to_string(),
            "not https",
        ),
    ];
    for (at, (secret, problem)) in secrets.into_iter().enumerate() {
        let name = format!("c{at}");
        bench.standin.secret(&name, &secret);
        let setting = bench.rest(&json!({"secret": name}));
        let answer = bench.ask(&setting).await;
        assert_eq!(kind(&answer), (ErrorKind::Denied, false), "{secret}");
        let said = answer.unwrap_err().to_string();
        assert!(said.contains(problem) && !said.contains("dolphin"), "{said}");
    }
    assert_eq!(bench.counts()[..3], [0, 0, 0], "nobody was asked");
}

#[tokio::test]
async fn faults_of_a_rest_catalog_have_their_kinds() {
    let bench = Bench::new().await;
    let setting = bench.rest(&json!({}));
    bench.ask(&setting).await.unwrap();
    let missing = bench.ask_for(&setting, "iceberg://sales/nothing").await;
    assert_eq!(kind(&missing), (ErrorKind::NotFound, false));
    assert!(missing.unwrap_err().message().contains("NoSuchTableException"));
    let table = [
        (Fault::Status(401), ErrorKind::Denied),
        (Fault::Status(403), ErrorKind::Denied),
        (Fault::Status(404), ErrorKind::Denied),
        (Fault::Status(302), ErrorKind::Denied),
        (Fault::Status(400), ErrorKind::Denied),
        (Fault::Body("<html>".to_owned()), ErrorKind::Damaged),
        (Fault::Body("{".to_owned()), ErrorKind::Damaged),
        (Fault::Body(String::new()), ErrorKind::Damaged),
        (Fault::Body(r#"{"metadata-location":null}"#.to_owned()), ErrorKind::Damaged),
        (Fault::Body(r#"{"metadata":{"metadata-location":"x"}}"#.to_owned()), ErrorKind::Damaged),
    ];
    for (fault, expected) in table {
        bench.standin.fault(fault.clone());
        let answer = bench.ask(&setting).await;
        assert_eq!(kind(&answer), (expected, false), "{fault:?}");
    }
    for status in [429, 500, 502, 503, 504] {
        bench.standin.fault(Fault::Status(status));
        assert_eq!(bench.ask(&setting).await.unwrap(), FILE, "{status} once is asked again");
        bench.standin.fault(Fault::Status(status));
        bench.standin.fault(Fault::Status(status));
        assert_eq!(kind(&bench.ask(&setting).await), (ErrorKind::Unavailable, true), "{status}");
    }
}

#[tokio::test]
async fn a_slow_catalog_is_not_waited_for() {
    let bench = Bench::new().await;
    let setting = bench.rest(&json!({}));
    bench.ask(&setting).await.unwrap();
    let begun = std::time::Instant::now();
    bench.standin.fault(Fault::Slow(Duration::from_mins(1)));
    assert_eq!(kind(&bench.ask(&setting).await), (ErrorKind::Unavailable, true));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_catalog_that_is_not_there_is_away() {
    let bench = Bench::new().await;
    let setting = json!({"type": "rest", "url": "http://127.0.0.1:1"});
    assert_eq!(kind(&bench.ask(&setting).await), (ErrorKind::Unavailable, true));
}

#[tokio::test]
async fn a_huge_answer_is_looked_through_and_not_kept() {
    let bench = Bench::new().await;
    let setting = bench.rest(&json!({}));
    bench.standin.fault(Fault::Huge(20 << 20));
    assert_eq!(bench.ask(&setting).await.unwrap(), FILE);
}

#[tokio::test]
async fn requests_are_signed_for_aws_alone() {
    let bench = Bench::new().await;
    for service in ["glue", "s3tables"] {
        assert_eq!(bench.ask(&bench.rest(&json!({"signing": service}))).await.unwrap(), FILE);
    }
    let elsewhere = json!({"type": "rest", "url": "https://catalog.internal", "signing": "glue"});
    let answer = bench.ask(&elsewhere).await;
    assert_eq!(kind(&answer), (ErrorKind::Denied, false));
    assert!(answer.unwrap_err().message().contains("no host of AWS"));
}

#[tokio::test]
async fn glue_says_where_the_file_is() {
    let bench = Bench::new().await;
    assert_eq!(bench.ask(&json!("glue")).await.unwrap(), FILE);
    bench.standin.point("other", "t", "s3://x/y");
    let named = json!({"type": "glue", "account": "123456789012", "database": "other", "table": "t"});
    assert_eq!(bench.ask(&named).await.unwrap(), "s3://x/y");
}

#[tokio::test]
async fn faults_of_glue_have_their_kinds() {
    let bench = Bench::new().await;
    let glue = json!("glue");
    assert_eq!(kind(&bench.ask_for(&glue, "iceberg://sales/nothing").await), (ErrorKind::NotFound, false));
    bench.standin.point("sales", "plain", "");
    let plain = bench.ask_for(&glue, "iceberg://sales/plain").await;
    assert_eq!(kind(&plain), (ErrorKind::Damaged, false));
    assert!(plain.unwrap_err().message().contains("no Iceberg table"));
    for (fault, expected) in [
        (Fault::Status(403), ErrorKind::Denied),
        (Fault::Body("[]".to_owned()), ErrorKind::Damaged),
        (Fault::Body("x".repeat(9 << 20)), ErrorKind::Damaged),
    ] {
        bench.standin.fault(fault);
        assert_eq!(kind(&bench.ask(&glue).await), (expected, false));
    }
    for _ in 0..2 {
        bench.standin.fault(Fault::Status(503));
    }
    assert_eq!(kind(&bench.ask(&glue).await), (ErrorKind::Unavailable, true));
    bench.standin.fault(Fault::Status(503));
    assert_eq!(bench.ask(&glue).await.unwrap(), FILE, "one failure is asked again");
}

#[test]
fn settings_of_remote_catalogs_are_told_without_secrets() {
    let setting = json!({"type": "rest", "url": "https://c.internal", "warehouse": "w", "secret": "name"});
    let catalog: Catalog = serde_json::from_value(setting).unwrap();
    assert!(matches!(catalog, Catalog::Remote(RemoteCatalog::Rest(_))));
    assert_eq!(catalog.describe(), "rest https://c.internal, warehouse w");
}
