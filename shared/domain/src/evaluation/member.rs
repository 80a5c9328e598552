//! The verdict on one dependency.

use std::borrow::Cow;

use jiff::Timestamp;

use super::choice::{self, Candidate, Refused};
use super::timing::backfill_that_holds;
use super::{AssetView, Inputs, MemberEvaluation, partition};
use crate::commit::{CommitKind, Millis};
use crate::cursor::Taken;
use crate::ids::GroupName;
use crate::policy::{OnBackfill, Partition, Window};
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::state::{AssetState, Mark, QualityVerdict, SchemaStatus, Totals, TroubleCode};
use crate::target::{Conditions, Member};
use crate::version::Version;

/// Most values of a set that an explanation lists.
const MAX_MISSING: usize = 24;

type Obstacle = (Verdict, Reason);

/// The window or the partition that a group would take next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) window: Option<Window>,
    pub(super) partition: Option<&'a Partition>,
}

pub(super) fn evaluate(inputs: &Inputs<'_>, group: &GroupName, member: &Member, step: Step<'_>) -> MemberEvaluation {
    let view = inputs.assets.get(&member.asset).copied().unwrap_or(AssetView::of(0, None));
    let taken = taken(inputs, group, member, view.state);
    let Judged { obstacle, newest, reach } = Judge { inputs, member, view, taken: &taken, step }.judge();
    let (verdict, reason) = match obstacle {
        Some((verdict, reason)) => (verdict, Some(reason)),
        None => (Verdict::Ready, None),
    };
    MemberEvaluation {
        asset: member.key.clone(),
        alias: member.alias.clone(),
        verdict,
        reason,
        taken: match taken {
            Cow::Borrowed(taken) => taken.version.clone(),
            Cow::Owned(taken) => taken.version,
        },
        newest,
        written_by: view.live().and_then(|state| state.writer.clone()),
        without_catalog: view.live().is_some_and(|state| state.without_catalog),
        demands: view.live().map(|state| state.demands.clone()).unwrap_or_default(),
        refused: view.live().and_then(|state| state.refused.clone()),
        id: member.asset,
        reach,
    }
}

/// What counts as consumed: the cursor, or what the first read found where nothing was taken yet.
pub(super) fn taken<'a>(
    inputs: &Inputs<'a>,
    group: &GroupName,
    member: &Member,
    state: Option<&AssetState>,
) -> Cow<'a, Taken> {
    if let Some(taken) = inputs.cursor.at(group, member.asset) {
        return Cow::Borrowed(taken);
    }
    let baseline = state.and_then(|state| state.baseline.as_ref());
    Cow::Owned(baseline.map_or_else(Taken::default, |baseline| Taken {
        version: baseline.version.clone(),
        totals: baseline.totals,
        watermark: baseline.watermark,
        schema_id: state.and_then(|state| state.schema.initial),
        ..Taken::default()
    }))
}

/// The same for a plan that is not asked for by conditions: the newest version that meets them, or
/// else the newest that changes data, or else what was taken.
pub(super) fn at_hand<'a>(inputs: &Inputs<'a>, group: &GroupName, member: &Member) -> Cow<'a, Taken> {
    let view = inputs.assets.get(&member.asset).copied().unwrap_or(AssetView::of(0, None));
    let taken = taken(inputs, group, member, view.state);
    let Some(state) = view.live().filter(|state| state.hold.is_none()) else { return taken };
    let chosen = choice::choose(inputs, view, state, &member.conditions, taken.position()).ok();
    let data = || {
        let data = state.data.as_ref().map(|data| &data.mark);
        data.filter(|mark| Some(mark.version.position) > taken.position())
    };
    let chosen = chosen.or_else(|| data().map(|mark| Candidate { mark: Cow::Borrowed(mark), tag: None }));
    Cow::Owned(choice::reach(state, chosen.as_ref(), &taken))
}

struct Judge<'a, 'b> {
    inputs: &'b Inputs<'a>,
    member: &'b Member,
    view: AssetView<'a>,
    taken: &'b Taken,
    step: Step<'b>,
}

/// What stands in the way, or else what a claim would take.
struct Judged {
    obstacle: Option<Obstacle>,
    newest: Option<Version>,
    reach: Option<Taken>,
}

impl<'a> Judge<'a, '_> {
    fn judge(&self) -> Judged {
        let Some(state) = self.view.live() else {
            return Judged { obstacle: Some(self.unknown_asset()), newest: None, reach: None };
        };
        let conditions = &self.member.conditions;
        let needs_version =
            conditions.snapshot_required && conditions.every.is_none() && conditions.partition.is_none();
        let beyond = if needs_version { self.taken.position() } else { None };
        let chosen = choice::choose(self.inputs, self.view, state, conditions, beyond);
        let newest = match &chosen {
            Ok(candidate) => Some(candidate.mark.version.clone()),
            Err(_) => {
                choice::choose(self.inputs, self.view, state, conditions, None).ok().map(|c| c.mark.version.clone())
            }
        };
        let obstacle = self.failed_optional(state).or_else(|| self.hold(state)).or_else(|| match &chosen {
            // Without a commit that is asked for, having none at all is no obstacle of its own.
            Err(Refused::NothingNew) if !needs_version => None,
            Err(refused) => Some(self.refusal(state, refused)),
            Ok(candidate) => self.too_few(candidate),
        });
        let obstacle = obstacle.or_else(|| self.registers(state, chosen.as_ref().ok()));
        let reach = obstacle.is_none().then(|| choice::reach(state, chosen.as_ref().ok(), self.taken));
        Judged { obstacle, newest, reach }
    }

    fn reason(
        &self,
        code: ReasonCode,
        expected: String,
        actual: String,
        since: Option<Timestamp>,
        unblock: &'static str,
    ) -> Reason {
        Reason { code, asset: Some(self.member.key.clone()), expected, actual, since, unblock: unblock.into() }
    }

    fn unknown_asset(&self) -> Obstacle {
        let unblock = "register the asset again, or take it out of the target";
        let (expected, actual) = ("a registered asset".to_owned(), "it was deregistered".to_owned());
        (Verdict::BlockedByUnknownAsset, self.reason(ReasonCode::AssetUnknown, expected, actual, None, unblock))
    }

    fn hold(&self, state: &AssetState) -> Option<Obstacle> {
        if let Some(hold) = &state.hold {
            let (code, unblock) = match hold.confirmed_at {
                Some(_) => (ReasonCode::RewriteHeld, "accept the rewrite of the asset"),
                None => (ReasonCode::RewriteSuspected, "nothing to do yet: a second read decides"),
            };
            let expected = "the recorded history".to_owned();
            let reason = self.reason(code, expected, hold.evidence.clone(), Some(hold.first_seen), unblock);
            return Some((Verdict::BlockedByRewrite, reason));
        }
        if self.inputs.target.policies.on_backfill != OnBackfill::Hold {
            return None;
        }
        let (id, backfill) = backfill_that_holds(state, self.inputs.now)?;
        let (expected, actual) = ("no running backfill".to_owned(), format!("backfill {id} runs"));
        let unblock = "the end of the backfill, or pushing BACKFILL_COMPLETED for it";
        let reason = self.reason(ReasonCode::BackfillRunning, expected, actual, Some(backfill.since), unblock);
        Some((Verdict::BlockedByBackfill, reason))
    }

    fn failed_optional(&self, state: &'a AssetState) -> Option<Obstacle> {
        if !self.member.conditions.must_not_fail() {
            return None;
        }
        let required = self.member.conditions.quality.as_ref().map_or(&[][..], |quality| &quality.checks);
        let (mark, verdict) = state.quality.newest_verdict(required)?;
        (verdict == QualityVerdict::Failed).then(|| self.quality_failed(state, mark))
    }

    fn quality_failed(&self, state: &AssetState, mark: &Mark) -> Obstacle {
        let checks = state.quality.failed_checks(mark.version.position).join(", ");
        let reason = self.reason(
            ReasonCode::QualityFailed,
            "a version whose checks passed".to_owned(),
            format!("snapshot {} failed {checks}", mark.version.snapshot_id),
            Some(mark.since),
            "a later run of the check that passes, or a newer version that does; `onFailedVersion: pass-over` goes on \
             with the newest version that passed",
        );
        (Verdict::BlockedByQuality, reason)
    }

    fn refusal(&self, state: &'a AssetState, refused: &Refused<'a>) -> Obstacle {
        let conditions = &self.member.conditions;
        let of = |mark: &Mark, text: &str| format!("snapshot {} {text}", mark.version.snapshot_id);
        let (verdict, code, expected, actual, since, unblock) = match refused {
            Refused::NothingNew => return self.not_advanced(state),
            Refused::BelowMinimum(newest) => {
                let minimum =
                    conditions.minimum.as_ref().map(|minimum| minimum.snapshot_id.as_str()).unwrap_or_default();
                (
                    Verdict::BlockedBySnapshot,
                    ReasonCode::MinSnapshotNotReached,
                    format!("snapshot {minimum} or later"),
                    format!("snapshot {}", newest.version.snapshot_id),
                    Some(newest.since),
                    "a commit at or beyond the minimum",
                )
            }
            Refused::Backfill => (
                Verdict::Waiting,
                ReasonCode::BackfillIgnored,
                "a commit that is not of a backfill".to_owned(),
                "all new commits are of a backfill".to_owned(),
                None,
                "a commit after the backfill",
            ),
            Refused::QualityFailed(mark) => return self.quality_failed(state, mark),
            Refused::QualityUnknown(newest) => {
                let checks = conditions.quality.iter().flat_map(|quality| &quality.checks);
                let checks: Vec<&str> = checks.map(String::as_str).collect();
                let required = if checks.is_empty() { "its checks".to_owned() } else { checks.join(", ") };
                (
                    Verdict::BlockedByQuality,
                    ReasonCode::QualityUnknown,
                    format!("{required} PASSED on a version beyond the cursor"),
                    of(newest, "has no verdict yet"),
                    Some(newest.since),
                    "a pushed QUALITY_CHECK_PASSED for it",
                )
            }
            Refused::Schema(newest, status) => {
                let (code, actual, unblock) = match status {
                    SchemaStatus::Rejected => {
                        (ReasonCode::SchemaRejected, "rejected", "approving the schema, or a commit under another one")
                    }
                    SchemaStatus::PendingApproval => {
                        (ReasonCode::SchemaPending, "pending approval", "approving or rejecting the schema")
                    }
                    _ => (ReasonCode::SchemaUndecided, "undecided", "approving the schema"),
                };
                let schema =
                    newest.schema_id.map_or_else(|| "an unknown schema".to_owned(), |id| format!("schema {id}"));
                (
                    Verdict::BlockedBySchema,
                    code,
                    "a version whose schema is COMPATIBLE".to_owned(),
                    of(newest, &format!("is of {schema}, {actual}")),
                    Some(newest.since),
                    unblock,
                )
            }
            Refused::Untagged(newest) => {
                let pattern = conditions.tag.as_ref().map(ToString::to_string).unwrap_or_default();
                (
                    Verdict::BlockedByTag,
                    ReasonCode::TagMissing,
                    format!("a tag `{pattern}` on a version beyond the cursor"),
                    of(newest, "is the newest, and no such tag is there"),
                    Some(newest.since),
                    "creating the tag",
                )
            }
        };
        (verdict, self.reason(code, expected, actual, since, unblock))
    }

    fn too_few(&self, candidate: &Candidate<'_>) -> Option<Obstacle> {
        let conditions = &self.member.conditions;
        if conditions.min_new_snapshots <= 1 && conditions.min_delta_records.is_none() {
            return None;
        }
        let mark = &*candidate.mark;
        let same_history = self.taken.position().is_some_and(|taken| taken.epoch == mark.version.position.epoch);
        let before = if same_history { self.taken.totals } else { Totals::default() };
        let counted = |totals: Totals| totals.data - if conditions.ignore_empty { totals.empty } else { 0 };
        let count = counted(mark.totals).saturating_sub(counted(before));
        if count < conditions.min_new_snapshots {
            let expected = format!("{} new commits", conditions.min_new_snapshots);
            let (actual, unblock) = (format!("{count} since the last trigger"), "more commits");
            let reason = self.reason(ReasonCode::TooFewSnapshots, expected, actual, Some(mark.since), unblock);
            return Some((Verdict::BlockedBySnapshot, reason));
        }
        let wanted = conditions.min_delta_records?;
        let rows = mark.totals.rows.saturating_sub(before.rows);
        if rows >= wanted {
            return None;
        }
        let (expected, actual) = (format!("{wanted} new rows"), format!("{rows} since the last trigger"));
        let reason =
            self.reason(ReasonCode::TooFewRecords, expected, actual, Some(mark.since), "commits that add more rows");
        Some((Verdict::BlockedBySnapshot, reason))
    }

    /// The conditions on other registers, and where no commit is asked for whether one has moved.
    fn registers(&self, state: &AssetState, candidate: Option<&Candidate<'_>>) -> Option<Obstacle> {
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
            let other_tag = conditions.tag.is_some() && candidate.tag != self.taken.tag.as_deref();
            let other_schema = conditions.schema_compatible && candidate.mark.schema_id != self.taken.schema_id;
            // One below what was taken is left when a tag is deleted or a schema rejected: no news.
            let is_same = position == self.taken.position();
            position > self.taken.position() || (is_same && (other_tag || other_schema))
        });
        let is_other_history = candidate.is_some_and(|candidate| choice::opens_epoch(candidate, self.taken));
        let taken = self.taken.watermark.filter(|_| !is_other_history);
        (by_watermark && watermark > taken)
            || (by_version && version_moved)
            || conditions.backfill_completed
            || conditions.cdc_lag_recovered
    }

    /// Nothing beyond the cursor: because reading fails, because there never was one, or just not yet.
    fn not_advanced(&self, state: &AssetState) -> Obstacle {
        let newest = choice::newest_counted(self.view, state, &self.member.conditions);
        let wanted = wanted(&self.member.conditions);
        let expected = match &self.taken.version {
            Some(taken) => [&*wanted, " beyond snapshot ", taken.snapshot_id.as_str()].concat(),
            None => wanted.into_owned(),
        };
        let (verdict, code, actual, since, unblock) = if let Some(trouble) = &state.trouble {
            let (code, unblock) = match trouble.code {
                TroubleCode::Unreadable => {
                    (ReasonCode::LocationUnreadable, "give the functions read access to the location")
                }
                TroubleCode::Damaged => (ReasonCode::CommitDamaged, "repair or remove the damaged commit file"),
                TroubleCode::CatalogAway => {
                    (ReasonCode::CatalogAway, "nothing to do once the catalog answers: it is asked again by itself")
                }
                TroubleCode::CatalogRefused => (
                    ReasonCode::CatalogRefused,
                    "mend the asset's `catalog` setting, its secret, or the right to read the table",
                ),
                TroubleCode::CatalogUnclear => {
                    (ReasonCode::CatalogUnclear, "see whether the `catalog` setting leads to an Iceberg catalog")
                }
                TroubleCode::NotInCatalog => (
                    ReasonCode::NotInCatalog,
                    "create the table, or correct `database` and `table` of the `catalog` setting",
                ),
            };
            (Verdict::BlockedBySnapshot, code, trouble.detail.clone(), Some(trouble.since), unblock)
        } else if let Some(hole) = &state.hole {
            let actual = format!("commit {} is missing although a later one is there", hole.ordinal);
            let unblock = "nothing to do: it is read when it appears, and becomes a recorded gap after the grace time";
            (Verdict::BlockedBySnapshot, ReasonCode::CommitMissing, actual, Some(hole.first_seen), unblock)
        } else if state.baseline.is_none() {
            let actual = "the table was never read".to_owned();
            (Verdict::BlockedBySnapshot, ReasonCode::NeverRead, actual, None, "a notification or a scan of the table")
        } else if let Some(newest) = newest {
            let actual = ["newest is snapshot ", newest.version.snapshot_id.as_str()].concat();
            let unblock = if state.unnotified.is_some_and(|unnotified| unnotified.is_lasting()) {
                "a new commit to the table, which is seen with the next scan: its bucket's notifications do not come"
            } else {
                "a new commit to the table"
            };
            (Verdict::Waiting, ReasonCode::NoNewVersion, actual, Some(newest.since), unblock)
        } else {
            let actual = match &state.table {
                Some(table) => format!("the newest commit, snapshot {}, is of another kind", table.snapshot_id),
                None => "the table has no commit".to_owned(),
            };
            (Verdict::Waiting, ReasonCode::NoVersionYet, actual, None, "a first commit of that kind")
        };
        (verdict, self.reason(code, expected, actual, since, unblock))
    }
}

fn moment(millis: Millis) -> Timestamp {
    let limit = if millis.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis.0).unwrap_or(limit)
}

fn wanted(conditions: &Conditions) -> Cow<'static, str> {
    match &conditions.commit_kinds {
        None if conditions.ignore_empty => Cow::Borrowed("a commit that changes rows"),
        None => Cow::Borrowed("a commit that changes data"),
        Some(kinds) => {
            let names: Vec<&str> = kinds.iter().map(|CommitKind(name)| name.as_str()).collect();
            Cow::Owned(format!("a commit of kind {}", names.join(" or ")))
        }
    }
}
