//! The API on a port of this machine, over tables and state in memory: for tools that send requests
//! of their own, without AWS. `cargo run -p lakebell-push-api --example memory` prints its URL; the
//! token is `token`, and the project 7 owns `paimon://ods_db/orders`.
// What an example does not expect ends it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use lakebell_aws::Metrics;
use lakebell_engine::EngineError;
use lakebell_engine::ports::time::SystemClock;
use lakebell_push_api::event::GatewayEvent;
use lakebell_push_api::{Access, Context, Rate, Tokens, handler};
use lakebell_testkit::World;
use serde_json::{Map, Value, json};

struct Fixed;

impl Tokens for Fixed {
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(async { Ok("token".to_owned()) })
    }

    fn signing_secret(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(async { Ok("signing".to_owned()) })
    }
}

/// What a gateway does: the request as an event of a REST API, and the event's answer as a response.
async fn answer(State(context): State<Context>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let headers: Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(String::from_utf8_lossy(value.as_bytes()))))
        .collect();
    let event: GatewayEvent = serde_json::from_value(json!({
        "rawPath": uri.path(),
        "rawQueryString": uri.query().unwrap_or_default(),
        "headers": headers,
        "requestContext": { "http": { "method": method.as_str() } },
        "body": String::from_utf8_lossy(&body),
    }))
    .unwrap();
    let answer = Box::pin(handler::handle(event, &context)).await;
    let mut response = (StatusCode::from_u16(answer.status_code).unwrap(), answer.body).into_response();
    response.headers_mut().clear();
    for (name, value) in answer.headers {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    response
}

#[tokio::main]
async fn main() {
    let world = World::new(1);
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/paimon/watermarks/table");
    world.storage.load("lake", "warehouse/ods_db.db/orders/", &table).unwrap();
    let mut ports = world.quiet_ports();
    ports.clock = Arc::new(SystemClock);
    let metrics = Metrics::new("Lakebell", Arc::new(SystemClock), io::sink());
    let mut context = Context::new(ports, Arc::new(Fixed), metrics);
    context.access = Arc::new(Access::new(Rate::of(100_000), false));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    axum::serve(listener, Router::new().fallback(answer).with_state(context)).await.unwrap();
}
