//! What Lakebell sees in a Hudi table, from the files of its timeline.

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;
use lakebell_domain::version::Ordinal;
use serde_json::Value;

use super::PROPERTIES_KEY;
use super::commit::{add_names, ordinal, to_commit};
use super::keys::{Action, HudiObjectKind, InstantFile, State, classify, resembles_instant};
use super::metadata::{CommitMetadata, Encoding};
use super::properties::TableProperties;
use super::restore::RestoreMetadata;
use super::timeline::Timeline;
use crate::error::FormatError;
use crate::inspect::{CommitRow, Damaged, Earliest, Inspection, Latest, Token};

const MAIN: &str = "main";
/// The newest table version whose files are known.
const NEWEST_TABLE_VERSION: u32 = 9;

/// Whether [`inspect`] takes notice of a file, by its key relative to the table's root: instants in
/// every state, files that are named like instants, and the table's properties. Archives, data and
/// everything below `.hoodie/metadata/` are not wanted.
pub fn wants(relative_key: &str) -> bool {
    match classify(relative_key) {
        Some(object) => object.root.is_empty() && !matches!(object.kind, HudiObjectKind::Archive(_)),
        None => resembles_instant(relative_key),
    }
}

/// Whether [`inspect`] also reads the file's contents. Of others that it wants, the name is enough
/// and the contents may be left empty.
pub fn reads(relative_key: &str) -> bool {
    let object = classify(relative_key).filter(|object| object.root.is_empty());
    object.is_some_and(|object| match object.kind {
        HudiObjectKind::Properties => true,
        HudiObjectKind::Instant(file) => file.state == State::Completed,
        HudiObjectKind::Archive(_) => false,
    })
}

/// Reads what a table says of itself. `files` holds the contents of files by their key relative to
/// the table's root; those that are not wanted are passed over.
///
/// A completed instant whose metadata cannot be read is reported in [`Inspection::damaged`] and is no
/// row; the newest readable write is the latest. Positions and ids are texts. In layout 1 a position
/// is the instant, because when a commit completed is not written down there.
pub fn inspect(files: &BTreeMap<String, Vec<u8>>) -> Inspection {
    let timeline = Timeline::from_keys(files.keys().map(String::as_str));
    let mut damaged = Vec::new();
    let mut damage =
        |key: &str, error: FormatError| damaged.push(Damaged { file: key.to_owned(), problem: error.to_string() });
    let properties = files.get(PROPERTIES_KEY).and_then(|bytes| match TableProperties::parse(bytes) {
        Ok(properties) => Some(properties),
        Err(error) => {
            damage(PROPERTIES_KEY, error);
            None
        }
    });
    let mut commits = Vec::new();
    for file in timeline.completed() {
        let key = file.relative_key();
        let bytes = files.get(&key).map(Vec::as_slice).unwrap_or_default();
        match row(&key, file, bytes) {
            Ok(row) => commits.push(row),
            Err(error) => damage(&key, error),
        }
    }
    damaged.sort_by(|one, other| one.file.cmp(&other.file));
    let not_commits: Vec<_> = files.keys().filter(|key| resembles_instant(key)).cloned().collect();
    let mut warnings = properties.as_ref().map(warnings_of).unwrap_or_default();
    if !not_commits.is_empty() {
        warnings.push("files of the timeline have names that are not known, see not_commits".to_owned());
    }
    let mut pending: Vec<_> = timeline.pending().iter().map(pending_name).collect();
    pending.sort();
    let newest = commits.iter().rev().find(|row| can_be_latest(row));
    let position = newest.map(|row| row.position.clone());
    Inspection {
        format: Format::Hudi,
        latest: Latest {
            branch: MAIN.to_owned(),
            position: position.clone(),
            snapshot_id: newest.and_then(|row| row.snapshot_id.clone()),
            file: newest.map(|row| row.file.clone()),
            schema_id_of_table: None,
            table_id: properties.as_ref().map(TableProperties::table_id),
            total_records: None,
            sequence_number: None,
        },
        latest_by_branch: BTreeMap::from([(MAIN.to_owned(), position)]),
        earliest: Earliest { position: commits.first().map(|row| row.position.clone()) },
        consumers: BTreeMap::new(),
        tags_without_snapshot: Vec::new(),
        pending: Some(pending),
        not_commits,
        orphans: Vec::new(),
        warnings,
        commits,
        damaged,
    }
}

fn row(key: &str, file: &InstantFile, bytes: &[u8]) -> Result<CommitRow, FormatError> {
    let metadata =
        if file.action.writes() { CommitMetadata::parse(bytes)? } else { CommitMetadata::empty(Encoding::of(bytes)) };
    let mut commit = to_commit(file, &metadata, ordinal(file).unwrap_or(Ordinal(file.instant.as_number())));
    if file.action == Action::Restore {
        add_names(&mut commit.extra, "removed_instants", &RestoreMetadata::parse(bytes)?.removed_instants);
    }
    for field in ["completion", "operation_type"] {
        commit.extra.entry(field.to_owned()).or_insert(Value::Null);
    }
    let row = CommitRow::new(key.to_owned(), MAIN, commit);
    let text = |instant: super::Instant| Token::Text(instant.to_string());
    Ok(CommitRow { position: text(file.position()), snapshot_id: Some(text(file.instant)), ..row })
}

/// Cleans, rollbacks, savepoints and indexes are no state of the table to depend on.
fn can_be_latest(row: &CommitRow) -> bool {
    let kind = row.commit_kind.as_deref();
    kind.is_some_and(|kind| Action::from_name(kind).is_some_and(Action::can_change_data))
}

/// `INSTANT.ACTION.STATE`, which for a commit under way is not its file's name.
fn pending_name(file: &InstantFile) -> String {
    let state = if file.state == State::Requested { "requested" } else { "inflight" };
    format!("{}.{}.{state}", file.instant, file.action)
}

fn warnings_of(properties: &TableProperties) -> Vec<String> {
    let mut warnings = Vec::new();
    let zone = properties.timezone.as_deref().unwrap_or("LOCAL");
    if !zone.eq_ignore_ascii_case("UTC") {
        warnings.push(format!("times are in the timeline's zone, {zone}, and shown as if it were UTC"));
    }
    let version = properties.table_version.as_deref();
    if version.is_some_and(|version| version.parse::<u32>().map_or(true, |version| version > NEWEST_TABLE_VERSION)) {
        warnings.push(format!("table version {} is not known", version.unwrap_or_default()));
    }
    if let (Some(version), None) = (&properties.layout_version, properties.layout()) {
        warnings.push(format!("timeline layout {version} is not known"));
    }
    for setting in &properties.moved {
        warnings.push(format!("{setting} is set, and the folder that it names is not read"));
    }
    warnings
}

#[cfg(test)]
mod tests;
