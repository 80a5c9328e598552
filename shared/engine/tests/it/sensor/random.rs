//! Random polls, commits and faults: whatever fails, a run is answered once, and every combination goes
//! to one run. A failing run prints its seed; `LAKEBELL_SIM_SEED` and `LAKEBELL_SIM_RUNS` choose others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lakebell_domain::ids::TriggerKey;
use lakebell_engine::rules::Records;
use lakebell_engine::watch::Watcher;
use lakebell_engine::{compensate, operate};
use lakebell_testkit::SeededRandom;
use serde_json::json;

use super::{Answer, ask_of, run_of, waiting};
use crate::support::{Deployment, target_id, trace};

const TABLES: [&str; 2] = ["a", "b"];

struct Run {
    d: Deployment,
    random: SeededRandom,
    /// What each run was told; the same for ever.
    told: BTreeMap<(i64, u32), TriggerKey>,
    before: Records,
}

impl Run {
    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    async fn poll(&mut self) {
        let (instance, number) = (1 + self.below(12).cast_signed(), 1 + u32::try_from(self.below(2)).unwrap());
        let seconds = [0, 0, 20][usize::try_from(self.below(3)).unwrap()];
        let asked = ask_of(run_of(instance, number));
        if let Ok(Answer::Ready { trigger, .. }) = self.d.try_poll(&asked, &self.d.world.ports(), seconds).await {
            let told = self.told.entry((instance, number)).or_insert_with(|| trigger.key.clone());
            assert_eq!(*told, trigger.key, "run {instance}/{number} was told two things");
            assert_eq!(trigger.sensor.unwrap().taken_by, Some(run_of(instance, number)));
        }
        self.d.world.tap.revive();
    }

    async fn act(&mut self) {
        match self.below(8) {
            0..=2 => {
                let table = TABLES[usize::try_from(self.below(2)).unwrap()];
                let id = self.d.table(table).commit("APPEND", 1);
                // Some notifications are lost.
                if self.below(4) > 0 {
                    let _ = self.d.try_notify(table, id).await;
                }
                if self.d.world.tap.revive() {
                    self.d.watcher = Watcher::new(self.d.world.ports());
                }
            }
            3..=5 => self.poll().await,
            6 => {
                let ports = self.d.world.ports();
                let request = format!("r{}", self.below(1_000));
                let _ = match self.below(4) {
                    0 => operate::pause(&ports, &target_id("t"), "ana").await.map(|()| None),
                    1 => operate::fire(&ports, &target_id("t"), &request, &trace()).await.map(|_| None),
                    _ => operate::resume(&ports, &target_id("t"), &trace()).await,
                };
                self.d.world.tap.revive();
            }
            _ => {
                self.d.world.clock.advance(Duration::from_secs(self.below(120)));
                let _ = compensate::sweep(&self.d.world.ports(), &trace()).await;
                for message in self.d.world.queue.drain() {
                    let _ = self.d.carry(&message).await;
                }
                self.d.world.tap.revive();
            }
        }
        let records = self.d.records();
        let mut wrong = records.monotone_since(&self.before);
        wrong.extend(records.in_order());
        assert!(wrong.is_empty(), "{wrong:#?}");
        self.before = records;
    }

    /// Faults stop, and fresh instances poll until nothing is left.
    async fn come_to_rest(&mut self) {
        self.d.world.tap.calm();
        let ports = self.d.world.quiet_ports();
        operate::resume(&ports, &target_id("t"), &trace()).await.unwrap();
        for table in TABLES {
            let newest = self.d.tables[table].newest();
            if newest > 0 {
                self.d.notify(table, newest).await;
            }
        }
        for instance in 1_000.. {
            match self.d.try_poll(&ask_of(run_of(instance, 1)), &ports, 0).await.unwrap() {
                Answer::Ready { trigger, .. } => {
                    self.told.insert((instance, 1), trigger.key);
                }
                Answer::NotYet { .. } => break,
            }
        }
    }

    fn check_rest(&self) {
        let records = self.d.records();
        let mut wrong = records.in_order();
        wrong.extend(records.ranges_tile(&BTreeMap::new()));
        wrong.extend(records.nothing_left(&[]));
        let committed = TABLES.map(|table| (self.d.ids[table], self.d.tables[table].committed.clone())).into();
        wrong.extend(records.never_invented(&committed));
        assert!(wrong.is_empty(), "{wrong:#?}");
        let keys: BTreeSet<&TriggerKey> = self.told.values().collect();
        assert_eq!(keys.len(), self.told.len(), "two runs were told the same");
        // A run whose answers were all lost took something, too: nobody else may have it.
        let taken = records.triggers.values().filter(|trigger| trigger.instance.is_some());
        let by_run: BTreeMap<_, _> = taken.map(|trigger| (trigger.key.clone(), trigger.sensor.clone())).collect();
        assert!(keys.iter().all(|key| by_run.contains_key(*key)));
        assert_eq!(self.d.keep_answers().len(), by_run.len(), "an answer for each");
        assert_eq!(self.d.scheduler.start_calls(), 0);
    }
}

async fn run(seed: u64, percent: u64) {
    let d = Deployment::with(&TABLES).await;
    let coalesce = ["newest", "newest", "each"][usize::try_from(seed % 3).unwrap()];
    d.declare(&waiting(&TABLES, &json!({"coalesce": coalesce, "timeoutMinutes": 1}))).await;
    let before = d.records();
    let mut run = Run { d, random: SeededRandom::new(seed), told: BTreeMap::new(), before };
    run.d.world.tap.chance(seed, percent);
    for _ in 0..80 {
        run.act().await;
    }
    run.come_to_rest().await;
    run.check_rest();
}

#[test]
fn a_run_is_answered_once_and_a_combination_goes_to_one_run() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or);
    let first = number("LAKEBELL_SIM_SEED", 1);
    for seed in first..first + number("LAKEBELL_SIM_RUNS", 30) {
        let percent = [0, 2, 10, 25][usize::try_from(seed % 4).unwrap()];
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(seed, percent));
        }));
        assert!(outcome.is_ok(), "run again with LAKEBELL_SIM_SEED={seed} LAKEBELL_SIM_RUNS=1");
    }
}
