//! What all workers of a simulated deployment share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::{AssetId, TriggerKey};
use lakebell_domain::trigger::Status;
use lakebell_engine::ports::items::Item;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::rules::Records;

use super::dice::Dice;
use super::gates::{self, Backfilling};
use super::job::Job;
use super::lake::Table;
use super::plan::Plan;
use super::profile::Profile;
use super::scheduler::Ds;
use crate::{MemoryItems, MemoryStorage, SimClock};

/// Most lines of the story that are kept: the last ones tell what a failure came from.
const STORY: usize = 20_000;

/// Backfills of one table that are told in a run: one whose start comes late is told from the ends that are kept
/// of the newest, and those are a few more.
pub(super) const BACKFILLS: u64 = 12;

/// Handles to everything outside the engine. Clones share it.
#[derive(Clone)]
pub(super) struct Outside {
    pub(super) items: Arc<MemoryItems>,
    pub(super) storage: Arc<MemoryStorage>,
    pub(super) clock: SimClock,
    pub(super) state: Arc<Mutex<State>>,
}

/// Everything else.
pub(super) struct State {
    pub(super) plan: Plan,
    pub(super) profile: Profile,
    pub(super) step: u64,
    pub(super) dice: Dice,
    /// Set once faults have stopped.
    pub(super) is_calm: bool,
    /// What the functions still have to do: notifications, messages, requests of people.
    pub(super) pending: Vec<Job>,
    pub(super) tables: BTreeMap<String, Table>,
    /// How many backfills of each rewritten table were told.
    backfills: BTreeMap<String, u64>,
    backfilling: Backfilling,
    pub(super) assets: BTreeMap<AssetId, String>,
    pub(super) ds: Ds,
    pub(super) records: Records,
    /// The step of the last write of each head.
    written_at: BTreeMap<AssetId, u64>,
    /// Which worker holds the lease of a trigger.
    leased_by: BTreeMap<TriggerKey, u64>,
    /// Workers in a call that takes long, and until which step.
    pub(super) held_up: BTreeMap<u64, u64>,
    /// The workers that sweep.
    pub(super) sweepers: BTreeSet<u64>,
    /// How often the sweeps have sent a trigger.
    swept: BTreeMap<TriggerKey, u32>,
    pub(super) wrong: Vec<String>,
    /// The steps at which something other than plain progress happened.
    pub(super) events: BTreeSet<u64>,
    pub(super) story: Vec<String>,
    pub(super) counts: Counts,
}

/// What happened in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commits of all tables.
    pub commits: u64,
    /// Triggers that were claimed.
    pub claims: u64,
    /// Workflow instances that were started.
    pub instances: u64,
    /// Instances beyond the first of a trigger, all of them of a kind that the scheduler's contract
    /// makes undecidable.
    pub extra: u64,
    /// Calls to ports that failed, before or after their effect, or were carried out twice.
    pub faults: u64,
    /// Functions that died between two calls.
    pub deaths: u64,
    /// Calls to ports.
    pub calls: u64,
}

impl Counts {
    /// The sum of two.
    pub fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.claims += other.claims;
        self.instances += other.instances;
        self.extra += other.extra;
        self.faults += other.faults;
        self.deaths += other.deaths;
        self.calls += other.calls;
    }
}

impl State {
    /// The call that this worker is in takes long.
    pub(super) fn hold_up(&mut self, worker: u64) {
        let until = self.step + 50 + self.dice.below(500) as u64;
        self.held_up.insert(worker, until);
        self.tell(format!("worker {worker} is held up until step {until}"));
    }

    pub(super) fn new(plan: Plan, profile: Profile) -> Self {
        let seed = plan.seed;
        Self {
            ds: Ds::new(profile.line),
            plan,
            profile,
            step: 0,
            dice: Dice::at(seed, 0),
            is_calm: true,
            pending: Vec::new(),
            tables: BTreeMap::new(),
            backfills: BTreeMap::new(),
            backfilling: Backfilling::default(),
            assets: BTreeMap::new(),
            records: Records::default(),
            written_at: BTreeMap::new(),
            leased_by: BTreeMap::new(),
            held_up: BTreeMap::new(),
            sweepers: BTreeSet::new(),
            swept: BTreeMap::new(),
            wrong: Vec::new(),
            events: BTreeSet::new(),
            story: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// A job that works on a table whose history is rewritten tells of it: that its lag is gone, and as often as the
    /// ends of backfills are kept, that one runs and has ended, in any order. What it tells of a table that is taken
    /// off the register for a while is not kept, so it tells nothing of such a one.
    pub(super) fn evidence_of_rewritten(&mut self, name: &str) {
        if name == "e" {
            return;
        }
        let table = name.to_owned();
        self.pending.push(Job::Lag { table: table.clone(), id: self.step });
        let told = self.backfills.entry(table.clone()).or_default();
        if *told < BACKFILLS {
            let id = *told;
            *told += 1;
            let both = [false, true].map(|has_ended| Job::Backfill { table: table.clone(), id, has_ended });
            self.pending.extend(both);
        }
    }

    /// Begins a step.
    pub(super) fn begin_step(&mut self, step: u64) {
        self.step = step;
        self.dice = Dice::at(self.plan.seed, step);
    }

    /// Whether something out of the ordinary may happen in this step, which is then on record.
    pub(super) fn may_happen(&mut self) -> bool {
        let may = !self.is_calm && self.plan.allows(self.step);
        if may {
            self.events.insert(self.step);
        }
        may
    }

    pub(super) fn tell(&mut self, line: impl std::fmt::Display) {
        if self.plan.tells {
            if self.story.len() >= STORY {
                self.story.remove(0);
            }
            let step = self.step;
            self.story.push(format!("{step:>6} {line}"));
        }
    }

    /// Checks what one write made of these items.
    pub(super) fn wrote(&mut self, worker: u64, items: &[Item]) {
        for item in items {
            self.keeps_to_storage(item);
            self.lease_of(worker, item);
        }
        let again = self.backfilling.written(items);
        self.wrong.extend(again);
        let known: BTreeSet<TriggerKey> = self.records.triggers.keys().cloned().collect();
        match self.records.after_write(items) {
            Ok(wrong) => self.wrong.extend(wrong),
            Err(damaged) => self.wrong.push(format!("rule 5: a written item cannot be read: {damaged}")),
        }
        let claimed = |item: &Item| {
            let key = item.key.pk.strip_prefix("K#").and_then(|key| TriggerKey::new(key).ok())?;
            (!known.contains(&key)).then_some(key)
        };
        for key in items.iter().filter_map(claimed) {
            self.counts.claims += 1;
            let said = self.records.triggers.get(&key).map(|trigger| {
                format!("claimed for {} ({:?}) at {}", trigger.target, trigger.reason, trigger.claimed_at)
            });
            self.tell(format!("trigger {key} is {}", said.unwrap_or_default()));
            let Some(trigger) = self.records.triggers.get(&key) else { continue };
            let early = gates::closed(&self.records, trigger);
            self.wrong.extend(early.into_iter().chain(self.backfilling.held(trigger)));
        }
    }

    /// Checks a message that is sent: it names a trigger that is on record, and those of the sweep are
    /// counted there.
    pub(super) fn sent(&mut self, worker: u64, message: &Message) {
        let Message::Dispatch { trigger, .. } = message else { return };
        let Some(known) = self.records.triggers.get(trigger) else {
            self.wrong.push(format!("rule 4: a message names trigger {trigger}, which nobody has claimed"));
            return;
        };
        if self.sweepers.contains(&worker) {
            let sent = self.swept.entry(trigger.clone()).or_default();
            *sent += 1;
            if *sent >= known.sends.max(1) + u32::from(known.has_ended()) {
                self.wrong
                    .push(format!("rule 5: the sweep has sent trigger {trigger} {sent} times, and counted fewer"));
            }
        }
    }

    /// Rule 4: the version that a write advances an asset to was in storage after the state that it
    /// builds on had been written. A commit that was withdrawn before never comes back.
    fn keeps_to_storage(&mut self, item: &Item) {
        let Some(id) = item.key.pk.strip_prefix("A#").filter(|_| item.key.sk == "0") else { return };
        let Ok(id) = id.parse::<AssetId>() else { return };
        let Ok(head) = serde_json::from_str::<lakebell_engine::records::AssetHead>(&item.doc) else { return };
        let since = self.written_at.insert(id, self.step).unwrap_or(0);
        let before = self.records.assets.get(&id).and_then(|head| head.state.table.as_ref());
        let Some(now) = head.state.table.as_ref().filter(|now| before != Some(now)) else { return };
        let Some(table) = self.tables.get(head.key.table()) else { return };
        if !table.was_there(now.position.ordinal.0, &now.fingerprint.to_string(), since) {
            self.wrong.push(format!("rule 4: {} advanced to {}, which was gone already", head.key, now.position));
        }
    }

    fn lease_of(&mut self, worker: u64, item: &Item) {
        let Some(key) = item.key.pk.strip_prefix("K#").and_then(|key| TriggerKey::new(key).ok()) else { return };
        let Ok(trigger) = serde_json::from_str::<lakebell_domain::trigger::Trigger>(&item.doc) else { return };
        match trigger.status() {
            Status::Leased { .. } => {
                let was = self.records.triggers.get(&key).map(|was| was.attempt);
                if was.is_none_or(|was| was < trigger.attempt) {
                    self.leased_by.insert(key, worker);
                }
            }
            _ => {
                self.leased_by.remove(&key);
            }
        }
    }

    /// A function that ended well has left nothing under a lease of its own.
    pub(super) fn ended_well(&mut self, worker: u64) {
        let left: Vec<String> =
            self.leased_by.iter().filter(|(_, by)| **by == worker).map(|(key, _)| key.to_string()).collect();
        for key in left {
            self.wrong.push(format!("rule 3: a run ended well and left trigger {key} leased"));
        }
    }

    /// A worker that is gone holds its leases no more: they run out.
    pub(super) fn died(&mut self, worker: u64) {
        self.leased_by.retain(|_, by| *by != worker);
    }
}

impl Outside {
    pub(super) fn new(plan: Plan, profile: Profile) -> Self {
        Self {
            items: Arc::new(MemoryItems::new()),
            storage: Arc::new(MemoryStorage::new()),
            clock: SimClock::default(),
            state: Arc::new(Mutex::new(State::new(plan, profile))),
        }
    }

    pub(super) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        crate::lock(&self.state)
    }

    pub(super) fn now(&self) -> Timestamp {
        lakebell_engine::ports::time::Clock::now(&self.clock)
    }

    pub(super) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(super) fn in_seconds(&self, seconds: i64) -> Timestamp {
        self.now() + SignedDuration::from_secs(seconds)
    }
}
