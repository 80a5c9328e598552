//! Signatures by Standard Webhooks 1.0 (<https://www.standardwebhooks.com>): HMAC-SHA256 over
//! `<webhook-id>.<webhook-timestamp>.<body>`, beside the token and never instead of it.
//!
//! The key is not kept. It is derived from the deployment's signing secret, the token's id and its
//! generation, so that a copy of the table signs nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use lakebell_domain::ids::TokenId;
use lakebell_engine::access::Token;
use lakebell_engine::{EngineError, ErrorKind};
use sha2::Sha256;

use super::unauthenticated;
use crate::event::Request;
use crate::problem::ApiError;

/// How far the time in a signature may be from the time of the call, in seconds, either way.
pub(crate) const TOLERANCE_SECONDS: i64 = 300;
/// What a key begins with as it is shown.
const KEY_MARK: &str = "whsec_";
/// Longest `webhook-id`.
const MAX_ID_BYTES: usize = 255;
/// Most signatures of one request: a sender that rotates its key gives two.
const MAX_SIGNATURES: usize = 8;

/// The key that a token's requests are signed with, 32 bytes.
#[derive(Clone)]
pub(crate) struct SigningKey(Vec<u8>);

impl SigningKey {
    fn derive(secret: &str, token: &TokenId, generation: u32) -> Result<Self, EngineError> {
        let mut mac = keyed(secret.as_bytes())?;
        mac.update(format!("lakebell webhook key\n{token}\n{generation}").as_bytes());
        Ok(Self(mac.finalize().into_bytes().to_vec()))
    }

    /// The key of a token's newest secret.
    pub(crate) fn of(secret: &str, token: &Token) -> Result<Self, EngineError> {
        Self::derive(secret, &token.id, token.generation)
    }

    /// The key as Standard Webhooks writes it, for the one answer that shows it.
    pub(crate) fn reveal(&self) -> String {
        format!("{KEY_MARK}{}", STANDARD.encode(&self.0))
    }

    fn is_signature_of(&self, signed: &[&[u8]], signature: &[u8]) -> Result<bool, EngineError> {
        let mut mac = keyed(&self.0)?;
        for part in signed {
            mac.update(part);
        }
        // Compares in constant time.
        Ok(mac.verify_slice(signature).is_ok())
    }
}

fn keyed(key: &[u8]) -> Result<Hmac<Sha256>, EngineError> {
    Hmac::new_from_slice(key).map_err(|_| EngineError::new(ErrorKind::Defect, "a key of this length cannot sign"))
}

/// Checks the signature of a request; gives its `webhook-id`, which names the message however often
/// it is sent.
///
/// Errors: 401 that does not say what was wrong; those of the body.
pub(super) fn check(request: &Request, secret: &str, token: &Token, now: Timestamp) -> Result<String, ApiError> {
    let header = |name| request.header(name).map(str::trim).filter(|text| !text.is_empty());
    let named = (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"));
    let (Some(id), Some(sent_at), Some(signatures)) = named else { return Err(unauthenticated()) };
    let is_near =
        sent_at.parse::<i64>().is_ok_and(|at| at.abs_diff(now.as_second()) <= TOLERANCE_SECONDS.unsigned_abs());
    if id.len() > MAX_ID_BYTES || !is_near {
        return Err(unauthenticated());
    }
    let body = request.body()?;
    let signed: [&[u8]; 5] = [id.as_bytes(), b".", sent_at.as_bytes(), b".", &body];
    let mut generations = vec![token.generation];
    if token.previous.as_ref().is_some_and(|previous| now < previous.good_until) {
        generations.push(token.generation - 1);
    }
    for generation in generations {
        let key = SigningKey::derive(secret, &token.id, generation)?;
        for signature in signatures.split_ascii_whitespace().take(MAX_SIGNATURES) {
            let Some(bytes) = signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok()) else {
                continue;
            };
            if key.is_signature_of(&signed, &bytes)? {
                return Ok(id.to_owned());
            }
        }
    }
    Err(unauthenticated())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_signed_alike() {
        let key = SigningKey(STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
        let signed: [&[u8]; 1] = [br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#];
        let signature = STANDARD.decode("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=").unwrap();
        assert!(key.is_signature_of(&signed, &signature).unwrap());
        assert!(!key.is_signature_of(&signed, &signature[1..]).unwrap());
        assert!(!key.is_signature_of(&[b"other"], &signature).unwrap());
    }

    #[test]
    fn each_token_and_each_generation_has_its_own_key() {
        let key = |secret: &str, id: &str, generation| {
            SigningKey::derive(secret, &id.parse().unwrap(), generation).unwrap().reveal()
        };
        let one = key("s", "0123456789abcdef", 1);
        assert!(one.starts_with("whsec_") && STANDARD.decode(&one[6..]).unwrap().len() == 32);
        for other in [key("t", "0123456789abcdef", 1), key("s", "0123456789abcde0", 1), key("s", "0123456789abcdef", 2)]
        {
            assert_ne!(one, other);
        }
    }
}
