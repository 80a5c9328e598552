//! Answers, and how they go back to the gateway.

use std::collections::BTreeMap;

use lakebell_domain::ids::TraceId;
use serde::Serialize;

use crate::event::GatewayResponse;
use crate::problem::{ApiError, Code};

/// Largest answer: Lambda hands on 6 MB, and the body is escaped once more on its way.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// An answer that is no error.
#[derive(Debug)]
pub(crate) struct Answer {
    status: u16,
    body: String,
    /// Whether it is shown this once, and not kept.
    is_secret: bool,
    /// Whether it is an earlier call's.
    is_replayed: bool,
}

impl Answer {
    /// 200 with a body.
    pub(crate) fn ok(body: &impl Serialize) -> Result<Self, ApiError> {
        Self::with(200, body)
    }

    /// Another status with a body.
    pub(crate) fn with(status: u16, body: &impl Serialize) -> Result<Self, ApiError> {
        let body = lakebell_engine::store::encode(body)?;
        if body.len() > MAX_ANSWER_BYTES {
            let detail = format!("the answer would have {} bytes", body.len());
            return Err(ApiError::new(Code::AnswerTooLarge, detail).hint("ask for less with `limit`"));
        }
        Ok(Self { status, body, is_secret: false, is_replayed: false })
    }

    /// An answer that is shown once: it is neither logged nor kept.
    pub(crate) fn secret(status: u16, body: &impl Serialize) -> Result<Self, ApiError> {
        Ok(Self { is_secret: true, ..Self::with(status, body)? })
    }

    /// The answer of an earlier call, which this one repeats.
    pub(crate) const fn replayed(status: u16, body: String) -> Self {
        Self { status, body, is_secret: false, is_replayed: true }
    }

    /// The body, if it may be kept.
    pub(crate) fn to_keep(&self) -> Option<&str> {
        (!self.is_secret).then_some(self.body.as_str())
    }

    /// The HTTP status.
    pub(crate) const fn status(&self) -> u16 {
        self.status
    }

    /// Whether it is an earlier call's.
    pub(crate) const fn is_replayed(&self) -> bool {
        self.is_replayed
    }

    /// 200 with a document that is there already.
    pub(crate) fn document(text: &str) -> Self {
        Self { status: 200, body: text.to_owned(), is_secret: false, is_replayed: false }
    }

    /// 204.
    pub(crate) const fn empty() -> Self {
        Self { status: 204, body: String::new(), is_secret: false, is_replayed: false }
    }
}

/// What goes back to the gateway.
pub(crate) fn response(answer: Result<Answer, ApiError>, trace: Option<&TraceId>) -> GatewayResponse {
    let mut headers = BTreeMap::from([("cache-control", "no-store".to_owned())]);
    if let Some(trace) = trace {
        headers.insert("x-lakebell-trace-id", trace.to_string());
    }
    let (status_code, body) = match answer {
        Ok(answer) => {
            if answer.is_replayed {
                headers.insert("idempotency-replayed", "true".to_owned());
            }
            if !answer.body.is_empty() {
                headers.insert("content-type", "application/json".to_owned());
            }
            (answer.status, answer.body)
        }
        Err(error) => {
            headers.extend(error.headers());
            (error.code().status(), error.body(trace.map_or("", TraceId::as_str)))
        }
    };
    GatewayResponse { status_code, headers, body, is_base64_encoded: false }
}
