//! Time and randomness come in only here.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

/// The time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Randomness.
pub trait Random: Send + Sync {
    /// 128 random bits.
    fn bits(&self) -> u128;
}

/// Waiting, for as long as a clock says.
#[async_trait]
pub trait Pause: Send + Sync {
    /// Returns after this time.
    async fn pause(&self, time: SignedDuration);
}

/// A pause that has been doubled so many times, up to the longest one.
pub(crate) fn doubled(first: SignedDuration, times: u32, longest: SignedDuration) -> SignedDuration {
    (first * (1 << times.min(10))).min(longest)
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

#[async_trait]
impl Pause for SystemClock {
    async fn pause(&self, time: SignedDuration) {
        tokio::time::sleep(time.try_into().unwrap_or_default()).await;
    }
}
