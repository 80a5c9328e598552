//! What an operator does to a target or a trigger. Each verb is one conditional write that says by
//! whom, and is followed by an evaluation.

use lakebell_domain::cursor::{Paused, TargetCursor};
use lakebell_domain::ids::{TargetId, TraceId, TriggerKey};
use lakebell_domain::trigger::{Arrow, Decision, Status, StatusWord, Trigger};

use crate::evaluate::{self, Evaluated, cursor_draft, trigger_draft};
use crate::history;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::store::{self, MAX_LOST_RACES, Stored};
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

/// Resumes a target: what has advanced meanwhile becomes one trigger. Doing it twice changes
/// nothing.
///
/// Errors: `NotFound`.
pub async fn resume(ports: &Ports, target: &TargetId, trace: &TraceId) -> Result<Option<Evaluated>, EngineError> {
    change_cursor(ports, target, |cursor| cursor.paused = None).await?;
    evaluate::evaluate_one(ports, target, trace).await
}

async fn change_cursor(
    ports: &Ports,
    target: &TargetId,
    change: impl Fn(&mut TargetCursor),
) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let key = layout::cursor(target);
        let known: Stored<TargetCursor> = store::get(&*ports.items, key.clone()).await?.ok_or_else(|| {
            EngineError::new(ErrorKind::NotFound, format!("target {target} is not declared")).with("field", "target")
        })?;
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
        let is_last = cursor.failed.as_ref() == Some(&trigger.key) && cursor.open.is_none();
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

/// Skips a queued or waiting trigger: its range counts as consumed.
///
/// Errors: `Conflict` where it is neither.
pub async fn skip(ports: &Ports, key: &TriggerKey, by: &str, trace: &TraceId) -> Result<Operated, EngineError> {
    follow(ports, key, &Arrow::Skip { why: format!("by {by}") }, trace, |_, _| Ok(())).await
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
        let next = trigger
            .value
            .apply(arrow, ports.clock.now())
            .map_err(|illegal| conflict(&trigger.value, &illegal.to_string()))?;
        if next.has_ended() && changed.open.as_ref() == Some(&next.key) {
            changed.open = None;
            changed.failed = matches!(next.status(), Status::Failed { .. }).then(|| next.key.clone());
        }
        let actions = [
            Write::Replace(trigger_draft(&next)?, trigger.rev),
            Write::Replace(cursor_draft(&target, &changed)?, cursor.rev),
        ];
        if store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
            let evaluated = evaluate::evaluate_one(ports, &target, trace).await?;
            return Ok(Operated { trigger: next, evaluated });
        }
    }
    Err(store::lost_too_often("operate").with("trigger", key))
}

fn conflict(trigger: &Trigger, why: &str) -> EngineError {
    EngineError::new(ErrorKind::Conflict, format!("trigger {} is {}: {why}", trigger.key, trigger.status().step()))
}
