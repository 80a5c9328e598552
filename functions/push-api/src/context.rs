//! What the handler works with, built once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::dead_letters::{DeadLetters, NoDeadLetters};
use lakebell_engine::ports::time::{Pause, SystemClock};
use lakebell_engine::sensor::MOST_PLACES;
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

/// How polls of waiting tasks are served.
#[derive(Clone)]
pub struct Sensors {
    /// How many of them may wait at the same time, over all running functions.
    pub places: u8,
    /// What waits.
    pub pause: Arc<dyn Pause>,
}

impl Default for Sensors {
    /// The usual places, on the machine's own clock.
    fn default() -> Self {
        Self { places: Self::USUAL_PLACES, pause: Arc::new(SystemClock) }
    }
}

impl Sensors {
    /// The variable with the number of places.
    const PLACES: &str = "LAKEBELL_SENSOR_PLACES";
    /// Without it.
    const USUAL_PLACES: u8 = 10;

    /// As the environment says, on the machine's own clock.
    ///
    /// Errors: `Invalid` for a number of places that is none.
    pub fn from_env() -> Result<Self, EngineError> {
        let places = Self::places(std::env::var(Self::PLACES).ok().as_deref())?;
        Ok(Self { places, ..Self::default() })
    }

    fn places(text: Option<&str>) -> Result<u8, EngineError> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(Self::USUAL_PLACES) };
        text.parse().ok().filter(|places| *places <= MOST_PLACES).ok_or_else(|| {
            let message = format!("environment variable {} is no number from 0 to {MOST_PLACES}", Self::PLACES);
            EngineError::new(ErrorKind::Invalid, message)
        })
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
    /// How polls of waiting tasks are served.
    pub sensors: Sensors,
    /// Messages that nobody tries any more.
    pub dead_letters: Arc<dyn DeadLetters>,
}

impl Context {
    /// A context with the usual limits, without queues, that does not take the gateway's word for who
    /// signed a request.
    pub fn new(ports: Ports, tokens: Arc<dyn Tokens>, metrics: Metrics) -> Self {
        let access = Arc::new(Access::new(Rate::default(), false));
        Self { ports, tokens, metrics, access, sensors: Sensors::default(), dead_letters: Arc::new(NoDeadLetters) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_a_number_up_to_the_most() {
        assert_eq!(Sensors::places(None).unwrap(), 10);
        for (text, places) in [("", 10), (" 7 ", 7), ("0", 0), ("100", 100)] {
            assert_eq!(Sensors::places(Some(text)).unwrap(), places, "{text}");
        }
        for text in ["101", "-1", "many", "300"] {
            assert!(Sensors::places(Some(text)).unwrap_err().message().contains("LAKEBELL_SENSOR_PLACES"), "{text}");
        }
    }
}
