//! The one source of truth about an asset: a set of registers, each with its own order.
//!
//! [`AssetState::apply`] is the only way to move one. It never goes back within an epoch, and an
//! epoch ends only by [`Evidence::RewriteAccepted`].

mod notes;
mod partitions;
mod quality;
mod registers;

pub use notes::{Demands, MAX_REFUSAL, RefusedEvidence, UNNOTIFIED_SCANS, Unnotified, Writer};
pub use partitions::{MAX_PARTITIONS, PartitionEntry, Partitions};
pub use quality::{CheckResult, MAX_CHECK_NAME, PARKED, PARKED_TOO_LONG, Quality, QualityVerdict, Severity, Verdict};
pub use registers::{
    Backfill, BackfillStatus, Baseline, Gap, Hole, Mark, Register, RewriteHold, SchemaDetail, SchemaRegister,
    SchemaStatus, TagEntry, Totals, Trouble, TroubleCode, WatermarkRegister,
};

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::commit::{Commit, CommitKind, Millis};
use crate::event::Outcome;
use crate::policy::Partition;
use crate::version::{Epoch, Ordinal, Position, Version};

/// Most commit kinds that get a register of their own. Formats have fewer than a dozen; a writer
/// that invents names cannot fill the item.
pub const MAX_KINDS: usize = 24;
/// Most tags kept; beyond it the one with the lowest version goes.
pub const MAX_TAGS: usize = 48;
/// Most backfills kept; beyond it the oldest completed one goes.
pub const MAX_BACKFILLS: usize = 16;

/// What some writers put where there is no watermark.
const NO_WATERMARK: Millis = Millis(i64::MIN);

/// How far apart two reads must be that together prove a rewrite: a half-done rollback shows a
/// version that is about to vanish.
pub const SETTLE: SignedDuration = SignedDuration::from_secs(60);

/// Everything that Lakebell knows about an asset and decides by.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssetState {
    /// The current history.
    pub epoch: Epoch,
    /// What the first read found; absent until a read succeeds. Cursors that start from now and
    /// have taken nothing yet start here.
    pub baseline: Option<Baseline>,
    /// The newest commit of any kind.
    pub table: Option<Version>,
    /// The writer's clock at the newest commit, for how old the table is.
    pub committed_at: Option<Millis>,
    /// Rows after the newest commit, for the free check of the next link.
    pub total_records: Option<i64>,
    /// What has been counted in this epoch.
    pub totals: Totals,
    /// The newest commit that changed data.
    pub data: Option<Register>,
    /// The newest one that does not say itself that it changed no row, where the newest does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filled: Option<Mark>,
    /// The newest commit of each kind.
    pub kinds: BTreeMap<CommitKind, Register>,
    /// The highest event-time watermark seen.
    pub watermark: Option<WatermarkRegister>,
    /// The schema of the newest commit, and what was decided about schemas.
    pub schema: SchemaRegister,
    /// Verdicts, by version and check.
    pub quality: Quality,
    /// Tags, by name.
    pub tags: BTreeMap<String, TagEntry>,
    /// Backfills, by id. Those that ended in an earlier epoch stay, so that a late start of one is told.
    pub backfills: BTreeMap<String, Backfill>,
    /// Partitions that are done, or that a commit touched.
    #[serde(skip_serializing_if = "Partitions::is_empty")]
    pub partitions: Partitions,
    /// When a writer last reported that CDC lag has recovered.
    pub cdc_lag_recovered_at: Option<Timestamp>,
    /// History was rewritten, or looks so: nothing advances until that is settled.
    pub hold: Option<RewriteHold>,
    /// A commit that is missing although a later one is there.
    pub hole: Option<Hole>,
    /// The newest stretch of commits that went unread.
    pub gap: Option<Gap>,
    /// Why the last read failed; absent after one that succeeded.
    pub trouble: Option<Trouble>,
    /// The table's format has catalogs that decide what is a commit, and none is asked: what the
    /// files say of each other decides instead.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_catalog: bool,
    /// What the table asks of its readers, as far as that is not met.
    #[serde(skip_serializing_if = "Demands::is_none")]
    pub demands: Demands,
    /// Who wrote the newest commit, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    /// The evidence of a writer that was refused last, in this epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedEvidence>,
    /// Commits that only the clock's scans found; absent once a notification comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unnotified: Option<Unnotified>,
}

/// Something that may move a register.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// A commit read from storage that follows the newest known one.
    Commit(Box<Commit>),
    /// The first read: the newest commit of each kind that matters, oldest first; empty for a
    /// table that was never written.
    FirstRead(Vec<Commit>),
    /// Commits that expired unread, first to last.
    Expired(Gap),
    /// Commits from before those with which an epoch began were not read, first to last.
    Unread(Gap),
    /// A commit is missing below one that is there.
    Hole(Hole),
    /// Storage contradicts the recorded history.
    RewriteSighted(RewriteHold),
    /// The contradiction went away by itself.
    RewriteWithdrawn,
    /// A person or a policy accepted the rewrite: a new epoch that begins with these commits,
    /// oldest first.
    RewriteAccepted(Vec<Commit>),
    /// A tag names a version.
    TagCreated(String, TagEntry),
    /// A tag is gone.
    TagDeleted(String),
    /// A finished check, and the version that it is about where that commit is known.
    Check(Verdict, Option<Mark>),
    /// What the reader of the format keeps about the schema of the commits that follow.
    SchemaRead(SchemaDetail),
    /// What the table asks of its readers.
    Demanded(Demands),
    /// A decision about a schema id.
    SchemaDecided(i64, SchemaStatus),
    /// A backfill began or ended.
    Backfill(String, BackfillStatus),
    /// A writer has finished a partition; the commit that must be visible first, where it named one.
    PartitionDone(Partition, Option<Ordinal>),
    /// A watermark from a writer that the asset trusts for it.
    WatermarkPushed(Millis),
    /// CDC lag has recovered.
    CdcLagRecovered,
    /// Storage could not be read, or what it holds could not be understood.
    Trouble(Trouble),
    /// Storage was read without trouble.
    Readable,
    /// A scan by the clock found so many commits and tags of which no notification had told.
    Unnotified(u64),
    /// A notification came.
    Notified,
}

/// What a piece of evidence did to a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The state after it.
    pub state: AssetState,
    /// What it meant.
    pub outcome: Outcome,
}

impl AssetState {
    /// Where the asset stands: the newest commit of any kind.
    pub fn position(&self) -> Position {
        self.table.as_ref().map_or(Position::start_of(self.epoch), |version| version.position)
    }

    /// The state after one piece of evidence. Positions never go back, and the same evidence
    /// twice changes nothing the second time.
    #[must_use]
    pub fn apply(&self, evidence: &Evidence, now: Timestamp) -> Transition {
        let mut next = self.clone();
        let outcome = match evidence {
            Evidence::Commit(commit) => next.take_commit(commit, now),
            Evidence::FirstRead(commits) => next.take_first_read(commits, now),
            Evidence::Expired(gap) => next.take_gap(gap),
            Evidence::Unread(gap) => set(&mut next.gap, Some(gap.clone())),
            Evidence::Hole(hole) => set(&mut next.hole, Some(hole.clone())),
            Evidence::RewriteSighted(hold) => next.take_sighting(hold),
            Evidence::RewriteWithdrawn => set(&mut next.hold, None),
            Evidence::RewriteAccepted(commits) => next.open_epoch(commits, now),
            Evidence::TagCreated(name, entry) => next.take_tag(name, entry),
            Evidence::TagDeleted(name) => changed(next.tags.remove(name).is_some()),
            Evidence::Check(verdict, version) => next.quality.record(verdict, version.as_ref()),
            Evidence::SchemaRead(detail) => set(&mut next.schema.detail, Some(detail.clone())),
            Evidence::Demanded(demands) => set(&mut next.demands, demands.clone()),
            Evidence::SchemaDecided(id, status) => next.schema.decide(*id, *status),
            Evidence::Backfill(id, status) => next.take_backfill(id, *status, now),
            Evidence::PartitionDone(partition, needs) => {
                let newest = next.data.as_ref().map(|data| data.mark.version.position.ordinal);
                next.partitions.done(partition, *needs, newest, now)
            }
            Evidence::WatermarkPushed(at) => next.raise_watermark(*at, None, now),
            Evidence::CdcLagRecovered => {
                let latest = next.cdc_lag_recovered_at.max(Some(now));
                set(&mut next.cdc_lag_recovered_at, latest)
            }
            Evidence::Trouble(trouble) => next.take_trouble(trouble),
            Evidence::Readable => set(&mut next.trouble, None),
            Evidence::Unnotified(commits) => {
                let after = Unnotified::after(next.unnotified.as_ref(), *commits, now);
                set(&mut next.unnotified, Some(after))
            }
            Evidence::Notified => set(&mut next.unnotified, None),
        };
        next.note_refusal(evidence, &outcome, now);
        Transition { state: next, outcome }
    }

    fn take_commit(&mut self, commit: &Commit, now: Timestamp) -> Outcome {
        if let Some(hold) = &self.hold {
            return Outcome::Ignored(format!("history is held since {}", hold.first_seen));
        }
        let position = Position { epoch: self.epoch, ordinal: commit.ordinal };
        if let Some(table) = &self.table
            && position <= table.position
        {
            let same = position == table.position && commit.fingerprint == table.fingerprint;
            return if same { Outcome::Duplicate } else { Outcome::Superseded };
        }
        let version = Version {
            position,
            fingerprint: commit.fingerprint.clone(),
            snapshot_id: commit.snapshot_id.as_str().into(),
        };
        let watermark_moved = commit
            .watermark
            .is_some_and(|at| self.raise_watermark(at, Some(version.clone()), now) == Outcome::Advanced);
        // An unknown kind counts as data: a missed run costs more than a needless one.
        let is_data = commit.changes_data.unwrap_or(true);
        let mark = self.mark_of(commit, version.clone(), is_data, now);
        let delta = commit.delta_records.unwrap_or(0);
        self.quality.bind(&mark);
        if self.kinds.contains_key(&commit.kind) || self.kinds.len() < MAX_KINDS {
            let register = Register::after(self.kinds.get(&commit.kind), mark.clone(), delta);
            self.kinds.insert(commit.kind.clone(), register);
        }
        if is_data {
            self.partitions.see(commit.ordinal);
            self.partitions.touched(&partitions_of(commit), now);
            self.take_data(mark, delta);
        }
        self.schema.see(commit.schema_id);
        self.table = Some(version);
        self.committed_at = commit.committed_at;
        self.total_records = commit.total_records;
        self.writer = Writer::of(commit, now);
        self.hole = None;
        self.trouble = None;
        if is_data || watermark_moved { Outcome::Advanced } else { Outcome::Maintenance }
    }

    fn mark_of(&mut self, commit: &Commit, version: Version, is_data: bool, now: Timestamp) -> Mark {
        let is_empty = commit.delta_records == Some(0);
        self.totals = self.totals.with(commit);
        Mark {
            version,
            kind: commit.kind.clone(),
            is_data,
            is_empty,
            schema_id: commit.schema_id,
            totals: self.totals,
            since: now,
        }
    }

    fn take_data(&mut self, mark: Mark, delta: i64) {
        if let Some(before) = &self.data {
            if before.mark.schema_id != mark.schema_id {
                self.schema.keep_newest(&before.mark);
            }
            if mark.is_empty && !before.mark.is_empty {
                self.filled = Some(before.mark.clone());
            }
        }
        if !mark.is_empty {
            self.filled = None;
        }
        self.data = Some(Register::after(self.data.as_ref(), mark, delta));
    }

    /// The newest commit that changed data and does not say itself that it changed no row.
    pub fn newest_filled(&self) -> Option<&Mark> {
        self.filled.as_ref().or_else(|| self.data.as_ref().map(|data| &data.mark).filter(|mark| !mark.is_empty))
    }

    /// When the backfill that finished last did so, of those that finished in this epoch.
    pub fn finished_backfill(&self) -> Option<Timestamp> {
        let finished = self.backfills.values().filter(|backfill| backfill.has_finished_in(self.epoch));
        finished.map(|backfill| backfill.since).max()
    }

    /// Every version that is known with its facts, in no order and some of them twice: whichever
    /// condition a version must meet, the newest that meets it is among them.
    pub fn marks(&self) -> impl Iterator<Item = &Mark> {
        let registers = self.data.iter().chain(self.kinds.values()).map(|register| &register.mark);
        let kept = self.filled.iter().chain(self.schema.newest.values()).chain(self.quality.marks());
        registers.chain(kept).chain(self.backfills.values().filter_map(|backfill| backfill.before.as_ref()))
    }

    fn take_first_read(&mut self, commits: &[Commit], now: Timestamp) -> Outcome {
        if self.baseline.is_some() {
            return Outcome::Duplicate;
        }
        for commit in commits {
            self.take_commit(commit, now);
        }
        self.baseline = Some(Baseline {
            version: self.table.clone(),
            totals: self.totals,
            watermark: self.watermark.as_ref().map(|watermark| watermark.at),
        });
        self.schema.initial = self.schema.current;
        self.trouble = None;
        Outcome::Advanced
    }

    fn take_gap(&mut self, gap: &Gap) -> Outcome {
        let known = self.table.as_ref().map_or(0, |version| version.position.ordinal.0);
        if gap.last.0 <= known {
            return Outcome::Superseded;
        }
        self.hole = None;
        set(&mut self.gap, Some(gap.clone()))
    }

    /// The first sighting is kept with its time; one that agrees a settle time later confirms it.
    fn take_sighting(&mut self, sighting: &RewriteHold) -> Outcome {
        let merged = match &self.hold {
            Some(known) if known.agrees_with(sighting) => {
                let settled = sighting.first_seen.duration_since(known.first_seen) >= SETTLE;
                let confirmed_at = known.confirmed_at.or_else(|| settled.then_some(sighting.first_seen));
                RewriteHold { confirmed_at, ..known.clone() }
            }
            _ => sighting.clone(),
        };
        set(&mut self.hold, Some(merged))
    }

    /// The state of an asset that is registered again: the next epoch, of which nothing is known. Whoever
    /// registers it begins anew, and no backfill runs; of one that ended before, a late start may still come.
    #[must_use]
    pub fn registered_again(&self) -> Self {
        Self { epoch: self.epoch.next(), backfills: self.ended_backfills(), ..Self::default() }
    }

    /// All registers belong to an epoch: a re-created table inherits no watermark and no verdict. A backfill is
    /// a job of a writer, which history does not end.
    fn open_epoch(&mut self, commits: &[Commit], now: Timestamp) -> Outcome {
        if self.hold.is_none() {
            return Outcome::Duplicate;
        }
        let fresh = Self {
            epoch: self.epoch.next(),
            baseline: self.baseline.clone(),
            without_catalog: self.without_catalog,
            schema: SchemaRegister { approval_required: self.schema.approval_required, ..SchemaRegister::default() },
            backfills: self.ended_backfills(),
            ..Self::default()
        };
        let before = std::mem::replace(self, fresh);
        for commit in commits {
            self.take_commit(commit, now);
        }
        if !self.schema.approval_required {
            self.schema.initial = self.schema.current;
        }
        let running = before.backfills.into_iter().filter(|(_, backfill)| backfill.is_running());
        for (id, backfill) in running {
            let begun = self.begun_backfill(backfill.since);
            self.backfills.insert(id, begun);
        }
        Outcome::Advanced
    }

    /// What the next epoch keeps of the backfills that have ended: enough to tell a late start of one.
    fn ended_backfills(&self) -> BTreeMap<String, Backfill> {
        let ended = self.backfills.iter().filter(|(_, backfill)| !backfill.is_running());
        ended.map(|(id, backfill)| (id.clone(), Backfill { before: None, ..backfill.clone() })).collect()
    }

    /// A backfill that runs, of which all that comes after this state is its own.
    fn begun_backfill(&self, since: Timestamp) -> Backfill {
        let before = self.data.as_ref().map(|data| data.mark.clone());
        Backfill { status: BackfillStatus::Running, since, from: self.position(), to: None, before }
    }

    fn raise_watermark(&mut self, at: Millis, version: Option<Version>, now: Timestamp) -> Outcome {
        if at == NO_WATERMARK {
            return Outcome::Ignored("the minimum long means that there is no watermark".to_owned());
        }
        match &self.watermark {
            Some(known) if known.at >= at => Outcome::Superseded,
            known => {
                let first = known.as_ref().map_or(at, |known| known.first);
                self.watermark = Some(WatermarkRegister { at, version, since: now, first });
                Outcome::Advanced
            }
        }
    }

    fn take_tag(&mut self, name: &str, entry: &TagEntry) -> Outcome {
        if self.tags.get(name) == Some(entry) {
            return Outcome::Duplicate;
        }
        self.tags.insert(name.to_owned(), entry.clone());
        while self.tags.len() > MAX_TAGS {
            let oldest = self.tags.iter().min_by_key(|(_, entry)| entry.position).map(|(name, _)| name.clone());
            oldest.and_then(|name| self.tags.remove(&name));
        }
        kept(self.tags.contains_key(name), MAX_TAGS, "tags of newer versions")
    }

    /// COMPLETED is absorbing: a STARTED that arrives after it is late.
    fn take_backfill(&mut self, id: &str, status: BackfillStatus, now: Timestamp) -> Outcome {
        match self.backfills.get(id).map(|backfill| backfill.status) {
            Some(known) if known == status => return Outcome::Duplicate,
            Some(BackfillStatus::Completed) => return Outcome::Superseded,
            _ => {}
        }
        let here = self.position();
        let begun = self.backfills.remove(id);
        let backfill = match (begun, status) {
            (Some(begun), BackfillStatus::Completed) => Backfill { status, since: now, to: Some(here), ..begun },
            // One that nobody saw begin covers nothing.
            (_, BackfillStatus::Completed) => Backfill { status, since: now, from: here, to: Some(here), before: None },
            (_, BackfillStatus::Running) => self.begun_backfill(now),
        };
        self.backfills.insert(id.to_owned(), backfill);
        while self.backfills.len() > MAX_BACKFILLS {
            let oldest = self
                .backfills
                .iter()
                .min_by_key(|(_, backfill)| (backfill.status == BackfillStatus::Running, backfill.since))
                .map(|(id, _)| id.clone());
            oldest.and_then(|id| self.backfills.remove(&id));
        }
        kept(self.backfills.contains_key(id), MAX_BACKFILLS, "backfills that run or are newer")
    }

    fn take_trouble(&mut self, trouble: &Trouble) -> Outcome {
        let since = match &self.trouble {
            Some(known) if known.code == trouble.code => known.since,
            _ => trouble.since,
        };
        set(&mut self.trouble, Some(Trouble { since, ..trouble.clone() }));
        Outcome::Ignored(trouble.detail.clone())
    }
}

/// The partitions that a commit names among those that it touched.
fn partitions_of(commit: &Commit) -> Vec<Partition> {
    let named = commit.extra.get("partitions").and_then(serde_json::Value::as_array);
    named.into_iter().flatten().filter_map(|name| name.as_str()?.parse().ok()).collect()
}

fn set<T: PartialEq>(place: &mut T, value: T) -> Outcome {
    let is_new = *place != value;
    *place = value;
    changed(is_new)
}

fn changed(is_new: bool) -> Outcome {
    if is_new { Outcome::Advanced } else { Outcome::Duplicate }
}

/// What became of an entry of a bounded map, which may be the very one that had to go.
fn kept(is_kept: bool, most: usize, others: &str) -> Outcome {
    if is_kept { Outcome::Advanced } else { Outcome::Ignored(format!("there are {most} {others}")) }
}
