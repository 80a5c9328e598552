//! A clock that only moves when told to, and randomness that a seed repeats.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lakebell_engine::ports::time::{Clock, Pause, Random};

use crate::lock;

/// A clock for simulations. Clones show the same time.
#[derive(Debug, Clone)]
pub struct SimClock(Arc<Mutex<Timestamp>>);

impl SimClock {
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// Sets the time, also backwards.
    pub fn set(&self, now: Timestamp) {
        *lock(&self.0) = now;
    }

    /// Moves the time forward. Stays at the last representable moment (the year 9999).
    pub fn advance(&self, by: Duration) {
        let mut now = lock(&self.0);
        *now = now.saturating_add(by).unwrap_or(Timestamp::MAX);
    }
}

impl Default for SimClock {
    /// 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(Timestamp::constant(1_767_225_600, 0))
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        *lock(&self.0)
    }
}

#[async_trait]
impl Pause for SimClock {
    /// The time moves on by itself.
    async fn pause(&self, time: SignedDuration) {
        self.advance(time.try_into().unwrap_or_default());
        tokio::task::yield_now().await;
    }
}

/// Randomness that a seed repeats: `SplitMix64` (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014). Clones draw from the same sequence.
#[derive(Debug, Clone)]
pub struct SeededRandom(Arc<Mutex<u64>>);

impl SeededRandom {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// The next 64 bits.
    pub fn next(&self) -> u64 {
        let mut state = lock(&self.0);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = *state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which must not be 0. The tiny bias of the remainder does not
    /// matter to tests.
    pub fn below(&self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

impl Random for SeededRandom {
    fn bits(&self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }
}
