//! Claim what is ready, and keep what a look without a claim leaves behind.

use jiff::Timestamp;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::ClaimPlan;
use lakebell_domain::ids::{TargetId, TraceId};
use lakebell_domain::policy::Mode;
use lakebell_domain::trigger::{Arrow, Status, Trigger};

use super::RESEND_AFTER;
use super::load::Loaded;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Draft, Write, Written};
use crate::ports::queue::Message;
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind};

/// What came of a claim.
#[derive(Debug)]
pub(crate) enum Claimed<T> {
    /// The trigger exists.
    Done(T),
    /// The combination was triggered before, and the cursors moved past it: read again.
    PassedBy,
    /// Somebody else wrote first: read again.
    Lost,
}

impl<T> Claimed<T> {
    /// What was claimed, if anything was.
    pub(crate) fn done(self) -> Option<T> {
        match self {
            Self::Done(done) => Some(done),
            Self::PassedBy | Self::Lost => None,
        }
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

/// One transaction: the cursors, the trigger, and the trigger whose data it takes over.
///
/// What a waiting task takes stays queued until it asks, and is sent to nobody; in shadow mode it ends
/// at once.
pub(crate) async fn claim(
    ports: &Ports,
    loaded: &Loaded,
    plan: ClaimPlan,
    trace: &TraceId,
) -> Result<Claimed<()>, EngineError> {
    let target = &loaded.definition.value.target;
    let is_shadow = target.sensor().is_some() && target.policies.mode == Mode::Shadow;
    let at_once = is_shadow.then(|| Arrow::Skip { why: "shadow".to_owned() });
    Ok(match claim_and(ports, loaded, plan, trace, at_once.as_ref(), None).await? {
        Claimed::Done(_) => Claimed::Done(()),
        Claimed::PassedBy => Claimed::PassedBy,
        Claimed::Lost => Claimed::Lost,
    })
}

/// The same, and the trigger's end at once, with what else belongs to it.
pub(crate) async fn claim_and(
    ports: &Ports,
    loaded: &Loaded,
    mut plan: ClaimPlan,
    trace: &TraceId,
    at_once: Option<&Arrow>,
    with_it: Option<Write>,
) -> Result<Claimed<Trigger>, EngineError> {
    let now = ports.clock.now();
    let definition = &loaded.definition;
    let replaced = plan.claim.inherits.as_ref().map(|inherits| inherits.from.clone());
    let mut trigger =
        Trigger::claimed(&definition.value.target, definition.rev, plan.claim, trace.clone(), now, now + RESEND_AFTER);
    if let Some(arrow) = at_once {
        trigger = trigger.apply(arrow, now).map_err(defect)?;
        plan.cursor.open = None;
    }
    let mut actions = vec![
        Write::Replace(cursor_draft(&trigger.target, &plan.cursor)?, loaded.cursor.rev),
        Write::Create(trigger_draft(&trigger)?),
    ];
    if let Some(replaced) = replaced.as_ref().and_then(|key| loaded.trigger(Some(key))) {
        if replaced.value.key == trigger.key {
            // A group came back under its name: what it would take failed, and the next claim takes it over.
            return pass_by(ports, loaded, plan.cursor, &replaced.value, trace).await;
        }
        let ended = replaced.value.apply(&Arrow::Supersede { by: trigger.key.clone() }, now).map_err(defect)?;
        actions.push(Write::Replace(trigger_draft(&ended)?, replaced.rev));
    }
    actions.extend(with_it);
    match store::write(&*ports.items, &*ports.random, &actions).await? {
        Written::Done => {
            if *trigger.status() == Status::Queued && !trigger.waits_for_sensor() {
                send(ports, &trigger, trace).await?;
            }
            Ok(Claimed::Done(trigger))
        }
        Written::Lost(lost) => {
            let exists = lost.iter().find(|lost| lost.action == 1).and_then(|lost| lost.existing.as_ref());
            let only_exists = lost.iter().all(|lost| lost.action == 1);
            let Some(existing) = exists.filter(|_| only_exists) else { return Ok(Claimed::Lost) };
            let existing: Stored<Trigger> = store::decode(existing)?;
            pass_by(ports, loaded, plan.cursor, &existing.value, trace).await
        }
    }
}

/// The combination was triggered before: the cursors move past it, and nothing is started.
async fn pass_by<T>(
    ports: &Ports,
    loaded: &Loaded,
    mut cursor: TargetCursor,
    existing: &Trigger,
    trace: &TraceId,
) -> Result<Claimed<T>, EngineError> {
    tracing::info!(triggerKey = %existing.key, traceId = %trace, "already triggered");
    cursor.open = (!existing.has_ended()).then(|| existing.key.clone());
    // Nothing took over what had failed.
    let has_failed = |open: &&Stored<Trigger>| matches!(open.value.status(), Status::Failed { .. });
    let open = loaded.open().filter(has_failed).map(|open| open.value.key.clone());
    cursor.failed = open.or_else(|| loaded.cursor.value.failed.clone());
    let action = Write::Replace(cursor_draft(&existing.target, &cursor)?, loaded.cursor.rev);
    Ok(match store::write(&*ports.items, &*ports.random, &[action]).await? {
        Written::Done => Claimed::PassedBy,
        Written::Lost(_) => Claimed::Lost,
    })
}

/// Keeps what a look without a claim leaves behind: timers, and what was told. `false` where
/// somebody else wrote the cursor first.
pub(super) async fn keep_note(ports: &Ports, loaded: &Loaded, noted: &TargetCursor) -> Result<bool, EngineError> {
    let draft = cursor_draft(&loaded.definition.value.target.id, noted)?;
    let action = Write::Replace(draft, loaded.cursor.rev);
    Ok(store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done)
}

/// A target's cursors: with a timer where time alone can change its verdict.
pub(crate) fn cursor_draft(target: &TargetId, cursor: &TargetCursor) -> Result<Draft, EngineError> {
    let timer = |due_at: Timestamp| layout::target_timer(target, due_at);
    Ok(Draft { sweep: cursor.due_at.map(timer), ..store::draft(layout::cursor(target), cursor)? })
}

/// A trigger's item: its timer as long as it has one, and its place in the history.
pub(crate) fn trigger_draft(trigger: &Trigger) -> Result<Draft, EngineError> {
    let history = layout::trigger_history(trigger.target.project, trigger.claimed_at, &trigger.key);
    Ok(Draft {
        key: layout::trigger(&trigger.key),
        doc: store::encode(trigger)?,
        sweep: trigger.timer().map(|due_at| layout::trigger_timer(&trigger.key, due_at)),
        history: Some(history),
        expires_at: None,
    })
}

pub(crate) fn defect(error: lakebell_domain::trigger::IllegalArrow) -> EngineError {
    EngineError::new(ErrorKind::Defect, error.to_string()).caused_by(error)
}
