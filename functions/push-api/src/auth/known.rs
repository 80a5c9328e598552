//! Tokens that were looked up before.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::TokenId;
use lakebell_engine::access::Token;

/// How long a record is used without being read again: a token that is revoked is refused after so
/// long at most.
pub(super) const LONGEST: SignedDuration = SignedDuration::from_secs(60);
/// How long a record says no without being read again: a token that was just made or rotated is
/// taken after so long at most.
pub(super) const FRESH: SignedDuration = SignedDuration::from_secs(5);
/// Entries above this number are not kept beside each other; it begins again then.
const MOST: usize = 1_024;

/// What was found under an id.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The record; `None` where there was none.
    pub(super) token: Option<Token>,
    read_at: Timestamp,
}

impl Entry {
    /// Whether it was read just now.
    pub(super) fn is_fresh(&self, now: Timestamp) -> bool {
        now.duration_since(self.read_at) < FRESH
    }
}

/// Records by id, none older than [`LONGEST`].
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<TokenId, Entry>>);

impl Known {
    /// What was found, if it was read less than [`LONGEST`] ago.
    pub(super) fn get(&self, id: &TokenId, now: Timestamp) -> Option<Entry> {
        self.entries().get(id).filter(|entry| now.duration_since(entry.read_at) < LONGEST).cloned()
    }

    /// Keeps what was asked for at `read_at`.
    pub(super) fn put(&self, id: &TokenId, token: Option<Token>, read_at: Timestamp) {
        let mut entries = self.entries();
        if entries.len() >= MOST && !entries.contains_key(id) {
            entries.clear();
        }
        entries.insert(id.clone(), Entry { token, read_at });
    }

    /// Forgets what was found under an id.
    pub(super) fn forget(&self, id: &TokenId) {
        self.entries().remove(id);
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<TokenId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
