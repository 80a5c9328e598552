//! The `data` of an event: what it says about a table.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::commit::Millis;
use lakebell_domain::state::Severity;
use lakebell_domain::target::SnapshotIdText;
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
    status: Option<String>,
    #[serde(default)]
    extra: BTreeMap<String, Value>,
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
            (None, None) => Err(Invalid::new("data.asset", "no table is named", "give `asset` or `location`")),
        }
    }

    /// What is said about it. Which of it the kind needs, and how long it may be, the engine knows.
    pub(super) fn facts(self) -> Result<Facts, Invalid> {
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
