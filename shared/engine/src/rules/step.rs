//! The rules over one write: what an item was, what it became, and whether that may be.

use std::collections::BTreeMap;

use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::ids::{TargetId, TriggerKey};
use lakebell_domain::policy::OnFailed;
use lakebell_domain::trigger::{Status, Trigger};

use super::Records;
use crate::ports::items::Item;

impl Records {
    /// Takes in the items of one write and says which rules it broke: what may never be seen between
    /// two writes, not even for a moment.
    ///
    /// Errors: an item that cannot be read.
    pub fn after_write(&mut self, items: &[Item]) -> Result<Vec<String>, String> {
        let mut before = Self::default();
        for item in items {
            self.keep_before(item, &mut before);
        }
        items.iter().try_for_each(|item| self.take_in(item))?;
        let mut touched = Self::default();
        items.iter().try_for_each(|item| touched.take_in(item))?;

        let mut wrong = touched.monotone_since(&before);
        for head in touched.assets.keys() {
            wrong.extend(self.one_epoch_at_a_time(&before, head));
        }
        for trigger in touched.triggers.values() {
            wrong.extend(match before.triggers.get(&trigger.key) {
                Some(was) => self.moved(was, trigger),
                None => self.claimed(trigger, &before.triggers),
            });
        }
        let mut targets: Vec<&TargetId> = touched.triggers.values().map(|trigger| &trigger.target).collect();
        targets.extend(touched.cursors.keys().chain(touched.definitions.keys()));
        targets.sort();
        targets.dedup();
        for target in targets {
            wrong.extend(self.in_order_of(target));
            wrong.extend(self.failed_are_kept(target));
            wrong.extend(self.nothing_open_after_undeclare(target));
        }
        Ok(wrong)
    }

    fn keep_before(&self, item: &Item, before: &mut Self) {
        let (kind, id) = item.key.pk.split_once('#').unwrap_or((item.key.pk.as_str(), ""));
        let target = || id.parse::<TargetId>().ok();
        match (kind, item.key.sk.as_str()) {
            ("A", "0") => {
                let known = id.parse().ok().and_then(|id| Some((id, self.assets.get(&id)?.clone())));
                before.assets.extend(known);
            }
            ("T", "CUR") => {
                let known = target().and_then(|id| self.cursors.get(&id).cloned().map(|cursor| (id, cursor)));
                before.cursors.extend(known);
            }
            ("K", _) => {
                let known = TriggerKey::new(id).ok().and_then(|id| Some((id.clone(), self.triggers.get(&id)?.clone())));
                before.triggers.extend(known);
            }
            _ => {}
        }
    }

    /// Rule 4: epochs are opened one by one.
    fn one_epoch_at_a_time(&self, before: &Self, id: &lakebell_domain::ids::AssetId) -> Option<String> {
        let (was, now) = (before.assets.get(id)?, self.assets.get(id)?);
        let (from, to) = (was.state.epoch.0, now.state.epoch.0);
        (to > from + 1).then(|| format!("rule 4: {} went from epoch {from} to {to}", now.key))
    }

    /// Rule 6 for one target.
    fn in_order_of(&self, target: &TargetId) -> Vec<String> {
        let Some(cursor) = self.cursors.get(target) else { return Vec::new() };
        let open: Vec<&Trigger> = self.of_target(target).filter(|trigger| !trigger.has_ended()).collect();
        let mut wrong = super::in_order_by(target, cursor, &open);
        if let Some(named) = cursor.open.as_ref().filter(|named| !self.triggers.contains_key(*named)) {
            wrong.push(format!("rule 6: {target} names trigger {named}, which does not exist"));
        }
        wrong
    }

    /// Rule 3: what a failed trigger took is kept for the next claim or for a person. One of an earlier
    /// generation of its target is done with.
    pub fn failed_are_kept(&self, target: &TargetId) -> Vec<String> {
        let (Some(cursor), Some(definition)) = (self.cursors.get(target), self.definitions.get(target)) else {
            return Vec::new();
        };
        let generation = definition.target.generation;
        let failed = self.of_target(target).filter(|trigger| matches!(trigger.status(), Status::Failed { .. }));
        let current = failed.filter(|_| definition.undeclared_at.is_none()).filter(|t| t.generation == generation);
        let is_kept = |trigger: &Trigger, cursor: &TargetCursor| {
            let is_held = cursor.open.as_ref() == Some(&trigger.key);
            // What an altered target did with it before is its own affair.
            let must_hold = definition.target.policies.on_failed == OnFailed::Hold
                && trigger.definition_rev == cursor.definition_rev;
            is_held || (!must_hold && cursor.failed.as_ref() == Some(&trigger.key))
        };
        let lost = current.filter(|trigger| !is_kept(trigger, cursor));
        lost.map(|trigger| format!("rule 3: trigger {} failed, and its target does not keep it", trigger.key)).collect()
    }

    /// An undeclared target has nothing that could still start.
    fn nothing_open_after_undeclare(&self, target: &TargetId) -> Vec<String> {
        let is_gone = self.definitions.get(target).is_some_and(|definition| definition.undeclared_at.is_some());
        if !is_gone {
            return Vec::new();
        }
        let open = self.of_target(target).filter(|trigger| !trigger.has_ended());
        open.map(|trigger| format!("rule 6: {target} is undeclared and trigger {} is open", trigger.key)).collect()
    }

    /// What a claim must have taken over of the trigger that it replaces.
    fn claimed(&self, trigger: &Trigger, before: &BTreeMap<TriggerKey, Trigger>) -> Vec<String> {
        let mut wrong = Vec::new();
        let declared = self.cursors.get(&trigger.target).map_or(0, |cursor| cursor.definition_rev);
        if trigger.definition_rev < declared {
            wrong.push(format!("rule 4: trigger {} was claimed by a definition that was altered", trigger.key));
        }
        let Some(old) = trigger.replaces.as_ref().and_then(|old| before.get(old)) else { return wrong };
        let position = |version: &Option<lakebell_domain::version::Version>| version.as_ref().map(|v| v.position);
        for (group, assets) in &old.bounds {
            for (asset, bounds) in assets.iter().filter(|(_, bounds)| bounds.to.is_some()) {
                let kept = trigger.bounds.get(group).and_then(|assets| assets.get(asset));
                let is_kept = kept.is_some_and(|kept| {
                    position(&kept.from) == position(&bounds.from) && position(&kept.to) >= position(&bounds.to)
                });
                if !is_kept {
                    wrong.push(format!(
                        "rule 3: trigger {} replaces {} and drops {group} of {asset}",
                        trigger.key, old.key
                    ));
                }
            }
        }
        if let Status::Waiting { .. } = old.status() {
            let waits = matches!(trigger.status(), Status::Waiting { .. }) && trigger.due_at >= old.due_at;
            if !waits || trigger.tries < old.tries {
                wrong.push(format!("rule 3: trigger {} does not inherit the back-off of {}", trigger.key, old.key));
            }
        }
        wrong
    }

    /// One trigger from one write to the next: what was claimed stands, and it moves along arrows.
    fn moved(&self, was: &Trigger, now: &Trigger) -> Vec<String> {
        let key = &now.key;
        let mut wrong = Vec::new();
        let is_same = (&was.target, was.generation, &was.groups, &was.ranges, &was.bounds, &was.parameters)
            == (&now.target, now.generation, &now.groups, &now.ranges, &now.bounds, &now.parameters)
            && was.claimed_at == now.claimed_at
            && was.replaces == now.replaces;
        if !is_same {
            wrong.push(format!("rule 2: trigger {key} is not what was claimed any more"));
        }
        if now.attempt < was.attempt {
            wrong.push(format!("rule 2: the attempt of trigger {key} went from {} to {}", was.attempt, now.attempt));
        }
        let (from, to) = (was.status(), now.status());
        if !is_arrow(from, to) {
            wrong.push(format!("rule 2: trigger {key} went from {} to {}", from.step(), to.step()));
        }
        let is_leased = matches!((from, to), (Status::Queued | Status::Waiting { .. }, Status::Leased { .. }));
        let is_paused = self.cursors.get(&now.target).is_some_and(|cursor| cursor.paused.is_some());
        if is_leased && is_paused {
            wrong.push(format!("rule 4: trigger {key} was leased although its target is paused"));
        }
        wrong
    }
}

/// The arrows of the protocol, with what one write may pass through at once.
const fn is_arrow(from: &Status, to: &Status) -> bool {
    match from {
        Status::Queued => matches!(to, Status::Queued | Status::Leased { .. } | Status::Skipped { .. }),
        Status::Waiting { .. } => {
            matches!(to, Status::Waiting { .. } | Status::Queued | Status::Skipped { .. })
        }
        Status::Leased { .. } => !matches!(to, Status::Queued | Status::Skipped { .. }),
        Status::Unknown { held: false, .. } => {
            matches!(to, Status::Unknown { .. } | Status::Success { .. } | Status::Waiting { .. })
        }
        Status::Unknown { held: true, .. } => matches!(
            to,
            Status::Unknown { held: true, .. }
                | Status::Success { .. }
                | Status::Waiting { .. }
                | Status::Failed { .. }
        ),
        Status::Success { .. } => matches!(to, Status::Success { .. }),
        Status::Failed { .. } => matches!(to, Status::Failed { .. } | Status::Queued | Status::Skipped { .. }),
        Status::Skipped { .. } => matches!(to, Status::Skipped { .. }),
    }
}
