//! `hoodie.properties`: what a table says of itself.

use lakebell_domain::digest::hex;
use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::keys::Layout;
use crate::error::{FormatError, FormatErrorKind};
use crate::json::{missing, shorten};

/// Largest file that is parsed, in bytes. Real ones have a few KB, most of it the schema.
const MAX_BYTES: usize = 4 << 20;
/// Longest value that is kept, in characters.
const MAX_VALUE_CHARS: usize = 256;

/// What the table's own settings say. Values are kept as they are written; Hudi's defaults are not
/// put in for those that are absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableProperties {
    /// `hoodie.table.name`.
    pub name: String,
    /// `hoodie.table.type`: `COPY_ON_WRITE` or `MERGE_ON_READ`.
    pub table_type: Option<String>,
    /// `hoodie.table.version`.
    pub table_version: Option<String>,
    /// `hoodie.timeline.layout.version`.
    pub layout_version: Option<String>,
    /// `hoodie.table.timeline.timezone`: the zone that instants are written in. Absent is `LOCAL`,
    /// the zone of whichever machine wrote.
    pub timezone: Option<String>,
    /// 16 hex digits of a SHA-256 over `hoodie.table.create.schema`, the schema that the table was
    /// created with.
    pub create_schema_digest: Option<String>,
    /// `hoodie.table.partition.fields`: the columns that the folders of a partition stand for, outermost
    /// first. Newer writers put the kind of each behind a colon, which is left out.
    pub partition_fields: Vec<String>,
    /// `hoodie.timeline.path` and the other settings that move the timeline, where they differ from
    /// what is read.
    pub moved: Vec<String>,
}

impl TableProperties {
    /// Reads the file, which Java's `Properties` wrote. Only the table's name is required, which
    /// every version writes.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > MAX_BYTES {
            let problem = format!("the file has {} bytes, at most {MAX_BYTES} are read", bytes.len());
            return Err(FormatError::new(FormatErrorKind::TooLarge, problem));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(FormatError::new(FormatErrorKind::Truncated, "the file is empty"));
        }
        let values = entries(&String::from_utf8_lossy(bytes));
        let text =
            |key: &str| values.get(key).filter(|value| !value.is_empty()).map(|value| shorten(value, MAX_VALUE_CHARS));
        let moved = [
            ("hoodie.timeline.path", "timeline"),
            ("hoodie.timeline.history.path", "history"),
            ("hoodie.archivelog.folder", "archived"),
        ];
        let is_moved = |(key, usual): &(&str, &str)| text(key).is_some_and(|value| value != *usual);
        Ok(Self {
            name: text("hoodie.table.name").ok_or_else(|| missing("hoodie.table.name"))?,
            table_type: text("hoodie.table.type"),
            table_version: text("hoodie.table.version"),
            layout_version: text("hoodie.timeline.layout.version"),
            timezone: text("hoodie.table.timeline.timezone"),
            create_schema_digest: values.get("hoodie.table.create.schema").map(|schema| digest(schema)),
            partition_fields: text("hoodie.table.partition.fields").map(|text| fields(&text)).unwrap_or_default(),
            moved: moved.into_iter().filter(is_moved).map(|(key, _)| key.to_owned()).collect(),
        })
    }

    /// The layout of the timeline; `None` where it is not written or not known.
    pub fn layout(&self) -> Option<Layout> {
        Layout::from_version(self.layout_version.as_deref()?)
    }

    /// What tells this table from another one at the same place, as far as Hudi has anything of the
    /// kind: the name, and the digest of the schema that it was created with. See
    /// [`TableProperties::may_be`].
    pub fn table_id(&self) -> String {
        format!("{}#{}", self.name, self.create_schema_digest.as_deref().unwrap_or_default())
    }

    /// Whether this may be the table whose [`TableProperties::table_id`] was recorded: the same name,
    /// and the same first schema where both have one. Two tables that were created alike cannot be
    /// told apart by this; [`super::Timeline::rewrite`] tells them by their instants.
    pub fn may_be(&self, table_id: &str) -> bool {
        let Some((name, digest)) = table_id.rsplit_once('#') else { return false };
        let digests_differ =
            self.create_schema_digest.as_deref().is_some_and(|own| !digest.is_empty() && own != digest);
        name == self.name && !digests_differ
    }
}

/// `dt,hour`, or with the kind of each as in `dt:simple,hour:simple`.
fn fields(text: &str) -> Vec<String> {
    let names = text.split(',').map(|field| field.split(':').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The path of a partition with the name of each folder's column: `20240910/05` of a table that is
/// partitioned by `dt` and `hour` is `dt=20240910/hour=05`. Unchanged where it has names already, and
/// where it does not have one folder for each column.
pub fn named_partition(path: &str, fields: &[String]) -> String {
    let folders: Vec<&str> = path.split('/').collect();
    if path.contains('=') || folders.len() != fields.len() || folders.iter().any(|folder| folder.is_empty()) {
        return path.to_owned();
    }
    let named: Vec<String> = fields.iter().zip(folders).map(|(field, folder)| format!("{field}={folder}")).collect();
    named.join("/")
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

/// The entries of a properties file: comments, `key=value`, `key:value` or `key value`, backslash
/// escapes, lines that go on after a backslash. Of a key that comes twice the last value counts.
///
/// Own code, because the crate for such files brings along a regular expression engine.
fn entries(text: &str) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    let mut lines = text.split(['\n', '\r']);
    while let Some(first) = lines.next() {
        let mut line = first.trim_start_matches(is_blank).to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            line.pop();
            match lines.next() {
                Some(next) => line.push_str(next.trim_start_matches(is_blank)),
                None => break,
            }
        }
        let (key, value) = split_entry(&line);
        entries.insert(unescape(key), unescape(value));
    }
    entries
}

const fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\x0c')
}

/// A key ends at the first `=`, `:` or blank that no backslash precedes.
fn split_entry(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.find(|character: char| {
        let ends = !is_escaped && (is_blank(character) || matches!(character, '=' | ':'));
        is_escaped = character == '\\' && !is_escaped;
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\x0c'),
            Some('u') => {
                let hex: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&hex, 16).ok();
                plain.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests;
