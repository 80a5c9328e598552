//! Read everything that a verdict depends on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{self, AssetView, ClaimPlan, Evaluation, Inputs, PastCommit, SwitchedOff};
use lakebell_domain::ids::{AssetId, TargetId, TriggerKey};
use lakebell_domain::lineage::Writes;
use lakebell_domain::target::Target;
use lakebell_domain::trigger::Trigger;

use super::{Subject, pasts};
use crate::EngineError;
use crate::advice::Advice;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Item, Key};
use crate::records::{AssetHead, Definition, Switch};
use crate::store::{self, Stored};

/// A target with everything that its verdict depends on, as it was read.
pub(crate) struct Loaded {
    pub(crate) definition: Stored<Definition>,
    pub(crate) cursor: Stored<TargetCursor>,
    pub(super) heads: BTreeMap<AssetId, Stored<AssetHead>>,
    histories: BTreeMap<AssetId, Vec<PastCommit>>,
    /// The cursors say how far commits were looked through, and are not written yet.
    pub(super) has_looked: bool,
    triggers: Vec<Stored<Trigger>>,
    switched_off: Option<SwitchedOff>,
    /// What the scheduler said, where it was read.
    pub(super) advice: Option<Advice>,
    /// What the workflow is known to write, where it was read.
    pub(super) writes: Option<Writes>,
    now: Timestamp,
}

impl Loaded {
    pub(super) fn trigger(&self, key: Option<&TriggerKey>) -> Option<&Stored<Trigger>> {
        self.triggers.iter().find(|trigger| Some(&trigger.value.key) == key)
    }

    pub(crate) fn open(&self) -> Option<&Stored<Trigger>> {
        self.trigger(self.cursor.value.open.as_ref())
    }

    pub(super) fn evaluate(&self) -> Evaluation {
        self.with_inputs(evaluation::evaluate)
    }

    /// The verdict, and the claim that would succeed now.
    pub(crate) fn evaluate_to_claim(&self) -> (Evaluation, Option<ClaimPlan>) {
        self.with_inputs(evaluation::evaluate_to_claim)
    }

    /// Asks the evaluator something about what was read.
    pub(crate) fn with_inputs<T>(&self, ask: impl FnOnce(&Inputs<'_>) -> T) -> T {
        let mut assets = BTreeMap::new();
        for (id, head) in &self.heads {
            let history = self.histories.get(id).map_or(&[][..], Vec::as_slice);
            // To a project without a grant an asset is as good as not registered.
            let may_see = head.value.is_visible_to(self.definition.value.target.id.project);
            let is_registered = head.value.deregistered_at.is_none() && may_see;
            let state = Some(&head.value.state);
            assets.insert(*id, AssetView { rev: head.rev, state, is_registered, history });
        }
        ask(&Inputs {
            target: &self.definition.value.target,
            cursor: &self.cursor.value,
            assets: &assets,
            open: self.open().map(|trigger| &trigger.value),
            failed: self.trigger(self.cursor.value.failed.as_ref()).map(|trigger| &trigger.value),
            switched_off: self.switched_off.as_ref(),
            now: self.now,
        })
    }
}

/// Reads one target afresh; `None` where it is not declared.
pub(crate) async fn one(ports: &Ports, target: &TargetId) -> Result<Option<Loaded>, EngineError> {
    let subject = Subject { target: target.clone(), members: None };
    Ok(all(ports, &[subject], &BTreeMap::new()).await?.pop())
}

/// Reads one target of which the members are known, and other items in the same batch.
pub(crate) async fn one_with(
    ports: &Ports,
    subject: Subject,
    others: &[Key],
) -> Result<(Option<Loaded>, Vec<Item>), EngineError> {
    let (mut loaded, items) = read(ports, &[subject], &BTreeMap::new(), Also::Items(others)).await?;
    Ok((loaded.pop(), items))
}

/// Reads definitions, cursors, switches and heads in one batch, and open or failed triggers in
/// another one where a cursor names any. Undeclared targets are left out.
pub(super) async fn all(
    ports: &Ports,
    subjects: &[Subject],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
) -> Result<Vec<Loaded>, EngineError> {
    Ok(read(ports, subjects, known, Also::Nothing).await?.0)
}

/// The same for people: with what the scheduler said about each workflow, in the same batch.
pub(super) async fn with_advice(ports: &Ports, subjects: &[Subject]) -> Result<Vec<Loaded>, EngineError> {
    Ok(read(ports, subjects, &BTreeMap::new(), Also::WhatPeopleSee).await?.0)
}

/// What is read beside what a verdict depends on.
#[derive(Clone, Copy)]
enum Also<'a> {
    Nothing,
    /// What the scheduler said about the workflows, and what they are known to write.
    WhatPeopleSee,
    /// These, in the first batch.
    Items(&'a [Key]),
}

async fn read(
    ports: &Ports,
    subjects: &[Subject],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
    also: Also<'_>,
) -> Result<(Vec<Loaded>, Vec<Item>), EngineError> {
    if subjects.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut keys: BTreeSet<Key> = match also {
        Also::Nothing => BTreeSet::new(),
        Also::WhatPeopleSee => subjects.iter().map(|subject| layout::advice(&subject.target)).collect(),
        Also::Items(others) => others.iter().cloned().collect(),
    };
    keys.insert(layout::switch(None));
    for subject in subjects {
        let project = subject.target.project;
        keys.extend([
            layout::definition(&subject.target),
            layout::cursor(&subject.target),
            layout::switch(Some(project)),
        ]);
        let members = subject.members.iter().flatten().filter(|asset| !known.contains_key(asset));
        keys.extend(members.map(|asset| layout::head(*asset)));
    }
    let mut items = ports.items.get(&keys.into_iter().collect::<Vec<_>>()).await?;
    let mut targets = Vec::with_capacity(subjects.len());
    for subject in subjects {
        let Some(definition) = store::pick(&items, &layout::definition(&subject.target)) else { continue };
        let Some(cursor) = store::pick(&items, &layout::cursor(&subject.target)) else { continue };
        let cursor: Stored<TargetCursor> = store::decode(cursor)?;
        let definition = as_new_as(ports, &cursor.value, store::decode(definition)?).await?;
        if definition.value.undeclared_at.is_none() {
            targets.push((definition, cursor));
        }
    }
    // An altered definition may have members that the pointer did not name.
    let mut missing: BTreeSet<Key> = BTreeSet::new();
    for (definition, cursor) in &targets {
        let members = definition.value.target.assets().into_keys().filter(|asset| !known.contains_key(asset));
        missing.extend(members.map(layout::head).filter(|key| store::pick(&items, key).is_none()));
        missing.extend([&cursor.value.open, &cursor.value.failed].into_iter().flatten().map(layout::trigger));
        if matches!(also, Also::WhatPeopleSee) {
            missing.extend(cursor.value.started.iter().map(layout::trigger));
            missing.insert(writes_of(&definition.value.target));
        }
    }
    if !missing.is_empty() {
        items.extend(ports.items.get(&missing.into_iter().collect::<Vec<_>>()).await?);
    }
    let mut loaded = Vec::with_capacity(targets.len());
    for (definition, cursor) in targets {
        let mut target = assemble(definition, cursor, &items, known, ports.clock.now())?;
        if target.definition.value.target.needs_history() {
            let pasts = pasts::read(ports, &target).await?;
            target.has_looked = pasts.cursor.is_some();
            target.cursor.value = pasts.cursor.unwrap_or(target.cursor.value);
            target.histories = pasts.histories;
        }
        loaded.push(target);
    }
    Ok((loaded, items))
}

/// A batch is no snapshot: the definition may have been read before somebody altered it, and the cursors
/// after. A claim would then go by what is no longer declared, and its condition on the cursors would
/// hold. Read once more, it is at least as new as they are; one that is newer loses the claim its write.
async fn as_new_as(
    ports: &Ports,
    cursor: &TargetCursor,
    definition: Stored<Definition>,
) -> Result<Stored<Definition>, EngineError> {
    if definition.rev >= cursor.definition_rev {
        return Ok(definition);
    }
    let key = layout::definition(&definition.value.target.id);
    let again = store::get::<Definition>(&*ports.items, key).await?;
    Ok(again.unwrap_or(definition))
}

fn assemble(
    definition: Stored<Definition>,
    cursor: Stored<TargetCursor>,
    items: &[Item],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
    now: Timestamp,
) -> Result<Loaded, EngineError> {
    let mut heads = BTreeMap::new();
    for asset in definition.value.target.assets().into_keys() {
        if let Some(head) = known.get(&asset) {
            heads.insert(asset, head.clone());
        } else if let Some(item) = store::pick(items, &layout::head(asset)) {
            heads.insert(asset, store::decode(item)?);
        }
    }
    let named = BTreeSet::from([&cursor.value.open, &cursor.value.failed, &cursor.value.started]);
    let triggers = named
        .into_iter()
        .flatten()
        .filter_map(|key| store::pick(items, &layout::trigger(key)))
        .map(store::decode)
        .collect::<Result<Vec<_>, _>>()?;
    let switches = [layout::switch(None), layout::switch(Some(definition.value.target.id.project))];
    let mut switched_off = None;
    for item in switches.iter().filter_map(|key| store::pick(items, key)) {
        switched_off = switched_off.or(store::decode::<Switch>(item)?.value.off);
    }
    let advice = store::pick(items, &layout::advice(&definition.value.target.id));
    let advice = advice.map(store::decode::<Advice>).transpose()?.map(|advice| advice.value);
    let writes = store::pick(items, &writes_of(&definition.value.target)).map(store::decode::<Writes>).transpose()?;
    let writes = writes.map(|writes| writes.value.at(now));
    let histories = BTreeMap::new();
    let has_looked = false;
    Ok(Loaded { definition, cursor, heads, histories, has_looked, triggers, switched_off, advice, writes, now })
}

fn writes_of(target: &Target) -> Key {
    layout::writes(target.id.project, &target.workflow)
}
