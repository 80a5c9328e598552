//! The deployment under test.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// Names the file that describes it.
pub(crate) const LOCAL: &str = "LAKEBELL_LOCAL";

/// A queue.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Queue {
    pub(crate) url: String,
}

/// The description that `cargo xtask up` writes, as far as the tests need it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Local {
    pub(crate) endpoint: String,
    pub(crate) region: String,
    pub(crate) access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) api_url: String,
    pub(crate) api_token: String,
    pub(crate) bucket: String,
    pub(crate) table: String,
    pub(crate) queues: BTreeMap<String, Queue>,
    pub(crate) functions: BTreeMap<String, String>,
    pub(crate) connection_secret: String,
    pub(crate) scheduler_url: String,
    pub(crate) scheduler_token: String,
    pub(crate) scheduler_is_standin: bool,
}

/// Where the description is, if there is a deployment.
pub(crate) fn description() -> Option<PathBuf> {
    std::env::var_os(LOCAL).filter(|path| !path.is_empty()).map(PathBuf::from)
}

impl Local {
    /// The deployment; `None`, and a line that says so, where none is named.
    pub(crate) fn open() -> Option<Self> {
        let Some(path) = description() else {
            println!("skipped: no local AWS (cargo xtask up)");
            return None;
        };
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{LOCAL}={}: {error}", path.display()));
        Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{LOCAL}={}: {error}", path.display())))
    }
}
