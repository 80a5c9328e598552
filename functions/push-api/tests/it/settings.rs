//! Connections and warehouses.

use serde_json::json;

use crate::support::{Api, BUCKET, Change, body, golden};

#[tokio::test]
async fn connections_are_put_listed_and_deleted() {
    let api = Api::new();
    let spec = json!({
        "url": "https://scheduler.internal:12345/dolphinscheduler",
        "version": "3.2",
        "tokenSecret": "lakebell/dev/connections/default",
        "user": "lakebell",
    });
    golden("connection", &api.put("/connections/default", &spec).await);
    let plain = json!({"url": "http://127.0.0.1:12345/dolphinscheduler", "tokenSecret": "x"});
    assert_eq!(body(&api.put("/connections/another", &plain).await)["version"], "auto");
    golden("connections", &api.get("/connections").await);
    golden("connection-deleted", &api.delete("/connections/default").await);
    assert_eq!(api.delete("/connections/default").await.status_code, 204);
    assert_eq!(body(&api.get("/connections").await)["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn wrong_connections_name_the_field() {
    let api = Api::new();
    let right = json!({"url": "https://scheduler.internal/dolphinscheduler", "tokenSecret": "x"});
    let table: [(Change, &str); 7] = [
        (|spec| spec["url"] = json!("ftp://x"), "url"),
        (|spec| spec["url"] = json!("https://user:password@x"), "url"),
        (|spec| spec["version"] = json!("2.0"), "version"),
        (|spec| spec["tokenSecret"] = json!("not a name"), "tokenSecret"),
        (|spec| spec["tokenSecret"] = json!(""), "tokenSecret"),
        (|spec| spec["user"] = json!(""), "user"),
        (|spec| spec["name"] = json!("default"), "name"),
    ];
    for (change, field) in table {
        let mut spec = right.clone();
        change(&mut spec);
        let response = api.put("/connections/default", &spec).await;
        assert_eq!((response.status_code, &body(&response)["field"]), (400, &json!(field)), "{response:?}");
    }
    assert_eq!(body(&api.put("/connections/a%20b", &right).await)["field"], "name");
    assert_eq!(body(&api.delete("/connections/a%20b").await)["field"], "name");
}

#[tokio::test]
async fn a_warehouse_brings_its_tables() {
    let api = Api::new();
    api.load_orders();
    api.world.storage.put(BUCKET, "warehouse/ods_db.db/payments/schema/schema-0", "{}");
    api.world.storage.put(BUCKET, "warehouse/not-a-database/x/schema/schema-0", "{}");
    let warehouse = json!({"location": "s3://lake/warehouse", "format": "paimon", "project": 7});
    golden("warehouse-discovered", &api.put("/warehouses", &warehouse).await);
    let again = body(&api.put("/warehouses", &warehouse).await);
    assert_eq!((&again["registered"], &again["known"]), (&json!([]), &json!(2)));
    golden("warehouses", &api.get("/warehouses").await);
    golden("warehouse-deleted", &api.delete("/warehouses?location=s3%3A%2F%2Flake%2Fwarehouse").await);
    assert_eq!(body(&api.get("/warehouses").await)["items"], json!([]));
    assert_eq!(body(&api.get("/projects/7/assets").await)["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_table_that_cannot_be_registered_is_named_with_its_reason() {
    let api = Api::new();
    api.load_orders();
    let elsewhere = json!({"key": "paimon://ods_db/orders", "location": "s3://lake/elsewhere"});
    assert_eq!(api.post("/projects/7/assets", &elsewhere).await.status_code, 201);
    let warehouse = json!({"location": "s3://lake/warehouse", "format": "paimon", "project": 7});
    let found = body(&api.put("/warehouses", &warehouse).await);
    let refused = &found["refused"][0];
    assert_eq!(refused["location"], "s3://lake/warehouse/ods_db.db/orders", "{found}");
    assert!(refused["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{found}");
}

#[tokio::test]
async fn wrong_warehouses_name_the_field() {
    let api = Api::new();
    let table = [
        (json!({"location": "s3://lake/w"}), "format"),
        (json!({"location": "s3://lake/w", "format": "parquet"}), "format"),
        (json!({"location": "lake/w", "format": "paimon"}), "location"),
        (json!({"location": "s3://lake/w", "format": "paimon", "catalog": ""}), "catalog"),
        (json!({"location": "s3://lake/w", "format": "paimon", "project": -1}), "project"),
        (json!({"location": "s3://lake/w", "format": "paimon", "scanInterval": "1m"}), "scanInterval"),
    ];
    for (warehouse, field) in table {
        let response = api.put("/warehouses", &warehouse).await;
        assert_eq!((response.status_code, &body(&response)["field"]), (400, &json!(field)), "{response:?}");
    }
    assert_eq!(body(&api.delete("/warehouses").await)["field"], "location");
    assert_eq!(body(&api.delete("/warehouses?location=x").await)["field"], "location");
}
