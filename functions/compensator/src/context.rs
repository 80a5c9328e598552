//! What the function builds once, in its init phase.

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_engine::EngineError;
use lakebell_engine::ports::Ports;

/// Everything that outlives an event.
pub struct Context {
    /// The engine's ports.
    pub ports: Ports,
    /// Where counts go.
    pub metrics: Metrics,
}

impl Context {
    /// On AWS, by the environment, with connections that stand before the first event.
    pub async fn from_env() -> Result<Self, EngineError> {
        let aws = AwsPorts::from_env().await?;
        aws.warm().await;
        Ok(Self { ports: aws.ports(), metrics: Metrics::from_env() })
    }
}
