//! Which format the table at a location has, told from its folders.

use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Format, Location};
use lakebell_formats::iceberg;

use crate::ports::storage::{Listing, TableStorage};
use crate::{EngineError, ErrorKind};

/// Rows that are looked through for a metadata file of Iceberg, among manifests.
const MAX_ROWS: usize = 1_000;

/// Whether a table of a format lies at a location.
///
/// A table may be of several: Delta's writers can keep Iceberg metadata beside their log.
pub async fn is_table_of(storage: &dyn TableStorage, location: &Location, format: Format) -> Result<bool, EngineError> {
    let prefixes: &[&str] = match format {
        Format::Paimon => &["schema/schema-", "snapshot/snapshot-"],
        Format::Delta => &["_delta_log/"],
        Format::Hudi => &[".hoodie/"],
        // Numbered files come first in the folder; `vN` come after manifests of whatever number.
        Format::Iceberg => &["metadata/", "metadata/v"],
    };
    let is_marker = |key: &str| format != Format::Iceberg || iceberg::classify(key).is_some();
    for prefix in prefixes {
        let limit = if format == Format::Iceberg { MAX_ROWS } else { 1 };
        let rows = storage.list(location.bucket(), Listing::below(&location.object_key(prefix), limit)).await?;
        if rows.iter().any(|row| is_marker(&row.key)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The formats other than Iceberg. Their writers may keep Iceberg metadata beside their own, for readers
/// of that; such a table is followed by its own.
const NATIVE: [Format; 3] = [Format::Paimon, Format::Hudi, Format::Delta];

/// The format of the table at a location; `None` where nothing of a table is there.
///
/// Errors: `Invalid` for the metadata of more than one format; those of the storage.
pub(crate) async fn format_found(
    storage: &dyn TableStorage,
    location: &Location,
) -> Result<Option<Format>, EngineError> {
    let mut found = Vec::new();
    for format in NATIVE {
        if is_table_of(storage, location, format).await? {
            found.push(format);
        }
    }
    match found.as_slice() {
        [] => Ok(is_table_of(storage, location, Format::Iceberg).await?.then_some(Format::Iceberg)),
        [format] => Ok(Some(*format)),
        [first, ..] => {
            let names: Vec<&str> = found.iter().map(|format| format.as_str()).collect();
            let problem = format!("{location} has the metadata of tables of {}", names.join(" and "));
            Err(Invalid::new("key", problem, format!("write the one that you mean, as in {first}://...")).into())
        }
    }
}

/// The format of the table that must be at a location.
///
/// Errors: `Invalid` where nothing of a table is there or may be seen, and those of [`format_found`].
pub(crate) async fn format_at(storage: &dyn TableStorage, location: &Location) -> Result<Format, EngineError> {
    let unknown = |problem: String| {
        let hint = "write the format in place of `auto`, as in delta://..., or register it once it is there";
        EngineError::from(Invalid::new("key", problem, hint))
    };
    match format_found(storage, location).await {
        Ok(Some(format)) => Ok(format),
        Ok(None) => Err(unknown(format!("no table lies at {location} yet, so that its format is not known"))),
        Err(error) if error.kind() == ErrorKind::Denied => {
            Err(unknown(format!("{location} cannot be read, so that its format is not known: {}", error.message())))
        }
        Err(error) => Err(error),
    }
}

/// Refuses a key whose format is not that of the table at the location. Where nothing of a table
/// is there yet, or the location cannot be read, the key is taken at its word.
///
/// Errors: `Invalid` for a table of another format; `Unavailable` where storage is away.
pub(crate) async fn agree(storage: &dyn TableStorage, key: &AssetKey, location: &Location) -> Result<(), EngineError> {
    let own = key.format();
    let others = Format::ALL.into_iter().filter(|format| *format != own);
    for format in std::iter::once(own).chain(others) {
        match is_table_of(storage, location, format).await {
            Ok(true) if format == own => return Ok(()),
            Ok(true) => {
                let problem = format!("it names a {own} table, and a {format} table lies at {location}");
                return Err(Invalid::new("key", problem, format!("write {format}://... or another location")).into());
            }
            Ok(false) => {}
            // Reading the table says what is wrong, and keeps saying it.
            Err(error) if error.kind() == ErrorKind::Denied => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
