//! Tokens of the API: made, rotated, revoked, listed and found.
//!
//! A token is written `lakebell_<id>_<secret>`. The id is public: by it the record is found, listed
//! and logged. Of the secret, 256 random bits, only a digest is kept, so it is shown once; a digest
//! of random bits needs neither salt nor a slow function, because there is nothing to guess from.

mod record;
mod text;

pub use record::{Carried, Previous, StaleBecause, Standing, Token, principal};
pub use text::{TokenText, principal_token};

use jiff::SignedDuration;
use lakebell_domain::Invalid;
use lakebell_domain::access::Rights;
use lakebell_domain::digest::hex;
use lakebell_domain::ids::{ProjectCode, TokenId};
use sha2::{Digest, Sha256};

use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// How long a token is good where nothing else is asked for.
pub const DEFAULT_LIFE_DAYS: u16 = 90;
/// The longest life of a token.
pub const MAX_LIFE_DAYS: u16 = 730;
/// How long the old secret is good beside the new one where nothing else is asked for.
pub const DEFAULT_OVERLAP_HOURS: u16 = 24;
/// The longest overlap: 30 days.
pub const MAX_OVERLAP_HOURS: u16 = 720;
/// Most tokens of a deployment.
pub const MAX_TOKENS: usize = 1_000;
/// Longest name of a token.
pub const MAX_NAME_CHARS: usize = 100;
/// How long a token that is expired or revoked is still known as such.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(400 * 24);

/// A token that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for, in a few words.
    pub name: String,
    /// The project that it is for; `None` for the whole deployment.
    pub project: Option<ProjectCode>,
    /// What it allows.
    pub rights: Rights,
    /// How it is shown.
    pub carried: Carried,
    /// How long it is good, in days.
    pub life_days: u16,
    /// Whether each request must be signed as well.
    pub is_signed: bool,
}

/// A token that was made or rotated, with the text that is shown this once.
#[derive(Clone, PartialEq, Eq)]
pub struct Made {
    /// The record.
    pub token: Token,
    /// The token itself; `None` for one that is carried by a principal.
    pub text: Option<TokenText>,
}

/// Makes a token.
///
/// Errors: `Invalid` with the field; `Conflict` where there are too many, or the principal has one.
pub async fn create(ports: &Ports, asked: NewToken, by: &str) -> Result<Made, EngineError> {
    check(&asked)?;
    if list(ports, None).await?.len() >= MAX_TOKENS {
        let message = format!("there are {MAX_TOKENS} tokens already; revoke some and wait until they are forgotten");
        return Err(EngineError::new(ErrorKind::Conflict, message));
    }
    let text = match &asked.carried {
        Carried::Principal { .. } => None,
        Carried::Header | Carried::Path => Some(TokenText::random(&*ports.random)?),
    };
    let id = match (&asked.carried, &text) {
        (Carried::Principal { arn }, _) => principal_token(arn)?,
        (_, Some(text)) => text.id().clone(),
        (_, None) => return Err(EngineError::new(ErrorKind::Defect, "a token without text")),
    };
    let now = ports.clock.now();
    let token = Token {
        id,
        name: asked.name,
        project: asked.project,
        rights: asked.rights,
        carried: asked.carried,
        is_signed: asked.is_signed,
        digest: text.as_ref().map(TokenText::digest),
        previous: None,
        generation: 1,
        created_at: now,
        created_by: by.to_owned(),
        expires_at: now + days(asked.life_days),
        life_days: asked.life_days,
        revoked_at: None,
    };
    let action = match find(ports, &token.id).await? {
        None => Write::Create(draft(&token)?),
        // A principal whose token has ended gets a new one under the same id.
        Some(known) if known.value.has_ended(now) => Write::Replace(draft(&token)?, known.rev),
        Some(_) => return Err(taken()),
    };
    match store::write(&*ports.items, &*ports.random, &[action]).await? {
        Written::Done => Ok(Made { token, text }),
        Written::Lost(_) => Err(taken()),
    }
}

fn taken() -> EngineError {
    EngineError::new(ErrorKind::Conflict, "the principal has a token; revoke it first").with("field", "principal")
}

/// Gives a token a new secret and a new term; the old secret stays good for the overlap.
///
/// Errors: `NotFound` where `scope` does not have it; `Conflict` for one that has ended or that a
/// principal carries; `Invalid` for an overlap beyond the limit.
pub async fn rotate(
    ports: &Ports,
    scope: Option<ProjectCode>,
    id: &TokenId,
    overlap_hours: u16,
) -> Result<Made, EngineError> {
    if overlap_hours > MAX_OVERLAP_HOURS {
        let hint = format!("use 0 to {MAX_OVERLAP_HOURS}");
        return Err(Invalid::new("overlapHours", "it is too long", hint).into());
    }
    for _ in 0..MAX_LOST_RACES {
        let known = of_scope(ports, scope, id).await?;
        let now = ports.clock.now();
        let Some(digest) = known.value.digest.clone() else {
            let message = format!("token {id} is carried by a principal and has no secret");
            return Err(EngineError::new(ErrorKind::Conflict, message));
        };
        if known.value.has_ended(now) {
            let message = format!("token {id} is expired or revoked; make a new one");
            return Err(EngineError::new(ErrorKind::Conflict, message));
        }
        let text = TokenText::with_id(id.clone(), &*ports.random);
        let overlap = SignedDuration::from_hours(overlap_hours.into());
        let token = Token {
            digest: Some(text.digest()),
            previous: Some(Previous { digest, good_until: (now + overlap).min(known.value.expires_at) }),
            generation: known.value.generation + 1,
            expires_at: now + days(known.value.life_days),
            ..known.value
        };
        let action = Write::Replace(draft(&token)?, known.rev);
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            return Ok(Made { token, text: Some(text) });
        }
    }
    Err(store::lost_too_often("rotate token"))
}

/// Ends a token at once. Twice changes nothing.
///
/// Errors: `NotFound` where `scope` does not have it.
pub async fn revoke(ports: &Ports, scope: Option<ProjectCode>, id: &TokenId) -> Result<Token, EngineError> {
    for _ in 0..MAX_LOST_RACES {
        let known = of_scope(ports, scope, id).await?;
        if known.value.revoked_at.is_some() {
            return Ok(known.value);
        }
        let token = Token { revoked_at: Some(ports.clock.now()), ..known.value };
        let action = Write::Replace(draft(&token)?, known.rev);
        if store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done {
            return Ok(token);
        }
    }
    Err(store::lost_too_often("revoke token"))
}

/// The tokens of a project, or of all of them and the deployment, by id; those that have ended
/// until they are forgotten.
pub async fn list(ports: &Ports, project: Option<ProjectCode>) -> Result<Vec<Token>, EngineError> {
    let items = store::all_of(&*ports.items, &layout::settings(layout::TOKENS)).await?;
    let mut tokens = Vec::with_capacity(items.len());
    for item in &items {
        let token: Token = store::decode(item)?.value;
        if project.is_none() || token.project == project {
            tokens.push(token);
        }
    }
    Ok(tokens)
}

/// The token with this id: one read.
pub async fn find(ports: &Ports, id: &TokenId) -> Result<Option<Stored<Token>>, EngineError> {
    store::get(&*ports.items, layout::setting(layout::TOKENS, id.as_str())).await
}

/// The token of a scope: a project's own for the project, each for the deployment.
async fn of_scope(ports: &Ports, scope: Option<ProjectCode>, id: &TokenId) -> Result<Stored<Token>, EngineError> {
    let found = find(ports, id).await?.filter(|known| scope.is_none() || known.value.project == scope);
    found.ok_or_else(|| {
        EngineError::new(ErrorKind::NotFound, format!("there is no token {id}")).with("field", "tokenId")
    })
}

fn check(asked: &NewToken) -> Result<(), Invalid> {
    let name = &asked.name;
    if name.trim().is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        let hint = format!("say in 1 to {MAX_NAME_CHARS} characters on one line what it is for");
        return Err(Invalid::new("name", "it is no name of a token", hint));
    }
    if !(1..=MAX_LIFE_DAYS).contains(&asked.life_days) {
        return Err(Invalid::new("lifeDays", "it is no length of a life", format!("use 1 to {MAX_LIFE_DAYS}")));
    }
    match &asked.carried {
        // What stands in a URL lands in logs of proxies, so it must not be able to do much.
        Carried::Path if asked.project.is_none() => {
            Err(Invalid::new("carried", "a token in a path is for one project", "make it for a project"))
        }
        Carried::Path if asked.rights.iter().any(|right| right != lakebell_domain::access::Right::Evidence) => {
            Err(Invalid::new("rights", "a token in a path can only push", "give it `evidence` alone"))
        }
        Carried::Principal { .. } if asked.is_signed => {
            Err(Invalid::new("signed", "a principal signs with its own credentials", "leave it out"))
        }
        Carried::Header | Carried::Path | Carried::Principal { .. } => Ok(()),
    }
}

fn draft(token: &Token) -> Result<crate::ports::items::Draft, EngineError> {
    let mut draft = store::draft(layout::setting(layout::TOKENS, token.id.as_str()), token)?;
    draft.expires_at = Some(token.revoked_at.unwrap_or(token.expires_at) + REMEMBERED);
    Ok(draft)
}

fn days(count: u16) -> SignedDuration {
    SignedDuration::from_hours(i64::from(count) * 24)
}

/// The digest under which a secret is kept: 64 lower-case hex digits of SHA-256.
fn digest_of(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}
