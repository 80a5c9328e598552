//! A copy of the tree with every fault in it, each behind its number.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::table::Mutant;
use crate::failure::{During, Failure, Outcome};
use crate::workspace::Workspace;

/// The environment variable that names the fault that is on.
pub(super) const VARIABLE: &str = "LAKEBELL_MUTANT";
/// The crate of the simulation; what it is built from follows from the manifests.
const CRATE: &str = "testkit";
/// Where the question is answered.
const SWITCH: &str = "shared/domain/src/mutants.rs";

/// The edited files of a tree.
pub(super) struct Files {
    root: PathBuf,
    edited: BTreeMap<String, String>,
}

impl Files {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), edited: BTreeMap::new() }
    }

    fn text(&mut self, file: &str) -> Outcome<&mut String> {
        if !self.edited.contains_key(file) {
            let path = self.root.join(file);
            let text = fs::read_to_string(&path).during(format!("read {}", path.display()))?;
            self.edited.insert(file.to_owned(), text);
        }
        self.edited.get_mut(file).ok_or_else(|| Failure::new(format!("{file} is gone")))
    }

    /// Makes the edits of one fault. What is to be replaced must be there exactly once.
    pub(super) fn apply(&mut self, number: usize, mutant: &Mutant) -> Outcome {
        for edit in &mutant.edits {
            let name = &mutant.name;
            let text = self.text(&edit.file)?;
            let count = text.matches(&edit.find).count();
            if count != 1 {
                let found = format!("mutant {name} finds its place {count} times in {}", edit.file);
                return Err(Failure::new(format!("{found}; mend xtask/mutants:\n{}", edit.find)));
            }
            let place = if edit.file.starts_with("shared/domain/") { "crate" } else { "lakebell_domain" };
            let put = edit.put.replace("{on}", &format!("{place}::mutants::on({number})"));
            *text = text.replacen(&edit.find, &put, 1);
        }
        Ok(())
    }
}

/// Copies what the simulation is built from and makes the edits. Returns the copy's folder.
pub(super) fn make(workspace: &Workspace, mutants: &[Mutant]) -> Outcome<PathBuf> {
    let tree = workspace.target("mutants/tree");
    let root = workspace.path("");
    let mut files = Files::new(&root);
    for (number, mutant) in (1..).zip(mutants) {
        files.apply(number, mutant)?;
    }
    files.text("shared/domain/src/lib.rs")?.push_str("\n#[allow(missing_docs)]\npub mod mutants;\n");
    let crates = crates(&root)?;
    for folder in &crates {
        copy_folder(&root, &tree, Path::new(folder), &files.edited)?;
    }
    put(&tree.join(SWITCH), &switch())?;
    let manifest = fs::read_to_string(root.join("Cargo.toml")).during("read Cargo.toml")?;
    put(&tree.join("Cargo.toml"), &only_crates(&manifest, &crates))?;
    let lock = fs::read_to_string(root.join("Cargo.lock")).during("read Cargo.lock")?;
    put(&tree.join("Cargo.lock"), &lock)?;
    Ok(tree)
}

/// The folders of the simulation's crate and of all crates of the workspace that it is built from.
fn crates(root: &Path) -> Outcome<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![CRATE.to_owned()];
    while let Some(name) = waiting.pop() {
        let folder = format!("shared/{name}");
        if found.contains(&folder) || !root.join(&folder).is_dir() {
            continue;
        }
        let manifest = root.join(&folder).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).during(format!("read {}", manifest.display()))?;
        let named = text.lines().filter_map(|line| line.strip_prefix("lakebell-"));
        waiting.extend(named.filter_map(|line| line.split(['.', ' ']).next()).map(str::to_owned));
        found.insert(folder);
    }
    Ok(found)
}

/// The workspace without the crates that the simulation does not need.
fn only_crates(manifest: &str, crates: &BTreeSet<String>) -> String {
    let members: Vec<String> = crates.iter().map(|member| format!("{member:?}")).collect();
    let mut lines = Vec::new();
    let mut is_in_members = false;
    for line in manifest.lines() {
        if line.starts_with("members = [") {
            lines.push(format!("members = [{}]", members.join(", ")));
            is_in_members = !line.contains(']');
        } else if is_in_members {
            is_in_members = !line.contains(']');
        } else if !line.starts_with("default-members") {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

fn switch() -> String {
    format!(
        "use std::sync::OnceLock;\n\nstatic ON: OnceLock<usize> = OnceLock::new();\n\n\
         pub fn on(number: usize) -> bool {{\n    *ON.get_or_init(|| {{\n        \
         std::env::var({VARIABLE:?}).ok().and_then(|text| text.parse().ok()).unwrap_or(0)\n    }}) == number\n}}\n"
    )
}

fn copy_folder(root: &Path, tree: &Path, folder: &Path, edited: &BTreeMap<String, String>) -> Outcome {
    let entries = fs::read_dir(root.join(folder)).during(format!("read {}", folder.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let inside = folder.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(root, tree, &inside, edited)?;
            continue;
        }
        let text = match edited.get(&*inside.to_string_lossy()) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(entry.path()).during(format!("read {}", inside.display()))?,
        };
        put_bytes(&tree.join(inside), &text)?;
    }
    Ok(())
}

fn put(path: &Path, text: &str) -> Outcome {
    put_bytes(path, text.as_bytes())
}

/// Writes a file unless it is so already, so that nothing is built anew without need.
fn put_bytes(path: &Path, bytes: &[u8]) -> Outcome {
    if fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).during(format!("make {}", folder.display()))?;
    }
    fs::write(path, bytes).during(format!("write {}", path.display()))
}
