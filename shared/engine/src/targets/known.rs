//! The assets that a declaration names.

use std::collections::BTreeMap;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::ProjectCode;
use lakebell_domain::target::{AssetSelector, KnownAsset, KnownAssets, Minimum, TargetSpec};
use lakebell_domain::version::{Epoch, Position};

use super::{snapshots, subscribe};
use crate::ports::Ports;
use crate::records::{AssetHead, Definition};
use crate::{EngineError, ErrorKind, assets};

/// The assets of a declaration. What it says of one as the standing definition does is not looked up again:
/// the commit that it goes by may be forgotten by now.
///
/// Errors: `NotFound` for one that is not registered, with its place.
pub(super) async fn declared(
    ports: &Ports,
    project: ProjectCode,
    spec: &TargetSpec,
    standing: Option<&Definition>,
) -> Result<KnownAssets, EngineError> {
    find(ports, project, spec, standing, Gone::Refused).await
}

/// The same for a declaration that stands: members that are gone stay members, which block it by themselves.
pub(super) async fn standing(
    ports: &Ports,
    project: ProjectCode,
    standing: &Definition,
) -> Result<KnownAssets, EngineError> {
    find(ports, project, &standing.spec, Some(standing), Gone::Stay).await
}

/// What becomes of a member that is not registered, or not to be seen any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    Refused,
    Stay,
}

async fn find(
    ports: &Ports,
    project: ProjectCode,
    spec: &TargetSpec,
    standing: Option<&Definition>,
    gone: Gone,
) -> Result<KnownAssets, EngineError> {
    let mut known = KnownAssets::default();
    for (group_at, group) in spec.groups.iter().enumerate() {
        for (at, dependency) in group.dependencies.iter().enumerate() {
            let field = format!("groups[{group_at}].dependencies[{at}].asset");
            match &dependency.asset {
                AssetSelector::Key(key) if known.by_key.contains_key(key) => {}
                AssetSelector::Key(key) => {
                    let before = standing.and_then(|standing| member_of(standing, key));
                    let asset = match find_asset(ports, project, key, spec, standing).await {
                        Ok(asset) => asset,
                        Err(error) if error.kind() == ErrorKind::NotFound && gone == Gone::Stay => match before {
                            Some(before) => before,
                            None => return Err(error.with("at", &field)),
                        },
                        Err(error) => return Err(error.with("at", &field)),
                    };
                    known.by_key.insert(key.clone(), asset);
                }
                AssetSelector::Prefix(prefix) if known.by_prefix.contains_key(prefix) => {}
                AssetSelector::Prefix(prefix) => {
                    known.by_prefix.insert(prefix.clone(), subscribe::members(ports, project, prefix).await?);
                }
            }
        }
    }
    Ok(known)
}

/// The asset with this key that the project may depend on.
async fn find_asset(
    ports: &Ports,
    project: ProjectCode,
    key: &AssetKey,
    spec: &TargetSpec,
    standing: Option<&Definition>,
) -> Result<KnownAsset, EngineError> {
    let head = match assets::lookup(ports, key).await? {
        Some(id) => Some((id, assets::head(ports, id).await?.value)),
        None => None,
    };
    let may = |head: &AssetHead| head.deregistered_at.is_none() && head.is_visible_to(project);
    let Some((id, head)) = head.filter(|(_, head)| may(head)) else {
        return Err(assets::unknown_asset(key, Some(&assets::nearest(ports, project, key).await?)));
    };
    let mut snapshots = standing.map(|standing| minima(standing, key)).unwrap_or_default();
    snapshots::find_minima(ports, spec, key, id, head.state.epoch, &mut snapshots).await?;
    Ok(KnownAsset { id, epoch: head.state.epoch, snapshots })
}

/// What a standing definition knows of a member; `None` where it has none by this key.
fn member_of(standing: &Definition, key: &AssetKey) -> Option<KnownAsset> {
    let members = standing.target.groups.iter().flat_map(|group| &group.members);
    let id = members.into_iter().find(|member| member.key == *key)?.asset;
    Some(KnownAsset { id, epoch: Epoch(0), snapshots: minima(standing, key) })
}

/// Where the least snapshots stand that a standing definition asks for of an asset.
fn minima(standing: &Definition, key: &AssetKey) -> BTreeMap<String, Position> {
    let members = standing.target.groups.iter().flat_map(|group| &group.members).filter(|member| member.key == *key);
    let minima = members.filter_map(|member| member.conditions.minimum.as_ref());
    let place = |minimum: &Minimum| Position { epoch: minimum.epoch, ordinal: minimum.ordinal };
    minima.map(|minimum| (minimum.snapshot_id.clone(), place(minimum))).collect()
}
