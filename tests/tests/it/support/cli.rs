//! The command line, as a person calls it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use super::Scene;

/// Names the binary; without it, the one beside the tests.
const BINARY: &str = "LAKEBELL_CLI";

/// The command line with the deployment and the project of a test.
pub(crate) struct Cli<'a> {
    scene: &'a Scene,
    binary: PathBuf,
    /// A folder of the test's own.
    pub(crate) folder: PathBuf,
}

/// What a call left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os(BINARY).filter(|path| !path.is_empty()) {
        return path.into();
    }
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("lakebell");
    assert!(path.exists(), "{} is missing: cargo build -p lakebell-cli, or name it in {BINARY}", path.display());
    path
}

impl<'a> Cli<'a> {
    pub(crate) fn new(scene: &'a Scene) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&scene.name);
        std::fs::create_dir_all(&folder).unwrap();
        Self { scene, binary: binary(), folder }
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Run {
        let local = &self.scene.local;
        let output = Command::new(&self.binary)
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("LAKEBELL_API_URL", &local.api_url)
            .env("LAKEBELL_API_TOKEN", &local.api_token)
            .env("LAKEBELL_PROJECT", self.scene.project.to_string())
            .env("AWS_ENDPOINT_URL", &local.endpoint)
            .env("AWS_REGION", &local.region)
            .env("AWS_ACCESS_KEY_ID", &local.access_key_id)
            .env("AWS_SECRET_ACCESS_KEY", &local.secret_access_key)
            .output()
            .await
            .unwrap();
        Run {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Drop for Cli<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
