//! The tables of a simulation, with everything that truly happened to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lakebell_engine::rules::Committed;

use crate::{MemoryStorage, PaimonTable};

/// The bucket of all tables.
pub(super) const BUCKET: &str = "lake";

/// A commit that is, or was, in storage.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) ordinal: u64,
    pub(super) uuid: String,
    pub(super) is_data: bool,
    pub(super) watermark: Option<i64>,
    /// The steps between which its file was there; the last one is open while it is.
    stays: Vec<(u64, Option<u64>)>,
}

impl Commit {
    fn is_there(&self) -> bool {
        self.stays.last().is_some_and(|(_, until)| until.is_none())
    }

    /// Whether its file was there at some step since `since`.
    fn was_there(&self, since: u64) -> bool {
        self.stays.iter().any(|(_, until)| until.is_none_or(|until| until >= since))
    }
}

/// A file that is away for a moment: an upload that comes late, or a deletion that is taken back.
struct Hidden {
    ordinal: u64,
    bytes: Vec<u8>,
    until: jiff::Timestamp,
}

/// A table and its history.
pub(super) struct Table {
    pub(super) name: String,
    paimon: PaimonTable,
    /// Every commit that ever was, in the order of their births.
    commits: Vec<Commit>,
    /// How often committed history was really withdrawn.
    pub(super) rewrites: u32,
    /// A rollback under way: to this snapshot, and until when at the latest.
    rolling: Option<(u64, jiff::Timestamp)>,
    hidden: Option<Hidden>,
    storage: Arc<MemoryStorage>,
    highest: i64,
}

impl Table {
    pub(super) fn new(storage: &Arc<MemoryStorage>, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            paimon: PaimonTable::new(Arc::clone(storage), BUCKET, &format!("wh/ods_db.db/{name}")),
            commits: Vec::new(),
            rewrites: 0,
            rolling: None,
            hidden: None,
            storage: Arc::clone(storage),
            // 2026-01-01T00:00:00Z in milliseconds.
            highest: 1_767_225_600_000,
        }
    }

    pub(super) fn location(&self) -> String {
        self.paimon.location()
    }

    pub(super) fn key(&self, ordinal: u64) -> String {
        self.paimon.key(ordinal)
    }

    /// The newest snapshot id; 0 for none.
    pub(super) const fn newest(&self) -> u64 {
        self.paimon.newest()
    }

    /// Whether a writer is in the middle of something.
    pub(super) const fn is_busy(&self) -> bool {
        self.rolling.is_some() || self.hidden.is_some()
    }

    /// Commits data or a compaction, with a watermark that lies `minutes` beyond the highest one so
    /// far, also a negative number of them.
    pub(super) fn commit(&mut self, step: u64, is_data: bool, minutes: i64) -> u64 {
        let watermark = self.highest + minutes * 60_000;
        self.highest = self.highest.max(watermark);
        let more = format!(r#""watermark":{watermark}"#);
        let ordinal = self.paimon.commit_with(if is_data { "APPEND" } else { "COMPACT" }, 1, &more);
        let uuid = self.paimon.newest_uuid().to_owned();
        let stays = vec![(step, None)];
        self.commits.push(Commit { ordinal, uuid, is_data, watermark: Some(watermark), stays });
        ordinal
    }

    /// Begins a rollback by `by` snapshots that takes until then; false where there is nothing to roll
    /// back to. One that stood still for longer than rewrites settle would be two.
    pub(super) fn begin_rollback(&mut self, by: u64, until: jiff::Timestamp) -> bool {
        let to = self.newest().saturating_sub(by);
        let can = to > 0 && !self.is_busy() && self.current(to).is_some();
        if can {
            self.rolling = Some((to, until));
            self.rewrites += 1;
        }
        can
    }

    /// One step of a rollback under way: the newest snapshot vanishes.
    pub(super) fn go_on(&mut self, step: u64) {
        let Some((to, _)) = self.rolling else { return };
        if self.newest() > to {
            self.end_stay(self.newest(), step);
            self.paimon.rollback_to(self.newest() - 1);
        }
        if self.newest() <= to {
            self.rolling = None;
        }
    }

    /// Drops the table; the next commit is the first of another one.
    pub(super) fn drop_table(&mut self, step: u64) {
        for ordinal in 1..=self.newest() {
            self.end_stay(ordinal, step);
        }
        self.rewrites += u32::from(self.newest() > 0);
        self.paimon.drop_table();
        self.highest = 1_767_225_600_000;
    }

    /// Expires all but the newest `kept` snapshots.
    pub(super) fn expire(&mut self, step: u64, kept: u64) {
        let first = self.newest().saturating_sub(kept) + 1;
        for ordinal in 1..first {
            self.end_stay(ordinal, step);
        }
        self.paimon.expire_below(first);
    }

    /// Takes a snapshot away for a moment, where an older one stays: without one nobody can tell that from
    /// an expiry. Once: moments add up where nobody looks in between, to more than the grace of what is missing.
    pub(super) fn hide(&mut self, ordinal: u64, step: u64, until: jiff::Timestamp) {
        let was_away = self.current(ordinal).is_none_or(|commit| commit.stays.len() > 1);
        if was_away || self.current(ordinal - 1).is_none() {
            return;
        }
        let key = self.key(ordinal);
        let Some(bytes) = self.storage.get_now(BUCKET, &key) else { return };
        self.storage.remove(BUCKET, &key);
        self.end_stay(ordinal, step);
        self.hidden = Some(Hidden { ordinal, bytes, until });
    }

    /// Puts back what was away, and ends a rollback, once its time has come.
    pub(super) fn show(&mut self, step: u64, now: jiff::Timestamp) {
        while self.rolling.is_some_and(|(_, until)| until <= now) {
            self.go_on(step);
        }
        if let Some(hidden) = self.hidden.take_if(|hidden| hidden.until <= now) {
            self.storage.put(BUCKET, &self.paimon.key(hidden.ordinal), hidden.bytes);
            let commit = self.commits.iter_mut().rev().find(|commit| commit.ordinal == hidden.ordinal);
            if let Some(commit) = commit {
                commit.stays.push((step, None));
            }
        }
    }

    /// Ends whatever a writer is in the middle of.
    pub(super) fn settle(&mut self, step: u64) {
        self.show(step, jiff::Timestamp::MAX);
    }

    fn end_stay(&mut self, ordinal: u64, step: u64) {
        let there = self.commits.iter_mut().rev().find(|commit| commit.ordinal == ordinal && commit.is_there());
        if let Some((_, until)) = there.and_then(|commit| commit.stays.last_mut()) {
            *until = Some(step);
        }
    }

    /// The commit that is in storage under this ordinal.
    pub(super) fn current(&self, ordinal: u64) -> Option<&Commit> {
        self.commits.iter().rev().find(|commit| commit.ordinal == ordinal && commit.is_there())
    }

    /// Every commit in storage, oldest first.
    pub(super) fn there(&self) -> BTreeMap<u64, &Commit> {
        self.commits.iter().filter(|commit| commit.is_there()).map(|commit| (commit.ordinal, commit)).collect()
    }

    /// Whether this commit was in storage at some step since `since`.
    pub(super) fn was_there(&self, ordinal: u64, uuid: &str, since: u64) -> bool {
        let same = |commit: &&Commit| commit.ordinal == ordinal && commit.uuid == uuid;
        self.commits.iter().rev().find(same).is_some_and(|commit| commit.was_there(since))
    }

    /// Every commit that ever was.
    pub(super) fn ever(&self) -> BTreeSet<Committed> {
        self.commits.iter().map(|commit| (commit.ordinal, commit.uuid.clone())).collect()
    }

    /// The ordinals that count as data, of a table whose history was never rewritten.
    pub(super) fn data(&self) -> Vec<u64> {
        self.commits.iter().filter(|commit| commit.is_data).map(|commit| commit.ordinal).collect()
    }

    /// The first watermark and the highest, in milliseconds since 1970.
    pub(super) fn watermarks(&self) -> Option<(i64, i64)> {
        let all = || self.commits.iter().filter_map(|commit| commit.watermark);
        Some((all().next()?, all().max()?))
    }

    /// The entity tag of a snapshot's file, as its notification names it.
    pub(super) fn etag(&self, ordinal: u64) -> Option<String> {
        self.storage.etag(BUCKET, &self.key(ordinal))
    }
}
