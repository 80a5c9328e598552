//! A target with its assets and triggers, and what happens to them: as Lakebell records it, and as it was.

use std::collections::BTreeMap;

use lakebell_domain::cursor::{Paused, Taken, TargetCursor};
use lakebell_domain::evaluation::{AssetView, ClaimPlan, Inputs};
use lakebell_domain::ids::{AssetId, TriggerKey};
use lakebell_domain::state::{AssetState, Evidence};
use lakebell_domain::target::Target;
use lakebell_domain::trigger::{Arrow, Decision, Status, Trigger, WaitReason};
use lakebell_domain::version::Position;
use proptest::sample::Index;

use crate::reference::{Happened, History, Memory, Slot};
use crate::support::{Judged, asset_id, at, commit, judge, position, sighting, version};

/// How many assets there are.
pub(crate) const ASSETS: u128 = 3;

/// A target, its assets, and what has happened to them: as Lakebell records it, and as it was.
pub(crate) struct World {
    pub(crate) target: Target,
    pub(crate) cursor: TargetCursor,
    pub(crate) states: BTreeMap<AssetId, AssetState>,
    pub(crate) triggers: BTreeMap<TriggerKey, Trigger>,
    pub(crate) histories: BTreeMap<AssetId, History>,
    pub(crate) memory: Memory,
    /// The triggers that are through, in order.
    pub(crate) through: Vec<TriggerKey>,
    pub(crate) clock: i64,
}

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Commit { asset: u128, kind: &'static str, skip: u64 },
    FirstRead { asset: u128 },
    Sight { asset: u128 },
    Withdraw { asset: u128 },
    Accept { asset: u128, first: u64, kinds: Vec<&'static str> },
    Registration { asset: u128 },
    Pause,
    Switch,
    Claim,
    Move(Index),
}

impl World {
    /// Every asset is read and empty.
    pub(crate) fn new(target: Target) -> Self {
        let history = History { is_registered: true, ..History::default() };
        let ids = || (0..ASSETS).map(asset_id);
        Self {
            target,
            cursor: TargetCursor::default(),
            states: ids().map(|id| (id, AssetState::default())).collect(),
            triggers: BTreeMap::new(),
            histories: ids().map(|id| (id, history.clone())).collect(),
            memory: Memory::default(),
            through: Vec::new(),
            clock: 0,
        }
    }

    fn tell(&mut self, asset: u128, evidence: &Evidence) {
        let state = self.states.get_mut(&asset_id(asset)).unwrap();
        *state = state.apply(evidence, at(self.clock)).state;
    }

    fn history(&mut self, asset: u128) -> &mut History {
        self.histories.get_mut(&asset_id(asset)).unwrap()
    }

    pub(crate) fn first_read(&mut self, asset: u128) {
        let history = self.history(asset);
        if !history.is_read {
            history.is_read = true;
            history.baseline = history.commits.last().map(|commit| commit.position);
            let unread: Vec<_> = history.commits.clone();
            let found = unread.iter().map(|commit| crate::support::commit(commit.position.ordinal.0, &commit.kind));
            self.tell(asset, &Evidence::FirstRead(found.collect()));
        }
    }

    /// A commit that Lakebell reads at once, unless it has never read the table or holds it.
    pub(crate) fn commit(&mut self, asset: u128, kind: &str, skip: u64) {
        let history = self.history(asset);
        if history.is_held {
            return;
        }
        let last = history.commits.iter().rfind(|commit| commit.position.epoch.0 == history.epoch);
        let ordinal = last.map_or(0, |commit| commit.position.ordinal.0) + 1 + skip;
        let commit = commit(ordinal, kind);
        let position = position(history.epoch, ordinal);
        history.commits.push(Happened { position, kind: kind.to_owned(), changes_data: commit.changes_data });
        if history.is_read {
            self.tell(asset, &Evidence::Commit(Box::new(commit)));
        }
    }

    /// The group counts what comes after this.
    pub(crate) fn start_from(&mut self, group: usize, asset: u128, position: Position) {
        let name = self.target.groups[group].name.clone();
        let taken = Taken { version: Some(version(position.epoch.0, position.ordinal.0)), ..Taken::default() };
        self.cursor.take(&name, asset_id(asset), &taken);
        self.memory.start_from(&name, asset_id(asset), position);
    }

    fn sight(&mut self, asset: u128) {
        let history = self.history(asset);
        let Some(newest) = history.commits.last().map(|commit| commit.position) else { return };
        if history.is_read {
            history.is_held = true;
            let seen = sighting(&version(newest.epoch.0, newest.ordinal.0), at(self.clock));
            self.tell(asset, &Evidence::RewriteSighted(seen));
        }
    }

    fn accept(&mut self, asset: u128, first: u64, kinds: &[&str]) {
        let history = self.history(asset);
        if !history.is_held {
            return;
        }
        history.is_held = false;
        history.epoch += 1;
        let commits: Vec<_> = (first..).zip(kinds).map(|(ordinal, kind)| commit(ordinal, kind)).collect();
        for commit in &commits {
            let position = position(history.epoch, commit.ordinal.0);
            let kind = commit.kind.0.clone();
            history.commits.push(Happened { position, kind, changes_data: commit.changes_data });
        }
        self.tell(asset, &Evidence::RewriteAccepted(commits));
    }

    pub(crate) fn evaluate(&self) -> Judged {
        let trigger = |key: &Option<TriggerKey>| key.as_ref().and_then(|key| self.triggers.get(key));
        let views = self.states.iter().map(|(id, state)| {
            let is_registered = self.histories[id].is_registered;
            (*id, AssetView { is_registered, ..AssetView::of(7, Some(state)) })
        });
        judge(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &views.collect(),
            open: trigger(&self.cursor.open),
            failed: trigger(&self.cursor.failed),
            switched_off: None,
            now: at(self.clock),
        })
    }

    /// Claims what is ready; the reference takes note of what it thinks was claimed.
    pub(crate) fn claim(&mut self) -> Option<TriggerKey> {
        let ClaimPlan { claim, cursor } = self.evaluate().plan?;
        let combination = self.memory.evaluate(&self.target, &self.histories).expect("the reference sees nothing");
        self.memory.claimed(&self.target, &self.histories, combination);
        let key = claim.key.clone();
        let replaced = claim.inherits.as_ref().map(|inherits| inherits.from.clone());
        let trace = "t".parse().unwrap();
        let trigger = Trigger::claimed(&self.target, 1, claim, trace, at(self.clock), at(self.clock + 60));
        if let Some(replaced) = replaced {
            let by = key.clone();
            let ended = self.triggers[&replaced].apply(&Arrow::Supersede { by }, at(self.clock)).unwrap();
            self.triggers.insert(replaced, ended);
        }
        assert!(!self.triggers.contains_key(&key), "one combination was claimed twice");
        self.triggers.insert(key.clone(), trigger);
        self.cursor = cursor;
        self.note_slot();
        Some(key)
    }

    /// The arrow, and what the engine does to the cursor with it.
    pub(crate) fn follow(&mut self, key: &TriggerKey, arrow: &Arrow) {
        let after = self.triggers[key].apply(arrow, at(self.clock)).unwrap();
        match after.status() {
            Status::Success { .. } | Status::Skipped { .. } => {
                self.cursor.open = None;
                self.memory.settled();
                self.through.push(key.clone());
            }
            Status::Failed { .. } => {
                self.cursor.open = None;
                self.cursor.failed = Some(key.clone());
            }
            _ => {
                self.cursor.open = Some(key.clone());
                self.cursor.failed = None;
            }
        }
        self.triggers.insert(key.clone(), after);
        self.note_slot();
    }

    pub(crate) fn open(&self) -> Option<&Trigger> {
        self.cursor.open.as_ref().map(|key| &self.triggers[key])
    }

    fn note_slot(&mut self) {
        self.memory.slot = match self.open().map(Trigger::status) {
            None => Slot::Free,
            Some(Status::Waiting { .. }) => Slot::Waiting,
            Some(_) => Slot::Busy,
        };
    }

    pub(crate) fn step(&mut self, step: &Step) {
        self.clock += 10;
        match step {
            Step::Commit { asset, kind, skip } => self.commit(*asset, kind, *skip),
            Step::FirstRead { asset } => self.first_read(*asset),
            Step::Sight { asset } => self.sight(*asset),
            Step::Withdraw { asset } => {
                self.history(*asset).is_held = false;
                self.tell(*asset, &Evidence::RewriteWithdrawn);
            }
            Step::Accept { asset, first, kinds } => self.accept(*asset, *first, kinds),
            Step::Registration { asset } => self.history(*asset).is_registered ^= true,
            Step::Pause => {
                let paused = Paused { since: at(self.clock), by: "ops".to_owned() };
                self.cursor.paused = if self.cursor.paused.is_some() { None } else { Some(paused) };
            }
            Step::Switch => self.target.enabled ^= true,
            Step::Claim => drop(self.claim()),
            Step::Move(choice) => self.move_on(*choice),
        }
        self.memory.is_off = self.cursor.paused.is_some() || !self.target.enabled;
    }

    /// The open trigger, or else the failed one, goes along some arrow.
    fn move_on(&mut self, choice: Index) {
        let Some(key) = self.cursor.open.clone().or_else(|| self.cursor.failed.clone()) else { return };
        let reason = WaitReason { code: "BACK_OFF".to_owned(), detail: "503".to_owned() };
        let decide = |decision| Arrow::Decide { decision, by: "ops".to_owned() };
        let (code, detail) = ("X".to_owned(), "x".to_owned());
        let candidates = [
            Arrow::Lease { until: at(self.clock + 30) },
            Arrow::Wake,
            Arrow::Succeed { instance: None },
            Arrow::Wait { reason, due_at: at(self.clock), refused: true },
            Arrow::LoseSight { code: code.clone(), detail: detail.clone(), check_at: at(self.clock) },
            Arrow::Fail { code, detail: detail.clone() },
            Arrow::Hold { detail },
            decide(Decision::Started(None)),
            decide(Decision::Absent),
            decide(Decision::Failed),
            Arrow::Redrive { by: "ops".to_owned() },
            Arrow::Skip { why: "operator".to_owned() },
        ];
        let trigger = &self.triggers[&key];
        let legal: Vec<_> =
            candidates.into_iter().filter(|arrow| trigger.apply(arrow, at(self.clock)).is_ok()).collect();
        self.follow(&key, choice.get(&legal));
    }
}

pub(crate) fn positions(bounds: &lakebell_domain::trigger::Bounds) -> (Option<Position>, Option<Position>) {
    (bounds.from.as_ref().map(|version| version.position), bounds.to.as_ref().map(|version| version.position))
}
