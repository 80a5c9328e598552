//! One run: a deployment, its tables, its people, and everything that happens to them.

use std::time::Duration;

use lakebell_domain::ids::TriggerKey;

use super::job::{self, Ask, Check, Job, Request};
use super::lake::Table;
use super::menu::{self, LATER, REWRITTEN, TABLES};
use super::plan::Plan;
use super::profile::Profile;
use super::shared::{BACKFILLS, Counts, Outside, State};
use super::workers::{Workers, settle};

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The rules that were broken, in sentences; none in a good run.
    pub wrong: Vec<String>,
    /// The steps at which something out of the ordinary happened.
    pub events: std::collections::BTreeSet<u64>,
    /// The step at which the first rule broke; absent where that was at rest.
    pub broke_at: Option<u64>,
    /// What happened.
    pub counts: Counts,
    /// Triggers with more than one instance, with what makes them undecidable.
    pub extra: Vec<String>,
    /// The run, call by call, where the plan asks for it.
    pub story: Vec<String>,
}

/// A run under way.
pub(super) struct Run {
    pub(super) outside: Outside,
    pub(super) workers: Workers,
    pub(super) names: Vec<String>,
    /// Which variant of a target was asked for last; `None` for undeclared.
    pub(super) wanted: std::collections::BTreeMap<String, Option<usize>>,
    checks: u32,
    backfills: u64,
    /// Checks that were told or will be.
    pub(super) checked: Vec<Check>,
}

impl Run {
    /// Carries a plan out.
    pub(super) async fn of(plan: &Plan) -> Report {
        let mut run = Self::begin(plan).await;
        let mut broke_at = None;
        for step in 1..=plan.steps {
            run.step(step).await;
            if !run.outside.state().wrong.is_empty() {
                broke_at = Some(step);
                break;
            }
        }
        if broke_at.is_none() {
            run.come_to_rest().await;
        }
        run.report(broke_at)
    }

    async fn begin(plan: &Plan) -> Self {
        let profile = Profile::of(plan.seed);
        let names = job::names(&profile.targets);
        let outside = Outside::new(plan.clone(), profile);
        for table in TABLES.iter().chain(&LATER) {
            let made = Table::new(&outside.storage, table);
            outside.state().tables.insert((*table).to_owned(), made);
        }
        let mut run = Self {
            workers: Workers::new(outside.clone(), plan.seed),
            outside,
            wanted: std::collections::BTreeMap::new(),
            names: names.clone(),
            checks: 0,
            backfills: 0,
            checked: Vec::new(),
        };
        for table in TABLES {
            run.carry_out(Job::Ask(Request::Register(table.to_owned()))).await;
        }
        for name in names {
            run.wanted.insert(name.clone(), Some(0));
            let is_prefix = name == "prefix";
            let job = Job::Ask(Request::Declare { name, variant: 0 });
            if is_prefix && !plan.seed.is_multiple_of(3) {
                // Declared while the tables are registered.
                let later = LATER.iter().map(|table| Job::Ask(Request::Register((*table).to_owned())));
                run.outside.state().pending.extend(later.chain([job]));
            } else {
                run.carry_out(job).await;
            }
        }
        run.know_assets();
        run.outside.state().is_calm = false;
        run
    }

    /// Does a job from its beginning to its end, with nothing in between.
    pub(super) async fn carry_out(&mut self, job: Job) {
        let port = self.workers.port();
        let worker = port.worker;
        self.outside.state().tell(format!("worker {worker} begins {job:?}, alone"));
        if job == Job::Sweep {
            self.outside.state().sweepers.insert(worker);
        }
        let deadline = self.outside.now() + job::FUNCTION;
        let outcome = job::run(port, job.clone(), deadline).await;
        settle(&self.outside, worker, job, &outcome);
    }

    fn know_assets(&self) {
        let mut state = self.outside.state();
        let known = state.records.assets.iter().map(|(id, head)| (*id, head.key.table().to_owned())).collect();
        state.assets = known;
    }

    async fn step(&mut self, step: u64) {
        let roll = {
            let mut state = self.outside.state();
            state.begin_step(step);
            state.dice.below(1000)
        };
        let deaths = self.outside.state().profile.deaths;
        let requests = self.outside.state().profile.requests;
        let chances = [25, 30, requests, 6, 10, 6, 4, deaths, 25, 130, 8];
        let mut below = 0;
        let what = chances.iter().position(|chance| {
            below += chance;
            roll < below
        });
        match what {
            Some(0) => self.commit(),
            Some(1) => self.befall_a_table(),
            Some(2) => self.request(),
            Some(3) => self.writer_tells(),
            Some(4) => self.time_passes(),
            Some(5) => self.schedule(Job::Sweep),
            Some(6) if !self.outside.state().profile.is_intact => self.schedule(Job::Pass),
            Some(7) if self.outside.state().may_happen() => self.workers.kill_one(),
            Some(8) => self.scheduler_goes_on(),
            Some(9) => self.begin_a_job(),
            Some(10) if self.outside.state().may_happen() => self.workers.hold_one_up(),
            _ if self.workers.count() == 0 => self.begin_a_job(),
            _ => self.go_on().await,
        }
        self.after_step(step);
    }

    async fn go_on(&mut self) {
        if !self.workers.go_on() {
            // They wait for what they have spawned themselves.
            tokio::task::yield_now().await;
        }
    }

    fn after_step(&mut self, step: u64) {
        let now = self.outside.now();
        let mut state = self.outside.state();
        let State { ds, dice, tables, profile, .. } = &mut *state;
        ds.time_passes(now, dice);
        let goes_on = dice.below(profile.pace) == 0;
        for table in tables.values_mut() {
            if goes_on {
                table.go_on(step);
            }
            table.show(step, now);
        }
        drop(state);
        self.workers.end_overdue();
    }

    fn begin_a_job(&mut self) {
        let mut state = self.outside.state();
        let is_full = self.workers.count() >= state.profile.workers;
        if is_full {
            return;
        }
        if state.pending.is_empty() {
            drop(state);
            self.outside.advance(Duration::from_secs(1));
            return;
        }
        let at = {
            let count = state.pending.len();
            state.dice.below(count)
        };
        let job = state.pending.swap_remove(at);
        let lost = state.profile.lost_messages;
        let is_lost = matches!(job, Job::Message(_)) && state.dice.below(100) < lost && state.may_happen();
        if is_lost {
            state.tell(format!("lost: {job:?}"));
            return;
        }
        drop(state);
        self.workers.begin(job);
    }

    fn schedule(&mut self, job: Job) {
        if self.workers.count() < self.outside.state().profile.workers {
            self.workers.begin(job);
        }
    }

    /// A writer commits, and the notification is delivered never, once or twice.
    fn commit(&mut self) {
        let mut state = self.outside.state();
        if !state.may_happen() {
            return;
        }
        let name = {
            let is_of_rewritten = state.profile.has_rewrites && state.dice.below(2) == 0;
            let names: Vec<&str> = TABLES.iter().chain(&LATER).copied().collect();
            let names = if is_of_rewritten { REWRITTEN.to_vec() } else { names };
            state.dice.pick(&names).unwrap_or("a")
        };
        let is_data = state.dice.below(5) > 0;
        let minutes = i64::try_from(state.dice.below(60)).unwrap_or(0) - 10;
        let copies = if state.dice.below(100) < state.profile.lost_notifications { 0 } else { 1 + state.dice.below(2) };
        let step = state.step;
        let Some(table) = state.tables.get_mut(name).filter(|table| !table.is_busy()) else { return };
        let ordinal = table.commit(step, is_data, minutes);
        let etag = table.etag(ordinal);
        state.counts.commits += 1;
        state.tell(format!("commit {name} {ordinal}, notified {copies} times"));
        let job = Job::Notify { table: name.to_owned(), ordinal, etag };
        state.pending.extend(std::iter::repeat_n(job, copies));
    }

    /// History is rolled back, expires or is dropped; a file comes late or is away for a moment.
    fn befall_a_table(&mut self) {
        let until = self.outside.in_seconds(40);
        let mut state = self.outside.state();
        if !state.profile.has_rewrites || !state.may_happen() {
            return;
        }
        let name = state.dice.pick(&REWRITTEN).unwrap_or("r");
        let what = state.dice.below(24);
        let by = 1 + state.dice.below(6) as u64;
        let step = state.step;
        let Some(table) = state.tables.get_mut(name) else { return };
        let newest = table.newest();
        let said = match what {
            _ if table.is_busy() => return,
            0..=6 if table.begin_rollback(by, until) => "is rolled back",
            7 if newest > 0 => {
                table.drop_table(step);
                "is dropped"
            }
            8..=9 if newest > 3 => {
                table.expire(step, by + 1);
                "expires"
            }
            10..=13 if newest > by => {
                table.hide(newest + 1 - by.min(2), step, until);
                "hides a snapshot for a moment"
            }
            _ => return,
        };
        state.tell(format!("table {name} {said}"));
    }

    /// People ask for something.
    fn request(&mut self) {
        let mut state = self.outside.state();
        if !state.may_happen() {
            return;
        }
        let at = state.dice.below(self.names.len());
        let Some(name) = self.names.get(at).cloned() else { return };
        let triggers: Vec<(TriggerKey, Ask)> = state
            .records
            .triggers
            .values()
            .filter_map(|trigger| Some((trigger.key.clone(), job::about(trigger.status())?)))
            .collect();
        let number = state.dice.below(1000) as u64;
        let what = state.dice.below(20);
        let variants = menu::variants(&name).len();
        let is_shifting = menu::is_shifting(&name);
        let request = match what {
            0..=2 => Request::Pause(name),
            3..=6 => Request::Resume(name),
            7 => Request::Switch { is_on: false },
            8..=9 => Request::Switch { is_on: true },
            10..=12 if !triggers.is_empty() => {
                let (key, ask) = triggers[usize::try_from(number).unwrap_or(0) % triggers.len()].clone();
                ask(key)
            }
            13 => Request::Fire { name, request: number % 5 },
            14 => Request::Accept(REWRITTEN[usize::try_from(number).unwrap_or(0) % 3].to_owned()),
            15 => Request::Register(LATER[usize::try_from(number).unwrap_or(0) % 2].to_owned()),
            16 if state.profile.has_rewrites && number.is_multiple_of(3) => Request::Deregister("e".to_owned()),
            16 if state.profile.has_rewrites && number % 3 == 1 => Request::Register("e".to_owned()),
            16 if is_shifting => {
                self.wanted.insert(name.clone(), None);
                Request::Undeclare(name)
            }
            _ => {
                let variant = usize::try_from(number).unwrap_or(0) % variants.max(1);
                self.wanted.insert(name.clone(), Some(variant));
                Request::Declare { name, variant }
            }
        };
        state.tell(format!("asked: {request:?}"));
        state.pending.push(Job::Ask(request));
    }

    /// A check ends, or a backfill begins or ends; what is told comes late, twice, in any order.
    fn writer_tells(&mut self) {
        let mut state = self.outside.state();
        if !state.may_happen() {
            return;
        }
        if state.dice.below(5) == 0 && state.profile.has("backfilled") && self.backfills < BACKFILLS {
            let id = self.backfills;
            self.backfills += 1;
            for has_ended in [false, true] {
                state.pending.push(Job::Backfill { table: "f".to_owned(), id, has_ended });
            }
            return;
        }
        let newest = state.tables.get("q").map_or(0, Table::newest);
        let ordinal = (newest + 2).saturating_sub(state.dice.below(5) as u64);
        let early = self.checked.iter().filter(|check| check.ordinal > newest).count();
        if ordinal == 0 || (ordinal > newest && early >= 6) {
            return;
        }
        self.checks += 1;
        let check = Check { ordinal, run: self.checks, has_passed: state.dice.below(4) > 0 };
        self.checked.push(check);
        state.tell(format!("checked: {check:?}"));
        state.pending.push(Job::Check(check));
    }

    fn time_passes(&mut self) {
        let mut state = self.outside.state();
        if !state.may_happen() {
            return;
        }
        let seconds = match state.dice.below(8) {
            0 => state.dice.below(400),
            1..=3 => state.dice.below(70),
            _ => state.dice.below(12),
        };
        state.tell(format!("{seconds} s pass"));
        if state.dice.below(4) == 0 {
            if state.dice.below(2) == 0 {
                self.outside.items.freeze_indexes();
            } else {
                self.outside.items.thaw_indexes();
            }
        }
        drop(state);
        self.outside.advance(Duration::from_secs(seconds as u64));
    }

    fn scheduler_goes_on(&mut self) {
        let mut state = self.outside.state();
        let what = state.dice.below(40);
        let is_odd = what < 2 && state.profile.scheduler_percent > 0 && state.may_happen();
        let State { ds, dice, .. } = &mut *state;
        match what {
            0 if is_odd => ds.toggle(),
            1 if is_odd => ds.consume(true),
            2..=12 => ds.arrive(dice),
            _ => ds.consume(false),
        }
    }

    fn report(&self, broke_at: Option<u64>) -> Report {
        let mut state = self.outside.state();
        let starts = state.ds.starts();
        let extra = starts.iter().filter(|(_, count)| **count > 1).map(|(trigger, count)| {
            format!("trigger {trigger} has {count} instances: {:?}", state.ds.excuses.get(trigger))
        });
        let extra: Vec<String> = extra.collect();
        let mut counts = state.counts;
        counts.instances = starts.values().sum();
        counts.extra = starts.values().map(|count| count - 1).sum();
        Report {
            wrong: std::mem::take(&mut state.wrong),
            events: std::mem::take(&mut state.events),
            broke_at,
            counts,
            extra,
            story: std::mem::take(&mut state.story),
        }
    }
}
