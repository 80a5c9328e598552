//! Snapshots that a declaration names, where the format does not order them by their own ids.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::Invalid;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::AssetId;
use lakebell_domain::target::{KnownAssets, StartFrom, TargetSpec, ordinal_of};
use lakebell_domain::version::Ordinal;

use crate::EngineError;
use crate::history;
use crate::observe;
use crate::ports::Ports;

/// Most events that are looked through for a snapshot.
const MAX_EVENTS: usize = 2_000;
/// Events of one page.
const PAGE: usize = 100;

/// The ordinals of named snapshots, by asset and snapshot id.
pub(super) type Named = BTreeMap<AssetId, BTreeMap<String, Ordinal>>;

/// What was found of each asset.
pub(super) fn ordinals(assets: &KnownAssets) -> Named {
    assets.by_key.values().map(|asset| (asset.id, asset.snapshots.clone())).collect()
}

/// Looks up the snapshots of one asset that a declaration names, in the commits that are recorded; the one
/// of `startFrom` also in storage.
///
/// Errors: `Invalid` for `startFrom` where no commit has that id; those of reading storage.
pub(super) async fn find(
    ports: &Ports,
    spec: &TargetSpec,
    key: &AssetKey,
    asset: AssetId,
) -> Result<BTreeMap<String, Ordinal>, EngineError> {
    let start = match &spec.start_from {
        StartFrom::Snapshot(id) => Some(id.as_str()),
        StartFrom::Now | StartFrom::Current | StartFrom::Earliest => None,
    };
    let dependencies = spec.groups.iter().flat_map(|group| &group.dependencies);
    let of_asset = dependencies.filter(|dependency| dependency.asset.key() == Some(key));
    let minima = of_asset.filter_map(|dependency| dependency.min_snapshot_id.as_ref()).map(|id| id.0.as_str());
    let wanted: BTreeSet<&str> = minima.chain(start).collect();
    let mut found: BTreeMap<String, Ordinal> =
        wanted.iter().filter_map(|id| Some(((*id).to_owned(), ordinal_of(key.format(), id)?))).collect();
    // A commit that changes no data may have the snapshot of the one before it: the oldest with an id made it.
    let mut without_data = BTreeMap::new();
    let mut looked = 0;
    let mut after = None;
    while found.len() < wanted.len() && looked < MAX_EVENTS {
        let page = history::events(ports, asset, PAGE, after.as_deref()).await?;
        looked += page.found.len();
        for mark in page.found.iter().filter_map(lakebell_domain::event::Event::mark) {
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
    if let Some(id) = start.filter(|id| !found.contains_key(*id)) {
        let in_storage = observe::place_in_storage(ports, asset, id).await?;
        let Some(ordinal) = in_storage.or_else(|| without_data.get(id).copied()) else {
            return Err(Invalid::new(
                "startFrom",
                format!("no commit of {key} is recorded as `{id}`, and none is there"),
                "name a snapshot that `lakebell events` or `lakebell table inspect` lists, or use now, current or earliest",
            )
            .into());
        };
        found.insert(id.to_owned(), ordinal);
    }
    for (id, ordinal) in without_data {
        found.entry(id).or_insert(ordinal);
    }
    Ok(found)
}
