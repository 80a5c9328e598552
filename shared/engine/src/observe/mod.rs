//! Look at an asset: read its commits after the known version from the table itself and apply
//! them in order.
//!
//! A notification, a push and a scan all end here. A hint says only where to look; what counts is
//! what storage shows. State is read first, then storage, then the write, and a lost race repeats
//! the storage read too: an observer that read snapshot 12 before a rollback must not apply it
//! after.

mod delta;
mod epoch;
mod findings;
mod hudi;
mod iceberg;
mod paimon;
mod past;
mod recognise;
mod table;
mod tags;
mod told;

pub use findings::was_untold;
pub use past::MAX_PAST;
pub(crate) use past::{keep_past, past, place_in_storage};
pub use recognise::is_table_of;
pub(crate) use recognise::{agree, format_at, format_found};
use table::Back;
pub(crate) use table::{file_of, uuid_of};
pub(crate) use told::told;

use std::collections::BTreeSet;

use jiff::SignedDuration;
use lakebell_domain::asset::Format;
use lakebell_domain::event::{EventKind, Outcome, Source};
use lakebell_domain::ids::{AssetId, TraceId};
use lakebell_domain::notice::Notice;
use lakebell_domain::state::AssetState;
use lakebell_domain::version::Ordinal;

use crate::asset_settings::{AssetSettings, Trust};
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Item, Write, Written};
use crate::ports::queue::Message;
use crate::records::{AssetHead, Pointer, Ring};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// Why evidence about a deregistered asset moves nothing.
pub(crate) const DEREGISTERED: &str = "the asset is deregistered";
/// How long events are kept: longer than any queue redelivers (14 days).
pub const EVENT_RETENTION: SignedDuration = SignedDuration::from_hours(21 * 24);
/// How long events of commits are kept of which some target looks at each one.
pub(crate) const HISTORY_RETENTION: SignedDuration = SignedDuration::from_hours(400 * 24);
/// Most commits read and written in one go; a transaction takes 100 actions.
const MAX_COMMITS_PER_WRITE: usize = 90;
/// How long after a notification the catalog is asked once more, where it has not named the file that
/// was notified: writers put it there just before they ask the catalog to take it.
const AGAIN_SECONDS: u32 = 10;
/// Most goes in one call; what is left is sent on as a message.
const MAX_GOES: usize = 20;

/// Where to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// At the commit with this ordinal, and at what lies between it and the known one. Where the
    /// numbers that people and writers use are not the ordinals (all formats but Paimon), it is a
    /// look at everything.
    At {
        /// The ordinal.
        ordinal: Ordinal,
        /// The entity tag that the notification named, without quotes.
        etag: Option<String>,
    },
    /// At a file, as a notification named it: a commit, or something else that the reader of the
    /// table's format tells from its key.
    File {
        /// Its key relative to the table's root.
        key: String,
        /// Its entity tag, without quotes, where the notification had one.
        etag: Option<String>,
    },
    /// At the tag with this name.
    Tag(String),
    /// At everything: follow to the newest commit, and compare what was taken on trust.
    Whole,
}

/// Something that says "look at this asset". It carries no authority over versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The asset.
    pub asset: AssetId,
    /// Where to look.
    pub look: Look,
    /// How the hint came.
    pub source: Source,
    /// The trace that it begins.
    pub trace: TraceId,
}

/// What came of one look.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The asset as it stands now.
    pub head: Stored<AssetHead>,
    /// The asset.
    pub asset: AssetId,
    /// The targets that depend on it.
    pub pointers: Vec<Pointer>,
    /// What was found, oldest first; a single duplicate where nothing was new.
    pub outcomes: Vec<(EventKind, Outcome)>,
}

/// An asset as the store has it.
struct Known {
    head: Stored<AssetHead>,
    ring: Stored<Ring>,
    pointers: Vec<Pointer>,
}

/// Looks at an asset and records what it finds.
///
/// Errors: `NotFound` for an asset that is not registered; `Unavailable` where storage or the
/// store could not be reached, and `Contention` after too many lost races, both to be tried again.
pub async fn observe(ports: &Ports, hint: &Hint) -> Result<Observed, EngineError> {
    observe_branch(ports, hint).await.map(|(observed, _)| observed)
}

/// The same, with the names of other branches that the files hold which were read: where one file
/// holds every branch of a table, their assets are to be looked at as well.
pub(crate) async fn observe_branch(ports: &Ports, hint: &Hint) -> Result<(Observed, BTreeSet<String>), EngineError> {
    let mut branches = BTreeSet::new();
    let mut outcomes = Vec::new();
    let mut lost_races = 0;
    for _ in 0..MAX_GOES {
        let known = load(ports, hint.asset).await?;
        if known.head.value.deregistered_at.is_some() {
            outcomes.push((EventKind::SnapshotCommitted, Outcome::Ignored(DEREGISTERED.to_owned())));
            return Ok((observed(hint.asset, known, outcomes), branches));
        }
        let head = &known.head.value;
        let reading = read(ports, head, &head.state, &known.ring.value, &hint.look, Back::ToData).await?;
        let reading = tags::place(ports, hint.asset, &head.state, reading).await?;
        let applied = findings::apply(hint, &known.head, &known.ring, &known.pointers, &reading, ports.clock.now())?;
        if let Some(actions) = applied.actions {
            if record(ports, actions).await? {
                lost_races = 0;
            } else {
                lost_races += 1;
                if lost_races >= MAX_LOST_RACES {
                    return Err(store::lost_too_often("observe").with("asset", hint.asset));
                }
                continue;
            }
        }
        notices(ports, &known.head.value, &applied.head);
        outcomes.extend(applied.outcomes);
        branches.extend(reading.branches);
        if let Some(error) = reading.failed {
            return Err(error.with("asset", hint.asset));
        }
        if reading.look_again {
            let again = Message::Observe { asset: hint.asset, is_again: true, trace: hint.trace.clone() };
            ports.queue.send_later(&again, AGAIN_SECONDS).await?;
        }
        if !reading.more {
            let head = Stored { rev: applied.rev, value: applied.head };
            let observed = observed(hint.asset, Known { head, ..known }, outcomes);
            return Ok((follow_rewrite(ports, observed, &hint.trace).await?, branches));
        }
    }
    let rest = Message::Observe { asset: hint.asset, is_again: false, trace: hint.trace.clone() };
    ports.queue.send(&rest).await?;
    Ok((observed(hint.asset, load(ports, hint.asset).await?, outcomes), branches))
}

/// Applies a reading to an asset as it is recorded, and writes what follows; `None` where somebody else
/// wrote the state first.
async fn write_reading(
    ports: &Ports,
    hint: &Hint,
    known: Known,
    reading: &findings::Reading,
) -> Result<Option<Observed>, EngineError> {
    let applied = findings::apply(hint, &known.head, &known.ring, &known.pointers, reading, ports.clock.now())?;
    if let Some(actions) = applied.actions {
        if !record(ports, actions).await? {
            return Ok(None);
        }
        notices(ports, &known.head.value, &applied.head);
    }
    let head = Stored { rev: applied.rev, value: applied.head };
    Ok(Some(observed(hint.asset, Known { head, ..known }, applied.outcomes)))
}

/// Tells what is new of an asset, once it is written.
fn notices(ports: &Ports, before: &AssetHead, after: &AssetHead) {
    if let Some(version) = after.state.table.as_ref().filter(|version| Some(*version) != before.state.table.as_ref()) {
        let (asset, version) = (after.key.clone(), version.clone());
        ports.notices.tell(Notice::AssetAdvanced { asset, version });
    }
    if let Some(hold) = after.state.hold.as_ref().filter(|_| before.state.hold.is_none()) {
        ports.notices.tell(Notice::of_hold(&after.key, hold));
    }
}

/// Writes a state and its events; `false` where somebody else wrote the state first.
///
/// An event that is there already was recorded before (a rewrite that went away and came back
/// shows the same commit twice in one epoch): the state is written without it.
async fn record(ports: &Ports, mut actions: Vec<Write>) -> Result<bool, EngineError> {
    let lost = match store::write(&*ports.items, &*ports.random, &actions).await? {
        Written::Done => return Ok(true),
        Written::Lost(lost) => lost,
    };
    let is_event = |action: usize| matches!(actions.get(action), Some(Write::Create(_)));
    if !lost.iter().all(|lost| is_event(lost.action)) {
        return Ok(false);
    }
    let mut at = 0;
    actions.retain(|_| {
        at += 1;
        !lost.iter().any(|lost| lost.action + 1 == at)
    });
    Ok(store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done)
}

fn observed(asset: AssetId, known: Known, mut outcomes: Vec<(EventKind, Outcome)>) -> Observed {
    if outcomes.is_empty() {
        outcomes.push((EventKind::SnapshotCommitted, Outcome::Duplicate));
    }
    Observed { asset, head: known.head, pointers: known.pointers, outcomes }
}

/// Head and pointers of an asset as they are recorded, without a look at storage.
pub(crate) async fn recorded(ports: &Ports, asset: AssetId) -> Result<(Stored<AssetHead>, Vec<Pointer>), EngineError> {
    let known = load(ports, asset).await?;
    Ok((known.head, known.pointers))
}

/// Head, ring and pointers in one consistent query.
async fn load(ports: &Ports, asset: AssetId) -> Result<Known, EngineError> {
    let items = store::all_of(&*ports.items, &layout::head_ring_pointers(asset)).await?;
    let not_found = || EngineError::new(ErrorKind::NotFound, "the asset is not registered").with("asset", asset);
    let head = store::pick(&items, &layout::head(asset)).ok_or_else(not_found)?;
    let ring = store::pick(&items, &layout::ring(asset)).ok_or_else(not_found)?;
    let is_pointer = |item: &&Item| item.key.sk.starts_with("2#");
    let pointers = items
        .iter()
        .filter(is_pointer)
        .map(|item| store::decode(item).map(|stored| stored.value))
        .collect::<Result<_, _>>()?;
    Ok(Known { head: store::decode(head)?, ring: store::decode(ring)?, pointers })
}

async fn read(
    ports: &Ports,
    head: &AssetHead,
    state: &AssetState,
    ring: &Ring,
    look: &Look,
    back: Back<'_>,
) -> Result<findings::Reading, EngineError> {
    let table = || table::Table {
        storage: &*ports.storage,
        location: &head.location,
        branch: head.key.branch(),
        back,
        now: ports.clock.now(),
    };
    if head.settings.trust == Trust::Writer {
        return Ok(told::recorded(state, look, &table()));
    }
    // On the heap, because the future of a look is as large as that of its largest reader.
    let reading = match head.key.format() {
        Format::Paimon => Box::pin(paimon::Reader { table: table() }.read(state, ring, look)).await,
        Format::Delta => Box::pin(delta::Reader { table: table() }.read(state, ring, look)).await,
        Format::Iceberg => {
            let AssetSettings { catalog, watermark_property, .. } = &head.settings;
            let asked = iceberg::Asked { catalog, catalogs: &*ports.catalogs, key: &head.key };
            let reader = iceberg::Reader { table: table(), asked, watermark: watermark_property.as_deref() };
            Box::pin(reader.read(state, ring, look)).await
        }
        Format::Hudi => Box::pin(hudi::Reader { table: table() }.read(state, ring, look)).await,
    };
    table().settle(reading)
}

/// Where every target of an asset follows rewrites by itself, a confirmed one is accepted. One target
/// that holds keeps it for a person: the history is the asset's, not a target's.
async fn follow_rewrite(ports: &Ports, observed: Observed, trace: &TraceId) -> Result<Observed, EngineError> {
    let Some(hold) = &observed.head.value.state.hold else { return Ok(observed) };
    let settle = observed.pointers.iter().map(|pointer| pointer.follows_rewrites_after);
    let settle = settle.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
    let is_settled = settle.is_some_and(|settle| {
        hold.confirmed_at.is_some() && ports.clock.now().duration_since(hold.first_seen) >= settle.duration()
    });
    if !is_settled {
        return Ok(observed);
    }
    match Box::pin(accept_rewrite(ports, observed.asset, trace)).await {
        Ok(accepted) => {
            let outcomes = observed.outcomes.into_iter().chain(accepted.outcomes).collect();
            Ok(Observed { outcomes, ..accepted })
        }
        // Somebody else has accepted it, or it went away: what is recorded counts, and nobody's hint is to blame.
        Err(error) if error.kind() == ErrorKind::Conflict => {
            let (head, pointers) = Box::pin(recorded(ports, observed.asset)).await?;
            Ok(Observed { head, pointers, ..observed })
        }
        Err(error) => Err(error),
    }
}

/// Accepts a rewrite that is held: a new epoch begins with what storage shows now.
///
/// Errors: `Conflict` where nothing is held or a second read has not yet confirmed it.
pub async fn accept_rewrite(ports: &Ports, asset: AssetId, trace: &TraceId) -> Result<Observed, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, asset).await?;
        let head = &known.head.value;
        let hold = head
            .state
            .hold
            .as_ref()
            .ok_or_else(|| EngineError::new(ErrorKind::Conflict, "no rewrite of this asset is held"))?;
        if hold.confirmed_at.is_none() {
            return Err(EngineError::new(
                ErrorKind::Conflict,
                "the rewrite was seen once; a second read, 60 s later, has to agree before it can be accepted",
            ));
        }
        let fresh = AssetState { epoch: head.state.epoch.next(), ..AssetState::default() };
        let back = Back::ToKnown(&known.ring.value, epoch::MAX_FIRST);
        let mut reading = read(ports, head, &fresh, &Ring::default(), &Look::Whole, back).await?;
        if let Some(error) = reading.failed.take() {
            return Err(error);
        }
        let hint = Hint { asset, look: Look::Whole, source: Source::Push, trace: trace.clone() };
        let reading = epoch::begin(ports, asset, head, &known.ring.value, reading).await?;
        if let Some(observed) = write_reading(ports, &hint, known, &reading).await? {
            return Ok(observed);
        }
    }
    Err(store::lost_too_often("accept rewrite").with("asset", asset))
}

/// The actions that create an asset's own items, for the transaction that registers it.
pub(crate) fn create_asset(head: &AssetHead, id: AssetId) -> Result<[Write; 2], EngineError> {
    Ok([
        Write::Create(store::draft(layout::head(id), head)?),
        Write::Create(store::draft(layout::ring(id), &Ring::default())?),
    ])
}
