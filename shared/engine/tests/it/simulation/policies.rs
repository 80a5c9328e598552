//! The same world with targets that ask for more: every version for itself, versions that passed
//! their checks, windows. Beside the faults, verdicts come early, late, twice and contradict each
//! other, passes and sweeps run in between, and another worker acts between two calls.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::ids::AssetId;
use lakebell_domain::policy::Every;
use lakebell_domain::state::PARKED;
use lakebell_domain::target::TargetSpec;
use lakebell_domain::trigger::{Status, Trigger};
use lakebell_engine::dispatch::{Dispatcher, Order};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{self, Facts, Named, Pushed, Receipt};
use lakebell_engine::rules::Records;
use lakebell_engine::watch::Watcher;
use lakebell_engine::{compensate, operate, targets};
use lakebell_testkit::{Op, StartFault, Tap};
use serde_json::{Value, json};

use super::{Run, every_seed};
use crate::support::{Deployment, PROJECT, key, spec, target_id, trace};

const TABLES: [&str; 5] = ["a", "b", "q", "w", "v"];
const TARGETS: [&str; 8] = ["pairs", "apart", "late", "passed", "passing-over", "passed-and", "window", "windows"];
/// Targets with `each`, a group of theirs, and its tables.
const EACH: [(&str, &str, &[&str]); 4] =
    [("pairs", "g", &["a", "b"]), ("apart", "x", &["a"]), ("apart", "y", &["b"]), ("late", "g", &["a", "b"])];
const CHECKS: [&str; 2] = ["rows", "nulls"];
/// Versions whose verdicts an asset keeps, the newest ones.
const KEPT: usize = 8;
/// Fewer than the verdicts that may wait for their commit, so that none is dropped.
const MOST_EARLY: usize = 12;
/// 2026-01-01T00:00:00Z, in milliseconds.
const BEGINNING: i64 = 1_767_225_600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Passed,
    Errored,
    Failed,
}

/// One run of a check. Of two on one version and check the greater one stands: the later run, and
/// of two at the same time the graver one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Check {
    ordinal: u64,
    name: &'static str,
    run: i64,
    found: Found,
}

impl Check {
    fn pushed(self) -> Pushed {
        let Self { ordinal, name, run, found } = self;
        let kind = match found {
            Found::Passed => EventKind::QualityCheckPassed,
            Found::Errored => EventKind::QualityCheckErrored,
            Found::Failed => EventKind::QualityCheckFailed,
        };
        let run_at = Timestamp::from_second(BEGINNING / 1_000 + run).ok();
        let snapshot_id = Some(ordinal.to_string());
        let facts = Facts { snapshot_id, check: Some(name.to_owned()), run_at, ..Facts::default() };
        let id = format!("{ordinal}-{name}-{run}-{found:?}");
        Pushed { id, source: "job".to_owned(), kind, asset: Named::Key(key("q")), time: run_at, facts }
    }
}

/// What was told of the versions of `q`.
#[derive(Debug, Default)]
struct Told {
    sure: BTreeSet<Check>,
    /// Tried, and no answer came yet: may have been recorded or not.
    doubtful: BTreeSet<Check>,
}

impl Told {
    /// The runs that stand, surely told ones only.
    fn standing(&self, ordinal: u64) -> BTreeMap<&'static str, Check> {
        self.sure.iter().filter(|check| check.ordinal == ordinal).map(|check| (check.name, *check)).collect()
    }

    /// Whether the version may have counted as PASSED, whatever became of the doubtful ones.
    fn may_have_passed(&self, ordinal: u64) -> bool {
        let saved = |standing: &Check| {
            let later = self.doubtful.iter().filter(|check| check.ordinal == ordinal && check.name == standing.name);
            later.into_iter().any(|check| check > standing && check.found == Found::Passed)
        };
        let standing = self.standing(ordinal);
        let any_passed = self.sure.iter().chain(&self.doubtful);
        let any_passed = any_passed.filter(|check| check.ordinal == ordinal).any(|check| check.found == Found::Passed);
        any_passed && standing.values().all(|check| check.found == Found::Passed || saved(check))
    }

    /// Whether the newest verdict on a version surely is FAILED, of versions surely visible up to `seen`.
    fn is_surely_blocked(&self, seen: u64) -> bool {
        let ordinals: BTreeSet<u64> = self.sure.iter().chain(&self.doubtful).map(|check| check.ordinal).collect();
        for ordinal in ordinals.into_iter().rev() {
            if self.may_have_passed(ordinal) {
                return false;
            }
            let has_doubts = self.doubtful.iter().any(|check| check.ordinal == ordinal);
            let has_failed = self.standing(ordinal).values().any(|check| check.found == Found::Failed);
            if ordinal <= seen && has_failed {
                return !has_doubts;
            }
        }
        false
    }

    /// The verdicts that an asset keeps, of commits up to `newest`, newest first: PASSED, FAILED
    /// (`Some(false)`) or unknown.
    fn kept(&self, newest: u64) -> impl Iterator<Item = (u64, Option<bool>)> {
        let ordinals: BTreeSet<u64> = self.sure.iter().map(|check| check.ordinal).collect();
        ordinals.into_iter().rev().filter(move |ordinal| *ordinal <= newest).take(KEPT).map(|ordinal| {
            let standing = self.standing(ordinal);
            let any = |found| standing.values().any(|check| check.found == found);
            let is_unknown = any(Found::Errored) && !any(Found::Failed);
            (ordinal, (!is_unknown).then(|| !any(Found::Failed)))
        })
    }
}

struct Policies {
    run: Run,
    told: Told,
    /// Verdicts that were not delivered yet.
    pending: Vec<Check>,
    /// What each table's writers reached: the first watermark and the highest.
    watermarks: BTreeMap<&'static str, (i64, i64)>,
}

fn hours() -> Every {
    serde_json::from_value(json!({"period": "1h", "timeZone": "UTC"})).unwrap()
}

/// A target with one group that needs all, its first dependency and the target itself with more keys.
fn asks(name: &str, tables: &[&str], dependency: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(spec(name, &[("g", json!("all"), tables)])).unwrap();
    for (key, value) in dependency.as_object().unwrap() {
        document["groups"][0]["dependencies"][0][key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

impl Policies {
    async fn begin(seed: u64) -> Self {
        let d = Deployment::with(&TABLES).await;
        let mut pairs = serde_json::to_value(spec("pairs", &[("g", json!("all"), &["a", "b"])])).unwrap();
        pairs["coalesce"] = json!("each");
        let groups = [("x", json!("all"), &["a"][..]), ("y", json!("all"), &["b"][..])];
        let mut apart = serde_json::to_value(spec("apart", &groups)).unwrap();
        apart["coalesce"] = json!("each");
        let mut windows = serde_json::to_value(spec("windows", &[("g", json!("all"), &["w", "v"])])).unwrap();
        for at in 0..2 {
            windows["groups"][0]["dependencies"][at]["every"] = json!(hours());
        }
        for document in [pairs, apart, windows] {
            d.declare(&serde_json::from_value(document).unwrap()).await;
        }
        let passed = json!({"qualityStatus": "PASSED"});
        d.declare(&asks("passed", &["q"], &passed)).await;
        d.declare(&asks("passed-and", &["q", "a"], &passed)).await;
        let over = json!({"qualityStatus": "PASSED", "onFailedVersion": "pass-over"});
        d.declare(&asks("passing-over", &["q"], &over)).await;
        d.declare(&asks("window", &["w"], &json!({"every": hours()}))).await;
        let run = Run::of(seed, d, &TABLES, &TARGETS);
        Self { run, told: Told::default(), pending: Vec::new(), watermarks: BTreeMap::new() }
    }

    async fn step(&mut self) {
        let known: BTreeSet<_> = self.run.before.triggers.keys().cloned().collect();
        let q = self.run.before.assets.get(&self.run.d.ids["q"]);
        let seen = q.and_then(|head| head.state.table.as_ref()).map_or(0, |table| table.position.ordinal.0);
        let mut answered = None;
        match self.run.below(20) {
            0..=1 => self.commit_with_watermark(),
            2 => self.run.commit("q", ""),
            3..=5 => self.check(),
            6..=8 if !self.pending.is_empty() => answered = self.push().await,
            9 if self.run.below(3) == 0 => self.pass().await,
            9 => self.refuse_starts(),
            13 if self.run.below(8) == 0 => self.declare_late().await,
            10 => self.redrive().await,
            11..=12 => self.plan_other_worker(),
            _ => self.run.act().await,
        }
        self.run.check_step();
        // What was told in this step may have come after a claim of another worker.
        let new = self.run.before.triggers.values().filter(|trigger| !known.contains(&trigger.key));
        let mut wrong: Vec<String> = new.filter_map(|trigger| self.never_unchecked(trigger, seen)).collect();
        if let Some(check) = answered {
            self.told.doubtful.remove(&check);
            self.told.sure.insert(check);
        }
        wrong.extend(self.in_order(&self.run.before, false));
        self.run.assert_right(&wrong);
    }

    fn commit_with_watermark(&mut self) {
        let table = ["w", "v"][self.run.below(2)];
        let (_, highest) = self.watermarks.get(table).copied().unwrap_or((BEGINNING, BEGINNING));
        // Some are behind what was there: they take nothing back.
        let minutes = i64::try_from(self.run.below(120)).unwrap() - 20;
        let at = highest + minutes * 60_000;
        let known = self.watermarks.entry(table).or_insert((at, at));
        known.1 = known.1.max(at);
        self.run.commit(table, &format!(r#""watermark":{at}"#));
    }

    /// A check of a version that is there or soon will be ends.
    fn check(&mut self) {
        let newest = self.run.d.tables["q"].newest();
        let ordinal = (newest + self.run.random.below(6)).saturating_sub(3).max(1);
        let found = [Found::Passed, Found::Passed, Found::Passed, Found::Failed, Found::Errored][self.run.below(5)];
        let run = i64::try_from(self.run.below(4)).unwrap();
        let check = Check { ordinal, name: CHECKS[self.run.below(2)], run, found };
        let all: BTreeSet<&Check> = self.pending.iter().chain(&self.told.sure).chain(&self.told.doubtful).collect();
        if ordinal > newest && all.into_iter().filter(|check| check.ordinal > newest).count() >= MOST_EARLY {
            return;
        }
        // Some are never told, some twice.
        for _ in 0..[0, 1, 1, 1, 2][self.run.below(5)] {
            self.pending.push(check);
        }
    }

    /// Pushes a verdict, and says which one was surely recorded. A writer tries until it is answered.
    async fn push(&mut self) -> Option<Check> {
        let check = self.pending.swap_remove(self.run.below(self.pending.len()));
        let is_new = !self.told.sure.contains(&check) && self.told.doubtful.insert(check);
        let ports = self.run.d.world.ports();
        let answer = Box::pin(push::push(&ports, &check.pushed(), &trace())).await;
        self.run.trail.push(format!("push {check:?}: {answer:?}"));
        self.run.revive();
        match answer.map(|accepted| accepted.receipt) {
            Err(_) => self.pending.push(check),
            Ok(Receipt::Looked(Outcome::Ignored(reason))) if reason != PARKED => {
                assert!(reason.contains("newer versions"), "{reason}");
                if is_new {
                    self.told.doubtful.remove(&check);
                }
            }
            Ok(_) => return Some(check),
        }
        None
    }

    async fn pass(&mut self) {
        let ports = self.run.d.world.ports();
        self.run.trail.push("pass and sweep".to_owned());
        let deadline = self.run.d.world.clock.now() + SignedDuration::from_mins(1);
        let _ = compensate::pass(&ports, &trace(), deadline).await;
        let _ = compensate::sweep(&ports, &trace()).await;
        self.run.revive();
    }

    /// A target begins with what came before it, and may be declared by somebody who is not answered.
    async fn declare_late(&mut self) {
        let mut late = serde_json::to_value(spec("late", &[("g", json!("all"), &["a", "b"])])).unwrap();
        late["coalesce"] = json!("each");
        late["startFrom"] = json!("earliest");
        let ports = self.run.d.world.ports();
        let declared = targets::declare(&ports, PROJECT, &serde_json::from_value(late).unwrap(), &trace()).await;
        self.run.trail.push(format!("declare late: {:?}", declared.map(|declared| declared.is_changed)));
        self.run.revive();
    }

    async fn redrive(&mut self) {
        let ports = self.run.d.world.ports();
        for key in self.run.holding() {
            self.run.trail.push(format!("redrive {key}"));
            let _ = operate::redrive(&ports, &key, "ops", &trace()).await;
        }
        self.run.revive();
    }

    /// The next starts fail for good, or have to be tried again later.
    fn refuse_starts(&self) {
        if self.run.below(3) == 0 {
            self.run.d.scheduler.fault(StartFault::Permanent);
        } else {
            (0..self.run.below(4)).for_each(|_| self.run.d.scheduler.fault(StartFault::NoMaster));
        }
    }

    /// Another worker does something between two calls of a later step.
    fn plan_other_worker(&mut self) {
        let ports = self.run.d.world.quiet_ports();
        let tap: Tap = self.run.d.world.tap.clone();
        let op = [Op::Write, Op::Get, Op::Query, Op::Send][self.run.below(4)];
        let nth = 1 + self.run.below(3);
        self.run.messages.extend(self.run.d.world.queue.drain());
        if self.run.below(2) == 0 && !self.run.pending.is_empty() {
            let (table, id) = self.run.pending[self.run.below(self.run.pending.len())];
            let created = self.run.d.created(table, id);
            self.run.trail.push(format!("another worker is told of {table}{id} before {op:?} {nth}"));
            tap.before(op, nth, move || async move {
                let _ = Box::pin(Watcher::new(ports).created(&created, &trace())).await;
            });
        } else if !self.run.messages.is_empty() {
            let message = self.run.messages[self.run.below(self.run.messages.len())].clone();
            let Message::Dispatch { target, trigger, attempt, trace } = message else { return };
            let order = Order { target, trigger, attempt, trace };
            self.run.trail.push(format!("another worker handles {order:?} before {op:?} {nth}"));
            let dispatcher = Dispatcher { ports, scheduler: self.run.d.scheduler.clone() };
            tap.before(op, nth, move || async move {
                let deadline = dispatcher.ports.clock.now() + SignedDuration::from_secs(30);
                let _ = Box::pin(dispatcher.dispatch(&order, deadline)).await;
            });
        }
    }

    /// Rule 4: a version whose checks had not passed is not taken, unless a trigger that is
    /// replaced had taken it; and none below a failed one where that blocks. `seen` was surely read.
    fn never_unchecked(&self, trigger: &Trigger, seen: u64) -> Option<String> {
        let asks = ["passed", "passing-over", "passed-and"].map(target_id);
        let q = self.run.d.ids["q"];
        let range = trigger.ranges.iter().find(|range| range.asset == q)?;
        let to = range.bounds.to.as_ref().filter(|_| asks.contains(&trigger.target))?;
        let replaced = trigger.replaces.as_ref().and_then(|key| self.run.before.triggers.get(key));
        let of_replaced = replaced.and_then(|replaced| replaced.ranges.iter().find(|range| range.asset == q));
        let is_kept = of_replaced.is_some_and(|old| old.bounds.to.as_ref() == Some(to));
        let standing = self.told.standing(to.position.ordinal.0);
        if !is_kept && !self.told.may_have_passed(to.position.ordinal.0) {
            return Some(format!("rule 4: trigger {} took {}, of which {standing:?}", trigger.key, to.snapshot_id));
        }
        let blocks = trigger.target != target_id("passing-over");
        (blocks && self.told.is_surely_blocked(seen)).then(|| format!("rule 4: trigger {} was blocked", trigger.key))
    }

    /// Rule 7 where each version or window stands for itself.
    fn in_order(&self, records: &Records, is_at_rest: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        for (target, group, tables) in EACH {
            let data = |table: &&str| self.run.data.get(*table).cloned().unwrap_or_default();
            let counted: BTreeMap<AssetId, Vec<u64>> =
                tables.iter().map(|table| (self.run.d.ids[*table], data(table))).collect();
            wrong.extend(records.each_in_pairs(&target_id(target), &group.parse().unwrap(), &counted, is_at_rest));
        }
        for (target, tables) in [("window", &["w"][..]), ("windows", &["w", "v"][..])] {
            let marks: Option<Vec<(i64, i64)>> =
                tables.iter().map(|table| self.watermarks.get(table).copied()).collect();
            let marks = marks.unwrap_or_else(|| vec![(BEGINNING, BEGINNING)]);
            let moment = |at: Option<i64>| Timestamp::from_millisecond(at.unwrap()).unwrap();
            let first = moment(marks.iter().map(|(first, _)| *first).min());
            let reached = moment(marks.iter().map(|(_, reached)| *reached).min());
            wrong.extend(records.each_window_once(&target_id(target), &hours(), first, reached, is_at_rest));
        }
        wrong
    }

    /// What writers had begun to tell they tell to the end.
    async fn come_to_rest(&mut self) {
        self.run.d.world.tap.calm();
        self.pending.retain(|check| self.told.doubtful.contains(check));
        while !self.pending.is_empty() {
            if let Some(check) = self.push().await {
                self.told.doubtful.remove(&check);
                self.told.sure.insert(check);
            }
        }
        self.declare_late().await;
        self.run.come_to_rest().await;
    }

    async fn check_rest(&self) {
        self.run.check_rest().await;
        let records = self.run.d.records();
        let mut wrong = self.in_order(&records, true);
        let apart = ["pairs", "apart", "late", "window", "windows"].map(target_id);
        let of_apart = records.triggers.values().filter(|trigger| apart.contains(&trigger.target));
        let unstarted = of_apart.filter(|trigger| !matches!(trigger.status(), Status::Success { .. }));
        wrong.extend(unstarted.map(|trigger| format!("{} is {:?}", trigger.key, trigger.status())));

        // Rule 3 by what was told, whatever the evaluation says.
        let newest = self.run.d.tables["q"].newest();
        let is_blocked = self.told.kept(newest).find_map(|(_, verdict)| verdict) == Some(false);
        let data = self.run.data.get("q").cloned().unwrap_or_default();
        let mut passed = self.told.kept(newest).filter(|(_, verdict)| *verdict == Some(true));
        let due = passed.find(|(ordinal, _)| data.contains(ordinal)).map(|(ordinal, _)| ordinal);
        for (target, is_due) in [("passed", !is_blocked), ("passing-over", true)] {
            let cursor = &records.cursors[&target_id(target)];
            let taken = cursor.taken(&"g".parse().unwrap(), self.run.d.ids["q"]);
            let taken = taken.map(|version| version.position.ordinal.0);
            if is_due && taken < due {
                wrong.push(format!("rule 3: {target} took {taken:?}, and {due:?} passed"));
            }
        }
        self.run.assert_right(&wrong);
    }
}

async fn simulate(seed: u64, percent: u64) {
    let mut policies = Policies::begin(seed).await;
    policies.run.d.world.tap.chance(seed, percent);
    for _ in 0..200 {
        policies.step().await;
    }
    policies.come_to_rest().await;
    policies.check_rest().await;
}

#[test]
fn versions_verdicts_and_windows_are_taken_by_the_rules_whatever_fails() {
    every_seed(16, simulate);
}
