//! Time gates come before the claim, and backfills hold it: what was claimed all the same is told here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::evaluation::BACKFILL_HOLDS_FOR;
use lakebell_domain::event::{Event, Outcome, PushedEvidence};
use lakebell_domain::ids::AssetId;
use lakebell_domain::state::BackfillStatus;
use lakebell_domain::trigger::{StartReason, Trigger};
use lakebell_engine::ports::items::Item;
use lakebell_engine::rules::Records;

use super::menu;

/// How far the clocks of two machines differ at most.
const SKEW: SignedDuration = SignedDuration::from_secs(4);

/// What a claim of a target of the menu that has a gate did wrong.
pub(super) fn closed(records: &Records, trigger: &Trigger) -> Option<String> {
    if trigger.reason != StartReason::Ready {
        return None;
    }
    if trigger.target == menu::target_id("quiet") {
        let range = trigger.ranges.first()?;
        let data = records.assets.get(&range.asset)?.state.data.as_ref()?;
        // A commit that came between the look and the claim could not be seen.
        let is_seen = Some(&data.mark.version) == range.bounds.to.as_ref();
        let quiet = trigger.claimed_at.duration_since(data.mark.since) + SKEW;
        let is_early = is_seen && quiet < SignedDuration::from_secs(30);
        return is_early.then(|| format!("rule 4: trigger {} was claimed in a quiet period", trigger.key));
    }
    if trigger.target == menu::target_id("spaced") {
        let of_target = records.triggers.values().filter(|other| other.target == trigger.target);
        let mut others = of_target.filter(|other| other.key != trigger.key);
        // An interval counts from when the one before was evaluated, which a slow run does long before
        // it claims.
        let is_near =
            |other: &Trigger| trigger.claimed_at.duration_since(other.claimed_at).abs() < SignedDuration::from_mins(1);
        return others
            .any(is_near)
            .then(|| format!("rule 4: trigger {} was claimed in the interval after another", trigger.key));
    }
    None
}

/// The backfills by what was taken of them, whatever the state of their table makes of it.
#[derive(Debug, Default)]
pub(super) struct Backfilling {
    /// Those that run, each with the revision of the table's state that says so, and since when.
    running: BTreeMap<(AssetId, String), (u64, Timestamp)>,
    ended: BTreeSet<(AssetId, String)>,
}

impl Backfilling {
    /// Takes in one write. An end is for good: a start that is taken after it is told.
    pub(super) fn written(&mut self, items: &[Item]) -> Vec<String> {
        let head = items.iter().find(|item| item.key.pk.starts_with("A#") && item.key.sk == "0");
        let Some(head) = head else { return Vec::new() };
        let events = items.iter().filter(|item| item.key.sk.starts_with("E#BACKFILL"));
        let mut wrong = Vec::new();
        for event in events.filter_map(|item| serde_json::from_str::<Event>(&item.doc).ok()) {
            let (Outcome::Advanced, Some(PushedEvidence::Backfill { id, status })) = (event.outcome, event.evidence)
            else {
                continue;
            };
            let of = (event.asset, id);
            if status == BackfillStatus::Completed {
                self.running.remove(&of);
                self.ended.insert(of);
            } else if self.ended.contains(&of) {
                wrong.push(format!("rule 1: backfill {} of {} began again after its end", of.1, of.0));
            } else {
                self.running.insert(of, (head.rev, event.recorded_at));
            }
        }
        wrong
    }

    /// What a claim did wrong that was decided by a state in which a backfill ran. No target of the menu says
    /// anything else than that it waits.
    pub(super) fn held(&self, trigger: &Trigger) -> Option<String> {
        let ran = |range: &lakebell_domain::trigger::Range| {
            let of_asset = self.running.iter().filter(|((asset, _), _)| *asset == range.asset);
            of_asset.into_iter().any(|(_, (rev, since))| {
                let holds = trigger.claimed_at.duration_since(*since) + SKEW < BACKFILL_HOLDS_FOR;
                *rev <= range.head_rev && holds
            })
        };
        let is_wrong = trigger.reason == StartReason::Ready && trigger.ranges.iter().any(ran);
        is_wrong.then(|| format!("rule 4: trigger {} was claimed while a backfill ran", trigger.key))
    }
}
