//! Warehouses and connections: few, rarely written, read through bounded caches.

use lakebell_domain::asset::{AssetKey, Format, FormatChoice, Location};
use lakebell_domain::ids::{ConnectionName, TraceId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::assets::{self, AssetSpec, MAX_DISCOVERED};
use crate::layout;
use crate::observe;
use crate::ports::Ports;
use crate::ports::items::{Key, Write, Written};
use crate::ports::scheduler::ConnectionSpec;
use crate::records::Warehouse;
use crate::store::{self, MAX_LOST_RACES};
use crate::{EngineError, ErrorKind};

pub(crate) const WAREHOUSES: &str = "WAREHOUSE";
const CONNECTIONS: &str = "CONNECTION";
/// Most databases that a declaration of a warehouse looks into.
const MAX_DATABASES: usize = 200;

/// What declaring a warehouse led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Tables that were registered by this call.
    pub registered: Vec<AssetKey>,
    /// Tables that were registered before.
    pub known: usize,
    /// Tables that could not be registered, and why.
    pub refused: Vec<RefusedTable>,
}

/// A table below a warehouse that could not be registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedTable {
    /// Where it lives.
    pub location: Location,
    /// Why not.
    pub reason: String,
}

/// Declares a warehouse and registers the tables that are there; later ones, and those beyond what
/// one call registers, are registered when their first commit is notified, or by the next pass.
pub async fn put_warehouse(ports: &Ports, warehouse: &Warehouse, trace: &TraceId) -> Result<Discovery, EngineError> {
    put(ports, layout::setting(WAREHOUSES, &warehouse.location.to_string()), warehouse).await?;
    let mut discovery = Discovery { registered: Vec::new(), known: 0, refused: Vec::new() };
    let bucket = warehouse.location.bucket();
    let root = format!("{}/", warehouse.location.prefix());
    for folder in ports.storage.folders(bucket, &root, None, MAX_DATABASES).await? {
        if database_of(warehouse.format, &folder).is_none() {
            continue;
        }
        for table in ports.storage.folders(bucket, &format!("{root}{folder}/"), None, MAX_DISCOVERED).await? {
            let location = Location::new(bucket, &format!("{root}{folder}/{table}"))?;
            let found = match table_in(ports, warehouse, &folder, &location).await {
                Ok(None) => continue,
                Ok(Some(spec)) => {
                    let registered = assets::register_found(ports, warehouse.project, &spec, trace).await;
                    registered.map(|registration| (registration, spec.key))
                }
                Err(error) => Err(error),
            };
            match found {
                Ok((registration, key)) if registration.is_new => discovery.registered.push(key),
                Ok(_) => discovery.known += 1,
                Err(error) if error.retryable() => return Err(error),
                Err(error) => discovery.refused.push(RefusedTable { location, reason: error.message().to_owned() }),
            }
        }
    }
    Ok(discovery)
}

/// The asset that a folder in a database's folder is; `None` where it is no table, or not one of the
/// warehouse. Costs requests where the folders' names do not tell.
///
/// Errors: `Invalid` for the metadata of several formats; those of the storage.
pub(crate) async fn table_in(
    ports: &Ports,
    warehouse: &Warehouse,
    database: &str,
    location: &Location,
) -> Result<Option<AssetSpec>, EngineError> {
    let Some(format) = warehouse.format.told() else {
        let found = observe::format_found(&*ports.storage, location).await?;
        return Ok(found.and_then(|format| spec_of(warehouse, format, location)));
    };
    let Some(spec) = spec_of(warehouse, format, location) else { return Ok(None) };
    let is_table = is_named_as_database(database) || observe::is_table_of(&*ports.storage, location, format).await?;
    Ok(is_table.then_some(spec))
}

/// A folder `<database>.db` is a database's; others may be anything.
pub(crate) fn is_named_as_database(folder: &str) -> bool {
    folder.strip_suffix(".db").is_some()
}

/// The asset that a table of a format below a warehouse is: `<warehouse>/<database>.db/<table>`, and for
/// formats other than Paimon `<warehouse>/<database>/<table>` as well.
pub fn spec_of(warehouse: &Warehouse, format: Format, location: &Location) -> Option<AssetSpec> {
    if warehouse.location.bucket() != location.bucket() || !warehouse.format.takes(format) {
        return None;
    }
    let rest = location.prefix().strip_prefix(warehouse.location.prefix())?.strip_prefix('/')?;
    let (database, table) = rest.split_once('/')?;
    let database = database_of(format.into(), database)?;
    if table.contains('/') {
        return None;
    }
    let key = AssetKey::new(format, warehouse.catalog.as_deref(), database, table, None).ok()?;
    Some(AssetSpec::new(key, location.clone()))
}

/// The database of a folder. Only Paimon's catalogs always put `.db` behind the name.
pub(crate) fn database_of(format: FormatChoice, folder: &str) -> Option<&str> {
    folder.strip_suffix(".db").or_else(|| (format != FormatChoice::Paimon).then_some(folder))
}

/// Every warehouse.
pub async fn warehouses(ports: &Ports) -> Result<Vec<Warehouse>, EngineError> {
    list(ports, WAREHOUSES).await
}

/// Forgets a warehouse; the assets that it brought stay.
pub async fn delete_warehouse(ports: &Ports, location: &Location) -> Result<(), EngineError> {
    delete(ports, layout::setting(WAREHOUSES, &location.to_string())).await
}

/// Declares or alters a connection.
///
/// Errors: `Invalid` for a URL that is none.
pub async fn put_connection(ports: &Ports, spec: &ConnectionSpec) -> Result<(), EngineError> {
    let is_http = spec.url.starts_with("http://") || spec.url.starts_with("https://");
    if !is_http || spec.url.len() > 2_000 || spec.url.contains(char::is_whitespace) || spec.url.contains('@') {
        return Err(lakebell_domain::Invalid::new(
            "url",
            "it is no http or https URL without user and spaces",
            "write the base URL with its path, as in https://scheduler.internal:12345/dolphinscheduler",
        )
        .into());
    }
    // Found by name through its own item, and listed through the settings.
    put(ports, layout::connection(&spec.name), spec).await?;
    put(ports, layout::setting(CONNECTIONS, spec.name.as_str()), spec).await
}

/// Every connection.
pub async fn connections(ports: &Ports) -> Result<Vec<ConnectionSpec>, EngineError> {
    list(ports, CONNECTIONS).await
}

/// Forgets a connection.
pub async fn delete_connection(ports: &Ports, name: &ConnectionName) -> Result<(), EngineError> {
    delete(ports, layout::connection(name)).await?;
    delete(ports, layout::setting(CONNECTIONS, name.as_str())).await
}

async fn put<T: Serialize>(ports: &Ports, key: Key, value: &T) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let draft = store::draft(key.clone(), value)?;
        let action = match ports.items.get(std::slice::from_ref(&key)).await?.first() {
            Some(item) if item.doc == draft.doc => return Ok(()),
            Some(item) => Write::Replace(draft, item.rev),
            None => Write::Create(draft),
        };
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            return Ok(());
        }
    }
    Err(store::lost_too_often("put setting"))
}

async fn list<T: DeserializeOwned>(ports: &Ports, kind: &str) -> Result<Vec<T>, EngineError> {
    let items = store::all_of(&*ports.items, &layout::settings(kind)).await?;
    items.iter().map(|item| store::decode(item).map(|stored| stored.value)).collect()
}

async fn delete(ports: &Ports, key: Key) -> Result<(), EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let Some(item) = ports.items.get(std::slice::from_ref(&key)).await?.into_iter().next() else { return Ok(()) };
        let action = Write::Remove(key.clone(), item.rev);
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            return Ok(());
        }
    }
    Err(EngineError::new(ErrorKind::Contention, "delete setting: somebody else wrote first too often"))
}
