//! When a target would have started, by the recorded history of its assets.
//!
//! The real evaluator runs over the states that the events led to, at the times at which they were
//! recorded and at those at which time alone changes a verdict. Each start is taken to succeed at
//! once, so that a busy scheduler, a pause or a failure of then is not seen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::commit::Commit;
use crate::cursor::{Taken, TargetCursor};
use crate::evaluation::{AssetView, ClaimPlan, Evaluation, Inputs, PastCommit, evaluate_to_claim};
use crate::event::{Event, Outcome};
use crate::ids::{AssetId, GroupName, TriggerKey};
use crate::policy::{Partition, Window};
use crate::reason::Reason;
use crate::state::{AssetState, Baseline, Evidence, Mark};
use crate::target::Target;
use crate::trigger::{Range, StartReason};
use crate::version::{Fingerprint, Position};

/// Most starts that a replay lists.
pub const MAX_STARTS: usize = 1_000;
/// Most evaluations of one replay.
const MAX_EVALUATIONS: usize = 200_000;

/// The recorded history of one asset.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordedHistory {
    /// Its events, oldest first.
    pub events: Vec<Event>,
    /// Whether a new schema waits for a decision.
    pub approval_required: bool,
}

/// One start that would have been.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayedStart {
    /// When it would have been claimed.
    pub at: Timestamp,
    /// The key that its trigger would have had.
    pub key: TriggerKey,
    /// Why.
    pub reason: StartReason,
    /// The groups that were ready.
    pub groups: Vec<GroupName>,
    /// What it would have consumed.
    pub ranges: Vec<Range>,
    /// The partition that it would have stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
    /// The window that it would have stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The conditions that did not hold, where it would have started anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Reason>,
    /// What the workflow would have received.
    pub parameters: BTreeMap<String, String>,
}

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The starts, oldest first.
    pub starts: Vec<ReplayedStart>,
    /// From when on events were there.
    pub since: Option<Timestamp>,
    /// How many events were replayed.
    pub events: usize,
    /// Whether it stopped at a limit before the end.
    pub is_cut: bool,
    /// The verdict at the end.
    pub evaluation: Evaluation,
}

/// Replays a target over recorded histories up to a moment. Groups begin before the first event.
pub fn replay(target: &Target, histories: &BTreeMap<AssetId, RecordedHistory>, until: Timestamp) -> Replay {
    let mut timeline: Vec<(AssetId, &Event)> =
        histories.iter().flat_map(|(asset, history)| history.events.iter().map(|event| (*asset, event))).collect();
    timeline.sort_by_key(|(asset, event)| (event.recorded_at, *asset, event.position));
    timeline.retain(|(_, event)| event.recorded_at <= until);
    let since = timeline.first().map(|(_, event)| event.recorded_at);
    let mut player = Player::new(target, histories, since.unwrap_or(until));
    let mut events = 0;
    for (at, batch) in chunks(&timeline) {
        player.let_time_pass(at);
        for (asset, event) in batch {
            player.happen(*asset, event);
            events += 1;
        }
        player.settle(at);
    }
    player.let_time_pass(until);
    let (evaluation, _) = player.evaluate(until);
    Replay { starts: player.starts, since, events, is_cut: player.is_cut, evaluation }
}

/// Events that were recorded together: one look writes all that it found at once.
fn chunks<'a, 'b>(
    timeline: &'b [(AssetId, &'a Event)],
) -> impl Iterator<Item = (Timestamp, &'b [(AssetId, &'a Event)])> {
    timeline
        .chunk_by(|(asset, event), (other, later)| asset == other && event.recorded_at == later.recorded_at)
        .filter_map(|batch| Some((batch.first()?.1.recorded_at, batch)))
}

struct Player<'a> {
    target: &'a Target,
    states: BTreeMap<AssetId, AssetState>,
    commits: BTreeMap<AssetId, Vec<PastCommit>>,
    cursor: TargetCursor,
    starts: Vec<ReplayedStart>,
    evaluations: usize,
    is_cut: bool,
}

impl<'a> Player<'a> {
    fn new(target: &'a Target, histories: &BTreeMap<AssetId, RecordedHistory>, since: Timestamp) -> Self {
        let mut states = BTreeMap::new();
        let mut cursor = TargetCursor { since: Some(since), ..TargetCursor::default() };
        for group in &target.groups {
            for member in &group.members {
                let history = histories.get(&member.asset);
                let mut state = AssetState { baseline: Some(Baseline::default()), ..AssetState::default() };
                state.schema.approval_required = history.is_some_and(|history| history.approval_required);
                // The schema of the first commit that is kept was there before anybody was asked.
                let mut commits =
                    history.into_iter().flat_map(|history| &history.events).filter_map(|event| event.commit.as_ref());
                state.schema.initial = commits.find_map(|commit| commit.schema_id);
                states.insert(member.asset, state);
                cursor.taken.entry(group.name.clone()).or_default().insert(member.asset, Taken::default());
            }
        }
        Self { target, states, commits: BTreeMap::new(), cursor, starts: Vec::new(), evaluations: 0, is_cut: false }
    }

    fn happen(&mut self, asset: AssetId, event: &Event) {
        let Some(state) = self.states.get_mut(&asset) else { return };
        let commits = self.commits.entry(asset).or_default();
        if let Some(position) = event.position.filter(|position| position.epoch > state.epoch) {
            // All registers belong to an epoch.
            let mut fresh =
                AssetState { epoch: position.epoch, baseline: state.baseline.clone(), ..AssetState::default() };
            fresh.schema.approval_required = state.schema.approval_required;
            *state = fresh;
        }
        let known = |position: Position| -> Option<Mark> {
            commits.iter().map(|past| &past.mark).find(|mark| mark.version.position == position).cloned()
        };
        let evidence = match commit_of(event) {
            Some(commit) => Some(Evidence::Commit(Box::new(commit))),
            None => event.replayed(known),
        };
        let Some(evidence) = evidence else { return };
        *state = state.apply(&evidence, event.recorded_at).state;
        if let Some(past) = event.past_commit() {
            // Counted as the replay counts, which may have begun later than the asset.
            let newest = state.marks().find(|mark| mark.version == past.mark.version).cloned();
            let past = PastCommit { mark: newest.unwrap_or(past.mark), ..past };
            // One that a declaration asked for is recorded after later ones.
            let place = commits.partition_point(|known| known.mark.version.position < past.mark.version.position);
            commits.insert(place, past);
        }
    }

    fn evaluate(&mut self, now: Timestamp) -> (Evaluation, Option<ClaimPlan>) {
        self.evaluations += 1;
        let mut assets = BTreeMap::new();
        for (asset, state) in &self.states {
            let history = self.commits.get(asset).map_or(&[][..], Vec::as_slice);
            assets.insert(*asset, AssetView { rev: 0, state: Some(state), is_registered: true, history });
        }
        evaluate_to_claim(&Inputs {
            target: self.target,
            cursor: &self.cursor,
            assets: &assets,
            open: None,
            failed: None,
            switched_off: None,
            now,
        })
    }

    /// Claims what is ready until nothing is; returns when to look again.
    fn settle(&mut self, now: Timestamp) -> Option<Timestamp> {
        loop {
            if self.evaluations >= MAX_EVALUATIONS || self.starts.len() >= MAX_STARTS {
                self.is_cut = true;
                return None;
            }
            let (evaluation, plan) = self.evaluate(now);
            let Some(plan) = plan else {
                if let Some(noted) = evaluation.noted {
                    self.cursor = noted;
                }
                return evaluation.due_at.filter(|due_at| *due_at > now);
            };
            let claim = plan.claim;
            self.cursor = TargetCursor { open: None, ..plan.cursor };
            let parameters = claim.parameters();
            self.starts.push(ReplayedStart {
                at: now,
                key: claim.key,
                reason: claim.reason,
                groups: claim.groups.into_iter().collect(),
                ranges: claim.ranges,
                partition: claim.partition,
                window: claim.window,
                unmet: claim.unmet,
                parameters,
            });
        }
    }

    /// Looks at every moment before `until` at which time alone can change the verdict.
    fn let_time_pass(&mut self, until: Timestamp) {
        let mut due = self.cursor.due_at;
        while let Some(at) = due.filter(|at| *at <= until && !self.is_cut) {
            due = self.settle(at);
        }
    }
}

/// The commit that an event keeps, as a reader of the table saw it; `None` where the state did not
/// take it.
fn commit_of(event: &Event) -> Option<Commit> {
    let facts = event.commit.as_ref().filter(|_| matches!(event.outcome, Outcome::Advanced | Outcome::Maintenance))?;
    let (_, fingerprint) = event.token.split_once('.')?;
    Some(Commit {
        ordinal: event.position?.ordinal,
        fingerprint: Fingerprint::from(fingerprint),
        snapshot_id: facts.snapshot_id.clone(),
        parent_id: None,
        kind: crate::commit::CommitKind(facts.commit_kind.clone()),
        changes_data: facts.changes_data,
        watermark: facts.watermark,
        committed_at: facts.commit_time,
        schema_id: facts.schema_id,
        total_records: None,
        delta_records: facts.delta_record_count,
        tags: Vec::new(),
        extra: BTreeMap::new(),
    })
}
