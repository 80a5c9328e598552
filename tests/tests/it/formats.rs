//! Tables of the other formats with their real writers, through the deployed functions: pyiceberg with
//! a catalog, delta-rs, and the files of a Hudi table in the order in which its writer puts them.

use std::path::Path;

use jiff::Timestamp;
use lakebell_catalog_standin::CatalogStandin;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{LakeWriter, PATIENCE, Scene, Writer, in_path, until};

const WORKFLOW: i64 = 91;

impl Scene {
    /// A place in the lake.
    fn place(&self, table: &str) -> String {
        format!("s3://{}/e2e/{}/{table}", self.local.bucket, self.name)
    }

    async fn register_at(&self, key: &str, location: &str, more: &Value) {
        let mut spec = json!({"key": key, "location": location});
        for (name, value) in more.as_object().unwrap() {
            spec[name] = value.clone();
        }
        self.post("/assets", &spec).await.expect(&[201]);
    }

    async fn state_of(&self, key: &str) -> Value {
        self.get(&format!("/assets/{}/state", in_path(key))).await.ok()["state"].clone()
    }

    /// Waits until an asset's newest commit is this one.
    async fn is_at(&self, key: &str, snapshot: &Value) -> Value {
        let wanted = snapshot.as_str().map_or_else(|| snapshot.to_string(), str::to_owned);
        until(&format!("{key} to be at {wanted}"), PATIENCE, async || {
            let state = self.state_of(key).await;
            if state["table"]["snapshotId"] == wanted.as_str() { Ok(state) } else { Err(state) }
        })
        .await
    }

    async fn events_of(&self, key: &str) -> Vec<Value> {
        let page = self.get(&format!("/asset-events?limit=200&assetKey={}", in_path(key))).await.ok();
        page["items"].as_array().unwrap().clone()
    }

    /// A workflow of the deployed stand-in, on a connection of the test's own.
    async fn workflow(&self, name: &str) -> String {
        let connection = format!("deployed-{}", self.project);
        let url = json!({"url": self.local.scheduler_url, "tokenSecret": self.local.connection_secret});
        self.call(Method::PUT, &format!("/connections/{connection}"), Some(&url)).await.ok();
        let definition =
            json!({"project": self.project, "code": self.project + WORKFLOW, "name": name, "online": true});
        let route = format!("{}/_standin/definitions", self.local.scheduler_url);
        let request = self.http.post(route).json(&definition).header("token", &self.local.scheduler_token);
        request.send().await.unwrap().error_for_status().unwrap();
        connection
    }

    async fn secret(&self, name: &str, text: &Value) -> String {
        let credentials = aws_sdk_secretsmanager::config::Credentials::new(
            &self.local.access_key_id,
            &self.local.secret_access_key,
            None,
            None,
            "local",
        );
        let config = aws_sdk_secretsmanager::Config::builder()
            .behavior_version(aws_sdk_secretsmanager::config::BehaviorVersion::latest())
            .endpoint_url(&self.local.endpoint)
            .region(aws_sdk_secretsmanager::config::Region::new(self.local.region.clone()))
            .credentials_provider(credentials);
        let client = aws_sdk_secretsmanager::Client::from_conf(config.build());
        let name = format!("lakebell/e2e/catalogs/{}-{name}", self.name);
        client.create_secret().name(&name).secret_string(text.to_string()).send().await.unwrap();
        name
    }
}

/// Every object of a Hudi case, in the order in which its writer puts it: those of a commit after it.
fn hudi_objects(case: &str) -> (Vec<(String, Vec<u8>)>, Vec<Value>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/hudi").join(case);
    let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let object = |event: Value| {
        let body = event["body"].as_str()?;
        Some((event["rel"].as_str().unwrap().to_owned(), std::fs::read(folder.join(body)).unwrap()))
    };
    let expected: Value = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    (events.filter_map(object).collect(), expected["commits"].as_array().unwrap().clone())
}

#[tokio::test]
async fn commits_of_four_formats_by_their_writers_start_one_workflow() {
    let scene = scene!("formats");
    let (Some(mut paimon), Some(mut lake)) = (Writer::start(), LakeWriter::start(&scene.name)) else { return };
    if !scene.local.scheduler_is_standin {
        println!("skipped: the scheduler is not the stand-in");
        return;
    }
    let connection = scene.workflow("mixed").await;
    let database = scene.name.clone();
    let orders = scene.table("orders");
    paimon.create(&database, "orders").await;
    scene.register(&[&orders]).await;

    // Iceberg in the Glue of the local AWS.
    let [iceberg, delta, hudi] = ["iceberg", "delta", "hudi"].map(|format| format!("{format}://{database}/{format}"));
    let glue = [database.as_str(), "iceberg"];
    let place = json!({"location": scene.place("iceberg")});
    lake.iceberg("create", "glue", glue, &place).await;
    scene.register_at(&iceberg, &scene.place("iceberg"), &json!({"catalog": "glue"})).await;
    for (key, name) in [(&delta, "delta"), (&hudi, "hudi")] {
        scene.register_at(key, &scene.place(name), &json!({})).await;
    }
    let dependencies: Vec<Value> =
        [&orders.asset, &iceberg, &delta, &hudi].iter().map(|asset| json!({"asset": asset})).collect();
    let target = json!({
        "name": "mixed", "connection": connection, "workflowDefinitionCode": scene.project + WORKFLOW,
        "groups": [{"name": "g", "dependencies": dependencies}],
    });
    scene.declare(&target).await;

    let begun = Timestamp::now();
    paimon.append(&database, "orders", 10).await;
    let appended = lake.iceberg("append", "glue", glue, &json!({"rows": 3})).await;
    let version = lake.delta("append", &scene.place("delta"), &json!({"rows": 2})).await;
    let state = scene.is_at(&iceberg, &appended["snapshotId"]).await;
    assert_eq!(state["data"]["count"], 1, "{state}");
    scene.is_at(&delta, &json!(version)).await;
    assert!(scene.triggers("mixed").await.is_empty(), "one of them is missing");

    let (objects, commits) = hudi_objects("cow-layout-2");
    let root = format!("e2e/{database}/hudi");
    for (rel, body) in objects {
        orders.put(&format!("{root}/{rel}"), body).await;
    }
    scene.is_at(&hudi, &commits.last().unwrap()["snapshot_id"]).await;
    let trigger = scene.ended("mixed").await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger}");
    let ranges = trigger["ranges"].as_array().unwrap();
    let of = |key: &str| ranges.iter().find(|range| range["key"] == key).unwrap_or_else(|| panic!("{key}: {trigger}"));
    assert_eq!(of(&iceberg)["to"]["snapshotId"], appended["snapshotId"], "{trigger}");
    assert_eq!(of(&delta)["to"]["snapshotId"], version.to_string(), "{trigger}");
    assert!(ranges.len() == 4 && ranges.iter().all(|range| range["from"].is_null()), "{trigger}");
    println!("four formats: {} ms to the started workflow", Timestamp::now().as_millisecond() - begun.as_millisecond());

    // Every data commit of Hudi counts, whether the trigger took it or it waits for the others.
    let data = commits.iter().filter(|commit| commit["changes_data"] != json!(false)).count();
    let state = scene.state_of(&hudi).await;
    assert_eq!(state["data"]["count"], json!(data), "{state}");
}

#[tokio::test]
async fn a_rest_catalog_with_oauth2_decides_and_its_losers_are_reported() {
    let scene = scene!("catalog");
    let Some(mut lake) = LakeWriter::start(&scene.name) else { return };
    let catalog = CatalogStandin::start().await.unwrap();
    catalog.require_client("lakebell", "e2e", Some(3_600));
    let secret = json!({"url": catalog.url(), "clientId": "lakebell", "clientSecret": "e2e"});
    let secret = scene.secret("rest", &secret).await;
    let (key, table) = (format!("iceberg://{}/orders", scene.name), [scene.name.as_str(), "orders"]);
    // What pyiceberg's own catalog says is what the stand-in serves.
    let point = |stands: &Value| catalog.point(&scene.name, "orders", stands["metadata"].as_str().unwrap());
    let place = json!({"location": scene.place("orders")});
    point(&lake.iceberg("create", "sql", table, &place).await);
    let rest = json!({"catalog": {"type": "rest", "url": catalog.url(), "warehouse": "e2e", "secret": secret}});
    scene.register_at(&key, &scene.place("orders"), &rest).await;
    let first = lake.iceberg("append", "sql", table, &json!({"rows": 3})).await;
    point(&first);
    let state = scene.is_at(&key, &first["snapshotId"]).await;
    assert!(state["trouble"].is_null() && state["data"]["count"] == 1, "{state}");

    // The catalog takes it long after its file is there: only then it counts.
    let late = lake.iceberg("append", "sql", table, &json!({"rows": 1})).await;
    scene.hints_are_handled().await;
    assert_eq!(scene.state_of(&key).await["data"]["count"], 1);
    point(&late);
    scene.is_at(&key, &late["snapshotId"]).await;

    let won = lake.iceberg("lose", "sql", table, &json!({"rows": 2})).await;
    point(&won);
    let state = scene.is_at(&key, &won["snapshotId"]).await;
    assert!(state["hold"].is_null(), "{state}");
    assert_eq!(state["data"]["count"], 3, "{state}");
    until("the loser to be reported", PATIENCE, async || {
        let events = scene.events_of(&key).await;
        let told = events.iter().any(|event| event.to_string().contains("lost a race"));
        if told { Ok(()) } else { Err(events) }
    })
    .await;

    // A catalog that is away is trouble and no rewrite.
    catalog.expire_tokens();
    let back = lake.iceberg("rollback", "sql", table, &json!({})).await;
    for _ in 0..200 {
        catalog.fault(lakebell_catalog_standin::Fault::Status(503));
    }
    scene.post(&format!("/assets/{}/observe", in_path(&key)), &json!({})).await.expect(&[503]);
    let state = scene.state_of(&key).await;
    assert_eq!((&state["trouble"]["code"], &state["hold"]), (&json!("CATALOG_AWAY"), &Value::Null), "{state}");
    catalog.heal();
    point(&back);
    until("the rollback to be held", PATIENCE, async || {
        scene.post(&format!("/assets/{}/observe", in_path(&key)), &json!({})).await.ok();
        let state = scene.state_of(&key).await;
        if state["hold"].is_null() { Err(state) } else { Ok(()) }
    })
    .await;
}

#[tokio::test]
async fn a_restored_delta_table_goes_on_as_a_new_version() {
    let scene = scene!("delta");
    let Some(mut lake) = LakeWriter::start(&scene.name) else { return };
    let (key, place) = (format!("delta://{}/orders", scene.name), scene.place("orders"));
    scene.register_at(&key, &place, &json!({})).await;
    for _ in 0..3 {
        lake.delta("append", &place, &json!({"rows": 2})).await;
    }
    let version = lake.delta("restore", &place, &json!({"version": 0})).await;
    assert_eq!(version, 3);
    let state = scene.is_at(&key, &json!(version)).await;
    assert!(state["hold"].is_null() && state["data"]["count"] == 4, "{state}");
}
