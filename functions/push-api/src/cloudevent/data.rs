//! The `data` of an event: what it says about a table.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::commit::Millis;
use lakebell_domain::ids::{ProjectCode, TargetId, TriggerKey};
use lakebell_domain::state::Severity;
use lakebell_domain::target::{SnapshotIdText, WorkflowRef};
use lakebell_engine::lineage::{Dataset, Flow, StartedBy};
use lakebell_engine::push::{Facts, Named};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, de};
use serde_json::Value;

/// Longest `snapshotId` and `tag`.
const MAX_NAME_BYTES: usize = 255;

/// What an event says about a table.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Data {
    #[serde(default)]
    asset: Option<AssetKey>,
    #[serde(default)]
    location: Option<Location>,
    #[serde(default)]
    snapshot_id: Option<SnapshotIdText>,
    #[serde(default)]
    tag: Option<String>,
    #[serde(default)]
    check: Option<String>,
    #[serde(default)]
    severity: Option<Severity>,
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default)]
    run_at: Option<Timestamp>,
    #[serde(default)]
    check_started_at: Option<Timestamp>,
    #[serde(default)]
    schema_id: Option<i64>,
    #[serde(default)]
    backfill_id: Option<String>,
    /// A partition; the RFC calls it by its longer name.
    #[serde(alias = "partitionKey")]
    partition: Option<String>,
    #[serde(default)]
    watermark: Option<Watermark>,
    #[serde(default)]
    ordinal: Option<u64>,
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    records: Option<i64>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    inputs: Vec<Table>,
    #[serde(default)]
    outputs: Vec<Table>,
    #[serde(default)]
    trigger_key: Option<TriggerKey>,
    #[serde(default)]
    target: Option<TargetId>,
    #[serde(default)]
    workflow: Option<Workflow>,
    #[serde(default)]
    extra: BTreeMap<String, Value>,
}

/// A table by its key or by its location.
#[derive(Debug, Clone)]
struct Table(Named);

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_location =
            text.split_once("://").is_some_and(|(scheme, _)| scheme.to_ascii_lowercase().starts_with("s3"));
        let named = if is_location { text.parse().map(Named::Location) } else { text.parse().map(Named::Key) };
        named.map(Self).map_err(D::Error::custom)
    }
}

/// A workflow as `project/code` or `project/name`.
#[derive(Debug, Clone)]
struct Workflow(ProjectCode, WorkflowRef);

impl<'de> Deserialize<'de> for Workflow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parts = text.split_once('/').filter(|(_, name)| !name.is_empty() && name.len() <= MAX_NAME_BYTES);
        let wrong = || D::Error::custom("it names no workflow; write <project code>/<workflow code or name>");
        let (project, name) = parts.ok_or_else(wrong)?;
        let workflow = name.parse().map_or_else(|_| WorkflowRef::Name(name.to_owned()), WorkflowRef::Code);
        Ok(Self(project.parse().map_err(D::Error::custom)?, workflow))
    }
}

/// A moment as ISO 8601 or in milliseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct Watermark(Millis);

impl<'de> Deserialize<'de> for Watermark {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl de::Visitor<'_> for Either {
            type Value = Watermark;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time, as in 2026-01-15T10:00:00Z or in milliseconds since 1970")
            }

            fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Watermark, E> {
                Ok(Watermark(Millis(millis)))
            }

            fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Watermark, E> {
                i64::try_from(millis).map(|millis| Watermark(Millis(millis))).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Watermark, E> {
                let time: Result<Timestamp, _> = text.parse();
                let hint = "it is no time; write it as in 2026-01-15T10:00:00Z, or in milliseconds since 1970";
                time.map(|time| Watermark(Millis(time.as_millisecond()))).map_err(|_| E::custom(hint))
            }
        }

        deserializer.deserialize_any(Either).map_err(D::Error::custom)
    }
}

impl Data {
    /// The table that is named.
    pub(super) fn asset(&self) -> Result<Named, Invalid> {
        match (&self.asset, &self.location) {
            (Some(key), None) => Ok(Named::Key(key.clone())),
            (None, Some(location)) => Ok(Named::Location(location.clone())),
            (Some(_), Some(_)) => {
                Err(Invalid::new("data.location", "it stands beside `asset`", "name the table by one of them"))
            }
            // A job is about the tables that it names.
            (None, None) => self
                .outputs
                .first()
                .or_else(|| self.inputs.first())
                .map(|table| table.0.clone())
                .ok_or_else(|| Invalid::new("data.asset", "no table is named", "give `asset` or `location`")),
        }
    }

    /// What a job reads and writes, where it says so.
    fn flow(&self) -> Option<Flow> {
        if self.inputs.is_empty() && self.outputs.is_empty() {
            return None;
        }
        let side = |tables: &[Table]| {
            let dataset = |Table(named): &Table| Dataset { name: named.to_string(), named: vec![named.clone()] };
            tables.iter().map(dataset).collect()
        };
        let of_target = || self.target.clone().map(StartedBy::Target);
        let of_workflow =
            || self.workflow.clone().map(|Workflow(project, workflow)| StartedBy::Workflow(project, workflow));
        Some(Flow {
            job: self.job.clone().unwrap_or_else(|| "unnamed".to_owned()),
            inputs: side(&self.inputs),
            outputs: side(&self.outputs),
            started_by: self.trigger_key.clone().map(StartedBy::Trigger).or_else(of_target).or_else(of_workflow),
        })
    }

    /// What is said about it. Which of it the kind needs, and how long it may be, the engine knows.
    pub(super) fn facts(self) -> Result<Facts, Invalid> {
        let flow = self.flow();
        Ok(Facts {
            snapshot_id: self.snapshot_id.map(|id| short("data.snapshotId", id.0)).transpose()?,
            tag: self.tag.map(|tag| short("data.tag", tag)).transpose()?,
            check: self.check,
            severity: self.severity,
            run_id: self.run_id,
            run_at: self.run_at,
            check_started_at: self.check_started_at,
            schema_id: self.schema_id,
            backfill_id: self.backfill_id,
            partition: self.partition,
            watermark: self.watermark.map(|Watermark(at)| at),
            flow,
            ordinal: self.ordinal,
            operation: self.operation,
            records: self.records,
            status: self.status,
            extra: self.extra,
        })
    }
}

fn short(field: &str, text: String) -> Result<String, Invalid> {
    if text.is_empty() || text.len() > MAX_NAME_BYTES || text.chars().any(char::is_control) {
        let hint = format!("use 1 to {MAX_NAME_BYTES} bytes without control characters");
        return Err(Invalid::new(field, "it is empty, too long or has control characters", hint));
    }
    Ok(text)
}
