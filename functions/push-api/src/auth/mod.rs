//! Who calls, and what they may do.
//!
//! [`authenticate`] tells the caller from what the request shows, [`admit`] whether the route takes
//! this caller. Neither says what exists: an answer of 401 is always the same, and one of 403
//! depends on the route and the token alone.

mod known;
mod rate;
mod signature;

pub use self::rate::Rate;
pub(crate) use self::signature::SigningKey;

use jiff::Timestamp;
use lakebell_domain::access::{Right, Rights};
use lakebell_domain::ids::{ProjectCode, TokenId};
use lakebell_engine::access::{self, Carried, StaleBecause, Standing, Token, TokenText};
use lakebell_engine::{EngineError, ErrorKind};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use self::known::Known;
use self::rate::Buckets;
use crate::context::Context;
use crate::event::Request;
use crate::problem::{ApiError, Code};
use crate::routes::{Needs, Parameters, Route};

/// The name of whoever shows the deployment's own token.
const DEPLOYMENT: &str = "deployment";
/// Headers that may hold a bare token, beside `Authorization: Bearer`: for clients whose
/// `Authorization` is taken (signed requests to AWS), and Hudi's commit callback.
const TOKEN_HEADERS: [&str; 2] = ["x-api-key", "hudi-callback-key"];

/// What is remembered of callers from one request to the next.
#[derive(Debug)]
pub struct Access {
    known: Known,
    buckets: Buckets,
    /// Whether the gateway checks who signed a request, so that its word about that counts.
    trusts_gateway: bool,
}

impl Access {
    /// Nothing known yet.
    pub fn new(rate: Rate, trusts_gateway: bool) -> Self {
        Self { known: Known::default(), buckets: Buckets::new(rate), trusts_gateway }
    }

    /// Has a token looked up again, because this instance has changed it.
    pub(crate) const fn rate(&self) -> Rate {
        self.buckets.rate()
    }

    pub(crate) fn forget(&self, id: &TokenId) {
        self.known.forget(id);
    }
}

/// Whoever sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The token's id, for logs and records.
    name: String,
    /// What the token was called when it was made.
    label: String,
    project: Option<ProjectCode>,
    rights: Rights,
    stale: Option<StaleBecause>,
    message: Option<String>,
}

impl Caller {
    fn deployment() -> Self {
        let (name, label) = (DEPLOYMENT.to_owned(), DEPLOYMENT.to_owned());
        Self { name, label, project: None, rights: Rights::all(), stale: None, message: None }
    }

    /// Whoever shows this token, once the signature is checked that it may ask for.
    async fn of(
        context: &Context,
        request: &Request,
        token: Token,
        stale: Option<StaleBecause>,
    ) -> Result<Self, ApiError> {
        let message = if token.is_signed {
            let secret = context.tokens.signing_secret().await.map_err(|error| {
                EngineError::new(ErrorKind::Unavailable, "the signing secret cannot be read").caused_by(error)
            })?;
            Some(signature::check(request, &secret, &token, context.ports.clock.now())?)
        } else {
            None
        };
        let name = token.id.to_string();
        Ok(Self { name, label: token.name, project: token.project, rights: token.rights, stale, message })
    }

    /// The token's id, or `deployment`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the token is called, or `deployment`: what people know it by.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The project that the token is for; `None` for the deployment.
    pub(crate) const fn project(&self) -> Option<ProjectCode> {
        self.project
    }

    /// The id of the message that was signed, where it was.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// Whether the token allows all of this.
    pub(crate) fn covers(&self, rights: &Rights) -> bool {
        self.rights.cover(rights)
    }

    /// Why the token is not good any more. Only a route of [`Needs::PathToken`] ever sees one that
    /// is not, and must not do what was asked.
    pub(crate) const fn stale(&self) -> Option<StaleBecause> {
        self.stale
    }

    fn may(&self, right: Right, project: Option<ProjectCode>) -> bool {
        self.rights.has(right) && (self.project.is_none() || (project.is_some() && self.project == project))
    }
}

/// Tells who sent a request. `route` is the one that its path leads to, if there is one.
///
/// Errors: 401 that does not say what was wrong; 503 while the token cannot be looked up, or the
/// caller has sent more than its rate.
pub(crate) async fn authenticate(
    context: &Context,
    request: &Request,
    route: Option<(&Route, &Parameters)>,
) -> Result<Caller, ApiError> {
    let now = context.ports.clock.now();
    let caller = match route.filter(|(route, _)| matches!(route.needs, Needs::PathToken(_))) {
        Some((_, parameters)) => in_path(context, request, parameters.raw("token"), now).await?,
        None => in_headers(context, request, now).await?,
    };
    context.access.buckets.take(caller.name(), now)?;
    Ok(caller)
}

async fn in_headers(context: &Context, request: &Request, now: Timestamp) -> Result<Caller, ApiError> {
    let Some(shown) = shown(request) else {
        return signed_by_principal(context, request, now).await;
    };
    if !TokenText::is_meant_by(shown) {
        return by_deployment(context, shown).await;
    }
    let shown: TokenText = shown.parse().map_err(|_| unauthenticated())?;
    let check = |token: &Token| match token.carried {
        Carried::Header => token.standing(&shown, now),
        Carried::Path | Carried::Principal { .. } => Standing::Wrong,
    };
    let (token, standing) = look_up(context, shown.id(), now, &check).await?;
    if standing == Standing::Good { Caller::of(context, request, token, None).await } else { Err(unauthenticated()) }
}

/// A token in a path is of no use in a header, nor one of a header in a path.
async fn in_path(context: &Context, request: &Request, shown: &str, now: Timestamp) -> Result<Caller, ApiError> {
    let shown: TokenText = shown.parse().map_err(|_| unauthenticated())?;
    let check =
        |token: &Token| if token.carried == Carried::Path { token.standing(&shown, now) } else { Standing::Wrong };
    match look_up(context, shown.id(), now, &check).await? {
        (token, Standing::Good) => Caller::of(context, request, token, None).await,
        (token, Standing::Stale(because)) => Caller::of(context, request, token, Some(because)).await,
        (_, Standing::Wrong) => Err(unauthenticated()),
    }
}

async fn signed_by_principal(context: &Context, request: &Request, now: Timestamp) -> Result<Caller, ApiError> {
    let principal = request.principal.as_deref().filter(|_| context.access.trusts_gateway);
    let principal = principal.and_then(|arn| access::principal(arn).ok()).ok_or_else(unauthenticated)?;
    let id = access::principal_token(&principal).map_err(|_| unauthenticated())?;
    let check = |token: &Token| token.standing_of_principal(&principal, now);
    let (token, standing) = look_up(context, &id, now, &check).await?;
    if standing == Standing::Good { Caller::of(context, request, token, None).await } else { Err(unauthenticated()) }
}

/// The token with this id and how it stands by `check`. What is remembered is asked first; where
/// that says no and is not quite fresh, the record may have been rotated or made meanwhile.
async fn look_up(
    context: &Context,
    id: &TokenId,
    now: Timestamp,
    check: &(impl Fn(&Token) -> Standing + Sync),
) -> Result<(Token, Standing), ApiError> {
    let known = &context.access.known;
    let remembered = known.get(id, now);
    if let Some(entry) = &remembered
        && let Some(token) = &entry.token
    {
        let standing = check(token);
        if standing == Standing::Good || entry.is_fresh(now) {
            return Ok((token.clone(), standing));
        }
    }
    if remembered.as_ref().is_some_and(|entry| entry.token.is_none() && entry.is_fresh(now)) {
        return Err(unauthenticated());
    }
    if remembered.is_none() {
        // Ids that nobody has cost a read each, so that somebody who makes them up is slowed down.
        context.access.buckets.take_stranger(now)?;
    }
    let found = access::find(&context.ports, id).await?.map(|stored| stored.value);
    known.put(id, found.clone(), now);
    let token = found.ok_or_else(unauthenticated)?;
    let standing = check(&token);
    Ok((token, standing))
}

async fn by_deployment(context: &Context, shown: &str) -> Result<Caller, ApiError> {
    // A token that is missing or unreadable is the deployment's fault, not the caller's.
    let expected = context.tokens.token().await.map_err(|error| {
        EngineError::new(ErrorKind::Unavailable, "the token of the API cannot be read").caused_by(error)
    })?;
    if !expected.is_empty() && is_same(shown, &expected) { Ok(Caller::deployment()) } else { Err(unauthenticated()) }
}

/// Whether a route takes this caller.
///
/// Errors: 403, by the route and the token alone; 401 for a token that is stale.
pub(crate) fn admit(route: &Route, parameters: &Parameters, caller: &Caller) -> Result<(), ApiError> {
    if let Needs::PathToken(right) = route.needs {
        return if caller.may(right, caller.project()) { Ok(()) } else { Err(forbidden(route, right)) };
    }
    if caller.stale.is_some() {
        return Err(unauthenticated());
    }
    if let Needs::Writer(right) = route.needs {
        return if caller.may(right, caller.project()) { Ok(()) } else { Err(forbidden(route, right)) };
    }
    let Needs::Right(right) = route.needs else { return Ok(()) };
    let project = if route.is_of_project() { parameters.text("p").parse().ok() } else { None };
    if caller.may(right, project) { Ok(()) } else { Err(forbidden(route, right)) }
}

fn forbidden(route: &Route, right: Right) -> ApiError {
    let of = if route.is_of_project() { "this project" } else { "the deployment" };
    ApiError::new(Code::Forbidden, format!("this needs a token with the right `{right}` for {of}"))
        .hint("ask who made the token for one that has it")
}

fn shown(request: &Request) -> Option<&str> {
    let bare = |name: &&str| request.header(name).map(str::trim).filter(|text| !text.is_empty());
    let authorization = request.header("authorization").and_then(bearer);
    authorization.or_else(|| TOKEN_HEADERS.iter().find_map(bare))
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

/// One answer for every way of not being known.
pub(crate) fn unauthenticated() -> ApiError {
    ApiError::new(Code::Unauthenticated, "show a token of the API as `Authorization: Bearer <token>`")
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
