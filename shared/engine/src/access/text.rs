//! A token as it is shown: `lakebell_<id>_<secret>`.

use std::fmt;
use std::str::FromStr;

use lakebell_domain::Invalid;
use lakebell_domain::ids::TokenId;
use sha2::{Digest, Sha256};

use super::{digest_of, hex};
use crate::EngineError;
use crate::ports::time::Random;

/// What every token begins with: it tells a token from other text, and scanners of leaked secrets
/// can look for it.
const MARK: &str = "lakebell_";
/// Hex digits of an id.
const ID_DIGITS: usize = 16;
/// Hex digits of a secret.
const SECRET_DIGITS: usize = 64;

/// A token's text. It is neither logged nor shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText {
    id: TokenId,
    secret: String,
}

impl TokenText {
    /// A token of fresh random bits.
    pub(super) fn random(random: &dyn Random) -> Result<Self, EngineError> {
        let id = format!("{:032x}", random.bits());
        Ok(Self::with_id(TokenId::new(&id[..ID_DIGITS])?, random))
    }

    /// A fresh secret under a known id.
    pub(super) fn with_id(id: TokenId, random: &dyn Random) -> Self {
        Self { id, secret: format!("{:032x}{:032x}", random.bits(), random.bits()) }
    }

    /// The public part.
    pub const fn id(&self) -> &TokenId {
        &self.id
    }

    /// What is kept of the secret.
    pub fn digest(&self) -> String {
        digest_of(&self.secret)
    }

    /// The whole token, for the one answer that shows it.
    pub fn reveal(&self) -> String {
        format!("{MARK}{}_{}", self.id, self.secret)
    }

    /// Whether a text wants to be a token of this form, well-formed or not.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(MARK)
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenText({})", self.id)
    }
}

impl FromStr for TokenText {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let is_hex = |part: &str, len| {
            part.len() == len && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let parts = text.strip_prefix(MARK).and_then(|rest| rest.split_once('_'));
        match parts.filter(|(id, secret)| is_hex(id, ID_DIGITS) && is_hex(secret, SECRET_DIGITS)) {
            Some((id, secret)) => Ok(Self { id: TokenId::new(id)?, secret: secret.to_owned() }),
            // Not quoted: it may be a token with a slip of the hand.
            None => Err(Invalid::new("token", "it is no token", "show it as it was given")),
        }
    }
}

/// The id under which the token of a principal is kept, by its ARN as [`super::principal`] gives it.
///
/// Errors: none that can happen: a digest is an id.
pub fn principal_token(arn: &str) -> Result<TokenId, Invalid> {
    TokenId::new(&hex(&Sha256::digest(arn.as_bytes()))[..ID_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_tokens_are_read() {
        let good = format!("lakebell_{}_{}", "0123456789abcdef", "ab".repeat(32));
        let token: TokenText = good.parse().unwrap();
        assert_eq!((token.reveal().as_str(), token.id().as_str()), (good.as_str(), "0123456789abcdef"));
        assert_eq!(format!("{token:?}"), "TokenText(0123456789abcdef)");
        for wrong in [
            "",
            "lakebell_",
            "lakebell_1_2",
            &good[1..],
            &good[..good.len() - 1],
            &good.to_uppercase(),
            &format!("{good}0"),
        ] {
            assert!(wrong.parse::<TokenText>().is_err(), "{wrong}");
        }
    }
}
