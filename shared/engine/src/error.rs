//! What can go wrong in a use case, and whether trying again can help.

use std::fmt;

/// The kinds of failure that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's input is wrong; nothing was changed.
    Invalid,
    /// What was named does not exist.
    NotFound,
    /// What was to be made exists already, or is taken.
    Conflict,
    /// Somebody else wrote first more often than is worth trying at once.
    Contention,
    /// A store, queue or service was slow, throttled or away.
    Unavailable,
    /// Access was refused.
    Denied,
    /// A recorded item or a file could not be understood.
    Damaged,
    /// A rule of the protocol would have been broken: a defect.
    Defect,
    /// The target is known to write one of its own inputs, and does not say that it may.
    SelfLoop,
}

impl ErrorKind {
    /// The code that logs, metrics and the API show; each has a page under `docs/errors/`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::NotFound => "NOT_FOUND",
            Self::Conflict => "CONFLICT",
            Self::Contention => "CONTENTION",
            Self::Unavailable => "UNAVAILABLE",
            Self::Denied => "DENIED",
            Self::Damaged => "DAMAGED",
            Self::Defect => "DEFECT",
            Self::SelfLoop => "SELF_LOOP",
        }
    }

    /// All kinds, for the check that each has its page.
    pub const ALL: [Self; 9] = [
        Self::Invalid,
        Self::NotFound,
        Self::Conflict,
        Self::Contention,
        Self::Unavailable,
        Self::Denied,
        Self::Damaged,
        Self::Defect,
        Self::SelfLoop,
    ];
}

/// A failure with its kind, whether a later try can succeed, what was being done, and its source.
///
/// `retryable` decides whether a queue message is handed back: if so it comes again, if not it is
/// counted, logged and done with.
#[derive(Debug)]
pub struct EngineError {
    kind: ErrorKind,
    retryable: bool,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl EngineError {
    /// A failure of a kind. Contention and unavailability are retryable, the rest is not.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let retryable = matches!(kind, ErrorKind::Contention | ErrorKind::Unavailable);
        Self { kind, retryable, message: message.into(), context: Vec::new(), source: None }
    }

    /// Adds what the failure was about: a field name as logs use it, and its value.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((field, value.to_string()));
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later.
    pub const fn retryable(&self) -> bool {
        self.retryable
    }

    /// What was said about this field with [`Self::with`], the first time.
    pub fn about(&self, field: &str) -> Option<&str> {
        self.context.iter().find(|(name, _)| *name == field).map(|(_, value)| value.as_str())
    }

    /// What went wrong, without context and source.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)?;
        for (field, value) in &self.context {
            write!(f, ", {field}={value}")?;
        }
        Ok(())
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

impl From<lakebell_domain::Invalid> for EngineError {
    fn from(invalid: lakebell_domain::Invalid) -> Self {
        Self::new(ErrorKind::Invalid, invalid.to_string()).with("field", invalid.field.clone()).caused_by(invalid)
    }
}
