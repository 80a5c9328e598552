//! Asset keys come through the path whole, whatever the gateway does to it.

use lakebell_domain::asset::{AssetKey, Format};
use lakebell_push_api::path::{AWKWARD_TABLES, encode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::support::{Api, ORDERS, ORDERS_PATH, TOKEN, body, golden, rest_event};

/// The path of an asset in each form in which a function may see it.
fn paths(key: &AssetKey) -> [String; 2] {
    let sent = encode(key);
    let decoded = percent_decode_str(&sent).decode_utf8().unwrap().into_owned();
    [sent, decoded].map(|key| format!("/projects/7/assets/{key}"))
}

#[tokio::test]
async fn awkward_keys_come_back_as_they_went() {
    let api = Api::new();
    let keys: Vec<AssetKey> = AWKWARD_TABLES
        .iter()
        .enumerate()
        .flat_map(|(at, table)| {
            let branch = (at % 2 == 0).then_some("b@1/x");
            [(None, None), (Some("my catalog"), branch)]
                .map(|(catalog, branch)| AssetKey::new(Format::Paimon, catalog, "ods+db", table, branch).unwrap())
        })
        .collect();
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(api.register(&key.to_string(), &format!("t{at}")).await.status_code, 201, "{key}");
    }
    for (at, key) in keys.iter().enumerate() {
        let wanted = (key.to_string(), format!("s3://lake/warehouse/ods_db.db/t{at}"));
        for path in paths(key) {
            let found = body(&api.get(&format!("{path}/state")).await);
            assert_eq!((&found["key"], &found["location"]), (&json!(wanted.0), &json!(wanted.1)), "{path}");
            let response = api.send("POST", &format!("{path}/observe"), None).await;
            assert_eq!(response.status_code, 200, "{path}");
        }
        let listed = api.get(&format!("/projects/7/asset-events?assetKey={}", encode(key))).await;
        assert_eq!(listed.status_code, 200, "{key}");
        let encoded_twice =
            api.get(&format!("/projects/7/asset-events?assetKey={}", encode(key).replace('%', "%25"))).await;
        assert_eq!(encoded_twice.status_code, 200, "{key}");
    }
    for key in &keys {
        let [sent, _] = paths(key);
        assert_eq!(api.delete(&sent).await.status_code, 204, "{key}");
        assert_eq!(api.get(&format!("{sent}/state")).await.status_code, 404, "{key}");
    }
    let left = body(&api.get("/projects/7/assets").await);
    assert_eq!(left["items"], json!([]));
}

#[tokio::test]
async fn one_slash_and_double_encoding_are_forgiven() {
    let api = Api::with_orders().await;
    for key in [
        "paimon:/ods_db/orders",
        "paimon://ods_db/orders",
        "paimon%253A%252F%252Fods_db%252Forders",
        "paimon:%2F%2Fods_db%2Forders",
    ] {
        let response = api.get(&format!("/projects/7/assets/{key}/state")).await;
        assert_eq!(response.status_code, 200, "{key}");
    }
}

#[tokio::test]
async fn a_later_reading_is_never_taken_to_delete() {
    let api = Api::new();
    api.register("paimon://ods_db/a/b", "ab").await;
    let path = "/projects/7/assets/paimon%3A%2F%2Fods_db%2Fa%252Fb";
    assert_eq!(api.delete(path).await.status_code, 404);
    assert_eq!(body(&api.get("/projects/7/assets").await)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_no_key_is_refused() {
    let api = Api::new();
    golden("error-no-asset-key", &api.get("/projects/7/assets/orders/state").await);
    for key in ["mysql%3A%2F%2Fa%2Fb", "paimon%3A%2F%2Fa", "%FF", "paimon%3A%2F%2Fa%2F..", "paimon%3A%2F%2F%2F"] {
        let response = api.get(&format!("/projects/7/assets/{key}/state")).await;
        assert_eq!((response.status_code, &body(&response)["field"]), (400, &json!("assetKey")), "{key}");
    }
}

#[tokio::test]
async fn path_parameters_are_not_read() {
    let api = Api::with_orders().await;
    let mut event = rest_event("GET", &format!("{ORDERS_PATH}/state"), None);
    event["pathParameters"] = Value::Null;
    event["headers"] = json!({"authorization": format!("Bearer {TOKEN}")});
    assert_eq!(body(&api.raw(event).await)["key"], ORDERS);
}
