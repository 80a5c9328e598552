//! The events of API Gateway, and the request that they carry.
//!
//! Written out here rather than taken from a crate of event types: of about forty fields eight
//! matter, real and emulated gateways disagree on which may be null, and an event that does not
//! parse would answer 502 with nothing in the access log.

use std::collections::HashMap;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Deserializer, Serialize};

use crate::problem::ApiError;

/// What every gzip stream starts with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Largest body, in bytes after base64 and, where it is compressed, before and after decompression.
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
    #[serde(deserialize_with = "or_default")]
    identity: Identity,
}

/// Who signed the request, where the gateway has checked that.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    user_arn: Option<String>,
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
    /// The ARN of whoever signed it, as the gateway says.
    pub principal: Option<String>,
    /// The gateway's own id of the request.
    pub request_id: String,
    /// By name in lower case.
    headers: HashMap<String, String>,
    body: Option<String>,
    is_base64: bool,
}

impl From<GatewayEvent> for Request {
    fn from(event: GatewayEvent) -> Self {
        let headers = event.headers();
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
            principal: event.request_context.identity.user_arn,
            headers,
            request_id: event.request_context.request_id,
            body: event.body,
            is_base64: event.is_base64_encoded,
        }
    }
}

impl GatewayEvent {
    /// The headers by name in lower case: a REST API keeps the case that was sent. Of several of one
    /// name the last counts.
    fn headers(&self) -> HashMap<String, String> {
        let multi = self.multi_value_headers.iter().filter_map(|(name, values)| Some((name, values.as_ref()?.last()?)));
        let single = self.headers.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        multi.chain(single).map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
    }
}

impl Request {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Headers whose names begin with a text in lower case: what follows it, and their values.
    pub fn headers_below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.headers.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// The bytes of the body, decompressed.
    ///
    /// Errors: too large, before or after decompression; marked as base64 or gzip and none.
    pub fn body(&self) -> Result<Vec<u8>, ApiError> {
        decompressed(self.raw_body()?, self.header("content-encoding"))
    }

    /// The bytes of the body as they were sent.
    ///
    /// Errors: too large, or marked as base64 and none.
    pub fn raw_body(&self) -> Result<Vec<u8>, ApiError> {
        let body = self.body.as_deref().unwrap_or_default();
        // Base64 takes four characters for three bytes.
        let most = if self.is_base64 { MAX_BODY_BYTES.div_ceil(3) * 4 } else { MAX_BODY_BYTES };
        if body.len() > most {
            return Err(too_large());
        }
        if !self.is_base64 {
            return Ok(body.as_bytes().to_vec());
        }
        let bytes = STANDARD.decode(body).map_err(|_| {
            ApiError::invalid("body", "the gateway marked it as base64 and it is none", "send the JSON itself")
        })?;
        if bytes.len() > MAX_BODY_BYTES { Err(too_large()) } else { Ok(bytes) }
    }
}

fn too_large() -> ApiError {
    ApiError::too_large(format!("the body has more than {MAX_BODY_BYTES} bytes"), MAX_BODY_BYTES)
}

/// A gateway may have decompressed a body and left the header, so the bytes are asked as well.
fn decompressed(bytes: Vec<u8>, encoding: Option<&str>) -> Result<Vec<u8>, ApiError> {
    let encoding = encoding.map(|text| text.trim().to_ascii_lowercase()).unwrap_or_default();
    match encoding.as_str() {
        "" | "identity" => Ok(bytes),
        "gzip" | "x-gzip" if bytes.starts_with(&GZIP_MAGIC) => gunzip(&bytes),
        "gzip" | "x-gzip" if bytes.first().is_none_or(u8::is_ascii) => Ok(bytes),
        "gzip" | "x-gzip" => Err(no_gzip()),
        _ => Err(ApiError::invalid("Content-Encoding", "bodies are read as they are or as gzip", "use gzip, or none")),
    }
}

/// Stops at the limit, whatever a few bytes could be blown up to.
fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, ApiError> {
    let mut plain = Vec::new();
    let most = MAX_BODY_BYTES as u64;
    MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut plain).map_err(|_| no_gzip())?;
    if plain.len() > MAX_BODY_BYTES { Err(too_large()) } else { Ok(plain) }
}

fn no_gzip() -> ApiError {
    let hint = "compress it whole, and let the gateway hand it on as it is";
    ApiError::invalid("body", "it is marked as gzip and is none, or is cut off", hint)
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
