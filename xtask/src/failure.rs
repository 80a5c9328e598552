//! What went wrong, in words for the person at the terminal.

use std::fmt;

/// A command that did not do what it should. The text says what to do about it where that is known.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// The result of a step.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Says what was being done when an error came.
pub(crate) trait During<T> {
    /// `cannot <what>: <error>`
    fn during(self, what: impl fmt::Display) -> Outcome<T>;
}

impl<T, E: fmt::Display> During<T> for Result<T, E> {
    fn during(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Failure(format!("cannot {what}: {error}")))
    }
}
