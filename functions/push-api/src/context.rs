//! What the handler works with, built once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_engine::ports::Ports;
use lakebell_engine::{EngineError, ErrorKind};

use crate::auth::{Access, Rate};

/// Where the deployment's own token comes from, by which the first other ones are made.
pub trait Tokens: Send + Sync {
    /// The token; at most 300 s old.
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>>;

    /// The secret that the keys of signatures are derived from; at most 300 s old.
    ///
    /// Errors: `Invalid` where the deployment has none.
    fn signing_secret(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        let message = "this deployment has no signing secret; deploy it with one, or leave `signed` out";
        Box::pin(async move { Err(EngineError::new(ErrorKind::Invalid, message).with("field", "signed")) })
    }
}

impl Tokens for AwsPorts {
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(self.api_token(false))
    }

    fn signing_secret(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(self.api_signing_secret())
    }
}

/// Ports, tokens and metrics. Clones share them.
#[derive(Clone)]
pub struct Context {
    /// The ports of the use cases.
    pub ports: Ports,
    /// The deployment's own token.
    pub tokens: Arc<dyn Tokens>,
    /// Where measurements go.
    pub metrics: Metrics,
    /// What is remembered of callers.
    pub access: Arc<Access>,
}

impl Context {
    /// A context with the usual limits that does not take the gateway's word for who signed a
    /// request.
    pub fn new(ports: Ports, tokens: Arc<dyn Tokens>, metrics: Metrics) -> Self {
        Self { ports, tokens, metrics, access: Arc::new(Access::new(Rate::default(), false)) }
    }
}
