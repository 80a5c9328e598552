//! Functions at work at the same time, of which the seed says who goes on.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use jiff::{SignedDuration, Timestamp};
use lakebell_engine::EngineError;

use super::job::{self, FUNCTION, Job, Meaning, Request};
use super::menu;
use super::ports::Port;
use super::shared::{Outside, State};
use crate::SeededRandom;

/// Set when a worker can go on.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One invocation of a function.
struct Worker {
    id: u64,
    job: Job,
    deadline: Timestamp,
    flag: Arc<Flag>,
    future: Pin<Box<dyn Future<Output = Result<(), EngineError>>>>,
}

/// All that are at work.
pub(super) struct Workers {
    outside: Outside,
    random: SeededRandom,
    at_work: Vec<Worker>,
    next: u64,
}

impl Workers {
    pub(super) fn new(outside: Outside, seed: u64) -> Self {
        Self { outside, random: SeededRandom::new(seed ^ 0x5eed), at_work: Vec::new(), next: 1 }
    }

    pub(super) fn count(&self) -> usize {
        self.at_work.len()
    }

    /// The ports of a worker that is not at work here: for what the arrangement of a run needs.
    pub(super) fn port(&mut self) -> Port {
        let worker = self.next;
        self.next += 1;
        Port { outside: self.outside.clone(), worker, skew: SignedDuration::ZERO, random: self.random.clone() }
    }

    /// A function begins with a job.
    pub(super) fn begin(&mut self, job: Job) {
        let mut port = self.port();
        let (now, skew) = {
            let mut state = self.outside.state();
            let skew = i64::try_from(state.dice.below(4)).unwrap_or(0) - 2;
            let line = format!("worker {} begins {job:?}", port.worker);
            state.tell(line);
            if job == Job::Sweep {
                state.sweepers.insert(port.worker);
            }
            (self.outside.now(), skew)
        };
        port.skew = SignedDuration::from_secs(skew);
        let id = port.worker;
        // What the function is told of its end is by its own clock.
        let future = job::run(port, job.clone(), now + FUNCTION + SignedDuration::from_secs(skew));
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.at_work.push(Worker { id, job, deadline: now + FUNCTION, flag, future: Box::pin(future) });
    }

    /// One of those that can go on does, up to its next call. Says whether any could.
    pub(super) fn go_on(&mut self) -> bool {
        let mut state = self.outside.state();
        let step = state.step;
        state.held_up.retain(|_, until| *until > step);
        let can_go_on =
            |worker: &Worker| worker.flag.0.load(Ordering::Relaxed) && !state.held_up.contains_key(&worker.id);
        let ready: Vec<usize> = (0..self.at_work.len()).filter(|at| can_go_on(&self.at_work[*at])).collect();
        let Some(at) = state.dice.pick(&ready) else { return false };
        drop(state);
        let worker = &mut self.at_work[at];
        worker.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&worker.flag));
        if let Poll::Ready(outcome) = worker.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            let worker = self.at_work.swap_remove(at);
            settle(&self.outside, worker.id, worker.job, &outcome);
        }
        true
    }

    /// A call of one of them takes long: a great deal happens before it goes on.
    pub(super) fn hold_one_up(&self) {
        let all: Vec<u64> = self.at_work.iter().map(|worker| worker.id).collect();
        let mut state = self.outside.state();
        if let Some(worker) = state.dice.pick(&all) {
            state.hold_up(worker);
        }
    }

    /// One of them dies where it is.
    pub(super) fn kill_one(&mut self) {
        let all: Vec<usize> = (0..self.at_work.len()).collect();
        let victim = self.outside.state().dice.pick(&all);
        if let Some(at) = victim {
            let worker = self.at_work.swap_remove(at);
            self.bury(worker);
        }
    }

    /// Functions whose time is over are ended.
    pub(super) fn end_overdue(&mut self) {
        let now = self.outside.now();
        while let Some(at) = self.at_work.iter().position(|worker| worker.deadline <= now) {
            let worker = self.at_work.swap_remove(at);
            self.bury(worker);
        }
    }

    /// All of them die.
    pub(super) fn kill_all(&mut self) {
        while let Some(worker) = self.at_work.pop() {
            self.bury(worker);
        }
    }

    fn bury(&self, worker: Worker) {
        let Worker { id, job, .. } = worker;
        let mut state = self.outside.state();
        state.counts.deaths += 1;
        state.died(id);
        state.tell(format!("worker {id} dies with {job:?}"));
        come_again(&mut state, job);
    }
}

/// Queues deliver again, writers and people ask again. A person may give up a declaration that did not
/// come about.
fn come_again(state: &mut State, job: Job) {
    let is_given_up = match &job {
        Job::Ask(Request::Declare { name, variant }) => {
            let known = state.records.definitions.get(&menu::target_id(name));
            let wanted = menu::variants(name).into_iter().nth(*variant);
            let is_there = known.is_some_and(|known| Some(&known.spec) == wanted.as_ref());
            known.is_some() && !is_there && !state.is_calm && state.dice.below(2) == 0
        }
        job => !job.comes_again(),
    };
    if !is_given_up {
        state.pending.push(job);
    }
}

/// What becomes of a job that has ended.
pub(super) fn settle(outside: &Outside, worker: u64, job: Job, outcome: &Result<(), EngineError>) {
    let mut state = outside.state();
    state.tell(format!("worker {worker} ends: {outcome:?}"));
    match outcome.as_ref().map_err(job::meaning) {
        Ok(()) => {
            state.ended_well(worker);
            // Some come twice.
            let is_repeated = matches!(
                job,
                Job::Message(_) | Job::Notify { .. } | Job::Check(_) | Job::Backfill { .. } | Job::Lag { .. }
            );
            if is_repeated && !state.is_calm && state.dice.chance(100) && state.may_happen() {
                state.pending.push(job);
            }
        }
        Err(Meaning::Again) => {
            state.died(worker);
            come_again(&mut state, job);
        }
        Err(Meaning::Answered(said)) => {
            state.died(worker);
            // People ask for what cannot be; what a machine brings is none of its making.
            if !matches!(job, Job::Ask(_)) {
                state.wrong.push(format!("rule 5: {job:?} was refused for good: {said}"));
            }
        }
        Err(Meaning::Defect(said)) => {
            state.died(worker);
            state.wrong.push(format!("rule 5: {job:?} ended with a defect: {said}"));
        }
    }
}
