//! What a pushed event claims, and whether it says all that its kind needs.

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::commit::Millis;
use lakebell_domain::event::{CheckFacts, EventKind, PushedEvidence};
use lakebell_domain::lineage::MAX_NAME;
use lakebell_domain::policy::{MAX_PARTITION_BYTES, Partition};
use lakebell_domain::state::{BackfillStatus, CheckResult, MAX_CHECK_NAME, SchemaStatus, Severity};
use lakebell_domain::version::Ordinal;

use super::{Facts, PUSHABLE, Pushed};
use crate::lineage::MAX_SIDE;
use crate::observe::Look;

/// Longest id of a backfill, in bytes.
pub const MAX_BACKFILL_ID: usize = 128;
/// Longest id of a check's run, in bytes.
pub const MAX_RUN_ID: usize = 128;
/// Longest status of a job, in bytes.
pub const MAX_STATUS: usize = 64;
/// Longest name of an operation, in bytes.
pub const MAX_OPERATION: usize = 64;
/// Largest `extra`, in bytes of JSON: it stands in an item with the event.
pub const MAX_EXTRA: usize = 4_096;

/// What an event comes to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Claim {
    /// Look there.
    Hint(Look),
    /// What writers alone can know.
    Writers(Writers),
    /// Nothing that a register holds.
    Lineage,
}

/// What writers alone can know.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Writers {
    /// A finished check.
    Check(CheckFacts, Option<Began>),
    /// A decision about a schema.
    Schema(i64, SchemaStatus),
    /// A backfill began or ended.
    Backfill(String, BackfillStatus),
    /// CDC lag has recovered.
    CdcLag,
    /// A watermark.
    Watermark(Millis),
    /// A partition is done; the snapshot that the writer named.
    Partition(Partition, Option<String>),
}

/// When a check began, as far as its event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Began(pub(super) Timestamp);

impl Writers {
    /// The facts to keep.
    pub(super) fn evidence(&self) -> PushedEvidence {
        match self {
            Self::Check(facts, _) => PushedEvidence::Check(facts.clone()),
            Self::Schema(schema_id, status) => PushedEvidence::Schema { schema_id: *schema_id, status: *status },
            Self::Backfill(id, status) => PushedEvidence::Backfill { id: id.clone(), status: *status },
            Self::CdcLag => PushedEvidence::CdcLag,
            Self::Watermark(at) => PushedEvidence::Watermark { at: *at },
            Self::Partition(partition, snapshot_id) => {
                PushedEvidence::Partition { partition: partition.clone(), snapshot_id: snapshot_id.clone() }
            }
        }
    }
}

impl Claim {
    /// Reads what an event claims.
    ///
    /// Errors: the field that is missing, too long or impossible.
    pub(super) fn of(pushed: &Pushed, now: Timestamp) -> Result<Self, Invalid> {
        use EventKind as Kind;
        if !PUSHABLE.contains(&pushed.kind) {
            return Err(not_pushable(pushed.kind));
        }
        let facts = &pushed.facts;
        check_extra(facts)?;
        let writers = match pushed.kind {
            Kind::QualityCheckPassed => check(pushed, CheckResult::Passed, now)?,
            Kind::QualityCheckFailed => check(pushed, CheckResult::Failed, now)?,
            Kind::QualityCheckErrored => check(pushed, CheckResult::Errored, now)?,
            Kind::SchemaChangeApproved => Writers::Schema(schema(facts)?, SchemaStatus::Compatible),
            Kind::SchemaChangeRejected => Writers::Schema(schema(facts)?, SchemaStatus::Rejected),
            Kind::BackfillStarted => Writers::Backfill(backfill(facts)?, BackfillStatus::Running),
            Kind::BackfillCompleted => Writers::Backfill(backfill(facts)?, BackfillStatus::Completed),
            Kind::CdcLagRecovered => Writers::CdcLag,
            Kind::WatermarkAdvanced => Writers::Watermark(watermark(facts)?),
            Kind::PartitionDone => Writers::Partition(partition(facts)?, facts.snapshot_id.clone()),
            Kind::JobStatusChanged => {
                let hint = "give the job's status, as in FINISHED";
                text(facts.status.as_ref(), "data.status", MAX_STATUS, hint)?;
                check_flow(facts)?;
                return Ok(Self::Lineage);
            }
            Kind::TableCreated | Kind::TableAltered | Kind::TableRenamed | Kind::TableDropped => {
                return Ok(Self::Lineage);
            }
            _ => return look(pushed).map(Self::Hint),
        };
        Ok(Self::Writers(writers))
    }
}

fn not_pushable(kind: EventKind) -> Invalid {
    let names: Vec<&str> = PUSHABLE.iter().map(|kind| kind.as_str()).collect();
    Invalid::new(
        "type",
        format!("{kind} is not available in this version"),
        format!("push one of {}", names.join(", ")),
    )
}

/// Where an event points that storage has to confirm.
fn look(pushed: &Pushed) -> Result<Look, Invalid> {
    let facts = &pushed.facts;
    match pushed.kind {
        EventKind::TagCreated | EventKind::TagDeleted => match &facts.tag {
            Some(tag) => Ok(Look::Tag(tag.clone())),
            None => Err(Invalid::new("data.tag", "the event names no tag", "give the tag's name")),
        },
        EventKind::SnapshotCommitted => {
            if facts.operation.is_some() {
                let hint = "give what the format calls it, as in APPEND";
                text(facts.operation.as_ref(), "data.operation", MAX_OPERATION, hint)?;
            }
            let ordinal = facts.snapshot_id.as_ref().and_then(|id| id.parse().ok());
            Ok(ordinal.map_or(Look::Whole, |ordinal| Look::At { ordinal: Ordinal(ordinal), etag: None }))
        }
        _ => Ok(Look::Whole),
    }
}

fn partition(facts: &Facts) -> Result<Partition, Invalid> {
    let hint = "give the partition, as in dt=20240910/hour=05";
    let text = text(facts.partition.as_ref(), "data.partition", MAX_PARTITION_BYTES, hint)?;
    text.parse().map_err(|invalid: Invalid| Invalid { field: "data.partition".to_owned(), ..invalid })
}

fn check(pushed: &Pushed, result: CheckResult, now: Timestamp) -> Result<Writers, Invalid> {
    let facts = &pushed.facts;
    let name = text(facts.check.as_ref(), "data.check", MAX_CHECK_NAME, "name the check or suite")?;
    if facts.run_id.is_some() {
        text(facts.run_id.as_ref(), "data.runId", MAX_RUN_ID, "give the id of the check's run")?;
    }
    // Without a time of its own a second delivery would be a later run.
    let Some(run) = facts.run_at.or(pushed.time) else {
        return Err(Invalid::new(
            "data.runAt",
            "neither it nor the event's `time` says when the check ran",
            "give one of them: the later run of a check counts",
        ));
    };
    let began = facts.check_started_at.or(facts.run_at);
    if let (Some(began), Some(ended)) = (facts.check_started_at, pushed.time)
        && began > ended
    {
        return Err(Invalid::new(
            "data.checkStartedAt",
            "it is after the event's `time`, when the check had ended",
            "give the time at which the check began",
        ));
    }
    let facts = CheckFacts {
        check: name,
        result,
        severity: facts.severity.unwrap_or(Severity::Error),
        run: run.as_millisecond(),
        run_id: facts.run_id.clone(),
        snapshot_id: facts.snapshot_id.clone(),
        started_at: facts.check_started_at,
    };
    // A writer's clock that is ahead must not make a check look as if it had not begun yet.
    Ok(Writers::Check(facts, began.map(|began| Began(began.min(now)))))
}

fn schema(facts: &Facts) -> Result<i64, Invalid> {
    let missing = || Invalid::new("data.schemaId", "it is missing", "give the id of the schema that was decided about");
    facts.schema_id.ok_or_else(missing)
}

fn backfill(facts: &Facts) -> Result<String, Invalid> {
    let hint = "give the backfill's id: its end is told by the same id";
    text(facts.backfill_id.as_ref(), "data.backfillId", MAX_BACKFILL_ID, hint)
}

fn watermark(facts: &Facts) -> Result<Millis, Invalid> {
    let hint = "give the event time as ISO 8601, or in milliseconds since 1970";
    facts.watermark.ok_or_else(|| Invalid::new("data.watermark", "it is missing", hint))
}

fn text(given: Option<&String>, field: &str, most: usize, hint: &str) -> Result<String, Invalid> {
    let Some(given) = given else { return Err(Invalid::new(field, "it is missing", hint)) };
    if given.trim().is_empty() || given.len() > most || given.chars().any(char::is_control) {
        let hint = format!("use 1 to {most} bytes without control characters");
        return Err(Invalid::new(field, "it is empty, too long or has control characters", hint));
    }
    Ok(given.clone())
}

fn check_flow(facts: &Facts) -> Result<(), Invalid> {
    let Some(flow) = &facts.flow else { return Ok(()) };
    text(Some(&flow.job), "data.job", MAX_NAME, "name the job")?;
    for (field, side) in [("data.inputs", &flow.inputs), ("data.outputs", &flow.outputs)] {
        if side.len() > MAX_SIDE {
            let problem = format!("it has {} tables", side.len());
            return Err(Invalid::new(field, problem, format!("name at most {MAX_SIDE}")));
        }
    }
    Ok(())
}

fn check_extra(facts: &Facts) -> Result<(), Invalid> {
    let bytes = serde_json::to_vec(&facts.extra).map_or(usize::MAX, |json| json.len());
    if bytes <= MAX_EXTRA {
        return Ok(());
    }
    let problem = format!("it has {bytes} bytes as JSON");
    Err(Invalid::new("data.extra", problem, format!("use at most {MAX_EXTRA}")))
}
