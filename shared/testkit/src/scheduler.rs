//! A DolphinScheduler for simulations: the engine's port in memory, with the answers and the
//! faults that the real API has. A stand-in, named as one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TriggerKey, WorkflowCode};
use lakebell_engine::ports::scheduler::{
    Active, CarriedKey, CheckOutcome, ExecutionType, InstanceList, InstanceReport, InstanceState, Latest,
    ListedInstance, Preflight, Refusal, Scheduler, StartOutcome, StartRequest, TokenExpiry, WorkflowRef,
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
    /// The business date, where it is a backfill.
    pub business_date: Option<Date>,
    /// Its state.
    pub state: InstanceState,
    /// How often it ran.
    pub runs: u32,
}

#[derive(Default)]
struct State {
    instances: Vec<Instance>,
    faults: VecDeque<StartFault>,
    checks: VecDeque<CheckOutcome>,
    preflight: Option<Preflight>,
    active: Option<Active>,
    latest: BTreeMap<String, Latest>,
    reading: Option<Refusal>,
    begins_as: Option<InstanceState>,
    gone: Vec<InstanceId>,
    expiry: Option<TokenExpiry>,
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

    /// What a count of active instances answers from now on; `None` for the truth.
    pub fn set_active(&self, active: Option<Active>) {
        lock(&self.0).active = active;
    }

    /// What a look at the latest instance of this workflow answers from now on.
    pub fn set_latest(&self, workflow: &WorkflowRef, latest: Latest) {
        lock(&self.0).latest.insert(format!("{workflow:?}"), latest);
    }

    /// What a look at the token's end answers from now on; `None` for an end that is not told.
    pub fn set_token_expiry(&self, expiry: Option<TokenExpiry>) {
        lock(&self.0).expiry = expiry;
    }

    /// Whether reads of instances are refused from now on, and how.
    pub fn refuse_reads(&self, refusal: Option<Refusal>) {
        lock(&self.0).reading = refusal;
    }

    /// The state that instances begin in from now on; they are over at once unless said otherwise.
    pub fn begin_as(&self, state: InstanceState) {
        lock(&self.0).begins_as = Some(state);
    }

    /// Moves an instance into a state. From an end to any other state is a rerun.
    pub fn set_state(&self, id: InstanceId, to: InstanceState) {
        let mut state = lock(&self.0);
        for instance in state.instances.iter_mut().filter(|instance| instance.id == id) {
            instance.runs += u32::from(instance.state.has_ended() && !to.has_ended());
            instance.state = to;
        }
    }

    /// Deletes an instance: reads and lists do not show it any more.
    pub fn delete(&self, id: InstanceId) {
        lock(&self.0).gone.push(id);
    }

    /// Every instance, in the order of their starts, deleted ones too.
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
            business_date: request.business_date,
            state: self.begins_as.unwrap_or(InstanceState::Success),
            runs: 1,
        });
        id
    }

    fn readable(&self) -> Result<impl DoubleEndedIterator<Item = &Instance>, Refusal> {
        match &self.reading {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(self.instances.iter().filter(|instance| !self.gone.contains(&instance.id))),
        }
    }
}

fn report(instance: &Instance) -> InstanceReport {
    let Instance { id, state, runs, .. } = *instance;
    InstanceReport { id, state, started_at: None, ended_at: None, runs }
}

/// The code behind a reference: every name is that of workflow 1.
fn code_of(workflow: &WorkflowRef) -> WorkflowCode {
    match workflow {
        WorkflowRef::Code(code) => *code,
        WorkflowRef::Name(_) => WorkflowCode(1),
    }
}

fn refusal(code: &str, detail: &str) -> Refusal {
    Refusal { code: code.to_owned(), detail: detail.to_owned() }
}

#[async_trait]
impl Scheduler for MemoryScheduler {
    async fn preflight(&self, _: &ConnectionName, _: ProjectCode, workflow: &WorkflowRef) -> Preflight {
        let startable =
            Preflight::Startable { workflow: code_of(workflow), name: None, execution: ExecutionType::Parallel };
        lock(&self.0).preflight.clone().unwrap_or(startable)
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

    async fn instance(
        &self,
        _: &ConnectionName,
        _: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceReport>, Refusal> {
        let state = lock(&self.0);
        let found = state.readable()?.find(|known| known.id == instance).map(report);
        Ok(found)
    }

    async fn active(&self, _: &ConnectionName, _: ProjectCode, workflow: WorkflowCode) -> Active {
        let state = lock(&self.0);
        if let Some(said) = &state.active {
            return said.clone();
        }
        match state.readable() {
            Ok(instances) => {
                let runs = |instance: &&Instance| instance.state == InstanceState::Running;
                let count = instances.filter(|instance| instance.workflow == workflow).filter(runs).count();
                Active::Counted { instances: u32::try_from(count).unwrap_or(u32::MAX), pending: Some(0) }
            }
            Err(refusal) => Active::Unavailable(refusal),
        }
    }

    async fn latest(&self, _: &ConnectionName, _: ProjectCode, workflow: &WorkflowRef) -> Latest {
        let state = lock(&self.0);
        if let Some(said) = state.latest.get(&format!("{workflow:?}")) {
            return said.clone();
        }
        let code = code_of(workflow);
        let newest = match state.readable() {
            Ok(mut instances) => instances.rfind(|instance| instance.workflow == code),
            Err(refusal) => return Latest::Unavailable(refusal),
        };
        match newest.map(|instance| (instance.id, instance.state)) {
            None => Latest::None,
            Some((instance, InstanceState::Success)) => Latest::Succeeded { instance },
            Some((instance, InstanceState::Failure | InstanceState::Stopped)) => Latest::Failed { instance },
            Some((instance, InstanceState::Running | InstanceState::Suspended)) => {
                Latest::Running { instance: Some(instance) }
            }
        }
    }

    async fn instances_since(
        &self,
        _: &ConnectionName,
        _: ProjectCode,
        workflow: WorkflowCode,
        _: Timestamp,
    ) -> Result<InstanceList, Refusal> {
        let state = lock(&self.0);
        let listed = |instance: &Instance| ListedInstance {
            report: report(instance),
            key: CarriedKey::Trigger(instance.trigger.clone()),
        };
        let instances = state.readable()?.filter(|instance| instance.workflow == workflow).map(listed).collect();
        Ok(InstanceList { instances, cut: None })
    }

    async fn token_expiry(&self, _: &ConnectionName) -> TokenExpiry {
        let unknown = || TokenExpiry::Unknown { detail: "the stand-in has no tokens".to_owned() };
        lock(&self.0).expiry.clone().unwrap_or_else(unknown)
    }

    fn start_timeout(&self) -> Duration {
        Duration::from_secs(10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: ProjectCode = ProjectCode(1);
    const WORKFLOW: WorkflowCode = WorkflowCode(7);

    #[tokio::test]
    async fn gates_and_reads_tell_of_the_instances_that_were_started() {
        let scheduler = MemoryScheduler::new();
        let name = ConnectionName::new("main").unwrap();
        let workflow = WorkflowRef::Code(WORKFLOW);
        assert_eq!(scheduler.latest(&name, PROJECT, &workflow).await, Latest::None);
        scheduler.begin_as(InstanceState::Running);
        let request = StartRequest {
            project: PROJECT,
            workflow: WORKFLOW,
            start_at: None,
            trigger: TriggerKey::new("ab01").unwrap(),
            parameters: BTreeMap::new(),
            business_date: None,
        };
        let StartOutcome::Started { instance: Some(id) } = scheduler.start(&name, &request).await else {
            panic!("nothing was in the way")
        };
        let counted = Active::Counted { instances: 1, pending: Some(0) };
        assert_eq!(scheduler.active(&name, PROJECT, WORKFLOW).await, counted);
        assert_eq!(scheduler.latest(&name, PROJECT, &workflow).await, Latest::Running { instance: Some(id) });
        scheduler.set_state(id, InstanceState::Failure);
        assert_eq!(scheduler.latest(&name, PROJECT, &workflow).await, Latest::Failed { instance: id });
        scheduler.set_state(id, InstanceState::Running);
        assert_eq!(scheduler.instance(&name, PROJECT, id).await.unwrap().unwrap().runs, 2);
        let list = scheduler.instances_since(&name, PROJECT, WORKFLOW, Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(list.instances[0].key, CarriedKey::Trigger(request.trigger));
        let away = refusal("TRANSPORT_ERROR", "away");
        scheduler.refuse_reads(Some(away.clone()));
        assert_eq!(scheduler.active(&name, PROJECT, WORKFLOW).await, Active::Unavailable(away.clone()));
        assert_eq!(scheduler.instance(&name, PROJECT, id).await, Err(away));
        scheduler.refuse_reads(None);
        scheduler.delete(id);
        assert_eq!(scheduler.instance(&name, PROJECT, id).await, Ok(None));
    }
}
