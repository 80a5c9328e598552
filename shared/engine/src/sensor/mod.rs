//! Answer a task that waits inside a running workflow (the RFC's `ASSET_SENSOR`).
//!
//! What is ready is claimed when the task asks and not before, so that it takes the newest; a claim
//! for it is the end of its trigger too, because what it would start is running. Cursors, trigger and
//! the answer are one transaction: whatever dies afterwards, the next poll of the same run finds the
//! answer and gets it again.

mod places;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{AssetId, TargetId, TaskCode, TraceId, TriggerKey};
use lakebell_domain::policy::Mode;
use lakebell_domain::reason::ReasonCode;
use lakebell_domain::sensor::{SensorRun, answer_key};
use lakebell_domain::trigger::{Arrow, Trigger};

use crate::evaluate::{self, Loaded, Subject, cursor_draft, defect, trigger_draft};
use crate::history;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Draft, Item, Key, Write, Written};
use crate::ports::time::Pause;
use crate::records::{Definition, SensorAnswer};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// How long an answer is kept at least: until then a run that is repeated gets the same.
pub const ANSWERS_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The longest that a poll may wait: a gateway gives up after 29 s.
pub const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(20);
/// How far apart the looks of a poll that waits are: each of them costs a read.
pub const BETWEEN_LOOKS: SignedDuration = SignedDuration::from_secs(5);
/// Most places for polls that wait.
pub const MOST_PLACES: u8 = 100;

/// What a task asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// For which target.
    pub target: TargetId,
    /// The task that asks; absent, the one that the target names.
    pub task: Option<TaskCode>,
    /// Its run.
    pub run: SensorRun,
}

/// How long a poll may wait for its answer.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// At most [`LONGEST_WAIT`]; zero does not wait.
    pub time: SignedDuration,
    /// How many polls of the deployment may wait at the same time; beyond it one is answered at once.
    pub places: u8,
    /// What waits.
    pub pause: &'a dyn Pause,
}

/// What a task is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// It goes on, with what the trigger took.
    Ready {
        /// The trigger.
        trigger: Box<Trigger>,
        /// An earlier poll of the run had taken it.
        is_recorded: bool,
    },
    /// It asks again later.
    NotYet {
        /// Why.
        evaluation: Box<Evaluation>,
        /// The target starts nothing: what is ready is recorded as skipped.
        is_shadow: bool,
    },
}

/// What is asked, with what was read of the target once.
struct Asked<'a> {
    ask: &'a Ask,
    task: TaskCode,
    members: Vec<AssetId>,
    answer: Key,
}

/// Answers a poll: with what an earlier poll of the same run took, with what is ready now, or with what
/// it waits for.
///
/// A claim of which the answer was lost is found by the next poll of the run. While a poll waits, a
/// look that fails for a while ends the wait with what was seen before.
///
/// Errors: `NotFound` for a target that is not declared; `Conflict` for one that no task waits for;
/// `Invalid` for a task that is not its own.
pub async fn ask(ports: &Ports, ask: &Ask, patience: Patience<'_>, trace: &TraceId) -> Result<Answer, EngineError> {
    let began = ports.clock.now();
    let asked = read_target(ports, ask).await?;
    let mut answer = look(ports, &asked, trace).await?;
    let until = began + patience.time.min(LONGEST_WAIT);
    if answer.is_ready() || until <= began {
        return Ok(answer);
    }
    let Some(place) = places::take(ports, patience.places, until).await else { return Ok(answer) };
    loop {
        let left = until.duration_since(ports.clock.now());
        if left <= SignedDuration::ZERO {
            return Ok(answer);
        }
        patience.pause.pause(left.min(BETWEEN_LOOKS)).await;
        match look(ports, &asked, trace).await {
            Ok(seen) => answer = seen,
            Err(error) if error.retryable() => {
                tracing::warn!(%error, target = %ask.target, "a look of a waiting poll failed");
                return Ok(answer);
            }
            Err(error) => return Err(error),
        }
        if answer.is_ready() {
            places::give_back(ports, &place).await;
            return Ok(answer);
        }
    }
}

impl Answer {
    /// Whether the task goes on.
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}

async fn read_target<'a>(ports: &Ports, ask: &'a Ask) -> Result<Asked<'a>, EngineError> {
    let definition: Option<Stored<Definition>> = store::get(&*ports.items, layout::definition(&ask.target)).await?;
    let target = definition.ok_or_else(|| not_declared(&ask.target))?.value.target;
    let task = ask.task.or(target.sensor()).ok_or_else(|| no_sensor(&ask.target))?;
    let members: BTreeSet<AssetId> = target.assets().into_keys().collect();
    let answer = layout::sensor_answer(&answer_key(&target.connection, &target.id, task, &ask.run));
    Ok(Asked { ask, task, members: members.into_iter().collect(), answer })
}

/// One look: the recorded answer first, whatever has become of the target meanwhile.
async fn look(ports: &Ports, asked: &Asked<'_>, trace: &TraceId) -> Result<Answer, EngineError> {
    let target = &asked.ask.target;
    for _ in 0..MAX_LOST_RACES {
        let subject = Subject { target: target.clone(), members: Some(asked.members.clone()) };
        let others = std::slice::from_ref(&asked.answer);
        let (loaded, items) = evaluate::load_one_with(ports, subject, others).await?;
        if let Some(item) = store::pick(&items, &asked.answer) {
            return recorded(ports, item).await;
        }
        let loaded = loaded.ok_or_else(|| not_declared(target))?;
        let sensor = loaded.definition.value.target.sensor();
        let open = loaded.open().filter(|open| open.value.waits_for_sensor());
        check_task(asked, sensor, open)?;
        // The cursor was read between a claim's parts as this reader saw them: read again.
        if loaded.cursor.value.open.is_some() && loaded.open().is_none() {
            continue;
        }
        let (evaluation, plan) = loaded.evaluate_to_claim();
        let is_free = evaluation.reason.as_ref().is_some_and(|reason| reason.code == ReasonCode::TriggerInFlight);
        let taken = match (plan, open.filter(|_| is_free)) {
            (_, Some(open)) => take_open(ports, asked, &loaded, open).await?,
            (Some(plan), None) if loaded.definition.value.target.waits_for_sensor() => {
                let arrow = arrow(asked);
                let record = Write::Create(record(asked, &plan.claim.key, ports.clock.now())?);
                evaluate::claim_and(ports, &loaded, plan, trace, Some(&arrow), Some(record)).await?.done()
            }
            (Some(plan), None) if sensor.is_some() => {
                // Shadow: recorded as skipped, and looked at again for what it waits for now.
                evaluate::claim(ports, &loaded, plan, trace).await?;
                None
            }
            _ => {
                let is_shadow = loaded.definition.value.target.policies.mode == Mode::Shadow;
                return Ok(Answer::NotYet { evaluation: Box::new(evaluation), is_shadow });
            }
        };
        if let Some(trigger) = taken {
            return Ok(Answer::Ready { trigger: Box::new(trigger), is_recorded: false });
        }
    }
    Err(store::lost_too_often("sensor").with("target", target))
}

/// What a person fired waits for the task.
async fn take_open(
    ports: &Ports,
    asked: &Asked<'_>,
    loaded: &Loaded,
    open: &Stored<Trigger>,
) -> Result<Option<Trigger>, EngineError> {
    let now = ports.clock.now();
    let taken = open.value.apply(&arrow(asked), now).map_err(defect)?;
    let closed = TargetCursor { open: None, ..loaded.cursor.value.clone() };
    let actions = [
        Write::Replace(trigger_draft(&taken)?, open.rev),
        Write::Replace(cursor_draft(&asked.ask.target, &closed)?, loaded.cursor.rev),
        Write::Create(record(asked, &taken.key, now)?),
    ];
    let written = store::write(&*ports.items, &*ports.random, &actions).await?;
    Ok((written == Written::Done).then_some(taken))
}

fn arrow(asked: &Asked<'_>) -> Arrow {
    Arrow::Answer { task: asked.task, run: asked.ask.run.clone() }
}

/// The answer as it is kept: created with the claim, so that no run is answered twice.
fn record(asked: &Asked<'_>, trigger: &TriggerKey, at: Timestamp) -> Result<Draft, EngineError> {
    let answer = SensorAnswer {
        target: asked.ask.target.clone(),
        task: asked.task,
        run: asked.ask.run.clone(),
        trigger: trigger.clone(),
        at,
    };
    Ok(Draft { expires_at: Some(at + ANSWERS_KEPT), ..store::draft(asked.answer.clone(), &answer)? })
}

async fn recorded(ports: &Ports, item: &Item) -> Result<Answer, EngineError> {
    let answer: SensorAnswer = store::decode(item)?.value;
    let trigger = history::trigger(ports, &answer.trigger).await?.value;
    Ok(Answer::Ready { trigger: Box::new(trigger), is_recorded: true })
}

/// The task is the target's, or the one that its open trigger was claimed for before it was altered.
fn check_task(asked: &Asked<'_>, sensor: Option<TaskCode>, open: Option<&Stored<Trigger>>) -> Result<(), EngineError> {
    let of_open = open.and_then(|open| open.value.sensor.as_ref()).map(|sensor| sensor.task);
    match sensor {
        _ if sensor == Some(asked.task) || of_open == Some(asked.task) => Ok(()),
        None => Err(no_sensor(&asked.ask.target)),
        Some(sensor) => Err(lakebell_domain::Invalid::new(
            "taskDefinitionCode",
            format!("target {} waits for task {sensor}, and task {} asks", asked.ask.target, asked.task),
            format!("give {sensor}, or leave it out"),
        )
        .into()),
    }
}

fn not_declared(target: &TargetId) -> EngineError {
    EngineError::new(ErrorKind::NotFound, format!("target {target} is not declared")).with("field", "target")
}

fn no_sensor(target: &TargetId) -> EngineError {
    let message = format!(
        "no task waits for target {target}: Lakebell starts its workflow; declare it with a `taskDefinitionCode` and \
         without `startAs`"
    );
    EngineError::new(ErrorKind::Conflict, message).with("field", "target")
}
