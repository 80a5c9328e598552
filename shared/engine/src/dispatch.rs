//! Carry a trigger to its end: lease, look, start, and settle what came of it.
//!
//! The lease saves work and is not what makes the result right: every step is one conditional
//! write on the revision that was read, and a start whose outcome is unknown is looked for before
//! anything is tried again.

mod round;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::ids::{TargetId, TraceId, TriggerKey, WorkflowCode};
use lakebell_domain::notice::Notice;
use lakebell_domain::policy::{Mode, OnFailed, OnUndecided, Policies, StartAs};
use lakebell_domain::trigger::{Arrow, Decision, StartReason, Status, StatusWord, Trigger, WaitReason};

use crate::evaluate::{self, Evaluated, Subject, cursor_draft, defect, trigger_draft};
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::ports::scheduler::{
    Active, CheckOutcome, Latest, Preflight, Refusal, Scheduler, StartOutcome, StartRequest,
};
use crate::ports::time::doubled;
use crate::records::{Definition, Switch};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// Starts that may be refused before a trigger is FAILED.
pub const MAX_TRIES: u32 = 20;
/// How far the clocks of two machines may differ.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// The first pause after a refusal; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(5);
/// The longest pause between two tries, and between two looks at an offline workflow.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// How long after an unknown outcome the first round of the duplicate check may begin.
const CHECK_AFTER: SignedDuration = SignedDuration::from_secs(5);
/// How far apart two clean rounds must be.
const BETWEEN_ROUNDS: SignedDuration = SignedDuration::from_secs(5);
/// How long until a gate that the scheduler answers is asked again.
const BETWEEN_GATES: SignedDuration = SignedDuration::from_secs(60);
/// How long a check may stay undecided before a person is asked.
const UNDECIDED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// A message of the dispatch queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The target.
    pub target: TargetId,
    /// The trigger.
    pub trigger: TriggerKey,
    /// The attempt that the message names.
    pub attempt: u32,
    /// From the hint to the instance.
    pub trace: TraceId,
}

/// What the dispatcher works with.
#[derive(Clone)]
pub struct Dispatcher {
    /// Store, queue, time.
    pub ports: Ports,
    /// The scheduler.
    pub scheduler: Arc<dyn Scheduler>,
}

/// What came of a message.
#[derive(Debug)]
pub enum Dispatched {
    /// The trigger ended, or somebody else works on it: the message is done with.
    Done {
        /// The trigger as it stands.
        trigger: Box<Trigger>,
        /// What evaluating the target afterwards led to.
        evaluated: Option<Box<Evaluated>>,
    },
    /// Its time has not come: the message is to come again, not before `due_at`.
    Later {
        /// The trigger as it stands.
        trigger: Box<Trigger>,
        /// When its next step is due.
        due_at: Timestamp,
    },
    /// There is no such trigger, or its target is gone.
    Gone,
}

/// A trigger with its target's cursors.
struct Loaded {
    trigger: Stored<Trigger>,
    cursor: Stored<TargetCursor>,
    definition: Stored<Definition>,
    is_switched_off: bool,
}

impl Loaded {
    fn policies(&self) -> &Policies {
        &self.definition.value.target.policies
    }
}

impl Dispatcher {
    /// Carries a trigger as far as it goes now. `deadline` is when this invocation will be ended.
    ///
    /// Errors: `Unavailable` and `Contention`, after which the message must come again.
    pub async fn dispatch(&self, order: &Order, deadline: Timestamp) -> Result<Dispatched, EngineError> {
        for _ in 0..MAX_LOST_RACES {
            let Some(loaded) = self.load(order).await? else { return Ok(Dispatched::Gone) };
            if let Some(dispatched) = Box::pin(self.step(order, loaded, deadline)).await? {
                return Ok(dispatched);
            }
        }
        Err(store::lost_too_often("dispatch").with("trigger", &order.trigger))
    }

    async fn load(&self, order: &Order) -> Result<Option<Loaded>, EngineError> {
        let keys = [
            layout::trigger(&order.trigger),
            layout::cursor(&order.target),
            layout::definition(&order.target),
            layout::switch(None),
            layout::switch(Some(order.target.project)),
        ];
        let items = self.ports.items.get(&keys).await?;
        let [trigger, cursor, definition, everywhere, project] = keys.each_ref().map(|key| store::pick(&items, key));
        let mut is_switched_off = false;
        for switch in [everywhere, project].into_iter().flatten() {
            is_switched_off |= store::decode::<Switch>(switch)?.value.off.is_some();
        }
        match (trigger, cursor, definition) {
            (Some(trigger), Some(cursor), Some(definition)) => Ok(Some(Loaded {
                trigger: store::decode(trigger)?,
                cursor: store::decode(cursor)?,
                definition: store::decode(definition)?,
                is_switched_off,
            })),
            _ => Ok(None),
        }
    }

    /// One step from where the trigger stands; `None` where somebody else wrote first.
    async fn step(
        &self,
        order: &Order,
        loaded: Loaded,
        deadline: Timestamp,
    ) -> Result<Option<Dispatched>, EngineError> {
        let now = self.ports.clock.now();
        let trigger = &loaded.trigger.value;
        let due_at = trigger.due_at.unwrap_or(now);
        match trigger.status() {
            Status::Success { .. } | Status::Failed { .. } | Status::Skipped { .. } => {
                // A redelivered message for an ended trigger evaluates, too: the run that ended it
                // may have died before it did.
                self.done(&loaded.definition.value, loaded.trigger.value.clone(), &order.trace).await.map(Some)
            }
            Status::Queued if order.attempt < trigger.attempt => {
                self.done(&loaded.definition.value, loaded.trigger.value.clone(), &order.trace).await.map(Some)
            }
            // Its task takes it; nobody sends such a message.
            Status::Queued if trigger.waits_for_sensor() => {
                self.done(&loaded.definition.value, loaded.trigger.value.clone(), &order.trace).await.map(Some)
            }
            Status::Queued => Box::pin(self.lease_and_start(order, loaded, deadline)).await,
            Status::Waiting { .. } if due_at <= now => {
                let woken = self.pass(&loaded.trigger, &Arrow::Wake).await?;
                let Some(woken) = woken else { return Ok(None) };
                Box::pin(self.lease_and_start(order, Loaded { trigger: woken, ..loaded }, deadline)).await
            }
            Status::Leased { until } if *until <= now => {
                let arrow = Arrow::LoseSight {
                    code: "LEASE_RAN_OUT".to_owned(),
                    detail: "the run that held the lease never said what came of it".to_owned(),
                    check_at: now,
                };
                let Some(unknown) = self.pass(&loaded.trigger, &arrow).await? else { return Ok(None) };
                Box::pin(self.look_for(order, Loaded { trigger: unknown, ..loaded })).await
            }
            Status::Unknown { held: false, .. } if due_at <= now => Box::pin(self.look_for(order, loaded)).await,
            Status::Unknown { held: true, .. } => {
                Ok(Some(Dispatched::Done { trigger: Box::new(loaded.trigger.value), evaluated: None }))
            }
            Status::Waiting { .. } | Status::Leased { .. } | Status::Unknown { .. } => {
                Ok(Some(Dispatched::Later { trigger: Box::new(loaded.trigger.value), due_at }))
            }
        }
    }

    async fn lease_and_start(
        &self,
        order: &Order,
        loaded: Loaded,
        deadline: Timestamp,
    ) -> Result<Option<Dispatched>, EngineError> {
        if loaded.policies().mode == Mode::Shadow {
            return self.follow(order, loaded, &Arrow::Skip { why: "shadow".to_owned() }).await;
        }
        let now = self.ports.clock.now();
        let call = self.call_time();
        if loaded.cursor.value.paused.is_some() || loaded.is_switched_off {
            let due_at = now + LONGEST_PAUSE;
            return Ok(Some(Dispatched::Later { trigger: Box::new(loaded.trigger.value), due_at }));
        }
        if deadline.duration_since(now) <= call {
            return Err(EngineError::new(ErrorKind::Unavailable, "too little time is left for a start call"));
        }
        let until = deadline + call + CLOCK_SKEW;
        let leased = loaded.trigger.value.apply(&Arrow::Lease { until }, now).map_err(defect)?;
        let actions = [
            Write::Replace(trigger_draft(&leased)?, loaded.trigger.rev),
            // The target has not been paused since it was read.
            Write::Expect(layout::cursor(&order.target), loaded.cursor.rev),
        ];
        let written = store::write(&*self.ports.items, &*self.ports.random, &actions).await?;
        if written != Written::Done {
            return Ok(None);
        }
        let loaded = Loaded { trigger: Stored { rev: loaded.trigger.rev + 1, value: leased }, ..loaded };
        let arrow = self.start(&loaded.trigger.value, loaded.policies(), deadline).await;
        self.follow(order, loaded, &arrow).await
    }

    fn call_time(&self) -> SignedDuration {
        SignedDuration::try_from(self.scheduler.start_timeout()).unwrap_or(LONGEST_PAUSE)
    }

    /// Asks whether the workflow can be started, starts it, and says which arrow that means.
    async fn start(&self, trigger: &Trigger, policies: &Policies, deadline: Timestamp) -> Arrow {
        let now = self.ports.clock.now();
        let project = trigger.target.project;
        if let Some(opens_at) = closed_by_time(trigger, policies, now) {
            return wait("GATE", "it is outside the times of its target".to_owned(), opens_at, false);
        }
        let workflow = match self.scheduler.preflight(&trigger.connection, project, &trigger.workflow).await {
            Preflight::Startable { workflow, .. } => workflow,
            Preflight::Offline { detail } => return wait("OFFLINE", detail, now + LONGEST_PAUSE, false),
            Preflight::Missing { detail } => return Arrow::Fail { code: "WORKFLOW_MISSING".to_owned(), detail },
            Preflight::Unavailable(refusal) => {
                return wait("BACK_OFF", refusal.to_string(), now + self.pause(trigger), false);
            }
        };
        if let Some(arrow) = self.closed_gate(trigger, policies, workflow).await {
            return arrow;
        }
        // The preflight took time: no start begins that this invocation might not see the end of.
        let now = self.ports.clock.now();
        if deadline.duration_since(now) <= self.call_time() {
            return wait("BACK_OFF", "too little time was left for a start call".to_owned(), now, false);
        }
        let request = StartRequest {
            project,
            workflow,
            start_at: trigger.start_at,
            trigger: trigger.key.clone(),
            parameters: trigger.parameters.clone(),
            business_date: trigger
                .window
                .filter(|_| policies.start_as == StartAs::Complement)
                .map(|window| window.business_date),
        };
        let outcome = self.scheduler.start(&trigger.connection, &request).await;
        self.arrow_of(trigger, outcome)
    }

    /// Gates that only the scheduler can answer. An answer may be old by the time of the start: they
    /// keep the load down, and promise nothing.
    async fn closed_gate(&self, trigger: &Trigger, policies: &Policies, workflow: WorkflowCode) -> Option<Arrow> {
        let (connection, project) = (&trigger.connection, trigger.target.project);
        let closed = |detail: String| wait("GATE", detail, self.ports.clock.now() + BETWEEN_GATES, false);
        let unavailable = |refusal: &Refusal| {
            let due_at = refusal.open_until().unwrap_or_else(|| self.ports.clock.now() + self.pause(trigger));
            wait("BACK_OFF", refusal.to_string(), due_at, false)
        };
        if let Some(most) = policies.max_active {
            match self.scheduler.active(connection, project, workflow).await {
                Active::Unavailable(refusal) => return Some(unavailable(&refusal)),
                Active::Counted { pending: None, .. } => {
                    return Some(closed("the scheduler cannot tell how many starts are pending".to_owned()));
                }
                Active::Counted { instances, pending: Some(pending) } if instances + pending >= most => {
                    return Some(closed(format!(
                        "{instances} instances are active and {pending} pending, of at most {most}"
                    )));
                }
                Active::Counted { .. } => {}
            }
        }
        let other = policies.after_workflow.as_ref()?;
        match self.scheduler.latest(connection, project, other).await {
            Latest::Succeeded { .. } => None,
            Latest::Unavailable(refusal) => Some(unavailable(&refusal)),
            Latest::None => Some(closed(format!("workflow {other} has never run"))),
            Latest::Running { .. } => Some(closed(format!("workflow {other} has not ended"))),
            Latest::Failed { .. } => Some(closed(format!("the latest instance of workflow {other} did not succeed"))),
            Latest::Missing { detail } => Some(closed(format!("workflow {other} is missing: {detail}"))),
        }
    }

    fn arrow_of(&self, trigger: &Trigger, outcome: StartOutcome) -> Arrow {
        let now = self.ports.clock.now();
        match outcome {
            StartOutcome::Started { instance } => Arrow::Succeed { instance },
            StartOutcome::Ambiguous(Refusal { code, detail }) => {
                Arrow::LoseSight { code, detail, check_at: now + CHECK_AFTER }
            }
            StartOutcome::Permanent(Refusal { code, detail }) => Arrow::Fail { code, detail },
            StartOutcome::Offline(refusal) => wait("OFFLINE", refusal.to_string(), now + LONGEST_PAUSE, false),
            StartOutcome::ConnectionRefused(refusal) => {
                wait("CONNECTION_REFUSED", refusal.to_string(), now + LONGEST_PAUSE, false)
            }
            StartOutcome::Retryable(refusal) if trigger.tries + 1 >= MAX_TRIES && !is_outage(&refusal) => {
                Arrow::Fail { code: refusal.code, detail: format!("refused {MAX_TRIES} times: {}", refusal.detail) }
            }
            StartOutcome::Retryable(refusal) => {
                let refused = !is_outage(&refusal);
                let due_at = refusal.open_until().unwrap_or_else(|| now + self.pause(trigger));
                wait("BACK_OFF", refusal.to_string(), due_at, refused)
            }
        }
    }

    /// Doubling pauses with full jitter above half, so that an outage does not end in a stampede.
    fn pause(&self, trigger: &Trigger) -> SignedDuration {
        let longest = doubled(FIRST_PAUSE, trigger.attempt.saturating_sub(1), LONGEST_PAUSE);
        let half = longest / 2;
        let jitter = i64::try_from(self.ports.random.bits() % 1_000).unwrap_or(0);
        half + SignedDuration::from_millis(i64::try_from(half.as_millis()).unwrap_or(0) * jitter / 1_000)
    }

    /// One round of the duplicate check, and what follows from it.
    async fn look_for(&self, order: &Order, loaded: Loaded) -> Result<Option<Dispatched>, EngineError> {
        let trigger = &loaded.trigger.value;
        let round = self.round(trigger).await;
        let now = self.ports.clock.now();
        let Status::Unknown { since, clean_rounds, last_round, .. } = trigger.status() else { return Ok(None) };
        match round {
            CheckOutcome::Found { instances } => self.follow(order, loaded, &Arrow::Adopt { instances }).await,
            CheckOutcome::CleanRound => {
                let far_enough = last_round.is_none_or(|last| now.duration_since(last) >= BETWEEN_ROUNDS);
                let proven = *clean_rounds >= 1 && far_enough;
                let again = Arrow::CheckAgain { clean: far_enough, check_at: now + BETWEEN_ROUNDS, detail: None };
                if !proven {
                    return self.follow(order, loaded, &again).await;
                }
                let checked = trigger.apply(&again, now).map_err(defect)?;
                let arrow = Arrow::ProveAbsent { due_at: now + self.pause(trigger) };
                let waiting = checked.apply(&arrow, now).map_err(defect)?;
                if waiting.tries >= MAX_TRIES {
                    return self.hold(order, loaded, format!("{MAX_TRIES} starts vanished without a trace")).await;
                }
                self.replace(order, loaded, waiting).await
            }
            CheckOutcome::Undecided { detail } if now.duration_since(*since) >= UNDECIDED_FOR => {
                self.hold(order, loaded, detail).await
            }
            CheckOutcome::Undecided { detail } => {
                let check_at = now + self.pause(trigger);
                self.follow(order, loaded, &Arrow::CheckAgain { clean: false, check_at, detail: Some(detail) }).await
            }
            // An outage during the check does not count towards held.
            CheckOutcome::Unavailable(refusal) => {
                let check_at = now + self.pause(trigger);
                let detail = Some(refusal.to_string());
                self.follow(order, loaded, &Arrow::CheckAgain { clean: false, check_at, detail }).await
            }
        }
    }

    /// Nobody can tell whether it started: a person decides, or the target's policy does.
    async fn hold(&self, order: &Order, loaded: Loaded, detail: String) -> Result<Option<Dispatched>, EngineError> {
        let now = self.ports.clock.now();
        let held = loaded.trigger.value.apply(&Arrow::Hold { detail }, now).map_err(defect)?;
        let decision = match loaded.policies().on_undecided {
            OnUndecided::Hold => return self.replace(order, loaded, held).await,
            OnUndecided::AssumeStarted => Decision::Started(None),
            OnUndecided::AssumeAbsent => Decision::Absent,
        };
        let decided = held.apply(&Arrow::Decide { decision, by: "onUndecided".to_owned() }, now).map_err(defect)?;
        self.replace(order, loaded, decided).await
    }

    async fn follow(&self, order: &Order, loaded: Loaded, arrow: &Arrow) -> Result<Option<Dispatched>, EngineError> {
        let next = loaded.trigger.value.apply(arrow, self.ports.clock.now()).map_err(defect)?;
        self.replace(order, loaded, next).await
    }

    /// Writes the trigger's next state; one that ends it in one transaction with its target.
    async fn replace(&self, order: &Order, loaded: Loaded, next: Trigger) -> Result<Option<Dispatched>, EngineError> {
        if next.has_ended() {
            let definition = loaded.definition.value.clone();
            if !self.close(loaded, &next).await? {
                return Ok(None);
            }
            self.tell(&next);
            return self.done(&definition, next, &order.trace).await.map(Some);
        }
        let action = Write::Replace(trigger_draft(&next)?, loaded.trigger.rev);
        match store::write(&*self.ports.items, &*self.ports.random, &[action]).await? {
            Written::Done => {
                let due_at = next.due_at.unwrap_or_else(|| self.ports.clock.now());
                let held = matches!(next.status(), Status::Unknown { held: true, .. });
                self.tell(&next);
                let trigger = Box::new(next);
                Ok(Some(if held {
                    Dispatched::Done { trigger, evaluated: None }
                } else {
                    Dispatched::Later { trigger, due_at }
                }))
            }
            Written::Lost(_) => Ok(None),
        }
    }

    /// Tells whoever listens, once it is written.
    fn tell(&self, trigger: &Trigger) {
        if let Some(notice) = Notice::of(trigger) {
            self.ports.notices.tell(notice);
        }
        if !trigger.extra_instances.is_empty() {
            let extras = trigger.extra_instances.clone();
            self.ports.notices.tell(Notice::ExtraInstance { trigger: trigger.into(), extras });
        }
    }

    /// The trigger's end and its target's slot in one transaction. A cursor that somebody moved
    /// meanwhile (a pause, an alter) is read again.
    async fn close(&self, loaded: Loaded, next: &Trigger) -> Result<bool, EngineError> {
        let holds_failed = loaded.policies().on_failed == OnFailed::Hold;
        let mut cursor = loaded.cursor;
        for _ in 0..MAX_LOST_RACES {
            let mut closed = cursor.value.clone();
            let has_failed = next.status().word() == StatusWord::Failed;
            if closed.open.as_ref() == Some(&next.key) && !(has_failed && holds_failed) {
                closed.open = None;
                closed.failed = has_failed.then(|| next.key.clone());
            }
            if next.status().word() == StatusWord::Success {
                closed.started = Some(next.key.clone());
            }
            let actions = [
                Write::Replace(trigger_draft(next)?, loaded.trigger.rev),
                Write::Replace(cursor_draft(&next.target, &closed)?, cursor.rev),
            ];
            match store::write(&*self.ports.items, &*self.ports.random, &actions).await? {
                Written::Done => return Ok(true),
                Written::Lost(lost) if lost.iter().any(|lost| lost.action == 0) => return Ok(false),
                Written::Lost(_) => {}
            }
            cursor = store::get(&*self.ports.items, layout::cursor(&next.target))
                .await?
                .ok_or_else(|| EngineError::new(ErrorKind::Defect, "a target's cursors are gone"))?;
        }
        Err(store::lost_too_often("close").with("trigger", &next.key))
    }

    async fn pass(&self, trigger: &Stored<Trigger>, arrow: &Arrow) -> Result<Option<Stored<Trigger>>, EngineError> {
        let next = trigger.value.apply(arrow, self.ports.clock.now()).map_err(defect)?;
        let action = Write::Replace(trigger_draft(&next)?, trigger.rev);
        let written = store::write(&*self.ports.items, &*self.ports.random, &[action]).await?;
        Ok((written == Written::Done).then_some(Stored { rev: trigger.rev + 1, value: next }))
    }

    /// Whatever ended, the target is evaluated: what became ready meanwhile is the next trigger.
    async fn done(
        &self,
        definition: &Definition,
        trigger: Trigger,
        trace: &TraceId,
    ) -> Result<Dispatched, EngineError> {
        let members = definition.target.assets().into_keys().collect();
        let subject = Subject { target: trigger.target.clone(), members: Some(members) };
        let known = std::collections::BTreeMap::new();
        let evaluated = evaluate::evaluate_all(&self.ports, &[subject], &known, trace).await?.pop().map(Box::new);
        Ok(Dispatched::Done { trigger: Box::new(trigger), evaluated })
    }
}

/// When the target's times of day open again; `None` while they are open. A start that somebody or a
/// deadline asked for does not wait for them.
fn closed_by_time(trigger: &Trigger, policies: &Policies, now: Timestamp) -> Option<Timestamp> {
    if trigger.reason != StartReason::Ready {
        return None;
    }
    let not_before = policies.not_before.as_ref().and_then(|not_before| not_before.opens_at(now));
    not_before.max(policies.run_window.as_ref().and_then(|window| window.opens_at(now)))
}

fn wait(code: &str, detail: String, due_at: Timestamp, refused: bool) -> Arrow {
    Arrow::Wait { reason: WaitReason { code: code.to_owned(), detail }, due_at, refused }
}

/// Refusals that say something about the scheduler and nothing about this trigger: they use up no
/// try, so that an outage of hours fails nothing.
fn is_outage(refusal: &Refusal) -> bool {
    matches!(refusal.code.as_str(), "TRANSPORT_ERROR" | Refusal::CIRCUIT_OPEN | "HTTP_5xx" | "HTTP_429" | "10025")
        || refusal.detail.contains("no master server available")
}
