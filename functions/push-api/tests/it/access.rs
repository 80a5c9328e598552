//! Who may call, what is refused before a route is reached, and the shapes of events.

use lakebell_engine::ErrorKind;
use lakebell_push_api::routes::ROUTES;
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::support::{Api, ORDERS, PROJECT, TOKEN, body, golden, rest_event};

fn with_authorization(value: Value) -> Value {
    let mut event = rest_event("GET", "/projects/7/assets", None);
    event["headers"] = value;
    event
}

#[tokio::test]
async fn without_the_token_nothing_is_said() {
    let api = Api::new();
    let headers = [
        json!(null),
        json!({}),
        json!({"Authorization": null}),
        json!({"Authorization": "Bearer wrong"}),
        json!({"Authorization": "Bearer "}),
        json!({"Authorization": format!("Basic {TOKEN}")}),
        json!({"Authorization": TOKEN}),
        json!({"Authorization": format!("Bearer {TOKEN}x")}),
    ];
    for header in headers {
        let response = api.raw(with_authorization(header.clone())).await;
        assert_eq!(response.status_code, 401, "{header}");
        assert!(!response.body.contains(TOKEN));
    }
    let mut nowhere = rest_event("GET", "/nothing/here", None);
    nowhere["headers"] = json!({});
    assert_eq!(api.raw(nowhere).await.status_code, 401);
    assert_eq!(api.world.tap.total(), 0);
    golden("error-unauthenticated", &Api::new().raw(with_authorization(json!({}))).await);
}

#[tokio::test]
async fn the_token_is_found_in_any_spelling() {
    let api = Api::new();
    for headers in
        [json!({"authorization": format!("bearer {TOKEN}")}), json!({"AUTHORIZATION": format!("Bearer  {TOKEN} ")})]
    {
        assert_eq!(api.raw(with_authorization(headers)).await.status_code, 200);
    }
    let mut multi = with_authorization(json!(null));
    multi["multiValueHeaders"] = json!({"Authorization": [format!("Bearer {TOKEN}")]});
    assert_eq!(api.raw(multi).await.status_code, 200);
}

#[tokio::test]
async fn a_token_that_cannot_be_read_is_no_fault_of_the_caller() {
    let response = Api::with_token(None).get("/connections").await;
    assert_eq!(response.headers["retry-after"], "2");
    golden("error-token-unreadable", &response);
    assert_eq!(Api::with_token(Some("")).get("/connections").await.status_code, 401);
}

#[tokio::test]
async fn unknown_routes_and_methods_are_told_apart() {
    let api = Api::new();
    golden("error-no-such-route", &api.get("/projects/7/tables").await);
    let response = Api::new().send("PATCH", "/connections/default", None).await;
    assert_eq!(response.headers["allow"], "PUT, DELETE");
    golden("error-method-not-allowed", &response);
}

#[tokio::test]
async fn every_route_serves_under_a_stage_too() {
    let api = Api::new();
    for route in ROUTES {
        let path =
            route.template.replace("{p}", "7").replace("{assetKey}", "paimon%3A%2F%2Fa%2Fb").replace(['{', '}'], "");
        for prefix in ["", "/v1", "/base"] {
            let response = api.send(route.method, &format!("{prefix}{path}"), None).await;
            let code = if response.body.is_empty() { Value::Null } else { body(&response)["code"].clone() };
            assert!(code != "NO_SUCH_ROUTE" && code != "METHOD_NOT_ALLOWED", "{route:?}: {response:?}");
        }
    }
}

#[tokio::test]
async fn project_codes_are_checked() {
    let api = Api::new();
    for route in ROUTES.iter().filter(|route| route.template.starts_with("/projects/")) {
        for project in ["0", "-1", "x", "1.5", "99999999999999999999"] {
            let path = route.template.replace("{p}", project).replace("{assetKey}", "paimon%3A%2F%2Fa%2Fb");
            let query = if route.query.contains(&"assetKey") { "?assetKey=paimon%3A%2F%2Fa%2Fb" } else { "" };
            let response = api.send(route.method, &format!("{path}{query}"), Some("{}".to_owned())).await;
            assert_eq!((response.status_code, &body(&response)["field"]), (400, &json!("projectCode")), "{route:?}");
        }
    }
}

#[tokio::test]
async fn unknown_parameters_are_refused() {
    golden("error-unknown-parameter", &Api::new().get("/projects/7/asset-trigger-history?state=FAILED").await);
    let response = Api::new().get("/projects/7/assets?limit=0").await;
    assert_eq!(body(&response)["field"], "limit");
    let response = Api::new().get("/projects/7/assets?after=%21").await;
    assert_eq!(body(&response)["field"], "after");
}

#[tokio::test]
async fn bodies_are_bounded() {
    let api = Api::new();
    let large = |bytes: usize| format!("{{\"key\":\"{}\"}}", "x".repeat(bytes));
    let response = api.send("POST", "/projects/7/assets", Some(large(1024 * 1024))).await;
    golden("error-body-too-large", &response);
    let encoded = |text: &str| {
        let mut event = rest_event("POST", "/projects/7/assets", Some(&base64(text)));
        event["isBase64Encoded"] = json!(true);
        event
    };
    assert_eq!(api.raw(encoded(&large(1024 * 1024))).await.status_code, 413);
    let response = api.raw(encoded(&large(10_000))).await;
    assert!(body(&response)["detail"].as_str().unwrap().contains("too long"));
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    let response = api.send("POST", &format!("{PROJECT}/asset-events"), Some(deep)).await;
    assert!(body(&response)["detail"].as_str().unwrap().contains("nested"));
    let mut no_base64 = rest_event("POST", "/projects/7/assets", Some("{}"));
    no_base64["isBase64Encoded"] = json!(true);
    assert_eq!(body(&api.raw(no_base64).await)["field"], "body");
}

#[tokio::test]
async fn bodies_in_base64_are_read() {
    let api = Api::new();
    let spec = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders"}).to_string();
    let mut event = rest_event("POST", "/projects/7/assets", Some(&base64(&spec)));
    event["isBase64Encoded"] = json!(true);
    assert_eq!(api.raw(event).await.status_code, 201);
}

#[tokio::test]
async fn events_of_an_http_api_are_served() {
    let api = Api::with_orders().await;
    let event = |path: &str, query: &str| {
        json!({
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {"authorization": format!("Bearer {TOKEN}")},
            "requestContext": {"http": {"method": "GET", "path": path}, "requestId": "JKJaXmPLvHcESHA=", "stage": "$default"},
            "isBase64Encoded": false,
        })
    };
    let response = api.raw(event("/projects/7/assets", "limit=1")).await;
    assert_eq!(body(&response)["items"][0]["key"], ORDERS);
    // An HTTP API decodes the path.
    let response = api.raw(event("/v1/projects/7/assets/paimon://ods_db/orders/state", "")).await;
    assert_eq!(body(&response)["key"], ORDERS);
    let response = api.raw(event("/projects/7/asset-events", "assetKey=paimon%3A%2F%2Fods_db%2Forders")).await;
    assert_eq!(response.status_code, 200);
}

#[tokio::test]
async fn an_empty_event_has_an_answer() {
    assert_eq!(Api::new().raw(json!({})).await.status_code, 401);
    assert_eq!(Api::new().raw(json!({"headers": null, "requestContext": null, "path": null})).await.status_code, 401);
}

#[tokio::test]
async fn what_is_away_is_said_with_a_time_to_come_back() {
    let api = Api::with_orders().await;
    api.world.tap.fault(Op::Query, 1, Fault::Before(ErrorKind::Unavailable));
    let response = api.get("/projects/7/assets").await;
    assert_eq!(response.headers["retry-after"], "2");
    golden("error-unavailable", &response);
    api.world.tap.fault(Op::Query, 1, Fault::Before(ErrorKind::Contention));
    assert_eq!(api.get("/projects/7/assets").await.status_code, 503);
    for (kind, status) in [(ErrorKind::Denied, 403), (ErrorKind::Damaged, 500), (ErrorKind::Defect, 500)] {
        api.world.tap.fault(Op::Query, 1, Fault::Before(kind));
        let response = api.get("/projects/7/assets").await;
        assert_eq!((response.status_code, &body(&response)["code"]), (status, &json!(kind.code())));
    }
}

/// A body as gzip, in base64 as a gateway hands it on.
fn compressed(bytes: &[u8], encoding: &str) -> Value {
    use base64::Engine as _;
    let mut event = rest_event("POST", "/projects/7/assets", None);
    event["body"] = json!(base64::engine::general_purpose::STANDARD.encode(bytes));
    event["isBase64Encoded"] = json!(true);
    event["headers"]["Content-Encoding"] = json!(encoding);
    event
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_bodies_are_bounded_after_decompression() {
    let api = Api::new();
    let spec = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders"}).to_string();
    let whole = gzip(spec.as_bytes());
    assert_eq!(api.raw(compressed(&whole, "gzip")).await.status_code, 201);
    // A gateway that decompresses leaves the header.
    assert_eq!(api.raw(compressed(spec.as_bytes(), "GZIP")).await.status_code, 200);
    assert_eq!(api.raw(compressed(spec.as_bytes(), "identity")).await.status_code, 200);
    // A thousandth of it is sent.
    let bomb = gzip(&vec![b' '; 64 * 1024 * 1024]);
    assert!(bomb.len() < 100_000, "{}", bomb.len());
    let refused = api.raw(compressed(&bomb, "gzip")).await;
    assert_eq!((refused.status_code, body(&refused)["limit"].as_u64()), (413, Some(1024 * 1024)));
    for (bytes, encoding, field) in [
        (&whole[..whole.len() - 9], "gzip", "body"),
        (&whole[..12], "gzip", "body"),
        (&b"\xff\xfe"[..], "gzip", "body"),
        (&whole[..], "br", "Content-Encoding"),
    ] {
        let refused = api.raw(compressed(bytes, encoding)).await;
        assert_eq!((refused.status_code, &body(&refused)["field"]), (400, &json!(field)), "{encoding} {}", bytes.len());
    }
}

/// A body that was cut off on its way changes nothing, wherever it was cut.
#[tokio::test]
async fn half_a_request_changes_nothing() {
    let api = Api::new();
    let spec = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders"}).to_string();
    for cut in 0..spec.len() {
        let answer = api.send("POST", "/projects/7/assets", Some(spec[..cut].to_owned())).await;
        assert_eq!((answer.status_code, &body(&answer)["field"]), (400, &json!("body")), "{cut}");
    }
    assert_eq!(body(&api.get("/projects/7/assets").await)["items"], json!([]));
}

#[tokio::test]
async fn every_limit_answers_with_its_number() {
    let api = Api::new();
    let limit = async |text: String| {
        let answer = api.send("POST", "/projects/7/asset-events", Some(text)).await;
        (answer.status_code, body(&answer)["limit"].as_u64())
    };
    assert_eq!(limit(format!("[{}]", "{},".repeat(500) + "{}")).await, (413, Some(500)));
    assert_eq!(limit("[".repeat(33)).await, (400, Some(32)));
    assert_eq!(limit(format!("\"{}\"", "x".repeat(8_193))).await, (400, Some(8_192)));
    assert_eq!(limit(" ".repeat(1024 * 1024 + 1)).await, (413, Some(1024 * 1024)));
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
