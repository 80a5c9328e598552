//! What writers alone can know, as the API takes it: a golden answer for each kind, settings of
//! assets, and the recorded samples of these kinds.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::support::{Api, BUCKET, ORDERS, ORDERS_PATH, PROJECT, body, cloud_event, golden, workspace};

const EVENTS: &str = "/projects/7/asset-events";
const LISTED: &str = "/projects/7/asset-events?assetKey=paimon%3A%2F%2Fods_db%2Forders";

/// An event about `orders`, which stands at its second snapshot.
fn event(id: &str, word: &str, data: &Value) -> Value {
    let mut all = json!({"asset": ORDERS});
    all.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    cloud_event(id, word, &all)
}

/// For each kind an event that has all it needs.
fn whole() -> Vec<(&'static str, Value)> {
    let check = json!({"snapshotId": 2, "check": "orders_suite", "runId": "0190a1b2", "runAt": "2026-01-15T10:00:00Z",
        "extra": {"evaluated": 912_345}});
    let failed = json!({"snapshotId": "2", "check": "nulls", "severity": "warn"});
    vec![
        ("quality.check.passed", check),
        ("quality.check.failed", failed),
        ("quality.check.errored", json!({"snapshotId": 3, "check": "orders_suite"})),
        ("schema.change.approved", json!({"schemaId": 1})),
        ("schema.change.rejected", json!({"schemaId": 2})),
        ("backfill.started", json!({"backfillId": "bf-7"})),
        ("backfill.completed", json!({"backfillId": "bf-7"})),
        ("cdc.lag.recovered", json!({})),
        ("watermark.advanced", json!({"watermark": "2026-01-15T10:00:00Z"})),
        ("tag.deleted", json!({"tag": "nightly"})),
        ("schema.changed", json!({"schemaId": 7})),
        ("history.rewritten", json!({})),
        ("table.created", json!({})),
        ("table.altered", json!({})),
        ("table.renamed", json!({"extra": {"previous": "orders_old"}})),
        ("table.dropped", json!({"extra": {"purge": false}})),
        ("job.status.changed", json!({"status": "FINISHED"})),
        ("partition.done", json!({"partition": "dt=20260115/hour=05"})),
    ]
}

/// Events as one batch, so that their answers stand in one golden file.
fn batch(events: &[(&'static str, Value)]) -> Value {
    let numbered = events.iter().enumerate().map(|(n, (word, data))| event(&format!("e{n}"), word, data));
    Value::Array(numbered.collect())
}

#[tokio::test]
async fn every_kind_is_taken_once() {
    let api = Api::with_orders().await;
    api.world.clock.advance(Duration::from_mins(1));
    golden("evidence", &api.post(EVENTS, &batch(&whole())).await);
    golden("evidence-again", &api.post(EVENTS, &batch(&whole())).await);
    golden("evidence-state", &api.get(&format!("{ORDERS_PATH}/state")).await);
    golden("evidence-events", &api.get(LISTED).await);
}

#[tokio::test]
async fn every_kind_says_what_it_lacks() {
    let api = Api::with_orders().await;
    let mut lacking: Vec<(&str, Value)> = whole().into_iter().map(|(word, _)| (word, json!({}))).collect();
    lacking.push(("quality.check.passed", json!({"check": "x".repeat(129)})));
    lacking.push(("quality.check.passed", json!({"check": "x", "checkStartedAt": "2027-01-01T00:00:00Z"})));
    lacking.push(("backfill.started", json!({"backfillId": "x".repeat(129)})));
    lacking.push(("table.created", json!({"extra": {"much": "x".repeat(5_000)}})));
    golden("evidence-lacking", &api.post(EVENTS, &batch(&lacking)).await);
}

#[tokio::test]
async fn lineage_of_a_job_is_shown_and_refuses_a_self_loop() {
    let api = Api::with_orders().await;
    let job = json!({"status": "FINISHED", "job": "spark/daily", "inputs": ["s3://lake/raw/clicks"], "outputs": [ORDERS],
        "workflow": "7/4711"});
    assert_eq!(api.post(EVENTS, &cloud_event("j1", "job.status.changed", &job)).await.status_code, 202);
    golden("lineage", &api.get(&format!("{ORDERS_PATH}/lineage")).await);
    let target = json!({"name": "dwd", "workflowDefinitionCode": 4711,
        "groups": [{"dependencies": [{"asset": ORDERS}]}]});
    golden("self-loop", &api.post("/projects/7/asset-dependencies", &target).await);
    for (query, field) in [("direction=sideways", "direction"), ("steps=9", "steps"), ("steps=x", "steps")] {
        let refused = api.get(&format!("{ORDERS_PATH}/lineage?{query}")).await;
        assert_eq!((refused.status_code, body(&refused)["field"].as_str()), (400, Some(field)));
    }
    for (change, field) in [
        (json!({"inputs": ["orders"]}), "data.inputs[0]"),
        (json!({"workflow": "4711"}), "data.workflow"),
        (json!({"triggerKey": "no key"}), "data.triggerKey"),
        (json!({"job": ""}), "data.job"),
        (json!({"outputs": vec![ORDERS; 65]}), "data.outputs"),
    ] {
        let mut wrong = job.clone();
        wrong.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = api.post(EVENTS, &cloud_event("j2", "job.status.changed", &wrong)).await;
        assert_eq!((refused.status_code, body(&refused)["field"].as_str()), (400, Some(field)), "{change}");
    }
}

#[tokio::test]
async fn one_verdict_is_answered_alone_and_starts_what_waits_for_it() {
    let api = Api::with_orders().await;
    let target = json!({"name": "dwd", "workflowDefinitionCode": 4711, "startFrom": "current",
        "groups": [{"dependencies": [{"asset": ORDERS, "qualityStatus": "PASSED"}]}]});
    let declared = api.post(&format!("{PROJECT}/asset-dependencies"), &target).await;
    assert_eq!(declared.status_code, 201, "{declared:?}");
    assert_eq!(api.dispatched(), 0);
    let passed = event("1", "quality.check.passed", &json!({"snapshotId": 2, "check": "rows"}));
    golden("verdict-stored", &api.post(EVENTS, &passed).await);
    assert_eq!(api.dispatched(), 1);
    golden("verdict-again", &api.post(EVENTS, &passed).await);
    let unnamed = json!({"check": "rows", "checkStartedAt": "2025-12-31T23:59:00Z"});
    golden("verdict-moved", &api.post(EVENTS, &event("2", "quality.check.failed", &unnamed)).await);
    let lacking = event("3", "quality.check.failed", &json!({"snapshotId": 2}));
    golden("error-event-check", &api.post(EVENTS, &lacking).await);
}

#[tokio::test]
async fn settings_are_registered_shown_and_changed() {
    let api = Api::with_orders().await;
    let location = format!("s3://{BUCKET}/warehouse/ods_db.db/orders");
    let with = |more: &Value| {
        let mut spec = json!({"key": ORDERS, "location": location});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let more =
        json!({"bindVerdict": "latest", "schemaApproval": "required", "watermarkFrom": "push", "trust": "storage"});
    let again = api.post("/projects/7/assets", &with(&more)).await;
    assert_eq!((again.status_code, &body(&again)["isNew"]), (200, &json!(false)));
    for shown in [body(&again), body(&api.get(&format!("{ORDERS_PATH}/state")).await)] {
        assert_eq!(shown["settings"], more);
        assert_eq!(shown["state"]["schema"]["approvalRequired"], true);
    }
    assert_eq!(body(&api.get("/projects/7/assets").await)["items"][0]["settings"], more);
    let other = api.post("/projects/8/assets", &with(&json!({}))).await;
    assert_eq!(other.status_code, 409);
    assert_eq!(body(&api.get(&format!("{ORDERS_PATH}/state")).await)["settings"], more);
    golden("error-setting", &api.post("/projects/7/assets", &with(&json!({"trust": "anybody"}))).await);
    golden("error-setting-later", &api.post("/projects/7/assets", &with(&json!({"catalog": "glue"}))).await);
    golden("error-scan-interval", &api.post("/projects/7/assets", &with(&json!({"scanInterval": "30s"}))).await);
    let scanned = json!({"scanInterval": "1m", "keepConsumer": true});
    assert_eq!(body(&api.post("/projects/7/assets", &with(&scanned)).await)["settings"]["scanInterval"], "1m");
    let again = api.post("/projects/7/assets", &with(&more)).await;
    assert_eq!(body(&again)["settings"], more, "what is left out is the default again");
    let watermark = event("1", "watermark.advanced", &json!({"watermark": 1_768_471_200_000_i64}));
    assert_eq!(body(&api.post(EVENTS, &watermark).await)["outcome"], "advanced");
}

/// The samples that stand beside a checkout, where there are any.
fn samples() -> Option<PathBuf> {
    let folder = workspace().join("../shared/samples");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: there are no samples beside the checkout");
    None
}

/// An event in the older form of the samples as one of this API; `None` for types that it does not have.
fn mapped(old: &Value) -> Option<Value> {
    let word = match old["type"].as_str()?.strip_prefix("io.lake-events.")?.strip_suffix(".v1")? {
        "quality.passed" => "quality.check.passed",
        "quality.failed" => "quality.check.failed",
        "schema.approved" => "schema.change.approved",
        "cdc.lag-recovered" => "cdc.lag.recovered",
        "job.started" | "job.checkpoint" | "flink.job.created" | "flink.job.status" => "job.status.changed",
        "flink.catalog.create-table" => "table.created",
        "flink.catalog.alter-table" => "table.altered",
        "flink.catalog.drop-table" => "table.dropped",
        other => other,
    };
    let from = &old["data"];
    let table = [&from["table"], &from["outputs"][0]].into_iter().find(|table| table["name"].is_string());
    let mut data = Map::new();
    let asset = table.map(|table| {
        let database = table["namespace"][0].as_str().unwrap_or("sales");
        format!(
            "{}://{database}/{}",
            table["format"].as_str().unwrap_or("paimon"),
            table["name"].as_str().unwrap_or_default()
        )
    });
    data.insert("asset".to_owned(), json!(asset.unwrap_or_else(|| "paimon://sales/orders".to_owned())));
    let fields = [
        ("snapshotId", &from["snapshot"]["id"]),
        ("check", &from["check"]["name"]),
        ("severity", &from["check"]["severity"]),
        ("runId", &from["run_id"]),
        ("schemaId", &from["schema"]["to_id"]),
        ("backfillId", &from["backfill"]["id"]),
        ("watermark", &from["watermark"]),
        ("tag", &from["tag"]["name"]),
    ];
    data.extend(
        fields.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value.clone())),
    );
    if word == "job.status.changed" {
        data.insert("status".to_owned(), old["type"].clone());
    }
    let mut event = old.clone();
    event["type"] = json!(format!("io.lakebell.{word}.v1"));
    match event.get("data_base64") {
        Some(_) if old.get("data").is_none() => {
            event["data_base64"] = json!(STANDARD.encode(Value::Object(data).to_string()));
        }
        _ => event["data"] = Value::Object(data),
    }
    Some(event)
}

/// Both tables that the samples are about, neither of which has a commit.
async fn with_sales() -> Api {
    let api = Api::new();
    for format in ["paimon", "iceberg"] {
        let spec =
            json!({"key": format!("{format}://sales/orders"), "location": format!("s3://{BUCKET}/{format}/orders")});
        assert_eq!(api.post("/projects/7/assets", &spec).await.status_code, 201);
    }
    api
}

#[tokio::test]
async fn recorded_samples_of_every_type_are_taken() {
    let Some(folder) = samples() else { return };
    let api = with_sales().await;
    let mut documents = Vec::new();
    for name in [
        "cloudevents/batch_all_types.json",
        "cloudevents/structured_snapshot_committed.json",
        "paimon/proposed_commit_callback_event.json",
        "paimon/proposed_tag_callback_event.json",
        "flink/proposed_listener_events.json",
    ] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        match serde_json::from_str(&text).unwrap() {
            Value::Array(events) => documents.extend(events),
            event => documents.push(event),
        }
    }
    let events: Vec<Value> = documents.iter().filter_map(mapped).collect();
    assert!(events.len() >= 15, "{} of {}", events.len(), documents.len());
    let answer = body(&api.post(EVENTS, &json!(events)).await);
    let mut advanced = Vec::new();
    for (event, item) in events.iter().zip(answer["items"].as_array().unwrap()) {
        assert_eq!(item["status"], "stored", "{event} gave {item}");
        assert!(item["outcome"].is_string(), "{item}");
        if item["outcome"] == "advanced" {
            advanced.push(event["type"].as_str().unwrap());
        } else if item["outcome"] == "ignored" {
            assert!(item["reason"].is_string(), "{item}");
        }
    }
    // Decisions, backfills and lag need no commit; there is none, so no verdict finds its version.
    let expected = ["schema.change.approved", "backfill.completed", "cdc.lag.recovered"];
    assert_eq!(advanced, expected.map(|word| format!("io.lakebell.{word}.v1")));
}

#[tokio::test]
async fn recorded_samples_that_are_wrong_are_refused() {
    let Some(folder) = samples() else { return };
    let api = with_sales().await;
    let text = std::fs::read_to_string(folder.join("cloudevents/invalid_cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    for case in &cases {
        let Some(event) = mapped(&case["event"]) else { continue };
        let response = api.post(EVENTS, &event).await;
        let why = case["why"].as_str().unwrap();
        assert_eq!(response.status_code, if why.starts_with("valid") { 202 } else { 400 }, "{why}: {response:?}");
        assert!(why.starts_with("valid") || body(&response)["field"].is_string(), "{why}: {response:?}");
    }
}
