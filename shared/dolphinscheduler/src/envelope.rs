//! What came back from a call, before it is judged.
//!
//! Source: `Result.java`, `ApiExceptionHandler.java` and `LoginHandlerInterceptor.java` of
//! DolphinScheduler: answers are `{code, msg, data}` with HTTP 200 (201 for what was made), errors
//! too; 401 and 429 have empty bodies; an unknown path is answered with a web page.

use lakebell_engine::ports::scheduler::Refusal;
use serde_json::Value;

/// Largest text kept of what a scheduler said, in characters.
const DETAIL_LIMIT: usize = 300;

/// How far a call got that has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// No connection was made, so nothing was sent.
    NotSent,
    /// It may have arrived: time-out, reset, or an answer cut short.
    MaybeSent,
    /// It was not even tried, because the connection's circuit is open.
    Withheld,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A JSON object with an integer `code`, and an HTTP status below 300.
    Envelope {
        /// DolphinScheduler's code, 0 for success.
        code: i64,
        /// Its text.
        msg: String,
        /// Its data.
        data: Value,
    },
    /// Any other HTTP answer.
    Http {
        /// The HTTP status.
        status: u16,
        /// What kind of body it had, for people.
        detail: String,
    },
    /// No usable answer.
    None {
        /// How far the call got.
        transport: Transport,
        /// What happened, without the URL.
        detail: String,
    },
}

impl Answer {
    /// Reads an HTTP answer.
    pub fn read(status: u16, body: &[u8]) -> Self {
        if !(200..300).contains(&status) {
            return Self::Http { status, detail: describe(body) };
        }
        let Ok(Value::Object(parsed)) = serde_json::from_slice::<Value>(body) else {
            return Self::Http { status, detail: describe(body) };
        };
        let Some(code) = parsed.get("code").and_then(Value::as_i64) else {
            return Self::Http { status, detail: "a JSON object without a code".to_owned() };
        };
        let msg = parsed.get("msg").and_then(Value::as_str).unwrap_or_default().to_owned();
        let data = parsed.get("data").cloned().unwrap_or(Value::Null);
        Self::Envelope { code, msg, data }
    }

    /// The code that a refusal carries: DolphinScheduler's own, or `HTTP_401`, `TRANSPORT_ERROR` and
    /// the like.
    pub fn code_text(&self) -> String {
        match self {
            Self::Envelope { code, .. } => code.to_string(),
            Self::Http { status: 200..300, .. } => "HTTP_2xx_NOT_JSON".to_owned(),
            Self::Http { status: 500.., .. } => "HTTP_5xx".to_owned(),
            Self::Http { status, .. } => format!("HTTP_{status}"),
            Self::None { transport: Transport::Withheld, .. } => Refusal::CIRCUIT_OPEN.to_owned(),
            Self::None { .. } => "TRANSPORT_ERROR".to_owned(),
        }
    }

    /// What it said, for people, shortened to 300 characters.
    pub fn detail(&self) -> String {
        let text = match self {
            Self::Envelope { msg, .. } if msg.is_empty() => "no text was given".to_owned(),
            Self::Envelope { msg, .. } => msg.clone(),
            Self::Http { status: 401, .. } => {
                "the token is missing, unknown or expired, or its user is disabled: put a valid token into the connection's secret"
                    .to_owned()
            }
            Self::Http { status: 429, .. } => "the scheduler limits the rate of calls".to_owned(),
            Self::Http { status, detail } if *status < 500 => {
                format!("HTTP {status} with {detail}: check the connection's URL (it ends in /dolphinscheduler) and version")
            }
            Self::Http { status, detail } => format!("HTTP {status} with {detail}"),
            Self::None { detail, .. } => detail.clone(),
        };
        shorten(&text)
    }

    /// Whether the answer came from a path that this scheduler does not have (another version, or a
    /// wrong base path).
    pub(crate) const fn is_unknown_path(&self) -> bool {
        matches!(self, Self::Http { status: 200..400 | 404 | 405, .. })
    }
}

fn describe(body: &[u8]) -> String {
    let start = body.iter().position(|byte| !byte.is_ascii_whitespace());
    match start.map(|start| body[start]) {
        None => "an empty body".to_owned(),
        Some(b'<') => "a web page".to_owned(),
        Some(_) => "a body that is not the API's".to_owned(),
    }
}

/// Cuts a text to the length that refusals keep and takes control characters out.
pub(crate) fn shorten(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(DETAIL_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_json_object_with_a_code_is_an_envelope() {
        let read = Answer::read(200, br#"{"code":0,"msg":"success","data":[9752686452032]}"#);
        assert_eq!(read, Answer::Envelope { code: 0, msg: "success".to_owned(), data: json!([9_752_686_452_032_i64]) });
        assert!(matches!(Answer::read(201, br#"{"code":0}"#), Answer::Envelope { .. }));
        for body in ["", "<html>", "[]", "null", "{}", r#"{"code":"0"}"#, r#"{"code":0.5}"#, r#"{"code":0"#] {
            let read = Answer::read(200, body.as_bytes());
            assert_eq!(read.code_text(), "HTTP_2xx_NOT_JSON", "{body}");
            assert!(read.is_unknown_path());
        }
    }

    #[test]
    fn a_body_does_not_outweigh_an_error_status() {
        let read = Answer::read(500, br#"{"code":0,"msg":"success"}"#);
        assert_eq!(read.code_text(), "HTTP_5xx");
        assert_eq!(Answer::read(401, b"").code_text(), "HTTP_401");
    }

    #[test]
    fn details_are_short_and_one_line() {
        let msg = "x\n".repeat(400);
        let detail = Answer::Envelope { code: 1, msg, data: Value::Null }.detail();
        assert_eq!(detail.chars().count(), 300);
        assert!(!detail.contains('\n'));
    }
}
