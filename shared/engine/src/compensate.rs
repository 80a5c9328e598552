//! What a clock has to do: look at every asset, evaluate every target, and carry on what has a
//! timer. Everything ends in the use cases that a notification reaches, so a pass normally finds
//! nothing to do.
//!
//! A pass hands its work out as messages, so that it goes beyond one invocation, and remembers how
//! far it came, so that one that runs out of time is continued and not begun again.

mod due;
mod warehouse;

pub use due::scan_due;
pub use warehouse::{Looked, look_for_tables};

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::ids::{TargetId, TraceId, TriggerKey};
use lakebell_domain::notice::Notice;
use lakebell_domain::trigger::{Arrow, Status, Trigger};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::evaluate::{INLINE_TARGETS, defect, send, trigger_draft};
use crate::follow::FOLLOWED_AT_ONCE;
use crate::inbox;
use crate::layout::{self, SHARDS};
use crate::ports::Ports;
use crate::ports::items::{Index, Item, Key, Range, Write, Written};
use crate::ports::queue::{MAX_BATCH, Message};
use crate::ports::time::doubled;
use crate::records::{RegisteredAsset, RegisteredTarget, Warehouse};
use crate::settings;
use crate::store::{self, Stored};
use crate::targets;
use crate::{EngineError, ErrorKind};

/// How late something with a timer may be before something is wrong: a sweep comes every minute.
pub(crate) const LATE: SignedDuration = SignedDuration::from_mins(15);
/// Registry entries read in one go.
const PAGE: usize = 100;
/// Batches on their way at the same time.
const SENT_AT_ONCE: usize = 16;
/// Timers taken from one shard in one pass; the rest is due in the next.
const TIMERS_PER_SHARD: usize = 100;
/// The first pause after which a queued trigger is sent again; it doubles with every send.
const FIRST_RESEND: SignedDuration = SignedDuration::from_mins(1);
/// The longest pause between two sends of one trigger.
const LONGEST_RESEND: SignedDuration = SignedDuration::from_hours(1);

/// What a pass goes through, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Registry {
    Assets,
    Targets,
    Warehouses,
}

/// How far a pass came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    registry: Registry,
    shard: u8,
    after: Option<String>,
}

impl Place {
    const START: Self = Self { registry: Registry::Assets, shard: 0, after: None };

    fn range(&self) -> Range {
        match self.registry {
            Registry::Assets => layout::registry_shard("RA", self.shard),
            Registry::Targets => layout::registry_shard("RT", self.shard),
            Registry::Warehouses => layout::settings(settings::WAREHOUSES),
        }
    }

    /// The place after a page that ended at `next`; `None` at the end of the pass.
    fn following(&self, next: Option<String>) -> Option<Self> {
        let begin = |registry| Some(Self { registry, shard: 0, after: None });
        match (next, self.registry) {
            (Some(after), _) => Some(Self { after: Some(after), ..self.clone() }),
            (None, Registry::Warehouses) => None,
            (None, _) if self.shard + 1 < SHARDS => Some(Self { shard: self.shard + 1, after: None, ..self.clone() }),
            (None, Registry::Assets) => begin(Registry::Targets),
            (None, Registry::Targets) => begin(Registry::Warehouses),
        }
    }
}

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pass {
    /// Assets handed out to be looked at.
    pub assets: usize,
    /// Targets handed out to be evaluated.
    pub targets: usize,
    /// Warehouses handed out to be looked through for new tables.
    pub warehouses: usize,
    /// Entries of a registry that could not be read, and targets that could not take in what both
    /// sides of a declaration missed. The log names them; they hold up nothing else.
    pub passed_over: usize,
    /// Whether it went through everything; `false` where it stopped and will be continued.
    pub is_complete: bool,
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Queued triggers that were sent again.
    pub sent_again: usize,
    /// Waiting triggers whose time had come.
    pub woken: usize,
    /// Triggers with a lease that ran out or an unknown outcome, handed to the dispatcher.
    pub looked_into: usize,
    /// Triggers that somebody else moved meanwhile.
    pub moved: usize,
    /// Targets whose gate, deadline or time had come.
    pub timed: usize,
    /// Triggers whose started instance is asked about.
    pub followed: usize,
    /// Stored events that nobody had worked on, sent again.
    pub letters: usize,
}

/// Hands out every asset, then every target, then every warehouse, from where the last pass stopped
/// until `deadline`. An asset with a scan interval of its own is left to [`scan_due`].
///
/// Errors: those of the store and the queue. The place is remembered then as well, so that the next
/// pass goes on with the page that failed.
pub async fn pass(ports: &Ports, trace: &TraceId, deadline: Timestamp) -> Result<Pass, EngineError> {
    let kept = store::get(&*ports.items, place_of_pass()).await?;
    pass_from(ports, kept, trace, deadline).await
}

/// Where it is remembered how far a pass came.
fn place_of_pass() -> Key {
    Key::new("SCAN", "-")
}

async fn pass_from(
    ports: &Ports,
    kept: Option<Stored<Option<Place>>>,
    trace: &TraceId,
    deadline: Timestamp,
) -> Result<Pass, EngineError> {
    let begun = kept.as_ref().and_then(|kept| kept.value.clone());
    let mut place = begun.clone().unwrap_or(Place::START);
    let mut pass = Pass::default();
    let walked = walk(ports, trace, deadline, &mut place, &mut pass).await;
    let reached = (!pass.is_complete).then_some(place);
    if reached != begun || kept.is_none() {
        // Two passes at once hand work out twice, which changes nothing; the later one's place stays.
        remember(ports, place_of_pass(), &reached, kept.map(|kept| kept.rev)).await?;
    }
    walked.map(|()| pass)
}

/// Goes on with a pass that ran out of time or failed; `None` where none is under way. So one that
/// takes several invocations needs as many minutes, not as many intervals.
///
/// Errors: those of [`pass`].
pub async fn resume(ports: &Ports, trace: &TraceId, deadline: Timestamp) -> Result<Option<Pass>, EngineError> {
    let kept: Option<Stored<Option<Place>>> = store::get(&*ports.items, place_of_pass()).await?;
    if kept.as_ref().is_none_or(|kept| kept.value.is_none()) {
        return Ok(None);
    }
    pass_from(ports, kept, trace, deadline).await.map(Some)
}

async fn walk(
    ports: &Ports,
    trace: &TraceId,
    deadline: Timestamp,
    place: &mut Place,
    pass: &mut Pass,
) -> Result<(), EngineError> {
    loop {
        let page = ports.items.query(&place.range(), Some(PAGE), place.after.as_deref()).await?;
        hand_out(ports, trace, place.registry, &page.found, pass).await?;
        match place.following(page.next) {
            None => {
                pass.is_complete = true;
                return Ok(());
            }
            Some(next) => *place = next,
        }
        if ports.clock.now() >= deadline {
            return Ok(());
        }
    }
}

async fn hand_out(
    ports: &Ports,
    trace: &TraceId,
    registry: Registry,
    page: &[Item],
    pass: &mut Pass,
) -> Result<(), EngineError> {
    match registry {
        Registry::Assets => {
            let mut assets: Vec<RegisteredAsset> = readable(page, &mut pass.passed_over);
            assets.retain(|asset| asset.settings.scan_interval.is_none());
            pass.assets += assets.len();
            let observe =
                |asset: RegisteredAsset| Message::Observe { asset: asset.id, is_again: false, trace: trace.clone() };
            send_all(ports, assets.into_iter().map(observe).collect()).await
        }
        Registry::Targets => {
            let targets: Vec<RegisteredTarget> = readable(page, &mut pass.passed_over);
            pass.passed_over += reconcile(ports, &targets, trace).await?;
            pass.targets += targets.len();
            let evaluate = |chunk: &[RegisteredTarget]| {
                let targets = chunk.iter().map(|target| target.id.clone()).collect();
                Message::Evaluate { targets, trace: trace.clone() }
            };
            send_all(ports, targets.chunks(INLINE_TARGETS).map(evaluate).collect()).await
        }
        Registry::Warehouses => {
            let warehouses: Vec<Warehouse> = readable(page, &mut pass.passed_over);
            pass.warehouses += warehouses.len();
            let look = |found: Warehouse| Message::LookForTables { warehouse: found.location, trace: trace.clone() };
            send_all(ports, warehouses.into_iter().map(look).collect()).await
        }
    }
}

/// The values of a page. One that cannot be read is passed over, so that it does not stop every pass
/// at its place.
fn readable<T: DeserializeOwned>(page: &[Item], passed_over: &mut usize) -> Vec<T> {
    let mut values = Vec::with_capacity(page.len());
    for item in page {
        match store::decode(item) {
            Ok(stored) => values.push(stored.value),
            Err(error) => {
                *passed_over += 1;
                tracing::error!(
                    error = &error as &(dyn std::error::Error + 'static),
                    reason = error.kind().code(),
                    "an entry of a registry is passed over"
                );
            }
        }
    }
    values
}

/// Writes how far something came. Where somebody else wrote meanwhile, theirs stays.
async fn remember<T: Serialize>(ports: &Ports, key: Key, place: &T, rev: Option<u64>) -> Result<(), EngineError> {
    let action = Write::put(store::draft(key, place)?, rev);
    store::write(&*ports.items, &*ports.random, &[action]).await.map(|_| ())
}

/// Takes in what a registration and a declaration at the same time both missed. Says how many
/// targets could not.
///
/// Errors: `Unavailable`, for a later try; what is wrong with one target holds up no other one.
async fn reconcile(ports: &Ports, page: &[RegisteredTarget], trace: &TraceId) -> Result<usize, EngineError> {
    let mut passed_over = 0;
    for target in page.iter().filter(|target| target.has_prefixes) {
        match targets::take_in(ports, &target.id, trace).await {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => {
                passed_over += 1;
                tracing::error!(
                    target = %target.id,
                    error = &error as &(dyn std::error::Error + 'static),
                    reason = error.kind().code(),
                    "a target could not take in assets by its prefixes"
                );
            }
        }
    }
    Ok(passed_over)
}

/// Sends messages in batches, a few at a time: one after the other, a pass over 10,000 assets would
/// not fit an invocation.
async fn send_all(ports: &Ports, messages: Vec<Message>) -> Result<(), EngineError> {
    let mut sending = JoinSet::new();
    let mut batches = messages.chunks(MAX_BATCH).map(<[Message]>::to_vec).collect::<Vec<_>>().into_iter();
    loop {
        while sending.len() < SENT_AT_ONCE
            && let Some(batch) = batches.next()
        {
            let queue = Arc::clone(&ports.queue);
            sending.spawn(async move { queue.send_batch(&batch).await });
        }
        match sending.join_next().await {
            None => return Ok(()),
            Some(Ok(sent)) => sent?,
            Some(Err(aborted)) => {
                return Err(EngineError::new(ErrorKind::Defect, "a message was not sent to its end").caused_by(aborted));
            }
        }
    }
}

/// Carries on every trigger whose time has come, and has every such target evaluated. Each hit of the index is read again consistently
/// before anything is decided.
pub async fn sweep(ports: &Ports, trace: &TraceId) -> Result<Sweep, EngineError> {
    let mut sweep = Sweep::default();
    let up_to = format!("{}#\u{10ffff}", layout::moment(ports.clock.now()));
    for shard in 0..SHARDS {
        let partition = layout::sweep_partition(shard);
        let due = ports.items.index(Index::Sweep, &partition, Some(&up_to), false, TIMERS_PER_SHARD, None).await?;
        if due.found.is_empty() {
            continue;
        }
        let mut targets = Vec::new();
        let mut followed = Vec::new();
        for item in ports.items.get(&due.found).await? {
            if let Some(target) = item.key.pk.strip_prefix("T#") {
                let cursor: TargetCursor = store::decode(&item)?.value;
                if cursor.due_at.is_some_and(|due_at| due_at <= ports.clock.now()) {
                    targets.push(target.parse::<TargetId>()?);
                }
                continue;
            }
            if item.key.pk.starts_with("I#") {
                sweep.letters += usize::from(inbox::send_again(ports, &item, trace).await?);
                continue;
            }
            let trigger: Stored<Trigger> = store::decode(&item)?;
            if trigger.value.has_ended() {
                followed.extend(put_off(ports, trigger, &mut sweep).await?);
            } else {
                carry_on(ports, trigger, trace, &mut sweep).await?;
            }
        }
        sweep.followed += followed.len();
        for triggers in followed.chunks(FOLLOWED_AT_ONCE) {
            ports.queue.send(&Message::Follow { triggers: triggers.to_vec(), trace: trace.clone() }).await?;
        }
        sweep.timed += targets.len();
        for chunk in targets.chunks(INLINE_TARGETS) {
            ports.queue.send(&Message::Evaluate { targets: chunk.to_vec(), trace: trace.clone() }).await?;
        }
    }
    Ok(sweep)
}

/// Puts off the next question about a started instance; the trigger's key where this one is to be asked
/// now, which is not so once it was followed long enough.
async fn put_off(
    ports: &Ports,
    trigger: Stored<Trigger>,
    sweep: &mut Sweep,
) -> Result<Option<TriggerKey>, EngineError> {
    let Some(next) = trigger.value.asked(ports.clock.now()) else { return Ok(None) };
    let action = Write::Replace(trigger_draft(&next)?, trigger.rev);
    if store::write(&*ports.items, &*ports.random, &[action]).await? != Written::Done {
        sweep.moved += 1;
        return Ok(None);
    }
    if let Some(followed) = next.followed().filter(|followed| followed.state.is_end()).cloned() {
        ports.notices.tell(Notice::WorkflowEnded { trigger: (&next).into(), followed });
        return Ok(None);
    }
    Ok(Some(next.key))
}

async fn carry_on(
    ports: &Ports,
    trigger: Stored<Trigger>,
    trace: &TraceId,
    sweep: &mut Sweep,
) -> Result<(), EngineError> {
    let now = ports.clock.now();
    let is_due = trigger.value.due_at.is_some_and(|due_at| due_at <= now);
    let is_held = matches!(trigger.value.status(), Status::Unknown { held: true, .. });
    if is_held || !is_due {
        return Ok(());
    }
    let (next, count) = match trigger.value.status() {
        Status::Queued => (sent(&trigger.value, now)?, &mut sweep.sent_again),
        Status::Leased { .. } | Status::Unknown { .. } => (sent(&trigger.value, now)?, &mut sweep.looked_into),
        Status::Waiting { .. } => {
            let woken = trigger.value.apply(&Arrow::Wake, now).map_err(defect)?;
            (sent(&woken, now)?, &mut sweep.woken)
        }
        Status::Success { .. } | Status::Failed { .. } | Status::Skipped { .. } => return Ok(()),
    };
    let action = Write::Replace(trigger_draft(&next)?, trigger.rev);
    if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
        send(ports, &next, trace).await?;
        *count += 1;
    } else {
        sweep.moved += 1;
    }
    Ok(())
}

/// Sent once more, with a growing pause until the next time, so that an outage does not multiply
/// messages.
fn sent(trigger: &Trigger, now: Timestamp) -> Result<Trigger, EngineError> {
    let pause = doubled(FIRST_RESEND, trigger.sends, LONGEST_RESEND);
    trigger.apply(&Arrow::Send { due_at: now + pause }, now).map_err(defect)
}
