//! The table of mutants: plain text, because its values are source code.
//!
//! A mutant begins with `== name`. Then come `paragraph`, `what` and, where it can do no harm, `harmless`; then `file` and
//! pairs of `find` and `put`. `{on}` in what is put becomes the question whether the mutant is on.

use std::fs;
use std::path::Path;

use crate::failure::{During, Failure, Outcome};

/// One fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The paragraph of the protocol that it breaks.
    pub(crate) paragraph: String,
    /// What it does, in words.
    pub(crate) what: String,
    /// Why no rule can break, where another mechanism does the same.
    pub(crate) harmless: Option<String>,
    pub(crate) edits: Vec<Edit>,
}

/// One place of the source that is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) file: String,
    pub(crate) find: String,
    pub(crate) put: String,
}

/// Which block of lines is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Find,
    Put,
}

/// Every mutant of a folder, by the names of its files.
pub(crate) fn read(folder: &Path) -> Outcome<Vec<Mutant>> {
    let entries = fs::read_dir(folder).during(format!("read {}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.sort();
    let mut mutants = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).during(format!("read {}", file.display()))?;
        mutants.extend(parse(&text).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?);
    }
    Ok(mutants)
}

fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut file = String::new();
    let mut block = Block::None;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(name) = line.strip_prefix("== ") {
            mutants.push(Mutant { name: name.to_owned(), ..Mutant::default() });
            block = Block::None;
            continue;
        }
        let Some(mutant) = mutants.last_mut() else { return Err(format!("line {number} belongs to no mutant")) };
        match line.split_once(": ") {
            Some(("paragraph", value)) if block == Block::None => value.clone_into(&mut mutant.paragraph),
            Some(("what", value)) if block == Block::None => value.clone_into(&mut mutant.what),
            Some(("harmless", value)) if block == Block::None => mutant.harmless = Some(value.to_owned()),
            Some(("file", value)) => {
                value.clone_into(&mut file);
                block = Block::None;
            }
            _ if line == "find:" => {
                mutant.edits.push(Edit { file: file.clone(), ..Edit::default() });
                block = Block::Find;
            }
            _ if line == "put:" => block = Block::Put,
            _ => {
                let Some(edit) = mutant.edits.last_mut() else {
                    return Err(format!("line {number} is not understood"));
                };
                let text = if block == Block::Put { &mut edit.put } else { &mut edit.find };
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(line);
            }
        }
    }
    Ok(mutants)
}
