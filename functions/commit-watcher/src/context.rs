//! What the function builds once, in its init phase.

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_engine::EngineError;
use lakebell_engine::ports::Ports;
use lakebell_engine::watch::Watcher;

/// Everything that outlives an event.
pub struct Context {
    /// The engine, with its memory of locations.
    pub watcher: Watcher,
    /// Where counts go.
    pub metrics: Metrics,
}

impl Context {
    /// On AWS, by the environment, with connections that stand before the first event.
    pub async fn from_env() -> Result<Self, EngineError> {
        let aws = AwsPorts::from_env().await?;
        aws.warm().await;
        Ok(Self::new(aws.ports(), Metrics::from_env()))
    }

    /// Over these ports.
    pub fn new(ports: Ports, metrics: Metrics) -> Self {
        Self { watcher: Watcher::new(ports), metrics }
    }
}
