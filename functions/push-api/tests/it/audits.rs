//! Audits are asked for and read; the deployment is looked at.

use lakebell_engine::ports::queue::Message;
use serde_json::{Value, json};

use crate::support::{Api, body, golden};

#[tokio::test]
async fn an_audit_is_asked_for_and_read() {
    let api = Api::with_orders().await;
    let asked = api.post("/projects/7/audits", &json!({"since": "2025-12-31T12:00:00Z"})).await;
    golden("audit-asked", &asked);
    let sent = api.world.queue.drain();
    assert!(matches!(&sent[..], [Message::Audit { .. }]), "{sent:?}");
    let id = body(&asked)["id"].as_str().unwrap().to_owned();
    let read = api.get(&format!("/projects/7/audits/{id}")).await;
    assert_eq!((read.status_code, &body(&read)["result"]), (200, &Value::Null), "the dispatcher has not done it");
    assert_eq!(api.get(&format!("/projects/8/audits/{id}")).await.status_code, 404);
}

#[tokio::test]
async fn a_time_that_no_audit_can_look_back_to_is_refused() {
    let api = Api::with_orders().await;
    for since in ["2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "yesterday"] {
        let refused = api.post("/projects/7/audits", &json!({ "since": since })).await;
        assert_eq!((refused.status_code, &body(&refused)["field"]), (400, &json!("since")), "{refused:?}");
    }
    assert!(api.world.queue.drain().is_empty());
}

#[tokio::test]
async fn a_deployment_is_looked_at() {
    let api = Api::with_orders().await;
    let connection = json!({"url": "http://ds.internal:12345/dolphinscheduler", "tokenSecret": "lakebell/default"});
    api.put("/connections/default", &connection).await;
    golden("doctor", &api.get("/doctor").await);
    let sent = api.world.queue.drain();
    assert!(matches!(&sent[..], [Message::LookAt { .. }]), "{sent:?}");
}
