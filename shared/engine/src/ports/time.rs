//! Time and randomness come in only here.

use jiff::Timestamp;

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

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
