//! An asset as it is registered.

use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Location, WrittenKey};
use serde::{Deserialize, Serialize};

use crate::asset_settings::{AssetSettings, BindVerdict, ScanInterval, SchemaApproval, Trust, WatermarkFrom};
use crate::catalog::Catalog;

/// An asset to be registered: with its key, or (`WrittenKey`) with one whose format is to be recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AssetSpec"))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssetSpec<K = AssetKey> {
    /// Its key.
    pub key: K,
    /// Where the table lives.
    pub location: Location,
    /// To which version a verdict counts that names none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bind_verdict: BindVerdict,
    /// Whether a schema that is new waits for a decision.
    #[serde(default, skip_serializing_if = "is_default")]
    pub schema_approval: SchemaApproval,
    /// Where the watermark comes from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watermark_from: WatermarkFrom,
    /// What may advance the data version.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trust: Trust,
    /// The catalog that says which metadata file of an Iceberg table is current.
    #[serde(default, skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::catalog::Written"))]
    pub catalog: Catalog,
    /// The property of an Iceberg snapshot's summary that is its watermark; `kafka.connect.valid-through-ts`
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark_property: Option<String>,
    /// Whether a Paimon consumer file keeps snapshots from expiring before they were read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_consumer: bool,
    /// How often the clock looks at it; absent, with every pass of the compensator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_interval: Option<ScanInterval>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl<K> AssetSpec<K> {
    /// What it sets; what it leaves out is the default.
    pub fn settings(&self) -> AssetSettings {
        AssetSettings {
            bind_verdict: self.bind_verdict,
            schema_approval: self.schema_approval,
            watermark_from: self.watermark_from,
            trust: self.trust,
            catalog: self.catalog.clone(),
            watermark_property: self.watermark_property.clone(),
            scan_interval: self.scan_interval,
            keep_consumer: self.keep_consumer,
        }
    }

    /// The same with another key.
    pub fn with_key<L>(self, key: L) -> AssetSpec<L> {
        AssetSpec {
            key,
            location: self.location,
            bind_verdict: self.bind_verdict,
            schema_approval: self.schema_approval,
            watermark_from: self.watermark_from,
            trust: self.trust,
            catalog: self.catalog,
            watermark_property: self.watermark_property,
            keep_consumer: self.keep_consumer,
            scan_interval: self.scan_interval,
        }
    }
}

impl AssetSpec {
    /// A table without settings.
    pub fn new(key: AssetKey, location: Location) -> Self {
        Self {
            key,
            location,
            bind_verdict: BindVerdict::default(),
            schema_approval: SchemaApproval::default(),
            watermark_from: WatermarkFrom::default(),
            trust: Trust::default(),
            catalog: Catalog::None,
            watermark_property: None,
            keep_consumer: false,
            scan_interval: None,
        }
    }

    /// Errors: `Invalid` for a setting that the table's format does not have.
    pub fn check(&self) -> Result<(), Invalid> {
        self.settings().check(self.key.format())
    }
}

impl AssetSpec<WrittenKey> {
    /// The same as far as it can be said before the format is recognised.
    pub fn check_written(&self) -> Result<(), Invalid> {
        self.key.told().map_or(Ok(()), |key| self.settings().check(key.format()))
    }
}
