//! The catalogs that decide which metadata file of an Iceberg table is current.

use async_trait::async_trait;
use lakebell_domain::asset::AssetKey;

use crate::EngineError;
use crate::catalog::RemoteCatalog;

/// Asks catalogs that are services.
///
/// Errors: `NotFound` where the catalog does not know the table; `Denied` where it refuses, or a
/// secret is missing, unusable or meant for another place; `Damaged` for an answer that cannot be
/// understood or is too large; `Unavailable` where it did not answer in time, is throttled or
/// broken, and a later try may succeed. No message holds a secret.
#[async_trait]
pub trait Catalogs: Send + Sync {
    /// The URL of the current metadata file of a table, as in `s3://bucket/path/00001-x.metadata.json`.
    /// A branch of a table has the table's.
    async fn current(&self, catalog: &RemoteCatalog, table: &AssetKey) -> Result<String, EngineError>;
}
