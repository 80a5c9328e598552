//! A small cache whose entries age and whose size is limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Values that are forgotten after a time of their own, at most `limit` of them.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    limit: usize,
    entries: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Eq + Hash + Clone, V: Clone> Bounded<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, entries: Mutex::new(HashMap::new()) }
    }

    /// The value, if it is not too old.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let now = Instant::now();
        self.lock().get(key).filter(|(until, _)| now < *until).map(|(_, value)| value.clone())
    }

    /// Keeps a value for so long. A full cache first forgets what is too old, then what would be next.
    pub(crate) fn put(&self, key: K, value: V, keep: Duration) {
        let now = Instant::now();
        let mut entries = self.lock();
        if entries.len() >= self.limit && !entries.contains_key(&key) {
            entries.retain(|_, (until, _)| now < *until);
            if entries.len() >= self.limit {
                let next = entries.iter().min_by_key(|(_, (until, _))| *until).map(|(key, _)| key.clone());
                next.and_then(|key| entries.remove(&key));
            }
        }
        entries.insert(key, (now + keep, value));
    }

    /// Forgets what fits.
    pub(crate) fn forget(&self, fits: impl Fn(&K) -> bool) {
        self.lock().retain(|key, _| !fits(key));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, (Instant, V)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_age_and_the_size_is_limited() {
        let cache = Bounded::new(2);
        cache.put("a", 1, Duration::from_secs(10));
        cache.put("b", 2, Duration::from_mins(1));
        cache.put("c", 3, Duration::from_mins(1));
        assert_eq!((cache.get(&"a"), cache.get(&"b"), cache.get(&"c")), (None, Some(2), Some(3)));
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(cache.get(&"b"), None);
        cache.put("d", 4, Duration::from_secs(1));
        cache.forget(|key| *key == "d");
        assert_eq!(cache.get(&"d"), None);
    }
}
