//! Where things are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{During, Failure, Outcome};
use crate::process;

/// The checkout and its build folder.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Ask cargo.
    pub(crate) fn find() -> Outcome<Self> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: Value = serde_json::from_str(&process::output(&mut command)?).during("read cargo's metadata")?;
        let path = |field: &str| {
            metadata[field].as_str().map(PathBuf::from).ok_or_else(|| Failure::new(format!("cargo names no {field}")))
        };
        Ok(Self { root: path("workspace_root")?, target: path("target_directory")? })
    }

    /// A path in the checkout.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// A path under the build folder.
    pub(crate) fn target(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.target.join(relative)
    }

    /// A path under `.lakebell/`, the state of this checkout's local runs.
    pub(crate) fn state(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(".lakebell").join(relative)
    }

    /// A path as the person sees it: relative to the checkout where it is inside.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// Cargo, to be run in the checkout.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }
}

/// The cargo that runs this command, so that a toolchain override holds.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
