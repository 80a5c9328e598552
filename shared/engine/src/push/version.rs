//! Which version a verdict is about.

use std::collections::BTreeSet;

use lakebell_domain::event::{CheckFacts, Event};
use lakebell_domain::state::Mark;
use lakebell_domain::target::ordinal_of;
use lakebell_domain::version::{Ordinal, Position};

use super::Push;
use super::claim::Began;
use super::record::Known;
use crate::asset_settings::BindVerdict;
use crate::history::maker;
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
    let marked = marked(head, id);
    let here = head.state.position();
    let format = head.key.format();
    if let Some(ordinal) = ordinal_of(format, id) {
        if let Some(mark) = marked {
            return Ok(Bound::To(mark));
        }
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
    let found = match (known.before, marked) {
        (_, Some(mark)) if mark.is_data => Some(mark),
        (None, marked) => maker(recent(push, head, id).await?.into_iter().chain(marked)),
        (Some(before), marked) if before.epoch == here.epoch => {
            let beyond = commits(push, &layout::commits_beyond(push.asset, before)).await?.into_iter();
            maker(beyond.filter(|mark| is_of(head, mark, id)).chain(marked))
        }
        (Some(_), marked) => marked,
    };
    Ok(match found {
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

/// Whether a commit shows this snapshot, in the present history.
fn is_of(head: &AssetHead, mark: &Mark, id: &str) -> bool {
    mark.version.snapshot_id == id && mark.version.position.epoch == head.state.epoch
}

/// As far as the registers tell; where the commit found changes no data, the recorded ones may tell of the one
/// that made its snapshot.
fn marked(head: &AssetHead, id: &str) -> Option<Mark> {
    maker(head.state.marks().filter(|mark| is_of(head, mark, id)).cloned())
}

/// A snapshot among those that are recorded, as far as they are still known.
pub(super) async fn of_snapshot(push: &Push<'_>, head: &AssetHead, id: &str) -> Result<Option<Mark>, EngineError> {
    let marked = marked(head, id);
    let here = head.state.position();
    let found = match ordinal_of(head.key.format(), id) {
        _ if marked.as_ref().is_some_and(|mark| mark.is_data) => None,
        Some(_) if marked.is_some() => None,
        Some(ordinal) => commits(push, &layout::commits_at(push.asset, Position { ordinal, ..here })).await?.pop(),
        None => recent(push, head, id).await?,
    };
    Ok(maker(found.into_iter().chain(marked)))
}

/// Where a snapshot stands that a writer names; `None` where its id tells no order, and nothing that is recorded
/// has it.
pub(super) async fn place(push: &Push<'_>, head: &AssetHead, id: &str) -> Result<Option<Ordinal>, EngineError> {
    match ordinal_of(head.key.format(), id) {
        Some(ordinal) => Ok(Some(ordinal)),
        None => Ok(of_snapshot(push, head, id).await?.map(|mark| mark.version.position.ordinal)),
    }
}

/// Whether a snapshot is a version that has been recorded, or lies before one.
pub(super) async fn is_there(push: &Push<'_>, head: &AssetHead, id: &str) -> Result<bool, EngineError> {
    if marked(head, id).is_some() || head.state.table.as_ref().is_some_and(|table| table.snapshot_id == id) {
        return Ok(true);
    }
    match ordinal_of(head.key.format(), id) {
        Some(ordinal) => Ok(ordinal <= head.state.position().ordinal),
        None => Ok(recent(push, head, id).await?.is_some()),
    }
}

/// The commit that made a snapshot, among the newest events.
async fn recent(push: &Push<'_>, head: &AssetHead, id: &str) -> Result<Option<Mark>, EngineError> {
    let ids = BTreeSet::from([id]);
    Ok(history::makers(push.ports, push.asset, head.state.epoch, &ids, NEWEST).await?.remove(id))
}

async fn commits(push: &Push<'_>, range: &Range) -> Result<Vec<Mark>, EngineError> {
    let page = push.ports.items.query(range, Some(NEWEST), None).await?;
    let events = page.found.iter().map(|item: &Item| store::decode::<Event>(item));
    let events: Vec<_> = events.collect::<Result<_, _>>()?;
    Ok(events.iter().filter_map(|event| event.value.mark()).collect())
}
