//! What the handler works with, built once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::time::{Pause, SystemClock};
use lakebell_engine::sensor::MOST_PLACES;
use lakebell_engine::{EngineError, ErrorKind};

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

/// How polls of waiting tasks are served.
#[derive(Clone)]
pub struct Sensors {
    /// How many of them may wait at the same time, over all running functions.
    pub places: u8,
    /// What waits.
    pub pause: Arc<dyn Pause>,
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
        Ok(Self { places, pause: Arc::new(SystemClock) })
    }

    fn places(text: Option<&str>) -> Result<u8, EngineError> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(Self::USUAL_PLACES) };
        text.parse().ok().filter(|places| *places <= MOST_PLACES).ok_or_else(|| {
            let message = format!("environment variable {} is no number from 0 to {MOST_PLACES}", Self::PLACES);
            EngineError::new(ErrorKind::Invalid, message)
        })
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
    /// How polls of waiting tasks are served.
    pub sensors: Sensors,
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
