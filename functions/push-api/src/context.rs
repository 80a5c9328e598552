//! What the handler works with, built once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_engine::EngineError;
use lakebell_engine::ports::Ports;

/// Where the token comes from that callers must show.
pub trait Tokens: Send + Sync {
    /// The token; at most 300 s old.
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>>;
}

impl Tokens for AwsPorts {
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(self.api_token(false))
    }
}

/// Ports, token and metrics. Clones share them.
#[derive(Clone)]
pub struct Context {
    /// The ports of the use cases.
    pub ports: Ports,
    /// The token that callers must show.
    pub tokens: Arc<dyn Tokens>,
    /// Where measurements go.
    pub metrics: Metrics,
}
