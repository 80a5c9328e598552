//! What a decoder makes of a document.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::digest::{hex, of_texts};
use lakebell_domain::ids::{ProjectCode, TargetId, TriggerKey};
use lakebell_domain::state::{CheckResult, Severity};
use lakebell_domain::target::WorkflowRef;
use serde::{Deserialize, Serialize};

use crate::table::TableRef;

/// Most reports of one item; what is beyond is refused with the number.
pub const MAX_REPORTS: usize = 200;
/// Longest name that is kept, in bytes; a longer one is cut.
pub const MAX_NAME: usize = 256;

/// Why an item is refused: where, what was wrong, and what would be right.
pub type Refusal = Invalid;

/// One item of what was sent: an event, a callback, a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Who says it, as far as that can be told: with `id` its identity.
    pub source: String,
    /// Its identity: the sender's own where there is one, else a digest of what makes it distinct.
    pub id: String,
    /// What it says.
    pub content: Content,
}

/// What an item says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// The job that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// The run that it is one event of, where a run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// What it says about tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<Report>,
    /// What is understood and means nothing here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

/// A part that means nothing here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// What it was, bounded.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Content {
    /// Adds a report, as long as there is room.
    ///
    /// Errors: more than [`MAX_REPORTS`].
    pub(crate) fn report(&mut self, report: Report) -> Result<(), Refusal> {
        if self.reports.len() >= MAX_REPORTS {
            let problem = format!("it says more than {MAX_REPORTS} things about tables");
            return Err(Refusal::new("", problem, "send it in smaller parts"));
        }
        self.reports.push(report);
        Ok(())
    }

    /// Notes a part that means nothing here.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        if self.skipped.len() < MAX_REPORTS {
            self.skipped.push(Skipped { what: bounded(what), why: why.to_owned() });
        }
    }

    /// Nothing but a part that means nothing here.
    pub(crate) fn only_skipped(what: &str, why: &str) -> Self {
        let mut content = Self::default();
        content.skip(what, why);
        content
    }
}

/// A run of a job, or its declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its name, `namespace/name` where it has both.
    pub name: String,
    /// What it reads.
    pub inputs: Vec<TableRef>,
    /// What it writes.
    pub outputs: Vec<TableRef>,
    /// What of Lakebell's had it started, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mentions: Option<Mention>,
}

/// What one event tells of its run, which other events of the run need not tell again. Tables stand under their
/// names in the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// The run's id.
    pub id: String,
    /// The kind of event, in capitals: `START`, `RUNNING`, `COMPLETE`, `FAIL`, `ABORT` or `OTHER`.
    pub status: String,
    /// How many checkpoints it has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<u64>,
    /// The snapshots of what it reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub read: BTreeMap<String, String>,
    /// What it committed to what it writes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub committed: BTreeMap<String, Committed>,
    /// What became of what it writes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lifecycle: BTreeMap<String, Lifecycle>,
}

impl Run {
    /// Whether the run has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.as_str(), "COMPLETE" | "FAIL" | "ABORT")
    }
}

/// A commit that is told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Committed {
    /// The snapshot as the format names it.
    pub snapshot: String,
    /// Its place in the table's history, where that is told beside the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u64>,
    /// What the format calls what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Rows, files and bytes, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stats: BTreeMap<String, i64>,
}

impl Committed {
    /// A commit of which no more than its name is told.
    pub fn named(snapshot: &str) -> Self {
        Self { snapshot: snapshot.to_owned(), ordinal: None, operation: None, stats: BTreeMap::new() }
    }

    /// The numbers among some members, at most 32 of them; each as it stands or below `value`.
    pub(crate) fn count<'a>(&mut self, members: impl IntoIterator<Item = (&'a str, &'a crate::Node<'a>)>) {
        for (name, node) in members {
            let number = node.int().or_else(|| node.get("value").int());
            if let Some(number) = number.filter(|_| self.stats.len() < 32 && name.len() <= 64) {
                self.stats.insert(name.to_owned(), number);
            }
        }
    }
}

/// What of Lakebell's had a job started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mention {
    /// A trigger, by the `lakebell_trigger_key` that its workflow received.
    Trigger(TriggerKey),
    /// A target, as `project/name`.
    Target(TargetId),
    /// A workflow, as `project/code` or `project/name`.
    Workflow(ProjectCode, WorkflowRef),
}

impl Mention {
    /// A workflow from `project/code` or `project/name`.
    pub fn workflow(text: &str) -> Option<Self> {
        let (project, name) = text.split_once('/').filter(|(_, name)| !name.is_empty() && name.len() <= 255)?;
        let workflow = name.parse().map_or_else(|_| WorkflowRef::Name(name.to_owned()), WorkflowRef::Code);
        Some(Self::Workflow(project.parse().ok()?, workflow))
    }
}

/// One thing that is said about one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The table, as the writer names it.
    pub table: TableRef,
    /// What is said.
    pub says: Says,
    /// The sender's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// What is said about a table. A version is always a hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Says {
    /// Something may have changed.
    Touched,
    /// This snapshot was committed.
    Committed(Committed),
    /// A tag appeared.
    Tagged {
        /// Its name.
        tag: String,
    },
    /// The schema changed.
    SchemaChanged {
        /// Its id, where it is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<i64>,
    },
    /// A check has ended.
    Check {
        /// The check or suite.
        check: String,
        /// What it found.
        result: CheckResult,
        /// How bad a failure is.
        severity: Severity,
        /// The run's own id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<String>,
        /// When the check began, as far as that is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<Timestamp>,
        /// The snapshot that was checked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<String>,
    },
    /// A partition is done.
    Partition {
        /// As in `dt=20240910/hour=05`.
        partition: String,
    },
    /// The watermark has come this far.
    Watermark {
        /// Event time.
        to: Timestamp,
    },
    /// The table was made, changed, renamed or dropped.
    Lifecycle(Lifecycle),
    /// The status of a job that writes it.
    JobStatus {
        /// In the job's own words.
        status: String,
    },
}

/// What became of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Lifecycle {
    /// It was made, perhaps anew.
    Created,
    /// It was changed.
    Altered,
    /// It has another name now.
    Renamed {
        /// The name before, for people.
        previous: String,
    },
    /// It was dropped.
    Dropped,
}

impl Lifecycle {
    /// Whether the table is not there any more under the name that is told, so that no commit need be looked for.
    pub const fn leaves_no_commit(&self) -> bool {
        matches!(self, Self::Dropped | Self::Renamed { .. })
    }
}

/// A name that is kept, cut between characters where it is too long.
pub(crate) fn bounded(name: &str) -> String {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

/// A name of a check: bounded, without control characters.
pub(crate) fn check_name(name: &str) -> String {
    let most = lakebell_domain::state::MAX_CHECK_NAME;
    let clean: String = name.chars().filter(|c| !c.is_control()).collect();
    if clean.len() <= most {
        return if clean.trim().is_empty() { "unnamed".to_owned() } else { clean };
    }
    // Two long names that begin alike stay two.
    let tail = digest(&[&clean]);
    let mut end = most - 13;
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}~{}", &clean[..end], &tail[..12])
}

/// 32 hex digits that stand for texts: the identity of what has no id of its own.
pub fn digest(parts: &[&str]) -> String {
    hex(&of_texts(parts)[..16])
}

/// A partition path, `k=v/` segments with Hive's escaping, as a partition is written here; `None`
/// for what is none.
pub fn partition_of(path: &str) -> Option<String> {
    let path = path.trim_matches('/');
    let is_path = !path.is_empty() && path.len() <= 1_024 && path.split('/').all(|part| part.contains('='));
    is_path.then(|| path.split('/').map(unescaped).collect::<Vec<_>>().join("/"))
}

/// A segment without Hive's `%XX`; as it stands where that would make it two, or no text.
fn unescaped(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = match after {
            [high, low, ..] if *first == b'%' => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    let is_one = !text.is_empty() && !text.contains('/') && text.matches('=').count() == part.matches('=').count();
    if is_one { text } else { part.to_owned() }
}

/// A moment by RFC 3339, or in milliseconds since 1970.
pub(crate) fn moment(node: &crate::Node<'_>) -> Option<Timestamp> {
    if let Some(millis) = node.int() {
        return Timestamp::from_millisecond(millis).ok();
    }
    node.text().filter(|text| text.len() <= 64).and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_checks_stay_apart() {
        let long = |end: &str| check_name(&format!("{}{end}", "é".repeat(200)));
        assert!(long("a").len() <= 128);
        assert_ne!(long("a"), long("b"));
        assert_eq!((check_name("a\nb"), check_name(" ")), ("ab".to_owned(), "unnamed".to_owned()));
    }

    #[test]
    fn partitions_are_paths_of_pairs() {
        assert_eq!(partition_of("dt=2026-01-15/region=eu/").as_deref(), Some("dt=2026-01-15/region=eu"));
        assert_eq!(partition_of("ts=2026-01-15 10%3A00").as_deref(), Some("ts=2026-01-15 10:00"));
        assert_eq!(partition_of("a=1%2F2/b=%zz/c=%3D").as_deref(), Some("a=1%2F2/b=%zz/c=%3D"));
        for none in ["", "/", "dt", "a=1/b"] {
            assert_eq!(partition_of(none), None, "{none}");
        }
    }

    #[test]
    fn a_digest_keeps_parts_apart() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_eq!(digest(&["a"]).len(), 32);
    }
}
