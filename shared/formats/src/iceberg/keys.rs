//! Object keys: what an object of an Iceberg table is, told from its key alone.

/// Where the metadata files of a table lie, relative to its root, unless `write.metadata.path`
/// moves them.
pub const METADATA_PREFIX: &str = "metadata/";
/// The Hadoop catalog's hint at its newest metadata file. It lags, may be wrong or absent, and is
/// never trusted.
pub const VERSION_HINT: &str = "version-hint.text";

/// From this number on, a `vN` is a time and no count: `BigQuery` names files by epoch seconds.
const FIRST_EPOCH_NUMBER: u64 = 100_000_000;
/// Digits that a numbered file has at least.
const NUMBER_DIGITS: usize = 5;

/// How a metadata file is named, and so who may have written it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetadataName {
    /// `NNNNN-<uuid>.metadata.json`: catalogs that swap a pointer (REST, Glue, Hive, SQL). Five
    /// digits or more; the number rises by one with each commit of one chain, and two files of one
    /// number are two attempts.
    Numbered(u64),
    /// `vN.metadata.json`: the Hadoop catalog. A file of this name is visible once it exists.
    Version(u64),
    /// `v<epoch seconds>.metadata.json`: `BigQuery`. The number rises and counts nothing.
    Epoch(u64),
    /// Any other name: tables that were registered or made by hand.
    Other,
}

impl MetadataName {
    /// The number where it counts commits.
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Numbered(number) | Self::Version(number) => Some(number),
            Self::Epoch(_) | Self::Other => None,
        }
    }

    /// The number that rises from file to file, which may be a time.
    pub const fn rising(self) -> Option<u64> {
        match self {
            Self::Numbered(number) | Self::Version(number) | Self::Epoch(number) => Some(number),
            Self::Other => None,
        }
    }
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IcebergObjectKind {
    /// A metadata file: it may be a commit. The only kind that may.
    Metadata(MetadataName),
    /// `<uuid>.metadata.json`: the Hadoop catalog's file before it is renamed. It holds the whole
    /// metadata of a commit and is none.
    Temporary,
    /// `v0.metadata.json`: `BigQuery` puts it there before the first export. No commit: the Hadoop
    /// catalog counts from 1.
    Placeholder,
    /// `version-hint.text`.
    VersionHint,
}

/// An object of an Iceberg table that a reader of commits may care about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IcebergObject {
    /// The folder of the metadata, without a slash at the end; empty where the key has none.
    pub folder: String,
    /// The last segment of the key.
    pub name: String,
    /// What it is.
    pub kind: IcebergObjectKind,
}

impl IcebergObject {
    /// The table's root, if the metadata lies where it does by default, in `<root>/metadata`; empty
    /// where the key is relative to the root. What is inside the file ([`super::Metadata::location`])
    /// tells more than the key.
    pub fn root(&self) -> Option<&str> {
        match self.folder.rsplit_once('/') {
            Some((root, "metadata")) => Some(root),
            None if self.folder == "metadata" => Some(""),
            _ => None,
        }
    }
}

/// What an object is, from its key: decoded, relative to anything. `None` for data, manifests,
/// manifest lists, statistics, and everything that is of no interest.
///
/// The key's own folder does not decide, because `write.metadata.path` may name any; a hint is one
/// only in a folder `metadata`.
pub fn classify(key: &str) -> Option<IcebergObject> {
    let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
    let kind = match stem(name) {
        Some(stem) => kind_of(stem),
        None if name == VERSION_HINT && (folder == "metadata" || folder.ends_with("/metadata")) => {
            IcebergObjectKind::VersionHint
        }
        None => return None,
    };
    Some(IcebergObject { folder: folder.to_owned(), name: name.to_owned(), kind })
}

/// The last segment of a key, a path or a URL. The log inside a metadata file names others by URL.
pub fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The number in the name of a metadata file, where it counts commits.
pub fn file_number(name: &str) -> Option<u64> {
    name_of(name).number()
}

pub(super) fn name_of(name: &str) -> MetadataName {
    match stem(file_name(name)).map(kind_of) {
        Some(IcebergObjectKind::Metadata(name)) => name,
        Some(IcebergObjectKind::Placeholder) => MetadataName::Version(0),
        _ => MetadataName::Other,
    }
}

/// A metadata file's name without its suffix, of which there are three spellings.
fn stem(name: &str) -> Option<&str> {
    let plain = name.strip_suffix(".metadata.json");
    let stem = match plain {
        Some(stem) => stem.strip_suffix(".gz").unwrap_or(stem),
        None => name.strip_suffix(".metadata.json.gz")?,
    };
    (!stem.is_empty() && !stem.starts_with('.')).then_some(stem)
}

fn kind_of(stem: &str) -> IcebergObjectKind {
    if is_uuid(stem) {
        return IcebergObjectKind::Temporary;
    }
    if let Some(version) = stem.strip_prefix('v').and_then(plain_number) {
        return match version {
            0 => IcebergObjectKind::Placeholder,
            FIRST_EPOCH_NUMBER.. => IcebergObjectKind::Metadata(MetadataName::Epoch(version)),
            _ => IcebergObjectKind::Metadata(MetadataName::Version(version)),
        };
    }
    let number = stem.split_once('-').and_then(|(digits, rest)| if rest.is_empty() { None } else { padded(digits) });
    IcebergObjectKind::Metadata(number.map_or(MetadataName::Other, MetadataName::Numbered))
}

/// Decimal digits without a leading zero, 63 bits.
fn plain_number(digits: &str) -> Option<u64> {
    let is_plain = digits == "0" || !digits.starts_with('0');
    if digits.is_empty() || !is_plain || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok())
}

/// As `%05d` writes it: zeros in front up to five digits, none beyond.
fn padded(digits: &str) -> Option<u64> {
    match digits.len() {
        0..NUMBER_DIGITS => None,
        NUMBER_DIGITS if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok(),
        _ => plain_number(digits),
    }
}

fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(
            |(at, byte)| {
                if dashes.contains(&at) { byte == b'-' } else { byte.is_ascii_hexdigit() }
            },
        )
}

#[cfg(test)]
mod tests;
