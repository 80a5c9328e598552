//! Iceberg's REST protocol, as far as it is asked.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{Shared, World, fault};

pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/v1/config", get(config))
        .route("/v1/oauth/tokens", post(token))
        .route("/v1/{*rest}", get(table))
}

fn problem(status: StatusCode, kind: &str, message: &str) -> Response {
    let error = json!({"error": {"message": message, "type": kind, "code": status.as_u16()}});
    (status, error.to_string()).into_response()
}

fn may_ask(world: &World, headers: &HeaderMap) -> bool {
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = shown.and_then(|shown| shown.strip_prefix("Bearer "));
    if let Some(bearer) = &world.bearer {
        return token == Some(bearer);
    }
    if world.client.is_none() {
        return true;
    }
    let number = token.and_then(|token| token.strip_prefix("given-")?.parse::<u32>().ok());
    number.is_some_and(|number| number > world.expired && number <= world.given)
}

fn not_authorized() -> Response {
    problem(StatusCode::UNAUTHORIZED, "NotAuthorizedException", "the token is missing, wrong or expired")
}

async fn config(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let world = shared.world();
    if !may_ask(&world, &headers) {
        return not_authorized();
    }
    let overrides = if world.prefix.is_empty() { json!({}) } else { json!({"prefix": world.prefix}) };
    json!({"defaults": {"clients": "4"}, "overrides": overrides}).to_string().into_response()
}

async fn token(State(shared): State<Shared>, body: String) -> Response {
    let fields: BTreeMap<String, String> = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let field = |name: &str| fields.get(name).map(String::as_str);
    let mut world = shared.world();
    if field("grant_type") != Some("client_credentials") || field("scope").is_none() {
        return (StatusCode::BAD_REQUEST, json!({"error": "invalid_request"}).to_string()).into_response();
    }
    let is_known = world
        .client
        .as_ref()
        .is_some_and(|(id, secret)| field("client_id") == Some(id) && field("client_secret") == Some(secret));
    if !is_known {
        return (StatusCode::UNAUTHORIZED, json!({"error": "invalid_client"}).to_string()).into_response();
    }
    world.given += 1;
    let mut given = json!({"access_token": format!("given-{}", world.given), "token_type": "bearer"});
    if let Some(expires_in) = world.expires_in {
        given["expires_in"] = expires_in.into();
    }
    given.to_string().into_response()
}

/// `LoadTable`.
async fn table(State(shared): State<Shared>, Path(rest): Path<String>, request: axum::extract::Request) -> Response {
    // The levels of a namespace are told apart in the path as it was sent.
    let sent = request.uri().path().strip_prefix("/v1/").unwrap_or(&rest).to_owned();
    let headers = request.headers().clone();
    let huge = match fault(&shared).await {
        Ok(huge) => huge,
        Err(answer) => return answer,
    };
    let world = shared.world();
    if !may_ask(&world, &headers) {
        return not_authorized();
    }
    let prefix = if world.prefix.is_empty() { String::new() } else { format!("{}/", world.prefix) };
    let parts: Vec<&str> = sent.strip_prefix(&prefix).map(|path| path.split('/').collect()).unwrap_or_default();
    let ["namespaces", namespace, "tables", table] = parts[..] else {
        return (StatusCode::NOT_FOUND, "no such route").into_response();
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let levels: Vec<String> = namespace.split("%1F").map(decoded).collect();
    let name = (levels.join("."), decoded(table));
    let Some(location) = world.tables.get(&name) else {
        let message = format!("Table does not exist: {}.{}", name.0, name.1);
        return problem(StatusCode::NOT_FOUND, "NoSuchTableException", &message);
    };
    loaded(location, huge).into_response()
}

fn loaded(location: &str, huge: usize) -> String {
    let metadata =
        json!({"format-version": 2, "location": location, "snapshots": [], "metadata-location": "not this one"});
    if huge == 0 {
        return json!({"metadata-location": location, "metadata": metadata, "config": {}}).to_string();
    }
    let filling = Value::from("x".repeat(huge));
    format!(
        r#"{{"config":{{}},"metadata":{{"inside":{metadata},"filling":{filling}}},"metadata-location":{}}}"#,
        Value::from(location)
    )
}
