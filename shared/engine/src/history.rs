//! Read what was recorded: events of an asset, triggers of a project.

mod extras;
mod withdrawn;

pub use extras::{Extra, extras};
pub use withdrawn::{Consumed, MAX_LOOKED_AT, Withdrawn, withdrawn};

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::event::Event;
use lakebell_domain::ids::{AssetId, ProjectCode, TriggerKey};
use lakebell_domain::state::Mark;
use lakebell_domain::trigger::Trigger;
use lakebell_domain::version::Epoch;

use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Index, Page};
use crate::records::AssetHead;
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind};

/// Events of one read where a commit is looked for.
const PAGE: usize = 100;

/// Events of an asset, newest first. The page mark is opaque.
pub async fn events(
    ports: &Ports,
    asset: AssetId,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<Event>, EngineError> {
    page(ports, &layout::asset(asset), limit, after).await
}

/// The same, of the present registration alone: who registers a table that was another project's is shown nothing
/// of before.
pub async fn own_events(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<Event>, EngineError> {
    let mut page = events(ports, asset, limit, after).await?;
    if page.found.iter().any(|event| event.recorded_at < head.registered_at) {
        page.next = None;
    }
    page.found.retain(|event| head.owns(event));
    Ok(page)
}

/// The commit that made a snapshot, of several that show it: a commit that changes no data (a property, a tag, an
/// expiry) shows the snapshot of the one before it.
pub(crate) fn maker(marks: impl IntoIterator<Item = Mark>) -> Option<Mark> {
    marks.into_iter().min_by_key(|mark| (!mark.is_data, mark.version.position))
}

/// The commits that made these snapshots, among so many of the newest events, in one epoch. The index may be a moment
/// behind; the events themselves are read consistently.
pub(crate) async fn makers(
    ports: &Ports,
    asset: AssetId,
    epoch: Epoch,
    ids: &BTreeSet<&str>,
    most: usize,
) -> Result<BTreeMap<String, Mark>, EngineError> {
    let mut found: BTreeMap<String, Mark> = BTreeMap::new();
    let mut looked = 0;
    let mut after = None;
    while looked < most && found.values().filter(|mark| mark.is_data).count() < ids.len() {
        let page = events(ports, asset, PAGE.min(most - looked), after.as_deref()).await?;
        looked += page.found.len();
        for mark in page.found.iter().filter_map(Event::mark) {
            let id = mark.version.snapshot_id.to_string();
            if ids.contains(id.as_str()) && mark.version.position.epoch == epoch {
                let made = maker(found.remove(&id).into_iter().chain([mark]));
                found.extend(made.map(|made| (id, made)));
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(found)
}

/// Triggers of a project, newest first.
pub async fn triggers(
    ports: &Ports,
    project: ProjectCode,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<Trigger>, EngineError> {
    page(ports, &layout::trigger_history_partition(project), limit, after).await
}

/// One trigger.
///
/// Errors: `NotFound`.
pub async fn trigger(ports: &Ports, key: &TriggerKey) -> Result<Stored<Trigger>, EngineError> {
    store::get(&*ports.items, layout::trigger(key))
        .await?
        .ok_or_else(|| EngineError::new(ErrorKind::NotFound, format!("there is no trigger {key}")))
}

/// A page of a history: keys from the index, then the items themselves, in the index's order.
pub(crate) async fn page<T: serde::de::DeserializeOwned>(
    ports: &Ports,
    partition: &str,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<T>, EngineError> {
    let keys = ports.items.index(Index::History, partition, None, true, limit, after).await?;
    if keys.found.is_empty() {
        return Ok(Page { found: Vec::new(), next: keys.next });
    }
    let items = ports.items.get(&keys.found).await?;
    let found = keys.found.iter().filter_map(|key| store::pick(&items, key));
    let found = found.map(|item| store::decode(item).map(|stored| stored.value)).collect::<Result<_, _>>()?;
    Ok(Page { found, next: keys.next })
}
