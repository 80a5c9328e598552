//! Events that writers push.
//!
//! A pushed version is a hint: storage alone moves the data version. An event that storage does
//! not (yet) confirm is kept with that as its outcome.

use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::event::{Event, EventKind, Outcome, Source};
use lakebell_domain::ids::{AssetId, TraceId};
use lakebell_domain::version::Ordinal;
use sha2::{Digest, Sha256};

use crate::evaluate::{self, Evaluated};
use crate::layout;
use crate::observe::{self, EVENT_RETENTION, Hint, Look, Observed};
use crate::ports::Ports;
use crate::ports::items::{Draft, Write};
use crate::records::Unregistered;
use crate::store;
use crate::{EngineError, assets};

/// Kinds that can be pushed in this version. Verdicts, schema decisions, backfills, CDC lag and
/// done partitions need conditions that are not available yet.
pub const PUSHABLE: [EventKind; 3] =
    [EventKind::SnapshotCommitted, EventKind::WatermarkAdvanced, EventKind::TagCreated];

/// Which asset an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By its key.
    Key(AssetKey),
    /// By where the table lives.
    Location(Location),
}

/// One pushed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Unique for its source: the identity of the push.
    pub id: String,
    /// Who sent it.
    pub source: String,
    /// What it says.
    pub kind: EventKind,
    /// What it is about.
    pub asset: Named,
    /// The snapshot that it names.
    pub snapshot_id: Option<String>,
    /// The tag that it names.
    pub tag: Option<String>,
}

/// What became of a pushed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// The asset was looked at; this is what the event meant for it.
    Looked(Outcome),
    /// No such asset is registered; the table is kept as seen where its location is known.
    UnknownAsset,
}

/// What came of a push.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// What became of the event.
    pub receipt: Receipt,
    /// The evaluations that followed.
    pub evaluated: Vec<Evaluated>,
}

/// Takes a pushed event: looks at the asset, evaluates its targets, and keeps the event where
/// storage does not confirm it.
///
/// Errors: `Invalid` with the field for a kind that cannot be pushed or a field that is missing.
pub async fn push(ports: &Ports, pushed: &Pushed, trace: &TraceId) -> Result<Accepted, EngineError> {
    let look = look_of(pushed)?;
    let Some(asset) = resolve(ports, pushed).await? else {
        return Ok(Accepted { receipt: Receipt::UnknownAsset, evaluated: Vec::new() });
    };
    let hint = Hint { asset, look, source: Source::Push, trace: trace.clone() };
    let observed = observe::observe(ports, &hint).await?;
    let evaluated = evaluate::evaluate_dependents(ports, &observed, trace).await?;
    if let Some(reason) = unconfirmed(pushed, &observed) {
        keep(ports, asset, pushed, &observed, &reason, trace).await?;
        return Ok(Accepted { receipt: Receipt::Looked(Outcome::Ignored(reason)), evaluated });
    }
    let outcome = observed.outcomes.last().map_or(Outcome::Duplicate, |(_, outcome)| outcome.clone());
    Ok(Accepted { receipt: Receipt::Looked(outcome), evaluated })
}

fn look_of(pushed: &Pushed) -> Result<Look, EngineError> {
    if !PUSHABLE.contains(&pushed.kind) {
        let names: Vec<&str> = PUSHABLE.iter().map(|kind| kind.as_str()).collect();
        return Err(Invalid::new(
            "type",
            format!("{} cannot be pushed in this version", pushed.kind),
            format!("push one of {}", names.join(", ")),
        )
        .into());
    }
    match (pushed.kind, &pushed.tag, &pushed.snapshot_id) {
        (EventKind::TagCreated, Some(tag), _) => Ok(Look::Tag(tag.clone())),
        (EventKind::TagCreated, None, _) => {
            Err(Invalid::new("data.tag", "the event names no tag", "give the tag's name").into())
        }
        (EventKind::SnapshotCommitted, _, Some(id)) => match id.parse() {
            Ok(ordinal) => Ok(Look::At { ordinal: Ordinal(ordinal), etag: None }),
            Err(_) => Ok(Look::Whole),
        },
        _ => Ok(Look::Whole),
    }
}

async fn resolve(ports: &Ports, pushed: &Pushed) -> Result<Option<AssetId>, EngineError> {
    match &pushed.asset {
        Named::Key(key) => assets::lookup(ports, key).await,
        Named::Location(location) => {
            let found = assets::at_location(ports, location, None).await?;
            if found.is_none() {
                let seen = Unregistered {
                    location: location.to_string(),
                    format: lakebell_domain::asset::Format::Paimon,
                    first_seen: ports.clock.now(),
                    object: format!("event {} of {}", pushed.id, pushed.source),
                    reason: "no asset is registered at this location".to_owned(),
                };
                assets::remember_unregistered(ports, &seen).await?;
            }
            Ok(found)
        }
    }
}

/// Why storage does not bear the event out, if it does not.
fn unconfirmed(pushed: &Pushed, observed: &Observed) -> Option<String> {
    let state = observed.head.value.live_state();
    let Some(state) = state else { return Some("the asset is deregistered".to_owned()) };
    match (pushed.kind, &pushed.snapshot_id, &pushed.tag) {
        (EventKind::SnapshotCommitted, Some(id), _) => {
            let ordinal: u64 = id.parse().ok()?;
            let is_there = state.position().ordinal.0 >= ordinal;
            (!is_there).then(|| format!("snapshot {id} is not visible in storage"))
        }
        (EventKind::TagCreated, _, Some(tag)) => {
            (!state.tags.contains_key(tag)).then(|| format!("tag {tag} is not visible in storage"))
        }
        _ => None,
    }
}

async fn keep(
    ports: &Ports,
    asset: AssetId,
    pushed: &Pushed,
    observed: &Observed,
    reason: &str,
    trace: &TraceId,
) -> Result<(), EngineError> {
    let digest = Sha256::digest(format!("{}\n{}", pushed.source, pushed.id).as_bytes());
    let token = digest.iter().take(16).fold("push.".to_owned(), |token, byte| token + &format!("{byte:02x}"));
    let now = ports.clock.now();
    let event = Event {
        asset,
        kind: pushed.kind,
        token: token.clone(),
        source: Source::Push,
        outcome: Outcome::Ignored(reason.to_owned()),
        recorded_at: now,
        trace: trace.clone(),
        position: None,
        commit: None,
        evidence: None,
        extra: std::collections::BTreeMap::new(),
        detail: Some(format!("event {} of {}", pushed.id, pushed.source)),
    };
    let draft = Draft {
        key: layout::event(asset, event.kind, observed.head.value.state.epoch, &token),
        doc: store::encode(&event)?,
        sweep: None,
        history: Some(layout::event_history(asset, now, &token)),
        expires_at: Some(now + EVENT_RETENTION),
    };
    store::write(&*ports.items, &*ports.random, &[Write::Create(draft)]).await.map(|_| ())
}
