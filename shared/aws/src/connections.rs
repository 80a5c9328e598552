//! Connections to DolphinScheduler and their tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lakebell_domain::ids::ConnectionName;
use lakebell_engine::ports::items::ItemStore;
use lakebell_engine::ports::scheduler::{ConnectionSpec, Connections};
use lakebell_engine::{EngineError, ErrorKind, layout};

use crate::cache::Cache;
use crate::secrets::Secrets;

/// The longest time that a specification is used without being read again.
pub const SPEC_AGE: Duration = Duration::from_mins(1);

/// [`Connections`] that are kept as items (see [`layout::connection`]), with their tokens in
/// Secrets Manager. A connection that nobody declared is looked for each time.
pub struct AwsConnections {
    items: Arc<dyn ItemStore>,
    secrets: Arc<Secrets>,
    specs: Cache<ConnectionSpec>,
}

impl AwsConnections {
    /// Connections of this store.
    pub fn new(items: Arc<dyn ItemStore>, secrets: Arc<Secrets>) -> Self {
        Self { items, secrets, specs: Cache::new(SPEC_AGE) }
    }
}

#[async_trait]
impl Connections for AwsConnections {
    async fn connection(&self, name: &ConnectionName) -> Result<Option<ConnectionSpec>, EngineError> {
        let asked_at = Instant::now();
        if let Some(spec) = self.specs.get(name.as_str(), asked_at) {
            return Ok(Some(spec));
        }
        let Some(item) = self.items.get(&[layout::connection(name)]).await?.pop() else { return Ok(None) };
        let spec: ConnectionSpec = serde_json::from_str(&item.doc).map_err(|error| {
            let message = format!("the recorded connection `{name}` cannot be read; declare it again");
            EngineError::new(ErrorKind::Damaged, message).with("connection", name).caused_by(error)
        })?;
        self.specs.put(name.as_str(), spec.clone(), asked_at);
        Ok(Some(spec))
    }

    async fn token(&self, spec: &ConnectionSpec, fresh: bool) -> Result<String, EngineError> {
        let token = self.secrets.token(&spec.token_secret, fresh).await;
        token.map_err(|error| error.with("connection", &spec.name))
    }
}

#[cfg(test)]
mod tests {
    use lakebell_domain::ids::AttemptId;
    use lakebell_engine::ports::items::{Draft, Write};
    use lakebell_testkit::{MemoryItems, Op, Tap};

    use super::*;

    fn offline_secrets() -> Arc<Secrets> {
        let config = aws_sdk_secretsmanager::Config::builder().behavior_version_latest().build();
        Arc::new(Secrets::new(aws_sdk_secretsmanager::Client::from_conf(config)))
    }

    async fn declared(doc: &str) -> (AwsConnections, Tap, ConnectionName) {
        let name = ConnectionName::new("main").unwrap();
        let items = Arc::new(MemoryItems::new());
        let draft = Draft::new(layout::connection(&name), doc.to_owned());
        items.write(&[Write::Create(draft)], &AttemptId::new("a").unwrap()).await.unwrap();
        let tap = Tap::new();
        (AwsConnections::new(tap.on(items), offline_secrets()), tap, name)
    }

    #[tokio::test]
    async fn a_specification_is_read_once_a_minute() {
        let doc = r#"{"name":"main","url":"http://ds:12345/dolphinscheduler","tokenSecret":"lakebell/main"}"#;
        let (connections, tap, name) = declared(doc).await;
        for _ in 0..3 {
            assert_eq!(connections.connection(&name).await.unwrap().unwrap().token_secret, "lakebell/main");
        }
        assert_eq!(tap.count(Op::Get), 1);

        let other = ConnectionName::new("other").unwrap();
        for _ in 0..2 {
            assert_eq!(connections.connection(&other).await.unwrap(), None);
        }
        assert_eq!(tap.count(Op::Get), 3, "absence is not kept");
    }

    #[tokio::test]
    async fn a_damaged_specification_says_what_to_do() {
        let (connections, _, name) = declared(r#"{"name":"main"}"#).await;
        let error = connections.connection(&name).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(error.to_string().contains("declare it again"), "{error}");
    }
}
