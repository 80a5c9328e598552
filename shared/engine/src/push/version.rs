//! Which version a verdict is about.

use lakebell_domain::event::{CheckFacts, Event};
use lakebell_domain::state::Mark;
use lakebell_domain::target::ordinal_of;
use lakebell_domain::version::{Ordinal, Position};

use super::Push;
use super::claim::Began;
use super::record::Known;
use crate::asset_settings::BindVerdict;
use crate::observe::Look;
use crate::ports::items::{Item, Range};
use crate::records::AssetHead;
use crate::{EngineError, history, layout, store};

/// How many of the newest events are searched for a snapshot whose id is no ordinal, and how many
/// of the commits that a look has just recorded.
const NEWEST: usize = 100;

/// What a verdict is bound to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    /// To a version that is recorded.
    To(Mark),
    /// To a version that is still to come.
    Later(Ordinal),
    /// To none, for this reason.
    Refused(String),
    /// That can be told only after a look at storage.
    After(Look),
}

/// Binds a verdict. Storage has been looked at where `known` says so.
pub(super) async fn bind(
    push: &Push<'_>,
    known: &Known,
    check: &CheckFacts,
    began: Option<Began>,
) -> Result<Bound, EngineError> {
    match &check.snapshot_id {
        Some(id) => named(push, known, id).await,
        None if known.before.is_none() => Ok(Bound::After(Look::Whole)),
        None => Ok(unnamed(&known.head.value, began)),
    }
}

async fn named(push: &Push<'_>, known: &Known, id: &str) -> Result<Bound, EngineError> {
    let head = &known.head.value;
    if let Some(mark) = marked(head, id) {
        return Ok(Bound::To(mark));
    }
    let here = head.state.position();
    let format = head.key.format();
    if let Some(ordinal) = ordinal_of(format, id) {
        if ordinal > here.ordinal {
            let look = Look::At { ordinal, etag: None };
            return Ok(if known.before.is_none() { Bound::After(look) } else { Bound::Later(ordinal) });
        }
        let at = Position { ordinal, ..here };
        let found = commits(push, &layout::commits_at(push.asset, at)).await?.into_iter().next();
        let refused =
            || Bound::Refused(format!("snapshot {id} is behind the newest one, and its commit is not recorded"));
        return Ok(found.map_or_else(refused, Bound::To));
    }
    let found = match known.before {
        None => recent(push, id).await?,
        Some(before) if before.epoch == here.epoch => {
            let beyond = commits(push, &layout::commits_beyond(push.asset, before)).await?;
            beyond.into_iter().find(|mark| mark.version.snapshot_id == id)
        }
        Some(_) => None,
    };
    Ok(match found.filter(|mark| mark.version.position.epoch == here.epoch) {
        Some(mark) => Bound::To(mark),
        None if known.before.is_none() => Bound::After(Look::Whole),
        None => Bound::Refused(format!("snapshot {id} is not among the newest recorded ones of this {format} table")),
    })
}

/// The only version that was current during the whole check, or the current one where the asset says so.
fn unnamed(head: &AssetHead, began: Option<Began>) -> Bound {
    let refused = |reason: String| Bound::Refused(reason);
    if let Some(hold) = &head.state.hold {
        return refused(format!("it names no snapshot, and history is held since {}", hold.first_seen));
    }
    let Some(current) = head.state.data.as_ref().map(|data| &data.mark) else {
        return refused("it names no snapshot, and the table has no version yet".to_owned());
    };
    if head.settings.bind_verdict == BindVerdict::Latest {
        return Bound::To(current.clone());
    }
    match began {
        None => refused("it names no snapshot, and does not say when the check began".to_owned()),
        Some(Began(began)) if current.since < began => Bound::To(current.clone()),
        Some(_) => refused(format!(
            "the table moved during the check: snapshot {} was recorded at {}",
            current.version.snapshot_id, current.since
        )),
    }
}

fn marked(head: &AssetHead, id: &str) -> Option<Mark> {
    let state = &head.state;
    let here = state.marks().filter(|mark| mark.version.snapshot_id == id);
    here.filter(|mark| mark.version.position.epoch == state.epoch).max_by_key(|mark| mark.version.position).cloned()
}

/// A snapshot among those that are recorded, as far as they are still known.
pub(super) async fn of_snapshot(push: &Push<'_>, head: &AssetHead, id: &str) -> Result<Option<Mark>, EngineError> {
    if let Some(mark) = marked(head, id) {
        return Ok(Some(mark));
    }
    let here = head.state.position();
    let found = match ordinal_of(head.key.format(), id) {
        Some(ordinal) => commits(push, &layout::commits_at(push.asset, Position { ordinal, ..here })).await?.pop(),
        None => recent(push, id).await?,
    };
    Ok(found.filter(|mark| mark.version.position.epoch == here.epoch))
}

/// Whether a snapshot is a version that has been recorded, or lies before one.
pub(super) async fn is_there(push: &Push<'_>, head: &AssetHead, id: &str) -> Result<bool, EngineError> {
    if marked(head, id).is_some() || head.state.table.as_ref().is_some_and(|table| table.snapshot_id == id) {
        return Ok(true);
    }
    match ordinal_of(head.key.format(), id) {
        Some(ordinal) => Ok(ordinal <= head.state.position().ordinal),
        None => Ok(recent(push, id).await?.is_some()),
    }
}

/// A commit among the newest events. The index may be a moment behind; the events themselves are
/// read consistently.
async fn recent(push: &Push<'_>, id: &str) -> Result<Option<Mark>, EngineError> {
    let page = history::events(push.ports, push.asset, NEWEST, None).await?;
    Ok(page.found.iter().filter_map(Event::mark).find(|mark| mark.version.snapshot_id == id))
}

async fn commits(push: &Push<'_>, range: &Range) -> Result<Vec<Mark>, EngineError> {
    let page = push.ports.items.query(range, Some(NEWEST), None).await?;
    let events = page.found.iter().map(|item: &Item| store::decode::<Event>(item));
    let events: Vec<_> = events.collect::<Result<_, _>>()?;
    Ok(events.iter().filter_map(|event| event.value.mark()).collect())
}
