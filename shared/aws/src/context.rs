//! Everything that a function builds once.

use std::sync::Arc;

use aws_config::SdkConfig;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::dead_letters::DeadLetters;
use lakebell_engine::ports::items::ItemStore;
use lakebell_engine::ports::items::Key;
use lakebell_engine::ports::notices::{NoNotices, Notices};
use lakebell_engine::ports::scheduler::Connections;
use lakebell_engine::ports::time::SystemClock;
use lakebell_engine::{EngineError, ErrorKind};

use crate::config::{Settings, no_dead_letters, s3_client, sdk_config};
use crate::dead_letters::QueueUrls;
use crate::{
    AwsCatalogs, AwsConnections, BusNotices, DynamoItems, S3Storage, Secrets, SqsDeadLetters, SqsQueue, SystemRandom,
};

/// The ports on AWS, with one client for each service.
pub struct AwsPorts {
    settings: Settings,
    items: Arc<DynamoItems>,
    storage: Arc<S3Storage>,
    queue: Arc<SqsQueue>,
    secrets: Arc<Secrets>,
    catalogs: Arc<AwsCatalogs>,
    connections: Arc<AwsConnections>,
    sqs: aws_sdk_sqs::Client,
    notices: Arc<dyn Notices>,
}

impl AwsPorts {
    /// Ports by the environment; see [`crate::config`] for the variables.
    pub async fn from_env() -> Result<Self, EngineError> {
        let settings = Settings::from_env()?;
        Ok(Self::new(settings, &sdk_config().await))
    }

    /// Ports by these settings.
    pub fn new(settings: Settings, sdk: &SdkConfig) -> Self {
        let items = Arc::new(DynamoItems::new(aws_sdk_dynamodb::Client::new(sdk), &settings.table));
        let sqs = aws_sdk_sqs::Client::new(sdk);
        let queue = SqsQueue::new(sqs.clone(), &settings.dispatch_queue_url, &settings.evaluate_queue_url);
        let secrets = Arc::new(Secrets::new(aws_sdk_secretsmanager::Client::new(sdk)));
        let notices = settings.notice_bus.as_ref().and_then(|bus| BusNotices::new(bus, sdk, Arc::new(SystemClock)));
        let notices: Arc<dyn Notices> = match notices {
            Some(bus) => Arc::new(bus),
            None => Arc::new(NoNotices),
        };
        let connections = AwsConnections::new(items.clone(), secrets.clone());
        Self {
            settings,
            items,
            storage: Arc::new(S3Storage::new(s3_client(sdk))),
            queue: Arc::new(queue),
            catalogs: Arc::new(AwsCatalogs::new(sdk, secrets.clone())),
            secrets,
            connections: Arc::new(connections),
            sqs,
            notices,
        }
    }

    /// The ports that the use cases share.
    pub fn ports(&self) -> Ports {
        Ports {
            items: self.items.clone(),
            storage: self.storage.clone(),
            catalogs: self.catalogs.clone(),
            consumers: self.storage.clone(),
            queue: self.queue.clone(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            notices: self.notices.clone(),
        }
    }

    /// The connections to DolphinScheduler.
    pub fn connections(&self) -> Arc<dyn Connections> {
        self.connections.clone()
    }

    /// The secrets.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The dead-letter queues.
    ///
    /// Errors: `Invalid` where the function was not told of them.
    pub fn dead_letters(&self) -> Result<Arc<dyn DeadLetters>, EngineError> {
        let urls = self.settings.dead_letters.as_ref().ok_or_else(no_dead_letters)?;
        let pair = |queue: &str, dead: &str| QueueUrls { queue: queue.to_owned(), dead: dead.to_owned() };
        Ok(Arc::new(SqsDeadLetters::new(
            self.sqs.clone(),
            pair(&urls.hints_queue, &urls.hints),
            pair(&self.settings.evaluate_queue_url, &urls.evaluate),
            pair(&self.settings.dispatch_queue_url, &urls.dispatch),
        )))
    }

    /// The settings that the ports were built by.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The token that callers of the API must show; at most 300 s old. `fresh` reads it again.
    pub async fn api_token(&self, fresh: bool) -> Result<String, EngineError> {
        self.secrets.token(self.settings.api_token_secret()?, fresh).await
    }

    /// The secret that keys of signatures are derived from; at most 300 s old.
    ///
    /// Errors: `Invalid` where the deployment has none.
    pub async fn api_signing_secret(&self) -> Result<String, EngineError> {
        let Some(name) = &self.settings.signing_secret else {
            let message = "this deployment has no signing secret; LAKEBELL_SIGNING_SECRET is not set";
            return Err(EngineError::new(ErrorKind::Invalid, message).with("field", "signed"));
        };
        self.secrets.text(name, false).await
    }

    /// Makes one cheap call to each service in the init phase, so that credentials are there and
    /// TLS is up before the first event. Answers do not matter, and neither do failures: the first
    /// real call will report them. S3 is left out, because each bucket has a host of its own.
    pub async fn warm(&self) {
        let no_item = [Key::new("WARM", "-")];
        let items = self.items.get(&no_item);
        let queue = self.sqs.get_queue_attributes().queue_url(&self.settings.evaluate_queue_url).send();
        let token = async {
            if self.settings.api_token_secret.is_some() {
                // Kept, so that the first request finds it.
                drop(self.api_token(false).await);
            }
        };
        let (items, queue, ()) = tokio::join!(items, queue, token);
        tracing::debug!(items = items.is_ok(), queue = queue.is_ok(), "warmed");
    }
}
