//! From what a read found to the next state, its events and the write that records both.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::commit::Commit;
use lakebell_domain::event::{CommitFacts, Event, EventKind, Outcome, PushedEvidence, Source, commit_token};
use lakebell_domain::state::{AssetState, Demands, Evidence, Gap, RewriteHold, Totals, Trouble};
use lakebell_domain::version::{Ordinal, Position};
use serde_json::Value;

use super::tags::{Tagged, short};
use super::{EVENT_RETENTION, HISTORY_RETENTION, Hint, Look};
use crate::EngineError;
use crate::asset_settings::WatermarkFrom;
use crate::layout;
use crate::ports::items::{Draft, Write};
use crate::records::{AssetHead, Pointer, Ring, RingEntry, TagsSeen};
use crate::store::{self, Stored};

/// One thing that a read found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// What it says.
    pub(super) evidence: Evidence,
    /// For each commit in it the entity tag of its file.
    pub(super) etags: Vec<String>,
}

impl Finding {
    pub(super) fn new(evidence: Evidence) -> Self {
        Self { evidence, etags: Vec::new() }
    }
}

/// What a reader says about a file that is no commit, or about a tag that names none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    /// Of which kind its event is.
    pub(super) kind: EventKind,
    /// What tells its event from others; absent where none is kept.
    pub(super) token: Option<String>,
    /// What it says.
    pub(super) text: String,
}

/// What a read found, oldest first.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The findings.
    pub(super) findings: Vec<Finding>,
    /// There is more to read after this has been written.
    pub(super) more: bool,
    /// What was taken on trust has been compared with storage.
    pub(super) verified: bool,
    /// Other branches that moved in the same files, of formats where one file holds them all.
    pub(super) branches: BTreeSet<String>,
    /// What was met beside the commits.
    pub(super) remarks: Vec<Remark>,
    /// What a new epoch's ring holds beneath its first commit.
    pub(super) beneath: Vec<RingEntry>,
    /// Tags whose commits are to be looked up.
    pub(super) tagged: Vec<Tagged>,
    /// A file was notified that may become a commit in a moment.
    pub(super) look_again: bool,
    /// The read failed in a way that a later try may mend, after what it found has been recorded.
    pub(super) failed: Option<EngineError>,
    /// The tags that a scan has seen, where they are others than last time.
    pub(super) tags: Option<TagsSeen>,
}

impl Reading {
    pub(super) fn of(evidence: Evidence) -> Self {
        Self { findings: vec![Finding::new(evidence)], ..Self::default() }
    }

    /// Whether it holds a contradiction of the recorded history.
    pub(super) fn sights_rewrite(&self) -> bool {
        self.findings.iter().any(|finding| matches!(finding.evidence, Evidence::RewriteSighted(_)))
    }

    /// The same first read as the beginning of an accepted epoch.
    pub(super) fn accepted(mut self) -> Self {
        for finding in &mut self.findings {
            if let Evidence::FirstRead(commits) = &finding.evidence {
                finding.evidence = Evidence::RewriteAccepted(commits.clone());
            }
        }
        // Tags belong to an epoch: the next scan takes in what is there.
        self.tags = None;
        // The schema belongs to the new epoch, so it is applied after the epoch opens.
        self.findings.sort_by_key(|finding| !matches!(finding.evidence, Evidence::RewriteAccepted(_)));
        self
    }
}

/// What applying a reading leads to.
pub(super) struct Applied {
    pub(super) head: AssetHead,
    pub(super) rev: u64,
    /// `None` where nothing changed.
    pub(super) actions: Option<Vec<Write>>,
    pub(super) outcomes: Vec<(EventKind, Outcome)>,
}

pub(super) fn apply(
    hint: &Hint,
    head: &Stored<AssetHead>,
    ring: &Stored<Ring>,
    pointers: &[Pointer],
    reading: &Reading,
    now: Timestamp,
) -> Result<Applied, EngineError> {
    let retention = retention(pointers);
    let mut next = head.value.clone();
    let mut next_ring = ring.value.clone();
    let mut outcomes = Vec::new();
    let mut events = Vec::new();
    for finding in &reading.findings {
        let before = next.state.position();
        let was_held = next.state.hold.is_some();
        let transition = next.state.apply(&counted(&next, pointers, &finding.evidence), now);
        let changed = transition.state != next.state;
        next.state = transition.state;
        if changed {
            keep_in_ring(&mut next_ring, finding, &reading.beneath, before, &next);
        }
        for record in records(finding, &transition.outcome, was_held, changed) {
            outcomes.push((record.kind, record.outcome.clone()));
            if changed {
                events.push(event(hint, &next, record, now, retention)?);
            }
        }
    }
    for remark in &reading.remarks {
        let outcome = Outcome::Ignored(remark.text.clone());
        let kind = remark.kind;
        outcomes.push((kind, outcome.clone()));
        if let Some(token) = remark.token.clone().filter(|_| next != head.value) {
            let record = Record { kind, token, outcome, commit: None, evidence: None, detail: None, totals: None };
            events.push(event(hint, &next, record, now, retention)?);
        }
    }
    if reading.verified {
        next_ring.unverified = None;
    }
    if let Some(seen) = &reading.tags {
        next_ring.tags = Some(seen.clone());
    }
    if let Some(evidence) = heard(hint, &head.value.state, &outcomes) {
        next.state = next.state.apply(&evidence, now).state;
    }
    if next == head.value && next_ring == ring.value {
        return Ok(Applied { head: next, rev: head.rev, actions: None, outcomes });
    }
    let mut actions = vec![Write::Replace(store::draft(layout::head(hint.asset), &next)?, head.rev)];
    if next_ring != ring.value {
        actions.push(Write::Replace(store::draft(layout::ring(hint.asset), &next_ring)?, ring.rev));
    }
    actions.extend(events);
    Ok(Applied { head: next, rev: head.rev + 1, actions: Some(actions), outcomes })
}

/// What the way by which something was found says about the bucket's notifications. Commits of a
/// first read were there before anybody asked to be notified.
fn heard(hint: &Hint, before: &AssetState, outcomes: &[(EventKind, Outcome)]) -> Option<Evidence> {
    match (hint.source, &hint.look) {
        (Source::Notify, _) => before.unnotified.is_some().then_some(Evidence::Notified),
        (Source::Poll, Look::Whole) if before.baseline.is_some() => {
            let untold = outcomes.iter().filter(|(kind, outcome)| was_untold(*kind, outcome)).count();
            (untold > 0).then_some(Evidence::Unnotified(untold as u64))
        }
        _ => None,
    }
}

/// Whether something that a scan found would have been notified: of a tag that was deleted and of a
/// rewrite nobody is.
pub fn was_untold(kind: EventKind, outcome: &Outcome) -> bool {
    let is_notified = matches!(kind, EventKind::SnapshotCommitted | EventKind::TagCreated);
    is_notified && matches!(outcome, Outcome::Advanced | Outcome::Maintenance)
}

/// How long the events of commits are kept: longer where a target looks at each of them.
fn retention(pointers: &[Pointer]) -> SignedDuration {
    if pointers.iter().any(|pointer| pointer.keeps_history) { HISTORY_RETENTION } else { EVENT_RETENTION }
}

/// What counts of a finding: where the watermark is pushed, those of commits do not; and the partitions
/// that a commit touched only where a target goes by them, so that they do not fill the state.
fn counted<'a>(head: &AssetHead, pointers: &[Pointer], evidence: &'a Evidence) -> Cow<'a, Evidence> {
    let keeps_watermark = head.settings.watermark_from == WatermarkFrom::Storage;
    let keeps_partitions = pointers.iter().any(|pointer| pointer.reads_partitions);
    let without = |commit: &Commit| {
        let mut kept = commit.clone();
        kept.watermark = kept.watermark.filter(|_| keeps_watermark);
        if !keeps_partitions {
            kept.extra.remove("partitions");
        }
        kept
    };
    let counts_whole = |commit: &Commit| {
        (keeps_watermark || commit.watermark.is_none())
            && (keeps_partitions || !commit.extra.contains_key("partitions"))
    };
    match evidence {
        Evidence::Commit(commit) if counts_whole(commit) => Cow::Borrowed(evidence),
        Evidence::FirstRead(commits) | Evidence::RewriteAccepted(commits) if commits.iter().all(counts_whole) => {
            Cow::Borrowed(evidence)
        }
        Evidence::Commit(commit) => Cow::Owned(Evidence::Commit(Box::new(without(commit)))),
        Evidence::FirstRead(commits) => Cow::Owned(Evidence::FirstRead(commits.iter().map(without).collect())),
        Evidence::RewriteAccepted(commits) => {
            Cow::Owned(Evidence::RewriteAccepted(commits.iter().map(without).collect()))
        }
        other => Cow::Borrowed(other),
    }
}

fn keep_in_ring(ring: &mut Ring, finding: &Finding, beneath: &[RingEntry], before: Position, head: &AssetHead) {
    let commits: &[Commit] = match &finding.evidence {
        Evidence::Commit(commit) => std::slice::from_ref(commit),
        Evidence::FirstRead(commits) => commits,
        Evidence::RewriteAccepted(commits) => {
            *ring = Ring::default();
            ring.versions.extend(beneath.iter().cloned());
            commits
        }
        _ => return,
    };
    let is_step = matches!(finding.evidence, Evidence::Commit(_));
    if is_step && before.ordinal > Ordinal(0) && head.state.position() > before {
        ring.unverified.get_or_insert(before.ordinal);
    }
    for (commit, etag) in commits.iter().zip(&finding.etags) {
        ring.push(RingEntry { ordinal: commit.ordinal, fingerprint: commit.fingerprint.clone(), etag: etag.clone() });
    }
}

/// What is kept of a finding.
struct Record {
    kind: EventKind,
    token: String,
    outcome: Outcome,
    commit: Option<Commit>,
    evidence: Option<PushedEvidence>,
    detail: Option<String>,
    /// What had been counted with a commit, where others of the same finding came after it.
    totals: Option<Totals>,
}

fn records(finding: &Finding, outcome: &Outcome, was_held: bool, changed: bool) -> Vec<Record> {
    let record = |kind, token, detail| {
        let outcome = outcome.clone();
        Record { kind, token, outcome, commit: None, evidence: None, detail, totals: None }
    };
    let of_commit = |commit: &Commit, circumstance: Option<&str>| Record {
        kind: EventKind::SnapshotCommitted,
        token: commit_token(commit),
        outcome: outcome.clone(),
        commit: Some(commit.clone()),
        evidence: None,
        detail: detail(commit, circumstance),
        totals: None,
    };
    // A history begins with them, so that they are counted from the first.
    let first = |commits: &[Commit], circumstance: &str| -> Vec<Record> {
        let counted = commits.iter().scan(Totals::default(), |totals, commit| {
            *totals = totals.with(commit);
            Some(Record { totals: Some(*totals), ..of_commit(commit, Some(circumstance)) })
        });
        counted.collect()
    };
    match &finding.evidence {
        Evidence::Commit(commit) => {
            let unknown = commit.changes_data.is_none().then_some("unknown commit kind, counted as data");
            vec![of_commit(commit, unknown)]
        }
        Evidence::FirstRead(commits) => first(commits, "first read"),
        Evidence::RewriteAccepted(commits) => {
            let mut records =
                vec![record(EventKind::HistoryRewritten, "accepted".to_owned(), Some("a new epoch begins".to_owned()))];
            records.extend(first(commits, "the epoch begins with it"));
            records
        }
        Evidence::Expired(gap) | Evidence::Unread(gap) => vec![expired(gap)],
        Evidence::RewriteSighted(hold) if !was_held => vec![sighted(hold, outcome)],
        Evidence::RewriteWithdrawn => {
            let detail = Some("storage agrees with the recorded history again".to_owned());
            vec![record(EventKind::HistoryRewritten, "withdrawn".to_owned(), detail)]
        }
        Evidence::TagCreated(name, entry) => {
            let token = format!("{}.{:020}.{}", short(name), entry.position.ordinal.0, entry.fingerprint);
            let detail = Some(format!("tag {name} names snapshot {}", entry.snapshot_id));
            let evidence = Some(PushedEvidence::Tag { name: name.clone(), version: Some(entry.clone()) });
            vec![Record { evidence, ..record(EventKind::TagCreated, token, detail) }]
        }
        Evidence::TagDeleted(name) => {
            let evidence = Some(PushedEvidence::Tag { name: name.clone(), version: None });
            vec![Record { evidence, ..record(EventKind::TagDeleted, short(name), None) }]
        }
        Evidence::Trouble(trouble) if changed => vec![troubled(trouble, outcome)],
        _ => Vec::new(),
    }
}

/// What a person should know about a commit: how it was found, and what its reader remarked.
fn detail(commit: &Commit, circumstance: Option<&str>) -> Option<String> {
    let says = |name: &str, value: Value| commit.extra.get(name) == Some(&value);
    let list = |name: &str| -> Vec<String> {
        let names = commit.extra.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let demands = Demands::new(says("catalog_managed", true.into()), &list("not_understood"));
    let losers = list("lost").join(", ");
    let remarks = [
        circumstance.map(str::to_owned),
        says("order", "observation".into()).then(|| {
            "the format does not say in which order commits completed: this is the order of first observation"
                .to_owned()
        }),
        (!losers.is_empty())
            .then(|| format!("beside it, and no commits: {losers}, which lost a race or belong to another history")),
        says("movement", "gap".into()).then(|| "snapshots before it expired unread".to_owned()),
    ];
    let remarks: Vec<String> = remarks.into_iter().flatten().chain(demands.told()).collect();
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

fn expired(gap: &Gap) -> Record {
    Record {
        kind: EventKind::SnapshotCommitted,
        token: format!("gap.{:020}.{:020}", gap.first.0, gap.last.0),
        outcome: Outcome::Ignored(format!("commits {} to {} went unread: {}", gap.first, gap.last, gap.cause)),
        commit: None,
        evidence: None,
        detail: None,
        totals: None,
    }
}

fn sighted(hold: &RewriteHold, outcome: &Outcome) -> Record {
    let token =
        hold.withdrawn.as_ref().map(|version| format!("{:020}.{}", version.position.ordinal.0, version.fingerprint));
    Record {
        kind: EventKind::HistoryRewritten,
        token: format!("sighted.{}.{}", token.unwrap_or_default(), layout::moment(hold.first_seen)),
        outcome: outcome.clone(),
        commit: None,
        evidence: None,
        detail: Some(hold.evidence.clone()),
        totals: None,
    }
}

fn troubled(trouble: &Trouble, outcome: &Outcome) -> Record {
    Record {
        kind: EventKind::SnapshotCommitted,
        token: format!("trouble.{:?}.{}", trouble.code, layout::moment(trouble.since)),
        outcome: outcome.clone(),
        commit: None,
        evidence: None,
        detail: Some(trouble.detail.clone()),
        totals: None,
    }
}

/// The event of a commit from before the recorded history, which a declaration asked for.
pub(super) fn past_event(hint: &Hint, head: &AssetHead, commit: &Commit, now: Timestamp) -> Result<Write, EngineError> {
    let is_data = commit.changes_data.unwrap_or(true);
    let record = Record {
        kind: EventKind::SnapshotCommitted,
        token: commit_token(commit),
        outcome: if is_data { Outcome::Advanced } else { Outcome::Maintenance },
        commit: Some(commit.clone()),
        evidence: None,
        detail: detail(commit, Some("read from storage for a declaration that begins before it")),
        totals: None,
    };
    event(hint, head, record, now, HISTORY_RETENTION)
}

/// What had been counted up to and with a commit that the state has just taken.
fn totals(state: &AssetState, position: Position) -> Totals {
    state.marks().find(|mark| mark.version.position == position).map(|mark| mark.totals).unwrap_or_default()
}

fn event(
    hint: &Hint,
    head: &AssetHead,
    record: Record,
    now: Timestamp,
    retention: SignedDuration,
) -> Result<Write, EngineError> {
    let epoch = head.state.epoch;
    // "accepted" and "withdrawn" can happen once more in the same epoch: the moment tells them apart.
    let token = match record.token.as_str() {
        "accepted" | "withdrawn" => format!("{}.{}", record.token, layout::moment(now)),
        _ if record.kind == EventKind::TagDeleted => format!("{}.{}", record.token, layout::moment(now)),
        _ => record.token,
    };
    let position = record.commit.as_ref().map(|commit| Position { epoch, ordinal: commit.ordinal });
    let facts = |commit: &Commit| CommitFacts {
        totals: record.totals.or_else(|| position.map(|at| totals(&head.state, at))).unwrap_or_default(),
        // One that does not count must not count in a replay.
        watermark: commit.watermark.filter(|_| head.settings.watermark_from == WatermarkFrom::Storage),
        ..CommitFacts::from(commit)
    };
    let event = Event {
        asset: hint.asset,
        kind: record.kind,
        token: token.clone(),
        source: hint.source,
        outcome: record.outcome,
        recorded_at: now,
        trace: hint.trace.clone(),
        position,
        commit: record.commit.as_ref().map(facts),
        evidence: record.evidence,
        extra: BTreeMap::new(),
        detail: record.detail,
    };
    let key = layout::event(hint.asset, event.kind, epoch, &token);
    Ok(Write::Create(Draft {
        key,
        doc: store::encode(&event)?,
        sweep: None,
        history: Some(layout::event_history(hint.asset, now, &token)),
        expires_at: Some(now + if event.commit.is_some() { retention } else { EVENT_RETENTION }),
    }))
}
