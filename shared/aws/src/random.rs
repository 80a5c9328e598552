//! Randomness of the operating system.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use lakebell_engine::ports::time::Random;

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn bits(&self) -> u128 {
        let mut bytes = [0; 16];
        match getrandom::fill(&mut bytes) {
            Ok(()) => u128::from_ne_bytes(bytes),
            // No system that runs Lambdas gets here. The standard library's hash keys are random,
            // too; the time makes each answer another one.
            Err(_) => (u128::from(hash_of_now()) << 64) | u128::from(hash_of_now()),
        }
    }
}

fn hash_of_now() -> u64 {
    RandomState::new().hash_one(SystemTime::now())
}

/// A random time up to `most`: full jitter, as in the AWS Architecture Blog's "Exponential
/// Backoff And Jitter".
pub(crate) fn jitter(most: Duration) -> Duration {
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    let bits = u64::try_from(SystemRandom.bits() & u128::from(u64::MAX)).unwrap_or(0);
    Duration::from_micros(if micros == u64::MAX { bits } else { bits % (micros + 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_do_not_repeat() {
        let drawn: std::collections::HashSet<u128> = (0..1000).map(|_| SystemRandom.bits()).collect();
        assert_eq!(drawn.len(), 1000);
        assert_ne!(hash_of_now(), hash_of_now());
    }

    #[test]
    fn jitter_stays_below_its_bound() {
        let most = Duration::from_millis(3);
        assert!((0..1000).all(|_| jitter(most) <= most));
        assert_eq!(jitter(Duration::ZERO), Duration::ZERO);
    }
}
