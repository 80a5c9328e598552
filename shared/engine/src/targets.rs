//! Declare, explain, list and undeclare targets.
//!
//! Declare against advance: for each asset one transaction puts the pointer and raises the head's
//! revision; then the heads are read, the target is written and evaluated. An advance at the same
//! time loses its compare-and-swap and sees the pointer.

use std::collections::BTreeMap;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TraceId, WorkflowCode};
use lakebell_domain::target::{KnownAsset, Target, TargetSpec};
use lakebell_domain::trigger::{Arrow, Status, Trigger};

use crate::assets;
use crate::evaluate::{self, Evaluated, Subject, defect, trigger_draft};
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::{AssetHead, Definition, Pointer, RegisteredTarget};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// What came of a declaration.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The target.
    pub definition: Definition,
    /// Whether this call changed anything.
    pub is_changed: bool,
    /// The verdict after it.
    pub evaluated: Option<Evaluated>,
}

/// A target's items as they stand.
struct Known {
    definition: Option<Stored<Definition>>,
    cursor: Option<Stored<TargetCursor>>,
}

/// Declares or alters a target. Groups that are new start from now: only later commits count.
/// Declaring the same again changes nothing.
///
/// Errors: `Invalid` with the field; `NotFound` for an asset that is not registered, naming the
/// nearest ones.
pub async fn declare(
    ports: &Ports,
    project: ProjectCode,
    spec: &TargetSpec,
    trace: &TraceId,
) -> Result<Declared, EngineError> {
    spec.check()?;
    let id = TargetId { project, name: spec.target_name()? };
    let found = find_assets(ports, spec).await?;
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, &id).await?;
        let before = known.definition.as_ref();
        if let Some(same) = before.filter(|known| known.value.undeclared_at.is_none() && known.value.spec == *spec) {
            let evaluated = evaluate::evaluate_one(ports, &id, trace).await?;
            return Ok(Declared { definition: same.value.clone(), is_changed: false, evaluated });
        }
        let generation =
            before.map_or(1, |known| known.value.target.generation + u32::from(known.value.undeclared_at.is_some()));
        let target = spec.resolve(project, generation, |key| found.get(key).cloned())?;
        let definition_rev = before.map_or(0, |known| known.rev) + 1;
        let heads = put_pointers(ports, &target, definition_rev).await?;
        let definition = Definition { spec: spec.clone(), target, declared_at: ports.clock.now(), undeclared_at: None };
        if !write_target(ports, &known, &definition, definition_rev, &heads).await? {
            continue;
        }
        drop_pointers(ports, before.map(|known| &known.value.target), &definition.target).await?;
        let evaluated = evaluate::evaluate_one(ports, &id, trace).await?;
        return Ok(Declared { definition, is_changed: true, evaluated });
    }
    Err(store::lost_too_often("declare").with("target", &id))
}

async fn find_assets(ports: &Ports, spec: &TargetSpec) -> Result<BTreeMap<AssetKey, KnownAsset>, EngineError> {
    let mut found = BTreeMap::new();
    for (group_at, group) in spec.groups.iter().enumerate() {
        for (at, dependency) in group.dependencies.iter().enumerate() {
            if found.contains_key(&dependency.asset) {
                continue;
            }
            let field = format!("groups[{group_at}].dependencies[{at}].asset");
            let unknown = |nearest: &[AssetKey]| assets::unknown_asset(&dependency.asset, nearest).with("at", &field);
            let head = match assets::lookup(ports, &dependency.asset).await? {
                Some(id) => Some((id, assets::head(ports, id).await?)),
                None => None,
            };
            match head.filter(|(_, head)| head.value.deregistered_at.is_none()) {
                Some((id, head)) => {
                    found.insert(dependency.asset.clone(), KnownAsset { id, epoch: head.value.state.epoch });
                }
                None => return Err(unknown(&assets::nearest(ports, &dependency.asset).await?)),
            }
        }
    }
    Ok(found)
}

async fn load(ports: &Ports, id: &TargetId) -> Result<Known, EngineError> {
    let keys = [layout::definition(id), layout::cursor(id)];
    let items = ports.items.get(&keys).await?;
    let definition = store::pick(&items, &keys[0]).map(store::decode).transpose()?;
    let cursor = store::pick(&items, &keys[1]).map(store::decode).transpose()?;
    Ok(Known { definition, cursor })
}

/// Per asset one transaction: the pointer, and the head's revision. Returns the heads read after.
async fn put_pointers(
    ports: &Ports,
    target: &Target,
    definition_rev: u64,
) -> Result<BTreeMap<AssetId, AssetHead>, EngineError> {
    let members: Vec<AssetId> = target.assets().into_keys().collect();
    let pointer = Pointer { target: target.id.clone(), members: members.clone(), definition_rev };
    for asset in &members {
        put_pointer(ports, *asset, &pointer).await?;
    }
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

async fn put_pointer(ports: &Ports, asset: AssetId, pointer: &Pointer) -> Result<(), EngineError> {
    let key = layout::pointer(asset, &pointer.target);
    for _ in 0..MAX_LOST_RACES {
        let draft = store::draft(key.clone(), pointer)?;
        let known = ports.items.get(std::slice::from_ref(&key)).await?;
        let put = match known.first() {
            Some(item) => Write::Replace(draft, item.rev),
            None => Write::Create(draft),
        };
        let actions = [put, Write::Bump(layout::head(asset))];
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("put pointer").with("asset", asset))
}

/// Definition, cursors and registry entry in one transaction; `false` where somebody was first.
async fn write_target(
    ports: &Ports,
    known: &Known,
    definition: &Definition,
    definition_rev: u64,
    heads: &BTreeMap<AssetId, AssetHead>,
) -> Result<bool, EngineError> {
    let id = &definition.target.id;
    let mut cursor = known.cursor.as_ref().map(|cursor| cursor.value.clone()).unwrap_or_default();
    cursor.definition_rev = definition_rev;
    start_from_now(&mut cursor, known, &definition.target, heads);
    let definition_draft = store::draft(layout::definition(id), definition)?;
    let cursor_draft = store::draft(layout::cursor(id), &cursor)?;
    let entry = RegisteredTarget { id: id.clone(), workflow: definition.target.workflow.clone() };
    let registered = layout::registered_target(id);
    let entry_draft = store::draft(registered.clone(), &entry)?;
    let entry_known = ports.items.get(std::slice::from_ref(&registered)).await?;
    let replace_or_create = |draft, rev: Option<u64>| match rev {
        Some(rev) => Write::Replace(draft, rev),
        None => Write::Create(draft),
    };
    let actions = [
        replace_or_create(definition_draft, known.definition.as_ref().map(|known| known.rev)),
        replace_or_create(cursor_draft, known.cursor.as_ref().map(|known| known.rev)),
        replace_or_create(entry_draft, entry_known.first().map(|item| item.rev)),
    ];
    Ok(store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done)
}

/// Members that are new, and all of them where the target was undeclared, start from what their
/// asset has now. Cursors of members that are gone go too.
fn start_from_now(cursor: &mut TargetCursor, known: &Known, target: &Target, heads: &BTreeMap<AssetId, AssetHead>) {
    let before = known.definition.as_ref().filter(|known| known.value.undeclared_at.is_none());
    let had = |group: &lakebell_domain::ids::GroupName, asset: AssetId| {
        let groups = before.into_iter().flat_map(|known| &known.value.target.groups);
        groups.filter(|known| known.name == *group).flat_map(|known| &known.members).any(|member| member.asset == asset)
    };
    let mut taken = BTreeMap::new();
    for group in &target.groups {
        let mut of_group = BTreeMap::new();
        for member in &group.members {
            let version = if had(&group.name, member.asset) {
                cursor.taken(&group.name, member.asset).cloned()
            } else {
                heads.get(&member.asset).and_then(|head| head.live_state()?.table.clone())
            };
            if let Some(version) = version {
                of_group.insert(member.asset, version);
            }
        }
        taken.insert(group.name.clone(), of_group);
    }
    cursor.taken = taken;
    if before.is_none() {
        cursor.failed = None;
    }
}

/// Once the definition is written, pointers of members that are gone may go.
async fn drop_pointers(ports: &Ports, before: Option<&Target>, now: &Target) -> Result<(), EngineError> {
    let kept = now.assets();
    let gone =
        before.into_iter().flat_map(|before| before.assets().into_keys()).filter(|asset| !kept.contains_key(asset));
    for asset in gone {
        remove_pointer(ports, asset, &now.id).await?;
    }
    Ok(())
}

/// A pointer too many costs an evaluation, so one that somebody else changed is left alone.
async fn remove_pointer(ports: &Ports, asset: AssetId, target: &TargetId) -> Result<(), EngineError> {
    let key = layout::pointer(asset, target);
    if let Some(item) = ports.items.get(std::slice::from_ref(&key)).await?.first() {
        store::write(&*ports.items, &*ports.random, &[Write::Remove(key, item.rev)]).await?;
    }
    Ok(())
}

/// Undeclares a target in one transaction: a tombstone in the definition, the cursors kept, a
/// queued or waiting trigger SKIPPED. Doing it twice changes nothing.
///
/// Errors: `NotFound`; `Conflict` while a trigger is leased, unknown or held.
pub async fn undeclare(ports: &Ports, id: &TargetId) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, id).await?;
        let (Some(definition), Some(cursor)) = (known.definition, known.cursor) else { return Err(not_found(id)) };
        if definition.value.undeclared_at.is_some() {
            return Ok(());
        }
        let now = ports.clock.now();
        let tombstone = Definition { undeclared_at: Some(now), ..definition.value.clone() };
        let mut closed = cursor.value.clone();
        let mut actions = Vec::new();
        if let Some(open) = &cursor.value.open
            && let Some(trigger) = store::get::<Trigger>(&*ports.items, layout::trigger(open)).await?
            && !trigger.value.has_ended()
        {
            let skip = Arrow::Skip { why: "its target was undeclared".to_owned() };
            let is_skippable = matches!(trigger.value.status(), Status::Queued | Status::Waiting { .. });
            if !is_skippable {
                return Err(EngineError::new(
                    ErrorKind::Conflict,
                    format!("trigger {open} is {}; try again when it has ended", trigger.value.status().step()),
                )
                .with("target", id));
            }
            let skipped = trigger.value.apply(&skip, now).map_err(defect)?;
            actions.push(Write::Replace(trigger_draft(&skipped)?, trigger.rev));
        }
        closed.open = None;
        // Nothing takes over its data any more, and a redrive would start what is not declared.
        closed.failed = None;
        actions.push(Write::Replace(store::draft(layout::definition(id), &tombstone)?, definition.rev));
        actions.push(Write::Replace(store::draft(layout::cursor(id), &closed)?, cursor.rev));
        let registered = layout::registered_target(id);
        if let Some(item) = ports.items.get(std::slice::from_ref(&registered)).await?.first() {
            actions.push(Write::Remove(registered, item.rev));
        }
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            for asset in definition.value.target.assets().into_keys() {
                remove_pointer(ports, asset, id).await?;
            }
            return Ok(());
        }
    }
    Err(store::lost_too_often("undeclare").with("target", id))
}

fn not_found(id: &TargetId) -> EngineError {
    EngineError::new(ErrorKind::NotFound, format!("target {id} is not declared")).with("field", "target")
}

/// Every declared target of a project, or of one workflow of it, by name.
pub async fn list(
    ports: &Ports,
    project: Option<ProjectCode>,
    workflow: Option<WorkflowCode>,
) -> Result<Vec<RegisteredTarget>, EngineError> {
    let mut targets: Vec<RegisteredTarget> = store::registry(&ports.items, "RT").await?;
    targets.retain(|target| project.is_none_or(|project| target.id.project == project));
    targets.retain(|target| workflow.is_none_or(|workflow| target.starts(workflow)));
    targets.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(targets)
}

/// Declared targets with their verdicts and why.
pub async fn explain(ports: &Ports, targets: &[TargetId]) -> Result<Vec<(Definition, Evaluation)>, EngineError> {
    let subjects: Vec<Subject> =
        targets.iter().map(|target| Subject { target: target.clone(), members: None }).collect();
    evaluate::explain(ports, &subjects).await
}
