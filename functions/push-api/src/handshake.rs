//! How a sender of `CloudEvents` asks whether it may send.
//!
//! The specification of web hooks for `CloudEvents` has senders ask with OPTIONS, and names the headers
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md>, section 4). The answer
//! is the same for every path and without a token, so that it tells nothing about what exists. What is
//! sent afterwards still needs its token.

use std::collections::BTreeMap;

use crate::auth::Rate;
use crate::event::{GatewayResponse, Request};

/// Longest name of a sender.
const MAX_ORIGIN_BYTES: usize = 255;

/// The answer to a sender that asks; `None` for every other request.
pub(crate) fn answer(request: &Request, rate: Rate) -> Option<GatewayResponse> {
    let origin = request.header("webhook-request-origin").filter(|_| request.method == "OPTIONS")?;
    // It is a DNS name, and stands in the answer.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:/*".contains(&byte);
    if origin.is_empty() || origin.len() > MAX_ORIGIN_BYTES || !origin.bytes().all(is_name) {
        return None;
    }
    let headers = BTreeMap::from([
        ("allow", "POST".to_owned()),
        ("cache-control", "no-store".to_owned()),
        ("webhook-allowed-origin", origin.to_owned()),
        // Requests in a minute.
        ("webhook-allowed-rate", rate.per_second.saturating_mul(60).to_string()),
    ]);
    Some(GatewayResponse { status_code: 200, headers, body: String::new(), is_base64_encoded: false })
}
