//! Grants: an asset's owner lets another project read it and depend on it.
//!
//! A grant is kept in the asset's head, so that every evaluation sees it as it is, in the revision
//! that it read, at no further call. Who asks for a place that is taken leaves a request with the
//! owner, and learns nothing but that it is taken.

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::Invalid;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::Source;
use lakebell_domain::ids::{AssetId, ProjectCode, TraceId};
use serde::{Deserialize, Serialize};

use crate::evaluate::{self, Evaluated};
use crate::layout;
use crate::observe::{self, Hint, Look};
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::{AssetHead, RegisteredAsset};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind, assets, targets};

/// Most projects that an asset is granted to: they are kept in its head.
pub const MAX_GRANTS: usize = 32;
/// How long a request waits for its owner.
const ASKED_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A request for a grant, as the owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantRequest {
    /// What is asked for.
    pub asset_key: AssetKey,
    /// Who asks.
    pub project: ProjectCode,
    /// Since when.
    pub asked_at: Timestamp,
}

/// A grant, or a request for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The asset.
    pub asset_key: AssetKey,
    /// The other project.
    pub project: ProjectCode,
    /// Set while it is only asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
}

/// Leaves a request with the owner of an asset. Asking twice changes nothing.
pub(crate) async fn ask(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    project: ProjectCode,
) -> Result<(), EngineError> {
    let now = ports.clock.now();
    let request = GrantRequest { asset_key: head.key.clone(), project, asked_at: now };
    let mut draft = store::draft(layout::grant_request(head.project, asset, project), &request)?;
    draft.expires_at = Some(now + ASKED_FOR);
    store::write(&*ports.items, &*ports.random, &[Write::Create(draft)]).await?;
    Ok(())
}

/// Grants of a project's assets and the requests for them, by asset and project.
pub async fn list(ports: &Ports, owner: ProjectCode) -> Result<Vec<Grant>, EngineError> {
    let mut grants = Vec::new();
    for asset in assets::list(ports, Some(owner)).await? {
        let given = asset.granted.iter().map(|project| Grant {
            asset_key: asset.key.clone(),
            project: *project,
            asked_at: None,
        });
        grants.extend(given);
    }
    let now = ports.clock.now();
    for item in store::all_of(&*ports.items, &layout::grant_requests(owner)).await? {
        let request: GrantRequest = store::decode(&item)?.value;
        // The store forgets in its own time.
        if now < request.asked_at + ASKED_FOR {
            let GrantRequest { asset_key, project, asked_at } = request;
            grants.push(Grant { asset_key, project, asked_at: Some(asked_at) });
        }
    }
    grants.sort_by(|one, other| (&one.asset_key, one.project).cmp(&(&other.asset_key, other.project)));
    Ok(grants)
}

/// Lets a project read an asset and depend on it. Twice changes nothing.
///
/// Errors: `NotFound` where the owner has no such asset; `Invalid` for a project that is none or is
/// the owner; `Conflict` at [`MAX_GRANTS`].
pub async fn give(
    ports: &Ports,
    owner: ProjectCode,
    key: &AssetKey,
    project: ProjectCode,
    trace: &TraceId,
) -> Result<Vec<Evaluated>, EngineError> {
    if project.0 <= 0 || project == owner {
        let hint = "name the project that is to read the asset";
        return Err(Invalid::new("project", "it is no other project", hint).into());
    }
    let id = change(ports, owner, key, |head| {
        if head.granted.len() >= MAX_GRANTS && !head.granted.contains(&project) {
            let message = format!("{key} is granted to {MAX_GRANTS} projects already");
            return Err(EngineError::new(ErrorKind::Conflict, message).with("field", "project"));
        }
        Ok(head.granted.insert(project))
    })
    .await?;
    answer_request(ports, owner, id, project).await?;
    // A prefix of the project may take it in now.
    let mut subscribers = targets::subscribers(ports, key).await?;
    subscribers.retain(|target| target.project == project);
    targets::all_take_in(ports, &subscribers, trace).await?;
    evaluated(ports, id, trace).await
}

/// Takes a grant back: targets of the project that depend on the asset are blocked from now on, as
/// by one that is not registered. Twice changes nothing. A request is refused by it.
///
/// Errors: `NotFound` where the owner has no such asset.
pub async fn take_back(
    ports: &Ports,
    owner: ProjectCode,
    key: &AssetKey,
    project: ProjectCode,
    trace: &TraceId,
) -> Result<Vec<Evaluated>, EngineError> {
    let id = change(ports, owner, key, |head| Ok(head.granted.remove(&project))).await?;
    answer_request(ports, owner, id, project).await?;
    evaluated(ports, id, trace).await
}

/// Takes the project's request away, where there is one: it has its answer.
async fn answer_request(
    ports: &Ports,
    owner: ProjectCode,
    asset: AssetId,
    project: ProjectCode,
) -> Result<(), EngineError> {
    let request = layout::grant_request(owner, asset, project);
    if let Some(item) = ports.items.get(std::slice::from_ref(&request)).await?.first() {
        store::write(&*ports.items, &*ports.random, &[Write::Remove(request, item.rev)]).await?;
    }
    Ok(())
}

/// Changes the head of an owner's asset, and its entry of the registry with it.
async fn change(
    ports: &Ports,
    owner: ProjectCode,
    key: &AssetKey,
    mut alter: impl FnMut(&mut AssetHead) -> Result<bool, EngineError>,
) -> Result<AssetId, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let absent = || {
            let message = format!("{key} is not registered by project {owner}; grant an asset of its own");
            EngineError::new(ErrorKind::NotFound, message).with("field", "assetKey")
        };
        let id = assets::lookup(ports, key).await?.ok_or_else(absent)?;
        let Stored { rev, value: mut head } = assets::head(ports, id).await?;
        if head.project != owner || head.deregistered_at.is_some() {
            return Err(absent());
        }
        if !alter(&mut head)? {
            return Ok(id);
        }
        let mut actions = vec![Write::Replace(store::draft(layout::head(id), &head)?, rev)];
        let entry = layout::registered_asset(id);
        if let Some(item) = ports.items.get(std::slice::from_ref(&entry)).await?.first() {
            let known: RegisteredAsset = store::decode(item)?.value;
            let altered = RegisteredAsset { granted: head.granted.clone(), ..known };
            actions.push(Write::Replace(store::draft(entry, &altered)?, item.rev));
        }
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(id);
        }
    }
    Err(store::lost_too_often("grant").with("asset", key))
}

/// Evaluates whatever depends on an asset, after a look at it.
async fn evaluated(ports: &Ports, asset: AssetId, trace: &TraceId) -> Result<Vec<Evaluated>, EngineError> {
    let hint = Hint { asset, look: Look::Whole, source: Source::Poll, trace: trace.clone() };
    let observed = observe::observe(ports, &hint).await?;
    evaluate::evaluate_dependents(ports, &observed, trace).await
}
