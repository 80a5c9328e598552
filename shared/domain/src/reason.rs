//! Why something is not ready, in a form that people and programs can both use.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;

/// The verdict of a dependency, a group or a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// A claim would succeed.
    Ready,
    /// Nothing new since the cursor.
    Waiting,
    /// No version meets the snapshot conditions.
    BlockedBySnapshot,
    /// The watermark has not come far enough.
    BlockedByWatermark,
    /// A check failed, or has not passed.
    BlockedByQuality,
    /// The schema is not approved.
    BlockedBySchema,
    /// The tag is missing.
    BlockedByTag,
    /// A backfill runs.
    BlockedByBackfill,
    /// History was rewritten and nobody has accepted it.
    BlockedByRewrite,
    /// The asset is not, or no longer, registered.
    BlockedByUnknownAsset,
    /// A time gate is closed.
    BlockedByGate,
    /// The target is paused.
    Paused,
    /// The target is switched off or invalid.
    Disabled,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 13] = [
        Self::Ready,
        Self::Waiting,
        Self::BlockedBySnapshot,
        Self::BlockedByWatermark,
        Self::BlockedByQuality,
        Self::BlockedBySchema,
        Self::BlockedByTag,
        Self::BlockedByBackfill,
        Self::BlockedByRewrite,
        Self::BlockedByUnknownAsset,
        Self::BlockedByGate,
        Self::Paused,
        Self::Disabled,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Waiting => "WAITING",
            Self::BlockedBySnapshot => "BLOCKED_BY_SNAPSHOT",
            Self::BlockedByWatermark => "BLOCKED_BY_WATERMARK",
            Self::BlockedByQuality => "BLOCKED_BY_QUALITY",
            Self::BlockedBySchema => "BLOCKED_BY_SCHEMA",
            Self::BlockedByTag => "BLOCKED_BY_TAG",
            Self::BlockedByBackfill => "BLOCKED_BY_BACKFILL",
            Self::BlockedByRewrite => "BLOCKED_BY_REWRITE",
            Self::BlockedByUnknownAsset => "BLOCKED_BY_UNKNOWN_ASSET",
            Self::BlockedByGate => "BLOCKED_BY_GATE",
            Self::Paused => "PAUSED",
            Self::Disabled => "DISABLED",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The leading reason of a verdict that is not READY. Each has a page under `docs/reasons/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReasonCode {
    /// The asset has no commit of the wanted kind beyond the cursor.
    NoNewVersion,
    /// The table has never had a commit of the wanted kind.
    NoVersionYet,
    /// The newest commit is below `minSnapshotId`.
    MinSnapshotNotReached,
    /// The table was never read.
    NeverRead,
    /// The location cannot be read.
    LocationUnreadable,
    /// A commit file cannot be understood.
    CommitDamaged,
    /// A commit is missing below one that is there.
    CommitMissing,
    /// The table's catalog did not answer.
    CatalogAway,
    /// The table's catalog refuses to answer.
    CatalogRefused,
    /// The table's catalog answered something that cannot be understood.
    CatalogUnclear,
    /// The table's catalog does not know the table.
    NotInCatalog,
    /// Storage contradicts the recorded history; a second read has not yet agreed.
    RewriteSuspected,
    /// History was rewritten and waits for an operator.
    RewriteHeld,
    /// The asset was deregistered.
    AssetUnknown,
    /// Fewer members than `atLeast` asks for have advanced.
    TooFewAdvanced,
    /// Another trigger of this target has not ended.
    TriggerInFlight,
    /// A trigger of this target waits for a person.
    TriggerHeld,
    /// Somebody paused the target.
    TargetPaused,
    /// The target is switched off.
    TargetDisabled,
    /// The target cannot be what it was declared to be any more.
    TargetInvalid,
    /// The newest version with a verdict failed a check.
    QualityFailed,
    /// There is a new version, and not every required check has passed on it.
    QualityUnknown,
    /// The new version's schema waits for approval.
    SchemaPending,
    /// The new version's schema was rejected.
    SchemaRejected,
    /// Nobody has said whether the new version's schema is compatible.
    SchemaUndecided,
    /// No version beyond the cursor has a tag of the wanted form.
    TagMissing,
    /// The asset has never had a watermark.
    WatermarkAbsent,
    /// The watermark has not reached the wanted event time.
    WatermarkNotReached,
    /// The watermark is too far behind now.
    WatermarkTooOld,
    /// The watermark has not reached the end of the next window.
    WindowOpen,
    /// A backfill of the asset runs.
    BackfillRunning,
    /// The only new commits are those of a backfill, and the target ignores them.
    BackfillIgnored,
    /// No backfill has finished since the last trigger.
    BackfillNotCompleted,
    /// CDC lag has not recovered since the last trigger.
    CdcLagNotRecovered,
    /// Every condition holds, and nothing that is named has moved since the last trigger.
    RegisterNotMoved,
    /// There are fewer new commits than `minNewSnapshots`.
    TooFewSnapshots,
    /// The new commits added fewer rows than `minDeltaRecords`.
    TooFewRecords,
    /// No table that a prefix takes in is registered.
    NoMemberYet,
    /// No partition beyond those taken is there.
    NoNewPartition,
    /// The next partition, or a part of its set, is not there.
    PartitionMissing,
    /// A member moved within the quiet period.
    QuietPeriod,
    /// The last trigger was claimed less than the minimum interval ago.
    MinInterval,
    /// It is before the earliest time of day.
    NotBefore,
    /// It is outside the run window.
    OutsideRunWindow,
    /// Starting is switched off for the project or altogether.
    SwitchedOff,
    /// The last trigger failed, and the target holds until it is redriven.
    TriggerFailed,
}

impl ReasonCode {
    /// All codes, for the check that each has its page.
    pub const ALL: [Self; 46] = [
        Self::NoNewVersion,
        Self::NoVersionYet,
        Self::MinSnapshotNotReached,
        Self::NeverRead,
        Self::LocationUnreadable,
        Self::CommitDamaged,
        Self::CommitMissing,
        Self::CatalogAway,
        Self::CatalogRefused,
        Self::CatalogUnclear,
        Self::NotInCatalog,
        Self::RewriteSuspected,
        Self::RewriteHeld,
        Self::AssetUnknown,
        Self::TooFewAdvanced,
        Self::TriggerInFlight,
        Self::TriggerHeld,
        Self::TargetPaused,
        Self::TargetDisabled,
        Self::TargetInvalid,
        Self::QualityFailed,
        Self::QualityUnknown,
        Self::SchemaPending,
        Self::SchemaRejected,
        Self::SchemaUndecided,
        Self::TagMissing,
        Self::WatermarkAbsent,
        Self::WatermarkNotReached,
        Self::WatermarkTooOld,
        Self::WindowOpen,
        Self::BackfillRunning,
        Self::BackfillIgnored,
        Self::BackfillNotCompleted,
        Self::CdcLagNotRecovered,
        Self::RegisterNotMoved,
        Self::TooFewSnapshots,
        Self::TooFewRecords,
        Self::NoMemberYet,
        Self::NoNewPartition,
        Self::PartitionMissing,
        Self::QuietPeriod,
        Self::MinInterval,
        Self::NotBefore,
        Self::OutsideRunWindow,
        Self::SwitchedOff,
        Self::TriggerFailed,
    ];

    /// The code on the wire, which is also the name of its page.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoNewVersion => "NO_NEW_VERSION",
            Self::NoVersionYet => "NO_VERSION_YET",
            Self::MinSnapshotNotReached => "MIN_SNAPSHOT_NOT_REACHED",
            Self::NeverRead => "NEVER_READ",
            Self::LocationUnreadable => "LOCATION_UNREADABLE",
            Self::CommitDamaged => "COMMIT_DAMAGED",
            Self::CommitMissing => "COMMIT_MISSING",
            Self::CatalogAway => "CATALOG_AWAY",
            Self::CatalogRefused => "CATALOG_REFUSED",
            Self::CatalogUnclear => "CATALOG_UNCLEAR",
            Self::NotInCatalog => "NOT_IN_CATALOG",
            Self::RewriteSuspected => "REWRITE_SUSPECTED",
            Self::RewriteHeld => "REWRITE_HELD",
            Self::AssetUnknown => "ASSET_UNKNOWN",
            Self::TooFewAdvanced => "TOO_FEW_ADVANCED",
            Self::TriggerInFlight => "TRIGGER_IN_FLIGHT",
            Self::TriggerHeld => "TRIGGER_HELD",
            Self::TargetPaused => "TARGET_PAUSED",
            Self::TargetDisabled => "TARGET_DISABLED",
            Self::TargetInvalid => "TARGET_INVALID",
            Self::QualityFailed => "QUALITY_FAILED",
            Self::QualityUnknown => "QUALITY_UNKNOWN",
            Self::SchemaPending => "SCHEMA_PENDING",
            Self::SchemaRejected => "SCHEMA_REJECTED",
            Self::SchemaUndecided => "SCHEMA_UNDECIDED",
            Self::TagMissing => "TAG_MISSING",
            Self::WatermarkAbsent => "WATERMARK_ABSENT",
            Self::WatermarkNotReached => "WATERMARK_NOT_REACHED",
            Self::WatermarkTooOld => "WATERMARK_TOO_OLD",
            Self::WindowOpen => "WINDOW_OPEN",
            Self::BackfillRunning => "BACKFILL_RUNNING",
            Self::BackfillIgnored => "BACKFILL_IGNORED",
            Self::BackfillNotCompleted => "BACKFILL_NOT_COMPLETED",
            Self::CdcLagNotRecovered => "CDC_LAG_NOT_RECOVERED",
            Self::RegisterNotMoved => "REGISTER_NOT_MOVED",
            Self::TooFewSnapshots => "TOO_FEW_SNAPSHOTS",
            Self::TooFewRecords => "TOO_FEW_RECORDS",
            Self::NoMemberYet => "NO_MEMBER_YET",
            Self::NoNewPartition => "NO_NEW_PARTITION",
            Self::PartitionMissing => "PARTITION_MISSING",
            Self::QuietPeriod => "QUIET_PERIOD",
            Self::MinInterval => "MIN_INTERVAL",
            Self::NotBefore => "NOT_BEFORE",
            Self::OutsideRunWindow => "OUTSIDE_RUN_WINDOW",
            Self::SwitchedOff => "SWITCHED_OFF",
            Self::TriggerFailed => "TRIGGER_FAILED",
        }
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why, about what, what was expected, what is there, since when, and what would unblock it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The code.
    pub code: ReasonCode,
    /// The asset that it is about, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<AssetKey>,
    /// What was expected.
    pub expected: String,
    /// What is there.
    pub actual: String,
    /// Since when, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What would unblock it.
    pub unblock: Cow<'static, str>,
}
