//! What a person sees when something is refused or fails.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Exit status of a command line that makes no sense as written.
pub(crate) const USAGE: u8 = 2;
/// Exit status of everything else that did not succeed.
pub(crate) const FAILED: u8 = 1;

/// A refusal of the API, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Problem {
    /// A link to the page of the code.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    pub(crate) title: String,
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace_id: Option<String>,
}

/// A place in a file, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Why a command did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line or its settings make no sense as written.
    #[error("{message}")]
    Usage { message: String, hint: String },
    /// The API said no.
    #[error("{}", if .0.detail.is_empty() { &.0.title } else { &.0.detail })]
    Refused(Box<Problem>),
    /// A declaration in a file is wrong.
    #[error("{problem}")]
    InFile { place: Place, field: String, problem: String, hint: String },
    /// Anything else.
    #[error("{message}")]
    Failed { message: String, hint: String },
}

/// The parts of an error, for people and for programs.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
}

impl CliError {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: hint.into() }
    }

    pub(crate) const fn exit_status(&self) -> u8 {
        match self {
            Self::Usage { .. } => USAGE,
            _ => FAILED,
        }
    }

    /// Whether the rest of a plan would meet the same obstacle.
    pub(crate) fn stops_everything(&self) -> bool {
        match self {
            Self::Refused(problem) => matches!(problem.status, 401 | 403 | 429 | 500..),
            _ => true,
        }
    }

    fn explained(&self) -> Explained {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        let message = self.to_string();
        match self {
            Self::Usage { hint, .. } | Self::Failed { hint, .. } => {
                Explained { message, hint: some(hint), ..Explained::default() }
            }
            Self::InFile { place, field, hint, .. } => Explained {
                message,
                at: Some(format!("{}:{}:{}", place.path.display(), place.line, place.column)),
                field: some(field),
                hint: some(hint),
                ..Explained::default()
            },
            Self::Refused(problem) => Explained {
                message,
                field: problem.field.clone(),
                hint: problem.hint.clone(),
                code: some(&problem.code),
                status: Some(problem.status),
                trace_id: problem.trace_id.clone(),
                ..Explained::default()
            },
        }
    }

    /// For programs.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "error": self.explained() })
    }

    /// For people: what was wrong, where, and what would be right.
    pub(crate) fn to_text(&self) -> String {
        let parts = self.explained();
        let mut text = parts.message;
        let rows = [
            ("at", parts.at),
            ("field", parts.field),
            ("hint", parts.hint),
            ("code", parts.code),
            ("trace", parts.trace_id),
        ];
        for (name, value) in rows {
            if let Some(value) = value {
                let _ = write!(text, "\n  {name:<6} {value}");
            }
        }
        text
    }
}
