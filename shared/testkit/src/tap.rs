//! A tap on the ports: logs every call, and breaks some of them by plan or by chance.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::AttemptId;
use lakebell_engine::catalog::RemoteCatalog;
use lakebell_engine::ports::catalog::Catalogs;
use lakebell_engine::ports::items::{Index, Item, ItemStore, Key, Page, Range, Write, Written};
use lakebell_engine::ports::queue::{Message, Queue};
use lakebell_engine::ports::storage::{ConsumerFiles, Listed, Listing, Opened, TableStorage};
use lakebell_engine::{EngineError, ErrorKind};

use crate::lock;
use crate::time::SeededRandom;

/// Keys of one `BatchGetItem`.
const KEYS_PER_CALL: usize = 100;
/// Rows of one `ListObjectsV2`.
const ROWS_PER_CALL: usize = 1000;

/// What can be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// `ItemStore::query`.
    Query,
    /// `ItemStore::get`.
    Get,
    /// `ItemStore::write`.
    Write,
    /// `ItemStore::index`.
    Index,
    /// `TableStorage::open`, and `get` through it.
    Read,
    /// `TableStorage::list`.
    List,
    /// `TableStorage::folders`.
    Folders,
    /// `ConsumerFiles::put`.
    Put,
    /// `Queue::send` and `Queue::send_later`.
    Send,
    /// `Catalogs::current`.
    Catalog,
}

/// One call, as one request to AWS counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What was called.
    pub op: Op,
    /// What it was about, for messages of failing tests.
    pub about: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.op, self.about)
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this kind and has no effect.
    Before(ErrorKind),
    /// It takes effect, and its answer is lost: `Unavailable`.
    LostAnswer,
    /// The function dies before the call has an effect: this call and all later ones fail, without
    /// effect, until [`Tap::revive`].
    DiesBefore,
    /// The function dies right after the call took effect: all later ones fail, without effect,
    /// until [`Tap::revive`].
    DiesAfter,
}

type Hook = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

struct Plan<T> {
    op: Option<Op>,
    /// How many matching calls still pass before it.
    skip: usize,
    what: T,
}

#[derive(Default)]
struct State {
    log: Vec<Call>,
    faults: Vec<Plan<Fault>>,
    hooks: Vec<Plan<Hook>>,
    chance: Option<(SeededRandom, u64)>,
    dead: bool,
}

/// The log of calls and the plan of faults. Clones share both.
#[derive(Clone, Default)]
pub struct Tap(Arc<Mutex<State>>);

impl Tap {
    /// An empty log and no faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Breaks the `nth` call of this kind from now on; 1 is the next one.
    pub fn fault(&self, op: Op, nth: usize, fault: Fault) {
        lock(&self.0).faults.push(Plan { op: Some(op), skip: nth.saturating_sub(1), what: fault });
    }

    /// Breaks the `nth` call of any kind from now on; 1 is the next one.
    pub fn fault_any(&self, nth: usize, fault: Fault) {
        lock(&self.0).faults.push(Plan { op: None, skip: nth.saturating_sub(1), what: fault });
    }

    /// Runs something just before the `nth` call of this kind from now on: another writer between
    /// a read and a write. Calls that it makes are logged and count as well.
    pub fn before<F>(&self, op: Op, nth: usize, hook: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let hook: Hook = Box::new(move || Box::pin(hook()));
        lock(&self.0).hooks.push(Plan { op: Some(op), skip: nth.saturating_sub(1), what: hook });
    }

    /// From now on each call fails with this chance, in one of the ways that AWS has: away before
    /// the effect, answer lost, or contention (writes only).
    pub fn chance(&self, seed: u64, percent: u64) {
        lock(&self.0).chance = Some((SeededRandom::new(seed), percent));
    }

    /// Ends every fault, hook and chance, and brings a dead function back.
    pub fn calm(&self) {
        let mut state = lock(&self.0);
        state.faults.clear();
        state.hooks.clear();
        state.chance = None;
        state.dead = false;
    }

    /// Whether a fault let the function die.
    pub fn dead(&self) -> bool {
        lock(&self.0).dead
    }

    /// Calls work again after a death. Says whether there was one.
    pub fn revive(&self) -> bool {
        std::mem::take(&mut lock(&self.0).dead)
    }

    /// The calls so far.
    pub fn log(&self) -> Vec<Call> {
        lock(&self.0).log.clone()
    }

    /// Takes the calls so far and begins a new log.
    pub fn take_log(&self) -> Vec<Call> {
        std::mem::take(&mut lock(&self.0).log)
    }

    /// How many calls of one kind there were.
    pub fn count(&self, op: Op) -> usize {
        lock(&self.0).log.iter().filter(|call| call.op == op).count()
    }

    /// How many calls there were.
    pub fn total(&self) -> usize {
        lock(&self.0).log.len()
    }

    /// Puts the tap before a port.
    pub fn on<P: ?Sized>(&self, port: Arc<P>) -> Arc<Tapped<P>> {
        Arc::new(Tapped { tap: self.clone(), port })
    }

    async fn enter(&self, op: Op, about: String) -> Option<Fault> {
        let hook = take(&mut lock(&self.0).hooks, op);
        if let Some(hook) = hook {
            hook().await;
        }
        let mut state = lock(&self.0);
        if state.dead {
            return Some(Fault::DiesBefore);
        }
        state.log.push(Call { op, about });
        let fault = take(&mut state.faults, op).or_else(|| {
            let (random, percent) = state.chance.as_ref()?;
            (random.below(100) < *percent).then(|| match random.below(3) {
                0 => Fault::LostAnswer,
                1 if op == Op::Write => Fault::Before(ErrorKind::Contention),
                _ => Fault::Before(ErrorKind::Unavailable),
            })
        });
        if matches!(fault, Some(Fault::DiesBefore | Fault::DiesAfter)) {
            state.dead = true;
        }
        fault
    }

    async fn call<T>(
        &self,
        op: Op,
        about: String,
        effect: impl Future<Output = Result<T, EngineError>> + Send,
    ) -> Result<T, EngineError> {
        let lost = |what: &str| EngineError::new(ErrorKind::Unavailable, format!("{what} (injected)"));
        match self.enter(op, about).await {
            None => effect.await,
            Some(Fault::Before(kind)) => Err(EngineError::new(kind, "the call failed (injected)")),
            Some(Fault::DiesBefore) => Err(lost("the function died")),
            Some(Fault::LostAnswer) => effect.await.and(Err(lost("the answer was lost"))),
            Some(Fault::DiesAfter) => effect.await.and(Err(lost("the function died after the call"))),
        }
    }

    fn also(&self, op: Op, more: usize, about: &str) {
        let call = Call { op, about: about.to_owned() };
        lock(&self.0).log.extend(std::iter::repeat_n(call, more));
    }
}

/// The plan whose turn it is; every matching plan comes one call nearer.
fn take<T>(plans: &mut Vec<Plan<T>>, op: Op) -> Option<T> {
    let mut due = None;
    for (index, plan) in plans.iter_mut().enumerate() {
        if plan.op.is_none_or(|planned| planned == op) {
            if plan.skip == 0 {
                due = due.or(Some(index));
            } else {
                plan.skip -= 1;
            }
        }
    }
    due.map(|index| plans.remove(index).what)
}

/// A port with a [`Tap`] before it.
pub struct Tapped<P: ?Sized> {
    tap: Tap,
    port: Arc<P>,
}

#[async_trait]
impl<P: ItemStore + ?Sized> ItemStore for Tapped<P> {
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError> {
        let about = format!("{}|{}..{}", range.pk, range.from, range.to.escape_unicode());
        self.tap.call(Op::Query, about, self.port.query(range, limit, after)).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        let names: Vec<String> = keys.iter().map(name).collect();
        let about = names.join(" ");
        let found = self.tap.call(Op::Get, about.clone(), self.port.get(keys)).await?;
        self.tap.also(Op::Get, keys.len().div_ceil(KEYS_PER_CALL).saturating_sub(1), &about);
        Ok(found)
    }

    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        let names: Vec<String> = actions.iter().map(action).collect();
        self.tap.call(Op::Write, names.join(" "), self.port.write(actions, attempt)).await
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
        let about = format!("{index:?} {pk} up to {}", up_to.unwrap_or("the end"));
        self.tap.call(Op::Index, about, self.port.index(index, pk, up_to, backwards, limit, after)).await
    }
}

#[async_trait]
impl<P: TableStorage + ?Sized> TableStorage for Tapped<P> {
    async fn open(&self, bucket: &str, key: &str) -> Result<Option<Opened>, EngineError> {
        self.tap.call(Op::Read, format!("{bucket}/{key}"), self.port.open(bucket, key)).await
    }

    async fn list(&self, bucket: &str, listing: Listing<'_>) -> Result<Vec<Listed>, EngineError> {
        let about = format!("{bucket}/{}", listing.prefix);
        let rows = self.tap.call(Op::List, about.clone(), self.port.list(bucket, listing)).await?;
        self.tap.also(Op::List, rows.len().div_ceil(ROWS_PER_CALL).saturating_sub(1), &about);
        Ok(rows)
    }

    async fn folders(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, EngineError> {
        let about = format!("{bucket}/{prefix}");
        self.tap.call(Op::Folders, about, self.port.folders(bucket, prefix, after, limit)).await
    }
}

#[async_trait]
impl<P: ConsumerFiles + ?Sized> ConsumerFiles for Tapped<P> {
    async fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>, over: Option<&str>) -> Result<bool, EngineError> {
        self.tap.call(Op::Put, format!("{bucket}/{key}"), self.port.put(bucket, key, bytes, over)).await
    }
}

#[async_trait]
impl<P: Queue + ?Sized> Queue for Tapped<P> {
    async fn send(&self, message: &Message) -> Result<(), EngineError> {
        self.tap.call(Op::Send, format!("{message:?}"), self.port.send(message)).await
    }

    async fn send_later(&self, message: &Message, seconds: u32) -> Result<(), EngineError> {
        let about = format!("{message:?} in {seconds} s");
        self.tap.call(Op::Send, about, self.port.send_later(message, seconds)).await
    }
}

#[async_trait]
impl<P: Catalogs + ?Sized> Catalogs for Tapped<P> {
    async fn current(&self, catalog: &RemoteCatalog, table: &AssetKey) -> Result<String, EngineError> {
        self.tap.call(Op::Catalog, table.to_string(), self.port.current(catalog, table)).await
    }
}

fn name(key: &Key) -> String {
    format!("{}|{}", key.pk, key.sk)
}

fn action(write: &Write) -> String {
    let verb = match write {
        Write::Create(_) => "create",
        Write::Replace(..) => "replace",
        Write::Bump(_) => "bump",
        Write::Expect(..) => "expect",
        Write::Remove(..) => "remove",
    };
    format!("{verb}:{}", name(write.key()))
}
