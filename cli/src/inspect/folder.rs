//! A table in a local folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use lakebell_formats::inspect::Damaged;

use super::kind::Kind;
use super::{BRANCHES, Files, branch_of};
use crate::error::CliError;

/// Reads the wanted files of a folder.
pub(super) fn read(kind: &Kind, root: &Path) -> Result<Files, CliError> {
    let cannot = |error: &io::Error| {
        CliError::failed(
            format!("{} cannot be read: {error}", root.display()),
            "give the root folder of a table, or an s3:// URL",
        )
    };
    fs::read_dir(root).map_err(|error| cannot(&error))?;
    let mut files = Files::default();
    let mut branches = Vec::new();
    if kind.has_branches {
        branches = names(&root.join(BRANCHES)).map_err(|error| cannot(&error))?;
    }
    let lines = std::iter::once(None).chain(branches.iter().filter_map(|name| branch_of(name)).map(Some));
    for folder in lines.flat_map(|branch| kind.folders_of(branch)) {
        for name in names(&root.join(&folder)).map_err(|error| cannot(&error))? {
            let key = format!("{folder}{name}");
            let path = root.join(&key);
            if !(kind.wants)(&key) || path.is_dir() {
                continue;
            }
            if !(kind.reads)(&key) {
                files.contents.insert(key, Vec::new());
                continue;
            }
            match contents(&path, kind.largest) {
                Ok(bytes) => {
                    files.contents.insert(key, bytes);
                }
                // Removed between listing and reading: it is simply not there.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    files.unreadable.push(Damaged { file: key, problem: format!("it cannot be read: {error}") });
                }
            }
        }
    }
    Ok(files)
}

/// The names in a folder; none where there is no such folder. Names that are no UTF-8 cannot be
/// those of a table's metadata.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// One byte more than is parsed, so that a file that is too large is known to be.
fn contents(path: &Path, largest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(largest as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
