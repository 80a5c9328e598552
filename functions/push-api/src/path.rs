//! Asset keys in paths.
//!
//! A client percent-encodes the canonical key once (`paimon%3A%2F%2Fdb%2Ftable`). A REST API hands
//! that on as it is; other gateways and proxies decode it first, some clients encode twice. So a
//! key is read as it stands, decoded once, and decoded twice: the first text that is a key is what
//! the client most likely meant, and the later ones count where nothing is registered under it.

use lakebell_domain::Invalid;
use lakebell_domain::asset::{AssetKey, Format};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Table names that get lost where a path is decoded or cut once too often; the tests of the route,
/// here and through a real gateway, send each of them.
pub const AWKWARD_TABLES: [&str; 15] = [
    "plain", "a/b", "a?b", "a+b", "50%", "a%2Fb", "a%252Fb", "a@b", "a#b", "a b", "größe", "订单", "a&b=c", "a;b",
    "a\"b\\c",
];

/// The keys that a segment may mean, most likely one first; never empty.
///
/// Errors: `Invalid` where no reading is a key.
pub fn candidates(segment: &str) -> Result<Vec<AssetKey>, Invalid> {
    let once = decode(segment);
    let twice = once.as_deref().and_then(decode);
    let texts = [Some(segment.to_owned()), once, twice];
    let mut keys = Vec::new();
    let mut refusal = None;
    for text in texts.into_iter().flatten() {
        match with_both_slashes(&text).parse::<AssetKey>() {
            Ok(key) if !keys.contains(&key) => keys.push(key),
            // The later reading is the plainer text to show.
            Err(invalid) if refusal.is_none() || text.contains("://") => refusal = Some(invalid),
            Ok(_) | Err(_) => {}
        }
    }
    match (keys.is_empty(), refusal) {
        (true, Some(refusal)) => Err(Invalid { field: "assetKey".to_owned(), ..refusal }),
        _ => Ok(keys),
    }
}

/// A key as clients put it into a path: encoded once.
pub fn encode(key: &AssetKey) -> String {
    utf8_percent_encode(&key.to_string(), NON_ALPHANUMERIC).to_string()
}

/// A segment decoded once; `None` where that gives no text.
pub(crate) fn decode(segment: &str) -> Option<String> {
    percent_decode_str(segment).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

/// Whether a decoded path seems to go on with an asset key that fills several segments.
pub(crate) fn starts_key(segment: &str) -> bool {
    Format::ALL.iter().any(|format| segment.strip_prefix(format.as_str()) == Some(":"))
}

/// Proxies that decode often make one slash of two.
fn with_both_slashes(text: &str) -> String {
    match text.split_once(":/") {
        Some((format, rest)) if !rest.starts_with('/') => format!("{format}://{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> AssetKey {
        text.parse().unwrap()
    }

    #[test]
    fn each_reading_of_a_canonical_key_finds_it_first() {
        for table in AWKWARD_TABLES {
            for branch in [None, Some("b1"), Some("x/y@z")] {
                let wanted = AssetKey::new(Format::Paimon, Some("cat"), "ods db", table, branch).unwrap();
                let canonical = wanted.to_string();
                let encoded = encode(&wanted);
                let twice = utf8_percent_encode(&encoded, NON_ALPHANUMERIC).to_string();
                for segment in [&canonical, &encoded, &twice] {
                    assert_eq!(candidates(segment).unwrap()[0], wanted, "{segment}");
                }
            }
        }
    }

    #[test]
    fn a_lost_slash_is_put_back() {
        assert_eq!(candidates("paimon:/db/t").unwrap(), [key("paimon://db/t")]);
        assert_eq!(candidates("paimon%3A/db/t").unwrap(), [key("paimon://db/t")]);
    }

    #[test]
    fn later_readings_follow() {
        // Written with `encodeURI`, which leaves `:` and `/` alone.
        let found = candidates("paimon://db/a%252Fb").unwrap();
        assert_eq!(found, [key("paimon://db/a%252Fb"), key("paimon://db/a%2Fb"), key("paimon://db/a/b")]);
    }

    #[test]
    fn what_is_no_key_is_refused_in_plain_text() {
        let refusal = candidates("mysql%3A%2F%2Fdb%2Ft").unwrap_err();
        assert_eq!((refusal.field.as_str(), refusal.problem.as_str()), ("assetKey", "`mysql` is not a table format"));
        assert!(candidates("orders").unwrap_err().problem.contains("no `://`"));
        assert!(candidates("%FF").is_err());
        assert!(candidates("").is_err());
    }
}
