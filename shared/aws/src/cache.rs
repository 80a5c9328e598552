//! A small cache with an age limit.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Entries above this number are not kept beside each other: far more than a deployment has
/// connections and secrets.
const MOST_ENTRIES: usize = 64;

/// Values by name, none older than an age. Bounded: when it is full, it begins again.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    age: Duration,
    entries: Mutex<HashMap<String, (Instant, T)>>,
}

impl<T: Clone> Cache<T> {
    /// An empty cache whose values are used up to `age` long.
    pub(crate) fn new(age: Duration) -> Self {
        Self { age, entries: Mutex::new(HashMap::new()) }
    }

    /// The value, if it was put less than the age before `now`.
    pub(crate) fn get(&self, name: &str, now: Instant) -> Option<T> {
        let entries = self.entries();
        let (put_at, value) = entries.get(name)?;
        (now.saturating_duration_since(*put_at) < self.age).then(|| value.clone())
    }

    /// Keeps a value that was asked for at `asked_at`: its age counts from before the question.
    pub(crate) fn put(&self, name: &str, value: T, asked_at: Instant) {
        let mut entries = self.entries();
        if entries.len() >= MOST_ENTRIES && !entries.contains_key(name) {
            entries.clear();
        }
        entries.insert(name.to_owned(), (asked_at, value));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, (Instant, T)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_age() {
        let cache = Cache::new(Duration::from_mins(1));
        let start = Instant::now();
        cache.put("a", 1, start);
        assert_eq!(cache.get("a", start + Duration::from_secs(59)), Some(1));
        assert_eq!(cache.get("a", start + Duration::from_mins(1)), None);
        assert_eq!(cache.get("b", start), None);
        cache.put("a", 2, start + Duration::from_mins(1));
        assert_eq!(cache.get("a", start + Duration::from_secs(61)), Some(2));
    }

    #[test]
    fn entries_are_bounded() {
        let cache = Cache::new(Duration::from_mins(1));
        let now = Instant::now();
        for n in 0..=MOST_ENTRIES {
            cache.put(&n.to_string(), n, now);
        }
        assert_eq!(cache.entries().len(), 1);
    }
}
