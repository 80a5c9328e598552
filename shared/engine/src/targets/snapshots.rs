//! Snapshots that a declaration names, where the format does not order them by their own ids.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::Invalid;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::Event;
use lakebell_domain::ids::AssetId;
use lakebell_domain::target::{TargetSpec, ordinal_of};
use lakebell_domain::version::{Epoch, Ordinal, Position};

use crate::EngineError;
use crate::history;
use crate::observe;
use crate::ports::Ports;
use crate::records::AssetHead;

/// Most events that are looked through for a snapshot.
const MAX_EVENTS: usize = 2_000;
/// Events of one page.
const PAGE: usize = 100;

/// Adds where the least snapshots stand that a declaration asks for of one asset, by the commits of its
/// history that are recorded.
pub(super) async fn find_minima(
    ports: &Ports,
    spec: &TargetSpec,
    key: &AssetKey,
    asset: AssetId,
    epoch: Epoch,
    known: &mut BTreeMap<String, Position>,
) -> Result<(), EngineError> {
    let dependencies = spec.groups.iter().flat_map(|group| &group.dependencies);
    let of_asset = dependencies.filter(|dependency| dependency.asset.key() == Some(key));
    let minima = of_asset.filter_map(|dependency| dependency.min_snapshot_id.as_ref()).map(|id| id.0.as_str());
    let unknown = minima.filter(|id| ordinal_of(key.format(), id).is_none() && !known.contains_key(*id));
    let found = recorded(ports, asset, epoch, unknown.collect()).await?;
    known.extend(found.into_iter().map(|(id, ordinal)| (id, Position { epoch, ordinal })));
    Ok(())
}

/// Where the snapshot stands that a declaration begins at: by its own id, by the recorded commits, or by
/// those in storage.
///
/// Errors: `Invalid` for `startFrom` where no commit of the history has that id; those of reading storage.
pub(super) async fn start(ports: &Ports, asset: AssetId, head: &AssetHead, id: &str) -> Result<Ordinal, EngineError> {
    let key = &head.key;
    let newest = head.state.position().ordinal;
    let refused = |problem: String, hint: &str| Err(Invalid::new("startFrom", problem, hint).into());
    if let Some(ordinal) = ordinal_of(key.format(), id) {
        // One that was never read has no newest.
        if head.state.baseline.is_some() && ordinal > newest.next() {
            let problem = format!("snapshot {id} of {key} is not there yet");
            return refused(problem, "use `minSnapshotId` for one that is to come");
        }
        return Ok(ordinal);
    }
    let found = recorded(ports, asset, head.state.epoch, BTreeSet::from([id])).await?;
    if let Some(ordinal) = found.get(id) {
        return Ok(*ordinal);
    }
    match observe::place_in_storage(ports, asset, head, id).await? {
        Some(ordinal) => Ok(ordinal),
        None => refused(
            format!("no commit of {key} is recorded as `{id}`, and none is there"),
            "name a snapshot that `lakebell events` or `lakebell table inspect` lists, or use now, current or earliest",
        ),
    }
}

/// The ordinals of the snapshots with these ids, of commits of one epoch that are recorded.
/// A table that was set back and forth shows one twice: what begins there begins at the later one, other than what
/// [`history::makers`] is asked for.
async fn recorded(
    ports: &Ports,
    asset: AssetId,
    epoch: Epoch,
    wanted: BTreeSet<&str>,
) -> Result<BTreeMap<String, Ordinal>, EngineError> {
    let mut found = BTreeMap::new();
    // A commit that changes no data may have the snapshot of the one before it: the oldest with an id made it.
    let mut without_data = BTreeMap::new();
    let mut looked = 0;
    let mut after = None;
    while found.len() < wanted.len() && looked < MAX_EVENTS {
        let page = history::events(ports, asset, PAGE, after.as_deref()).await?;
        looked += page.found.len();
        for mark in page.found.iter().filter_map(Event::mark).filter(|mark| mark.version.position.epoch == epoch) {
            let id = mark.version.snapshot_id.as_str();
            if wanted.contains(id) && mark.is_data {
                found.entry(id.to_owned()).or_insert(mark.version.position.ordinal);
            } else if wanted.contains(id) {
                without_data.insert(id.to_owned(), mark.version.position.ordinal);
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    for (id, ordinal) in without_data {
        found.entry(id).or_insert(ordinal);
    }
    Ok(found)
}
