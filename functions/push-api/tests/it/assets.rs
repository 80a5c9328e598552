//! Register, list, read, look, delete.

use std::time::Duration;

use lakebell_domain::ids::ProjectCode;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::ports::storage::TableStorage;
use lakebell_engine::records::Unregistered;
use lakebell_engine::store;
use serde_json::{Value, json};

use crate::support::{Api, BUCKET, ORDERS, ORDERS_PATH, ORDERS_PREFIX, PROJECT, body, golden};

#[tokio::test]
async fn an_asset_is_registered_once() {
    let api = Api::new();
    api.load_orders();
    let spec = json!({"key": ORDERS, "location": "s3a://lake/warehouse//ods_db.db/orders/"});
    golden("asset-registered", &api.post("/projects/7/assets", &spec).await);
    golden("asset-registered-again", &api.post("/projects/7/assets", &spec).await);
}

#[tokio::test]
async fn a_table_that_cannot_be_read_is_registered_with_its_trouble() {
    let api = Api::new();
    api.world.storage.deny(BUCKET);
    golden("asset-registered-unreadable", &api.register(ORDERS, "orders").await);
}

#[tokio::test]
async fn two_assets_on_one_location_are_refused() {
    let api = Api::with_orders().await;
    golden("error-location-taken", &api.register("paimon://ods_db/others", "orders").await);
    let moved = api.register(ORDERS, "elsewhere").await;
    assert_eq!((moved.status_code, &body(&moved)["field"]), (409, &json!("key")));
    let spec = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders"});
    golden("error-of-another-project", &api.post("/projects/8/assets", &spec).await);
}

#[tokio::test]
async fn wrong_specs_name_the_field() {
    let api = Api::new();
    let spec = json!({"key": "orders", "location": "s3://lake/x/y"});
    golden("error-malformed-key", &api.post("/projects/7/assets", &spec).await);
    let table = [
        (json!({"key": ORDERS}), "location"),
        (json!({"key": ORDERS, "location": "/tmp/x"}), "location"),
        (json!({"key": ORDERS, "location": "s3://lake"}), "location"),
        (json!({"key": ORDERS, "location": "s3://lake/x", "trust": "anybody"}), "trust"),
        (json!({"key": ORDERS, "location": "s3://lake/x", "bindVerdict": "sometimes"}), "bindVerdict"),
        (json!({"key": ORDERS, "location": "s3://lake/x", "scanInterval": "59s"}), "scanInterval"),
        (json!({"key": ORDERS, "location": "s3://lake/x", "catalog": "glue"}), "catalog"),
        (json!({"key": ORDERS, "location": "s3://lake/x", "keepConsumer": "yes"}), "keepConsumer"),
        (json!({"key": "delta://a/b", "location": "s3://lake/x", "keepConsumer": true}), "keepConsumer"),
        (json!({"key": ORDERS, "location": "s3://lake/x", "watermark": "x"}), "watermark"),
        (json!({"key": format!("paimon://a/{}", "x".repeat(600)), "location": "s3://lake/x"}), "key"),
        (json!({"key": "auto://a/b", "location": "s3://lake/x"}), "key"),
        (json!({"key": "auto://b", "location": "s3://lake/x"}), "key"),
        (json!([ORDERS, "s3://lake/x"]), "body"),
    ];
    for (spec, field) in table {
        let response = api.post("/projects/7/assets", &spec).await;
        assert_eq!((response.status_code, &body(&response)["field"]), (400, &json!(field)), "{response:?}");
        assert!(body(&response)["hint"].is_string(), "{response:?}");
    }
}

#[tokio::test]
async fn a_key_may_leave_the_format_to_the_table() {
    let api = Api::new();
    api.load_orders();
    let spec = json!({"key": ORDERS.replace("paimon", "auto"), "location": "s3://lake/warehouse/ods_db.db/orders"});
    let first = api.post("/projects/7/assets", &spec).await;
    assert_eq!((first.status_code, &body(&first)["key"]), (201, &json!(ORDERS)), "{first:?}");
    let again = api.post("/projects/7/assets", &spec).await;
    assert_eq!((again.status_code, &body(&again)["id"]), (200, &body(&first)["id"]));
    // Nothing is said of another project's table.
    let other = api.post("/projects/8/assets", &spec).await;
    assert_eq!((other.status_code, &body(&other)["code"]), (409, &json!("GRANT_REQUESTED")), "{other:?}");
}

#[tokio::test]
async fn assets_are_listed_page_by_page() {
    let api = Api::with_orders().await;
    api.register("paimon://ods_db/payments", "payments").await;
    golden("assets", &api.get("/projects/7/assets").await);
    let first = body(&api.get("/projects/7/assets?limit=1").await);
    assert_eq!(first["items"][0]["key"], ORDERS);
    let next = first["next"].as_str().unwrap();
    let second = body(&api.get(&format!("/projects/7/assets?limit=1&after={next}")).await);
    assert_eq!((&second["items"][0]["key"], &second["next"]), (&json!("paimon://ods_db/payments"), &json!(null)));
    assert_eq!(body(&api.get("/projects/8/assets").await)["items"], json!([]));
}

#[tokio::test]
async fn a_state_is_read() {
    let api = Api::with_orders().await;
    golden("asset-state", &api.get(&format!("{ORDERS_PATH}/state")).await);
    golden("error-unknown-asset", &api.get("/projects/7/assets/paimon%3A%2F%2Fods_db%2Forder/state").await);
    let other = api.get(&format!("{ORDERS_PATH}/state").replace("/7/", "/8/")).await;
    assert_eq!(other.status_code, 404);
}

#[tokio::test]
async fn assets_without_a_project_are_everybodys() {
    let api = Api::new();
    let ports = api.world.quiet_ports();
    let spec = AssetSpec::new(ORDERS.parse().unwrap(), "s3://lake/warehouse/ods_db.db/orders".parse().unwrap());
    let trace = store::new_trace(&*ports.random).unwrap();
    assets::register(&ports, ProjectCode(0), &spec, &trace).await.unwrap();
    for project in ["7", "8"] {
        let path = ORDERS_PATH.replace("/7/", &format!("/{project}/"));
        assert_eq!(api.get(&format!("{path}/state")).await.status_code, 200);
        let listed = body(&api.get(&format!("/projects/{project}/assets")).await);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_look_finds_what_is_new() {
    let api = Api::with_orders().await;
    api.load_orders();
    golden("asset-observed", &api.send("POST", &format!("{ORDERS_PATH}/observe"), None).await);
    let again = body(&api.send("POST", &format!("{ORDERS_PATH}/observe"), None).await);
    assert_eq!(again["outcomes"], json!([{"kind": "SNAPSHOT_COMMITTED", "outcome": "duplicate"}]));
}

#[tokio::test]
async fn a_rewrite_is_accepted_once_it_is_certain() {
    let api = Api::with_orders().await;
    let accept = format!("{ORDERS_PATH}/accept-rewrite");
    golden("error-nothing-held", &api.send("POST", &accept, None).await);
    // Rolled back to snapshot 1, and written again.
    let key = format!("{ORDERS_PREFIX}snapshot/snapshot-2");
    let object = api.world.storage.get(BUCKET, &key, 1 << 20).await.unwrap().unwrap();
    let text = String::from_utf8(object.bytes).unwrap();
    let mut snapshot: serde_json::Value = serde_json::from_str(&text).unwrap();
    snapshot["commitUser"] = json!("somebody-else");
    snapshot["uuid"] = json!("00000000-0000-4000-8000-000000000000");
    api.world.storage.put(BUCKET, &key, snapshot.to_string());
    let look = format!("{ORDERS_PATH}/observe");
    assert_eq!(api.send("POST", &look, None).await.status_code, 200);
    let refused = api.send("POST", &accept, None).await;
    assert_eq!((refused.status_code, &body(&refused)["code"]), (409, &json!("CONFLICT")));
    api.world.clock.advance(Duration::from_secs(61));
    assert_eq!(api.send("POST", &look, None).await.status_code, 200);
    golden("rewrite-accepted", &api.send("POST", &accept, None).await);
}

#[tokio::test]
async fn a_deleted_asset_is_gone_and_can_come_back() {
    let api = Api::with_orders().await;
    golden("asset-deleted", &api.delete(ORDERS_PATH).await);
    assert_eq!(api.delete(ORDERS_PATH).await.status_code, 404);
    for path in ["state", "observe", "accept-rewrite"] {
        let method = if path == "state" { "GET" } else { "POST" };
        assert_eq!(api.send(method, &format!("{ORDERS_PATH}/{path}"), None).await.status_code, 404, "{path}");
    }
    assert_eq!(api.register(ORDERS, "orders").await.status_code, 201);
}

#[tokio::test]
async fn tables_seen_and_not_registered_are_listed() {
    let api = Api::new();
    let ports = api.world.quiet_ports();
    let seen = Unregistered {
        location: "s3://lake/warehouse/ods_db.db/strangers".to_owned(),
        project: None,
        format: Some("paimon".parse().unwrap()),
        first_seen: "2026-01-01T00:00:00Z".parse().unwrap(),
        object: "s3://lake/warehouse/ods_db.db/strangers/snapshot/snapshot-1".to_owned(),
        reason: "no asset and no warehouse is registered at this location".to_owned(),
    };
    assert!(assets::remember_unregistered(&ports, &seen).await.unwrap());
    golden("unregistered-assets", &api.get(&format!("{PROJECT}/unregistered-assets")).await);
}

#[tokio::test]
async fn one_asset_is_read_without_its_registers() {
    let api = Api::with_orders().await;
    let answer = api.get(ORDERS_PATH).await;
    golden("asset", &answer);
    let shown = body(&answer);
    assert_eq!((&shown["key"], &shown["state"]), (&json!(ORDERS), &Value::Null));
    assert_eq!(api.get(&format!("{PROJECT}/assets/{ORDERS}")).await.status_code, 200, "a key that came decoded");
    assert_eq!(api.get("/projects/8/assets/paimon%3A%2F%2Fods_db%2Forders").await.status_code, 404);
}

#[tokio::test]
async fn lists_are_filtered() {
    let api = Api::with_orders().await;
    let keys = async |query: &str| -> Vec<Value> {
        let items = body(&api.get(&format!("{PROJECT}/assets{query}")).await)["items"].as_array().unwrap().clone();
        items.into_iter().map(|item| item["key"].clone()).collect()
    };
    assert_eq!(keys("?format=paimon").await, [ORDERS]);
    assert!(keys("?format=delta").await.is_empty());
    assert_eq!(keys("?prefix=paimon://ods_db/or").await, [ORDERS]);
    assert!(keys("?prefix=paimon://dw").await.is_empty());
    let wrong = api.get(&format!("{PROJECT}/assets?format=csv")).await;
    assert_eq!((wrong.status_code, &body(&wrong)["field"]), (400, &json!("format")));
    let events = format!("{PROJECT}/asset-events?assetKey=paimon%3A%2F%2Fods_db%2Forders");
    let count =
        async |query: &str| body(&api.get(&format!("{events}{query}")).await)["items"].as_array().unwrap().len();
    let all = count("").await;
    let taken = count("&kind=SNAPSHOT_COMMITTED&outcome=advanced").await;
    assert!(taken > 0 && taken <= all, "{taken} of {all}");
    assert_eq!(count("&kind=TAG_CREATED").await, 0);
    api.post(&format!("{PROJECT}/asset-dependencies"), &crate::support::target("dwd", 5)).await;
    let targets = async |query: &str| {
        let listed = body(&api.get(&format!("{PROJECT}/asset-dependencies{query}")).await);
        listed["items"].as_array().unwrap().len()
    };
    assert_eq!((targets("?workflow=5").await, targets("?workflow=6").await), (1, 0));
    assert_eq!((targets("?verdict=WAITING").await, targets("?verdict=ready").await), (1, 0));
}
