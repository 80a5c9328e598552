//! Random runs with faults: calls fail before or after their effect, answers are lost, functions
//! die between two calls, notifications come twice, late or never, messages come again. The rules
//! are checked at every step and at rest. A failing run prints its seed.

mod policies;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use lakebell_domain::ids::TriggerKey;
use lakebell_domain::reason::Verdict;
use lakebell_domain::trigger::Status;
use lakebell_engine::ports::items::Key;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::rules::Records;
use lakebell_engine::watch::Watcher;
use lakebell_engine::{compensate, operate};
use lakebell_testkit::{SeededRandom, StartFault};
use serde_json::json;

use crate::support::{Deployment, spec, target_id, trace};

const TABLES: [&str; 3] = ["a", "b", "c"];
const TARGETS: [&str; 4] = ["both", "any", "alternatives", "single"];

struct Run {
    d: Deployment,
    random: SeededRandom,
    tables: &'static [&'static str],
    targets: &'static [&'static str],
    /// The commits of each table that change data, in order.
    data: BTreeMap<&'static str, Vec<u64>>,
    /// Notifications that were not delivered yet.
    pending: Vec<(&'static str, u64)>,
    /// Messages that were not handled yet; handled ones may come again.
    messages: Vec<Message>,
    before: Records,
    /// The items that `before` was read from, by their keys: only what changed is read anew.
    items: BTreeMap<Key, u64>,
    trail: Vec<String>,
}

impl Run {
    async fn begin(seed: u64) -> Self {
        let d = Deployment::with(&TABLES).await;
        d.declare(&spec("both", &[("g", json!("all"), &["a", "b"])])).await;
        d.declare(&spec("any", &[("g", json!("any"), &["b", "c"])])).await;
        d.declare(&spec("alternatives", &[("x", json!("all"), &["a", "b"]), ("y", json!("all"), &["b", "c"])])).await;
        d.declare(&spec("single", &[("g", json!("all"), &["c"])])).await;
        Self::of(seed, d, &TABLES, &TARGETS)
    }

    fn of(seed: u64, d: Deployment, tables: &'static [&'static str], targets: &'static [&'static str]) -> Self {
        let before = d.records();
        Self {
            d,
            random: SeededRandom::new(seed),
            tables,
            targets,
            data: BTreeMap::new(),
            pending: Vec::new(),
            messages: Vec::new(),
            before,
            items: BTreeMap::new(),
            trail: Vec::new(),
        }
    }

    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap()
    }

    async fn step(&mut self) {
        self.act().await;
        self.check_step();
    }

    async fn act(&mut self) {
        match self.below(10) {
            0..=2 => {
                let table = self.tables[self.below(self.tables.len())];
                self.commit(table, "");
            }
            3..=5 if !self.pending.is_empty() => {
                let (table, id) = self.pending.swap_remove(self.below(self.pending.len()));
                self.trail.push(format!("notify {table}{id}"));
                if self.d.try_notify(table, id).await.is_err() {
                    self.pending.push((table, id));
                }
                self.revive();
            }
            6..=8 => {
                self.messages.extend(self.d.world.queue.drain());
                if !self.messages.is_empty() {
                    let message = self.messages[self.below(self.messages.len())].clone();
                    self.trail.push(format!("handle {message:?}"));
                    let handled = self.d.carry(&message).await;
                    self.revive();
                    if handled.is_ok() && self.below(3) > 0 {
                        self.messages.retain(|other| *other != message);
                    }
                }
            }
            _ => {
                let faults = [
                    StartFault::TakesEffectThenTimesOut,
                    StartFault::TimesOut,
                    StartFault::NoMaster,
                    StartFault::Permanent,
                ];
                if self.below(4) == 0 {
                    self.d.scheduler.fault(faults[self.below(4)]);
                }
                self.d.world.clock.advance(Duration::from_secs(self.random.below(120)));
            }
        }
    }

    /// Commits, with further fields of the snapshot file.
    fn commit(&mut self, table: &'static str, more: &str) {
        let kind = if self.below(5) == 0 { "COMPACT" } else { "APPEND" };
        let id = self.d.table(table).commit_with(kind, 1, more);
        self.trail.push(format!("commit {table}{id} {kind} {more}"));
        if kind != "COMPACT" {
            self.data.entry(table).or_default().push(id);
        }
        // Some notifications are lost, some come twice.
        for _ in 0..[0, 1, 1, 2][self.below(4)] {
            self.pending.push((table, id));
        }
    }

    /// A dead function is replaced by a fresh one, with an empty memory.
    fn revive(&mut self) {
        if self.d.world.tap.revive() {
            self.d.watcher = Watcher::new(self.d.world.ports());
            self.trail.push("died".to_owned());
        }
    }

    fn check_step(&mut self) {
        let mut records = self.before.clone();
        for item in self.d.world.items.dump() {
            if self.items.get(&item.key) != Some(&item.rev) {
                records.take_in(&item).expect("readable records");
                self.items.insert(item.key, item.rev);
            }
        }
        let mut wrong = records.monotone_since(&self.before);
        wrong.extend(records.in_order());
        self.before = records;
        self.assert_right(&wrong);
    }

    fn assert_right(&self, wrong: &[String]) {
        assert!(wrong.is_empty(), "{wrong:#?}\nafter {:#?}", self.trail);
    }

    /// The failed triggers that hold their target until a person starts them anew.
    fn holding(&self) -> Vec<TriggerKey> {
        let records = self.d.records();
        let open = records.cursors.values().filter_map(|cursor| records.triggers.get(cursor.open.as_ref()?));
        open.filter(|trigger| matches!(trigger.status(), Status::Failed { .. }))
            .map(|trigger| trigger.key.clone())
            .collect()
    }

    /// Faults stop; the clock's passes and sweeps do the rest, with every message that was still on
    /// its way lost. A person redrives what holds a target.
    async fn come_to_rest(&mut self) {
        self.d.world.tap.calm();
        self.d.watcher = Watcher::new(self.d.world.ports());
        self.d.world.queue.drain();
        let ports = self.d.world.quiet_ports();
        for _ in 0..12 {
            // The longest pauses: between two sends of a trigger, and of a trigger that waits.
            self.d.world.clock.advance(Duration::from_mins(61));
            let deadline = self.d.world.clock.now() + SignedDuration::from_mins(1);
            assert!(compensate::pass(&ports, &trace(), deadline).await.unwrap().is_complete);
            compensate::sweep(&ports, &trace()).await.unwrap();
            for key in self.holding() {
                operate::redrive(&ports, &key, "ops", &trace()).await.unwrap();
            }
            for _ in 0..10 {
                for message in self.d.world.queue.drain() {
                    self.d.carry(&message).await.unwrap();
                }
            }
        }
    }

    async fn check_rest(&self) {
        let records = self.d.records();
        let mut ready = Vec::new();
        for target in self.targets {
            if self.d.why(target).await.verdict == Verdict::Ready {
                ready.push(target_id(target));
            }
        }
        let mut wrong = records.nothing_left(&ready);
        wrong.extend(records.in_order());
        let committed =
            self.tables.iter().map(|table| (self.d.ids[*table], self.d.tables[*table].committed.clone())).collect();
        wrong.extend(records.never_invented(&committed));
        wrong.extend(records.ranges_tile(&BTreeMap::new()));
        let starts: Vec<_> = self.d.scheduler.instances().into_iter().map(|instance| instance.trigger).collect();
        wrong.extend(Records::started_once(&starts));
        for table in self.tables {
            let newest = self.d.tables[*table].newest();
            if self.d.head(table).state.position().ordinal.0 != newest {
                wrong
                    .push(format!("rule 3: {table} is at {} and not at {newest}", self.d.head(table).state.position()));
            }
        }
        self.assert_right(&wrong);
    }
}

async fn run(seed: u64, steps: usize, percent: u64) {
    let mut run = Run::begin(seed).await;
    run.d.world.tap.chance(seed, percent);
    for _ in 0..steps {
        run.step().await;
    }
    run.come_to_rest().await;
    run.check_rest().await;
}

/// Seeds from `LAKEBELL_SIM_SEED` on, as many as `LAKEBELL_SIM_RUNS`.
fn every_seed<F: Future<Output = ()>>(runs: u64, simulate: impl Fn(u64, u64) -> F) {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or);
    let first = number("LAKEBELL_SIM_SEED", 1);
    for seed in first..first + number("LAKEBELL_SIM_RUNS", runs) {
        let percent = [0, 2, 10, 25][usize::try_from(seed % 4).unwrap()];
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(simulate(seed, percent));
        }));
        assert!(outcome.is_ok(), "run again with LAKEBELL_SIM_SEED={seed} LAKEBELL_SIM_RUNS=1");
    }
}

#[test]
fn the_rules_hold_whatever_fails() {
    every_seed(60, |seed, percent| run(seed, 120, percent));
}
