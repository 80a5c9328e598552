//! The conditions of a dependency that are not about one version: the watermark, partitions, backfills,
//! CDC lag, and whether anything that it names has moved.

use jiff::Timestamp;

use super::{Judge, Obstacle};
use crate::commit::Millis;
use crate::evaluation::choice::{self, Candidate};
use crate::evaluation::partition;
use crate::reason::{ReasonCode, Verdict};
use crate::state::AssetState;
use crate::target::Conditions;

/// Most values of a set that an explanation lists.
const MAX_MISSING: usize = 24;

impl Judge<'_, '_> {
    /// The conditions on other registers, and where no commit is asked for whether one has moved.
    pub(super) fn registers(&self, state: &AssetState, candidate: Option<&Candidate<'_>>) -> Option<Obstacle> {
        let conditions = &self.member.conditions;
        let step = || self.partition(state, conditions).or_else(|| self.finished(state, conditions));
        self.watermark(state, conditions).or_else(step).or_else(|| {
            let has_moved = conditions.snapshot_required
                || conditions.every.is_some()
                || conditions.partition.is_some()
                || self.has_moved(state, conditions, candidate);
            (!has_moved).then(|| {
                let reason = self.reason(
                    ReasonCode::RegisterNotMoved,
                    "a register beyond what the last trigger took".to_owned(),
                    "nothing that is named has moved".to_owned(),
                    None,
                    "a change of what the dependency names",
                );
                (Verdict::Waiting, reason)
            })
        })
    }

    fn watermark(&self, state: &AssetState, conditions: &Conditions) -> Option<Obstacle> {
        let is_asked = conditions.watermark.is_some() || conditions.max_lag.is_some() || conditions.every.is_some();
        if !is_asked {
            return None;
        }
        let blocked = |code, expected, actual, since, unblock| {
            Some((Verdict::BlockedByWatermark, self.reason(code, expected, actual, since, unblock)))
        };
        let Some(register) = &state.watermark else {
            let unblock = "a writer that sets watermarks, or `watermarkFrom: push` and a pushed one";
            let (expected, actual) = ("a watermark".to_owned(), "the asset has never had one".to_owned());
            return blocked(ReasonCode::WatermarkAbsent, expected, actual, None, unblock);
        };
        let at = moment(register.at);
        let actual = || format!("watermark {at}");
        if let Some(wanted) = conditions.watermark.filter(|wanted| at < *wanted) {
            let expected = format!("watermark {wanted} or later");
            return blocked(
                ReasonCode::WatermarkNotReached,
                expected,
                actual(),
                Some(register.since),
                "a later watermark",
            );
        }
        if let Some(lag) = conditions.max_lag.filter(|lag| self.inputs.now.duration_since(at) > lag.duration()) {
            let expected = format!("a watermark at most {lag} behind now");
            return blocked(ReasonCode::WatermarkTooOld, expected, actual(), Some(register.since), "a later watermark");
        }
        if let (Some(every), Some(window)) = (&conditions.every, self.step.window)
            && at < every.covering(&window)
        {
            let end = every.covering(&window);
            let expected = format!("watermark {end} or later, for the window of {}", window.business_date);
            let unblock = "a watermark beyond the window";
            return blocked(ReasonCode::WindowOpen, expected, actual(), Some(register.since), unblock);
        }
        // A window that cannot be told yet: another member of the group has no watermark.
        if conditions.every.is_some() && self.step.window.is_none() {
            let (expected, unblock) = ("a watermark of every member".to_owned(), "a watermark of the other members");
            return blocked(ReasonCode::WindowOpen, expected, actual(), None, unblock);
        }
        None
    }

    fn partition(&self, state: &AssetState, conditions: &Conditions) -> Option<Obstacle> {
        let condition = conditions.partition.as_ref()?;
        let Some(value) = self.step.partition else {
            let expected = format!("a partition of {} beyond those taken", condition.join.join(", "));
            let (actual, unblock) = ("none is there".to_owned(), "a pushed PARTITION_DONE, and its commit");
            return Some((Verdict::Waiting, self.reason(ReasonCode::NoNewPartition, expected, actual, None, unblock)));
        };
        let missing = partition::lacks(state, condition, value)?;
        let set = condition.full_set.as_ref().map(|set| format!(" with all {} of {}", set.values.len(), set.key));
        let expected = format!("partition {value}{}", set.unwrap_or_default());
        let shown: Vec<&str> = missing.iter().take(MAX_MISSING).map(String::as_str).collect();
        let actual = match (missing.len(), condition.full_set.as_ref()) {
            (0, _) | (_, None) => "it is not there".to_owned(),
            (count, Some(set)) => {
                let more = if count > shown.len() { ", ..." } else { "" };
                format!("{count} of {} missing: {}{more}", set.key, shown.join(", "))
            }
        };
        let unblock = "a pushed PARTITION_DONE for each, and a commit at or after it";
        Some((Verdict::BlockedBySnapshot, self.reason(ReasonCode::PartitionMissing, expected, actual, None, unblock)))
    }

    fn finished(&self, state: &AssetState, conditions: &Conditions) -> Option<Obstacle> {
        if conditions.backfill_completed {
            let running = state.backfills.iter().find(|(_, backfill)| backfill.is_running());
            let is_new = state.finished_backfill() > self.taken.backfill;
            if running.is_some() || !is_new {
                let actual = running.map_or_else(
                    || "none has finished since the last trigger".to_owned(),
                    |(id, _)| format!("backfill {id} runs"),
                );
                let since = running.map(|(_, backfill)| backfill.since);
                let expected = "a finished backfill".to_owned();
                let reason = self.reason(
                    ReasonCode::BackfillNotCompleted,
                    expected,
                    actual,
                    since,
                    "a pushed BACKFILL_COMPLETED",
                );
                return Some((Verdict::BlockedByBackfill, reason));
            }
        }
        if conditions.cdc_lag_recovered && state.cdc_lag_recovered_at <= self.taken.cdc {
            let (expected, actual) = ("recovery from CDC lag".to_owned(), "none since the last trigger".to_owned());
            let reason = self.reason(
                ReasonCode::CdcLagNotRecovered,
                expected,
                actual,
                self.taken.cdc,
                "a pushed CDC_LAG_RECOVERED",
            );
            return Some((Verdict::Waiting, reason));
        }
        None
    }

    fn has_moved(&self, state: &AssetState, conditions: &Conditions, candidate: Option<&Candidate<'_>>) -> bool {
        let watermark = state.watermark.as_ref().map(|watermark| watermark.at);
        let by_watermark = conditions.watermark.is_some() || conditions.max_lag.is_some();
        let by_version = conditions.quality.is_some() || conditions.schema_compatible || conditions.tag.is_some();
        let version_moved = candidate.is_some_and(|candidate| {
            let position = Some(candidate.mark.version.position);
            // Of two tags on one version the later name counts: an earlier one, left when that is moved
            // away, is no news, and nor is its return.
            let later_tag = conditions.tag.is_some() && candidate.tag > self.taken.tag.as_deref();
            let other_schema = conditions.schema_compatible && candidate.mark.schema_id != self.taken.schema_id;
            // One below what was taken is left when a tag is deleted or a schema rejected: no news.
            let is_same = position == self.taken.position();
            position > self.taken.position() || (is_same && (later_tag || other_schema))
        });
        let is_other_history = candidate.is_some_and(|candidate| choice::opens_epoch(candidate, self.taken));
        let taken = self.taken.watermark.filter(|_| !is_other_history);
        (by_watermark && watermark > taken)
            || (by_version && version_moved)
            || conditions.backfill_completed
            || conditions.cdc_lag_recovered
    }
}

fn moment(millis: Millis) -> Timestamp {
    let limit = if millis.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis.0).unwrap_or(limit)
}
