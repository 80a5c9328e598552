//! The object that every answer is wrapped in, and the codes that are used here.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An application error: HTTP 200 with a code.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) code: i64,
    pub(crate) msg: String,
}

impl Refused {
    pub(crate) fn new(code: i64, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into() }
    }

    /// What the real server makes of an error that is plain text.
    pub(crate) fn text(msg: impl std::fmt::Display) -> Self {
        Self::new(10000, format!("Internal Server Error: {msg}"))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        envelope(StatusCode::OK, self.code, &self.msg, &Value::Null)
    }
}

/// The result of a handler.
pub(crate) type Answer = Result<Response, Refused>;

/// Success with data.
pub(crate) fn ok(data: &Value) -> Response {
    envelope(StatusCode::OK, 0, "success", data)
}

/// Success of a call that made something.
pub(crate) fn created(data: &Value) -> Response {
    envelope(StatusCode::CREATED, 0, "success", data)
}

fn envelope(status: StatusCode, code: i64, msg: &str, data: &Value) -> Response {
    let body = json!({"code": code, "msg": msg, "data": data, "success": code == 0, "failed": code != 0});
    (status, Json(body)).into_response()
}

/// A number as Java's message format groups it.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// One page of rows as the real server wraps it.
pub(crate) fn paged(rows: Vec<Value>, page: (usize, usize)) -> Value {
    let (page_no, page_size) = page;
    let total = rows.len();
    let rows: Vec<Value> = rows.into_iter().skip((page_no - 1) * page_size).take(page_size).collect();
    json!({
        "totalList": rows,
        "total": total,
        "totalPage": total.div_ceil(page_size),
        "pageSize": page_size,
        "currentPage": page_no,
        "pageNo": null,
    })
}

/// A time as answers show it: UTC, without a zone.
pub(crate) fn shown(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!(grouped(9_752_686_452_032), "9,752,686,452,032");
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(-1000), "-1,000");
    }
}
