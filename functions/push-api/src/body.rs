//! Bodies: bounded JSON, and errors that name the field.

use lakebell_domain::Invalid;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::problem::ApiError;

/// Deepest nesting of arrays and objects.
pub(crate) const MAX_DEPTH: usize = 32;
/// Longest string, in bytes as written; names of members are strings.
pub(crate) const MAX_STRING_BYTES: usize = 8 * 1024;

/// Settings of assets that a later version has, and this one does not.
const LATER_OF_ASSETS: [&str; 1] = ["warehouse"];

/// Reads a body that is one object.
///
/// Errors: `Invalid` with the path of the field, what was wrong and what would be right.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // serde would take an array for an object, by the order of the fields.
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => Err(ApiError::invalid("body", "it is an array", "send one object")),
        _ => read_any(bytes),
    }
}

/// Reads a body of any shape.
pub(crate) fn read_any<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    check_bounds(bytes)?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| refusal("", &error))?;
    deserializer.end().map_err(|error| malformed(&error))?;
    Ok(value)
}

/// Reads a value that was read before, which stands at `place`.
pub(crate) fn read_value<T: DeserializeOwned>(value: Value, place: &str) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(value).map_err(|error| refusal(place, &error))
}

fn malformed(error: &serde_json::Error) -> ApiError {
    ApiError::invalid("body", format!("it is no JSON: {error}"), "send one JSON document")
}

/// Depth and lengths in one pass, before anything is built.
fn check_bounds(bytes: &[u8]) -> Result<(), ApiError> {
    let too =
        |problem: &str, hint: String, limit: usize| Err(ApiError::invalid("body", problem, hint).limit(limit as u64));
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ApiError::invalid("body", "it is empty", "send a JSON document"));
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let len = string_len(&bytes[at + 1..]);
                if len > MAX_STRING_BYTES {
                    return too(
                        "it has a string that is too long",
                        format!("use at most {MAX_STRING_BYTES} bytes"),
                        MAX_STRING_BYTES,
                    );
                }
                at += len + 1;
            }
            _ => {}
        }
        if depth > MAX_DEPTH {
            return too("it is nested too deeply", format!("use at most {MAX_DEPTH} levels"), MAX_DEPTH);
        }
        at += 1;
    }
    Ok(())
}

/// The length of a string up to its closing quote, or of the rest where there is none.
fn string_len(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

fn refusal(place: &str, error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let inner = error.inner();
    if inner.is_syntax() || inner.is_eof() {
        return malformed(inner);
    }
    let path = error.path().to_string();
    let path = if path == "." { "" } else { path.as_str() };
    let field = match (place, path) {
        ("", "") => String::new(),
        ("", path) => path.to_owned(),
        (place, "") => place.to_owned(),
        (place, path) if path.starts_with('[') => format!("{place}{path}"),
        (place, path) => format!("{place}.{path}"),
    };
    said(field, &without_position(&inner.to_string())).into()
}

/// serde's sentence as field, problem and hint.
fn said(field: String, message: &str) -> Invalid {
    let or_body = |field: String| if field.is_empty() { "body".to_owned() } else { field };
    if let Some(rest) = message.strip_prefix("unknown field `")
        && let Some((name, expected)) = rest.split_once('`')
    {
        let field = if field.is_empty() || field.ends_with(name) { or_body(field) } else { format!("{field}.{name}") };
        if LATER_OF_ASSETS.contains(&name) {
            return Invalid::new(field, format!("`{name}` is not available in this version"), "leave it out");
        }
        let hint = expected.trim_start_matches(", expected").replace("there are no fields", "no fields");
        let hint = hint.trim().trim_start_matches("one of ");
        return Invalid::new(field, format!("`{name}` is not known"), format!("use {hint}"));
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        let field = if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        return Invalid::new(field, "it is missing", format!("give `{name}`"));
    }
    if let Some((problem, expected)) = message.split_once(", expected ") {
        return Invalid::new(or_body(field), problem, format!("give {expected}"));
    }
    // The domain's own sentences: what it is, what was wrong, what would be right.
    match message.rsplit_once("; ") {
        Some((problem, hint)) => Invalid::new(or_body(field), without_name(problem), hint),
        None => Invalid::new(or_body(field), message, "see docs/api.md"),
    }
}

/// The field that the domain names is the type's; the path says more.
fn without_name(problem: &str) -> &str {
    match problem.split_once(": ") {
        Some((name, rest)) if name.chars().all(|c| c.is_ascii_lowercase() || c == ' ') => rest,
        _ => problem,
    }
}

fn without_position(message: &str) -> String {
    match message.rsplit_once(" at line ") {
        Some((before, position)) if position.starts_with(|c: char| c.is_ascii_digit()) => before.to_owned(),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use lakebell_domain::target::TargetSpec;
    use lakebell_engine::assets::AssetSpec;

    use super::*;

    fn refused<T: DeserializeOwned + std::fmt::Debug>(body: &str) -> (String, String, String) {
        let error = read::<T>(body.as_bytes()).unwrap_err();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        (text(error.field()), error.detail().to_owned(), text(error.hint_text()))
    }

    fn target(dependency: &str) -> String {
        format!(r#"{{"workflowDefinitionCode": 1, "groups": [{{"dependencies": [{dependency}]}}]}}"#)
    }

    #[test]
    fn fields_are_named_with_what_would_be_right() {
        let place = "groups[0].dependencies[0]";
        let table = [
            (target(r#"{"asset": "orders"}"#), "asset", "`orders` has no `://`", "write <format>://"),
            (target(r#"{"asset": 5}"#), "asset", "invalid type: integer `5`", "give a string"),
            (target("{}"), "asset", "it is missing", "give `asset`"),
            (
                target(r#"{"partitionKey": "dt"}"#),
                "partitionKey",
                "`partitionKey` is not known",
                "use `asset`, `alias`",
            ),
            (target(r#"{"assett": "x"}"#), "assett", "`assett` is not known", "use `asset`, `alias`"),
            (target(r#"{"asset": "paimon://a/b", "alias": "a-b"}"#), "alias", "", "use 1 to 64"),
        ];
        for (body, field, problem, hint) in table {
            let found = refused::<TargetSpec>(&body);
            assert_eq!(found.0, format!("{place}.{field}"), "{body}");
            assert!(found.1.contains(problem), "{found:?}");
            assert!(found.2.starts_with(hint), "{found:?}");
        }
        let found = refused::<TargetSpec>(r#"{"partitionKey": "dt", "groups": []}"#);
        assert_eq!((found.0.as_str(), found.1.as_str()), ("partitionKey", "`partitionKey` is not known"));
        let found = refused::<TargetSpec>("{}");
        assert_eq!((found.0.as_str(), found.1.as_str()), ("groups", "it is missing"));
        let found = refused::<AssetSpec>(r#"{"key": "paimon://a/b", "location": "/tmp/x"}"#);
        assert_eq!(found.0, "location");
        assert_eq!(found.2, "write s3://bucket/path/of/the/table");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for body in ["", "  \n", "{", "nonsense", "{} {}", "\"", "{\"a\":\"\\", "[1,]"] {
            assert_eq!(read_any::<Value>(body.as_bytes()).unwrap_err().field(), Some("body"), "{body}");
        }
        assert_eq!(refused::<AssetSpec>(" []").1, "it is an array");
        assert_eq!(refused::<AssetSpec>("5").0, "body");
    }

    fn refused_any(body: &str) -> String {
        read_any::<Value>(body.as_bytes()).unwrap_err().detail().to_owned()
    }

    #[test]
    fn depth_and_strings_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read_any::<Value>(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(refused_any(&nested(MAX_DEPTH + 1)).contains("nested"));
        assert!(refused_any(&"[".repeat(500_000)).contains("nested"));
        let string = |len: usize| format!("\"{}\"", "a".repeat(len));
        assert!(read_any::<Value>(string(MAX_STRING_BYTES).as_bytes()).is_ok());
        assert!(refused_any(&string(MAX_STRING_BYTES + 1)).contains("too long"));
        // Brackets and quotes inside strings are no structure.
        let quoted = format!(r#"["{}", "\"[[", "\\"]"#, "[".repeat(100));
        assert!(read_any::<Value>(quoted.as_bytes()).is_ok());
    }
}
