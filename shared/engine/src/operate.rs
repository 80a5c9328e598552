//! What an operator does to a target or a trigger. Each verb is one conditional write that says by
//! whom, and is followed by an evaluation.

use lakebell_domain::cursor::{Paused, TargetCursor};
use lakebell_domain::evaluation::{SwitchedOff, consume, manual, manual_key, resumed};
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TraceId, TriggerKey};
use lakebell_domain::notice::Notice;
use lakebell_domain::policy::{OnFailed, OnResume};
use lakebell_domain::trigger::{Arrow, Decision, Status, StatusWord, Trigger};

use crate::evaluate::{self, Claimed, Evaluated, INLINE_TARGETS, Loaded, cursor_draft, trigger_draft};
use crate::history;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::ports::queue::Message;
use crate::records::{Definition, Switch};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::targets;
use crate::{EngineError, ErrorKind};

/// What came of a verb on a trigger.
#[derive(Debug, Clone)]
pub struct Operated {
    /// The trigger after it.
    pub trigger: Trigger,
    /// What evaluating its target afterwards led to.
    pub evaluated: Option<Evaluated>,
}

/// Pauses a target: its state and cursors go on, and nothing is claimed. Doing it twice changes
/// nothing.
///
/// Errors: `NotFound`.
pub async fn pause(ports: &Ports, target: &TargetId, by: &str) -> Result<(), EngineError> {
    let paused = Paused { since: ports.clock.now(), by: by.to_owned() };
    change_cursor(ports, target, |cursor| {
        cursor.paused.get_or_insert_with(|| paused.clone());
    })
    .await
}

/// Resumes a target: what has advanced meanwhile becomes one trigger, or counts as taken where the
/// target says `onResume: skip`. Doing it twice changes nothing.
///
/// Errors: `NotFound`.
pub async fn resume(ports: &Ports, target: &TargetId, trace: &TraceId) -> Result<Option<Evaluated>, EngineError> {
    go_on(ports, target, "resume", trace, |loaded| {
        if loaded.cursor.value.paused.is_none() {
            return Ok(Step::Stays);
        }
        let cursor = loaded.with_inputs(|inputs| match inputs.target.policies.on_resume {
            OnResume::Skip => TargetCursor { paused: None, ..consume(inputs, None) },
            OnResume::Latest => resumed(inputs),
        });
        Ok(Step::Moves(Box::new(cursor)))
    })
    .await
}

/// Counts what is there as taken without a trigger: of one asset, or of all of them.
///
/// Errors: `NotFound`, also for an asset that the target does not depend on.
pub async fn pass_over(
    ports: &Ports,
    target: &TargetId,
    asset: Option<AssetId>,
    trace: &TraceId,
) -> Result<Option<Evaluated>, EngineError> {
    go_on(ports, target, "pass over", trace, |loaded| {
        let names = |asset: AssetId| loaded.definition.value.target.depends_on(asset);
        if asset.is_some_and(|asset| !names(asset)) {
            let message = format!("target {target} does not depend on this asset");
            return Err(EngineError::new(ErrorKind::NotFound, message).with("field", "assetKey"));
        }
        Ok(Step::Moves(Box::new(loaded.with_inputs(|inputs| consume(inputs, asset)))))
    })
    .await
}

/// What a verb does to a target as it was read.
enum Step {
    /// Nothing: it is so already.
    Stays,
    /// Its cursors are written.
    Moves(Box<TargetCursor>),
}

/// Takes a step from the target as it is read, starting over after a lost race, and evaluates it.
async fn go_on(
    ports: &Ports,
    target: &TargetId,
    verb: &'static str,
    trace: &TraceId,
    step: impl Fn(&Loaded) -> Result<Step, EngineError>,
) -> Result<Option<Evaluated>, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let loaded = evaluate::load_one(ports, target).await?.ok_or_else(|| not_declared(target))?;
        let is_done = match step(&loaded)? {
            Step::Stays => true,
            Step::Moves(cursor) => {
                let action = Write::Replace(cursor_draft(target, &cursor)?, loaded.cursor.rev);
                store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done
            }
        };
        if is_done {
            return evaluate::evaluate_one(ports, target, trace).await;
        }
    }
    Err(store::lost_too_often(verb).with("target", target))
}

/// Starts a target now with what is there, whatever its conditions say. The same request twice is
/// one trigger.
///
/// Errors: `NotFound`; `Conflict` while the target is off, paused or switched off, or another
/// trigger of it is on its way, with the reason.
pub async fn fire(
    ports: &Ports,
    target: &TargetId,
    request: &str,
    trace: &TraceId,
) -> Result<Stored<Trigger>, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let loaded = evaluate::load_one(ports, target).await?.ok_or_else(|| not_declared(target))?;
        let (key, plan) = loaded.with_inputs(|inputs| (manual_key(inputs, request), manual(inputs, request)));
        if let Some(known) = store::get::<Trigger>(&*ports.items, layout::trigger(&key)).await? {
            return Ok(known);
        }
        let plan = plan.map_err(|reason| {
            EngineError::new(
                ErrorKind::Conflict,
                format!("target {target} cannot be fired: {}; {}", reason.actual, reason.unblock),
            )
            .with("reason", reason.code)
        })?;
        if matches!(evaluate::claim(ports, &loaded, plan, trace).await?, Claimed::Done(())) {
            return history::trigger(ports, &key).await;
        }
    }
    Err(store::lost_too_often("fire").with("target", target))
}

/// Begins a target anew: its cursors stand where its declaration says, and it is another generation,
/// so that what it consumed before can start it again.
///
/// Errors: `NotFound`; `Conflict` while a trigger of it has not ended.
pub async fn reset(ports: &Ports, target: &TargetId, trace: &TraceId) -> Result<Option<Evaluated>, EngineError> {
    targets::begin_anew(ports, target, trace).await?;
    evaluate::evaluate_one(ports, target, trace).await
}

/// Switches all starting off or on, of one project or altogether. What advances meanwhile is kept.
/// Doing it twice changes nothing. Switched on, every target that it concerns is evaluated.
pub async fn switch(
    ports: &Ports,
    project: Option<ProjectCode>,
    is_on: bool,
    by: &str,
    trace: &TraceId,
) -> Result<Switch, EngineError> {
    let key = layout::switch(project);
    let scope = project.map_or_else(|| "global".to_owned(), |project| project.to_string());
    for _ in 0..MAX_LOST_RACES {
        let known: Option<Stored<Switch>> = store::get(&*ports.items, key.clone()).await?;
        let off = known.as_ref().and_then(|known| known.value.off.clone());
        if off.is_none() == is_on {
            // The run that switched it on may have died before it sent the targets.
            if is_on {
                evaluate_all_of(ports, project, trace).await?;
            }
            return Ok(Switch { off });
        }
        let off = (!is_on).then(|| SwitchedOff { scope: scope.clone(), since: ports.clock.now(), by: by.to_owned() });
        let switch = Switch { off };
        let draft = store::draft(key.clone(), &switch)?;
        let action = Write::put(draft, known.map(|known| known.rev));
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            if is_on {
                evaluate_all_of(ports, project, trace).await?;
            }
            return Ok(switch);
        }
    }
    Err(store::lost_too_often("switch"))
}

/// Whether starting is switched off, of one project or altogether.
pub async fn switched(ports: &Ports, project: Option<ProjectCode>) -> Result<Switch, EngineError> {
    let known: Option<Stored<Switch>> = store::get(&*ports.items, layout::switch(project)).await?;
    Ok(known.map(|known| known.value).unwrap_or_default())
}

/// What became ready while nothing could start, and triggers that were on their way.
async fn evaluate_all_of(ports: &Ports, project: Option<ProjectCode>, trace: &TraceId) -> Result<(), EngineError> {
    let targets: Vec<TargetId> =
        targets::list(ports, project, None).await?.into_iter().map(|target| target.id).collect();
    for chunk in targets.chunks(INLINE_TARGETS) {
        ports.queue.send(&Message::Evaluate { targets: chunk.to_vec(), trace: trace.clone() }).await?;
    }
    Ok(())
}

fn not_declared(target: &TargetId) -> EngineError {
    EngineError::new(ErrorKind::NotFound, format!("target {target} is not declared")).with("field", "target")
}

async fn change_cursor(
    ports: &Ports,
    target: &TargetId,
    change: impl Fn(&mut TargetCursor),
) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let key = layout::cursor(target);
        let known: Stored<TargetCursor> =
            store::get(&*ports.items, key.clone()).await?.ok_or_else(|| not_declared(target))?;
        let mut changed = known.value.clone();
        change(&mut changed);
        if changed == known.value {
            return Ok(());
        }
        let action = Write::Replace(cursor_draft(target, &changed)?, known.rev);
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("change target").with("target", target))
}

/// Starts a FAILED trigger anew, with a fresh retry budget.
///
/// Errors: `Conflict` where it is not FAILED, another trigger of its target is open, or a later
/// one has taken over its data.
pub async fn redrive(ports: &Ports, key: &TriggerKey, by: &str, trace: &TraceId) -> Result<Operated, EngineError> {
    let arrow = Arrow::Redrive { by: by.to_owned() };
    // The evaluation that follows meets the queued trigger and sends it.
    follow(ports, key, &arrow, trace, |trigger, cursor| {
        let is_held = cursor.open.as_ref() == Some(&trigger.key);
        let is_last = is_held || (cursor.failed.as_ref() == Some(&trigger.key) && cursor.open.is_none());
        if trigger.status().word() == StatusWord::Failed && !is_last {
            return Err(conflict(trigger, "another trigger of its target is open or has taken over its data"));
        }
        cursor.failed = None;
        cursor.open = Some(trigger.key.clone());
        Ok(())
    })
    .await
}

/// Decides a held trigger: its workflow started, did not start, or is given up.
///
/// Errors: `Conflict` where it is not held.
pub async fn decide(
    ports: &Ports,
    key: &TriggerKey,
    decision: Decision,
    by: &str,
    trace: &TraceId,
) -> Result<Operated, EngineError> {
    follow(ports, key, &Arrow::Decide { decision, by: by.to_owned() }, trace, |_, _| Ok(())).await
}

/// Skips a queued or waiting trigger, or one that failed and holds its target: its range counts as
/// consumed.
///
/// Errors: `Conflict` where it is none of these.
pub async fn skip(ports: &Ports, key: &TriggerKey, by: &str, trace: &TraceId) -> Result<Operated, EngineError> {
    let trigger = history::trigger(ports, key).await?.value;
    if matches!(trigger.status(), Status::Failed { .. }) {
        let cursor: Option<Stored<TargetCursor>> = store::get(&*ports.items, layout::cursor(&trigger.target)).await?;
        if cursor.is_some_and(|cursor| cursor.value.open.as_ref() == Some(key)) {
            // There is no arrow from FAILED to SKIPPED but by a takeover: it is queued and taken back.
            requeue(ports, key, by).await?;
        }
    }
    follow(ports, key, &Arrow::Skip { why: format!("by {by}") }, trace, |_, _| Ok(())).await
}

/// A trigger that failed and holds its target, queued again and not sent.
async fn requeue(ports: &Ports, key: &TriggerKey, by: &str) -> Result<(), EngineError> {
    let trigger = history::trigger(ports, key).await?;
    let arrow = Arrow::Redrive { by: by.to_owned() };
    let queued = trigger.value.apply(&arrow, ports.clock.now());
    let queued = queued.map_err(|illegal| conflict(&trigger.value, &illegal.to_string()))?;
    let action = Write::Replace(trigger_draft(&queued)?, trigger.rev);
    store::write(&*ports.items, &*ports.random, &[action]).await.map(|_| ())
}

/// One arrow of a trigger and what it means for its target's slot, in one transaction.
async fn follow(
    ports: &Ports,
    key: &TriggerKey,
    arrow: &Arrow,
    trace: &TraceId,
    change: impl Fn(&Trigger, &mut TargetCursor) -> Result<(), EngineError>,
) -> Result<Operated, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        // The target's revision is read before the trigger: a redrive in between raises it.
        let target = history::trigger(ports, key).await?.value.target;
        let cursor_key = layout::cursor(&target);
        let cursor: Option<Stored<TargetCursor>> = store::get(&*ports.items, cursor_key.clone()).await?;
        let cursor =
            cursor.ok_or_else(|| EngineError::new(ErrorKind::NotFound, format!("target {target} is not declared")))?;
        let trigger = history::trigger(ports, key).await?;
        let mut changed = cursor.value.clone();
        change(&trigger.value, &mut changed)?;
        let next = match trigger.value.apply(arrow, ports.clock.now()) {
            Ok(next) => next,
            Err(illegal) => {
                // The run that carried it along the same arrow may have died before it evaluated.
                evaluate::evaluate_one(ports, &target, trace).await?;
                return Err(conflict(&trigger.value, &illegal.to_string()));
            }
        };
        let has_failed = matches!(next.status(), Status::Failed { .. });
        let stays = has_failed && holds_failed(ports, &target).await?;
        if next.has_ended() && changed.open.as_ref() == Some(&next.key) && !stays {
            changed.open = None;
            changed.failed = has_failed.then(|| next.key.clone());
        }
        if next.status().word() == StatusWord::Success {
            changed.started = Some(next.key.clone());
        }
        let actions = [
            Write::Replace(trigger_draft(&next)?, trigger.rev),
            Write::Replace(cursor_draft(&target, &changed)?, cursor.rev),
        ];
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            if let Some(notice) = Notice::of(&next) {
                ports.notices.tell(notice);
            }
            let evaluated = evaluate::evaluate_one(ports, &target, trace).await?;
            return Ok(Operated { trigger: next, evaluated });
        }
    }
    Err(store::lost_too_often("operate").with("trigger", key))
}

/// Whether a failed trigger keeps its target's slot.
async fn holds_failed(ports: &Ports, target: &TargetId) -> Result<bool, EngineError> {
    let definition: Option<Stored<Definition>> = store::get(&*ports.items, layout::definition(target)).await?;
    Ok(definition.is_some_and(|known| known.value.target.policies.on_failed == OnFailed::Hold))
}

fn conflict(trigger: &Trigger, why: &str) -> EngineError {
    EngineError::new(ErrorKind::Conflict, format!("trigger {} is {}: {why}", trigger.key, trigger.status().step()))
}
