//! The marks on assets that a target depends on them.
//!
//! For each asset one transaction puts the pointer and raises the head's revision: an advance at the
//! same time loses its compare-and-swap and sees the pointer.

use std::collections::BTreeMap;

use lakebell_domain::ids::{AssetId, TargetId};
use lakebell_domain::policy::OnRewrite;
use lakebell_domain::target::{Target, TargetSpec};

use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::{AssetHead, Definition, Pointer};
use crate::store::{self, MAX_LOST_RACES, Stored};

/// Puts a target's pointers.
pub(super) async fn put(
    ports: &Ports,
    spec: &TargetSpec,
    target: &Target,
    definition_rev: u64,
) -> Result<(), EngineError> {
    let members: Vec<AssetId> = target.assets().into_keys().collect();
    let follows = target.policies.on_rewrite == OnRewrite::Follow;
    let pointer = Pointer {
        target: target.id.clone(),
        members: members.clone(),
        definition_rev,
        keeps_history: target.needs_history(),
        reads_partitions: target.reads_partitions(),
        follows_rewrites_after: if follows { Some(spec.settle_time()?) } else { None },
    };
    for asset in members {
        put_one(ports, asset, &pointer).await?;
    }
    Ok(())
}

/// The heads of a target's assets; those never seen have none.
pub(super) async fn heads(ports: &Ports, target: &Target) -> Result<BTreeMap<AssetId, AssetHead>, EngineError> {
    let members: Vec<AssetId> = target.assets().into_keys().collect();
    let keys: Vec<_> = members.iter().map(|asset| layout::head(*asset)).collect();
    let items = ports.items.get(&keys).await?;
    let mut heads = BTreeMap::new();
    for asset in members {
        if let Some(item) = store::pick(&items, &layout::head(asset)) {
            heads.insert(asset, store::decode::<AssetHead>(item)?.value);
        }
    }
    Ok(heads)
}

async fn put_one(ports: &Ports, asset: AssetId, pointer: &Pointer) -> Result<(), EngineError> {
    let key = layout::pointer(asset, &pointer.target);
    for _ in 0..MAX_LOST_RACES {
        let draft = store::draft(key.clone(), pointer)?;
        let known = ports.items.get(std::slice::from_ref(&key)).await?;
        let put = Write::put(draft, known.first().map(|item| item.rev));
        let actions = [put, Write::Bump(layout::head(asset))];
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("put pointer").with("asset", asset))
}

/// Once the definition is written, pointers of members that are gone may go.
pub(super) async fn drop_gone(ports: &Ports, before: Option<&Target>, now: &Target) -> Result<(), EngineError> {
    let kept = now.assets();
    let gone =
        before.into_iter().flat_map(|before| before.assets().into_keys()).filter(|asset| !kept.contains_key(asset));
    for asset in gone {
        remove(ports, asset, &now.id).await?;
    }
    Ok(())
}

/// A pointer too many costs an evaluation, so one that somebody else changed is left alone.
pub(super) async fn remove(ports: &Ports, asset: AssetId, target: &TargetId) -> Result<(), EngineError> {
    let key = layout::pointer(asset, target);
    if let Some(item) = ports.items.get(std::slice::from_ref(&key)).await?.first() {
        store::write(&*ports.items, &*ports.random, &[Write::Remove(key, item.rev)]).await?;
    }
    Ok(())
}

/// Removes a pointer that a run left which died: its target does not name the asset any more. One that a
/// declaration puts at the moment is of a later revision than the definition, and stays.
pub(crate) async fn drop_stale(ports: &Ports, asset: AssetId, target: &TargetId) -> Result<(), EngineError> {
    let keys = [layout::definition(target), layout::pointer(asset, target)];
    let items = ports.items.get(&keys).await?;
    let (Some(definition), Some(item)) = (store::pick(&items, &keys[0]), store::pick(&items, &keys[1])) else {
        return Ok(());
    };
    let definition: Stored<Definition> = store::decode(definition)?;
    let pointer: Pointer = store::decode(item)?.value;
    let names_it = definition.value.undeclared_at.is_none() && definition.value.target.depends_on(asset);
    if !names_it && pointer.definition_rev <= definition.rev {
        store::write(&*ports.items, &*ports.random, &[Write::Remove(item.key.clone(), item.rev)]).await?;
    }
    Ok(())
}
