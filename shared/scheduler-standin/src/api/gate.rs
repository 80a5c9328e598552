//! What stands before every handler: rate limit, token, and faults.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::envelope::{self, Refused};
use super::page;
use crate::control::consume_all;
use crate::faults::{Fault, FaultKind, Operation, strike};
use crate::shared::App;

/// Marks an answer that must not be sent: the connection is closed instead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DropConnection;

/// Checks the token only, for the control routes.
pub(crate) async fn token(State(app): State<App>, request: Request, next: Next) -> Response {
    if has_token(&app, &request) { next.run(request).await } else { StatusCode::UNAUTHORIZED.into_response() }
}

/// Rate limit before token before handler, as in the real server; faults around it.
pub(crate) async fn pass(State(app): State<App>, request: Request, next: Next) -> Response {
    let operation = operation_of(&request);
    let is_start = operation == Operation::Start;
    let before = take(&app, operation, happens_before);
    if before.iter().any(|fault| fault.kind == FaultKind::RateLimited) {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    }
    if !is_authorised(&app, &request) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if let Some(fault) = before.first() {
        return instead(fault).await;
    }
    if !take(&app, operation, |kind| kind == FaultKind::ConsumeFirst).is_empty() {
        consume_all(&app);
    }
    if !is_start && !take(&app, operation, |kind| kind == FaultKind::NullData).is_empty() {
        return envelope::ok(&Value::Null);
    }
    let response = next.run(request).await;
    if response.headers().get("content-type").is_some_and(|value| value.as_bytes().starts_with(b"text/html")) {
        return response;
    }
    match take(&app, operation, |kind| happens_after(kind, is_start)).first() {
        Some(fault) => afterwards(fault.kind).await,
        None => response,
    }
}

fn take(app: &App, operation: Operation, wanted: impl Fn(FaultKind) -> bool) -> Vec<Fault> {
    if app.read(|world| world.faults.is_empty()) {
        return Vec::new();
    }
    app.change(|world| strike(&mut world.faults, operation, wanted))
}

/// Whether the call carries the token; an expired one is as good as none.
fn is_authorised(app: &App, request: &Request) -> bool {
    let expires = app.read(|world| world.settings.token_expires);
    has_token(app, request) && expires.is_none_or(|expires| expires > Timestamp::now())
}

fn has_token(app: &App, request: &Request) -> bool {
    request.headers().get("token").is_some_and(|value| value.as_bytes() == app.token.as_bytes())
}

fn operation_of(request: &Request) -> Operation {
    let path = request.uri().path();
    let last = path.rsplit('/').next().unwrap_or_default();
    if request.method() == Method::POST && last.starts_with("start-") {
        Operation::Start
    } else if last.ends_with("-instances") {
        Operation::List
    } else if path.contains("-instances/") {
        Operation::Get
    } else if path.contains("-definition") {
        Operation::Definitions
    } else if path.contains("/analysis/") {
        Operation::Commands
    } else if path.contains("/monitor/") {
        Operation::Masters
    } else if path.contains("/access-tokens") {
        Operation::Tokens
    } else {
        Operation::Any
    }
}

const fn happens_before(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::DropBeforeAccept
            | FaultKind::HangBeforeAccept
            | FaultKind::TimeoutBeforeAccept
            | FaultKind::Answer
            | FaultKind::Unauthorized
            | FaultKind::RateLimited
            | FaultKind::ServerError
            | FaultKind::Html
            | FaultKind::HugeBody
    )
}

const fn happens_after(kind: FaultKind, is_start: bool) -> bool {
    matches!(
        kind,
        FaultKind::DropAfterAccept
            | FaultKind::HangAfterAccept
            | FaultKind::TimeoutAfterAccept
            | FaultKind::ErrorAfterAccept
    ) || (is_start && matches!(kind, FaultKind::NullData))
}

async fn instead(fault: &Fault) -> Response {
    match fault.kind {
        FaultKind::DropBeforeAccept => dropped(),
        FaultKind::HangBeforeAccept => std::future::pending().await,
        FaultKind::TimeoutBeforeAccept => rpc_timeout().into_response(),
        FaultKind::Unauthorized => StatusCode::UNAUTHORIZED.into_response(),
        FaultKind::ServerError => (StatusCode::INTERNAL_SERVER_ERROR, "internal server error").into_response(),
        FaultKind::Html => page(StatusCode::OK),
        FaultKind::HugeBody => {
            let filler = "x".repeat(9 * 1024 * 1024);
            axum::Json(json!({"code": 0, "msg": filler, "data": null})).into_response()
        }
        _ => Refused::new(fault.code.unwrap_or(10000), fault.msg.clone().unwrap_or_default()).into_response(),
    }
}

async fn afterwards(kind: FaultKind) -> Response {
    match kind {
        FaultKind::DropAfterAccept => dropped(),
        FaultKind::HangAfterAccept => std::future::pending().await,
        FaultKind::TimeoutAfterAccept => rpc_timeout().into_response(),
        FaultKind::ErrorAfterAccept => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => envelope::ok(&Value::Null),
    }
}

fn dropped() -> Response {
    let mut response = Body::empty().into_response();
    response.extensions_mut().insert(DropConnection);
    response
}

fn rpc_timeout() -> Refused {
    Refused::new(50014, "start workflow instance error:Request to master timed out after 3000 ms")
}
