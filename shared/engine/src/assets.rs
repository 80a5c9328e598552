//! Register, find, list and deregister assets.

mod spec;

pub use spec::AssetSpec;

use std::collections::BTreeSet;

use lakebell_domain::asset::{AssetKey, Location, WrittenKey};
use lakebell_domain::event::Source;
use lakebell_domain::ids::{AssetId, ProjectCode, TraceId};
use lakebell_domain::state::AssetState;

use crate::asset_settings::Trust;
use crate::evaluate;
use crate::layout;
use crate::observe::{self, Hint, Look, Observed};
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::{AssetHead, NO_PROJECT, RegisteredAsset, Resolved, Unregistered};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::targets;
use crate::{EngineError, ErrorKind, grants, inbox};

/// What an error says of itself where the owner of an asset was asked for a grant.
pub const GRANT: &str = "grant";
/// Most tables that a declaration of a warehouse registers in one call.
pub const MAX_DISCOVERED: usize = 500;

/// Who registers an asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registrar {
    /// A person, whose settings count.
    Person,
    /// A warehouse, which sets nothing: an asset that is there keeps what was set for it.
    Warehouse,
}

/// What came of a registration.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The asset.
    pub id: AssetId,
    /// Whether this call made it; `false` where it was registered alike before.
    pub is_new: bool,
    /// The first look at it.
    pub observed: Observed,
}

/// Registers an asset as a person wrote it: where the key leaves the format to be recognised, it is that
/// of the table at the location, or of the asset of this name that is registered there.
///
/// Errors: `Invalid` where nothing that is there says which format it is; those of [`register`].
pub async fn register_written(
    ports: &Ports,
    project: ProjectCode,
    spec: AssetSpec<WrittenKey>,
    trace: &TraceId,
) -> Result<Registration, EngineError> {
    let key = match spec.key.told() {
        Some(key) => key,
        None => recognised(ports, &spec).await?,
    };
    register(ports, project, &spec.with_key(key), trace).await
}

async fn recognised(ports: &Ports, spec: &AssetSpec<WrittenKey>) -> Result<AssetKey, EngineError> {
    if let Some(id) = at_location(ports, &spec.location, spec.key.branch()).await? {
        let known = head(ports, id).await?.value.key;
        if spec.key.may_be(&known) {
            return Ok(known);
        }
    }
    let format = observe::format_at(&*ports.storage, &spec.location).await?;
    Ok(spec.key.of(format)?)
}

/// Registers an asset and looks at it. Registering the same key at the same location again changes
/// its settings to those of `spec`, if the project owns it or nobody does, and nothing else.
///
/// Errors: `Invalid` where a table of another format than the key's lies at the location, or for a
/// setting that the format does not have;
/// `Conflict` where the key has another location, or the location another key.
pub async fn register(
    ports: &Ports,
    project: ProjectCode,
    spec: &AssetSpec,
    trace: &TraceId,
) -> Result<Registration, EngineError> {
    Box::pin(register_by(ports, project, spec, trace, Registrar::Person)).await
}

/// Registers a table that a warehouse brought. One that is registered alike already keeps its
/// settings.
///
/// Errors: those of [`register`].
pub(crate) async fn register_found(
    ports: &Ports,
    project: ProjectCode,
    spec: &AssetSpec,
    trace: &TraceId,
) -> Result<Registration, EngineError> {
    Box::pin(register_by(ports, project, spec, trace, Registrar::Warehouse)).await
}

async fn register_by(
    ports: &Ports,
    project: ProjectCode,
    spec: &AssetSpec,
    trace: &TraceId,
    by: Registrar,
) -> Result<Registration, EngineError> {
    spec.check()?;
    for _ in 0..MAX_LOST_RACES {
        let (id, is_new) = match find_registered(ports, spec).await? {
            Some(known) if known.value.deregistered_at.is_none() && !known.value.is_visible_to(project) => {
                return Err(taken(ports, project, spec, &known.value, by).await?);
            }
            Some(known) if known.value.deregistered_at.is_none() => {
                same_or_conflict(&known.value, spec)?;
                let id = find_id(ports, &spec.key).await?;
                let may_set = by == Registrar::Person && [project, NO_PROJECT].contains(&known.value.project);
                if may_set && known.value.settings != spec.settings() && !set(ports, id, known, spec).await? {
                    continue;
                }
                (id, false)
            }
            Some(known) => match revive(ports, project, spec, known).await? {
                Some(id) => (id, true),
                None => continue,
            },
            None => match create(ports, project, spec).await? {
                Some(id) => (id, true),
                None => continue,
            },
        };
        let hint = Hint { asset: id, look: Look::Whole, source: Source::Poll, trace: trace.clone() };
        let observed = observe::observe(ports, &hint).await?;
        evaluate::evaluate_dependents(ports, &observed, trace).await?;
        if is_new {
            forget_unregistered(ports, &spec.location.to_string(), Some(project)).await?;
        }
        if is_new || by == Registrar::Person {
            // The asset is written: what writers told of the table before it was counts from now on.
            inbox::waiting::reopen(ports, &inbox::waiting::of_asset(&spec.key, &spec.location), trace).await?;
        }
        // Its catalog may be another one now.
        if by == Registrar::Person {
            for name in inbox::identity::confirm_claimed(ports, id, &observed.head.value).await? {
                inbox::waiting::reopen(ports, &inbox::waiting::of_name(&name), trace).await?;
            }
        }
        // Also where a person says it again: the run that wrote it may have died before this.
        if is_new || by == Registrar::Person {
            // The asset is written: whoever subscribes after this sees it, and who did before is here.
            let subscribers = targets::subscribers(ports, &spec.key).await?;
            targets::all_take_in(ports, &subscribers, trace).await?;
        }
        return Ok(Registration { id, is_new, observed });
    }
    Err(store::lost_too_often("register"))
}

/// The head that the key leads to, or else the one that lives at the location.
async fn find_registered(ports: &Ports, spec: &AssetSpec) -> Result<Option<Stored<AssetHead>>, EngineError> {
    let keys = [layout::name(&spec.key), layout::location(&spec.location, spec.key.branch())];
    let items = ports.items.get(&keys).await?;
    for key in &keys {
        if let Some(item) = store::pick(&items, key) {
            let resolved: Stored<Resolved> = store::decode(item)?;
            return store::get(&*ports.items, layout::head(resolved.value.id)).await;
        }
    }
    Ok(None)
}

/// Writes other settings; `false` where somebody else wrote first. The evaluation that follows the
/// registration sees them.
async fn set(ports: &Ports, id: AssetId, known: Stored<AssetHead>, spec: &AssetSpec) -> Result<bool, EngineError> {
    let mut head = AssetHead { settings: spec.settings(), ..known.value };
    head.settings.apply_to(head.key.format(), &mut head.state);
    let mut actions = vec![Write::Replace(store::draft(layout::head(id), &head)?, known.rev)];
    let entry = layout::registered_asset(id);
    if let Some(item) = ports.items.get(std::slice::from_ref(&entry)).await?.first() {
        actions.push(Write::Replace(store::draft(entry, &registry_entry(id, &head))?, item.rev));
    }
    Ok(store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done)
}

/// The refusal of a place that another project has. It does not say which of key and location is
/// taken, or by whom; a person's request goes to the owner.
async fn taken(
    ports: &Ports,
    project: ProjectCode,
    spec: &AssetSpec,
    known: &AssetHead,
    by: Registrar,
) -> Result<EngineError, EngineError> {
    let error = EngineError::new(ErrorKind::Conflict, "the key or the location is taken");
    if by == Registrar::Warehouse {
        return Ok(error);
    }
    let at = at_location(ports, &known.location, known.key.branch()).await?;
    if let Some(id) = at.or(lookup(ports, &spec.key).await?) {
        grants::ask(ports, id, known, project).await?;
    }
    Ok(error.with(GRANT, "requested"))
}

fn same_or_conflict(known: &AssetHead, spec: &AssetSpec) -> Result<(), EngineError> {
    if known.key != spec.key {
        // The caller may see it, or would have been refused before.
        return Err(conflict("location", format!("{} is registered as {}", spec.location, known.key)));
    }
    if known.location != spec.location {
        return Err(conflict(
            "key",
            format!("{} is registered at {}; delete it first to move it", spec.key, known.location),
        ));
    }
    if known.settings.trust != spec.trust {
        // The two count versions by different numbers.
        let message = format!("{} is registered with another `trust`; delete it first to change that", spec.key);
        return Err(conflict("trust", message));
    }
    Ok(())
}

fn conflict(field: &'static str, message: String) -> EngineError {
    EngineError::new(ErrorKind::Conflict, message).with("field", field)
}

async fn create(ports: &Ports, project: ProjectCode, spec: &AssetSpec) -> Result<Option<AssetId>, EngineError> {
    if spec.trust == Trust::Storage {
        observe::agree(&*ports.storage, &spec.key, &spec.location).await?;
    }
    let id = store::new_asset_id(&*ports.random);
    let head = new_head(ports, project, spec, AssetState::default());
    let resolved = Resolved { id, project: Some(project) };
    let mut actions = vec![
        Write::Create(store::draft(layout::name(&spec.key), &resolved)?),
        Write::Create(store::draft(layout::location(&spec.location, spec.key.branch()), &resolved)?),
        Write::Create(store::draft(layout::registered_asset(id), &registry_entry(id, &head))?),
    ];
    actions.extend(observe::create_asset(&head, id)?);
    let written = store::write(&*ports.items, &*ports.random, &actions).await?;
    Ok((written == Written::Done).then_some(id))
}

fn new_head(ports: &Ports, project: ProjectCode, spec: &AssetSpec, mut state: AssetState) -> AssetHead {
    let settings = spec.settings();
    settings.apply_to(spec.key.format(), &mut state);
    AssetHead {
        key: spec.key.clone(),
        project,
        granted: BTreeSet::new(),
        location: spec.location.clone(),
        registered_at: ports.clock.now(),
        registered_epoch: state.epoch,
        deregistered_at: None,
        settings,
        state,
    }
}

fn registry_entry(id: AssetId, head: &AssetHead) -> RegisteredAsset {
    RegisteredAsset {
        id,
        key: head.key.clone(),
        project: head.project,
        granted: head.granted.clone(),
        location: head.location.clone(),
        settings: head.settings.clone(),
    }
}

/// Registering a deregistered asset again opens the next epoch, at the same or a new location.
async fn revive(
    ports: &Ports,
    project: ProjectCode,
    spec: &AssetSpec,
    known: Stored<AssetHead>,
) -> Result<Option<AssetId>, EngineError> {
    if known.value.key != spec.key {
        return Err(conflict("location", format!("{} was registered under another key before", spec.location)));
    }
    if spec.trust == Trust::Storage {
        observe::agree(&*ports.storage, &spec.key, &spec.location).await?;
    }
    let id = find_id(ports, &spec.key).await?;
    let mut state = known.value.state.registered_again();
    if known.value.project != project {
        // Whoever had the table before and named them is somebody else.
        state.backfills.clear();
    }
    let head = new_head(ports, project, spec, state);
    let location_key = layout::location(&spec.location, spec.key.branch());
    let location = store::get::<Resolved>(&*ports.items, location_key.clone()).await?;
    let ring = store::get::<crate::records::Ring>(&*ports.items, layout::ring(id)).await?;
    let mut actions = vec![
        Write::Replace(store::draft(layout::head(id), &head)?, known.rev),
        Write::Create(store::draft(layout::registered_asset(id), &registry_entry(id, &head))?),
    ];
    if let Some(ring) = ring {
        actions.push(Write::Replace(store::draft(layout::ring(id), &crate::records::Ring::default())?, ring.rev));
    }
    let resolved = Resolved { id, project: Some(project) };
    let name_key = layout::name(&spec.key);
    if let Some(name) = ports.items.get(std::slice::from_ref(&name_key)).await?.first() {
        actions.push(Write::Replace(store::draft(name_key, &resolved)?, name.rev));
    }
    match location {
        None => actions.push(Write::Create(store::draft(location_key, &resolved)?)),
        Some(taken) if taken.value.id != id => {
            return Err(conflict("location", format!("{} is registered under another key", spec.location)));
        }
        Some(_) => {}
    }
    let written = store::write(&*ports.items, &*ports.random, &actions).await?;
    Ok((written == Written::Done).then_some(id))
}

/// The asset with this key, whoever owns it.
///
/// Errors: `NotFound`.
pub async fn find_id(ports: &Ports, key: &AssetKey) -> Result<AssetId, EngineError> {
    match lookup(ports, key).await? {
        Some(id) => Ok(id),
        None => Err(unknown_asset(key, None)),
    }
}

/// The asset with this key, if it was ever registered.
pub async fn lookup(ports: &Ports, key: &AssetKey) -> Result<Option<AssetId>, EngineError> {
    Ok(resolve_key(ports, key).await?.map(|resolved| resolved.id))
}

/// What a key leads to.
pub(crate) async fn resolve_key(ports: &Ports, key: &AssetKey) -> Result<Option<Resolved>, EngineError> {
    Ok(store::get(&*ports.items, layout::name(key)).await?.map(|resolved| resolved.value))
}

/// What a location leads to, or a branch of it.
pub(crate) async fn resolve_location(
    ports: &Ports,
    location: &Location,
    branch: Option<&str>,
) -> Result<Option<Resolved>, EngineError> {
    Ok(store::get(&*ports.items, layout::location(location, branch)).await?.map(|resolved| resolved.value))
}

/// Whether a project owns an asset, or nobody does. One read where the owner was not kept.
pub(crate) async fn speaks_for(ports: &Ports, project: ProjectCode, resolved: &Resolved) -> Result<bool, EngineError> {
    let owner = match resolved.project {
        Some(owner) => owner,
        None => head(ports, resolved.id).await?.value.project,
    };
    Ok(owner == project || owner == NO_PROJECT)
}

/// The asset that lives at a location, or at a branch of it.
pub async fn at_location(
    ports: &Ports,
    location: &Location,
    branch: Option<&str>,
) -> Result<Option<AssetId>, EngineError> {
    Ok(resolve_location(ports, location, branch).await?.map(|resolved| resolved.id))
}

/// The refusal of a key that is not registered; `nearest` are registered ones, where they may be told.
pub(crate) fn unknown_asset(key: &AssetKey, nearest: Option<&[AssetKey]>) -> EngineError {
    let hint = match nearest {
        None => "register it, or correct the key".to_owned(),
        Some([]) => "no asset is registered yet".to_owned(),
        Some(nearest) => {
            let names: Vec<String> = nearest.iter().map(ToString::to_string).collect();
            format!("the nearest registered ones are {}", names.join(", "))
        }
    };
    EngineError::new(ErrorKind::NotFound, format!("{key} is not registered; {hint}")).with("field", "asset")
}

/// The three registered keys that a project may see and that look most like one that is not.
pub async fn nearest(ports: &Ports, project: ProjectCode, key: &AssetKey) -> Result<Vec<AssetKey>, EngineError> {
    let known = list(ports, None).await?.into_iter().filter(|asset| asset.is_visible_to(project));
    let mut known: Vec<AssetKey> = known.map(|asset| asset.key).collect();
    let wanted = key.to_string();
    known.sort_by_cached_key(|other| (distance(&wanted, &other.to_string()), other.clone()));
    known.truncate(3);
    Ok(known)
}

/// Edit distance between two keys.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// Every registered asset, of one project or of all, by key.
pub async fn list(ports: &Ports, project: Option<ProjectCode>) -> Result<Vec<RegisteredAsset>, EngineError> {
    let mut assets: Vec<RegisteredAsset> = store::registry(&ports.items, "RA").await?;
    assets.retain(|asset| project.is_none_or(|project| asset.project == project));
    assets.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(assets)
}

/// An asset's head as it stands.
pub async fn head(ports: &Ports, id: AssetId) -> Result<Stored<AssetHead>, EngineError> {
    store::get(&*ports.items, layout::head(id))
        .await?
        .ok_or_else(|| EngineError::new(ErrorKind::NotFound, "the asset is not registered"))
}

/// Deregisters an asset: a tombstone with its epoch stays, its name too, and its targets are
/// `BLOCKED_BY_UNKNOWN_ASSET`. Doing it twice changes nothing.
pub async fn deregister(ports: &Ports, key: &AssetKey) -> Result<(), EngineError> {
    let id = find_id(ports, key).await?;
    for _ in 0..MAX_LOST_RACES {
        let known = head(ports, id).await?;
        if known.value.deregistered_at.is_some() {
            return Ok(());
        }
        let tombstone = AssetHead { deregistered_at: Some(ports.clock.now()), ..known.value.clone() };
        let mut actions = vec![Write::Replace(store::draft(layout::head(id), &tombstone)?, known.rev)];
        // The location is free for another key from now on.
        for key in [layout::registered_asset(id), layout::location(&known.value.location, known.value.key.branch())] {
            if let Some(item) = ports.items.get(std::slice::from_ref(&key)).await?.first() {
                actions.push(Write::Remove(key, item.rev));
            }
        }
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("deregister").with("asset", key))
}

/// Keeps a table that was seen and is not registered, once. Known ones cost a failed condition.
pub async fn remember_unregistered(ports: &Ports, seen: &Unregistered) -> Result<bool, EngineError> {
    let mut draft = store::draft(layout::unregistered(&seen.location, seen.project), seen)?;
    draft.expires_at = Some(ports.clock.now() + observe::EVENT_RETENTION);
    let written = store::write(&*ports.items, &*ports.random, &[Write::Create(draft)]).await?;
    Ok(written == Written::Done)
}

/// Takes a table off the list of those that were seen, because it is registered.
pub(crate) async fn forget_unregistered(
    ports: &Ports,
    location: &str,
    project: Option<ProjectCode>,
) -> Result<(), EngineError> {
    let mut keys = vec![layout::unregistered(location, None)];
    keys.extend(project.map(|project| layout::unregistered(location, Some(project))));
    for item in ports.items.get(&keys).await? {
        store::write(&*ports.items, &*ports.random, &[Write::Remove(item.key, item.rev)]).await?;
    }
    Ok(())
}

/// Tables that were seen and are not registered: in storage, or by writers of one project, or of all.
pub async fn list_unregistered(ports: &Ports, reader: Option<ProjectCode>) -> Result<Vec<Unregistered>, EngineError> {
    let mut seen: Vec<Unregistered> = store::registry(&ports.items, "RU").await?;
    seen.retain(|seen| reader.is_none_or(|reader| seen.project.is_none_or(|project| project == reader)));
    seen.sort_by(|one, other| one.location.cmp(&other.location));
    seen.dedup_by(|one, other| one.location == other.location);
    Ok(seen)
}
