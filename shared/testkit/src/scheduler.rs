//! A DolphinScheduler for simulations: the engine's port in memory, with the answers and the
//! faults that the real API has. A stand-in, named as one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TriggerKey, WorkflowCode};
use lakebell_engine::ports::scheduler::{
    CheckOutcome, InstanceState, Preflight, Refusal, Scheduler, StartOutcome, StartRequest, WorkflowRef,
};

use crate::lock;

/// How the next start goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFault {
    /// It takes effect, and the answer is lost.
    TakesEffectThenTimesOut,
    /// It has no effect, and the answer is lost.
    TimesOut,
    /// No master is alive: nothing started, try again.
    NoMaster,
    /// A refusal that only a person can lift.
    Permanent,
    /// The token is refused.
    Unauthorized,
    /// Two instances come of one call.
    StartsTwice,
}

/// One started instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// The trigger that its parameters name.
    pub trigger: TriggerKey,
    /// The workflow.
    pub workflow: WorkflowCode,
    /// What it received.
    pub parameters: BTreeMap<String, String>,
}

#[derive(Default)]
struct State {
    instances: Vec<Instance>,
    faults: VecDeque<StartFault>,
    checks: VecDeque<CheckOutcome>,
    preflight: Option<Preflight>,
    calls: usize,
}

/// The stand-in. Every workflow exists and is online unless said otherwise.
#[derive(Default)]
pub struct MemoryScheduler(Mutex<State>);

impl MemoryScheduler {
    /// A scheduler that has started nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next start that has no fault yet goes wrong like this.
    pub fn fault(&self, fault: StartFault) {
        lock(&self.0).faults.push_back(fault);
    }

    /// The next round of the duplicate check answers this instead of the truth.
    pub fn answer_check(&self, outcome: CheckOutcome) {
        lock(&self.0).checks.push_back(outcome);
    }

    /// What a preflight answers from now on; `None` for startable.
    pub fn set_preflight(&self, preflight: Option<Preflight>) {
        lock(&self.0).preflight = preflight;
    }

    /// Every instance, in the order of their starts.
    pub fn instances(&self) -> Vec<Instance> {
        lock(&self.0).instances.clone()
    }

    /// How many start calls came.
    pub fn start_calls(&self) -> usize {
        lock(&self.0).calls
    }
}

impl State {
    fn start(&mut self, request: &StartRequest) -> InstanceId {
        let id = InstanceId(i64::try_from(self.instances.len()).unwrap_or(i64::MAX - 1) + 1);
        self.instances.push(Instance {
            id,
            trigger: request.trigger.clone(),
            workflow: request.workflow,
            parameters: request.parameters.clone(),
        });
        id
    }
}

fn refusal(code: &str, detail: &str) -> Refusal {
    Refusal { code: code.to_owned(), detail: detail.to_owned() }
}

#[async_trait]
impl Scheduler for MemoryScheduler {
    async fn preflight(&self, _: &ConnectionName, _: ProjectCode, workflow: &WorkflowRef) -> Preflight {
        let workflow = match workflow {
            WorkflowRef::Code(code) => *code,
            WorkflowRef::Name(_) => WorkflowCode(1),
        };
        lock(&self.0).preflight.clone().unwrap_or(Preflight::Startable { workflow })
    }

    async fn start(&self, _: &ConnectionName, request: &StartRequest) -> StartOutcome {
        let mut state = lock(&self.0);
        state.calls += 1;
        let lost = || refusal("TRANSPORT_ERROR", "the answer timed out");
        match state.faults.pop_front() {
            None => StartOutcome::Started { instance: Some(state.start(request)) },
            Some(StartFault::TakesEffectThenTimesOut) => {
                state.start(request);
                StartOutcome::Ambiguous(lost())
            }
            Some(StartFault::TimesOut) => StartOutcome::Ambiguous(lost()),
            Some(StartFault::NoMaster) => StartOutcome::Retryable(refusal("10025", "master does not exist")),
            Some(StartFault::Permanent) => StartOutcome::Permanent(refusal("30002", "no permission on the project")),
            Some(StartFault::Unauthorized) => {
                StartOutcome::ConnectionRefused(refusal("HTTP_401", "the token is refused"))
            }
            Some(StartFault::StartsTwice) => {
                let first = state.start(request);
                state.start(request);
                StartOutcome::Started { instance: Some(first) }
            }
        }
    }

    async fn check(
        &self,
        _: &ConnectionName,
        _: ProjectCode,
        _: WorkflowCode,
        trigger: &TriggerKey,
        _: Timestamp,
    ) -> CheckOutcome {
        let mut state = lock(&self.0);
        if let Some(outcome) = state.checks.pop_front() {
            return outcome;
        }
        let instances: Vec<InstanceId> = state
            .instances
            .iter()
            .filter(|instance| instance.trigger == *trigger)
            .map(|instance| instance.id)
            .collect();
        if instances.is_empty() { CheckOutcome::CleanRound } else { CheckOutcome::Found { instances } }
    }

    async fn instance_state(
        &self,
        _: &ConnectionName,
        _: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceState>, Refusal> {
        let known = lock(&self.0).instances.iter().any(|known| known.id == instance);
        Ok(known.then_some(InstanceState::Success))
    }

    fn start_timeout(&self) -> Duration {
        Duration::from_secs(10)
    }
}
