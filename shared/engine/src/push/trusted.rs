//! Events about an asset whose writer is trusted (`trust: writer`): what storage has to confirm elsewhere counts
//! as it is told.

use lakebell_domain::asset::Format;
use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::state::{Evidence, RewriteHold, TagEntry};
use lakebell_domain::target::ordinal_of;
use lakebell_domain::version::{Fingerprint, Ordinal};

use super::{Push, attach, record, version};
use crate::EngineError;
use crate::observe::{self, Hint, Look, Observed};
use crate::records::AssetHead;

/// What a commit is called whose operation is not told.
const UNNAMED: &str = "PUSHED";

/// Takes an event. `observed` is the asset as it stands.
pub(super) async fn take(push: &Push<'_>, mut observed: Observed) -> Result<(Outcome, Observed), EngineError> {
    let told = match observed.head.value.live_state() {
        Some(_) => evidence(push, &observed.head.value).await?,
        None => Err(observe::DEREGISTERED.to_owned()),
    };
    match told {
        Ok(evidence) => {
            let source = lakebell_domain::event::Source::Push;
            let hint = Hint { asset: push.asset, look: Look::Whole, source, trace: push.trace.clone() };
            let observed = observe::told(push.ports, &hint, &evidence).await?;
            let outcome = observed.outcomes.last().map_or(Outcome::Duplicate, |(_, outcome)| outcome.clone());
            attach::keep(push, &observed.head.value).await?;
            Ok((outcome, observed))
        }
        Err(reason) => {
            let outcome = Outcome::Ignored(reason.clone());
            let event = push.event(outcome.clone(), None);
            record::keep_refused(push, &event, &reason, &mut observed.head).await?;
            Ok((outcome, observed))
        }
    }
}

/// What an event says, or why it says nothing.
async fn evidence(push: &Push<'_>, head: &AssetHead) -> Result<Result<Evidence, String>, EngineError> {
    let facts = &push.pushed.facts;
    Ok(match (push.pushed.kind, &facts.tag) {
        (EventKind::SnapshotCommitted, _) => {
            commit(push, head.key.format()).map(|commit| Evidence::Commit(Box::new(commit)))
        }
        (EventKind::TagCreated, Some(name)) => {
            let named = match &facts.snapshot_id {
                Some(id) => version::of_snapshot(push, head, id).await?,
                None => head.state.data.as_ref().map(|data| data.mark.clone()),
            };
            let entry = named.as_ref().map(TagEntry::from);
            let missing = || "the snapshot that the tag names was not told of, or not of late".to_owned();
            entry.map(|entry| Evidence::TagCreated(name.clone(), entry)).ok_or_else(missing)
        }
        (EventKind::TagDeleted, Some(name)) => Ok(Evidence::TagDeleted(name.clone())),
        (EventKind::HistoryRewritten, _) => Ok(Evidence::RewriteSighted(RewriteHold {
            evidence: format!("event {} of {} says so", push.pushed.id, push.pushed.source),
            withdrawn: head.state.table.clone(),
            storage_newest: None,
            first_seen: push.ports.clock.now(),
            confirmed_at: None,
        })),
        (EventKind::SchemaChanged, _) => {
            Err("a schema comes with its first commit: give `schemaId` with snapshot.committed".to_owned())
        }
        _ => Err("nothing follows from it for an asset with `trust: writer`".to_owned()),
    })
}

/// The commit that an event tells of, or what it lacks.
fn commit(push: &Push<'_>, format: Format) -> Result<Commit, String> {
    let facts = &push.pushed.facts;
    let Some(id) = &facts.snapshot_id else {
        return Err("it names no snapshot, and nothing is read of an asset with `trust: writer`".to_owned());
    };
    let told = facts.ordinal.filter(|ordinal| *ordinal > 0).map(Ordinal);
    // An instant of Hudi is a time in digits; a completion time, where the writer knows it, is the ordinal.
    let instant = || id.parse().ok().filter(|_| format == Format::Hudi).map(Ordinal);
    let Some(ordinal) = ordinal_of(format, id).or(told).or_else(instant) else {
        return Err(format!(
            "snapshot ids of {format} tell no order: give `ordinal`, its place in the table's history (Iceberg's \
             sequence number)"
        ));
    };
    let kind = facts.operation.clone().unwrap_or_else(|| UNNAMED.to_owned());
    Ok(Commit {
        ordinal,
        // All that tells two commits of one place apart, and the same whoever tells of it.
        fingerprint: Fingerprint::from(format!("told:{id}").as_str()),
        snapshot_id: id.clone(),
        parent_id: None,
        changes_data: Some(!is_maintenance(format, &kind)),
        kind: CommitKind(kind),
        watermark: facts.watermark,
        committed_at: push.pushed.time.map(|time| Millis(time.as_millisecond())),
        schema_id: facts.schema_id,
        total_records: None,
        delta_records: facts.records,
        tags: Vec::new(),
        extra: facts.extra.clone(),
    })
}

/// Whether an operation leaves the rows as they are, by its name in the format.
fn is_maintenance(format: Format, kind: &str) -> bool {
    let names: &[&str] = match format {
        Format::Paimon => &["COMPACT", "ANALYZE"],
        Format::Iceberg => &["replace"],
        Format::Delta => &["OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES"],
        Format::Hudi => &["COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA", "clean", "rollback"],
    };
    names.iter().any(|name| name.eq_ignore_ascii_case(kind))
}
