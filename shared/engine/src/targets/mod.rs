//! Declare, explain, list and undeclare targets.
//!
//! Declare against advance: for each asset one transaction puts the pointer and raises the head's
//! revision; then the heads are read, the target is written and evaluated. An advance at the same
//! time loses its compare-and-swap and sees the pointer.

mod known;
mod past;
mod pointers;
mod snapshots;
mod start;
mod subscribe;
mod undeclare;

pub(crate) use pointers::drop_stale;
pub(crate) use subscribe::subscribers;
pub use undeclare::undeclare;

use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::ids::{AssetId, GroupName, ProjectCode, TargetId, TraceId, WorkflowCode};
use lakebell_domain::target::{AssetPrefix, Group, KnownAssets, Target, TargetSpec};
use lakebell_domain::trigger::Trigger;

use self::past::{Ask, Past};
use self::start::Begin;
use crate::assets;
use crate::evaluate::{self, Evaluated, Explained, Subject, cursor_draft};
use crate::layout;
use crate::lineage;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::records::{Definition, RegisteredTarget};
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
        group.is_some_and(|group| group.has(asset))
    }

    /// Whether a group goes by the same partitions as it did.
    fn goes_on(&self, group: &Group) -> bool {
        let of = |group: &Group, asset: AssetId| {
            group.members.iter().find(|member| member.asset == asset).map(|member| member.conditions.partition.clone())
        };
        let before = self.live().and_then(|live| live.target.group(&group.name));
        before.is_some_and(|before| {
            let mut both = group.members.iter().filter_map(|member| Some((member, of(before, member.asset)?)));
            both.all(|(member, before)| member.conditions.partition == before)
        })
    }

    /// Whether the commits of a group's member have been kept one by one.
    fn keeps_history_of(&self, group: &GroupName, asset: AssetId) -> bool {
        self.live().is_some_and(|live| live.target.needs_history()) && self.has(group, asset)
    }

    /// The cursors under a definition that is to be written.
    fn cursor_of(&self, definition: &Definition, definition_rev: u64, past: &Past, begin: Begin<'_>) -> TargetCursor {
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
        start::begin(&mut cursor, &definition.target, past, begin, |group, asset| self.has(group, asset));
        start::begin_partitions(&mut cursor, &definition.target, past, begin, |group| self.goes_on(group));
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
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, &id).await?;
        let assets = known::declared(ports, project, spec, known.live()).await?;
        // A table may be known under another name than the one that it is written by.
        lineage::refuse_self_loop(spec, &writes, &assets)?;
        // What is new in the same declaration is a table that its prefixes take in, registered since.
        let is_same = known.live().is_some_and(|live| live.spec == *spec);
        let begin = if is_same { Begin::AtZero } else { Begin::Declared(&spec.start_from) };
        let Some((definition, is_changed)) = Box::pin(put(ports, &known, project, spec, &assets, begin, trace)).await?
        else {
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
    let assets = known::declared(ports, project, spec, None).await?;
    Ok(spec.resolve(project, 1, &assets)?)
}

/// Takes in the tables that a target's prefixes match and that were registered since. Their first
/// commit counts. `None` where the target is not declared.
pub async fn take_in(ports: &Ports, id: &TargetId, trace: &TraceId) -> Result<Option<Evaluated>, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = load(ports, id).await?;
        let (Some(live), Some(definition)) = (known.live(), &known.definition) else { return Ok(None) };
        let assets = known::standing(ports, id.project, live).await?;
        let is_put = match Box::pin(put(ports, &known, id.project, &live.spec, &assets, Begin::AtZero, trace)).await {
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

/// Has targets take in a table that is registered, or granted, now. One that cannot, whatever is wrong with it,
/// holds up neither the others nor whoever registers: the next pass tries again and tells.
///
/// Errors: those that a later try may mend.
pub(crate) async fn all_take_in(ports: &Ports, targets: &[TargetId], trace: &TraceId) -> Result<(), EngineError> {
    let mut failure = None;
    for target in targets {
        if let Err(error) = take_in(ports, target, trace).await {
            tracing::error!(%error, %target, "a target could not take in a table by its prefixes");
            failure = failure.or(Some(error).filter(EngineError::retryable));
        }
    }
    failure.map_or(Ok(()), Err)
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
        let begin = Begin::Declared(&anew.spec.start_from);
        let cursors = |past: &Past| {
            let mut cursors = TargetCursor {
                definition_rev: definition.rev + 1,
                paused: cursor.value.paused.clone(),
                since: Some(ports.clock.now()),
                ..TargetCursor::default()
            };
            start::begin(&mut cursors, &anew.target, past, begin, |_, _| false);
            start::begin_partitions(&mut cursors, &anew.target, past, begin, |_| false);
            cursors
        };
        let (has, is_kept) = (|_: &GroupName, _| false, |_: &GroupName, _| false);
        let ask = Ask { target: &anew.target, start: Some(&anew.spec.start_from), has: &has, is_kept: &is_kept };
        let past = ask.read(ports, trace, cursors).await?;
        past.keep(ports, trace).await?;
        let cursors = cursors(&past);
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
    let definition = Definition { spec: spec.clone(), target, declared_at: ports.clock.now(), undeclared_at: None };
    let has = |group: &GroupName, asset| known.has(group, asset);
    let is_kept = |group: &GroupName, asset| known.keeps_history_of(group, asset);
    let start = if let Begin::Declared(start) = begin { Some(start) } else { None };
    let ask = Ask { target: &definition.target, start, has: &has, is_kept: &is_kept };
    // What is refused is refused before anything is written.
    let past = ask.read(ports, trace, |past| known.cursor_of(&definition, definition_rev, past, begin)).await?;
    pointers::put(ports, spec, &definition.target, definition_rev).await?;
    past.keep(ports, trace).await?;
    let cursor = known.cursor_of(&definition, definition_rev, &past, begin);
    if !write_target(ports, known, &definition, &cursor).await? {
        return Ok(None);
    }
    pointers::drop_gone(ports, before.map(|known| &known.value.target), &definition.target).await?;
    Ok(Some((definition, true)))
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
