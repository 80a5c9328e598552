//! Faults stop, and what was promised for then is made true: by the messages that are left where
//! nothing was lost, by one pass where anything may have been.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use lakebell_domain::ids::TriggerKey;
use lakebell_domain::trigger::Status;
use lakebell_engine::audit::{self, FindingKind};

use super::job::{self, Ask, Job, Request};
use super::menu::{LATER, PROJECT, REWRITTEN};
use super::run::Run;
use super::verify::Stage;

/// Rounds of messages and sweeps after which everything that has a timer has had its time.
const ROUNDS: usize = 14;
/// Messages in one go, beyond which messages must be breeding.
const MOST_MESSAGES: usize = 20_000;

impl Run {
    /// Comes to rest and checks what holds there.
    pub(super) async fn come_to_rest(&mut self) {
        let is_intact = self.stop().await;
        if is_intact {
            // What was sent arrives in the end; people and writers do not give up either.
            self.work_off().await;
        } else {
            let is_kept =
                |job: &Job| matches!(job, Job::Check(_) | Job::Backfill { .. } | Job::Lag { .. } | Job::Ask(_));
            self.outside.state().pending.retain(is_kept);
            self.work_off().await;
            self.outside.state().pending.clear();
            // One that was begun before ends first.
            self.carry_out(Job::Pass).await;
            self.carry_out(Job::Pass).await;
        }
        self.let_time_pass().await;
        self.verify(Stage::FaultsStopped).await;
        if !self.outside.state().wrong.is_empty() {
            return;
        }
        self.put_in_order().await;
        self.verify(Stage::InOrder).await;
        self.audit().await;
    }

    /// What the audit says about a run that broke no rule: the instances that the contract excuses, each of
    /// them, and nothing else.
    async fn audit(&mut self) {
        if !self.outside.state().wrong.is_empty() {
            return;
        }
        let ports = self.workers.port().ports();
        let asked = match audit::ask(&ports, PROJECT, Timestamp::UNIX_EPOCH, &job::trace()).await {
            Ok(asked) => asked,
            Err(error) => return self.outside.state().wrong.push(format!("the audit cannot be asked for: {error}")),
        };
        self.work_off().await;
        let done = audit::read(&ports, PROJECT, &asked.id).await.ok().and_then(|audit| audit.result);
        let mut state = self.outside.state();
        let Some(done) = done else { return state.wrong.push("the audit was not done".to_owned()) };
        // A trigger that started has one instance of its own; where the contract lets one run that did not, all
        // are too many.
        let has_started = |trigger: &TriggerKey| {
            let known = state.records.triggers.get(trigger);
            known.is_some_and(|trigger| matches!(trigger.status(), Status::Success { .. }))
        };
        let mut expected: BTreeMap<TriggerKey, u64> = state.ds.starts();
        expected.retain(|trigger, instances| {
            *instances -= u64::from(has_started(trigger));
            *instances > 0
        });
        let mut told: BTreeMap<TriggerKey, u64> = BTreeMap::new();
        for finding in &done.findings {
            match &finding.trigger {
                Some(trigger) if finding.kind == FindingKind::Extra => *told.entry(trigger.clone()).or_default() += 1,
                _ => state.wrong.push(format!("the audit found in a good run: {}", finding.detail)),
            }
        }
        if told != expected {
            state.wrong.push(format!("extra instances are {expected:?}, and the audit told {told:?}"));
        }
        let left_out = done.not_compared.iter().map(|left_out| left_out.why.as_str());
        let left_out: Vec<String> = left_out.map(|why| format!("the audit left out a workflow: {why}")).collect();
        state.wrong.extend(left_out);
    }

    /// Faults stop, the functions at work die, and what the world had begun ends.
    async fn stop(&mut self) -> bool {
        self.workers.kill_all();
        // What they had spawned dies with them.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        self.outside.items.thaw_indexes();
        let mut state = self.outside.state();
        let step = state.step + 1;
        state.begin_step(step);
        state.is_calm = true;
        state.tell("faults stop".to_owned());
        state.tables.values_mut().for_each(|table| table.settle(step));
        state.ds.settle();
        state.profile.is_intact
    }

    /// Does everything that is pending, in any order, until nothing is.
    pub(super) async fn work_off(&mut self) {
        for _ in 0..MOST_MESSAGES {
            let job = {
                let mut state = self.outside.state();
                let step = state.step + 1;
                state.begin_step(step);
                let count = state.pending.len();
                if count == 0 {
                    return;
                }
                let at = state.dice.below(count);
                state.pending.swap_remove(at)
            };
            self.carry_out(job).await;
            self.outside.state().ds.settle();
            if !self.outside.state().wrong.is_empty() {
                return;
            }
        }
        let left = self.outside.state().pending.len();
        self.outside.state().wrong.push(format!("rule 3: messages breed: {left} are left"));
    }

    /// Hours pass, with sweeps and no pass.
    async fn let_time_pass(&mut self) {
        for _ in 0..ROUNDS {
            self.outside.advance(Duration::from_mins(61));
            self.carry_out(Job::Sweep).await;
            self.work_off().await;
            if !self.outside.state().wrong.is_empty() {
                return;
            }
        }
    }

    /// People do what is theirs: switch on, resume, accept, decide, redrive, and declare what they
    /// wanted last. Rewrites take several passes.
    async fn put_in_order(&mut self) {
        let targets = self.names.clone();
        self.carry_out(Job::Ask(Request::Switch { is_on: true })).await;
        for table in LATER.into_iter().chain(["e"]) {
            self.carry_out(Job::Ask(Request::Register(table.to_owned()))).await;
        }
        for name in &targets {
            if let Some(Some(variant)) = self.wanted.get(name).copied() {
                self.carry_out(Job::Ask(Request::Declare { name: name.clone(), variant })).await;
                self.carry_out(Job::Ask(Request::Resume(name.clone()))).await;
            }
        }
        for _ in 0..4 {
            self.carry_out(Job::Scan).await;
            self.carry_out(Job::Pass).await;
            for table in REWRITTEN {
                self.carry_out(Job::Ask(Request::Accept(table.to_owned()))).await;
            }
            let stuck = self.stuck();
            for (key, ask) in stuck {
                self.carry_out(Job::Ask(ask(key))).await;
            }
            self.let_time_pass().await;
            if !self.outside.state().wrong.is_empty() {
                return;
            }
        }
        for name in targets {
            if self.wanted.get(&name) == Some(&None) {
                self.carry_out(Job::Ask(Request::Undeclare(name))).await;
            }
        }
    }

    /// Triggers that wait for a person.
    fn stuck(&self) -> Vec<(TriggerKey, Ask)> {
        let state = self.outside.state();
        let open = |key: &TriggerKey| {
            let mut cursors = state.records.cursors.values();
            cursors.any(|cursor| cursor.open.as_ref() == Some(key))
        };
        let triggers = state.records.triggers.values();
        let stuck = triggers.filter_map(|trigger| -> Option<(TriggerKey, Ask)> {
            match trigger.status() {
                Status::Failed { .. } if open(&trigger.key) => Some((trigger.key.clone(), Request::Redrive)),
                Status::Unknown { held: true, .. } => Some((trigger.key.clone(), Request::Decide)),
                _ => None,
            }
        });
        stuck.collect()
    }
}
