//! How often a token may call. Each instance of the function counts for itself, so that counting
//! costs no call; the gateway's own limit is for all of them together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::problem::{ApiError, Code};

/// Buckets above this number are not kept beside each other; it begins again then.
const MOST: usize = 1_024;
/// Look-ups of tokens that are not known, for all who show any.
const STRANGERS: Rate = Rate { per_second: 20, burst: 100 };

/// How many requests a token may send to one instance of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// In the long run.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

impl Rate {
    /// So many in the long run, and twice as many at once.
    pub const fn of(per_second: u32) -> Self {
        Self { per_second, burst: per_second.saturating_mul(2) }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::of(100)
    }
}

#[derive(Debug)]
struct Bucket {
    /// Thousandths of a request.
    left: u64,
    at: Timestamp,
}

impl Bucket {
    fn full(rate: Rate, at: Timestamp) -> Self {
        Self { left: u64::from(rate.burst) * 1_000, at }
    }

    /// Takes one request; `false` where none is left.
    fn take(&mut self, rate: Rate, now: Timestamp) -> bool {
        // A clock that goes back adds nothing and takes nothing.
        let passed = u64::try_from(now.duration_since(self.at).as_millis()).unwrap_or(0);
        let gained = passed.saturating_mul(rate.per_second.into());
        self.left = self.left.saturating_add(gained).min(u64::from(rate.burst) * 1_000);
        self.at = now;
        let has_one = self.left >= 1_000;
        if has_one {
            self.left -= 1_000;
        }
        has_one
    }
}

#[derive(Debug)]
pub(super) struct Buckets {
    rate: Rate,
    of_callers: Mutex<HashMap<String, Bucket>>,
    of_strangers: Mutex<Option<Bucket>>,
}

impl Buckets {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, of_callers: Mutex::default(), of_strangers: Mutex::default() }
    }

    /// What a token may send.
    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes one request of a caller.
    ///
    /// Errors: `RATE_LIMITED` with the rate.
    pub(super) fn take(&self, caller: &str, now: Timestamp) -> Result<(), ApiError> {
        let mut buckets = self.of_callers.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST && !buckets.contains_key(caller) {
            buckets.clear();
        }
        let bucket = buckets.entry(caller.to_owned()).or_insert_with(|| Bucket::full(self.rate, now));
        if bucket.take(self.rate, now) { Ok(()) } else { Err(limited(self.rate)) }
    }

    /// Takes one look-up of a token that is not known.
    ///
    /// Errors: `RATE_LIMITED` with the rate.
    pub(super) fn take_stranger(&self, now: Timestamp) -> Result<(), ApiError> {
        let mut bucket = self.of_strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = bucket.get_or_insert_with(|| Bucket::full(STRANGERS, now));
        if bucket.take(STRANGERS, now) { Ok(()) } else { Err(limited(STRANGERS)) }
    }
}

fn limited(rate: Rate) -> ApiError {
    let Rate { per_second, burst } = rate;
    let detail = format!("more requests than {per_second} a second, or {burst} at once");
    ApiError::new(Code::RateLimited, detail)
        .hint("send it again after `Retry-After`, or more in one request")
        .limit(per_second.into())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn a_bucket_fills_by_the_clock() {
        let buckets = Buckets::new(Rate { per_second: 2, burst: 3 });
        let start: Timestamp = "2026-01-15T10:00:00Z".parse().unwrap();
        let at = |millis: i64| start + SignedDuration::from_millis(millis);
        let took = |caller: &str, millis| buckets.take(caller, at(millis)).is_ok();
        assert!(took("a", 0) && took("a", 0) && took("a", 0));
        assert!(!took("a", 499));
        assert!(took("b", 499), "each token has its own");
        assert!(took("a", 500) && !took("a", 501));
        assert!(!took("a", 0), "a clock that goes back gives nothing");
        // No more than a burst, however long it was quiet.
        assert_eq!((0..10).filter(|_| took("a", 1_000_000)).count(), 3);
        let error = buckets.take("a", at(1_000_000)).unwrap_err();
        assert_eq!((error.code().status(), error.is_retryable()), (503, true));
    }

    #[test]
    fn buckets_are_bounded() {
        let buckets = Buckets::new(Rate::default());
        for n in 0..=MOST {
            buckets.take(&n.to_string(), Timestamp::UNIX_EPOCH).unwrap();
        }
        assert_eq!(buckets.of_callers.lock().unwrap().len(), 1);
    }
}
