//! Why no version of an asset is taken: none is new, none meets the conditions, or too few have come.

use std::borrow::Cow;

use super::{Judge, Obstacle};
use crate::commit::CommitKind;
use crate::evaluation::choice::{self, Candidate, Refused};
use crate::reason::{ReasonCode, Verdict};
use crate::state::{AssetState, Mark, SchemaStatus, Totals, TroubleCode};
use crate::target::Conditions;

impl<'a> Judge<'a, '_> {
    pub(super) fn refusal(&self, state: &'a AssetState, refused: &Refused<'a>) -> Obstacle {
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

    pub(super) fn quality_failed(&self, state: &AssetState, mark: &Mark) -> Obstacle {
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

    pub(super) fn too_few(&self, candidate: &Candidate<'_>) -> Option<Obstacle> {
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
