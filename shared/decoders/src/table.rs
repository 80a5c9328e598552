//! A table as a writer names it: by uuid, by location, by names in catalogs. All of it is a claim.

use lakebell_domain::asset::{AssetKey, Format, Location};
use serde::{Deserialize, Serialize};

use crate::report::bounded;

/// Most names of one table that are kept.
const MAX_NAMES: usize = 8;

/// A table as a writer names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableRef {
    /// What to call it, for people.
    pub name: String,
    /// Its key, where whoever sent it knows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<AssetKey>,
    /// Its format, where it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The id that the format gives the table (Iceberg's `table-uuid`, Delta's metadata id).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Its root, where that is on S3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Its names in catalogs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<CatalogName>,
}

/// The name of a table in a catalog.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogName {
    /// The catalog: its address in its canonical form, or what an engine calls it. Empty where only
    /// the table's own name is told.
    pub catalog: String,
    /// Namespaces and name, outermost first.
    pub path: Vec<String>,
}

impl CatalogName {
    /// A name from its parts; `None` where a part is empty or too long.
    pub fn new(catalog: &str, path: &[&str]) -> Option<Self> {
        let catalog = canonical(catalog);
        let lower = catalog.starts_with("arn:aws:glue:") || catalog.starts_with("hive:");
        let is_fine = |part: &&str| !part.is_empty() && part.len() <= 256 && !part.chars().any(char::is_control);
        if path.is_empty() || path.len() > 8 || !path.iter().all(is_fine) || catalog.len() > 512 {
            return None;
        }
        let part = |part: &&str| if lower { part.to_lowercase() } else { (*part).to_owned() };
        Some(Self { catalog, path: path.iter().map(part).collect() })
    }

    /// The keys that a table of this name would have, the most exact first: with the catalog as its
    /// first segment where that is one word, and without.
    pub fn keys(&self, format: Format) -> Vec<AssetKey> {
        let [.., database, table] = self.path.as_slice() else { return Vec::new() };
        let named = match (self.path.as_slice(), self.catalog.as_str()) {
            ([catalog, _, _], "") => Some(catalog.as_str()),
            ([_, _], catalog) if !catalog.is_empty() && !catalog.contains(['/', ':']) => Some(catalog),
            _ => None,
        };
        let with = named.and_then(|catalog| AssetKey::new(format, Some(catalog), database, table, None).ok());
        let is_plain = self.path.len() == 2;
        let without = is_plain.then(|| AssetKey::new(format, None, database, table, None).ok()).flatten();
        with.into_iter().chain(without).collect()
    }
}

impl std::fmt::Display for CatalogName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.catalog.is_empty() {
            write!(f, "{} ", self.catalog)?;
        }
        f.write_str(&self.path.join("."))
    }
}

impl TableRef {
    /// A table of which only a name for people is known.
    pub fn named(name: &str) -> Self {
        Self { name: bounded(name), key: None, format: None, uuid: None, location: None, names: Vec::new() }
    }

    /// Whether there is anything to find it by.
    pub const fn is_findable(&self) -> bool {
        self.key.is_some() || self.uuid.is_some() || self.location.is_some() || !self.names.is_empty()
    }

    pub(crate) fn add(&mut self, name: Option<CatalogName>) {
        if let Some(name) = name
            && self.names.len() < MAX_NAMES
            && !self.names.contains(&name)
        {
            self.names.push(name);
        }
    }

    pub(crate) fn at(&mut self, url: &str) {
        if self.location.is_none() {
            self.location = location(url);
        }
    }

    pub(crate) fn uuid(mut self, uuid: Option<&str>) -> Self {
        self.uuid = uuid
            .filter(|uuid| uuid.len() <= 64 && uuid.chars().all(|c| c.is_ascii_hexdigit() || c == '-'))
            .map(str::to_lowercase);
        self
    }

    pub(crate) const fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }
}

/// A format from the word that a writer has for it.
pub(crate) fn format(word: Option<&str>) -> Option<Format> {
    word.filter(|word| word.len() <= 32).and_then(|word| word.to_ascii_lowercase().parse().ok())
}

/// The location that an URL names, without what lies below a table's root.
pub(crate) fn location(url: &str) -> Option<Location> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme.to_ascii_lowercase().as_str(), "s3" | "s3a" | "s3n") || url.len() > 4_096 {
        return None;
    }
    let (bucket, path) = rest.split_once('/')?;
    Location::new(bucket, root_of(path)).ok()
}

/// The root of a table from a path below it: without metadata files, logs, timelines and partitions.
pub fn root_of(path: &str) -> &str {
    let mut root = path.trim_end_matches('/');
    for marker in ["/_delta_log", "/.hoodie"] {
        if let Some(at) = root.find(marker)
            && root[at + marker.len()..].chars().next().is_none_or(|next| next == '/')
        {
            root = &root[..at];
        }
    }
    if let Some((before, file)) = root.rsplit_once('/') {
        if file.ends_with(".metadata.json") {
            // A managed bucket of S3 Tables has it at its top.
            root = before.strip_suffix("/metadata").unwrap_or(if before == "metadata" { "" } else { before });
        } else if file.starts_with("snapshot-") && before.ends_with("/snapshot") {
            root = &before[..before.len() - "/snapshot".len()];
        }
    }
    while let Some((before, last)) = root.rsplit_once('/') {
        if !last.contains('=') {
            break;
        }
        root = before;
    }
    root
}

/// The canonical address of a catalog: scheme and host in lower case, no slash at the end, and no
/// version of the REST protocol.
pub fn canonical(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let path = path.strip_suffix("/v1").unwrap_or(if path == "v1" { "" } else { path });
    let slash = if path.is_empty() { "" } else { "/" };
    format!("{}://{}{slash}{path}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
}

/// A dotted name as its parts.
pub(crate) fn dotted(name: &str) -> Vec<&str> {
    name.split('.').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found_below_which_files_lie() {
        let table = [
            ("w/sales/orders/metadata/00017-6f1d0d4f.metadata.json", "w/sales/orders"),
            ("w/orders/_delta_log/00000000000000000001.json", "w/orders"),
            ("w/orders/.hoodie/timeline/x.commit", "w/orders"),
            ("w/orders/snapshot/snapshot-4", "w/orders"),
            ("raw/orders/dt=2026-01-15/hour=05/", "raw/orders"),
            ("metadata/00017-6f1d0d4f.metadata.json", ""),
            ("w/metadata", "w/metadata"),
            ("w/.hoodies", "w/.hoodies"),
            ("dt=1", "dt=1"),
        ];
        for (path, root) in table {
            assert_eq!(root_of(path), root, "{path}");
        }
        assert_eq!(location("S3A://lake//w/t/").unwrap().to_string(), "s3://lake/w/t");
        assert_eq!(location("file:/tmp/x"), None);
    }

    #[test]
    fn addresses_are_canonical_and_names_of_glue_in_lower_case() {
        assert_eq!(canonical("HTTPS://Catalog.Example/iceberg/v1/"), "https://catalog.example/iceberg");
        assert_eq!(canonical("https://c/v1"), "https://c");
        let glue = CatalogName::new("arn:aws:glue:us-east-1:123456789012", &["Sales", "Orders"]).unwrap();
        assert_eq!(glue.path, ["sales", "orders"]);
        assert_eq!(CatalogName::new("lake", &["Sales", "Orders"]).unwrap().path, ["Sales", "Orders"]);
        assert_eq!(CatalogName::new("lake", &["", "t"]), None);
    }

    #[test]
    fn keys_of_a_name() {
        let keys = |catalog: &str, path: &[&str]| {
            let name = CatalogName::new(catalog, path).unwrap();
            name.keys(Format::Iceberg).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(keys("lake", &["sales", "orders"]), ["iceberg://lake/sales/orders", "iceberg://sales/orders"]);
        assert_eq!(keys("", &["lake", "sales", "orders"]), ["iceberg://lake/sales/orders"]);
        assert_eq!(keys("https://c", &["sales", "orders"]), ["iceberg://sales/orders"]);
        assert!(keys("", &["orders"]).is_empty());
    }
}
