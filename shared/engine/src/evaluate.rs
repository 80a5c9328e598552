//! Evaluate targets, and claim what is ready.
//!
//! Write first, then read consistently: of two concurrent advances at least one sees both. Heads
//! are read one by one, so this is no snapshot; the trigger keeps each head's revision.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{self, AssetView, ClaimPlan, Evaluation, Inputs};
use lakebell_domain::ids::{AssetId, TargetId, TraceId, TriggerKey};
use lakebell_domain::trigger::{Arrow, Status, Trigger};

use crate::layout;
use crate::observe::Observed;
use crate::ports::Ports;
use crate::ports::items::{Draft, Item, Key, Write, Written};
use crate::ports::queue::Message;
use crate::records::{AssetHead, Definition};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// Most targets that are evaluated where the hint arrived; the rest goes to the evaluate queue in
/// chunks of this size, so that one busy asset does not hold up a batch.
pub const INLINE_TARGETS: usize = 20;
/// How long a queued trigger may go unleased before it is sent again.
pub const RESEND_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// A target to evaluate, with its members where the caller knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The target.
    pub target: TargetId,
    /// Its assets; where they are not known, the definition is read first.
    pub members: Option<Vec<AssetId>>,
}

/// What came of evaluating one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The verdict with its explanation, as of before the claim.
    pub evaluation: Evaluation,
    /// The trigger that was claimed.
    pub claimed: Option<TriggerKey>,
}

/// When an evaluation that meets a queued trigger sends it once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// At once: somebody asked for it.
    AtOnce,
    /// Once nobody has leased it for [`RESEND_AFTER`], because a run died between its claim and the
    /// send. Not before: each message for the dispatcher leads to another evaluation, and those of a
    /// busy target would breed and keep everybody else's waiting.
    WhenDue,
}

/// A target with everything that its verdict depends on, as it was read.
pub struct Loaded {
    definition: Stored<Definition>,
    cursor: Stored<TargetCursor>,
    heads: BTreeMap<AssetId, Stored<AssetHead>>,
    triggers: Vec<Stored<Trigger>>,
}

/// Evaluates every target that depends on an asset that was just observed.
pub async fn evaluate_dependents(
    ports: &Ports,
    observed: &Observed,
    trace: &TraceId,
) -> Result<Vec<Evaluated>, EngineError> {
    let subjects: Vec<Subject> = observed
        .pointers
        .iter()
        .map(|pointer| Subject { target: pointer.target.clone(), members: Some(pointer.members.clone()) })
        .collect();
    let (inline, rest) = subjects.split_at(subjects.len().min(INLINE_TARGETS));
    for chunk in rest.chunks(INLINE_TARGETS) {
        let targets = chunk.iter().map(|subject| subject.target.clone()).collect();
        ports.queue.send(&Message::Evaluate { targets, trace: trace.clone() }).await?;
    }
    let known = BTreeMap::from([(observed.asset, observed.head.clone())]);
    evaluate_all(ports, inline, &known, trace).await
}

/// Evaluates targets and claims what is ready. `known` are heads that the caller has just written.
///
/// One target that fails does not stop the others; the first failure is returned at the end.
pub async fn evaluate_all(
    ports: &Ports,
    subjects: &[Subject],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
    trace: &TraceId,
) -> Result<Vec<Evaluated>, EngineError> {
    evaluate_and_send(ports, subjects, known, trace, Again::WhenDue).await
}

async fn evaluate_and_send(
    ports: &Ports,
    subjects: &[Subject],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
    trace: &TraceId,
    again: Again,
) -> Result<Vec<Evaluated>, EngineError> {
    let mut evaluated = Vec::with_capacity(subjects.len());
    let mut failure = None;
    for loaded in load(ports, subjects, known).await? {
        match settle(ports, loaded, trace, again).await {
            Ok(outcome) => evaluated.push(outcome),
            Err(error) => {
                tracing::error!(%error, "a target could not be evaluated");
                failure.get_or_insert(error);
            }
        }
    }
    failure.map_or(Ok(evaluated), Err)
}

/// Evaluates one target from a fresh read, because somebody changed it. A queued trigger is sent.
pub async fn evaluate_one(ports: &Ports, target: &TargetId, trace: &TraceId) -> Result<Option<Evaluated>, EngineError> {
    let subject = Subject { target: target.clone(), members: None };
    Ok(evaluate_and_send(ports, &[subject], &BTreeMap::new(), trace, Again::AtOnce).await?.pop())
}

/// The verdict on targets with its explanation; nothing is claimed.
pub async fn explain(ports: &Ports, subjects: &[Subject]) -> Result<Vec<(Definition, Evaluation)>, EngineError> {
    let loaded = load(ports, subjects, &BTreeMap::new()).await?;
    Ok(loaded.into_iter().map(|loaded| (loaded.definition.value.clone(), loaded.evaluate())).collect())
}

/// Reads definitions, cursors and heads in one batch, and open or failed triggers in another one
/// where a cursor names any. Undeclared targets are left out.
async fn load(
    ports: &Ports,
    subjects: &[Subject],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
) -> Result<Vec<Loaded>, EngineError> {
    if subjects.is_empty() {
        return Ok(Vec::new());
    }
    let mut keys: BTreeSet<Key> = BTreeSet::new();
    for subject in subjects {
        keys.extend([layout::definition(&subject.target), layout::cursor(&subject.target)]);
        let members = subject.members.iter().flatten().filter(|asset| !known.contains_key(asset));
        keys.extend(members.map(|asset| layout::head(*asset)));
    }
    let mut items = ports.items.get(&keys.into_iter().collect::<Vec<_>>()).await?;
    let mut targets = Vec::with_capacity(subjects.len());
    for subject in subjects {
        let Some(definition) = store::pick(&items, &layout::definition(&subject.target)) else { continue };
        let Some(cursor) = store::pick(&items, &layout::cursor(&subject.target)) else { continue };
        let definition: Stored<Definition> = store::decode(definition)?;
        if definition.value.undeclared_at.is_none() {
            targets.push((definition, store::decode::<TargetCursor>(cursor)?));
        }
    }
    // An altered definition may have members that the pointer did not name.
    let mut missing: BTreeSet<Key> = BTreeSet::new();
    for (definition, cursor) in &targets {
        let members = definition.value.target.assets().into_keys().filter(|asset| !known.contains_key(asset));
        missing.extend(members.map(layout::head).filter(|key| store::pick(&items, key).is_none()));
        missing.extend([&cursor.value.open, &cursor.value.failed].into_iter().flatten().map(layout::trigger));
    }
    if !missing.is_empty() {
        items.extend(ports.items.get(&missing.into_iter().collect::<Vec<_>>()).await?);
    }
    targets.into_iter().map(|(definition, cursor)| assemble(definition, cursor, &items, known)).collect()
}

fn assemble(
    definition: Stored<Definition>,
    cursor: Stored<TargetCursor>,
    items: &[Item],
    known: &BTreeMap<AssetId, Stored<AssetHead>>,
) -> Result<Loaded, EngineError> {
    let mut heads = BTreeMap::new();
    for asset in definition.value.target.assets().into_keys() {
        if let Some(head) = known.get(&asset) {
            heads.insert(asset, head.clone());
        } else if let Some(item) = store::pick(items, &layout::head(asset)) {
            heads.insert(asset, store::decode(item)?);
        }
    }
    let named = [&cursor.value.open, &cursor.value.failed];
    let triggers = named
        .into_iter()
        .flatten()
        .filter_map(|key| store::pick(items, &layout::trigger(key)))
        .map(store::decode)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Loaded { definition, cursor, heads, triggers })
}

impl Loaded {
    fn trigger(&self, key: Option<&TriggerKey>) -> Option<&Stored<Trigger>> {
        self.triggers.iter().find(|trigger| Some(&trigger.value.key) == key)
    }

    fn open(&self) -> Option<&Stored<Trigger>> {
        self.trigger(self.cursor.value.open.as_ref())
    }

    fn evaluate(&self) -> Evaluation {
        let assets: BTreeMap<AssetId, AssetView<'_>> = self
            .heads
            .iter()
            .map(|(id, head)| (*id, AssetView { rev: head.rev, state: head.value.live_state() }))
            .collect();
        evaluation::evaluate(&Inputs {
            target: &self.definition.value.target,
            cursor: &self.cursor.value,
            assets: &assets,
            open: self.open().map(|trigger| &trigger.value),
            failed: self.trigger(self.cursor.value.failed.as_ref()).map(|trigger| &trigger.value),
        })
    }
}

/// Evaluates, and claims until it is claimed, not ready, or lost too often.
async fn settle(ports: &Ports, mut loaded: Loaded, trace: &TraceId, again: Again) -> Result<Evaluated, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let target = loaded.definition.value.target.id.clone();
        if loaded.cursor.value.open.is_some() && loaded.open().is_none() {
            // The cursor was read between a claim's parts as this reader saw them: read again.
            match reload(ports, &target).await? {
                Some(fresh) => loaded = fresh,
                None => return Ok(Evaluated { evaluation: loaded.evaluate(), claimed: None }),
            }
            continue;
        }
        let evaluation = loaded.evaluate();
        let Some(plan) = evaluation.plan.clone() else {
            send_again(ports, &loaded, trace, again).await?;
            return Ok(Evaluated { evaluation, claimed: None });
        };
        let key = plan.claim.key.clone();
        if claim(ports, &loaded, plan, trace).await? {
            return Ok(Evaluated { evaluation, claimed: Some(key) });
        }
        match reload(ports, &target).await? {
            Some(fresh) => loaded = fresh,
            None => return Ok(Evaluated { evaluation, claimed: None }),
        }
    }
    Err(store::lost_too_often("claim").with("target", &loaded.definition.value.target.id))
}

async fn reload(ports: &Ports, target: &TargetId) -> Result<Option<Loaded>, EngineError> {
    let subject = Subject { target: target.clone(), members: None };
    Ok(load(ports, &[subject], &BTreeMap::new()).await?.pop())
}

/// A lost answer to the claim must not leave a trigger unsent.
async fn send_again(ports: &Ports, loaded: &Loaded, trace: &TraceId, again: Again) -> Result<(), EngineError> {
    let now = ports.clock.now();
    let is_wanted = |open: &Trigger| again == Again::AtOnce || open.due_at.is_none_or(|due_at| due_at <= now);
    match loaded.open() {
        Some(open) if *open.value.status() == Status::Queued && is_wanted(&open.value) => {
            send(ports, &open.value, trace).await
        }
        _ => Ok(()),
    }
}

/// Sends the dispatcher a trigger.
pub(crate) async fn send(ports: &Ports, trigger: &Trigger, trace: &TraceId) -> Result<(), EngineError> {
    let message = Message::Dispatch {
        target: trigger.target.clone(),
        trigger: trigger.key.clone(),
        attempt: trigger.attempt,
        trace: trace.clone(),
    };
    ports.queue.send(&message).await
}

/// One transaction: the cursors, the trigger, and the trigger whose data it takes over. `false`
/// where somebody else was first.
async fn claim(ports: &Ports, loaded: &Loaded, plan: ClaimPlan, trace: &TraceId) -> Result<bool, EngineError> {
    let now = ports.clock.now();
    let definition = &loaded.definition;
    let replaced = plan.claim.inherits.as_ref().map(|inherits| inherits.from.clone());
    let trigger =
        Trigger::claimed(&definition.value.target, definition.rev, plan.claim, trace.clone(), now, now + RESEND_AFTER);
    let cursor_key = layout::cursor(&trigger.target);
    let mut actions = vec![
        Write::Replace(store::draft(cursor_key.clone(), &plan.cursor)?, loaded.cursor.rev),
        Write::Create(trigger_draft(&trigger)?),
    ];
    if let Some(replaced) = replaced.as_ref().and_then(|key| loaded.trigger(Some(key))) {
        let ended = replaced.value.apply(&Arrow::Supersede { by: trigger.key.clone() }, now).map_err(defect)?;
        actions.push(Write::Replace(trigger_draft(&ended)?, replaced.rev));
    }
    match store::write(&*ports.items, &*ports.random, &actions).await? {
        Written::Done => {
            if *trigger.status() == Status::Queued {
                send(ports, &trigger, trace).await?;
            }
            Ok(true)
        }
        Written::Lost(lost) => {
            let exists = lost.iter().find(|lost| lost.action == 1).and_then(|lost| lost.existing.as_ref());
            let only_exists = lost.iter().all(|lost| lost.action == 1);
            if let (Some(existing), true) = (exists, only_exists) {
                pass_by(ports, loaded, plan.cursor, existing, trace).await?;
            }
            Ok(false)
        }
    }
}

/// The combination was triggered before: the cursors move past it, and nothing is started.
async fn pass_by(
    ports: &Ports,
    loaded: &Loaded,
    mut cursor: TargetCursor,
    existing: &Item,
    trace: &TraceId,
) -> Result<(), EngineError> {
    let existing: Stored<Trigger> = store::decode(existing)?;
    tracing::info!(triggerKey = %existing.value.key, traceId = %trace, "already triggered");
    cursor.open = (!existing.value.has_ended()).then(|| existing.value.key.clone());
    cursor.failed.clone_from(&loaded.cursor.value.failed);
    let key = layout::cursor(&existing.value.target);
    let action = Write::Replace(store::draft(key, &cursor)?, loaded.cursor.rev);
    store::write(&*ports.items, &*ports.random, &[action]).await.map(|_| ())
}

/// A trigger's item: its timer as long as it has one, and its place in the history.
pub(crate) fn trigger_draft(trigger: &Trigger) -> Result<Draft, EngineError> {
    let history = layout::trigger_history(trigger.target.project, trigger.claimed_at, &trigger.key);
    Ok(Draft {
        key: layout::trigger(&trigger.key),
        doc: store::encode(trigger)?,
        sweep: trigger.due_at.map(|due_at| layout::trigger_timer(&trigger.key, due_at)),
        history: Some(history),
        expires_at: None,
    })
}

pub(crate) fn defect(error: lakebell_domain::trigger::IllegalArrow) -> EngineError {
    EngineError::new(ErrorKind::Defect, error.to_string()).caused_by(error)
}
