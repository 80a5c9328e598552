//! Tokens of a project, or of the deployment: make, list, rotate, revoke.

use jiff::Timestamp;
use lakebell_domain::Invalid;
use lakebell_domain::access::Rights;
use lakebell_domain::ids::{ProjectCode, TokenId};
use lakebell_engine::access::{self, Carried, DEFAULT_LIFE_DAYS, DEFAULT_OVERLAP_HOURS, Made, NewToken, Token};
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::auth::SigningKey;
use crate::body;
use crate::handler::Call;
use crate::list::Page;
use crate::problem::{ApiError, Code};

/// A token that is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenBody {
    name: String,
    rights: Rights,
    #[serde(default)]
    carried: Word,
    #[serde(default)]
    principal: Option<String>,
    #[serde(default = "life")]
    life_days: u16,
    #[serde(default)]
    signed: bool,
}

const fn life() -> u16 {
    DEFAULT_LIFE_DAYS
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
enum Word {
    #[default]
    Header,
    Path,
    Principal,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rotation {
    #[serde(default = "overlap")]
    overlap_hours: u16,
}

const fn overlap() -> u16 {
    DEFAULT_OVERLAP_HOURS
}

/// A token without anything that is secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    id: TokenId,
    name: String,
    project: Option<ProjectCode>,
    rights: Rights,
    carried: Word,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    signed: bool,
    standing: &'static str,
    created_at: Timestamp,
    created_by: String,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    /// Until when the secret before the last rotation is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_until: Option<Timestamp>,
}

/// A token that was made or rotated, with what is shown this once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownOnce {
    #[serde(flatten)]
    shown: Shown,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_key: Option<String>,
}

impl TokenBody {
    fn carried(&self) -> Result<Carried, Invalid> {
        let stray =
            |problem| Err(Invalid::new("principal", problem, "give it with `carried: principal`, and only then"));
        match (self.carried, &self.principal) {
            (Word::Header, None) => Ok(Carried::Header),
            (Word::Path, None) => Ok(Carried::Path),
            (Word::Principal, Some(arn)) => Ok(Carried::Principal { arn: access::principal(arn)? }),
            (Word::Principal, None) => stray("it is missing"),
            (Word::Header | Word::Path, Some(_)) => stray("the token is carried by the request"),
        }
    }
}

impl Shown {
    fn of(token: Token, now: Timestamp) -> Self {
        let standing = match (token.revoked_at, token.has_ended(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "good",
        };
        let (carried, principal) = match token.carried {
            Carried::Header => (Word::Header, None),
            Carried::Path => (Word::Path, None),
            Carried::Principal { arn } => (Word::Principal, Some(arn)),
        };
        let previous_until = token.previous.map(|previous| previous.good_until).filter(|until| now < *until);
        Self {
            id: token.id,
            name: token.name,
            project: token.project,
            rights: token.rights,
            carried,
            principal,
            signed: token.is_signed,
            standing,
            created_at: token.created_at,
            created_by: token.created_by,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            previous_until,
        }
    }
}

/// Makes a token for the project of the path, or for the deployment.
pub(super) async fn create(call: &Call<'_>) -> Result<Answer, ApiError> {
    let scope = scope(call)?;
    let body: TokenBody = body::read(&call.request.body()?)?;
    if !call.caller.covers(&body.rights) {
        let detail = "a token cannot make one that may do more than it may itself";
        return Err(ApiError::new(Code::Forbidden, detail).hint("ask for rights that this token has").at("rights"));
    }
    let carried = body.carried()?;
    // What cannot be signed later is not made.
    let signing = if body.signed { Some(call.context.tokens.signing_secret().await?) } else { None };
    let asked = NewToken {
        name: body.name,
        project: scope,
        rights: body.rights,
        carried,
        life_days: body.life_days,
        is_signed: body.signed,
    };
    let made = access::create(&call.context.ports, asked, call.caller.name()).await?;
    tracing::info!(madeToken = %made.token.id, "token made");
    answer(call, 201, made, signing.as_deref())
}

pub(super) async fn list(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (scope, page) = (scope(call)?, Page::of(&call.request.query)?);
    let now = call.context.ports.clock.now();
    let all = access::list(&call.context.ports, scope).await?;
    let all = all.into_iter().map(|token| Shown::of(token, now)).collect();
    Answer::ok(&page.cut(all, |token: &Shown| token.id.to_string())?)
}

pub(super) async fn rotate(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (scope, id): (_, TokenId) = (scope(call)?, call.named("tokenId")?);
    let bytes = call.request.body()?;
    let overlap_hours = if bytes.iter().all(u8::is_ascii_whitespace) {
        DEFAULT_OVERLAP_HOURS
    } else {
        body::read::<Rotation>(&bytes)?.overlap_hours
    };
    let known = access::find(&call.context.ports, &id).await?.map(|known| known.value);
    if known.as_ref().is_some_and(|known| !call.caller.covers(&known.rights)) {
        let detail = "a token cannot rotate one that may do more than it may itself";
        return Err(ApiError::new(Code::Forbidden, detail));
    }
    let is_signed = known.is_some_and(|known| known.is_signed);
    let signing = if is_signed { Some(call.context.tokens.signing_secret().await?) } else { None };
    let made = access::rotate(&call.context.ports, scope, &id, overlap_hours).await?;
    tracing::info!(rotatedToken = %id, "token rotated");
    answer(call, 200, made, signing.as_deref())
}

pub(super) async fn revoke(call: &Call<'_>) -> Result<Answer, ApiError> {
    let (scope, id): (_, TokenId) = (scope(call)?, call.named("tokenId")?);
    access::revoke(&call.context.ports, scope, &id).await?;
    call.context.access.forget(&id);
    tracing::info!(revokedToken = %id, "token revoked");
    Ok(Answer::empty())
}

fn answer(call: &Call<'_>, status: u16, made: Made, signing: Option<&str>) -> Result<Answer, ApiError> {
    let now = call.context.ports.clock.now();
    let signing_key = match signing {
        Some(secret) => Some(SigningKey::of(secret, &made.token)?.reveal()),
        None => None,
    };
    // This instance at least takes it at once.
    call.context.access.forget(&made.token.id);
    let token = made.text.as_ref().map(access::TokenText::reveal);
    Answer::secret(status, &ShownOnce { shown: Shown::of(made.token, now), token, signing_key })
}

/// The project that the path names; `None` for the deployment.
fn scope(call: &Call<'_>) -> Result<Option<ProjectCode>, ApiError> {
    if call.route.is_of_project() { call.project().map(Some) } else { Ok(None) }
}
