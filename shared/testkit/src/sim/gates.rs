//! Time gates come before the claim: what was claimed through a closed one is told here.

use jiff::SignedDuration;
use lakebell_domain::trigger::{StartReason, Trigger};
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
