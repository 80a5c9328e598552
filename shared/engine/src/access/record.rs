//! What is kept of a token, and how it stands.

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::access::Rights;
use lakebell_domain::ids::{ProjectCode, TokenId};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::TokenText;

/// How a token is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Carried {
    /// In a header of the request.
    Header,
    /// In the path of the request, for writers that cannot set headers. It is taken nowhere else.
    Path,
    /// Not at all: an AWS principal has signed the request, and the gateway has checked that.
    Principal {
        /// The role or user, as in `arn:aws:iam::123456789012:role/writer`.
        arn: String,
    },
}

/// The secret before the last rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Previous {
    /// Its digest.
    pub digest: String,
    /// Until when it is good.
    pub good_until: Timestamp,
}

/// What is kept of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// Its public part.
    pub id: TokenId,
    /// What it is for, in a few words.
    pub name: String,
    /// The project that it is for; `None` for the whole deployment.
    #[serde(default)]
    pub project: Option<ProjectCode>,
    /// What it allows.
    pub rights: Rights,
    /// How it is shown.
    pub carried: Carried,
    /// Whether each request must be signed as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_signed: bool,
    /// The digest of its secret; `None` for a principal's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The secret before the last rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// Which secret it has: 1 at first, one more with each rotation. The key that signatures are
    /// made with depends on it.
    pub generation: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// By which token.
    pub created_by: String,
    /// From when on it is not good any more.
    pub expires_at: Timestamp,
    /// The length of its terms, in days.
    pub life_days: u16,
    /// Set once it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// How a token that was shown stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is good.
    Good,
    /// It is the token's secret, or was, and is not good any more.
    Stale(StaleBecause),
    /// It is not the token's secret.
    Wrong,
}

/// Why a token is not good any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleBecause {
    /// Its term has ended.
    Expired,
    /// Somebody ended it.
    Revoked,
    /// It was rotated, and the overlap has ended.
    Rotated,
}

impl StaleBecause {
    /// The reason as it is logged.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Rotated => "rotated",
        }
    }
}

impl Token {
    /// Whether it is expired or revoked.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.ended(now).is_some()
    }

    fn ended(&self, now: Timestamp) -> Option<StaleBecause> {
        if self.revoked_at.is_some() {
            return Some(StaleBecause::Revoked);
        }
        (now >= self.expires_at).then_some(StaleBecause::Expired)
    }

    /// How a text that names this token stands. The time that it takes does not depend on where the
    /// text differs.
    pub fn standing(&self, shown: &TokenText, now: Timestamp) -> Standing {
        let shown = shown.digest();
        let is = |digest: &str| bool::from(digest.as_bytes().ct_eq(shown.as_bytes()));
        let is_current = self.digest.as_deref().is_some_and(is);
        let previous = self.previous.as_ref().filter(|previous| is(&previous.digest));
        if !is_current && previous.is_none() {
            return Standing::Wrong;
        }
        let is_over = !is_current && previous.is_some_and(|previous| now >= previous.good_until);
        match self.ended(now).or(is_over.then_some(StaleBecause::Rotated)) {
            Some(because) => Standing::Stale(because),
            None => Standing::Good,
        }
    }

    /// How the token of a principal stands whom the gateway has checked.
    pub fn standing_of_principal(&self, arn: &str, now: Timestamp) -> Standing {
        match &self.carried {
            Carried::Principal { arn: known } if known == arn => {
                self.ended(now).map_or(Standing::Good, Standing::Stale)
            }
            _ => Standing::Wrong,
        }
    }
}

/// A principal as it is kept: the session of an assumed role is its role's.
///
/// `arn:aws:sts::123456789012:assumed-role/writer/session` is `arn:aws:iam::123456789012:role/writer`
/// (AWS leaves the path of the role out of the session's ARN).
///
/// Errors: `Invalid` for what is no ARN of a role or a user.
pub fn principal(arn: &str) -> Result<String, Invalid> {
    let parts: Vec<&str> = arn.splitn(6, ':').collect();
    let wrong = || {
        let hint = "write it as in arn:aws:iam::123456789012:role/writer, without the path of the role";
        Invalid::new("principal", "it is no ARN of a role or a user", hint)
    };
    let ["arn", partition, service, "", account, resource] = parts[..] else { return Err(wrong()) };
    let is_account = account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit());
    let is_plain = |text: &str| !text.is_empty() && text.len() <= 512 && text.bytes().all(|b| b.is_ascii_graphic());
    let Some((kind, name)) = resource.split_once('/').filter(|_| is_account && is_plain(arn)) else {
        return Err(wrong());
    };
    let role = |name: &str| format!("arn:{partition}:iam::{account}:role/{name}");
    match (service, kind) {
        ("sts", "assumed-role") => match name.split_once('/') {
            Some((name, session)) if !name.is_empty() && !session.is_empty() => Ok(role(name)),
            _ => Err(wrong()),
        },
        ("iam", "role") => name.rsplit('/').next().filter(|name| !name.is_empty()).map(role).ok_or_else(wrong),
        ("iam", "user") if !name.is_empty() => Ok(arn.to_owned()),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_their_roles() {
        let role = "arn:aws:iam::123456789012:role/writer";
        for text in
            ["arn:aws:sts::123456789012:assumed-role/writer/i-0abc", role, "arn:aws:iam::123456789012:role/a/b/writer"]
        {
            assert_eq!(principal(text).unwrap(), role, "{text}");
        }
        let user = "arn:aws-cn:iam::123456789012:user/team/ana";
        assert_eq!(principal(user).unwrap(), user);
        for wrong in [
            "",
            "x",
            "arn:aws:iam::1:role/x",
            "arn:aws:iam::123456789012:root",
            "arn:aws:sts::123456789012:assumed-role/x",
            "arn:aws:s3:::bucket/x",
            "arn:aws:iam::123456789012:role/",
            "arn:aws:sts::123456789012:federated-user/x",
        ] {
            assert_eq!(principal(wrong).unwrap_err().field, "principal", "{wrong}");
        }
    }
}
