//! `GetTable` of Glue and `GetSecretValue` of Secrets Manager. Signatures are looked at, not checked.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

use crate::{Shared, fault};

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route("/", post(call))
}

fn refused(kind: &str, message: &str) -> Response {
    (StatusCode::BAD_REQUEST, json!({"__type": kind, "Message": message}).to_string()).into_response()
}

async fn call(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let question: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_signed_for = |service: &str| {
        let shown = header("authorization");
        shown.starts_with("AWS4-HMAC-SHA256 ") && shown.contains(&format!("/{service}/aws4_request"))
    };
    match header("x-amz-target") {
        "AWSGlue.GetTable" => {
            if let Err(answer) = fault(&shared).await {
                return answer;
            }
            if !is_signed_for("glue") {
                return refused("MissingAuthenticationTokenException", "not signed for Glue");
            }
            let text = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
            let name = (text("DatabaseName"), text("Name"));
            let world = shared.world();
            let Some(location) = world.tables.get(&name) else {
                return refused("EntityNotFoundException", &format!("Entity Not Found: {}", name.1));
            };
            let parameters = if location.is_empty() {
                json!({"classification": "parquet"})
            } else {
                json!({"table_type": "ICEBERG", "metadata_location": location})
            };
            json!({"Table": {"Name": name.1, "DatabaseName": name.0, "Parameters": parameters}})
                .to_string()
                .into_response()
        }
        "secretsmanager.GetSecretValue" => {
            let id = question["SecretId"].as_str().unwrap_or_default();
            match shared.world().secrets.get(id) {
                Some(text) => json!({"Name": id, "SecretString": text}).to_string().into_response(),
                None => refused("ResourceNotFoundException", "Secrets Manager can't find the specified secret."),
            }
        }
        _ => refused("UnknownOperationException", "not played here"),
    }
}
