//! What the conditions on one dependency mean, slow and obvious: it looks through the whole history
//! of a table where the evaluator keeps marks, and remembers what was taken in its own words.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::evaluation::BACKFILL_HOLDS_FOR;
use lakebell_domain::policy::OnBackfill;
use lakebell_domain::state::{CheckResult, SchemaStatus, Severity};
use lakebell_domain::target::{Advance, Conditions, OnFailedVersion};

/// One commit, as it happened.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pub(crate) ordinal: u64,
    pub(crate) kind: &'static str,
    pub(crate) delta: i64,
    pub(crate) schema: i64,
}

impl Past {
    fn is_data(&self) -> bool {
        self.kind != "COMPACT"
    }
}

/// One finished check.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) ordinal: u64,
    pub(crate) check: &'static str,
    pub(crate) result: CheckResult,
    pub(crate) severity: Severity,
    pub(crate) at: i64,
}

/// One backfill, by the newest commit when it began and when it ended.
#[derive(Debug, Clone)]
pub(crate) struct Fill {
    pub(crate) began: Timestamp,
    pub(crate) from: u64,
    pub(crate) ended: Option<(Timestamp, u64)>,
}

/// All that ever happened to a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    pub(crate) commits: Vec<Past>,
    /// How many commits the first read found.
    pub(crate) read_at: usize,
    /// Whether the asset asks for approval of new schemas.
    pub(crate) approval: bool,
    pub(crate) runs: Vec<Run>,
    pub(crate) decisions: BTreeMap<i64, SchemaStatus>,
    pub(crate) tags: BTreeMap<String, u64>,
    pub(crate) fills: BTreeMap<String, Fill>,
    pub(crate) watermarks: Vec<i64>,
    pub(crate) watermark_at_first: Option<i64>,
    pub(crate) recovered: Option<Timestamp>,
}

/// What the last trigger took of a table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Had {
    pub(crate) ordinal: Option<u64>,
    pub(crate) watermark: Option<i64>,
    pub(crate) tag: Option<String>,
    pub(crate) schema: Option<i64>,
    pub(crate) filled: Option<Timestamp>,
    pub(crate) recovered: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quality {
    Unknown,
    Passed,
    Failed,
}

impl Story {
    pub(crate) fn newest(&self) -> u64 {
        self.commits.last().map_or(0, |commit| commit.ordinal)
    }

    pub(crate) fn beginning(&self) -> Had {
        let first = self.read_at.checked_sub(1).map(|at| &self.commits[at]);
        Had {
            ordinal: first.map(|commit| commit.ordinal),
            watermark: self.watermark_at_first,
            schema: first.map(|commit| commit.schema),
            ..Had::default()
        }
    }

    /// The schema that needs no approval: what the first read found, or else what an empty table began
    /// with, unless the asset asks.
    fn initial(&self) -> Option<i64> {
        match self.read_at.checked_sub(1) {
            Some(newest) => Some(self.commits[newest].schema),
            None => self.commits.first().filter(|_| !self.approval).map(|commit| commit.schema),
        }
    }

    fn watermark(&self) -> Option<i64> {
        self.watermarks.iter().copied().max()
    }

    /// By the latest run of each check.
    fn quality(&self, ordinal: u64, required: &[String]) -> Quality {
        let mut latest: BTreeMap<&str, &Run> = BTreeMap::new();
        for run in self.runs.iter().filter(|run| run.ordinal == ordinal) {
            if latest.get(run.check).is_none_or(|known| known.at < run.at) {
                latest.insert(run.check, run);
            }
        }
        let failed = |run: &&Run| run.result == CheckResult::Failed && run.severity == Severity::Error;
        let settled = |run: &Run| run.result != CheckResult::Errored;
        if latest.values().any(failed) {
            return Quality::Failed;
        }
        let passed = if required.is_empty() {
            !latest.is_empty() && latest.values().all(|run| settled(run))
        } else {
            required.iter().all(|name| latest.get(name.as_str()).is_some_and(|run| settled(run)))
        };
        if passed { Quality::Passed } else { Quality::Unknown }
    }

    /// The newest version with a verdict failed.
    fn failed_last(&self, required: &[String]) -> Option<u64> {
        let mut newest_first = self.commits.iter().rev().map(|commit| commit.ordinal);
        let decided = newest_first.find(|ordinal| self.quality(*ordinal, required) != Quality::Unknown)?;
        (self.quality(decided, required) == Quality::Failed).then_some(decided)
    }

    pub(crate) fn failed_inside(&self, from: Option<u64>, to: u64, required: &[String]) -> Vec<u64> {
        let inside = self.commits.iter().map(|commit| commit.ordinal);
        let inside = inside.filter(|ordinal| Some(*ordinal) > from && *ordinal <= to);
        inside.filter(|ordinal| self.quality(*ordinal, required) == Quality::Failed).collect()
    }

    fn is_compatible(&self, schema: i64) -> bool {
        match self.decisions.get(&schema) {
            Some(status) => *status == SchemaStatus::Compatible,
            None => self.initial() == Some(schema),
        }
    }

    fn is_of_fill(&self, ordinal: u64) -> bool {
        self.fills.values().any(|fill| fill.from < ordinal && fill.ended.is_none_or(|(_, to)| ordinal <= to))
    }

    fn filled(&self) -> Option<Timestamp> {
        self.fills.values().filter_map(|fill| fill.ended).map(|(at, _)| at).max()
    }
}

/// What a dependency is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) story: &'a Story,
    pub(crate) conditions: &'a Conditions,
    pub(crate) on_backfill: OnBackfill,
    pub(crate) had: &'a Had,
    pub(crate) now: Timestamp,
}

/// What the reference says of one dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// What a claim would take; `None` where it has not advanced.
    pub(crate) takes: Option<Had>,
    /// The newest version that meets every condition on versions.
    pub(crate) candidate: Option<u64>,
    /// Its checks failed, and it may be optional.
    pub(crate) has_failed: bool,
}

impl Question<'_> {
    fn counts(&self, commit: &Past) -> bool {
        match &self.conditions.commit_kinds {
            Some(kinds) => kinds.iter().any(|kind| kind.0 == commit.kind),
            None if self.conditions.tag.is_some() => true,
            None => commit.is_data() && !(self.conditions.ignore_empty && commit.delta == 0),
        }
    }

    /// Every condition on versions but the cursor.
    fn meets(&self, commit: &Past) -> bool {
        let conditions = self.conditions;
        let minimum = conditions.minimum.as_ref().is_none_or(|minimum| commit.ordinal >= minimum.ordinal.0);
        let ignored = self.on_backfill == OnBackfill::Ignore && self.story.is_of_fill(commit.ordinal);
        let quality = conditions
            .quality
            .as_ref()
            .is_none_or(|quality| self.story.quality(commit.ordinal, &quality.checks) == Quality::Passed);
        let schema = !conditions.schema_compatible || self.story.is_compatible(commit.schema);
        self.counts(commit) && minimum && !ignored && quality && schema && self.tagged(commit).is_some()
    }

    /// The tag by which a version is taken; empty where none is asked for.
    fn tagged(&self, commit: &Past) -> Option<String> {
        let Some(pattern) = &self.conditions.tag else { return Some(String::new()) };
        let names =
            self.story.tags.iter().filter(|(name, ordinal)| **ordinal == commit.ordinal && pattern.matches(name));
        names.map(|(name, _)| name.clone()).max()
    }

    fn blocked(&self) -> Option<u64> {
        let quality = self.conditions.quality.as_ref().filter(|quality| quality.on_failed == OnFailedVersion::Block)?;
        self.story.failed_last(&quality.checks)
    }

    fn candidate(&self, beyond: Option<u64>) -> Option<&Past> {
        if self.blocked().is_some() {
            return None;
        }
        self.story.commits.iter().rev().find(|commit| Some(commit.ordinal) > beyond && self.meets(commit))
    }

    pub(crate) fn answer(&self) -> Answer {
        let conditions = self.conditions;
        let beyond = if conditions.snapshot_required { self.had.ordinal } else { None };
        let candidate = self.candidate(beyond);
        let is_counted = self.story.commits.iter().any(|commit| self.plainly_counts(commit));
        let needs_candidate = conditions.snapshot_required || is_counted || self.blocked().is_some();
        let holds = (candidate.is_some() || !needs_candidate)
            && !self.is_held()
            && !self.optional_failed()
            && candidate.is_none_or(|candidate| self.is_enough(candidate))
            && self.registers_hold()
            && (conditions.snapshot_required || self.has_moved(candidate));
        Answer {
            takes: holds.then(|| self.takes(candidate)),
            candidate: candidate.map(|candidate| candidate.ordinal),
            has_failed: self.optional_failed(),
        }
    }

    /// The same without a tag: which commits the registers of the head know.
    fn plainly_counts(&self, commit: &Past) -> bool {
        match &self.conditions.commit_kinds {
            Some(_) => self.counts(commit),
            None => commit.is_data() && !(self.conditions.ignore_empty && commit.delta == 0),
        }
    }

    fn is_held(&self) -> bool {
        self.on_backfill == OnBackfill::Hold
            && self
                .story
                .fills
                .values()
                .any(|fill| fill.ended.is_none() && self.now.duration_since(fill.began) < BACKFILL_HOLDS_FOR)
    }

    /// An optional member must not have failed, unless failed versions are passed over.
    fn optional_failed(&self) -> bool {
        let conditions = self.conditions;
        let is_over = conditions.quality.as_ref().is_some_and(|quality| quality.on_failed == OnFailedVersion::PassOver);
        let required = conditions.quality.as_ref().map(|quality| quality.checks.as_slice()).unwrap_or_default();
        conditions.optional && !is_over && self.story.failed_last(required).is_some()
    }

    /// Enough commits, and enough rows, that change data since the last trigger.
    fn is_enough(&self, candidate: &Past) -> bool {
        let since = |commit: &&Past| Some(commit.ordinal) > self.had.ordinal && commit.ordinal <= candidate.ordinal;
        let data: Vec<&Past> = self.story.commits.iter().filter(since).filter(|commit| commit.is_data()).collect();
        let rows: i64 = data.iter().map(|commit| commit.delta).sum();
        let counted = data.iter().filter(|commit| !(self.conditions.ignore_empty && commit.delta == 0)).count() as u64;
        let wants_count = self.conditions.min_new_snapshots > 1 || self.conditions.min_delta_records.is_some();
        (!wants_count || counted >= self.conditions.min_new_snapshots)
            && self.conditions.min_delta_records.is_none_or(|wanted| rows >= wanted)
    }

    fn registers_hold(&self) -> bool {
        let watermark = self.story.watermark();
        let conditions = self.conditions;
        let absolute =
            conditions.watermark.is_none_or(|wanted| watermark.is_some_and(|at| at >= wanted.as_millisecond()));
        let lag = conditions.max_lag.is_none_or(|lag| {
            let behind = |at| SignedDuration::from_millis(self.now.as_millisecond() - at);
            watermark.is_some_and(|at| behind(at) <= lag.duration())
        });
        let runs = self.story.fills.values().any(|fill| fill.ended.is_none());
        let filled = !conditions.backfill_completed || (!runs && self.story.filled() > self.had.filled);
        let recovered = !conditions.cdc_lag_recovered || self.story.recovered > self.had.recovered;
        absolute && lag && filled && recovered
    }

    fn has_moved(&self, candidate: Option<&Past>) -> bool {
        let conditions = self.conditions;
        let names_watermark = conditions.watermark.is_some() || conditions.max_lag.is_some();
        let names_version = conditions.quality.is_some() || conditions.schema_compatible || conditions.tag.is_some();
        let version_moved = candidate.is_some_and(|candidate| {
            let same = Some(candidate.ordinal) == self.had.ordinal;
            let tag = conditions.tag.is_some() && self.tagged(candidate) > self.had.tag;
            let schema = conditions.schema_compatible && Some(candidate.schema) != self.had.schema;
            Some(candidate.ordinal) > self.had.ordinal || (same && (tag || schema))
        });
        (names_watermark && self.story.watermark() > self.had.watermark)
            || (names_version && version_moved)
            || conditions.backfill_completed
            || conditions.cdc_lag_recovered
    }

    fn takes(&self, candidate: Option<&Past>) -> Had {
        let mut takes = self.had.clone();
        if let Some(candidate) = candidate.filter(|candidate| Some(candidate.ordinal) >= self.had.ordinal) {
            if self.conditions.tag.is_some() {
                let tag = self.tagged(candidate);
                // A name that comes before the one that was taken is not taken of the same version.
                takes.tag = if takes.ordinal == Some(candidate.ordinal) { tag.max(takes.tag) } else { tag };
            }
            takes.ordinal = Some(candidate.ordinal);
            takes.schema = Some(candidate.schema);
        }
        takes.watermark = self.story.watermark().max(takes.watermark);
        takes.filled = self.story.filled().max(takes.filled);
        takes.recovered = self.story.recovered.max(takes.recovered);
        takes
    }
}

/// Whether a group is ready, given its members' answers.
pub(crate) fn is_ready(advance: Advance, members: &[(&Conditions, &Answer)]) -> bool {
    let required = || members.iter().filter(|(conditions, _)| !conditions.optional);
    let advanced = required().filter(|(_, answer)| answer.takes.is_some()).count();
    let has_failed = members.iter().any(|(_, answer)| answer.has_failed);
    let needed = match advance {
        Advance::All => required().count(),
        Advance::Any => 1,
        Advance::AtLeast(k) => k,
    };
    !has_failed && needed > 0 && advanced >= needed
}
