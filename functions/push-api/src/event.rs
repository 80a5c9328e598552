//! The events of API Gateway, and the request that they carry.
//!
//! Written out here rather than taken from a crate of event types: of about forty fields eight
//! matter, real and emulated gateways disagree on which may be null, and an event that does not
//! parse would answer 502 with nothing in the access log.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};

use crate::problem::ApiError;

/// Largest body, in bytes after base64.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// An event of a REST API (version 1) or of an HTTP API (version 2).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayEvent {
    #[serde(deserialize_with = "or_default")]
    http_method: String,
    #[serde(deserialize_with = "or_default")]
    path: String,
    #[serde(deserialize_with = "or_default")]
    headers: HashMap<String, Option<String>>,
    #[serde(deserialize_with = "or_default")]
    multi_value_headers: HashMap<String, Option<Vec<String>>>,
    #[serde(deserialize_with = "or_default")]
    query_string_parameters: HashMap<String, Option<String>>,
    #[serde(deserialize_with = "or_default")]
    request_context: RequestContext,
    raw_path: Option<String>,
    raw_query_string: Option<String>,
    body: Option<String>,
    #[serde(deserialize_with = "or_default")]
    is_base64_encoded: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RequestContext {
    #[serde(deserialize_with = "or_default")]
    request_id: String,
    #[serde(deserialize_with = "or_default")]
    http: HttpContext,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct HttpContext {
    #[serde(deserialize_with = "or_default")]
    method: String,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What a caller sent, whichever shape it came in.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The method, in upper case.
    pub method: String,
    /// The path as the gateway handed it on.
    pub path: String,
    /// The query, decoded, by name.
    pub query: HashMap<String, String>,
    /// The value of `Authorization`.
    pub authorization: Option<String>,
    /// The gateway's own id of the request.
    pub request_id: String,
    body: Option<String>,
    is_base64: bool,
}

impl From<GatewayEvent> for Request {
    fn from(event: GatewayEvent) -> Self {
        let authorization = event.header("authorization");
        let query = match &event.raw_query_string {
            Some(raw) => form_urlencoded::parse(raw.as_bytes()).into_owned().collect(),
            None => {
                event.query_string_parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
            }
        };
        let method = if event.http_method.is_empty() { event.request_context.http.method } else { event.http_method };
        Self {
            method: method.to_ascii_uppercase(),
            path: event.raw_path.unwrap_or(event.path),
            query,
            authorization,
            request_id: event.request_context.request_id,
            body: event.body,
            is_base64: event.is_base64_encoded,
        }
    }
}

impl GatewayEvent {
    /// A header by its name in lower case: a REST API keeps the case that was sent.
    fn header(&self, name: &str) -> Option<String> {
        let single = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        single.and_then(|(_, value)| value.clone()).or_else(|| {
            let multi = self.multi_value_headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            multi.and_then(|(_, values)| values.as_ref()?.last().cloned())
        })
    }
}

impl Request {
    /// The bytes of the body.
    ///
    /// Errors: too large, or marked as base64 and none.
    pub fn body(&self) -> Result<Vec<u8>, ApiError> {
        let body = self.body.as_deref().unwrap_or_default();
        // Base64 takes four characters for three bytes.
        let most = if self.is_base64 { MAX_BODY_BYTES.div_ceil(3) * 4 } else { MAX_BODY_BYTES };
        if body.len() > most {
            return Err(ApiError::too_large(format!("the body has more than {MAX_BODY_BYTES} bytes")));
        }
        if !self.is_base64 {
            return Ok(body.as_bytes().to_vec());
        }
        let bytes = STANDARD.decode(body).map_err(|_| {
            ApiError::invalid("body", "the gateway marked it as base64 and it is none", "send the JSON itself")
        })?;
        if bytes.len() > MAX_BODY_BYTES {
            return Err(ApiError::too_large(format!("the body has more than {MAX_BODY_BYTES} bytes")));
        }
        Ok(bytes)
    }
}

/// What goes back to the gateway; both shapes understand it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayResponse {
    /// The HTTP status.
    pub status_code: u16,
    /// The headers.
    pub headers: std::collections::BTreeMap<&'static str, String>,
    /// The body; empty where there is none.
    pub body: String,
    /// Always `false`: bodies are text.
    pub is_base64_encoded: bool,
}
