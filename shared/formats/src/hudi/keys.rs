//! Object keys: what an object of a Hudi table is, told from its key alone, and the keys to read.

use std::fmt;

use super::instant::Instant;

/// The folder of everything that is not data, relative to the table's root.
const HOODIE: &str = ".hoodie";

/// The table's own settings, relative to its root.
pub const PROPERTIES_KEY: &str = ".hoodie/hoodie.properties";
/// Where layout 1 moves old instants, relative to the table's root.
pub const LAYOUT_1_ARCHIVE_FOLDER: &str = ".hoodie/archived/";
/// Where layout 2 moves old instants, relative to the table's root.
pub const HISTORY_FOLDER: &str = ".hoodie/timeline/history/";

/// How a table's timeline is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// Table versions up to 7 (Hudi 0.x): `.hoodie/INSTANT.ACTION`.
    One,
    /// Table version 8 and later (Hudi 1.x): `.hoodie/timeline/INSTANT_COMPLETION.ACTION`.
    Two,
}

impl Layout {
    /// The folder of its instants, relative to the table's root. List it without what lies in
    /// folders below it: in layout 1 those hold a whole second table.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::One => ".hoodie/",
            Self::Two => ".hoodie/timeline/",
        }
    }

    /// The layout of a value of `hoodie.timeline.layout.version`. Layout 0 has the file names of 1.
    pub fn from_version(version: &str) -> Option<Self> {
        match version {
            "0" | "1" => Some(Self::One),
            "2" => Some(Self::Two),
            _ => None,
        }
    }
}

/// What an instant did or does to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Action {
    /// A write to a copy-on-write table, or a completed compaction.
    Commit,
    /// A write to a merge-on-read table, or a completed log compaction.
    DeltaCommit,
    /// Files replaced by others: an overwrite, partitions deleted, or a completed clustering.
    ReplaceCommit,
    /// Old file versions removed.
    Clean,
    /// What a failed write left behind removed.
    Rollback,
    /// The table taken back to a savepoint: completed instants removed.
    Restore,
    /// A commit protected from cleaning.
    Savepoint,
    /// An index built.
    Indexing,
    /// Compaction under way. Completes as a commit.
    Compaction,
    /// Log compaction under way. Completes as a delta commit.
    LogCompaction,
    /// Clustering under way, by its name in layout 2. Completes as a replace commit.
    Clustering,
    /// The table's schema saved.
    SchemaCommit,
}

impl Action {
    const ALL: [Self; 12] = [
        Self::Commit,
        Self::DeltaCommit,
        Self::ReplaceCommit,
        Self::Clean,
        Self::Rollback,
        Self::Restore,
        Self::Savepoint,
        Self::Indexing,
        Self::Compaction,
        Self::LogCompaction,
        Self::Clustering,
        Self::SchemaCommit,
    ];

    /// Its name in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::DeltaCommit => "deltacommit",
            Self::ReplaceCommit => "replacecommit",
            Self::Clean => "clean",
            Self::Rollback => "rollback",
            Self::Restore => "restore",
            Self::Savepoint => "savepoint",
            Self::Indexing => "indexing",
            Self::Compaction => "compaction",
            Self::LogCompaction => "logcompaction",
            Self::Clustering => "clustering",
            Self::SchemaCommit => "schemacommit",
        }
    }

    /// Whether its completed file holds commit metadata: what was written, by partition.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Commit | Self::DeltaCommit | Self::ReplaceCommit)
    }

    /// Whether it can change what a reader of the table sees.
    pub const fn can_change_data(self) -> bool {
        self.writes() || matches!(self, Self::Restore)
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far an action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Planned.
    Requested,
    /// Under way. The file may already name partitions and counts: a plan, not a commit.
    Inflight,
    /// Done and visible.
    Completed,
}

/// A file of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstantFile {
    /// When the action began. Names it in every state and layout.
    pub instant: Instant,
    /// When it completed: in layout 2, for completed instants. Absent there too for an instant that
    /// an upgrade took over under its old name.
    pub completion: Option<Instant>,
    /// What it does.
    pub action: Action,
    /// How far it has come.
    pub state: State,
    /// Which layout's folder it lies in.
    pub layout: Layout,
}

impl InstantFile {
    /// The text that rises from commit to commit, as far as the format has one: the completion time,
    /// or where none is written the instant.
    pub fn position(&self) -> Instant {
        self.completion.unwrap_or(self.instant)
    }

    /// Its key relative to the table's root.
    pub fn relative_key(&self) -> String {
        let Self { instant, action, .. } = self;
        let name = match (self.state, self.completion) {
            (State::Completed, Some(completion)) => format!("{instant}_{completion}.{action}"),
            (State::Completed, None) => format!("{instant}.{action}"),
            (State::Requested, _) => format!("{instant}.{action}.requested"),
            (State::Inflight, _) if *action == Action::Commit => format!("{instant}.inflight"),
            (State::Inflight, _) => format!("{instant}.{action}.inflight"),
        };
        format!("{}{name}", self.layout.folder())
    }
}

/// A file that holds instants which the timeline no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArchiveFile {
    /// Layout 1: a log whose name says nothing of its instants.
    Log,
    /// Layout 2: the first and the last of its instants, of the file's name.
    Range(Instant, Instant),
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HudiObjectKind {
    /// A file of the timeline. In the state [`State::Completed`] it makes a commit visible.
    Instant(InstantFile),
    /// [`PROPERTIES_KEY`]. Rewritten when the table is upgraded.
    Properties,
    /// Old instants, moved away from the timeline.
    Archive(ArchiveFile),
}

/// An object of a Hudi table that a reader of commits may care about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HudiObject {
    /// The table's root, without a slash at the end; empty where the key is relative to the root.
    pub root: String,
    /// What it is.
    pub kind: HudiObjectKind,
}

impl HudiObject {
    /// The completed instant whose file this is, if it is one.
    pub fn completed(&self) -> Option<InstantFile> {
        match self.kind {
            HudiObjectKind::Instant(file) => Some(file).filter(|file| file.state == State::Completed),
            _ => None,
        }
    }
}

/// Tells what an object is from its key, which must already be decoded (S3 notifications encode
/// it; EventBridge does not).
///
/// `None` for everything else: data, `.hoodie/.temp/`, `.aux/`, `.heartbeat/`, `.schema/`, checksums
/// (`*.crc`), backups, actions that are not known, and **everything below `.hoodie/metadata/`**,
/// which is a Hudi table inside the table with the same file names.
///
/// ```
/// use lakebell_formats::hudi::{Action, classify};
///
/// let key = "lake/trips/.hoodie/timeline/20251220210129235_20251220210129883.commit";
/// let object = classify(key).unwrap();
/// assert_eq!(object.root, "lake/trips");
/// assert_eq!(object.completed().unwrap().action, Action::Commit);
/// let inner = "lake/trips/.hoodie/metadata/.hoodie/timeline/20251220210129235_20251220210129883.deltacommit";
/// assert!(classify(inner).is_none());
/// ```
pub fn classify(object_key: &str) -> Option<HudiObject> {
    let (path, name) = object_key.rsplit_once('/')?;
    let (root, kind) = if let Some(root) = below(path, HOODIE) {
        (root, in_hoodie(name)?)
    } else if let Some(root) = below(path, ".hoodie/timeline") {
        (root, HudiObjectKind::Instant(instant_file(name, Layout::Two)?))
    } else if let Some(root) = below(path, LAYOUT_1_ARCHIVE_FOLDER.trim_end_matches('/')) {
        (root, archive_log(name)?)
    } else {
        (below(path, HISTORY_FOLDER.trim_end_matches('/'))?, history_file(name)?)
    };
    let is_inside_a_table = root.split('/').any(|segment| segment == HOODIE);
    (!is_inside_a_table).then(|| HudiObject { root: root.to_owned(), kind })
}

/// Whether a relative key lies on a timeline and is named like an instant without being one:
/// an action from the future, a copy, a temporary file.
pub(super) fn resembles_instant(relative_key: &str) -> bool {
    let name = [Layout::Two, Layout::One].iter().find_map(|layout| relative_key.strip_prefix(layout.folder()));
    let Some(name) = name.filter(|name| !name.contains('/') && !name.to_ascii_lowercase().ends_with(".crc")) else {
        return false;
    };
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let follows = name.as_bytes().get(digits);
    digits >= 14 && matches!(follows, Some(b'.' | b'_')) && classify(relative_key).is_none()
}

/// The path above a folder, if the path ends in it.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let above = path.strip_suffix(folder)?;
    if above.is_empty() { Some(above) } else { above.strip_suffix('/') }
}

fn in_hoodie(name: &str) -> Option<HudiObjectKind> {
    if format!("{HOODIE}/{name}") == PROPERTIES_KEY {
        return Some(HudiObjectKind::Properties);
    }
    // Before `archived/` became the default, the log of old instants lay beside the new ones.
    instant_file(name, Layout::One).map(HudiObjectKind::Instant).or_else(|| archive_log(name))
}

fn instant_file(name: &str, layout: Layout) -> Option<InstantFile> {
    let (times, action) = name.split_once('.')?;
    let (action, state) = match action {
        "inflight" => (Action::Commit, State::Inflight),
        _ => match action.split_once('.') {
            None => (Action::from_name(action)?, State::Completed),
            Some((action, "requested")) => (Action::from_name(action)?, State::Requested),
            Some((action, "inflight")) => (Action::from_name(action)?, State::Inflight),
            Some(_) => return None,
        },
    };
    let (instant, completion) = match times.split_once('_') {
        None => (times, None),
        Some((instant, completion)) => (instant, Some(completion.parse().ok()?)),
    };
    let may_have_completion = layout == Layout::Two && state == State::Completed;
    let file = InstantFile { instant: instant.parse().ok()?, completion, action, state, layout };
    (may_have_completion || completion.is_none()).then_some(file)
}

fn archive_log(name: &str) -> Option<HudiObjectKind> {
    name.starts_with(".commits_.archive.").then_some(HudiObjectKind::Archive(ArchiveFile::Log))
}

fn history_file(name: &str) -> Option<HudiObjectKind> {
    let (first, rest) = name.strip_suffix(".parquet")?.split_once('_')?;
    let (last, level) = rest.split_once('_')?;
    let is_level = !level.is_empty() && level.bytes().all(|byte| byte.is_ascii_digit());
    let range = ArchiveFile::Range(first.parse().ok()?, last.parse().ok()?);
    is_level.then_some(HudiObjectKind::Archive(range))
}

#[cfg(test)]
mod tests;
