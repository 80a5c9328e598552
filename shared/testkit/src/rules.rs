//! The rules that must always hold, as checks over recorded state.
//!
//! The simulation, the end-to-end tests and the audit all use this module. It reads items as the
//! store has them and says what is wrong in sentences.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::cursor::{Taken, TargetCursor};
use lakebell_domain::ids::{AssetId, TargetId, TriggerKey};
use lakebell_domain::trigger::{Status, Trigger};
use lakebell_domain::version::{Position, Version};
use lakebell_engine::ports::items::Item;
use lakebell_engine::records::{AssetHead, Definition};

use crate::table::Committed;

/// Everything that is recorded, decoded.
#[derive(Debug, Default)]
pub struct Records {
    /// Assets by id.
    pub assets: BTreeMap<AssetId, AssetHead>,
    /// Definitions by target.
    pub definitions: BTreeMap<TargetId, Definition>,
    /// Cursors by target.
    pub cursors: BTreeMap<TargetId, TargetCursor>,
    /// Triggers by key.
    pub triggers: BTreeMap<TriggerKey, Trigger>,
}

impl Records {
    /// Decodes a dump of the store. Items of other kinds are passed over; a damaged one is an error.
    pub fn of(items: &[Item]) -> Result<Self, String> {
        let mut records = Self::default();
        for item in items {
            let bad = |error: serde_json::Error| format!("{}/{}: {error}", item.key.pk, item.key.sk);
            let (kind, id) = item.key.pk.split_once('#').unwrap_or((item.key.pk.as_str(), ""));
            match (kind, item.key.sk.as_str()) {
                ("A", "0") => {
                    let id = id.parse().map_err(|error| format!("{error}"))?;
                    records.assets.insert(id, serde_json::from_str(&item.doc).map_err(bad)?);
                }
                ("T", "DEF") => {
                    let id = id.parse().map_err(|error| format!("{error}"))?;
                    records.definitions.insert(id, serde_json::from_str(&item.doc).map_err(bad)?);
                }
                ("T", "CUR") => {
                    let id = id.parse().map_err(|error| format!("{error}"))?;
                    records.cursors.insert(id, serde_json::from_str(&item.doc).map_err(bad)?);
                }
                ("K", _) => {
                    let trigger: Trigger = serde_json::from_str(&item.doc).map_err(bad)?;
                    records.triggers.insert(trigger.key.clone(), trigger);
                }
                _ => {}
            }
        }
        Ok(records)
    }

    fn of_target<'a>(&'a self, target: &'a TargetId) -> impl Iterator<Item = &'a Trigger> {
        self.triggers.values().filter(move |trigger| trigger.target == *target)
    }

    /// Rule 1, between two dumps: no position and no cursor went back.
    pub fn monotone_since(&self, before: &Self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (id, head) in &self.assets {
            let was = before.assets.get(id).map(|head| head.state.position());
            if was.is_some_and(|was| was > head.state.position()) {
                wrong.push(format!("rule 1: {} went back to {}", head.key, head.state.position()));
            }
        }
        for (target, cursor) in &self.cursors {
            let Some(was) = before.cursors.get(target) else { continue };
            for (group, assets) in &was.taken {
                for (asset, taken) in assets {
                    let now = cursor.at(group, *asset).map(Taken::position);
                    if now.is_some_and(|now| now < taken.position()) {
                        wrong.push(format!("rule 1: the cursor of {target}/{group} on {asset} went back"));
                    }
                }
            }
        }
        wrong
    }

    /// Rule 2: no trigger key among these starts comes twice.
    pub fn started_once(starts: &[TriggerKey]) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let twice = starts.iter().filter(|key| !seen.insert(*key));
        twice.map(|key| format!("rule 2: trigger {key} started more than once")).collect()
    }

    /// Rule 4: every bound of every trigger was truly committed.
    pub fn never_invented(&self, committed: &BTreeMap<AssetId, BTreeSet<Committed>>) -> Vec<String> {
        let mut wrong = Vec::new();
        for trigger in self.triggers.values() {
            for range in &trigger.ranges {
                for version in [&range.bounds.from, &range.bounds.to].into_iter().flatten() {
                    let commit = (version.position.ordinal.0, version.fingerprint.0.clone());
                    if !committed.get(&range.asset).is_some_and(|commits| commits.contains(&commit)) {
                        wrong.push(format!("rule 4: trigger {} names {commit:?}, which never was", trigger.key));
                    }
                }
            }
        }
        wrong
    }

    /// Rule 6: a target has at most one trigger that has not ended, and its cursors name it.
    pub fn in_order(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (target, cursor) in &self.cursors {
            let open: Vec<&Trigger> = self.of_target(target).filter(|trigger| !trigger.has_ended()).collect();
            if open.len() > 1 {
                wrong.push(format!("rule 6: {target} has {} open triggers", open.len()));
            }
            for trigger in open {
                if cursor.open.as_ref() != Some(&trigger.key) {
                    wrong.push(format!("rule 6: trigger {} is open and its target does not name it", trigger.key));
                }
            }
        }
        wrong
    }

    /// Rule 7 with `newest`: for every target and asset the ranges of the triggers whose data was
    /// not taken over by another one follow each other without gap or overlap, up to the cursor.
    ///
    /// `since` are the versions from which each asset counts for each target.
    pub fn ranges_tile(&self, since: &BTreeMap<(TargetId, AssetId), Option<Version>>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (target, definition) in &self.definitions {
            for asset in definition.target.assets().into_keys() {
                let mut ranges: Vec<(&Trigger, Option<Position>, Option<Position>)> = self
                    .of_target(target)
                    .filter(|trigger| !is_superseded(trigger))
                    .filter_map(|trigger| {
                        let range = trigger.ranges.iter().find(|range| range.asset == asset)?;
                        let at = |version: &Option<Version>| version.as_ref().map(|version| version.position);
                        Some((trigger, at(&range.bounds.from), at(&range.bounds.to)))
                    })
                    .collect();
                ranges.sort_by_key(|(_, from, to)| (*to, *from));
                let mut reached =
                    since.get(&(target.clone(), asset)).and_then(|version| version.as_ref()).map(|v| v.position);
                for (trigger, from, to) in ranges {
                    if from != reached {
                        wrong.push(format!(
                            "rule 7: trigger {} takes {asset} from {from:?}, and {reached:?} was reached",
                            trigger.key
                        ));
                    }
                    reached = to;
                }
            }
        }
        wrong
    }

    /// Rule 3 at rest: nothing that is ready is left, and every trigger has ended. `ready` are the
    /// targets that an evaluation finds READY now.
    pub fn nothing_left(&self, ready: &[TargetId]) -> Vec<String> {
        let mut wrong: Vec<String> =
            ready.iter().map(|target| format!("rule 3: {target} is ready and nothing started it")).collect();
        let open = self.triggers.values().filter(|trigger| !trigger.has_ended() && !is_held(trigger));
        wrong.extend(
            open.map(|trigger| format!("rule 3: trigger {} is still {}", trigger.key, trigger.status().step())),
        );
        wrong
    }
}

fn is_superseded(trigger: &Trigger) -> bool {
    matches!(trigger.status(), Status::Skipped { superseded_by: Some(_), .. })
}

fn is_held(trigger: &Trigger) -> bool {
    matches!(trigger.status(), Status::Unknown { held: true, .. })
}
