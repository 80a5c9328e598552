//! The engine's ports as one worker sees them: each call waits for its turn, and may fail.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::items::{Index, Item, ItemStore, Key, Page, Range, Write, Written};
use lakebell_engine::ports::notices::NoNotices;
use lakebell_engine::ports::queue::{Message, Queue};
use lakebell_engine::ports::storage::{ConsumerFiles, Listed, Listing, Opened, TableStorage};
use lakebell_engine::ports::time::{Clock, Random};
use lakebell_engine::{EngineError, ErrorKind};

use super::job::Job;
use super::menu::REWRITTEN;
use super::shared::Outside;
use crate::{MemoryCatalogs, SeededRandom};

/// The ports of one worker.
#[derive(Clone)]
pub(super) struct Port {
    pub(super) outside: Outside,
    pub(super) worker: u64,
    /// How far the clock of its machine is off.
    pub(super) skew: SignedDuration,
    pub(super) random: SeededRandom,
}

/// Lets everybody else act first. Whoever is asked next is decided by the seed.
pub(super) async fn turn() {
    let mut is_second = false;
    poll_fn(|context| {
        if is_second {
            return Poll::Ready(());
        }
        is_second = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// It takes effect, and its answer is lost.
    LostAnswer,
    /// It takes effect, its answer is lost, and the client beneath the port sends it once more.
    Again,
}

impl Port {
    pub(super) fn ports(&self) -> Ports {
        let port = Arc::new(self.clone());
        Ports {
            items: Arc::clone(&port) as Arc<dyn ItemStore>,
            storage: Arc::clone(&port) as Arc<dyn TableStorage>,
            // No table of a simulation has a catalog, or keeps a consumer file.
            catalogs: Arc::new(MemoryCatalogs::new()),
            consumers: Arc::clone(&self.outside.storage) as Arc<dyn ConsumerFiles>,
            queue: Arc::clone(&port) as Arc<dyn Queue>,
            clock: Arc::clone(&port) as Arc<dyn Clock>,
            random: port,
            notices: Arc::new(NoNotices),
        }
    }

    /// A call's turn, and what goes wrong with it.
    async fn enter(&self, what: impl FnOnce() -> String, writes: bool) -> Result<Fault, EngineError> {
        turn().await;
        self.outside.advance(Duration::from_millis(5));
        let mut state = self.outside.state();
        state.counts.calls += 1;
        let percent = state.profile.fault_percent;
        let is_faulty = percent > 0 && state.dice.below(100) < percent && state.may_happen();
        if state.plan.tells {
            let line = format!("worker {}: {}", self.worker, what());
            state.tell(line);
        }
        if !is_faulty {
            return Ok(Fault::None);
        }
        state.counts.faults += 1;
        let kinds = if writes { 5 } else { 2 };
        let (fault, said) = match state.dice.below(kinds) {
            0 => (Err(EngineError::new(ErrorKind::Unavailable, "away (injected)")), "fails before its effect"),
            1 => (Ok(Fault::LostAnswer), "loses its answer"),
            2 => (Err(EngineError::new(ErrorKind::Contention, "a conflict (injected)")), "meets a conflict"),
            _ => (Ok(Fault::Again), "is carried out twice"),
        };
        state.tell(format!("worker {}: the call {said}", self.worker));
        fault
    }

    /// Whether a read that is no snapshot is torn here.
    fn is_torn(&self) -> bool {
        let mut state = self.outside.state();
        !state.is_calm && state.dice.chance(300) && state.may_happen()
    }

    /// What was read of a table may be long past when it is worked on: the reader is held up, and the table
    /// is rolled back meanwhile, where it is one of those.
    fn may_be_held_up(&self, key: &str) {
        let until = self.outside.in_seconds(1);
        let mut state = self.outside.state();
        let is_at_risk = state.profile.has_rewrites && !state.is_calm;
        if !is_at_risk || state.dice.below(state.profile.held_up) > 0 || !state.may_happen() {
            return;
        }
        state.hold_up(self.worker);
        let name = key.split('/').nth(2).unwrap_or_default().to_owned();
        let by = 1 + state.dice.below(3) as u64;
        let table = state.tables.get_mut(&name).filter(|_| REWRITTEN.contains(&name.as_str()));
        if table.is_some_and(|table| table.begin_rollback(by, until)) {
            state.tell(format!("table {name} is rolled back"));
            // Nobody else is told of the table, and somebody writes its state without a look at it.
            state.pending.retain(|job| !matches!(job, Job::Notify { table, .. } if *table == name));
            state.evidence_of_rewritten(&name);
        }
    }

    fn below(&self, bound: usize) -> usize {
        self.outside.state().dice.below(bound)
    }
}

fn answered<T>(fault: Fault, answer: T) -> Result<T, EngineError> {
    match fault {
        Fault::LostAnswer => Err(EngineError::new(ErrorKind::Unavailable, "the answer was lost (injected)")),
        Fault::None | Fault::Again => Ok(answer),
    }
}

#[async_trait]
impl ItemStore for Port {
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError> {
        let items = &self.outside.items;
        // Most shards of a registry are empty, and nobody waits for these.
        if limit.is_some() {
            let page = items.query(range, limit, after).await?;
            if page.found.is_empty() {
                return Ok(page);
            }
        }
        let fault = self.enter(|| format!("query {} from {}", range.pk, range.from), false).await?;
        // A query is no snapshot: it reads its items one after the other.
        if limit.is_none() && self.is_torn() {
            let first = items.query(range, Some(1 + self.below(3)), after).await?;
            let Some(reached) = first.next else { return answered(fault, first) };
            turn().await;
            let rest = items.query(range, None, Some(&reached)).await?;
            let found = first.found.into_iter().chain(rest.found).collect();
            return answered(fault, Page { found, next: rest.next });
        }
        answered(fault, items.query(range, limit, after).await?)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        let names = || keys.iter().map(|key| format!("{}|{}", key.pk, key.sk)).collect::<Vec<_>>().join(" ");
        let fault = self.enter(|| format!("get {}", names()), false).await?;
        let items = &self.outside.items;
        // Neither is a batch, and it reads in no particular order.
        if keys.len() > 1 && self.is_torn() {
            let mut keys = keys.to_vec();
            let by = self.below(keys.len());
            keys.rotate_left(by);
            let (first, rest) = keys.split_at(1 + self.below(keys.len() - 1));
            let mut found = items.get(first).await?;
            turn().await;
            found.extend(items.get(rest).await?);
            return answered(fault, found);
        }
        answered(fault, items.get(keys).await?)
    }

    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        let names = || actions.iter().map(action).collect::<Vec<_>>().join(" ");
        let fault = self.enter(|| format!("write {}", names()), true).await?;
        let mut written = self.write_once(actions, attempt).await?;
        if fault == Fault::Again {
            turn().await;
            written = self.write_once(actions, attempt).await?;
        }
        if let Written::Lost(lost) = &written {
            let which: Vec<usize> = lost.iter().map(|lost| lost.action).collect();
            self.outside.state().tell(format!("worker {}: lost {which:?}", self.worker));
        }
        answered(fault, written)
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
        // Empty shards answer at once: most of them are, and nobody waits for them.
        let page = self.outside.items.index(index, pk, up_to, backwards, limit, after).await?;
        if page.found.is_empty() {
            return Ok(page);
        }
        let fault = self.enter(|| format!("index {index:?} {pk}"), false).await?;
        answered(fault, self.outside.items.index(index, pk, up_to, backwards, limit, after).await?)
    }
}

impl Port {
    async fn write_once(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        let written = self.outside.items.write(actions, attempt).await?;
        if written == Written::Done {
            let changed = actions.iter().filter(|action| !matches!(action, Write::Expect(..)));
            let items: Vec<Item> = changed.filter_map(|action| self.outside.items.peek(action.key())).collect();
            self.outside.state().wrote(self.worker, &items);
        }
        Ok(written)
    }
}

#[async_trait]
impl TableStorage for Port {
    async fn open(&self, bucket: &str, key: &str) -> Result<Option<Opened>, EngineError> {
        let fault = self.enter(|| format!("read {key}"), false).await?;
        let opened = self.outside.storage.open(bucket, key).await?;
        self.may_be_held_up(key);
        answered(fault, opened)
    }

    async fn list(&self, bucket: &str, listing: Listing<'_>) -> Result<Vec<Listed>, EngineError> {
        let fault = self.enter(|| format!("list {}", listing.prefix), false).await?;
        let listed = self.outside.storage.list(bucket, listing).await?;
        self.may_be_held_up(listing.prefix);
        answered(fault, listed)
    }

    async fn folders(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, EngineError> {
        let fault = self.enter(|| format!("folders {prefix}"), false).await?;
        answered(fault, self.outside.storage.folders(bucket, prefix, after, limit).await?)
    }
}

#[async_trait]
impl Queue for Port {
    async fn send(&self, message: &Message) -> Result<(), EngineError> {
        let fault = self.enter(|| format!("send {message:?}"), true).await?;
        let copies = if fault == Fault::Again { 2 } else { 1 };
        let mut state = self.outside.state();
        state.sent(self.worker, message);
        state.pending.extend((0..copies).map(|_| Job::Message(message.clone())));
        drop(state);
        answered(fault, ())
    }

    /// Delivered at any time, as all are.
    async fn send_later(&self, message: &Message, _seconds: u32) -> Result<(), EngineError> {
        self.send(message).await
    }
}

impl Clock for Port {
    fn now(&self) -> Timestamp {
        self.outside.now() + self.skew
    }
}

impl Random for Port {
    fn bits(&self) -> u128 {
        self.random.bits()
    }
}

fn action(write: &Write) -> String {
    let key = write.key();
    let verb = match write {
        Write::Create(_) => "create",
        Write::Replace(..) => "replace",
        Write::Bump(_) => "bump",
        Write::Expect(..) => "expect",
        Write::Remove(..) => "remove",
    };
    format!("{verb} {}|{}", key.pk, key.sk)
}
