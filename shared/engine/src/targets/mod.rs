//! Declare, explain, list and undeclare targets.
//!
//! Declare against advance: for each asset one transaction puts the pointer and raises the head's
//! revision; then the heads are read, the target is written and evaluated. An advance at the same
//! time loses its compare-and-swap and sees the pointer.

mod past;
mod pointers;
mod snapshots;
mod start;
mod subscribe;
mod undeclare;

pub(crate) use subscribe::subscribers;
pub use undeclare::undeclare;

use std::collections::BTreeMap;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::ids::{AssetId, GroupName, ProjectCode, TargetId, TraceId, WorkflowCode};
use lakebell_domain::target::{AssetPrefix, AssetSelector, KnownAsset, KnownAssets, Target, TargetSpec};
use lakebell_domain::trigger::Trigger;

use self::start::Begin;
use crate::assets;
use crate::evaluate::{self, Evaluated, Explained, Subject, cursor_draft};
use crate::layout;
use crate::lineage;
use crate::observe::Past;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::{AssetHead, Definition, RegisteredTarget};
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
    /// What a person should know who declares this.
    pub warnings: Vec<String>,
}

/// A target's items as they stand.
struct Known {
    definition: Option<Stored<Definition>>,
    cursor: Option<Stored<TargetCursor>>,
}

impl Known {
    /// The definition, unless it was undeclared.
    fn live(&self) -> Option<&Definition> {
        self.definition.as_ref().map(|known| &known.value).filter(|known| known.undeclared_at.is_none())
    }

    /// Whether an asset is a member of a group.
    fn has(&self, group: &GroupName, asset: AssetId) -> bool {
        let group = self.live().and_then(|live| live.target.group(group));
        group.is_some_and(|group| group.members.iter().any(|member| member.asset == asset))
    }

    /// Whether the commits of a group's member have been kept one by one.
    fn keeps_history_of(&self, group: &GroupName, asset: AssetId) -> bool {
        self.live().is_some_and(|live| live.target.needs_history()) && self.has(group, asset)
    }

    /// The cursors under a definition that is to be written.
    fn cursor_of(
        &self,
        definition: &Definition,
        definition_rev: u64,
        heads: &BTreeMap<AssetId, AssetHead>,
        begin: Begin<'_>,
    ) -> TargetCursor {
        let mut cursor = self.cursor.as_ref().map(|cursor| cursor.value.clone()).unwrap_or_default();
        cursor.definition_rev = definition_rev;
        // What did not count may count under another definition.
        cursor.looked.clear();
        if self.live().is_none() {
            cursor.failed = None;
            cursor.windows.clear();
            cursor.advanced_at = None;
            cursor.since = Some(definition.declared_at);
        }
        start::begin(&mut cursor, &definition.target, heads, begin, |group, asset| self.has(group, asset));
        cursor
    }
}

/// Declares or alters a target. Groups that are new begin as the declaration says; by default only
/// later commits count. Declaring the same again changes nothing but what its prefixes take in.
///
/// Errors: `Invalid` with the field; `NotFound` for an asset that is not registered, naming the
/// nearest ones; `SelfLoop` for one that the workflow is known to write.
pub async fn declare(
    ports: &Ports,
    project: ProjectCode,
    spec: &TargetSpec,
    trace: &TraceId,
) -> Result<Declared, EngineError> {
    spec.check()?;
    let id = TargetId { project, name: spec.target_name()? };
    let writes = lineage::known_writes(ports, project, spec).await?;
    // Before anything is written.
    lineage::refuse_self_loop(spec, &writes, &KnownAssets::default())?;
    let prefixes = subscribe::prefixes(spec);
    subscribe::put(ports, &id, &prefixes).await?;
    let assets = find_assets(ports, project, spec).await?;
    // A table may be known under another name than the one that it is written by.
    lineage::refuse_self_loop(spec, &writes, &assets)?;
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, &id).await?;
        let named = snapshots::ordinals(&assets);
        // What is new in the same declaration is a table that its prefixes take in, registered since.
        let is_same = known.live().is_some_and(|live| live.spec == *spec);
        let begin = if is_same { Begin::AtZero } else { Begin::Declared(&spec.start_from, &named) };
        let Some((definition, is_changed)) = put(ports, &known, project, spec, &assets, begin, trace).await? else {
            continue;
        };
        if let (Some(before), true) = (known.definition.as_ref(), is_changed) {
            let kept: Vec<AssetPrefix> = prefixes.iter().cloned().collect();
            subscribe::keep_only(ports, &id, &before.value.target, &kept).await?;
        }
        let mut warnings = warnings(ports, &definition.target).await?;
        warnings.extend(writes.warnings(&definition.target));
        let evaluated = evaluate::evaluate_one(ports, &id, trace).await?;
        return Ok(Declared { definition, is_changed, evaluated, warnings });
    }
    Err(store::lost_too_often("declare").with("target", &id))
}

/// The definition of a declared target.
///
/// Errors: `NotFound`.
pub async fn find(ports: &Ports, id: &TargetId) -> Result<Definition, EngineError> {
    load(ports, id).await?.live().cloned().ok_or_else(|| not_found(id))
}

/// The target that a declaration stands for now; nothing is written.
///
/// Errors: `Invalid` with the field; `NotFound` for an asset that is not registered.
pub async fn resolve(ports: &Ports, project: ProjectCode, spec: &TargetSpec) -> Result<Target, EngineError> {
    spec.check()?;
    let assets = find_assets(ports, project, spec).await?;
    Ok(spec.resolve(project, 1, &assets)?)
}

/// Takes in the tables that a target's prefixes match and that were registered since. Their first
/// commit counts. `None` where the target is not declared.
pub async fn take_in(ports: &Ports, id: &TargetId, trace: &TraceId) -> Result<Option<Evaluated>, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, id).await?;
        let (Some(live), Some(definition)) = (known.live(), &known.definition) else { return Ok(None) };
        let spec = live.spec.clone();
        let assets = find_assets(ports, id.project, &spec).await?;
        let is_put = match put(ports, &known, id.project, &spec, &assets, Begin::AtZero, trace).await {
            Ok(put) => put.is_some(),
            // What it was declared to be cannot be met any more: it keeps its cursors and says so.
            Err(error) if error.kind() == ErrorKind::Invalid => {
                let mut invalid = live.clone();
                invalid.target.invalid = Some(error.to_string());
                let draft = store::draft(layout::definition(id), &invalid)?;
                let action = Write::Replace(draft, definition.rev);
                invalid.target.invalid == live.target.invalid
                    || store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done
            }
            Err(error) => return Err(error),
        };
        if is_put {
            return evaluate::evaluate_one(ports, id, trace).await;
        }
    }
    Err(store::lost_too_often("take in").with("target", id))
}

/// Begins a target anew: the next generation, with cursors where the declaration says.
///
/// Errors: `NotFound`; `Conflict` while a trigger of it has not ended.
pub(crate) async fn begin_anew(ports: &Ports, id: &TargetId, trace: &TraceId) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, id).await?;
        let (Some(live), Some(definition), Some(cursor)) = (known.live(), &known.definition, &known.cursor) else {
            return Err(not_found(id));
        };
        if let Some(open) = &cursor.value.open {
            let trigger: Option<Stored<Trigger>> = store::get(&*ports.items, layout::trigger(open)).await?;
            if trigger.is_some_and(|trigger| !trigger.value.has_ended()) {
                let message = format!("trigger {open} has not ended; skip it, or reset when it has");
                return Err(EngineError::new(ErrorKind::Conflict, message).with("target", id));
            }
        }
        let mut anew = live.clone();
        anew.target.generation += 1;
        let heads = pointers::heads(ports, &anew.target).await?;
        let mut cursors = TargetCursor {
            definition_rev: definition.rev + 1,
            paused: cursor.value.paused.clone(),
            since: Some(ports.clock.now()),
            ..TargetCursor::default()
        };
        let assets = find_assets(ports, id.project, &anew.spec).await?;
        let named = snapshots::ordinals(&assets);
        let begin = Begin::Declared(&anew.spec.start_from, &named);
        start::begin(&mut cursors, &anew.target, &heads, begin, |_, _| false);
        past::keep(ports, &anew.target, &cursors, &heads, |_, _| false, Past::Stored, trace).await?;
        let actions = [
            Write::Replace(store::draft(layout::definition(id), &anew)?, definition.rev),
            Write::Replace(cursor_draft(id, &cursors)?, cursor.rev),
        ];
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("reset").with("target", id))
}

/// Writes pointers, then definition and cursors; `None` where somebody was first. The second part
/// says whether anything had to be written.
async fn put(
    ports: &Ports,
    known: &Known,
    project: ProjectCode,
    spec: &TargetSpec,
    assets: &KnownAssets,
    begin: Begin<'_>,
    trace: &TraceId,
) -> Result<Option<(Definition, bool)>, EngineError> {
    let before = known.definition.as_ref();
    let generation =
        before.map_or(1, |known| known.value.target.generation + u32::from(known.value.undeclared_at.is_some()));
    let target = spec.resolve(project, generation, assets)?;
    if let Some(same) = known.live().filter(|live| live.spec == *spec && live.target == target) {
        return Ok(Some((same.clone(), false)));
    }
    let definition_rev = before.map_or(0, |known| known.rev) + 1;
    let mut heads = pointers::put(ports, spec, &target, definition_rev).await?;
    let definition = Definition { spec: spec.clone(), target, declared_at: ports.clock.now(), undeclared_at: None };
    if let Begin::Declared(start, _) = begin
        && past::read_first(ports, &definition.target, start, &heads, trace).await?
    {
        heads = pointers::heads(ports, &definition.target).await?;
    }
    let cursor = known.cursor_of(&definition, definition_rev, &heads, begin);
    let is_kept = |group: &GroupName, asset| known.keeps_history_of(group, asset);
    // Of a table that is taken in, what a first read takes counts, and no more.
    let past = if begin == Begin::AtZero { Past::Recorded } else { Past::Stored };
    past::keep(ports, &definition.target, &cursor, &heads, is_kept, past, trace).await?;
    if !write_target(ports, known, &definition, &cursor).await? {
        return Ok(None);
    }
    pointers::drop_gone(ports, before.map(|known| &known.value.target), &definition.target).await?;
    Ok(Some((definition, true)))
}

async fn find_assets(ports: &Ports, project: ProjectCode, spec: &TargetSpec) -> Result<KnownAssets, EngineError> {
    let mut known = KnownAssets::default();
    for (group_at, group) in spec.groups.iter().enumerate() {
        for (at, dependency) in group.dependencies.iter().enumerate() {
            let field = format!("groups[{group_at}].dependencies[{at}].asset");
            match &dependency.asset {
                AssetSelector::Key(key) if known.by_key.contains_key(key) => {}
                AssetSelector::Key(key) => {
                    let mut asset = find_asset(ports, project, key).await.map_err(|error| error.with("at", &field))?;
                    asset.snapshots = snapshots::find(ports, spec, key, asset.id).await?;
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
async fn find_asset(ports: &Ports, project: ProjectCode, key: &AssetKey) -> Result<KnownAsset, EngineError> {
    let head = match assets::lookup(ports, key).await? {
        Some(id) => Some((id, assets::head(ports, id).await?)),
        None => None,
    };
    let may = |head: &AssetHead| head.deregistered_at.is_none() && head.is_visible_to(project);
    match head.filter(|(_, head)| may(&head.value)) {
        Some((id, head)) => Ok(KnownAsset { id, epoch: head.value.state.epoch, snapshots: BTreeMap::new() }),
        None => Err(assets::unknown_asset(key, Some(&assets::nearest(ports, project, key).await?))),
    }
}

/// What a person should know who declares this.
async fn warnings(ports: &Ports, target: &Target) -> Result<Vec<String>, EngineError> {
    let members = || target.groups.iter().flat_map(|group| &group.members);
    let asks = |member: &&lakebell_domain::target::Member| {
        let conditions = &member.conditions;
        conditions.watermark.is_some() || conditions.max_lag.is_some() || conditions.every.is_some()
    };
    let mut warnings = Vec::new();
    for member in members().filter(asks) {
        let head = assets::head(ports, member.asset).await?.value;
        if head.state.watermark.is_none() {
            warnings.push(format!(
                "{} has not shown a watermark yet: its conditions on one are not met until a writer sets it",
                member.key
            ));
        }
    }
    Ok(warnings)
}

async fn load(ports: &Ports, id: &TargetId) -> Result<Known, EngineError> {
    let keys = [layout::definition(id), layout::cursor(id)];
    let items = ports.items.get(&keys).await?;
    let definition = store::pick(&items, &keys[0]).map(store::decode).transpose()?;
    let cursor = store::pick(&items, &keys[1]).map(store::decode).transpose()?;
    Ok(Known { definition, cursor })
}

/// Definition, cursors and registry entry in one transaction; `false` where somebody was first.
async fn write_target(
    ports: &Ports,
    known: &Known,
    definition: &Definition,
    cursor: &TargetCursor,
) -> Result<bool, EngineError> {
    let id = &definition.target.id;
    let definition_draft = store::draft(layout::definition(id), definition)?;
    let has_prefixes = definition.target.groups.iter().any(|group| !group.prefixes.is_empty());
    let entry = RegisteredTarget { id: id.clone(), workflow: definition.target.workflow.clone(), has_prefixes };
    let registered = layout::registered_target(id);
    let entry_draft = store::draft(registered.clone(), &entry)?;
    let entry_known = ports.items.get(std::slice::from_ref(&registered)).await?;
    let actions = [
        Write::put(definition_draft, known.definition.as_ref().map(|known| known.rev)),
        Write::put(cursor_draft(id, cursor)?, known.cursor.as_ref().map(|known| known.rev)),
        Write::put(entry_draft, entry_known.first().map(|item| item.rev)),
    ];
    Ok(store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done)
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
pub async fn explain(ports: &Ports, targets: &[TargetId]) -> Result<Vec<Explained>, EngineError> {
    let subjects: Vec<Subject> =
        targets.iter().map(|target| Subject { target: target.clone(), members: None }).collect();
    evaluate::explain(ports, &subjects).await
}
