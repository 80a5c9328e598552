//! Items in memory, with the semantics that DynamoDB has.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::items::{
    Draft, Index, IndexEntry, Item, ItemStore, Key, Lost, Page, Range, Write, Written,
};
use lakebell_engine::{EngineError, ErrorKind};

use crate::lock;

/// Actions of one transaction, as DynamoDB's `TransactWriteItems` allows.
const MOST_ACTIONS: usize = 100;
/// Bytes of one item, names of attributes included, as DynamoDB allows.
const MOST_ITEM_BYTES: usize = 400 * 1024;
/// Bytes of a partition key, as DynamoDB allows.
const MOST_PK_BYTES: usize = 2048;
/// Bytes of a sort key, as DynamoDB allows.
const MOST_SK_BYTES: usize = 1024;
/// Bytes of the names of an item's attributes, all present.
const ATTRIBUTE_NAME_BYTES: usize = 60;

/// An [`ItemStore`] in memory. Every call is atomic, and it never fails by itself; see
/// [`crate::Tapped`] for failures.
#[derive(Debug, Default)]
pub struct MemoryItems {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    items: BTreeMap<Key, Item>,
    /// What index look-ups see while they lag behind.
    stale: Option<BTreeMap<Key, Item>>,
    most_per_page: Option<usize>,
}

impl MemoryItems {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on a page of a query holds at most `most` items, also where the caller sets no
    /// limit: what DynamoDB does at 1 MB.
    pub fn limit_pages(&self, most: usize) {
        lock(&self.state).most_per_page = Some(most.max(1));
    }

    /// From now on index look-ups see the items as they are at this moment, until
    /// [`Self::thaw_indexes`]: an index that lags behind.
    pub fn freeze_indexes(&self) {
        let mut state = lock(&self.state);
        state.stale = Some(state.items.clone());
    }

    /// Index look-ups see every write again.
    pub fn thaw_indexes(&self) {
        lock(&self.state).stale = None;
    }

    /// Removes what has expired at `now` and says how many items that were. DynamoDB does so
    /// some time after the expiry, so an expired item may still be read until this is called.
    pub fn forget_expired(&self, now: Timestamp) -> usize {
        let mut state = lock(&self.state);
        let before = state.items.len();
        state.items.retain(|_, item| item.expires_at.is_none_or(|at| at > now));
        before - state.items.len()
    }

    /// Every item, by key: for checks over recorded state.
    pub fn dump(&self) -> Vec<Item> {
        lock(&self.state).items.values().cloned().collect()
    }

    /// One item, without a call that is logged or can fail.
    pub fn peek(&self, key: &Key) -> Option<Item> {
        lock(&self.state).items.get(key).cloned()
    }

    /// Puts an item as it is, past every condition: for damaged items in tests.
    pub fn plant(&self, item: Item) {
        lock(&self.state).items.insert(item.key.clone(), item);
    }
}

#[async_trait]
impl ItemStore for MemoryItems {
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError> {
        check_limit(limit)?;
        if range.from > range.to {
            return Err(defect("a range must not end before it begins")
                .with("from", &range.from)
                .with("to", &range.to));
        }
        let state = lock(&self.state);
        let most = limit.unwrap_or(usize::MAX).min(state.most_per_page.unwrap_or(usize::MAX));
        let first = Key::new(&range.pk, &range.from);
        let last = Key::new(&range.pk, &range.to);
        let rows = state
            .items
            .range(first..=last)
            .map(|(_, item)| item)
            .filter(|item| after.is_none_or(|after| item.key.sk.as_str() > after));
        Ok(page(rows.cloned(), most, |item| item.key.sk.clone()))
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        keys.iter().try_for_each(check_key)?;
        let state = lock(&self.state);
        // In one order, so that a simulation can be repeated.
        let wanted: BTreeSet<&Key> = keys.iter().collect();
        Ok(wanted.into_iter().filter_map(|key| state.items.get(key).cloned()).collect())
    }

    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        check_actions(actions)?;
        let mut state = lock(&self.state);
        let lost: Vec<Lost> = actions
            .iter()
            .enumerate()
            .filter_map(|(action, write)| {
                let existing = state.items.get(write.key());
                (!holds(write, existing)).then(|| Lost { action, existing: existing.cloned() })
            })
            .collect();
        if !lost.is_empty() {
            return Ok(Written::Lost(lost));
        }
        for write in actions {
            apply(&mut state.items, write, attempt);
        }
        Ok(Written::Done)
    }

    async fn index(
        &self,
        index: Index,
        pk: &str,
        up_to: Option<&str>,
        backwards: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Page<Key>, EngineError> {
        check_limit(Some(limit))?;
        let state = lock(&self.state);
        let seen = state.stale.as_ref().unwrap_or(&state.items);
        let mut rows: Vec<(String, Key)> = seen
            .values()
            .filter_map(|item| Some((entry(index, item)?, &item.key)))
            .filter(|(entry, _)| entry.pk == pk && up_to.is_none_or(|up_to| entry.sk.as_str() <= up_to))
            .map(|(entry, key)| (entry.sk.clone(), key.clone()))
            .collect();
        rows.sort();
        if backwards {
            rows.reverse();
        }
        let rest = match after {
            None => 0,
            Some(token) => rows.iter().position(|row| place(row) == token).map_or(rows.len(), |at| at + 1),
        };
        let found = page(rows.into_iter().skip(rest), limit, place);
        Ok(Page { found: found.found.into_iter().map(|(_, key)| key).collect(), next: found.next })
    }
}

/// Where an index look-up goes on.
fn place((sk, key): &(String, Key)) -> String {
    format!("{sk}\u{0}{}\u{0}{}", key.pk, key.sk)
}

/// The first `most` rows, and a token of the last of them where more follow.
fn page<T>(mut rows: impl Iterator<Item = T>, most: usize, token: impl Fn(&T) -> String) -> Page<T> {
    let found: Vec<T> = rows.by_ref().take(most).collect();
    let next = if rows.next().is_some() { found.last().map(token) } else { None };
    Page { found, next }
}

const fn entry(index: Index, item: &Item) -> Option<&IndexEntry> {
    match index {
        Index::Sweep => item.sweep.as_ref(),
        Index::History => item.history.as_ref(),
    }
}

fn holds(write: &Write, existing: Option<&Item>) -> bool {
    match write {
        Write::Create(_) => existing.is_none(),
        Write::Bump(_) => existing.is_some(),
        Write::Replace(_, rev) | Write::Expect(_, rev) | Write::Remove(_, rev) => {
            existing.is_some_and(|item| item.rev == *rev)
        }
    }
}

fn apply(items: &mut BTreeMap<Key, Item>, write: &Write, attempt: &AttemptId) {
    match write {
        Write::Create(draft) => {
            items.insert(draft.key.clone(), written(draft, 1, attempt));
        }
        Write::Replace(draft, rev) => {
            items.insert(draft.key.clone(), written(draft, rev + 1, attempt));
        }
        Write::Bump(key) => {
            if let Some(item) = items.get_mut(key) {
                item.rev += 1;
            }
        }
        Write::Expect(..) => {}
        Write::Remove(key, _) => {
            items.remove(key);
        }
    }
}

fn written(draft: &Draft, rev: u64, attempt: &AttemptId) -> Item {
    Item {
        key: draft.key.clone(),
        rev,
        attempt: attempt.clone(),
        doc: draft.doc.clone(),
        sweep: draft.sweep.clone(),
        history: draft.history.clone(),
        expires_at: draft.expires_at.map(whole_second),
    }
}

/// The next whole second: DynamoDB keeps expiries as seconds.
fn whole_second(at: Timestamp) -> Timestamp {
    let seconds = at.as_second() + i64::from(at.subsec_nanosecond() > 0);
    Timestamp::from_second(seconds).unwrap_or(at)
}

fn check_limit(limit: Option<usize>) -> Result<(), EngineError> {
    if limit == Some(0) { Err(defect("a limit must be at least 1")) } else { Ok(()) }
}

fn check_actions(actions: &[Write]) -> Result<(), EngineError> {
    if actions.len() > MOST_ACTIONS {
        return Err(defect(format!("{} actions are more than the {MOST_ACTIONS} of one transaction", actions.len())));
    }
    let mut seen = HashSet::new();
    for write in actions {
        let key = write.key();
        check_key(key)?;
        if !seen.insert(key) {
            return Err(defect("two actions of one transaction are about one item").with("item", show(key)));
        }
        if let Write::Create(draft) | Write::Replace(draft, _) = write {
            check_draft(draft)?;
        }
    }
    Ok(())
}

fn check_key(key: &Key) -> Result<(), EngineError> {
    let fits = |text: &str, most: usize| !text.is_empty() && text.len() <= most;
    if fits(&key.pk, MOST_PK_BYTES) && fits(&key.sk, MOST_SK_BYTES) {
        Ok(())
    } else {
        Err(defect(format!("a key is empty or longer than {MOST_PK_BYTES} and {MOST_SK_BYTES} bytes"))
            .with("item", show(key)))
    }
}

fn check_draft(draft: &Draft) -> Result<(), EngineError> {
    for entry in [&draft.sweep, &draft.history].into_iter().flatten() {
        check_key(&Key::new(&entry.pk, &entry.sk))?;
    }
    let entries = [&draft.sweep, &draft.history];
    let entry_bytes: usize = entries.into_iter().flatten().map(|entry| entry.pk.len() + entry.sk.len()).sum();
    let bytes = ATTRIBUTE_NAME_BYTES + draft.key.pk.len() + draft.key.sk.len() + draft.doc.len() + entry_bytes;
    if bytes > MOST_ITEM_BYTES {
        let message = format!("an item of {bytes} bytes is larger than the {MOST_ITEM_BYTES} of the store");
        return Err(defect(message).with("item", show(&draft.key)));
    }
    Ok(())
}

fn show(key: &Key) -> String {
    format!("{}|{}", key.pk, key.sk)
}

fn defect(message: impl Into<String>) -> EngineError {
    EngineError::new(ErrorKind::Defect, message)
}
