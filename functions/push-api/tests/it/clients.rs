//! Writers' own clients against this API, over HTTP. `LAKEBELL_CLIENTS_PYTHON` names a Python that has what
//! `tests/clients/requirements.txt` pins; without it they are skipped.

use std::process::Command;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lakebell_domain::access::Right;
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::access::Carried;
use serde_json::{Value, json};

use crate::support::{Api, BUCKET, ORDERS, ORDERS_PATH, body, workspace};

/// What a gateway does: a request as an event of an HTTP API, its body as base64.
async fn gateway(State(api): State<Arc<Api>>, method: Method, uri: Uri, headers: HeaderMap, sent: Bytes) -> Response {
    let headers: Value = headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let event = json!({
        "rawPath": uri.path(), "rawQueryString": uri.query().unwrap_or_default(), "headers": headers,
        "requestContext": {"http": {"method": method.as_str()}}, "body": STANDARD.encode(&sent), "isBase64Encoded": true,
    });
    let answer = api.raw(event).await;
    let mut response = (StatusCode::from_u16(answer.status_code).unwrap(), answer.body).into_response();
    for (name, value) in answer.headers {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
    }
    response
}

/// Runs a client's script against the API on a port of its own; what it printed. `None` where there is no
/// Python to run it.
async fn run(api: &Arc<Api>, script: &str, arguments: impl FnOnce(&str) -> Vec<String>) -> Option<String> {
    let Ok(python) = std::env::var("LAKEBELL_CLIENTS_PYTHON") else {
        eprintln!("skipped: LAKEBELL_CLIENTS_PYTHON names no Python");
        return None;
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(gateway).with_state(Arc::clone(api));
    let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let mut command = Command::new(python);
    command.arg(workspace().join("tests/clients").join(script)).args(arguments(&url));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    server.abort();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn openlineage_s_own_client_reports_a_run() {
    let api = Arc::new(Api::with_orders().await);
    api.load_orders();
    let token = api.make_token(Some(ProjectCode(7)), &[Right::Evidence], Carried::Header).await;
    let arguments = |url: &str| {
        ["api/v1/lineage", &token, BUCKET, "warehouse/ods_db.db/orders", "4"].iter().map(ToString::to_string).fold(
            vec![url.to_owned()],
            |mut all, one| {
                all.push(one);
                all
            },
        )
    };
    if run(&api, "openlineage_client.py", arguments).await.is_none() {
        return;
    }
    api.work().await;
    let state = body(&api.get(&format!("{ORDERS_PATH}/state")).await);
    assert_eq!(state["state"]["table"]["snapshotId"], "4", "{state}");
    assert!(state["state"]["quality"].to_string().contains("not_null(id)"), "{state}");
    let aliases = body(&api.get(&format!("{ORDERS_PATH}/aliases")).await);
    assert_eq!(aliases["aliases"][0]["path"], json!(["other", "name"]), "{aliases}");
}

#[tokio::test]
async fn the_cloud_events_sdk_sends_both_modes() {
    let api = Arc::new(Api::with_orders().await);
    let token = api.make_token(Some(ProjectCode(7)), &[Right::Evidence], Carried::Header).await;
    let arguments = |url: &str| {
        let route = format!("{url}/projects/7/asset-events");
        vec![route, token.clone(), ORDERS.to_owned(), "2".to_owned()]
    };
    let Some(said) = run(&api, "cloudevents_client.py", arguments).await else { return };
    assert_eq!(said, "structured 202\nbinary 202\n");
    api.work().await;
    for id in ["structured", "binary"] {
        let told = body(&api.get(&format!("/projects/7/asset-events/{id}?source=urn%3Asdk")).await);
        assert_eq!(told["outcomes"][0]["outcome"], "duplicate", "{told}");
    }
}
