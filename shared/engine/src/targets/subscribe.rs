//! Prefixes: targets that take in every table whose name begins alike, also later ones.
//!
//! Both sides write first and list afterwards: a declaration writes its subscription and then lists
//! the assets, a registration writes the asset and then lists the subscriptions. The compensation
//! pass reconciles what both missed.

use std::collections::BTreeSet;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{ProjectCode, TargetId};
use lakebell_domain::target::{AssetPrefix, KnownAsset, Target, TargetSpec};

use crate::EngineError;
use crate::assets;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Key, Write, Written};
use crate::records::{RegisteredAsset, Subscription};
use crate::store;

/// The database of a key, as its subscriptions are kept under it.
fn database_of(key: &AssetKey) -> String {
    let catalog = key.catalog().map(|catalog| format!("{catalog}/")).unwrap_or_default();
    format!("{}://{catalog}{}", key.format(), key.database())
}

fn key_of(prefix: &AssetPrefix, target: &TargetId) -> Key {
    layout::subscription(&prefix.database(), &prefix.to_string(), target)
}

/// The prefixes that a declaration names.
pub(super) fn prefixes(spec: &TargetSpec) -> BTreeSet<AssetPrefix> {
    let dependencies = spec.groups.iter().flat_map(|group| &group.dependencies);
    dependencies.filter_map(|dependency| dependency.asset.prefix().cloned()).collect()
}

/// Writes a target's subscriptions. One that is there already is as good.
pub(super) async fn put(ports: &Ports, target: &TargetId, prefixes: &BTreeSet<AssetPrefix>) -> Result<(), EngineError> {
    for prefix in prefixes {
        let subscription = Subscription { target: target.clone(), prefix: prefix.clone() };
        let action = Write::Create(store::draft(key_of(prefix, target), &subscription)?);
        store::write(&*ports.items, &*ports.random, &[action]).await?;
    }
    Ok(())
}

/// The assets that a prefix takes in now: those that the project may depend on.
pub(super) async fn members(
    ports: &Ports,
    project: ProjectCode,
    prefix: &AssetPrefix,
) -> Result<Vec<(AssetKey, KnownAsset)>, EngineError> {
    let mut members = Vec::new();
    let may = |asset: &RegisteredAsset| prefix.takes_in(&asset.key) && asset.is_visible_to(project);
    for asset in assets::list(ports, None).await?.into_iter().filter(may) {
        let head = assets::head(ports, asset.id).await?.value;
        let known =
            KnownAsset { id: asset.id, epoch: head.state.epoch, snapshots: std::collections::BTreeMap::default() };
        members.push((asset.key, known));
    }
    Ok(members)
}

/// Takes back the subscriptions of a definition that are not kept.
pub(super) async fn keep_only(
    ports: &Ports,
    target: &TargetId,
    before: &Target,
    kept: &[AssetPrefix],
) -> Result<(), EngineError> {
    let had: BTreeSet<&AssetPrefix> = before.groups.iter().flat_map(|group| &group.prefixes).collect();
    for prefix in had.into_iter().filter(|prefix| !kept.contains(prefix)) {
        let key = key_of(prefix, target);
        if let Some(item) = ports.items.get(std::slice::from_ref(&key)).await?.first() {
            let removed = store::write(&*ports.items, &*ports.random, &[Write::Remove(key, item.rev)]).await?;
            debug_assert!(matches!(removed, Written::Done | Written::Lost(_)));
        }
    }
    Ok(())
}

/// The targets whose prefixes take in an asset.
pub(crate) async fn subscribers(ports: &Ports, key: &AssetKey) -> Result<Vec<TargetId>, EngineError> {
    let items = store::all_of(&*ports.items, &layout::subscriptions(&database_of(key))).await?;
    let mut targets = BTreeSet::new();
    for item in &items {
        let subscription = store::decode::<Subscription>(item)?.value;
        if subscription.prefix.takes_in(key) {
            targets.insert(subscription.target);
        }
    }
    Ok(targets.into_iter().collect())
}
