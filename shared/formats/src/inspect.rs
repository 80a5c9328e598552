//! What Lakebell sees in a table, in one shape for all formats: the result of
//! `lakebell table inspect`.

use std::collections::BTreeMap;

use lakebell_domain::asset::Format;
use lakebell_domain::commit::Commit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A position or a snapshot id in the format's own type: a JSON number where the format counts
/// (Paimon, Iceberg, Delta), a text where it does not (Hudi).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Token {
    /// A number of the format.
    Number(u64),
    /// A text of the format.
    Text(String),
}

/// One commit, in the order of its branch. Fields are null where the format does not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRow {
    /// The object that makes it visible, relative to the table's root.
    pub file: String,
    /// The format's own number that rises with every commit. Not Lakebell's ordinal, though for
    /// Paimon the two are equal.
    pub position: Token,
    /// The id that the format gives it.
    pub snapshot_id: Option<Token>,
    /// The id of the commit before it.
    pub parent_id: Option<Token>,
    /// The schema that it was written with.
    pub schema_id: Option<i64>,
    /// The format's own name for what it did.
    pub commit_kind: Option<String>,
    /// Whether it changed data; null where the kind is not known.
    pub changes_data: Option<bool>,
    /// The event-time watermark, in milliseconds since 1970-01-01T00:00:00Z.
    pub watermark: Option<i64>,
    /// The writer's clock, in milliseconds since 1970-01-01T00:00:00Z.
    pub commit_time_ms: Option<i64>,
    /// Rows after it, as the format counts them.
    pub total_records: Option<i64>,
    /// Rows that it added less those that it removed.
    pub delta_records: Option<i64>,
    /// Tags that name it, sorted.
    pub tags: Vec<String>,
    /// The branch; `main` for the main line.
    pub branch: String,
    /// What else the format says.
    pub extra: BTreeMap<String, Value>,
}

impl CommitRow {
    /// A row from a commit; ids become numbers where they are decimal numbers.
    pub(crate) fn new(file: String, branch: &str, commit: Commit) -> Self {
        let token = |text: String| text.parse().map_or(Token::Text(text), Token::Number);
        Self {
            file,
            position: Token::Number(commit.ordinal.0),
            snapshot_id: Some(token(commit.snapshot_id)),
            parent_id: commit.parent_id.map(token),
            schema_id: commit.schema_id,
            commit_kind: Some(commit.kind.0),
            changes_data: commit.changes_data,
            watermark: commit.watermark.map(|watermark| watermark.0),
            commit_time_ms: commit.committed_at.map(|time| time.0),
            total_records: commit.total_records,
            delta_records: commit.delta_records,
            tags: commit.tags,
            branch: branch.to_owned(),
            extra: commit.extra,
        }
    }
}

/// The newest readable commit of the main line; all null where there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latest {
    /// Always `main`.
    pub branch: String,
    /// Its position.
    pub position: Option<Token>,
    /// Its id.
    pub snapshot_id: Option<Token>,
    /// The object that makes it visible.
    pub file: Option<String>,
    /// The newest schema of the table, which may have no commit yet.
    pub schema_id_of_table: Option<i64>,
    /// The id that the table itself carries, and that another table at the same place would not
    /// share; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_id: Option<String>,
    /// Rows after it, as the format counts them; left out where the format does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_records: Option<i64>,
    /// Iceberg's newest sequence number; left out for other formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<i64>,
}

/// The oldest readable commit of the main line. What came before has expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earliest {
    /// Its position; null where there is no commit.
    pub position: Option<Token>,
}

/// A tag whose commit is not among the commits: it expired, or its id was used again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TagWithoutSnapshot {
    /// The tag's name.
    pub tag: String,
    /// The tag's file, relative to the table's root.
    pub file: String,
    /// The id of the commit that it names.
    pub snapshot_id: Token,
}

/// A file that could not be read. Nothing else is affected by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// The file, relative to the table's root.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What Lakebell sees in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// The table format.
    pub format: Format,
    /// The commits of the main line in order, then those of each branch, by the branch's name.
    pub commits: Vec<CommitRow>,
    /// The newest commit of the main line.
    pub latest: Latest,
    /// The newest position of the main line and of every branch; null where it has no commit.
    pub latest_by_branch: BTreeMap<String, Option<Token>>,
    /// The oldest commit of the main line.
    pub earliest: Earliest,
    /// For each consumer of the main line, the first snapshot id that it has not read.
    pub consumers: BTreeMap<String, u64>,
    /// Tags whose commit is gone; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags_without_snapshot: Vec<TagWithoutSnapshot>,
    /// Commits that are proposed or under way and not visible yet; left out for formats that have
    /// no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Vec<String>>,
    /// Files that hold a whole commit and are not on the table's line, because another writer won or
    /// because another table lay at the same place; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<String>,
    /// Files that look like commits and are none; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_commits: Vec<String>,
    /// What a person should know about the table; left out where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Files that could not be read; left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<Damaged>,
}

impl Inspection {
    /// Whether nothing of a table was found: most likely the path is not a table's root.
    pub fn is_empty(&self) -> bool {
        let no_table = self.latest.schema_id_of_table.is_none() && self.latest.table_id.is_none();
        no_table && self.commits.is_empty() && self.damaged.is_empty() && self.tags_without_snapshot.is_empty()
    }
}
