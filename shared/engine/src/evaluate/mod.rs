//! Evaluate targets, and claim what is ready.
//!
//! Write first, then read consistently: of two concurrent advances at least one sees both. Heads
//! are read one by one, so this is no snapshot; the trigger keeps each head's revision.

mod claim;
mod load;
mod pasts;

pub(crate) use claim::{Claimed, claim, claim_and, cursor_draft, defect, send, trigger_draft};
pub(crate) use load::{Loaded, one as load_one, one_with as load_one_with};

use std::collections::BTreeMap;

use jiff::SignedDuration;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{AssetId, TargetId, TraceId, TriggerKey};
use lakebell_domain::notice::Notice;
use lakebell_domain::trigger::{Status, Trigger};

use crate::EngineError;
use crate::advice::Advice;
use crate::observe::Observed;
use crate::ports::Ports;
use crate::ports::queue::Message;
use crate::records::{AssetHead, Definition};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::targets;

/// Most targets that are evaluated where the hint arrived; the rest goes to the evaluate queue in
/// chunks of this size, so that one busy asset does not hold up a batch.
pub const INLINE_TARGETS: usize = 20;
/// How long a queued trigger may go unleased before it is sent again.
pub const RESEND_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Most combinations that one evaluation passes by because they were triggered before; a group that comes back
/// under its name meets all that it ever took one by one. The message comes again for the rest.
const MAX_PASSED_BY: usize = 200;

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
    /// A deadline has passed, and this evaluation is the first to say so.
    pub is_late: bool,
}

/// A declared target, why it has or has not started, and what the scheduler said about its workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The target.
    pub definition: Definition,
    /// The verdict with its explanation.
    pub evaluation: Evaluation,
    /// What the scheduler said about the workflow that is declared now; absent until it was asked.
    pub advice: Option<Advice>,
    /// The last trigger whose workflow started; absent until one has.
    pub started: Option<Trigger>,
    /// What is known of loops through what the workflow writes, a sentence each.
    pub loops: Vec<String>,
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
    let loaded = load::all(ports, inline, &known).await?;
    let names = |target: &TargetId| {
        let mut targets = loaded.iter().map(|loaded| &loaded.definition.value.target);
        targets.any(|loaded| loaded.id == *target && loaded.depends_on(observed.asset))
    };
    let stale: Vec<&TargetId> = inline.iter().map(|subject| &subject.target).filter(|target| !names(target)).collect();
    for target in stale {
        targets::drop_stale(ports, observed.asset, target).await?;
    }
    settle_all(ports, loaded, trace, Again::WhenDue).await
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
    settle_all(ports, load::all(ports, subjects, known).await?, trace, again).await
}

async fn settle_all(
    ports: &Ports,
    all: Vec<Loaded>,
    trace: &TraceId,
    again: Again,
) -> Result<Vec<Evaluated>, EngineError> {
    let mut evaluated = Vec::with_capacity(all.len());
    let mut failure = None;
    for loaded in all {
        // On the heap: whoever evaluates would be as large as a claim otherwise.
        match Box::pin(settle(ports, loaded, trace, again)).await {
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
pub async fn explain(ports: &Ports, subjects: &[Subject]) -> Result<Vec<Explained>, EngineError> {
    let loaded = load::with_advice(ports, subjects).await?;
    let explained = loaded.into_iter().map(|loaded| {
        let (evaluation, _) = loaded.evaluate_to_claim();
        let started = loaded.trigger(loaded.cursor.value.started.as_ref()).map(|started| started.value.clone());
        let definition = loaded.definition.value;
        let advice = loaded.advice.filter(|advice| advice.is_about(&definition.target));
        let loops = loaded.writes.map(|writes| writes.warnings(&definition.target)).unwrap_or_default();
        Explained { definition, evaluation, advice, started, loops }
    });
    Ok(explained.collect())
}

/// Evaluates, and claims until it is claimed, not ready, or lost too often.
async fn settle(ports: &Ports, mut loaded: Loaded, trace: &TraceId, again: Again) -> Result<Evaluated, EngineError> {
    let (mut lost, mut passed) = (0, 0);
    while lost < MAX_LOST_RACES && passed < MAX_PASSED_BY {
        let target = loaded.definition.value.target.id.clone();
        // The cursor was read between a claim's parts as this reader saw them: read again.
        let is_torn = loaded.cursor.value.open.is_some() && loaded.open().is_none();
        if is_torn {
            lost += 1;
        } else {
            let (evaluation, plan) = loaded.evaluate_to_claim();
            // What a task waits for is claimed when it asks: so it takes the newest.
            let claims = !loaded.definition.value.target.waits_for_sensor();
            if let Some(plan) = plan.filter(|_| claims) {
                let key = plan.claim.key.clone();
                match claim::claim(ports, &loaded, plan, trace).await? {
                    Claimed::Done(()) => return Ok(Evaluated { evaluation, claimed: Some(key), is_late: false }),
                    Claimed::PassedBy => passed += 1,
                    Claimed::Lost => lost += 1,
                }
            } else {
                send_again(ports, &loaded, trace, again).await?;
                let looked = loaded.has_looked.then_some(&loaded.cursor.value);
                let Some(noted) = evaluation.noted.as_ref().or(looked) else {
                    return Ok(Evaluated { evaluation, claimed: None, is_late: false });
                };
                if claim::keep_note(ports, &loaded, noted).await? {
                    let is_late = noted.alarmed != loaded.cursor.value.alarmed;
                    if let Some(deadline) = evaluation.timed_out.filter(|_| is_late) {
                        let (verdict, reason) =
                            (evaluation.verdict, evaluation.reason.as_ref().map(|reason| reason.code));
                        ports.notices.tell(Notice::TargetLate { target, deadline, verdict, reason });
                    }
                    return Ok(Evaluated { evaluation, claimed: None, is_late });
                }
                lost += 1;
            }
        }
        match load::one(ports, &target).await? {
            Some(fresh) => loaded = fresh,
            None => return Ok(Evaluated { evaluation: loaded.evaluate(), claimed: None, is_late: false }),
        }
    }
    Err(store::lost_too_often("claim").with("target", &loaded.definition.value.target.id))
}

/// A lost answer to the claim must not leave a trigger unsent.
async fn send_again(ports: &Ports, loaded: &Loaded, trace: &TraceId, again: Again) -> Result<(), EngineError> {
    let now = ports.clock.now();
    let is_wanted = |open: &Trigger| again == Again::AtOnce || open.due_at.is_none_or(|due_at| due_at <= now);
    match loaded.open() {
        Some(open) if open.value.waits_for_sensor() => Ok(()),
        Some(open) if *open.value.status() == Status::Queued && is_wanted(&open.value) => {
            claim::send(ports, &open.value, trace).await
        }
        _ => Ok(()),
    }
}
