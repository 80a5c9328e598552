//! Whether the table, or the catalog that its asset names, bears out a name that a writer claims.
//!
//! Only the catalog that the asset is set to is ever asked: a writer cannot have Lakebell call a place of
//! its choice, or take the word of a catalog that nobody has set.

use crate::catalog::{Access, Catalog, GlueCatalog, NameInCatalog, RemoteCatalog, RestCatalog, SigningService};
use crate::observe;
use crate::ports::Ports;
use crate::records::AssetHead;
use lakebell_decoders::{CatalogName, root_of};
use lakebell_domain::asset::Location;

/// Shortest name of a metadata file that holds a uuid, so that two tables do not share it.
const UNIQUE_FILE: usize = 36 + ".metadata.json".len();

/// The table lies where a catalog of files has a table of that name.
const LOCATION: &str = "the table's location";
/// The asset's own catalog, asked for the name, told of the table's metadata.
const CATALOG: &str = "the asset's catalog";

/// What bears a name out, in words; `None` where neither the table nor its catalog does. One question to the
/// catalog at most. One that is away or refuses bears nothing out, and the name stays a claim until it is
/// seen again.
pub(super) async fn of_table(ports: &Ports, head: &AssetHead, name: &CatalogName) -> Option<&'static str> {
    if lies_there(&head.location, name) {
        return Some(LOCATION);
    }
    let Catalog::Remote(own) = &head.settings.catalog else { return None };
    match ports.catalogs.current(&asked_for(own, name)?, &head.key).await {
        Ok(file) => is_of(head, &file).then_some(CATALOG),
        Err(error) => {
            tracing::info!(%error, "a catalog does not bear a claimed name out");
            None
        }
    }
}

/// What the asset is called in the catalog that it names, by its own settings; `None` where no address is told.
pub(super) fn own_name(head: &AssetHead) -> Option<CatalogName> {
    let Catalog::Remote(own) = &head.settings.catalog else { return None };
    let (address, table) = match own {
        RemoteCatalog::Rest(rest) => {
            let warehouse = rest.warehouse.as_deref().map(|warehouse| format!("/{warehouse}")).unwrap_or_default();
            (format!("{}{warehouse}", rest.url), &rest.table)
        }
        RemoteCatalog::Glue(glue) => {
            let (region, account) = (glue.region.as_deref()?, glue.account.as_deref()?);
            (format!("arn:aws:glue:{region}:{account}"), &glue.table)
        }
    };
    let mut path: Vec<&str> = table.database(&head.key).split('.').collect();
    path.push(table.table(&head.key));
    CatalogName::new(&address, &path)
}

/// Whether a catalog that is nothing but files, with this address, has a table of this name there.
fn lies_there(location: &Location, name: &CatalogName) -> bool {
    let [database @ .., table] = name.path.as_slice() else { return false };
    if !name.catalog.contains("://") || database.is_empty() {
        return false;
    }
    let root = name.catalog.trim_end_matches('/');
    let levels = database.join("/");
    let places = [format!("{root}/{levels}/{table}"), format!("{root}/{levels}.db/{table}")];
    places.iter().any(|place| place.parse().is_ok_and(|place: Location| place == *location))
}

/// The asset's catalog, to be asked for a table of this name; `None` where the name is of another one.
fn asked_for(own: &RemoteCatalog, name: &CatalogName) -> Option<RemoteCatalog> {
    let [database @ .., table] = name.path.as_slice() else { return None };
    // A dot within a level could not be told from one between two.
    if database.is_empty() || database.iter().any(|level| level.contains('.')) {
        return None;
    }
    let named = NameInCatalog { database: Some(database.join(".")), table: Some(table.clone()) };
    match own {
        RemoteCatalog::Rest(rest) => {
            is_rest(rest, &name.catalog).then(|| RemoteCatalog::Rest(RestCatalog { table: named, ..rest.clone() }))
        }
        RemoteCatalog::Glue(glue) => {
            let (region, account) = arn_of_glue(&name.catalog)?;
            let fits = |set: &Option<String>, told: &str| set.as_deref().is_none_or(|set| set == told);
            let is_own = fits(&glue.region, region) && fits(&glue.account, account);
            is_own.then(|| {
                let (account, region) = (Some(account.to_owned()), Some(region.to_owned()));
                RemoteCatalog::Glue(GlueCatalog { account, region, table: named })
            })
        }
    }
}

/// Whether an address is that of a REST catalog. One with several warehouses has several tables of one
/// name: its address alone says too little.
fn is_rest(rest: &RestCatalog, address: &str) -> bool {
    let url = lakebell_decoders::canonical(&rest.url);
    let is_url = match &rest.warehouse {
        None => address == url,
        Some(warehouse) => address.strip_prefix(&url).and_then(|rest| rest.strip_prefix('/')) == Some(warehouse),
    };
    let is_arn = || {
        let Access::Signed { service: SigningService::Glue, region } = &rest.access else { return false };
        let Some((told, account)) = arn_of_glue(address) else { return false };
        let is_region = region.as_deref() == Some(told) || url.starts_with(&format!("https://glue.{told}."));
        is_region && rest.warehouse.as_deref() == Some(account)
    };
    is_url || is_arn()
}

/// Region and account of `arn:aws:glue:<region>:<account>`.
fn arn_of_glue(address: &str) -> Option<(&str, &str)> {
    let (region, account) = address.strip_prefix("arn:aws:glue:")?.split_once(':')?;
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    (is_account && !region.is_empty()).then_some((region, account))
}

/// Whether a metadata file is one of the asset's table: it lies below the location, or is the one that a
/// look has accepted.
fn is_of(head: &AssetHead, file: &str) -> bool {
    let Some((bucket, key)) = file.split_once("://").and_then(|(_, rest)| rest.split_once('/')) else { return false };
    if Location::new(bucket, root_of(key)).is_ok_and(|location| location == head.location) {
        return true;
    }
    let name = key.rsplit('/').next().unwrap_or(key);
    name.len() >= UNIQUE_FILE && observe::file_of(&head.state).as_deref() == Some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn name(catalog: &str, path: &[&str]) -> CatalogName {
        CatalogName::new(catalog, path).unwrap()
    }

    fn asked(setting: &Value, name: &CatalogName) -> Option<NameInCatalog> {
        let Ok(Catalog::Remote(own)) = serde_json::from_value(setting.clone()) else { panic!("{setting}") };
        asked_for(&own, name).map(|asked| match asked {
            RemoteCatalog::Rest(rest) => rest.table,
            RemoteCatalog::Glue(glue) => glue.table,
        })
    }

    #[test]
    fn a_catalog_of_files_has_its_tables_where_its_rule_says() {
        let location: Location = "s3://lake/wh/sales/orders".parse().unwrap();
        let hive: Location = "s3://lake/wh/sales.db/orders".parse().unwrap();
        assert!(lies_there(&location, &name("s3a://lake/wh/", &["sales", "orders"])));
        assert!(lies_there(&hive, &name("s3://lake/wh", &["sales", "orders"])));
        assert!(lies_there(&location, &name("s3://lake", &["wh", "sales", "orders"])));
        for other in [
            name("s3://lake/wh", &["sales", "refunds"]),
            name("s3://other/wh", &["sales", "orders"]),
            name("https://lake/wh", &["sales", "orders"]),
            name("lake", &["sales", "orders"]),
            name("s3://lake/wh/sales", &["orders"]),
        ] {
            assert!(!lies_there(&location, &other), "{other}");
        }
    }

    #[test]
    fn only_the_catalog_of_the_asset_is_asked() {
        let rest = json!({"type": "rest", "url": "https://catalog.internal/api"});
        let with = json!({"type": "rest", "url": "https://catalog.internal/api", "warehouse": "w"});
        let glue = json!({"type": "glue", "account": "123456789012"});
        let signed = json!({"type": "rest", "url": "https://glue.eu-central-1.amazonaws.com/iceberg",
            "warehouse": "123456789012", "signing": "glue"});
        let arn = "arn:aws:glue:eu-central-1:123456789012";
        let table = [
            (&rest, name("HTTPS://Catalog.internal/api/v1/", &["sales", "orders"]), true),
            (&rest, name("https://catalog.internal", &["sales", "orders"]), false),
            (&rest, name("", &["sales", "orders"]), false),
            (&rest, name("https://catalog.internal/api", &["orders"]), false),
            (&rest, name("https://catalog.internal/api", &["a.b", "orders"]), false),
            (&with, name("https://catalog.internal/api", &["sales", "orders"]), false),
            (&with, name("https://catalog.internal/api/w", &["sales", "orders"]), true),
            (&with, name("w", &["sales", "orders"]), false),
            (&glue, name(arn, &["sales", "orders"]), true),
            (&glue, name("arn:aws:glue:eu-central-1:210987654321", &["sales", "orders"]), false),
            (&signed, name(arn, &["sales", "orders"]), true),
            (&signed, name("arn:aws:glue:us-east-1:123456789012", &["sales", "orders"]), false),
        ];
        for (setting, name, is_asked) in table {
            let asked = asked(setting, &name);
            assert_eq!(asked.is_some(), is_asked, "{setting} {name}");
            if let Some(NameInCatalog { database, table }) = asked {
                assert_eq!((database.as_deref(), table.as_deref()), (Some("sales"), Some("orders")));
            }
        }
    }
}
