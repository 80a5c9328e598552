//! What can be set for an asset.

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::Invalid;
use lakebell_domain::asset::Format;
use lakebell_domain::event::Outcome;
use lakebell_domain::policy::Length;
use lakebell_domain::state::AssetState;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;

/// Longest name of a property of a table, in bytes.
const MAX_PROPERTY: usize = 256;

/// To which version a verdict counts that names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BindVerdict {
    /// To the only version that was current during the whole check; to none if the table moved.
    #[default]
    Strict,
    /// To the one that is current when the verdict arrives.
    Latest,
}

/// Whether a schema that is new waits for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum SchemaApproval {
    /// It does not.
    #[default]
    None,
    /// It is pending until it is approved or rejected.
    Required,
}

/// Where the watermark comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WatermarkFrom {
    /// From the commits.
    #[default]
    Storage,
    /// From pushed events alone.
    Push,
}

/// What may advance the data version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// What is read from the table's own files.
    #[default]
    Storage,
    /// What is pushed, of a table whose files Lakebell cannot read. They are never looked at.
    Writer,
}

/// How often the clock looks at an asset, whether it was notified or not: at least a minute, which
/// is the floor of EventBridge's schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ScanInterval(Length);

impl ScanInterval {
    /// The shortest there is.
    const SHORTEST: SignedDuration = SignedDuration::from_mins(1);

    /// An interval of this length; `None` where it is shorter than a minute.
    pub fn new(length: Length) -> Option<Self> {
        (length.duration() >= Self::SHORTEST).then_some(Self(length))
    }

    /// Whether one of its moments lies after `from` and not after `to`. They repeat from a moment
    /// that differs from asset to asset (`offset`), so that assets of one interval do not come all
    /// in the same minute.
    pub fn falls_between(self, from: Timestamp, to: Timestamp, offset: u64) -> bool {
        let seconds = self.0.duration().as_secs();
        let offset = i64::try_from(offset % seconds.unsigned_abs()).unwrap_or(0);
        let last_up_to = |at: Timestamp| (at.as_second() - offset).div_euclid(seconds);
        last_up_to(to) > last_up_to(from)
    }
}

impl<'de> Deserialize<'de> for ScanInterval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let length = Length::deserialize(deserializer)?;
        Self::new(length)
            .ok_or_else(|| D::Error::custom(format!("`{length}` is shorter than a minute; write 1m or more")))
    }
}

/// The settings of an asset, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssetSettings {
    /// To which version a verdict counts that names none.
    pub bind_verdict: BindVerdict,
    /// Whether a schema that is new waits for a decision.
    pub schema_approval: SchemaApproval,
    /// Where the watermark comes from.
    pub watermark_from: WatermarkFrom,
    /// What may advance the data version.
    pub trust: Trust,
    /// Who says which metadata file of an Iceberg table is current.
    #[serde(skip_serializing_if = "Catalog::is_none")]
    pub catalog: Catalog,
    /// The property of an Iceberg snapshot's summary that is its watermark, where it is not the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark_property: Option<String>,
    /// How often the clock looks at it; absent, with every pass of the compensator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_interval: Option<ScanInterval>,
    /// Whether a Paimon consumer file keeps snapshots from expiring before they were read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_consumer: bool,
}

impl AssetSettings {
    /// Whether nothing was set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses settings that a table of this format cannot have.
    pub fn check(&self, format: Format) -> Result<(), Invalid> {
        let only_iceberg = |field| {
            let problem = format!("a {format} table has no such setting, only Iceberg's have it");
            Invalid::new(field, problem, "leave it out")
        };
        if format != Format::Iceberg && self.catalog != Catalog::None {
            return Err(only_iceberg("catalog"));
        }
        if self.keep_consumer && format != Format::Paimon {
            let problem = format!("{format} has no consumer files, Paimon has");
            return Err(Invalid::new("keepConsumer", problem, "leave it out"));
        }
        self.check_trust()?;
        let Some(property) = &self.watermark_property else { return Ok(()) };
        if format != Format::Iceberg {
            return Err(only_iceberg("watermarkProperty"));
        }
        if property.is_empty() || property.len() > MAX_PROPERTY || property.chars().any(char::is_control) {
            let problem = format!("it is empty, longer than {MAX_PROPERTY} bytes, or has control characters");
            let hint = "name the property of the snapshots' summaries, as in kafka.connect.valid-through-ts";
            return Err(Invalid::new("watermarkProperty", problem, hint));
        }
        Ok(())
    }

    /// Refuses settings about reading where nothing is read.
    fn check_trust(&self) -> Result<(), Invalid> {
        let reading = [
            ("catalog", self.catalog != Catalog::None),
            ("watermarkProperty", self.watermark_property.is_some()),
            ("keepConsumer", self.keep_consumer),
            ("scanInterval", self.scan_interval.is_some()),
        ];
        match reading.iter().find(|(_, is_set)| *is_set && self.trust == Trust::Writer) {
            Some((field, _)) => {
                let problem = "nothing is read of a table with `trust: writer`";
                Err(Invalid::new(*field, problem, "leave it out, or leave `trust` out"))
            }
            None => Ok(()),
        }
    }

    /// Puts into a state what the evaluator goes by. The schema that is current when approval is
    /// asked for the first time was there before anybody was asked.
    pub(crate) fn apply_to(&self, format: Format, state: &mut AssetState) {
        let is_read = self.trust == Trust::Storage;
        state.without_catalog = is_read && format == Format::Iceberg && self.catalog == Catalog::None;
        let is_required = self.schema_approval == SchemaApproval::Required;
        if is_required && !state.schema.approval_required && state.baseline.is_some() {
            state.schema.initial = state.schema.current;
        }
        state.schema.approval_required = is_required;
    }

    /// Why a pushed watermark does not count, if it does not.
    pub(crate) fn refuses_watermark(&self) -> Option<Outcome> {
        let reason = "the asset takes its watermark from storage; set `watermarkFrom: push` to take pushed ones";
        (self.watermark_from == WatermarkFrom::Storage).then(|| Outcome::Ignored(reason.to_owned()))
    }
}
