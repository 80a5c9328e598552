//! What is wrong with an input, in the words of the person who wrote it.

use serde::{Deserialize, Serialize};

/// A refused input: which field, what was wrong with it and what would be right.
///
/// Nothing has been changed when a call returns one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{field}: {problem}; {hint}")]
pub struct Invalid {
    /// Path of the field, as in `groups[0].dependencies[1].asset`.
    pub field: String,
    /// What was wrong.
    pub problem: String,
    /// What would be right.
    pub hint: String,
}

impl Invalid {
    /// Names a field, its problem and what would be right instead.
    pub fn new(field: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into(), hint: hint.into() }
    }

    /// The same refusal seen from one level further out: `asset` becomes `groups[0].asset`.
    #[must_use]
    pub fn within(mut self, parent: &str) -> Self {
        self.field = if self.field.is_empty() { parent.to_owned() } else { format!("{parent}.{}", self.field) };
        self
    }
}
