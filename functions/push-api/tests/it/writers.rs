//! Writers in forms of their own: the answers that their senders know, and what becomes of what they send.

use lakebell_domain::access::Right;
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::ErrorKind;
use lakebell_engine::access::{self, Carried};
use lakebell_push_api::event::GatewayResponse;
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::support::{Api, BUCKET, ORDERS, ORDERS_PATH, body, cloud_event, golden, rest_event, workspace};

const PROJECT: Option<ProjectCode> = Some(ProjectCode(7));
const EVENTS: &str = "/projects/7/asset-events";

/// An answer that is kept once for several routes.
fn without_trace(mut answer: GatewayResponse) -> GatewayResponse {
    answer.headers.remove("x-lakebell-trace-id");
    answer
}

/// A payload of the project's own.
fn payload(name: &str) -> Value {
    let path = workspace().join("fixtures/writers").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// An event of OpenLineage about `orders`, as the clients send it.
fn lineage(kind: &str, version: &str) -> Value {
    let mut event = payload("openlineage/complete_with_version.json");
    event["eventType"] = json!(kind);
    event["outputs"] = json!([{"namespace": format!("s3://{BUCKET}"), "name": "warehouse/ods_db.db/orders",
        "facets": {"version": {"datasetVersion": version}, "symlinks": {"identifiers": [
            {"namespace": "hive://Metastore:9083", "name": "ods_db.orders", "type": "TABLE"},
            {"namespace": "hive://metastore:9083", "name": "other.name", "type": "TABLE"}]}}}]);
    event["inputs"] = json!([{"namespace": format!("s3://{BUCKET}"), "name": "raw/clicks/dt=1"}]);
    event
}

impl Api {
    /// Posts with a token in the path.
    async fn hook(&self, token: &str, hook: &str, body: &str) -> GatewayResponse {
        let mut event = rest_event("POST", &format!("/w/{token}/{hook}"), Some(body));
        event["headers"] = json!({"Content-Type": "application/json"});
        self.raw(event).await
    }

    /// What became of an event, once it is worked on.
    async fn became(&self, response: &GatewayResponse) -> Value {
        self.work().await;
        let receipt = body(response)["receipt"].as_str().unwrap().to_owned();
        body(&self.get(&format!("{EVENTS}/{receipt}")).await)
    }
}

fn outcomes(told: &Value) -> Vec<String> {
    let of = |one: &Value| {
        let kind = one["kind"].as_str().unwrap_or("-");
        format!("{kind} {}", one["outcome"].as_str().unwrap())
    };
    told["outcomes"].as_array().unwrap().iter().map(of).collect()
}

#[tokio::test]
async fn openlineage_is_answered_as_its_clients_know_it() {
    let api = Api::with_orders().await;
    api.load_orders();
    let token = api.make_token(PROJECT, &[Right::Evidence], Carried::Header).await;
    let send = async |path: &str, event: &Value| {
        let mut request = rest_event("POST", path, Some(&event.to_string()));
        request["headers"] = json!({"Authorization": format!("Bearer {token}"), "Content-Type": "application/json"});
        api.raw(request).await
    };
    let answer = send("/api/v1/lineage", &lineage("COMPLETE", "4")).await;
    golden("openlineage", &answer);
    let told = api.became(&answer).await;
    assert_eq!(outcomes(&told), ["- lineage", "JOB_STATUS_CHANGED ignored", "SNAPSHOT_COMMITTED advanced"], "{told}");
    golden("openlineage-lineage", &api.get(&format!("{ORDERS_PATH}/lineage")).await);
    golden("openlineage-aliases", &api.get(&format!("{ORDERS_PATH}/aliases")).await);
    let mut wrong = lineage("COMPLETE", "4");
    wrong["run"] = json!({});
    let batch = json!([lineage("START", "4"), wrong, 5, lineage("COMPLETE", "9")]);
    golden("openlineage-batch", &send("/api/v1/lineage/batch", &batch).await);
    golden("openlineage-refused", &send("/api/v1/lineage", &wrong).await);
    // 503 with a pause is what its clients send again.
    api.world.tap.fault(Op::Write, 1, Fault::Before(ErrorKind::Unavailable));
    let away = send("/api/v1/lineage", &lineage("ABORT", "4")).await;
    assert_eq!((away.status_code, away.headers.get("retry-after").map(String::as_str)), (503, Some("2")));
}

/// A shared sample, where it is there.
fn shared(name: &str) -> Option<Value> {
    let path = workspace().join("../shared/samples").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: the shared samples are not there");
        return None;
    };
    Some(serde_json::from_str(&text.replace("io.lake-events.", "io.lakebell.")).unwrap())
}

#[tokio::test]
async fn recorded_requests_of_the_real_client_are_taken() {
    let api = Api::new();
    let mut receipts = Vec::new();
    for (name, field) in [("request_plain", "body_utf8"), ("request_gzip", "body_base64")] {
        let Some(recorded) = shared(&format!("openlineage/http/{name}.json")) else { return };
        let mut event = rest_event("POST", recorded["path"].as_str().unwrap(), recorded[field].as_str());
        event["headers"] = recorded["headers"].clone();
        event["headers"]["Authorization"] = json!(format!("Bearer {}", crate::support::TOKEN));
        event["isBase64Encoded"] = json!(field == "body_base64");
        let answer = api.raw(event).await;
        assert_eq!(answer.status_code, 201, "{name}: {}", answer.body);
        receipts.push(body(&answer)["receipt"].clone());
    }
    let Some(mut gateway) = shared("aws/apigw_http_v2_openlineage_gzip_base64.json") else { return };
    gateway["headers"]["authorization"] = json!(format!("Bearer {}", crate::support::TOKEN));
    receipts.push(body(&api.raw(gateway).await)["receipt"].clone());
    assert!(receipts.iter().all(|receipt| *receipt == receipts[0]), "one event, however it came: {receipts:?}");
}

#[tokio::test]
async fn a_confirmed_name_finds_its_table() {
    let api = Api::with_orders().await;
    let mut event = lineage("COMPLETE", "2");
    event["outputs"] = json!([{"namespace": "hive://metastore:9083", "name": "other.name"}]);
    let path = format!("{ORDERS_PATH}/aliases");
    let refused = api.post(&path, &json!({"catalog": "hive://metastore:9083", "path": [""]})).await;
    assert_eq!((refused.status_code, body(&refused)["field"].as_str()), (400, Some("path")));
    let answer = api.post("/api/v1/lineage", &event).await;
    assert_eq!(outcomes(&api.became(&answer).await)[1..], ["JOB_STATUS_CHANGED unknown", "SNAPSHOT_COMMITTED unknown"]);
    let seen = body(&api.get("/projects/7/unregistered-assets").await);
    assert!(seen["items"].to_string().contains("hive://metastore:9083 other.name"), "{seen}");
    golden(
        "alias-confirmed",
        &api.post(&path, &json!({"catalog": "hive://Metastore:9083/", "path": ["Other", "name"]})).await,
    );
    let again = api.became(&api.post("/api/v1/lineage", &event).await).await;
    assert_eq!(outcomes(&again)[1..], ["JOB_STATUS_CHANGED ignored", "SNAPSHOT_COMMITTED duplicate"], "{again}");
    let seen = body(&api.get("/projects/7/unregistered-assets").await);
    assert_eq!(seen["items"], json!([]), "what waited under the name was worked on");
}

#[tokio::test]
async fn no_job_of_paimon_fails_because_of_its_report() {
    let api = Api::with_orders().await;
    let token = api.make_token(PROJECT, &[Right::Evidence], Carried::Path).await;
    let report = json!({"params": null, "table": "ods_db.orders", "path": format!("s3://{BUCKET}/warehouse/ods_db.db/orders"),
        "partition": "dt=20260115/hour=05/"});
    let unknown = json!({"table": "ods_db.nowhere", "path": format!("s3://{BUCKET}/warehouse/ods_db.db/nowhere"),
        "partition": "dt=1/"});
    let send = async |body: &str| api.hook(&token, "paimon/partition-done", body).await;
    let success = json!({"result": "SUCCESS"});
    for text in [&report.to_string(), &report.to_string(), &unknown.to_string(), "", "no json", "{\"path\": 1}"] {
        let answer = send(text).await;
        assert_eq!((answer.status_code, body(&answer)), (200, success.clone()), "{text}");
    }
    let huge = format!("{{\"path\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    assert_eq!(body(&send(&huge).await), success);
    api.work().await;
    let state = body(&api.get(&format!("{ORDERS_PATH}/state")).await);
    assert!(state["state"].to_string().contains("dt=20260115/hour=05"), "the partition is done: {state}");
    // Nothing could be stored: the one case in which its writer has to try again.
    api.world.tap.fault(Op::Write, 1, Fault::Before(ErrorKind::Unavailable));
    let away = send(&json!({"path": "s3://lake/warehouse/x", "partition": "dt=2"}).to_string()).await;
    assert_eq!((away.status_code, away.headers.contains_key("retry-after")), (503, true));
    // A token that has ended is answered alike, and leads to nothing.
    let id = token.split('_').nth(1).unwrap().parse().unwrap();
    access::revoke(&api.world.ports(), PROJECT, &id).await.unwrap();
    api.world.clock.advance(std::time::Duration::from_secs(301));
    let late = json!({"path": format!("s3://{BUCKET}/warehouse/ods_db.db/orders"), "partition": "dt=20260116/hour=00"});
    assert_eq!(body(&send(&late.to_string()).await), success);
    api.work().await;
    let state = body(&api.get(&format!("{ORDERS_PATH}/state")).await);
    assert!(!state.to_string().contains("dt=20260116"), "{state}");
    golden("quarantine", &api.get("/projects/7/quarantine?limit=1").await);
    let quarantined = body(&api.get("/projects/7/quarantine").await);
    let reasons: Vec<&str> =
        quarantined["items"].as_array().unwrap().iter().map(|item| item["reason"].as_str().unwrap()).collect();
    assert!(reasons[0].starts_with("the token is not good any more"), "{reasons:?}");
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    // A token that never was is nobody's.
    assert_eq!(api.hook("lakebell_0123456789abcdef_00", "paimon/partition-done", "{}").await.status_code, 401);
}

#[tokio::test]
async fn hudi_and_iceberg_tell_of_commits() {
    let api = Api::with_orders().await;
    let in_path = api.make_token(PROJECT, &[Right::Evidence], Carried::Path).await;
    let in_header = api.make_token(PROJECT, &[Right::Evidence], Carried::Header).await;
    for (hook, name) in [("hudi/commit", "hudi/commit.json"), ("iceberg/metrics", "iceberg/commit.json")] {
        let text = payload(name).to_string();
        golden("hook-success", &without_trace(api.hook(&in_path, hook, &text).await));
        let mut event = rest_event("POST", &format!("/api/v1/{hook}"), Some(&text));
        event["headers"] = json!({"HUDI-CALLBACK-KEY": in_header});
        let answer = api.raw(event).await;
        assert_eq!((answer.status_code, body(&answer)), (200, json!({"result": "SUCCESS"})), "{hook}");
    }
    api.work().await;
    let seen = body(&api.get("/projects/7/unregistered-assets").await);
    let places: Vec<&str> =
        seen["items"].as_array().unwrap().iter().map(|item| item["location"].as_str().unwrap()).collect();
    assert_eq!(places, ["lake.ods_db.orders", "s3://lake/warehouse/orders_hudi"]);
}

#[tokio::test]
async fn quality_tools_give_verdicts() {
    let api = Api::with_orders().await;
    api.world.clock.advance(std::time::Duration::from_mins(1));
    let mut scan = payload("soda/scan.json");
    scan["snapshotId"] = json!("2");
    let answer = api.post("/projects/7/quality/soda", &scan).await;
    golden("quality", &answer);
    assert_eq!(answer.status_code, 202, "{}", answer.body);
    let told = api.became(&answer).await;
    assert_eq!(
        outcomes(&told),
        [
            "- skipped",
            "QUALITY_CHECK_PASSED advanced",
            "QUALITY_CHECK_FAILED advanced",
            "QUALITY_CHECK_FAILED advanced",
            "QUALITY_CHECK_ERRORED advanced"
        ],
        "{told}"
    );
    let other = api.post("/projects/7/quality/other", &scan).await;
    assert_eq!((other.status_code, body(&other)["field"].as_str()), (400, Some("tool")));
    let none = api.post("/projects/7/quality/gx", &payload("gx/checkpoint.json")).await;
    assert_eq!(body(&none)["field"], "meta.active_batch_definition.data_asset_name");
}

#[tokio::test]
async fn events_of_catalogs_and_of_flink_are_cloud_events_like_others() {
    let api = Api::with_orders().await;
    let mut create = payload("flink/create.json");
    create["data"]["table"]["options"]["path"] = json!(format!("s3://{BUCKET}/warehouse/ods_db.db/orders"));
    let mut job = payload("flink/job.json");
    job["id"] = json!("f2");
    let wrapped = json!({"specversion": "1.0", "id": "w1", "source": "relay", "type": "io.lakebell.catalog.event.v1",
        "data": payload("catalogs/nessie_stored.json")});
    let events = json!([
        payload("catalogs/lakekeeper_update.json"),
        payload("catalogs/polaris_commit.json"),
        wrapped,
        create,
        job,
        cloud_event("n1", "snapshot.committed", &json!({"asset": ORDERS})),
    ]);
    golden("catalog-events", &api.post(EVENTS, &events).await);
}

#[tokio::test]
async fn cloud_events_come_in_three_modes() {
    let api = Api::with_orders().await;
    let event = cloud_event("1", "snapshot.committed", &json!({"asset": ORDERS, "snapshotId": "2"}));
    let send = async |headers: Value, body: &str| {
        let mut request = rest_event("POST", EVENTS, Some(body));
        for (name, value) in headers.as_object().unwrap() {
            request["headers"].as_object_mut().unwrap().insert(name.clone(), value.clone());
        }
        api.raw(request).await
    };
    let binary = json!({"ce-specversion": "1.0", "ce-id": "b%201", "ce-source": "flink://prod/orders",
        "ce-type": "io.lakebell.snapshot.committed.v1", "ce-time": "2026-01-15T10:04:12Z", "CE-Extra": "x"});
    let answer = send(binary.clone(), &event["data"].to_string()).await;
    assert_eq!(answer.status_code, 202, "{}", answer.body);
    let told = api.became(&answer).await;
    assert_eq!(
        (told["eventId"].as_str(), outcomes(&told)),
        (Some("b 1"), vec!["SNAPSHOT_COMMITTED duplicate".to_owned()])
    );
    let text = event.to_string();
    let batch = format!("[{text}]");
    let of = |content_type: &str| json!({"Content-Type": content_type});
    for (content_type, sent, status) in [
        ("application/cloudevents+json; charset=utf-8", &text, 202),
        ("application/cloudevents-batch+json", &batch, 200),
        ("application/cloudevents+json", &batch, 400),
        ("application/cloudevents-batch+json", &text, 400),
        ("application/cloudevents-batch+json", &"[]".to_owned(), 200),
    ] {
        assert_eq!(send(of(content_type), sent).await.status_code, status, "{content_type}");
    }
    let mut other = binary;
    other["Content-Type"] = json!("text/xml");
    golden("error-unsupported-media-type", &send(other, "<xml/>").await);
    assert_eq!(send(of("text/plain"), &text).await.status_code, 415);
    assert_eq!(send(json!({}), &text).await.status_code, 202, "what says nothing is looked at");
}

#[tokio::test]
async fn a_sender_that_asks_is_told_its_rate_and_nothing_else() {
    let api = Api::with_orders().await;
    let ask = |path: &str, origin: &str| json!({"httpMethod": "OPTIONS", "path": path, "headers": {"WebHook-Request-Origin": origin}});
    let answer = api.raw(ask(EVENTS, "eventemitter.example.com")).await;
    assert_eq!(answer.status_code, 200);
    assert_eq!(answer.headers["webhook-allowed-origin"], "eventemitter.example.com");
    assert_eq!(answer.headers["webhook-allowed-rate"], "60000000", "in a minute, at the rate of these tests");
    assert_eq!(answer.headers["allow"], "POST");
    let elsewhere = api.raw(ask("/projects/8/nothing", "eventemitter.example.com")).await;
    assert_eq!((elsewhere.headers, elsewhere.body), (answer.headers, answer.body), "it tells nothing of what exists");
    for wrong in ["", "a b", "x\r\nset-cookie: y", &"a".repeat(256)] {
        assert_eq!(api.raw(ask(EVENTS, wrong)).await.status_code, 401, "{wrong}");
    }
}

#[tokio::test]
async fn what_became_of_an_event_is_read_by_its_id() {
    let api = Api::with_orders().await;
    let event = cloud_event("a/b", "snapshot.committed", &json!({"asset": "paimon://ods_db/nowhere"}));
    let answer = api.send("POST", EVENTS, Some(event.to_string())).await;
    golden("event-accepted", &answer);
    let by_id = format!("{EVENTS}/a%2Fb?source=flink%3A%2F%2Fprod%2Forders");
    golden("outcome-stored", &api.get(&by_id).await);
    api.work().await;
    golden("outcome-unknown", &api.get(&by_id).await);
    assert_eq!(api.get(&by_id.replace("/7/", "/8/")).await.status_code, 404, "it is another project's");
    assert_eq!(api.get(&format!("{EVENTS}/a%2Fb")).await.status_code, 404);
}
