//! Python virtual environments with pinned packages.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{During, Failure, Outcome};
use crate::process;
use crate::workspace::Workspace;

/// The oldest Python that the emulator runs on.
const OLDEST: (u32, u32) = (3, 10);

/// A virtual environment under `.lakebell/`.
#[derive(Debug, Clone)]
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// The environment `name` with what `requirements` (a path in the checkout) pins; made or renewed if need be.
    pub(crate) fn ensure(workspace: &Workspace, name: &str, requirements: &str) -> Outcome<Self> {
        let venv = Self { folder: workspace.state(name) };
        let source = workspace.path(requirements);
        let pinned = fs::read_to_string(&source).during(format!("read {}", source.display()))?;
        let parent = workspace.state("");
        fs::create_dir_all(&parent).during(format!("make {}", parent.display()))?;
        // Two commands at once must not build the same environment.
        let lock = File::create(workspace.state(format!("{name}.lock"))).during("make a lock file")?;
        lock.lock().during("take the lock of the Python environment")?;

        let stamp = venv.folder.join("installed.txt");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
            return Ok(venv);
        }
        if venv.folder.exists() {
            fs::remove_dir_all(&venv.folder).during(format!("remove {}", venv.folder.display()))?;
        }
        process::output(Command::new(python()?).args(["-m", "venv"]).arg(&venv.folder))?;
        let mut pip = Command::new(venv.program("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&source);
        process::output(&mut pip)?;
        fs::write(&stamp, pinned).during(format!("write {}", stamp.display()))?;
        Ok(venv)
    }

    /// A program of the environment.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// A command that runs a script with the environment's Python.
    pub(crate) fn script(&self, script: &Path) -> Command {
        let mut command = Command::new(self.program("python"));
        command.arg(script);
        command
    }
}

/// A Python that is new enough: `$PYTHON`, or the first of the usual names.
pub(crate) fn python() -> Outcome<String> {
    let chosen = env::var("PYTHON").ok();
    let names = ["python3.11", "python3", "python3.12", "python3.13", "python3.10"];
    let candidates = chosen.as_deref().map_or(names.to_vec(), |python| vec![python]);
    let suitable = |name: &&str| {
        let question = "import sys, venv; print(*sys.version_info[:2])";
        let Ok(answer) = process::output(Command::new(name).args(["-c", question])) else { return false };
        let mut parts = answer.split_whitespace().map_while(|part| part.parse().ok());
        matches!((parts.next(), parts.next()), (Some(major), Some(minor)) if (major, minor) >= OLDEST)
    };
    candidates.iter().find(|name| suitable(name)).map(ToString::to_string).ok_or_else(|| {
        Failure::new(format!(
            "no Python {}.{} or newer found (tried {}); install one, or name it in PYTHON",
            OLDEST.0,
            OLDEST.1,
            candidates.join(", ")
        ))
    })
}
