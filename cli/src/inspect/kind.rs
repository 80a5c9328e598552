//! What inspecting a table needs to know of its format.

use std::collections::BTreeMap;

use lakebell_formats::inspect::Inspection;
use lakebell_formats::{delta, hudi, iceberg, paimon};

/// The largest metadata file that is read where a format has large ones: Iceberg metadata of
/// 50,000 snapshots is about 40 MB.
const LARGE: usize = 256 << 20;

/// A format as an inspection sees it.
pub(super) struct Kind {
    /// Its name, for people.
    pub(super) name: &'static str,
    /// The folders that hold its metadata, relative to the root, each with a slash at the end.
    pub(super) folders: &'static [&'static str],
    /// Whether branches repeat the layout below `branch/branch-NAME/`.
    pub(super) has_branches: bool,
    /// Whether a file says something about the table, by its key relative to the root.
    pub(super) wants: fn(&str) -> bool,
    /// Whether its contents are read; of others the name is enough.
    pub(super) reads: fn(&str) -> bool,
    /// The largest file that is parsed, in bytes.
    pub(super) largest: usize,
    /// Reads what the files say.
    pub(super) inspect: fn(&BTreeMap<String, Vec<u8>>) -> Inspection,
}

/// Apache Paimon.
pub(super) const PAIMON: Kind = Kind {
    name: "Paimon",
    folders: &["snapshot/", "schema/", "tag/", "consumer/"],
    has_branches: true,
    wants: paimon::wants,
    reads: |_| true,
    largest: paimon::MAX_FILE_BYTES,
    inspect: paimon::inspect,
};

/// Apache Iceberg.
pub(super) const ICEBERG: Kind = Kind {
    name: "Iceberg",
    folders: &["metadata/"],
    has_branches: false,
    wants: iceberg::wants,
    reads: |_| true,
    largest: LARGE,
    inspect: iceberg::inspect,
};

/// Apache Hudi. `.hoodie/metadata/` is a table of its own inside, and not looked into.
pub(super) const HUDI: Kind = Kind {
    name: "Hudi",
    folders: &[".hoodie/", ".hoodie/timeline/"],
    has_branches: false,
    wants: hudi::wants,
    reads: hudi::reads,
    largest: LARGE,
    inspect: hudi::inspect,
};

/// Delta Lake.
pub(super) const DELTA: Kind = Kind {
    name: "Delta",
    folders: &["_delta_log/", "_delta_log/_staged_commits/"],
    has_branches: false,
    wants: delta::wants,
    reads: delta::reads,
    largest: LARGE,
    inspect: delta::inspect,
};

/// Every format, the ones whose folders have the most telling names first.
pub(super) const ALL: [&Kind; 4] = [&DELTA, &HUDI, &PAIMON, &ICEBERG];

impl Kind {
    /// The folders of the main line, or those of a branch, that hold wanted files.
    pub(super) fn folders_of(&self, branch: Option<&str>) -> Vec<String> {
        let below = branch.map(|name| format!("{}{name}/", paimon::BRANCH_PREFIX)).unwrap_or_default();
        // Consumers of a branch are not shown.
        let folders = self.folders.iter().filter(|folder| branch.is_none() || **folder != "consumer/");
        folders.map(|folder| format!("{below}{folder}")).collect()
    }
}
