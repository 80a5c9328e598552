//! Who may call: whoever shows the deployment's token.

use lakebell_engine::{EngineError, ErrorKind};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::context::Tokens;
use crate::problem::{ApiError, Code};

/// Checks the value of `Authorization`.
///
/// Errors: 401 that does not say what was wrong; 503 while the token cannot be read.
pub(crate) async fn check(tokens: &dyn Tokens, authorization: Option<&str>) -> Result<(), ApiError> {
    let Some(shown) = authorization.and_then(bearer) else { return Err(unauthenticated()) };
    // A token that is missing or unreadable is the deployment's fault, not the caller's.
    let expected = tokens.token().await.map_err(|error| {
        EngineError::new(ErrorKind::Unavailable, "the token of the API cannot be read").caused_by(error)
    })?;
    if !expected.is_empty() && is_same(shown, &expected) { Ok(()) } else { Err(unauthenticated()) }
}

fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Digests are compared, so that not even the length shows in the time that it takes.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one.as_bytes()).as_slice().ct_eq(Sha256::digest(other.as_bytes()).as_slice()).into()
}

fn unauthenticated() -> ApiError {
    ApiError::new(Code::Unauthenticated, "show the token of the API as `Authorization: Bearer <token>`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_tokens_are_read() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer(" bearer  abc "), Some("abc"));
        for wrong in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert_eq!(bearer(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(is_same("abc", "abc"));
        assert!(!is_same("abc", "abd"));
        assert!(!is_same("abc", "abcd"));
        assert!(!is_same("", "a"));
    }
}
