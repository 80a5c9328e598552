//! From what a decoder reports to events of Lakebell's own kinds.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_decoders::{Job, Lifecycle, Mention, Report, Says, TableRef};
use lakebell_domain::commit::Millis;
use lakebell_domain::event::EventKind;
use serde_json::Value;

use crate::lineage::{Dataset, Flow, StartedBy};
use crate::push::{Facts, MAX_OPERATION, MAX_RUN_ID, MAX_STATUS, Named, Pushed};

/// The event that a report stands for.
pub(super) fn pushed(source: &str, id: String, asset: Named, report: &Report, received: Timestamp) -> Pushed {
    let mut facts = Facts::default();
    let kind = match &report.says {
        Says::Touched => EventKind::SnapshotCommitted,
        Says::Committed(committed) => {
            facts.snapshot_id = Some(committed.snapshot.clone());
            facts.ordinal = committed.ordinal;
            facts.operation = committed.operation.as_deref().and_then(|name| short(name, MAX_OPERATION));
            let stats = committed.stats.iter().map(|(name, number)| (name.clone(), Value::from(*number)));
            facts.extra = stats.collect();
            EventKind::SnapshotCommitted
        }
        Says::Tagged { tag } => {
            facts.tag = Some(tag.clone());
            EventKind::TagCreated
        }
        Says::SchemaChanged { schema } => {
            facts.schema_id = *schema;
            EventKind::SchemaChanged
        }
        Says::Check { check, result, severity, run, started_at, snapshot } => {
            facts.check = Some(check.clone());
            facts.severity = Some(*severity);
            facts.run_id = run.as_deref().and_then(|run| short(run, MAX_RUN_ID));
            facts.check_started_at = *started_at;
            facts.snapshot_id.clone_from(snapshot);
            EventKind::from(*result)
        }
        Says::Partition { partition } => {
            facts.partition = Some(partition.clone());
            EventKind::PartitionDone
        }
        Says::Watermark { to } => {
            facts.watermark = Some(Millis(to.as_millisecond()));
            EventKind::WatermarkAdvanced
        }
        Says::Lifecycle(Lifecycle::Created) => EventKind::TableCreated,
        Says::Lifecycle(Lifecycle::Altered) => EventKind::TableAltered,
        Says::Lifecycle(Lifecycle::Dropped) => EventKind::TableDropped,
        Says::Lifecycle(Lifecycle::Renamed { previous }) => {
            facts.extra = BTreeMap::from([("previous".to_owned(), Value::from(previous.as_str()))]);
            EventKind::TableRenamed
        }
        Says::JobStatus { status } => {
            facts.status = Some(short(status, MAX_STATUS).unwrap_or_else(|| "UNKNOWN".to_owned()));
            EventKind::JobStatusChanged
        }
    };
    Pushed { id, source: source.to_owned(), kind, asset, time: report.at.or(Some(received)), facts }
}

/// A text without control characters, cut where it is too long; `None` where nothing is left.
fn short(text: &str, most: usize) -> Option<String> {
    let mut kept = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        if kept.len() + c.len_utf8() > most {
            break;
        }
        kept.push(c);
    }
    (!kept.trim().is_empty()).then_some(kept)
}

/// What a job reads and writes, as lineage keeps it.
pub(super) fn flow(job: &Job) -> Flow {
    let side = |tables: &[TableRef]| tables.iter().map(dataset).collect();
    let started_by = job.mentions.clone().map(|mention| match mention {
        Mention::Trigger(key) => StartedBy::Trigger(key),
        Mention::Target(target) => StartedBy::Target(target),
        Mention::Workflow(project, workflow) => StartedBy::Workflow(project, workflow),
    });
    Flow { job: job.name.clone(), inputs: side(&job.inputs), outputs: side(&job.outputs), started_by }
}

fn dataset(table: &TableRef) -> Dataset {
    Dataset { name: table.name.clone(), named: vec![Named::Table(Box::new(table.clone()))] }
}
