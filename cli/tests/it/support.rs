//! Running the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What a run of the binary left.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
        self
    }
}

/// The binary in a folder, with nothing of Lakebell or AWS in its environment but what is given.
pub(crate) fn lakebell_in(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_lakebell"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    Run {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder of this test's own, empty at first.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The project's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Compares a text with a file under `tests/golden`; writes it when `UPDATE_GOLDEN` is set.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{} differs; UPDATE_GOLDEN=1 writes it anew", path.display());
}
