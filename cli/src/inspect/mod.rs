//! `lakebell table inspect`: what Lakebell sees in a table, read straight from its files.

mod folder;
mod kind;
mod s3;
mod show;

use std::collections::BTreeMap;

use lakebell_domain::asset::Location;
use lakebell_formats::inspect::{Damaged, Inspection};
use lakebell_formats::paimon::BRANCH_PREFIX;

use crate::args::{InspectArgs, TableFormat};
use crate::error::CliError;
use crate::report::Report;
use kind::Kind;

/// The files that say something about a table, by their key relative to its root, and those that
/// are there and could not be read.
#[derive(Default)]
struct Files {
    contents: BTreeMap<String, Vec<u8>>,
    unreadable: Vec<Damaged>,
}

/// Inspects a folder or an S3 location.
pub(crate) async fn run(args: &InspectArgs) -> Result<Report, CliError> {
    let kinds: &[&Kind] = match args.format {
        TableFormat::Auto => &kind::ALL,
        TableFormat::Paimon => &[&kind::PAIMON],
        TableFormat::Iceberg => &[&kind::ICEBERG],
        TableFormat::Hudi => &[&kind::HUDI],
        TableFormat::Delta => &[&kind::DELTA],
    };
    for kind in kinds {
        let inspection = inspect(kind, &args.path).await?;
        if !inspection.is_empty() {
            return report(&args.path, &inspection);
        }
    }
    Err(no_table(&args.path, kinds))
}

async fn inspect(kind: &Kind, path: &str) -> Result<Inspection, CliError> {
    let files = if path.contains("://") {
        let location: Location = path.parse().map_err(|error: lakebell_domain::Invalid| {
            CliError::usage(format!("{}: {}", error.field, error.problem), error.hint)
        })?;
        s3::read(kind, &location).await?
    } else {
        folder::read(kind, path.as_ref())?
    };
    let mut inspection = (kind.inspect)(&files.contents);
    inspection.damaged.extend(files.unreadable);
    inspection.damaged.sort_by(|one, other| one.file.cmp(&other.file));
    Ok(inspection)
}

fn no_table(path: &str, kinds: &[&Kind]) -> CliError {
    let problem = match kinds {
        [kind] => format!("{path} is no {} table: it has no metadata in {}", kind.name, kind.folders.join(" or ")),
        _ => format!("{path} is no table: it has no metadata of Paimon, Iceberg, Hudi or Delta"),
    };
    CliError::failed(problem, "give the table's root, as in <warehouse>/<database>.db/<table>")
}

fn report(path: &str, inspection: &Inspection) -> Result<Report, CliError> {
    let json = serde_json::to_value(inspection)
        .map_err(|error| CliError::failed(format!("the result cannot be written: {error}"), "report this"))?;
    Ok(Report::new(show::text(path, inspection), json))
}

/// The branch that a folder below `branch/` holds.
fn branch_of(folder: &str) -> Option<&str> {
    let name = BRANCH_PREFIX.rsplit('/').next().and_then(|prefix| folder.strip_prefix(prefix));
    name.filter(|name| !name.is_empty())
}

/// Where branches are, relative to the root.
const BRANCHES: &str = "branch/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_with_metadata_are_listed() {
        assert_eq!(kind::PAIMON.folders_of(None), ["snapshot/", "schema/", "tag/", "consumer/"]);
        let of_branch = kind::PAIMON.folders_of(Some("b1"));
        assert_eq!(of_branch, ["branch/branch-b1/snapshot/", "branch/branch-b1/schema/", "branch/branch-b1/tag/"]);
        assert_eq!(branch_of("branch-b1"), Some("b1"));
        assert_eq!(branch_of("other"), None);
    }
}
