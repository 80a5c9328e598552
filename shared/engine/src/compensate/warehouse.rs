//! New tables of a registered warehouse, found by the clock: their first commit may have been
//! notified to nobody.
//!
//! Folders are listed by delimiter, so that the size of the data does not matter, and each look
//! remembers how far it came.

use jiff::Timestamp;
use lakebell_domain::asset::{AssetKey, Format, Location};
use lakebell_domain::ids::TraceId;
use serde::{Deserialize, Serialize};

use super::remember;
use crate::assets;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::Key;
use crate::records::Warehouse;
use crate::settings::{self, RefusedTable};
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind};

/// Databases of one listing.
const DATABASES: usize = 1_000;
/// Tables of one listing.
const TABLES: usize = 1_000;
/// Keys that are looked up in one read of the store: of each table the location, and its name in each
/// format that it may have.
const LOOKED_UP: usize = 100;
/// Most tables that one look goes through; the rest is the next one's.
const MAX_TABLES: usize = 20_000;
/// Most folders that one look asks whether they are tables, at a request or two each.
const MAX_ASKED: usize = 200;

/// How far a look came: behind this table of this database.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// Absent where the database is through.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
}

/// What a look for new tables came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// Folders that were looked at.
    pub tables: usize,
    /// Tables that were registered.
    pub registered: Vec<AssetKey>,
    /// Tables that could not be registered, and why.
    pub refused: Vec<RefusedTable>,
    /// Folders that were asked whether they are tables.
    asked: usize,
    /// Whether it came to the end of the warehouse; `false` where the next look goes on.
    pub is_complete: bool,
}

/// Looks for tables below a warehouse that nobody has registered yet, and registers them, from where
/// the last look stopped until `deadline`. A table that a person has deregistered stays so.
///
/// Errors: `NotFound` where the warehouse is not declared (any more); `Denied` where it may not be
/// listed; those of the store. How far it came is remembered.
pub async fn look_for_tables(
    ports: &Ports,
    location: &Location,
    trace: &TraceId,
    deadline: Timestamp,
) -> Result<Looked, EngineError> {
    let declared: Option<Stored<Warehouse>> =
        store::get(&*ports.items, layout::setting(settings::WAREHOUSES, &location.to_string())).await?;
    let warehouse = declared
        .map(|stored| stored.value)
        .ok_or_else(|| EngineError::new(ErrorKind::NotFound, format!("no warehouse is declared at {location}")))?;
    let key = Key::new("SCAN", format!("W#{location}"));
    let kept: Option<Stored<Place>> = store::get(&*ports.items, key.clone()).await?;
    let begun = kept.as_ref().map(|kept| kept.value.clone()).unwrap_or_default();
    let mut look =
        Look { ports, warehouse: &warehouse, trace, deadline, place: begun.clone(), done: Looked::default() };
    let walked = look.walk().await;
    let Look { place, done, .. } = look;
    let reached = if done.is_complete { Place::default() } else { place };
    if reached != begun {
        remember(ports, key, &reached, kept.map(|kept| kept.rev)).await?;
    }
    walked.map(|()| done)
}

struct Look<'a> {
    ports: &'a Ports,
    warehouse: &'a Warehouse,
    trace: &'a TraceId,
    deadline: Timestamp,
    place: Place,
    done: Looked,
}

impl Look<'_> {
    async fn walk(&mut self) -> Result<(), EngineError> {
        if let Place { database: Some(database), table: Some(_) } = self.place.clone()
            && !self.database(&database).await?
        {
            return Ok(());
        }
        let location = &self.warehouse.location;
        let root = location.object_key("");
        loop {
            let after = self.place.database.clone();
            let storage = &self.ports.storage;
            let databases = storage.folders(location.bucket(), &root, after.as_deref(), DATABASES).await?;
            for database in &databases {
                if settings::database_of(self.warehouse.format, database).is_some() && !self.database(database).await? {
                    return Ok(());
                }
                self.place = Place { database: Some(database.clone()), table: None };
            }
            if databases.len() < DATABASES {
                self.done.is_complete = true;
                return Ok(());
            }
        }
    }

    /// Goes through a database, from the place on; `false` where it has to stop.
    async fn database(&mut self, database: &str) -> Result<bool, EngineError> {
        let location = &self.warehouse.location;
        let root = location.object_key(&format!("{database}/"));
        let mut after = self.place.table.take();
        loop {
            let tables = self.ports.storage.folders(location.bucket(), &root, after.as_deref(), TABLES).await?;
            for chunk in tables.chunks(LOOKED_UP / (1 + self.formats().count())) {
                if self.must_stop() {
                    // At the very beginning of a database the place stays at the end of the one before.
                    if after.is_some() {
                        self.place = Place { database: Some(database.to_owned()), table: after };
                    }
                    return Ok(false);
                }
                self.tables(database, chunk).await?;
                after = chunk.last().cloned();
                self.place = Place { database: Some(database.to_owned()), table: after.clone() };
            }
            if tables.len() < TABLES {
                self.place = Place { database: Some(database.to_owned()), table: None };
                return Ok(true);
            }
        }
    }

    fn must_stop(&self) -> bool {
        self.done.tables >= MAX_TABLES || self.done.asked >= MAX_ASKED || self.ports.clock.now() >= self.deadline
    }

    /// The formats that a table here may have.
    fn formats(&self) -> impl Iterator<Item = Format> + use<> {
        let choice = self.warehouse.format;
        Format::ALL.into_iter().filter(move |format| choice.takes(*format))
    }

    async fn tables(&mut self, database: &str, tables: &[String]) -> Result<(), EngineError> {
        let bucket = self.warehouse.location.bucket();
        // Each folder that may be a table, with the keys under which it would be known.
        let mut folders: Vec<(Location, Vec<Key>)> = Vec::new();
        for table in tables {
            let prefix = self.warehouse.location.object_key(&format!("{database}/{table}"));
            let Ok(location) = Location::new(bucket, &prefix) else { continue };
            let specs = self.formats().filter_map(|format| settings::spec_of(self.warehouse, format, &location));
            let mut keys: Vec<Key> = specs.map(|spec| layout::name(&spec.key)).collect();
            if !keys.is_empty() {
                keys.push(layout::location(&location, None));
                folders.push((location, keys));
            }
        }
        self.done.tables += tables.len();
        let keys: Vec<Key> = folders.iter().flat_map(|(_, keys)| keys.iter().cloned()).collect();
        let known = self.ports.items.get(&keys).await?;
        for (location, keys) in folders {
            // A name without a location is one that a person has deregistered.
            if !keys.iter().any(|key| store::pick(&known, key).is_some()) {
                self.register(database, location).await?;
            }
        }
        Ok(())
    }

    async fn register(&mut self, database: &str, location: Location) -> Result<(), EngineError> {
        let Self { ports, warehouse, trace, .. } = *self;
        let is_asked = warehouse.format.told().is_none() || !settings::is_named_as_database(database);
        self.done.asked += usize::from(is_asked);
        let found = match settings::table_in(ports, warehouse, database, &location).await {
            Ok(None) => return Ok(()),
            Ok(Some(spec)) => assets::register_found(ports, warehouse.project, &spec, trace).await.map(|_| spec.key),
            Err(error) => Err(error),
        };
        match found {
            Ok(key) => self.done.registered.push(key),
            Err(error) if error.retryable() => return Err(error),
            Err(error) => {
                self.done.refused.push(RefusedTable { location, reason: error.message().to_owned() });
            }
        }
        Ok(())
    }
}
