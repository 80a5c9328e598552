//! `lakebell table inspect`: what Lakebell sees in a table, read straight from its files.

mod folder;
mod s3;
mod show;

use std::collections::BTreeMap;

use lakebell_domain::asset::Location;
use lakebell_formats::inspect::{Damaged, Inspection};
use lakebell_formats::paimon::{self, BRANCH_PREFIX, MAX_FILE_BYTES};

use crate::args::{InspectArgs, TableFormat};
use crate::error::CliError;
use crate::report::Report;

/// The files that say something about a table, by their key relative to its root, and those that
/// are there and could not be read.
#[derive(Default)]
struct Files {
    contents: BTreeMap<String, Vec<u8>>,
    unreadable: Vec<Damaged>,
}

/// Inspects a folder or an S3 location.
pub(crate) async fn run(args: &InspectArgs) -> Result<Report, CliError> {
    let TableFormat::Paimon = args.format;
    let files = if args.path.contains("://") {
        let location: Location = args.path.parse().map_err(|error: lakebell_domain::Invalid| {
            CliError::usage(format!("{}: {}", error.field, error.problem), error.hint)
        })?;
        s3::read(&location).await?
    } else {
        folder::read(args.path.as_ref())?
    };
    let mut inspection = paimon::inspect(&files.contents);
    inspection.damaged.extend(files.unreadable);
    inspection.damaged.sort_by(|one, other| one.file.cmp(&other.file));
    if inspection.is_empty() {
        return Err(no_table(&args.path));
    }
    report(&args.path, &inspection)
}

fn no_table(path: &str) -> CliError {
    CliError::failed(
        format!("{path} is no Paimon table: it has no file in snapshot/ or schema/"),
        "give the table's root, as in <warehouse>/<database>.db/<table>",
    )
}

fn report(path: &str, inspection: &Inspection) -> Result<Report, CliError> {
    let json = serde_json::to_value(inspection)
        .map_err(|error| CliError::failed(format!("the result cannot be written: {error}"), "report this"))?;
    Ok(Report::new(show::text(path, inspection), json))
}

/// The folders of the main line and of branches that hold wanted files, relative to the root.
fn folders_of(branch: Option<&str>) -> Vec<String> {
    let mut folders = vec![paimon::snapshot_prefix(branch), paimon::schema_prefix(branch), paimon::tag_prefix(branch)];
    if branch.is_none() {
        folders.push(paimon::consumer_prefix(None));
    }
    // A prefix may go on into the file name, as in `snapshot/snapshot-`.
    folders.iter().filter_map(|prefix| prefix.rsplit_once('/').map(|(folder, _)| format!("{folder}/"))).collect()
}

/// The branch that a folder below `branch/` holds.
fn branch_of(folder: &str) -> Option<&str> {
    let name = BRANCH_PREFIX.rsplit('/').next().and_then(|prefix| folder.strip_prefix(prefix));
    name.filter(|name| !name.is_empty())
}

/// Where branches are, relative to the root.
const BRANCHES: &str = "branch/";

/// One byte more than is parsed, so that a file that is too large is known to be.
const READ_AT_MOST: usize = MAX_FILE_BYTES + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_with_metadata_are_listed() {
        assert_eq!(folders_of(None), ["snapshot/", "schema/", "tag/", "consumer/"]);
        let of_branch = folders_of(Some("b1"));
        assert_eq!(of_branch, ["branch/branch-b1/snapshot/", "branch/branch-b1/schema/", "branch/branch-b1/tag/"]);
        assert_eq!(branch_of("branch-b1"), Some("b1"));
        assert_eq!(branch_of("other"), None);
    }
}
