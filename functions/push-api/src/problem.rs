//! Errors as callers see them: `application/problem+json` (RFC 9457).

use lakebell_domain::Invalid;
use lakebell_engine::{EngineError, ErrorKind};
use serde::Serialize;

/// Where the page of each code is.
const PAGES: &str = "https://lakebell.dev/errors/";
/// Longest `detail` and `hint`: what was wrong is quoted, but not at any length.
const MAX_TEXT_CHARS: usize = 600;
/// Longest `field`: it may be a name that the caller made up, and goes into the log.
const MAX_FIELD_CHARS: usize = 200;

/// The code of an error; each has a page under `docs/errors/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// What a use case ended with.
    Engine(ErrorKind),
    /// No token, or not the right one.
    Unauthenticated,
    /// The token is good and does not have the right that the route needs.
    Forbidden,
    /// There is nothing at this path.
    NoSuchRoute,
    /// The path is there and takes other methods.
    MethodNotAllowed,
    /// A body or a batch over its limit.
    TooLarge,
    /// The token has sent more requests than its rate.
    RateLimited,
    /// The key of a call was used for another one.
    IdempotencyKeyReused,
    /// The same call under the same key is running.
    IdempotencyRunning,
    /// The call under this key was carried out, and its answer was not kept.
    IdempotencyAnswerGone,
    /// What was to be registered is another project's, whose owner was asked for a grant.
    GrantRequested,
    /// An event about a table that is not registered; stands in the event's own answer.
    UnknownAsset,
    /// The answer would be over the limit of a gateway.
    AnswerTooLarge,
    /// The body is in a form that the route does not take.
    UnsupportedMediaType,
}

impl Code {
    /// The codes that only the API has, for the check that each has its page.
    pub const OWN: [Self; 13] = [
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NoSuchRoute,
        Self::MethodNotAllowed,
        Self::TooLarge,
        Self::RateLimited,
        Self::IdempotencyKeyReused,
        Self::IdempotencyRunning,
        Self::IdempotencyAnswerGone,
        Self::GrantRequested,
        Self::UnknownAsset,
        Self::AnswerTooLarge,
        Self::UnsupportedMediaType,
    ];

    /// The code on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine(kind) => kind.code(),
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::RateLimited => "RATE_LIMITED",
            Self::IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::IdempotencyRunning => "IDEMPOTENCY_RUNNING",
            Self::IdempotencyAnswerGone => "IDEMPOTENCY_ANSWER_GONE",
            Self::GrantRequested => "GRANT_REQUESTED",
            Self::NoSuchRoute => "NO_SUCH_ROUTE",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::TooLarge => "TOO_LARGE",
            Self::UnknownAsset => "UNKNOWN_ASSET",
            Self::AnswerTooLarge => "ANSWER_TOO_LARGE",
            Self::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
        }
    }

    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Engine(ErrorKind::Invalid | ErrorKind::SelfLoop) | Self::AnswerTooLarge => 400,
            Self::Unauthenticated => 401,
            Self::Engine(ErrorKind::Denied) | Self::Forbidden => 403,
            Self::Engine(ErrorKind::NotFound) | Self::NoSuchRoute | Self::UnknownAsset => 404,
            Self::MethodNotAllowed => 405,
            Self::Engine(ErrorKind::Conflict)
            | Self::IdempotencyRunning
            | Self::IdempotencyAnswerGone
            | Self::GrantRequested => 409,
            Self::IdempotencyKeyReused => 422,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            // Not 429: several writers' clients repeat a 503 and drop what was answered with a 429.
            Self::Engine(ErrorKind::Contention | ErrorKind::Unavailable) | Self::RateLimited => 503,
            Self::Engine(_) => 500,
        }
    }

    /// What the status means, in a few words that never change.
    const fn title(self) -> &'static str {
        match self {
            Self::Engine(ErrorKind::Invalid) => "The input is wrong",
            Self::Engine(ErrorKind::NotFound) => "It does not exist",
            Self::Engine(ErrorKind::Conflict) => "It exists already, or is taken or in use",
            Self::Engine(ErrorKind::Contention) => "Somebody else wrote first too often",
            Self::Engine(ErrorKind::Unavailable) => "Something that Lakebell needs is away",
            Self::Engine(ErrorKind::Denied) => "Lakebell was refused access",
            Self::Engine(ErrorKind::Damaged) => "Something recorded cannot be understood",
            Self::Engine(ErrorKind::SelfLoop) => "The target writes what starts it",
            Self::Engine(_) => "A defect of Lakebell",
            Self::Unauthenticated => "Not authenticated",
            Self::Forbidden => "The token does not allow this",
            Self::RateLimited => "Too many requests",
            Self::IdempotencyKeyReused => "The key was used for another call",
            Self::IdempotencyRunning => "The same call is running",
            Self::IdempotencyAnswerGone => "The answer was not kept",
            Self::GrantRequested => "It is taken; its owner was asked for a grant",
            Self::NoSuchRoute => "No such route",
            Self::MethodNotAllowed => "The route takes another method",
            Self::TooLarge => "Too large",
            Self::UnknownAsset => "The table is not registered",
            Self::AnswerTooLarge => "The answer would be too large",
            Self::UnsupportedMediaType => "The body is in a form that is not taken",
        }
    }
}

/// An error on its way to the caller.
#[derive(Debug)]
pub struct ApiError {
    code: Code,
    said: Box<Said>,
}

/// What an error says. Boxed, because it travels in the result of most functions here.
#[derive(Debug, Default)]
struct Said {
    detail: String,
    field: Option<String>,
    hint: Option<String>,
    allow: Option<String>,
    limit: Option<u64>,
    cause: Option<EngineError>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Problem<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    trace_id: &'a str,
}

impl ApiError {
    /// An error of a code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, said: Box::new(Said { detail: bounded(detail.into(), MAX_TEXT_CHARS), ..Said::default() }) }
    }

    /// An input that is wrong: where, what, and what would be right.
    pub fn invalid(field: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::from(Invalid::new(field, problem, hint))
    }

    /// A body or a batch over its limit.
    pub fn too_large(detail: impl Into<String>, limit: usize) -> Self {
        Self::new(Code::TooLarge, detail).hint("send it in smaller parts").limit(limit as u64)
    }

    /// What was named does not exist.
    pub fn not_found(field: &str, detail: impl Into<String>) -> Self {
        Self::new(Code::Engine(ErrorKind::NotFound), detail).at(field)
    }

    /// Adds where; an empty field is none.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.said.field = Some(bounded(field.into(), MAX_FIELD_CHARS)).filter(|field| !field.is_empty());
        self
    }

    /// Adds what would be right.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.said.hint = Some(bounded(hint.into(), MAX_TEXT_CHARS));
        self
    }

    /// Adds the limit that was passed, as a number in the unit that the text names.
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Self {
        self.said.limit = Some(limit);
        self
    }

    /// Adds the methods that the path takes.
    #[must_use]
    pub fn allow(mut self, methods: String) -> Self {
        self.said.allow = Some(methods);
        self
    }

    /// The code.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// What was wrong.
    pub fn detail(&self) -> &str {
        &self.said.detail
    }

    /// Where, if it is about one field.
    pub fn field(&self) -> Option<&str> {
        self.said.field.as_deref()
    }

    /// What would be right, if it can be said.
    pub fn hint_text(&self) -> Option<&str> {
        self.said.hint.as_deref()
    }

    /// What it came from, for the log.
    pub fn cause(&self) -> Option<&EngineError> {
        self.said.cause.as_ref()
    }

    /// Whether the same request may succeed later.
    pub const fn is_retryable(&self) -> bool {
        self.code.status() == 503
    }

    /// The headers that go with it.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("content-type", "application/problem+json".to_owned())];
        if self.is_retryable() || self.code == Code::IdempotencyRunning {
            headers.push(("retry-after", "2".to_owned()));
        }
        if self.code == Code::Unauthenticated {
            headers.push(("www-authenticate", "Bearer".to_owned()));
        }
        if let Some(methods) = &self.said.allow {
            headers.push(("allow", methods.clone()));
        }
        headers
    }

    /// The body.
    pub fn body(&self, trace: &str) -> String {
        let problem = Problem {
            r#type: format!("{PAGES}{}", self.code.as_str()),
            title: self.code.title(),
            status: self.code.status(),
            code: self.code.as_str(),
            detail: &self.said.detail,
            field: self.said.field.as_deref(),
            hint: self.said.hint.as_deref(),
            limit: self.said.limit,
            trace_id: trace,
        };
        serde_json::to_string(&problem).unwrap_or_default()
    }
}

fn bounded(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::new(Code::Engine(ErrorKind::Invalid), invalid.problem).hint(invalid.hint).at(invalid.field)
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Invalid>());
        let mut problem = match (error.kind(), source) {
            (ErrorKind::Invalid, Some(invalid)) => Self::from(invalid.clone()),
            // What a defect or a damaged item was about goes to the log, not to the caller.
            (kind, _) => match error.message().split_once("; ") {
                Some((detail, hint)) => Self::new(Code::Engine(kind), detail).hint(hint),
                None => Self::new(Code::Engine(kind), error.message()),
            },
        };
        if problem.said.field.is_none() && problem.code.status() < 500 {
            let field = error.about("at").or_else(|| error.about("field"));
            problem = problem.at(field.unwrap_or_default());
        }
        problem.said.cause = Some(error);
        problem
    }
}
