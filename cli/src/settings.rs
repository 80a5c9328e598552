//! Where the API is and who asks: options, environment, or the local deployment's description.

use std::fs;
use std::path::{Path, PathBuf};

use lakebell_domain::ids::ProjectCode;
use serde::Deserialize;

use crate::error::CliError;

/// What `cargo xtask up` writes, below the folder in which it ran.
const LOCAL: &str = ".lakebell/local.json";

/// The description of a local deployment, as far as it is needed here.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Local {
    pub(crate) api_url: String,
    pub(crate) api_token: String,
    /// The rest serves reading a table of its bucket.
    #[serde(default)]
    pub(crate) bucket: String,
    #[serde(default)]
    pub(crate) endpoint: String,
    #[serde(default)]
    pub(crate) region: String,
    #[serde(default)]
    pub(crate) access_key_id: String,
    #[serde(default)]
    pub(crate) secret_access_key: String,
}

/// Finds the description by walking up from a folder.
pub(crate) fn find_local(from: &Path) -> Result<Option<Local>, CliError> {
    let Some(path) = from.ancestors().map(|folder| folder.join(LOCAL)).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let hint = "run `cargo xtask up` again, or give --api and --token";
    let bytes = fs::read(&path)
        .map_err(|error| CliError::failed(format!("{} cannot be read: {error}", path.display()), hint))?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| CliError::failed(format!("{} is not what was expected: {error}", path.display()), hint))
}

/// The description for the current folder.
pub(crate) fn local() -> Result<Option<Local>, CliError> {
    find_local(&std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")))
}

/// Where the API is, and the token for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Access {
    /// From options or environment; what they leave open, from the local deployment. A token is
    /// never taken from it for a URL that is not its own.
    pub(crate) fn resolve(url: Option<&str>, token: Option<&str>) -> Result<Self, CliError> {
        let given = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let (url, token) = (given(url), given(token));
        if let (Some(url), Some(token)) = (&url, &token) {
            return Self::checked(url, token);
        }
        let local = local()?;
        let url = match (url, &local) {
            (Some(url), _) => url,
            (None, Some(local)) => local.api_url.clone(),
            (None, None) => {
                return Err(CliError::usage(
                    "where is the API?",
                    "give --api URL, set LAKEBELL_API_URL, or run `cargo xtask up` for a local one",
                ));
            }
        };
        let of_local = local.filter(|local| local.api_url.trim_end_matches('/') == url.trim_end_matches('/'));
        match token.or_else(|| of_local.map(|local| local.api_token)) {
            Some(token) => Self::checked(&url, &token),
            None => {
                Err(CliError::usage(format!("there is no token for {url}"), "give --token T or set LAKEBELL_API_TOKEN"))
            }
        }
    }

    fn checked(url: &str, token: &str) -> Result<Self, CliError> {
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err(CliError::usage(
                format!("`{url}` is no http or https URL"),
                "write it as in https://abc.execute-api.eu-central-1.amazonaws.com/v1",
            ));
        }
        Ok(Self { url: url.trim_end_matches('/').to_owned(), token: token.to_owned() })
    }
}

/// The project, which most commands need.
pub(crate) fn project(given: Option<ProjectCode>) -> Result<ProjectCode, CliError> {
    given.ok_or_else(|| {
        CliError::usage(
            "which project?",
            "give --project CODE or set LAKEBELL_PROJECT; it is the code that DolphinScheduler shows",
        )
    })
}
