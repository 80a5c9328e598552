//! What a command has to say, for people and for programs.

use serde_json::Value;

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Report {
    /// For people, ending in a line break.
    pub(crate) text: String,
    /// For programs.
    pub(crate) json: Value,
    /// Whether everything that was asked for was done.
    pub(crate) is_complete: bool,
}

impl Report {
    pub(crate) const fn new(text: String, json: Value) -> Self {
        Self { text, json, is_complete: true }
    }
}
