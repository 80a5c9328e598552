//! Commits from before the oldest recorded one, for targets that look at each commit.
//!
//! State keeps the newest of each kind, and events are forgotten after some weeks. So what a
//! declaration asks for before its own time is read from storage then, and recorded as events that are
//! kept for longer. They move no register: the state is past them.

use lakebell_domain::Invalid;
use lakebell_domain::commit::Commit;
use lakebell_domain::event::{Event, Source};
use lakebell_domain::ids::{AssetId, TraceId};
use lakebell_domain::state::{AssetState, Evidence};
use lakebell_domain::version::{Epoch, Ordinal, Position, Version};

use super::{Back, Hint, Look, findings, load, read};
use crate::asset_settings::Trust;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Draft, Item, Range, Write, Written};
use crate::records::{AssetHead, Ring};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// Most commits of one asset that a declaration may ask for from before its time.
pub const MAX_PAST: usize = 1_000;
/// Events of one write; a transaction takes 100 actions.
const MAX_EVENTS_PER_WRITE: usize = 90;

/// The commits beyond a place, up to the newest recorded one, that storage still has, oldest first.
///
/// Errors: `Conflict` where storage does not show the recorded history now, or does not tell its order;
/// `Invalid` for more than [`MAX_PAST`] commits; those of the storage.
pub(crate) async fn past(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    beyond: Position,
) -> Result<Vec<Commit>, EngineError> {
    let newest = head.state.position();
    if beyond >= newest {
        return Ok(Vec::new());
    }
    let commits = in_storage(ports, asset, head, Ordinal(beyond.ordinal.0 + 1)).await?;
    let recorded = recorded(ports, &layout::commits_beyond(asset, beyond)).await?;
    for commit in &commits {
        is_recorded(commit, &recorded)?;
    }
    Ok(commits)
}

/// Sees to it that each commit beyond a place has an event that is kept for as long as a target may look at
/// it: those that are recorded, and these from before.
pub(crate) async fn keep_past(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    beyond: Position,
    commits: &[Commit],
    trace: &TraceId,
) -> Result<(), EngineError> {
    let hint = Hint { asset, look: Look::Whole, source: Source::Poll, trace: trace.clone() };
    for _ in 0..MAX_LOST_RACES {
        let recorded = recorded(ports, &layout::commits_beyond(asset, beyond)).await?;
        let mut writes = Vec::new();
        for (event, _) in &recorded {
            writes.push(Write::Replace(kept(ports, &event.value)?, event.rev));
        }
        for commit in commits {
            if !is_recorded(commit, &recorded)? {
                writes.push(findings::past_event(&hint, head, commit, ports.clock.now())?);
            }
        }
        if write(ports, &writes).await? {
            return Ok(());
        }
    }
    Err(store::lost_too_often("keep past commits").with("asset", asset))
}

/// Where a commit stands that storage still has and that nobody recorded, by the id that the format gives it.
///
/// Errors: as those of [`past`].
pub(crate) async fn place_in_storage(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    id: &str,
) -> Result<Option<Ordinal>, EngineError> {
    if head.live_state().is_none_or(|state| state.table.is_none()) {
        return Ok(None);
    }
    let commits = in_storage(ports, asset, head, Ordinal(1)).await?;
    Ok(commits.iter().find(|commit| commit.snapshot_id == id).map(|commit| commit.ordinal))
}

/// The commits that storage has from an ordinal up to the newest recorded one, oldest first.
async fn in_storage(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    first: Ordinal,
) -> Result<Vec<Commit>, EngineError> {
    if head.settings.trust == Trust::Writer {
        return Ok(Vec::new());
    }
    let fresh = AssetState::default();
    let back = Back::To(first, MAX_PAST + 1);
    let mut reading = read(ports, head, &fresh, &Ring::default(), &Look::Whole, back).await?;
    if let Some(error) = reading.failed.take() {
        return Err(error);
    }
    let mut commits = Vec::new();
    for finding in reading.findings {
        match finding.evidence {
            Evidence::FirstRead(found) => commits = found,
            Evidence::Trouble(trouble) => return Err(unreadable(head, &trouble.detail)),
            _ => {}
        }
    }
    // Newer ones have their events from whoever finds them.
    let newest = head.state.position().ordinal;
    commits.retain(|commit| commit.ordinal <= newest && commit.ordinal >= first);
    let is_same =
        |commit: &Commit| head.state.table.as_ref().is_some_and(|table| commit.fingerprint == table.fingerprint);
    if !commits.last().is_some_and(|last| last.ordinal == newest && is_same(last)) {
        return Err(other_history(head));
    }
    // They were read one after the other. Where the newest still stands, nothing beneath it was replaced.
    let known = load(ports, asset).await?;
    let now = &known.head.value;
    let again = read(ports, now, &now.state, &known.ring.value, &Look::Whole, Back::ToData).await?;
    if now.state.epoch != head.state.epoch || now.state.hold.is_some() || again.sights_rewrite() {
        return Err(other_history(head));
    }
    if commits.len() > MAX_PAST {
        let problem = format!("more than {MAX_PAST} commits of {} are there from then on", head.key);
        return Err(Invalid::new("startFrom", problem, "name a later snapshot, or use now or current").into());
    }
    Ok(commits)
}

fn unreadable(head: &AssetHead, detail: &str) -> EngineError {
    let message = format!("the commits of {} before now cannot be read: {detail}", head.key);
    EngineError::new(ErrorKind::Conflict, message).with("field", "startFrom")
}

fn other_history(head: &AssetHead) -> EngineError {
    let message = format!(
        "storage does not show the history of {} that is recorded, or not its order; look at the asset, accept a \
         rewrite that is held, and declare again, or use `startFrom: now`",
        head.key
    );
    EngineError::new(ErrorKind::Conflict, message).with("field", "startFrom")
}

/// Events of commits that are there already, each with its version.
async fn recorded(ports: &Ports, range: &Range) -> Result<Vec<(Stored<Event>, Version)>, EngineError> {
    let items: Vec<Item> = store::all_of(&*ports.items, range).await?;
    let events = items.iter().map(store::decode::<Event>).collect::<Result<Vec<_>, _>>()?;
    let with_version = |event: Stored<Event>| event.value.mark().map(|mark| (event, mark.version));
    Ok(events.into_iter().filter_map(with_version).collect())
}

/// Whether a commit has its event.
///
/// Errors: `Conflict` where another commit stands at its place.
fn is_recorded(commit: &Commit, recorded: &[(Stored<Event>, Version)]) -> Result<bool, EngineError> {
    for (_, version) in recorded {
        match (version.fingerprint == commit.fingerprint, version.position.ordinal == commit.ordinal) {
            (true, true) => return Ok(true),
            (false, false) => {}
            _ => {
                let message = format!(
                    "the order in which commit {} came cannot be told from storage any more; use `startFrom: now` or \
                     `current`",
                    commit.snapshot_id
                );
                return Err(EngineError::new(ErrorKind::Conflict, message).with("field", "startFrom"));
            }
        }
    }
    Ok(false)
}

/// The same event, kept for longer.
fn kept(ports: &Ports, event: &Event) -> Result<Draft, EngineError> {
    let epoch = event.position.map_or(Epoch(0), |position| position.epoch);
    Ok(Draft {
        key: layout::event(event.asset, event.kind, epoch, &event.token),
        doc: store::encode(event)?,
        sweep: None,
        history: Some(layout::event_history(event.asset, event.recorded_at, &event.token)),
        expires_at: Some(ports.clock.now() + super::HISTORY_RETENTION),
    })
}

/// Writes all; `false` where somebody else wrote one of them first.
async fn write(ports: &Ports, writes: &[Write]) -> Result<bool, EngineError> {
    for part in writes.chunks(MAX_EVENTS_PER_WRITE) {
        if store::write(&*ports.items, &*ports.random, part).await? != Written::Done {
            return Ok(false);
        }
    }
    Ok(true)
}
