//! Object keys: what an object of a Paimon table is, told from its key alone, and the keys to read.

/// Where the branches of a table lie, relative to its root: each is `branch/branch-NAME/`.
pub const BRANCH_PREFIX: &str = "branch/branch-";

/// The name of the line that is no branch.
const MAIN: &str = "main";

/// A hint file of the `snapshot` folder. Hints are written after the commit, lag, and may be wrong
/// or absent: they say that something happened and never what the newest snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hint {
    /// `snapshot/LATEST`.
    Latest,
    /// `snapshot/EARLIEST`.
    Earliest,
}

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaimonObjectKind {
    /// `snapshot/snapshot-N`, N from 1: a commit. The only kind that is one.
    Snapshot(u64),
    /// `tag/tag-NAME`: a name for a commit, with a whole copy of its snapshot.
    Tag(String),
    /// `schema/schema-N`, N from 0. Written when columns or options change, without a commit.
    Schema(u64),
    /// `consumer/consumer-ID`: how far a reader has come.
    Consumer(String),
    /// `changelog/changelog-N`: a snapshot kept for its changelog after it expired. Not a new commit.
    Changelog(u64),
    /// `snapshot/LATEST` or `snapshot/EARLIEST`.
    SnapshotHint(Hint),
}

/// An object of a Paimon table that a reader of commits may care about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PaimonObject {
    /// The table's root, without a slash at the end; empty where the key is relative to the root.
    pub root: String,
    /// The branch, `None` for the main line.
    pub branch: Option<String>,
    /// What it is.
    pub kind: PaimonObjectKind,
}

impl PaimonObject {
    /// The object's key relative to the table's root. For the branch folder `branch-main` that is
    /// the main line's own key, which is where readers look.
    pub fn relative_key(&self) -> String {
        let branch = self.branch.as_deref();
        match &self.kind {
            PaimonObjectKind::Snapshot(id) => snapshot_key(branch, *id),
            PaimonObjectKind::Tag(name) => tag_key(branch, name),
            PaimonObjectKind::Schema(id) => schema_key(branch, *id),
            PaimonObjectKind::Consumer(name) => consumer_key(branch, name),
            PaimonObjectKind::Changelog(id) => format!("{}changelog/changelog-{id}", folder(branch)),
            PaimonObjectKind::SnapshotHint(Hint::Latest) => format!("{}snapshot/LATEST", folder(branch)),
            PaimonObjectKind::SnapshotHint(Hint::Earliest) => format!("{}snapshot/EARLIEST", folder(branch)),
        }
    }
}

/// Tells what an object is from its key, which must already be decoded (S3 notifications encode
/// it; EventBridge does not).
///
/// `None` for everything else: data, manifests, indexes, directory markers, temporary objects such
/// as `snapshot/.snapshot-7.<uuid>.tmp` (which hold the whole JSON of a commit that may never be),
/// partitions whose value reads `snapshot-7`, and numbers that no writer makes: with leading zeros,
/// above 63 bits, or snapshot 0.
///
/// Only the last two path segments (main line) or four (branch) decide, because the path of the
/// root may itself contain any of these words. A root that ends in `branch/branch-NAME` therefore
/// reads as that branch of the table above it.
///
/// ```
/// use lakebell_formats::paimon::{PaimonObjectKind, classify};
///
/// let object = classify("lake/ods.db/orders/branch/branch-test/snapshot/snapshot-7").unwrap();
/// assert_eq!(object.root, "lake/ods.db/orders");
/// assert_eq!(object.branch.as_deref(), Some("test"));
/// assert_eq!(object.kind, PaimonObjectKind::Snapshot(7));
/// assert!(classify("lake/ods.db/orders/dt=snapshot-7/bucket-0/data-1.parquet").is_none());
/// ```
pub fn classify(object_key: &str) -> Option<PaimonObject> {
    let (path, name) = object_key.rsplit_once('/')?;
    let (root, folder) = split_last(path);
    let kind = match folder {
        "snapshot" => match name {
            "LATEST" => PaimonObjectKind::SnapshotHint(Hint::Latest),
            "EARLIEST" => PaimonObjectKind::SnapshotHint(Hint::Earliest),
            _ => PaimonObjectKind::Snapshot(number(name, "snapshot-").filter(|id| *id > 0)?),
        },
        "schema" => PaimonObjectKind::Schema(number(name, "schema-")?),
        "changelog" => PaimonObjectKind::Changelog(number(name, "changelog-").filter(|id| *id > 0)?),
        "tag" => PaimonObjectKind::Tag(named(name, "tag-")?),
        "consumer" => PaimonObjectKind::Consumer(named(name, "consumer-")?),
        _ => return None,
    };
    let (root, branch) = split_branch(root)?;
    Some(PaimonObject { root: root.to_owned(), branch: branch.map(str::to_owned), kind })
}

/// The key of a snapshot, relative to the table's root. `main` and `None` are the main line, here
/// and in all functions below.
pub fn snapshot_key(branch: Option<&str>, id: u64) -> String {
    format!("{}snapshot/snapshot-{id}", folder(branch))
}

/// The key of a schema, relative to the table's root.
pub fn schema_key(branch: Option<&str>, id: u64) -> String {
    format!("{}schema/schema-{id}", folder(branch))
}

/// The key of a tag, relative to the table's root.
pub fn tag_key(branch: Option<&str>, name: &str) -> String {
    format!("{}tag/tag-{name}", folder(branch))
}

/// The key of a consumer's position, relative to the table's root.
pub fn consumer_key(branch: Option<&str>, name: &str) -> String {
    format!("{}consumer/consumer-{name}", folder(branch))
}

/// What the keys of all snapshots of a branch start with, and no hint or temporary object. Stores
/// list keys as text, so `snapshot-10` comes before `snapshot-9`: the newest is not the last one.
pub fn snapshot_prefix(branch: Option<&str>) -> String {
    format!("{}snapshot/snapshot-", folder(branch))
}

/// What the keys of all schemas of a branch start with.
pub fn schema_prefix(branch: Option<&str>) -> String {
    format!("{}schema/schema-", folder(branch))
}

/// What the keys of all tags of a branch start with.
pub fn tag_prefix(branch: Option<&str>) -> String {
    format!("{}tag/tag-", folder(branch))
}

/// What the keys of all consumers of a branch start with.
pub fn consumer_prefix(branch: Option<&str>) -> String {
    format!("{}consumer/consumer-", folder(branch))
}

/// The folder of a branch with a slash at the end, empty for the main line.
fn folder(branch: Option<&str>) -> String {
    match branch {
        None | Some(MAIN) => String::new(),
        Some(name) => format!("{BRANCH_PREFIX}{name}/"),
    }
}

fn split_last(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Takes `branch/branch-NAME` off the end of a path. `None` for a branch without a name.
fn split_branch(path: &str) -> Option<(&str, Option<&str>)> {
    let (above, last) = split_last(path);
    let (root, folder) = split_last(above);
    match last.strip_prefix("branch-") {
        Some(_) if folder != "branch" => Some((path, None)),
        Some("") => None,
        Some(MAIN) => Some((root, None)),
        Some(name) => Some((root, Some(name))),
        None => Some((path, None)),
    }
}

/// The number of a file name, as writers write it: decimal digits, no leading zero, 63 bits.
fn number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let is_plain = digits == "0" || !digits.starts_with('0');
    if digits.is_empty() || !is_plain || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i64>().ok().and_then(|id| u64::try_from(id).ok())
}

fn named(name: &str, prefix: &str) -> Option<String> {
    name.strip_prefix(prefix).filter(|rest| !rest.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use PaimonObjectKind::{Changelog, Consumer, Schema, Snapshot, SnapshotHint, Tag};

    fn parts(key: &str) -> (String, Option<String>, PaimonObjectKind) {
        let object = classify(key).unwrap_or_else(|| panic!("{key} was not recognised"));
        (object.root, object.branch, object.kind)
    }

    #[test]
    fn every_kind_is_told_on_the_main_line_and_on_a_branch() {
        let shapes = [
            ("snapshot/snapshot-1", Snapshot(1)),
            ("snapshot/snapshot-9223372036854775807", Snapshot(i64::MAX.unsigned_abs())),
            ("snapshot/LATEST", SnapshotHint(Hint::Latest)),
            ("snapshot/EARLIEST", SnapshotHint(Hint::Earliest)),
            ("schema/schema-0", Schema(0)),
            ("schema/schema-12", Schema(12)),
            ("tag/tag-release 1.0", Tag("release 1.0".into())),
            ("tag/tag-tag-ä", Tag("tag-ä".into())),
            ("consumer/consumer-job-a", Consumer("job-a".into())),
            ("changelog/changelog-3", Changelog(3)),
        ];
        for (relative, kind) in shapes {
            for root in ["t", "lake/ods.db/orders", "lake/a b.db/c+d%2F"] {
                let main = format!("{root}/{relative}");
                assert_eq!(parts(&main), (root.to_owned(), None, kind.clone()));
                let branch = format!("{root}/branch/branch-what-if/{relative}");
                assert_eq!(parts(&branch), (root.to_owned(), Some("what-if".to_owned()), kind.clone()));
            }
            assert_eq!(parts(relative), (String::new(), None, kind));
        }
    }

    #[test]
    fn the_branch_main_is_no_branch() {
        let (root, branch, kind) = parts("t/branch/branch-main/snapshot/snapshot-2");
        assert_eq!((root.as_str(), branch, kind), ("t", None, Snapshot(2)));
        assert_eq!(snapshot_key(Some("main"), 2), snapshot_key(None, 2));
        assert_eq!(snapshot_prefix(Some("main")), "snapshot/snapshot-");
    }

    #[test]
    fn only_the_end_of_the_key_decides() {
        assert_eq!(parts("snapshot/schema/tag/snapshot/snapshot-3").0, "snapshot/schema/tag");
        assert_eq!(
            parts("a/snapshot/snapshot-1/snapshot/snapshot-2"),
            ("a/snapshot/snapshot-1".into(), None, Snapshot(2))
        );
        assert_eq!(parts("a/branch-x/snapshot/snapshot-2"), ("a/branch-x".into(), None, Snapshot(2)));
        assert_eq!(parts("a/branch/x/snapshot/snapshot-2"), ("a/branch/x".into(), None, Snapshot(2)));
        let nested = parts("a/branch/branch-x/branch/branch-y/tag/tag-z");
        assert_eq!(nested, ("a/branch/branch-x".into(), Some("y".into()), Tag("z".into())));
    }

    #[test]
    fn everything_else_is_nothing() {
        let others = [
            "",
            "/",
            "snapshot-1",
            "t/snapshot/",
            "t/snapshot/x",
            "t/snapshot/snapshot-",
            "t/snapshot/snapshot-0",
            "t/snapshot/snapshot-07",
            "t/snapshot/snapshot--7",
            "t/snapshot/snapshot-+7",
            "t/snapshot/snapshot-7 ",
            "t/snapshot/snapshot-7.tmp",
            "t/snapshot/snapshot-٧",
            "t/snapshot/snapshot-9223372036854775808",
            "t/snapshot/snapshot-99999999999999999999999",
            "t/snapshot/Snapshot-7",
            "t/snapshot/.snapshot-7.5dc44946-0d06-4ff8-9f95-a00a4b53e26e.tmp",
            "t/snapshot/.LATEST.5dc44946-0d06-4ff8-9f95-a00a4b53e26e.tmp",
            "t/snapshot/latest",
            "t/Snapshot/snapshot-7",
            "t/dt=snapshot-7/bucket-0/data-0.parquet",
            "t/dt=snapshot-7/snapshot-7",
            "t/dt=snapshot/snapshot-7",
            "t/snapshot-7/snapshot-7",
            "t/manifest/manifest-list-1-0",
            "t/index/index-1",
            "t/statistics/stat-1",
            "t/schema/schema-",
            "t/schema/schema-00",
            "t/schema/.schema-0.1.tmp",
            "t/tag/tag-",
            "t/tag/.tag-a.1.tmp",
            "t/consumer/consumer-",
            "t/changelog/LATEST",
            "t/changelog/changelog-0",
            "t/branch/branch-/snapshot/snapshot-1",
        ];
        for key in others {
            assert_eq!(classify(key), None, "{key}");
        }
    }

    #[test]
    fn keys_are_built_as_writers_name_them() {
        assert_eq!(snapshot_key(None, 7), "snapshot/snapshot-7");
        assert_eq!(snapshot_key(Some("b"), 7), "branch/branch-b/snapshot/snapshot-7");
        assert_eq!(schema_key(Some("b"), 0), "branch/branch-b/schema/schema-0");
        assert_eq!(tag_key(None, "v1"), "tag/tag-v1");
        assert_eq!(consumer_key(None, "j"), "consumer/consumer-j");
        assert_eq!(schema_prefix(None), "schema/schema-");
        assert_eq!(tag_prefix(Some("b")), "branch/branch-b/tag/tag-");
        assert_eq!(consumer_prefix(None), "consumer/consumer-");
        assert!(snapshot_key(Some("b"), 7).starts_with(BRANCH_PREFIX));
    }
}
