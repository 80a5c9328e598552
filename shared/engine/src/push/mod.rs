//! Events that writers push.
//!
//! A pushed version is a hint: storage alone moves the data version, and an event that storage does
//! not (yet) confirm is kept with that as its outcome. Verdicts, schema decisions, backfills and
//! recovered CDC lag are known to writers only: they are applied to the registers as they are told.

mod attach;
mod claim;
mod hint;
mod record;
mod trusted;
mod version;

use lakebell_domain::digest::hex;
use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_decoders::TableRef;
use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Format, Location};
use lakebell_domain::commit::Millis;
use lakebell_domain::event::{Event, EventKind, Outcome, PushedEvidence, Source};
use lakebell_domain::ids::{AssetId, ProjectCode, TraceId};
use lakebell_domain::state::Severity;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

pub use self::claim::{MAX_BACKFILL_ID, MAX_EXTRA, MAX_OPERATION, MAX_RUN_ID, MAX_STATUS};

use self::claim::Claim;
use crate::evaluate::{self, Evaluated};
use crate::inbox::identity;
use crate::lineage::{Flow, FoundLoop};
use crate::observe::{self, Hint, Look, Observed};
use crate::ports::Ports;
use crate::records::Resolved;
use crate::{EngineError, assets, lineage};

/// Kinds that can be pushed: all of them.
pub const PUSHABLE: [EventKind; 20] = [
    EventKind::PartitionDone,
    EventKind::SnapshotCommitted,
    EventKind::WatermarkAdvanced,
    EventKind::TagCreated,
    EventKind::TagDeleted,
    EventKind::QualityCheckPassed,
    EventKind::QualityCheckFailed,
    EventKind::QualityCheckErrored,
    EventKind::SchemaChanged,
    EventKind::SchemaChangeApproved,
    EventKind::SchemaChangeRejected,
    EventKind::BackfillStarted,
    EventKind::BackfillCompleted,
    EventKind::CdcLagRecovered,
    EventKind::HistoryRewritten,
    EventKind::TableCreated,
    EventKind::TableAltered,
    EventKind::TableRenamed,
    EventKind::TableDropped,
    EventKind::JobStatusChanged,
];

/// Which asset an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Named {
    /// By its key.
    Key(AssetKey),
    /// By where the table lives.
    Location(Location),
    /// As another form than Lakebell's own names it: by all that it says.
    Table(Box<TableRef>),
}

impl Named {
    /// The asset of that name, where there is one.
    pub(crate) async fn find(&self, ports: &Ports) -> Result<Option<AssetId>, EngineError> {
        match self {
            Self::Key(key) => assets::lookup(ports, key).await,
            Self::Location(location) => assets::at_location(ports, location, None).await,
            Self::Table(table) => identity::find(ports, table).await,
        }
    }

    /// The format of the table, where that is told.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Key(key) => Some(key.format()),
            Self::Location(_) => None,
            Self::Table(table) => table.format.or_else(|| table.key.as_ref().map(AssetKey::format)),
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => key.fmt(f),
            Self::Location(location) => location.fmt(f),
            Self::Table(table) => f.write_str(&table.name),
        }
    }
}

/// One pushed event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pushed {
    /// Unique for its source: the identity of the push.
    pub id: String,
    /// Who sent it.
    pub source: String,
    /// What it says.
    pub kind: EventKind,
    /// What it is about.
    pub asset: Named,
    /// The sender's time of the event.
    pub time: Option<Timestamp>,
    /// What it says in particular.
    pub facts: Facts,
}

/// What an event says beyond its kind. Each kind needs some of it; the rest is passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    /// The snapshot that it names, as the format writes it.
    pub snapshot_id: Option<String>,
    /// A tag.
    pub tag: Option<String>,
    /// A check or suite.
    pub check: Option<String>,
    /// How bad a failure of the check is; an error where it is left out.
    pub severity: Option<Severity>,
    /// The check's run, for people.
    pub run_id: Option<String>,
    /// Orders the runs of a check; the event's time where it is left out.
    pub run_at: Option<Timestamp>,
    /// When the check began.
    pub check_started_at: Option<Timestamp>,
    /// A schema.
    pub schema_id: Option<i64>,
    /// A backfill.
    pub backfill_id: Option<String>,
    /// A watermark, in milliseconds since 1970.
    pub watermark: Option<Millis>,
    /// A partition, as in `dt=20240910/hour=05`.
    pub partition: Option<String>,
    /// The place of the snapshot in the table's history, where its id tells no order.
    pub ordinal: Option<u64>,
    /// What the format calls what the commit did.
    pub operation: Option<String>,
    /// Rows that the commit added, less those that it removed.
    pub records: Option<i64>,
    /// The status of a job, in its own words.
    pub status: Option<String>,
    /// What a job reads and writes.
    pub flow: Option<Flow>,
    /// What else the writer wants to be kept with the event.
    pub extra: BTreeMap<String, Value>,
}

/// What became of a pushed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It was taken; this is what it meant for the asset's state.
    Looked(Outcome),
    /// No such asset is registered, or the writer may not speak for it.
    UnknownAsset,
}

/// What came of a push.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// What became of the event.
    pub receipt: Receipt,
    /// The evaluations that followed.
    pub evaluated: Vec<Evaluated>,
    /// Loops that its lineage is the first to show.
    pub loops: Vec<FoundLoop>,
}

/// Whether an event says all that its kind needs. Nothing is looked at.
///
/// Errors: the field that is missing, too long or impossible.
pub fn check(ports: &Ports, pushed: &Pushed) -> Result<(), Invalid> {
    Claim::of(pushed, ports.clock.now()).map(|_| ())
}

/// Takes a pushed event: looks at the asset or applies what the writer alone can know, keeps the
/// event, and evaluates the asset's targets. The same event again changes nothing.
///
/// Errors: `Invalid` with the field for a kind that cannot be pushed, or a field that is missing,
/// too long or impossible; `Unavailable` and `Contention`, after which the same event may be sent
/// again.
pub async fn push(ports: &Ports, pushed: &Pushed, trace: &TraceId) -> Result<Accepted, EngineError> {
    push_by(ports, None, pushed, trace).await
}

/// The same from a writer of a project, who speaks for the project's own assets and for those that
/// no project owns: any other one is unknown to it, whether it is registered or not.
///
/// Errors: those of [`push`].
pub async fn push_from(
    ports: &Ports,
    project: ProjectCode,
    pushed: &Pushed,
    trace: &TraceId,
) -> Result<Accepted, EngineError> {
    push_by(ports, Some(project), pushed, trace).await
}

async fn push_by(
    ports: &Ports,
    project: Option<ProjectCode>,
    pushed: &Pushed,
    trace: &TraceId,
) -> Result<Accepted, EngineError> {
    let claim = Claim::of(pushed, ports.clock.now())?;
    // What flows where is kept whether or not the table that leads it is registered.
    let loops = match (&claim, &pushed.facts.flow) {
        (Claim::Lineage, Some(flow)) => Box::pin(lineage::record(ports, flow)).await?,
        _ => Vec::new(),
    };
    let Some(asset) = resolve(ports, project, pushed).await? else {
        return Ok(Accepted { receipt: Receipt::UnknownAsset, evaluated: Vec::new(), loops });
    };
    let push = Push { ports, asset, pushed, trace };
    let (outcome, observed) = match claim {
        Claim::Hint(look) => Box::pin(hint::follow(&push, look)).await?,
        Claim::Lineage => {
            let receipt = push.keep_lineage().await?;
            let evaluated = if pushed.kind == EventKind::JobStatusChanged {
                Vec::new()
            } else {
                // What became of the table shows in storage: a new schema, another table, or none.
                let hint = Hint { asset, look: Look::Whole, source: Source::Push, trace: trace.clone() };
                let observed = Box::pin(observe::observe(ports, &hint)).await?;
                Box::pin(evaluate::evaluate_dependents(ports, &observed, trace)).await?
            };
            return Ok(Accepted { receipt, evaluated, loops });
        }
        Claim::Writers(claim) => Box::pin(record::take(&push, &claim)).await?,
    };
    let evaluated = Box::pin(evaluate::evaluate_dependents(ports, &observed, trace)).await?;
    Ok(Accepted { receipt: Receipt::Looked(outcome), evaluated, loops })
}

/// A push on its way.
struct Push<'a> {
    ports: &'a Ports,
    asset: AssetId,
    pushed: &'a Pushed,
    trace: &'a TraceId,
}

impl Push<'_> {
    /// The identity of the push itself, for what has none of its own: a repeated delivery is the
    /// same event, in whichever epoch it arrives.
    fn token(&self) -> String {
        let Pushed { source, id, .. } = self.pushed;
        let digest = Sha256::digest(format!("{source}\n{id}").as_bytes());
        format!("push.{}", hex(&digest[..16]))
    }

    /// The event to keep, about no version in particular.
    fn event(&self, outcome: Outcome, evidence: Option<PushedEvidence>) -> Event {
        Event {
            asset: self.asset,
            kind: self.pushed.kind,
            token: self.token(),
            source: Source::Push,
            outcome,
            recorded_at: self.ports.clock.now(),
            trace: self.trace.clone(),
            position: None,
            commit: None,
            evidence,
            extra: self.pushed.facts.extra.clone(),
            detail: Some(format!("event {} of {}", self.pushed.id, self.pushed.source)),
        }
    }

    /// Keeps what changes no register.
    async fn keep_lineage(&self) -> Result<Receipt, EngineError> {
        let outcome = Outcome::Ignored("kept for lineage; it changes no register".to_owned());
        let status = self.pushed.facts.status.clone();
        let event = self.event(outcome.clone(), status.map(|status| PushedEvidence::Job { status }));
        let is_new = record::keep(self.ports, &event).await?;
        Ok(Receipt::Looked(if is_new { outcome } else { Outcome::Duplicate }))
    }
}

async fn resolve(ports: &Ports, project: Option<ProjectCode>, pushed: &Pushed) -> Result<Option<AssetId>, EngineError> {
    let found = match &pushed.asset {
        Named::Key(key) => assets::resolve_key(ports, key).await?,
        Named::Location(location) => assets::resolve_location(ports, location, None).await?,
        Named::Table(table) => Box::pin(identity::find(ports, table)).await?.map(|id| Resolved { id, project: None }),
    };
    match (found, project) {
        (Some(found), Some(project)) if !assets::speaks_for(ports, project, &found).await? => Ok(None),
        (found, _) => Ok(found.map(|found| found.id)),
    }
}

/// The asset as it stands, without a look at storage, for an evaluation.
fn as_observed(asset: AssetId, known: record::Known, kind: EventKind, outcome: &Outcome) -> Observed {
    Observed { asset, head: known.head, pointers: known.pointers, outcomes: vec![(kind, outcome.clone())] }
}
