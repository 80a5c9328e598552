//! Catalogs in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use lakebell_domain::asset::AssetKey;
use lakebell_engine::catalog::RemoteCatalog;
use lakebell_engine::ports::catalog::Catalogs;
use lakebell_engine::{EngineError, ErrorKind};

use crate::lock;

/// A [`Catalogs`] whose tables point to where a test says.
#[derive(Debug, Default)]
pub struct MemoryCatalogs {
    tables: Mutex<BTreeMap<String, String>>,
    failing: Mutex<Option<ErrorKind>>,
}

impl MemoryCatalogs {
    /// Catalogs without tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the pointer of a table, of all its branches, to a metadata file. One store of pointers
    /// serves every catalog.
    pub fn point(&self, table: &AssetKey, file: &str) {
        lock(&self.tables).insert(name(table), file.to_owned());
    }

    /// The same for a table by its database and its name in the catalog.
    pub fn point_named(&self, database: &str, table: &str, file: &str) {
        lock(&self.tables).insert(format!("{database}/{table}"), file.to_owned());
    }

    /// Forgets a table.
    pub fn drop_table(&self, table: &AssetKey) {
        lock(&self.tables).remove(&name(table));
    }

    /// From now on every question fails with this kind; `None` ends it.
    pub fn fail(&self, kind: Option<ErrorKind>) {
        *lock(&self.failing) = kind;
    }
}

fn name(table: &AssetKey) -> String {
    format!("{}/{}", table.database(), table.table())
}

/// What a table is asked for by.
fn asked(catalog: &RemoteCatalog, table: &AssetKey) -> String {
    let named = match catalog {
        RemoteCatalog::Rest(rest) => &rest.table,
        RemoteCatalog::Glue(glue) => &glue.table,
    };
    format!("{}/{}", named.database(table), named.table(table))
}

#[async_trait]
impl Catalogs for MemoryCatalogs {
    async fn current(&self, catalog: &RemoteCatalog, table: &AssetKey) -> Result<String, EngineError> {
        if let Some(kind) = *lock(&self.failing) {
            return Err(EngineError::new(kind, "the catalog failed by the test"));
        }
        let current = lock(&self.tables).get(&asked(catalog, table)).cloned();
        current.ok_or_else(|| EngineError::new(ErrorKind::NotFound, format!("the catalog has no table {table}")))
    }
}
