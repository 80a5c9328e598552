//! One access line for each request; no payload, no token.

use lakebell_engine::ErrorKind;
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::support::{Api, ORDERS, ORDERS_PATH, TOKEN, cloud_event, logged};

#[tokio::test]
async fn each_request_has_one_access_line_without_payload() {
    let api = Api::new();
    let secret = "payload-that-nobody-logs";
    let spec = json!({"key": ORDERS, "location": "s3://lake/warehouse/ods_db.db/orders", "trust": secret});
    api.post("/projects/7/assets", &spec).await;
    api.register(ORDERS, "orders").await;
    let tag = cloud_event("1", "tag.created", &json!({"asset": ORDERS, "tag": secret}));
    api.send("POST", "/projects/7/asset-events", Some(tag.to_string())).await;
    api.work().await;
    api.post("/projects/7/asset-events", &json!({"specversion": secret})).await;
    api.get(&format!("{ORDERS_PATH}/state")).await;
    api.get("/projects/7/asset-trigger-history?status=payload-that-nobody-logs").await;
    api.get("/payload-that-nobody-logs").await;
    api.send("PAYLOAD-THAT-NOBODY-LOGS", "/connections", None).await;
    api.world.tap.fault(Op::Query, 1, Fault::Before(ErrorKind::Unavailable));
    api.get("/projects/7/assets").await;
    Api::with_token(Some("another")).get("/connections").await;

    let text = logged();
    assert!(!text.to_lowercase().contains(secret), "{text}");
    assert!(!text.contains(TOKEN), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let access: Vec<&Value> = lines.iter().filter(|line| line["fields"]["milliseconds"].is_u64()).collect();
    let statuses: Vec<u64> = access.iter().map(|line| line["fields"]["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [400, 201, 202, 400, 200, 400, 404, 405, 503, 401]);
    assert_eq!(access[4]["fields"]["route"], "/projects/{p}/assets/{assetKey}/state");
    assert!(access.iter().all(|line| line["span"]["traceId"].is_string()), "{text}");
    assert_eq!(access[8]["level"], "ERROR");
}
