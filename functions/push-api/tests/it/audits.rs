//! Audits are asked for and read; the deployment is looked at.

use lakebell_domain::ids::{InstanceId, ProjectCode};
use lakebell_engine::audit::{Audit, AuditResult, Finding, FindingKind, NotCompared, OnScheduler};
use lakebell_engine::layout;
use lakebell_engine::ports::items::Item;
use lakebell_engine::ports::queue::Message;
use serde_json::{Value, json};

use crate::support::{Api, body, golden};

/// What an audit may come to, with each field.
fn found() -> AuditResult {
    let extra = Finding {
        kind: FindingKind::Extra,
        detail: "a second instance of one trigger: stop it".to_owned(),
        trigger: Some("00ff".parse().unwrap()),
        instance: Some(InstanceId(9)),
    };
    let which = OnScheduler { connection: "default".parse().unwrap(), workflow: "5".to_owned() };
    AuditResult {
        is_clean: false,
        triggers: 1_000,
        instances: 1_001,
        findings: vec![extra],
        more_findings: 1,
        not_compared: vec![NotCompared { which, why: "HTTP_401: the token is refused".to_owned() }],
        only_since: Some("2025-12-31T18:00:00Z".parse().unwrap()),
    }
}

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
    // The dispatcher is another function: what it keeps is put in its place.
    let key = layout::audit(ProjectCode(7), &id.parse().unwrap());
    let item = api.world.items.peek(&key).unwrap();
    let mut audit: Audit = serde_json::from_str(&item.doc).unwrap();
    audit.result = Some(found());
    api.world.items.plant(Item { doc: serde_json::to_string(&audit).unwrap(), ..item });
    golden("audit-done", &api.get(&format!("/projects/7/audits/{id}")).await);
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
