//! Where the catalog says that a table is.

use std::collections::BTreeSet;

use lakebell_domain::asset::AssetKey;
use lakebell_domain::state::TroubleCode;
use lakebell_formats::iceberg::{METADATA_PREFIX, MetadataName, VERSION_HINT, file_name};

use super::files::{self, Row};
use super::note::Note;
use crate::catalog::Catalog;
use crate::observe::table::{Stop, Table};
use crate::ports::catalog::Catalogs;
use crate::ports::storage::Listing;
use crate::{EngineError, ErrorKind};

/// Longest URL of a metadata file, in bytes: an S3 key at its limit.
const MAX_URL: usize = 1_200;
/// Longest hint of the Hadoop catalog that is read.
const MAX_HINT: usize = 64;
/// Rows of one listing.
const MAX_ROWS: usize = 1_000;
/// Most files that are looked for one after the other beyond the known one.
const MAX_STEPS: u64 = 24;

/// The catalog of an asset, and who asks it.
pub(in crate::observe) struct Asked<'a> {
    pub(in crate::observe) catalog: &'a Catalog,
    pub(in crate::observe) catalogs: &'a dyn Catalogs,
    pub(in crate::observe) key: &'a AssetKey,
}

/// A folder of metadata files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) bucket: String,
    /// What the keys of its files begin with, the slash included.
    pub(super) prefix: String,
}

impl Folder {
    /// Where metadata lies unless a table's property moves it.
    pub(super) fn of(table: &Table<'_>) -> Self {
        Self { bucket: table.location.bucket().to_owned(), prefix: table.location.object_key(METADATA_PREFIX) }
    }
}

/// The metadata file that is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) folder: Folder,
    pub(super) row: Row,
}

/// What a catalog said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// None is asked: ancestry decides.
    Ancestry,
    /// The table has no metadata file yet.
    Nothing,
    /// This one is current.
    At(Pointer),
}

impl Asked<'_> {
    /// Asks for the current metadata file.
    pub(super) async fn say(&self, table: &Table<'_>, note: &Note) -> Result<Said, Stop> {
        match self.catalog {
            Catalog::None => Ok(Said::Ancestry),
            Catalog::Hadoop => hadoop(table, note).await,
            Catalog::Remote(remote) => {
                let url = self.catalogs.current(remote, self.key).await.map_err(stop)?;
                let pointer = pointer(&url).ok_or_else(|| {
                    let problem = format!("the catalog names {}, which is no file in S3", shortened(&url));
                    Stop::Trouble(TroubleCode::CatalogUnclear, problem)
                })?;
                Ok(Said::At(pointer))
            }
        }
    }
}

/// Trouble with a catalog is kept with the asset. One that a later try may mend hands the message
/// back as well.
fn stop(error: EngineError) -> Stop {
    let code = match error.kind() {
        ErrorKind::Denied | ErrorKind::Invalid => TroubleCode::CatalogRefused,
        ErrorKind::NotFound => TroubleCode::NotInCatalog,
        ErrorKind::Damaged => TroubleCode::CatalogUnclear,
        ErrorKind::Unavailable => return Stop::Away(TroubleCode::CatalogAway, error),
        _ => return Stop::Error(error),
    };
    Stop::Trouble(code, error.message().to_owned())
}

/// The file that a URL names.
fn pointer(url: &str) -> Option<Pointer> {
    let (scheme, rest) = url.split_once("://")?;
    let is_s3 = ["s3", "s3a", "s3n"].contains(&scheme);
    let (bucket, key) = rest.split_once('/').filter(|_| is_s3 && url.len() <= MAX_URL)?;
    let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
    let is_sound = !bucket.is_empty() && !name.is_empty() && !url.chars().any(char::is_control);
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    is_sound.then(|| Pointer { folder: Folder { bucket: bucket.to_owned(), prefix }, row: Row::any(name) })
}

fn shortened(url: &str) -> String {
    url.chars().filter(|it| !it.is_control()).take(200).collect()
}

/// The Hadoop catalog's newest file. Its hint lags behind and may be gone: a reader goes on from it as
/// long as there is a next version, and without it takes the highest there is.
async fn hadoop(table: &Table<'_>, note: &Note) -> Result<Said, Stop> {
    let prefix = format!("{METADATA_PREFIX}v");
    let listed = table.list(Listing::below(&prefix, MAX_ROWS)).await?;
    let is_complete = listed.len() < MAX_ROWS;
    let mut rows: Vec<Row> = listed.iter().filter_map(files::row).filter(|row| version(row).is_some()).collect();
    let hint = hint(table).await?;
    let known = files::kind_of(&note.file).and_then(|kind| match kind {
        MetadataName::Version(number) => Some(number),
        _ => None,
    });
    if !is_complete {
        // Versions lie in the order of their digits: which is the newest, no page of the listing shows.
        let first = hint.max(known).unwrap_or(0);
        for number in first..first.saturating_add(MAX_STEPS) {
            let found = table.list(Listing::below(&format!("{prefix}{number}."), 1)).await?;
            let Some(row) = found.iter().find_map(files::row) else { break };
            rows.push(row);
        }
    }
    let numbers: BTreeSet<u64> = rows.iter().filter_map(version).collect();
    let from = hint.max(known.filter(|_| !is_complete)).filter(|from| numbers.contains(from));
    let newest = match from {
        Some(from) => (from..=u64::MAX).take_while(|number| numbers.contains(number)).last(),
        None => numbers.last().copied(),
    };
    let row = newest.and_then(|newest| rows.into_iter().find(|row| version(row) == Some(newest)));
    Ok(row.map_or(Said::Nothing, |row| Said::At(Pointer { folder: Folder::of(table), row })))
}

async fn hint(table: &Table<'_>) -> Result<Option<u64>, Stop> {
    match table.object(&format!("{METADATA_PREFIX}{VERSION_HINT}"), MAX_HINT).await {
        Ok(object) => Ok(object.and_then(|it| std::str::from_utf8(&it.bytes).ok()?.trim().parse().ok())),
        // It is a hint: one that makes no sense says nothing.
        Err(Stop::Trouble(TroubleCode::Damaged, _)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

fn version(row: &Row) -> Option<u64> {
    match row.kind {
        MetadataName::Version(number) => Some(number),
        _ => None,
    }
}

impl Row {
    /// The row of a file that a catalog names: it may be called anything.
    pub(super) fn any(name: &str) -> Self {
        let name = file_name(name);
        let kind = files::kind_of(name).unwrap_or(MetadataName::Other);
        Self { name: name.to_owned(), kind, modified: None, etag: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_metadata_files() {
        let found = pointer("s3a://lake/wh/t/metadata/00001-a.metadata.json").unwrap();
        assert_eq!((found.folder.bucket.as_str(), found.folder.prefix.as_str()), ("lake", "wh/t/metadata/"));
        assert_eq!((found.row.name.as_str(), found.row.kind.number()), ("00001-a.metadata.json", Some(1)));
        assert_eq!(pointer("s3://lake/x.json").unwrap().folder.prefix, "");
        for wrong in ["", "lake/x", "file:///x", "s3://lake", "s3://lake/", "s3:///x", "gs://b/x", "s3://b/x\ny"] {
            assert_eq!(pointer(wrong), None, "{wrong}");
        }
    }
}
