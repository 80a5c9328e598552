//! What the function builds once, in its init phase.

use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_dolphinscheduler::{BuildError, DolphinScheduler, Options};
use lakebell_engine::EngineError;
use lakebell_engine::dispatch::Dispatcher;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::scheduler::Scheduler;

/// Names a secret with certificate authorities as PEM text, for schedulers with a private one.
const CA_SECRET: &str = "LAKEBELL_CA_SECRET";

/// Everything that outlives an event.
pub struct Context {
    /// The engine.
    pub dispatcher: Dispatcher,
    /// Where counts go.
    pub metrics: Metrics,
}

/// Why the function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// A setting is missing, or the secret with certificate authorities cannot be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The client of DolphinScheduler cannot be made.
    #[error("{0}; see the secret that {CA_SECRET} names")]
    Client(#[from] BuildError),
}

impl Context {
    /// On AWS, by the environment, with connections that stand before the first event.
    pub async fn from_env() -> Result<Self, InitError> {
        let aws = AwsPorts::from_env().await?;
        aws.warm().await;
        let options = Options { ca_pem: authorities(&aws).await?, ..Options::default() };
        let scheduler = DolphinScheduler::new(aws.connections(), &options)?;
        Ok(Self::new(aws.ports(), Arc::new(scheduler), Metrics::from_env()))
    }

    /// Over these ports.
    pub fn new(ports: Ports, scheduler: Arc<dyn Scheduler>, metrics: Metrics) -> Self {
        Self { dispatcher: Dispatcher { ports, scheduler }, metrics }
    }
}

async fn authorities(aws: &AwsPorts) -> Result<Option<String>, EngineError> {
    match std::env::var(CA_SECRET).ok().filter(|name| !name.is_empty()) {
        Some(name) => aws.secrets().text(&name, false).await.map(Some),
        None => Ok(None),
    }
}
