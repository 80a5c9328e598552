//! What work can depend on: a lakehouse table or a branch of one, by key and by location.

mod written;

pub use written::{FormatChoice, WrittenKey};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::Invalid;

/// Longest canonical asset key, in bytes.
pub const MAX_ASSET_KEY_BYTES: usize = 512;

/// How a key is written.
const RIGHT: &str = "write <format>://[<catalog>/]<database>/<table>[@branch], as in paimon://ods_db/orders";

/// Longest location, in bytes: an S3 bucket name and an S3 key at their limits.
pub const MAX_LOCATION_BYTES: usize = 1_100;

/// Everything but the unreserved characters of RFC 3986 and `$`, `=` and `,`, which are common in
/// table names and harmless in a URL.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'$').remove(b'=').remove(b',');

/// A table format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Apache Paimon.
    Paimon,
    /// Apache Iceberg.
    Iceberg,
    /// Apache Hudi.
    Hudi,
    /// Delta Lake.
    Delta,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Paimon, Self::Iceberg, Self::Hudi, Self::Delta];

    /// The name that asset keys start with.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paimon => "paimon",
            Self::Iceberg => "iceberg",
            Self::Hudi => "hudi",
            Self::Delta => "delta",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| {
            Invalid::new("format", format!("`{text}` is not a table format"), "use paimon, iceberg, hudi or delta")
        })
    }
}

/// The name of an asset: `<format>://[<catalog>/]<database>/<table>[@branch]`.
///
/// Two texts that name the same asset parse to equal keys: case is kept, each segment is decoded
/// once, and [`fmt::Display`] writes the one canonical form, in which every character outside
/// `A-Z a-z 0-9 - . _ ~ $ = ,` is percent-encoded as UTF-8. The branch `main` is no branch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetKey {
    format: Format,
    names: Arc<Names>,
}

/// Shared, because every explanation, range and trigger names its assets.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Names {
    catalog: Option<String>,
    database: String,
    table: String,
    branch: Option<String>,
}

impl AssetKey {
    /// A key from its parts, as they are named in the catalog (not encoded).
    pub fn new(
        format: Format,
        catalog: Option<&str>,
        database: &str,
        table: &str,
        branch: Option<&str>,
    ) -> Result<Self, Invalid> {
        for part in catalog.into_iter().chain([database, table]).chain(branch) {
            check_segment(part, part)?;
        }
        Self::of(format, Arc::new(Names::new(catalog, database, table, branch)))
    }

    fn of(format: Format, names: Arc<Names>) -> Result<Self, Invalid> {
        let key = Self { format, names };
        let bytes = key.to_string().len();
        if bytes > MAX_ASSET_KEY_BYTES {
            return Err(too_long(format!("it has {bytes} bytes in its canonical form")));
        }
        Ok(key)
    }

    /// The table format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The catalog, where the key names one.
    pub fn catalog(&self) -> Option<&str> {
        self.names.catalog.as_deref()
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.names.database
    }

    /// The table.
    pub fn table(&self) -> &str {
        &self.names.table
    }

    /// The branch, `None` for the main line.
    pub fn branch(&self) -> Option<&str> {
        self.names.branch.as_deref()
    }
}

impl fmt::Display for AssetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.format, self.names)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encode = |segment: &'_ str| utf8_percent_encode(segment, SEGMENT).to_string();
        if let Some(catalog) = &self.catalog {
            write!(f, "{}/", encode(catalog))?;
        }
        write!(f, "{}/{}", encode(&self.database), encode(&self.table))?;
        match &self.branch {
            Some(branch) => write!(f, "@{}", encode(branch)),
            None => Ok(()),
        }
    }
}

/// The part of a key that names the format, and what comes after it.
fn split(text: &str) -> Result<(&str, &str), Invalid> {
    if text.len() > 3 * MAX_ASSET_KEY_BYTES {
        return Err(too_long(format!("it has {} bytes", text.len())));
    }
    text.split_once("://").ok_or_else(|| Invalid::new("asset key", format!("`{text}` has no `://`"), RIGHT))
}

impl FromStr for AssetKey {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (format, rest) = split(text)?;
        let format = format.parse()?;
        Self::of(format, Arc::new(Names::read(rest, text)?))
    }
}

impl Names {
    fn new(catalog: Option<&str>, database: &str, table: &str, branch: Option<&str>) -> Self {
        Self {
            catalog: catalog.map(str::to_owned),
            database: database.to_owned(),
            table: table.to_owned(),
            branch: branch.filter(|name| *name != "main").map(str::to_owned),
        }
    }

    /// What comes after the format in the text of a key.
    fn read(rest: &str, text: &str) -> Result<Self, Invalid> {
        let (path, branch) = match rest.split_once('@') {
            Some((path, branch)) => (path, Some(decode_segment(branch, text)?)),
            None => (rest, None),
        };
        let segments = path.split('/').map(|segment| decode_segment(segment, text)).collect::<Result<Vec<_>, _>>()?;
        let branch = branch.as_deref();
        match segments.as_slice() {
            [database, table] => Ok(Self::new(None, database, table, branch)),
            [catalog, database, table] => Ok(Self::new(Some(catalog), database, table, branch)),
            other => Err(Invalid::new("asset key", format!("`{text}` has {} segments", other.len()), RIGHT)),
        }
    }
}

fn too_long(problem: String) -> Invalid {
    Invalid::new("asset key", problem, format!("use at most {MAX_ASSET_KEY_BYTES} bytes"))
}

fn decode_segment(segment: &str, whole: &str) -> Result<String, Invalid> {
    let bad_escape = || {
        Invalid::new(
            "asset key",
            format!("`{whole}` has a malformed percent escape"),
            "write a literal `%` as `%25` and encode text as UTF-8",
        )
    };
    let bytes = segment.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let escape = bytes.get(at + 1..at + 3);
        if *byte == b'%' && !escape.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
            return Err(bad_escape());
        }
    }
    let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| bad_escape())?;
    check_segment(&decoded, whole)?;
    Ok(decoded.into_owned())
}

fn check_segment(segment: &str, whole: &str) -> Result<(), Invalid> {
    let problem = if segment.is_empty() {
        "an empty segment"
    } else if segment == "." || segment == ".." {
        "a segment that is `.` or `..`"
    } else if segment.chars().any(char::is_control) {
        "a control character"
    } else {
        return Ok(());
    };
    Err(Invalid::new("asset key", format!("`{}` has {problem}", whole.escape_debug()), RIGHT))
}

impl Serialize for AssetKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AssetKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a table physically lives: `s3://bucket/prefix`, without a slash at the end.
///
/// `s3a` and `s3n` are `s3`; doubled slashes are one; case is kept. One location is one asset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    bucket: String,
    prefix: String,
}

impl Location {
    /// A location from a bucket and an object key prefix, as S3 names them.
    pub fn new(bucket: &str, prefix: &str) -> Result<Self, Invalid> {
        let wrong = |problem: &str| {
            Invalid::new(
                "location",
                format!("`s3://{bucket}/{prefix}` {problem}"),
                "write s3://bucket/path/of/the/table",
            )
        };
        if !is_bucket_name(bucket) {
            return Err(wrong("names no S3 bucket"));
        }
        let segments: Vec<&str> = prefix.split('/').filter(|segment| !segment.is_empty() && *segment != ".").collect();
        if segments.is_empty() {
            return Err(wrong("has no path below the bucket"));
        }
        if segments.contains(&"..") || prefix.chars().any(char::is_control) {
            return Err(wrong("has `..` or a control character in its path"));
        }
        let location = Self { bucket: bucket.to_owned(), prefix: segments.join("/") };
        if location.to_string().len() > MAX_LOCATION_BYTES {
            return Err(Invalid::new(
                "location",
                format!("it has {} bytes", location.to_string().len()),
                format!("use at most {MAX_LOCATION_BYTES} bytes"),
            ));
        }
        Ok(location)
    }

    /// The bucket.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The object key prefix, without a slash at either end.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The object key of something below the location.
    pub fn object_key(&self, relative: &str) -> String {
        format!("{}/{relative}", self.prefix)
    }
}

/// The rules that S3 has for the names of buckets.
fn is_bucket_name(name: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-');
    let ends_plainly = !name.starts_with(['.', '-']) && !name.ends_with(['.', '-']);
    (3..=63).contains(&name.len()) && name.bytes().all(is_inner) && ends_plainly && !name.contains("..")
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

impl FromStr for Location {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        if !matches!(scheme.to_ascii_lowercase().as_str(), "s3" | "s3a" | "s3n") {
            return Err(Invalid::new(
                "location",
                format!("`{text}` is no S3 URL"),
                "write s3://bucket/path/of/the/table",
            ));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        Self::new(bucket, prefix)
    }
}

impl Serialize for Location {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
