//! A DolphinScheduler for the simulation, by its contract: a start is accepted as a command and
//! becomes an instance later, answers are lost in both directions, bytes may still be on their way
//! when nobody waits for them any more, and one command may become two instances.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TriggerKey, WorkflowCode};
use lakebell_engine::ports::scheduler::{
    Active, CarriedKey, CheckOutcome, ExecutionType, InstanceList, InstanceReport, InstanceState, Latest,
    ListedInstance, Preflight, Refusal, Scheduler, StartOutcome, StartRequest, TokenExpiry, WorkflowRef,
};

use super::dice::Dice;
use super::ports::{Port, turn};

/// How long a start call is waited for.
pub(super) const START_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);
/// After a reset connection the server may still work on the request for so long; the contract's
/// limit for the call behind it is 3 s.
const STILL_SERVED: SignedDuration = SignedDuration::from_secs(4);

/// A version line, as far as it decides what can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Commands are only counted: a pending one hides whose it is.
    V31,
    /// Commands can be read.
    V32,
    /// The start answers with the instance.
    V33,
}

/// Why a trigger may have more than one instance, or none, by the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Excuse {
    /// Two masters took one command.
    TwoMasters,
    /// The bytes of a start arrived after the lease and both rounds of the check.
    LateBytes,
}

/// A start call on its way to the server.
#[derive(Debug)]
struct Post {
    id: u64,
    trigger: TriggerKey,
    lands_by: Timestamp,
    is_late: bool,
}

#[derive(Debug)]
struct Instance {
    trigger: TriggerKey,
    is_visible: bool,
}

/// The scheduler's own state.
#[derive(Debug)]
pub(super) struct Ds {
    line: Line,
    posts: Vec<Post>,
    next_post: u64,
    /// Accepted starts that no master has taken yet.
    commands: Vec<TriggerKey>,
    instances: Vec<Instance>,
    /// What came of posts that somebody may still wait for.
    landed: BTreeMap<u64, Option<InstanceId>>,
    /// Triggers that were refused for good: only these may end as FAILED by themselves.
    pub(super) refused: BTreeSet<TriggerKey>,
    /// Triggers of which a check could not decide.
    pub(super) undecided: BTreeSet<TriggerKey>,
    pub(super) excuses: BTreeMap<TriggerKey, Excuse>,
    is_offline: bool,
}

impl Ds {
    pub(super) const fn new(line: Line) -> Self {
        Self {
            line,
            posts: Vec::new(),
            next_post: 0,
            commands: Vec::new(),
            instances: Vec::new(),
            landed: BTreeMap::new(),
            refused: BTreeSet::new(),
            undecided: BTreeSet::new(),
            excuses: BTreeMap::new(),
            is_offline: false,
        }
    }

    /// A request reaches the server.
    fn land(&mut self, at: usize) {
        let post = self.posts.remove(at);
        if post.is_late {
            self.excuses.insert(post.trigger.clone(), Excuse::LateBytes);
        }
        let id = if self.line == Line::V33 {
            self.instances.push(Instance { trigger: post.trigger.clone(), is_visible: false });
            Some(self.newest())
        } else {
            None
        };
        self.commands.push(post.trigger);
        self.landed.insert(post.id, id);
    }

    fn newest(&self) -> InstanceId {
        InstanceId(i64::try_from(self.instances.len()).unwrap_or(i64::MAX))
    }

    /// A master takes the oldest command.
    pub(super) fn consume(&mut self, twice: bool) {
        if self.commands.is_empty() {
            return;
        }
        let trigger = self.commands.remove(0);
        let hidden = self.instances.iter_mut().find(|known| known.trigger == trigger && !known.is_visible);
        match hidden {
            Some(hidden) => hidden.is_visible = true,
            None => self.instances.push(Instance { trigger: trigger.clone(), is_visible: true }),
        }
        if twice {
            self.excuses.insert(trigger.clone(), Excuse::TwoMasters);
            self.instances.push(Instance { trigger, is_visible: true });
        }
    }

    /// What is on its way arrives, or does not, once its time is over.
    pub(super) fn time_passes(&mut self, now: Timestamp, dice: &Dice) {
        while let Some(at) = self.posts.iter().position(|post| post.lands_by <= now) {
            if dice.below(2) == 0 {
                self.land(at);
            } else {
                self.posts.remove(at);
            }
        }
    }

    /// One request that is on its way arrives.
    pub(super) fn arrive(&mut self, dice: &Dice) {
        let landing: Vec<usize> = (0..self.posts.len()).filter(|at| !self.posts[*at].is_late).collect();
        if let Some(at) = dice.pick(&landing) {
            self.land(at);
        }
    }

    /// Everything that was begun ends.
    pub(super) fn settle(&mut self) {
        while !self.posts.is_empty() {
            self.land(0);
        }
        while !self.commands.is_empty() {
            self.consume(false);
        }
        self.is_offline = false;
    }

    /// The workflows are brought offline, or online again.
    pub(super) const fn toggle(&mut self) {
        self.is_offline = !self.is_offline;
    }

    /// How many instances each trigger has, those to come included.
    pub(super) fn starts(&self) -> BTreeMap<TriggerKey, u64> {
        let mut starts = BTreeMap::new();
        let pending = self.commands.iter().filter(|_| self.line != Line::V33);
        for trigger in self.instances.iter().map(|instance| &instance.trigger).chain(pending) {
            *starts.entry(trigger.clone()).or_insert(0) += 1;
        }
        starts
    }

    /// The first instance of a trigger, whatever can be seen from outside.
    pub(super) fn instance_of(&self, trigger: &TriggerKey) -> Option<InstanceId> {
        let at = self.instances.iter().position(|instance| instance.trigger == *trigger)?;
        Some(InstanceId(i64::try_from(at).ok()? + 1))
    }

    /// Whether a start of this trigger may still become an instance, as far as a person can see.
    pub(super) fn is_on_its_way(&self, trigger: &TriggerKey) -> bool {
        self.commands.contains(trigger) || self.posts.iter().any(|post| post.trigger == *trigger && !post.is_late)
    }

    fn visible(&self, trigger: &TriggerKey) -> Vec<InstanceId> {
        let with_id = (1_i64..).zip(&self.instances);
        let mine = with_id.filter(|(_, instance)| instance.is_visible && instance.trigger == *trigger);
        mine.map(|(id, _)| InstanceId(id)).collect()
    }
}

fn refusal(code: &str, detail: &str) -> Refusal {
    Refusal { code: code.to_owned(), detail: detail.to_owned() }
}

fn lost() -> Refusal {
    refusal("TRANSPORT_ERROR", "the answer did not come (injected)")
}

/// What the server does with a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Well,
    /// The connection is reset; the request may still be worked on.
    Reset,
    NoMaster,
    Busy,
    Refused,
    Unauthorized,
    Offline,
}

impl Port {
    fn ds_percent(&self) -> usize {
        let mut state = self.outside.state();
        let percent = state.profile.scheduler_percent;
        if percent > 0 && state.dice.below(100) < percent && state.may_happen() { 100 } else { 0 }
    }

    fn turn_of_start(&self, trigger: &TriggerKey) -> Turn {
        if self.outside.state().ds.is_offline {
            return Turn::Offline;
        }
        if self.ds_percent() == 0 {
            return Turn::Well;
        }
        let turns =
            [Turn::Reset, Turn::Reset, Turn::Reset, Turn::NoMaster, Turn::Busy, Turn::Refused, Turn::Unauthorized];
        let mut state = self.outside.state();
        let turn = state.dice.pick(&turns).unwrap_or(Turn::Well);
        state.tell(format!("worker {}: the start of {trigger} meets {turn:?}", self.worker));
        turn
    }
}

#[async_trait]
impl Scheduler for Port {
    async fn preflight(&self, _: &ConnectionName, _: ProjectCode, workflow: &WorkflowRef) -> Preflight {
        turn().await;
        if self.outside.state().ds.is_offline {
            return Preflight::Offline { detail: "the workflow is offline (injected)".to_owned() };
        }
        if self.ds_percent() > 0 && self.outside.state().dice.below(3) == 0 {
            return Preflight::Unavailable(lost());
        }
        let workflow = match workflow {
            WorkflowRef::Code(code) => *code,
            WorkflowRef::Name(_) => WorkflowCode(1),
        };
        Preflight::Startable { workflow, name: None, execution: ExecutionType::Parallel }
    }

    async fn start(&self, _: &ConnectionName, request: &StartRequest) -> StartOutcome {
        turn().await;
        let trigger = &request.trigger;
        let sent_at = self.outside.now();
        let turn_of = self.turn_of_start(trigger);
        match turn_of {
            Turn::NoMaster => return StartOutcome::Retryable(refusal("10025", "master does not exist (injected)")),
            Turn::Busy => return StartOutcome::Retryable(refusal("10116", "try again (injected)")),
            Turn::Unauthorized => return StartOutcome::ConnectionRefused(refusal("HTTP_401", "refused (injected)")),
            Turn::Offline => return StartOutcome::Offline(refusal("50004", "the workflow is offline (injected)")),
            Turn::Refused => {
                self.outside.state().ds.refused.insert(trigger.clone());
                return StartOutcome::Permanent(refusal("30002", "no permission (injected)"));
            }
            Turn::Well | Turn::Reset => {}
        }
        let post = {
            let mut state = self.outside.state();
            let id = state.ds.next_post;
            state.ds.next_post += 1;
            let is_late = state.profile.has_late_bytes && turn_of == Turn::Reset && state.dice.below(3) == 0;
            let after = match turn_of {
                _ if is_late => SignedDuration::from_mins(3),
                Turn::Reset => STILL_SERVED,
                _ => START_TIMEOUT,
            };
            state.ds.posts.push(Post { id, trigger: trigger.clone(), lands_by: sent_at + after, is_late });
            state.tell(format!("worker {}: sends the start of {trigger}", self.worker));
            id
        };
        if turn_of == Turn::Reset {
            turn().await;
            return StartOutcome::Ambiguous(lost());
        }
        turn().await;
        // It arrives now at the latest, if time has not passed over it meanwhile.
        let landed = {
            let mut state = self.outside.state();
            if let Some(at) = state.ds.posts.iter().position(|waiting| waiting.id == post) {
                state.ds.land(at);
            }
            state.ds.landed.get(&post).copied()
        };
        turn().await;
        let is_timely = self.outside.now().duration_since(sent_at) < START_TIMEOUT;
        match landed {
            Some(instance) if is_timely => StartOutcome::Started { instance },
            _ => StartOutcome::Ambiguous(lost()),
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
        turn().await;
        if self.ds_percent() > 0 {
            if self.outside.state().dice.below(2) == 0 {
                return CheckOutcome::Unavailable(lost());
            }
            self.outside.state().ds.undecided.insert(trigger.clone());
            return CheckOutcome::Undecided { detail: "parameters are not readable (injected)".to_owned() };
        }
        // Commands, instances, commands again: a row moves from the one to the other meanwhile.
        for round in 0..2 {
            {
                let mut state = self.outside.state();
                let ds = &mut state.ds;
                if ds.line == Line::V31 && !ds.commands.is_empty() {
                    ds.undecided.insert(trigger.clone());
                    return CheckOutcome::Undecided {
                        detail: "a command is pending, and whose is not told".to_owned(),
                    };
                }
                if ds.line != Line::V31 && ds.commands.contains(trigger) {
                    return CheckOutcome::Found { instances: ds.visible(trigger) };
                }
            }
            turn().await;
            if round == 0 {
                let instances = self.outside.state().ds.visible(trigger);
                if !instances.is_empty() {
                    return CheckOutcome::Found { instances };
                }
                turn().await;
            }
        }
        CheckOutcome::CleanRound
    }

    async fn instance(
        &self,
        _: &ConnectionName,
        _: ProjectCode,
        instance: InstanceId,
    ) -> Result<Option<InstanceReport>, Refusal> {
        turn().await;
        let state = self.outside.state();
        let is_known = usize::try_from(instance.0).is_ok_and(|id| id >= 1 && id <= state.ds.instances.len());
        let report =
            InstanceReport { id: instance, state: InstanceState::Success, started_at: None, ended_at: None, runs: 1 };
        Ok(is_known.then_some(report))
    }

    async fn active(&self, _: &ConnectionName, _: ProjectCode, _: WorkflowCode) -> Active {
        Active::Counted { instances: 0, pending: Some(0) }
    }

    async fn latest(&self, _: &ConnectionName, _: ProjectCode, _: &WorkflowRef) -> Latest {
        Latest::None
    }

    async fn instances_since(
        &self,
        _: &ConnectionName,
        _: ProjectCode,
        _: WorkflowCode,
        _: Timestamp,
    ) -> Result<InstanceList, Refusal> {
        let state = self.outside.state();
        let listed = (1_i64..).zip(&state.ds.instances).map(|(id, instance)| ListedInstance {
            report: InstanceReport {
                id: InstanceId(id),
                state: InstanceState::Success,
                started_at: None,
                ended_at: None,
                runs: 1,
            },
            key: CarriedKey::Trigger(instance.trigger.clone()),
        });
        Ok(InstanceList { instances: listed.collect(), cut: None })
    }

    async fn token_expiry(&self, _: &ConnectionName) -> TokenExpiry {
        TokenExpiry::Unknown { detail: "the simulation has no tokens".to_owned() }
    }

    fn start_timeout(&self) -> Duration {
        Duration::from_secs(10)
    }
}
