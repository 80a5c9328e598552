//! Audits: what is recorded against the rules, and against the scheduler's instances.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use lakebell_domain::ids::{ConnectionName, InstanceId, TaskCode, TriggerKey, WorkflowCode};
use lakebell_domain::sensor::{Asker, SensorRun};
use lakebell_domain::trigger::Trigger;
use lakebell_engine::audit::{self, Audit, FindingKind};
use lakebell_engine::ports::dead_letters::DeadQueue;
use lakebell_engine::ports::items::Item;
use lakebell_engine::ports::scheduler::{Refusal, Scheduler as _, StartRequest, TokenExpiry};
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::sensor::{Answer, Ask, Patience};
use lakebell_engine::{doctor, layout, sensor};
use lakebell_testkit::{MemoryDeadLetters, StartFault};
use serde_json::json;

use crate::support::{Deployment, PROJECT, spec, target_id, trace};

impl Deployment {
    async fn with_three_starts() -> Self {
        let mut d = Self::with(&["a"]).await;
        d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
        for _ in 0..3 {
            d.commit("a", "APPEND").await;
            d.run_dispatcher().await;
        }
        d.assert_started("t", 3);
        d.world.clock.advance(Duration::from_mins(20));
        d
    }

    async fn audit(&self) -> Audit {
        let ports = self.world.quiet_ports();
        let since = self.world.clock.now() - SignedDuration::from_hours(24);
        let asked = audit::ask(&ports, PROJECT, since, &trace()).await.unwrap();
        for message in self.world.queue.drain() {
            self.carry(&message).await.unwrap();
        }
        audit::read(&ports, PROJECT, &asked.id).await.unwrap()
    }

    async fn findings(&self) -> Vec<FindingKind> {
        self.audit().await.result.unwrap().findings.into_iter().map(|finding| finding.kind).collect()
    }

    /// Changes what is recorded of a trigger behind everybody's back.
    fn tamper(&self, key: &TriggerKey, change: impl FnOnce(&mut serde_json::Value)) {
        let item = self.world.items.peek(&layout::trigger(key)).unwrap();
        let mut doc: serde_json::Value = serde_json::from_str(&item.doc).unwrap();
        change(&mut doc);
        let trigger: Trigger = serde_json::from_value(doc).unwrap();
        self.world.items.plant(Item { doc: serde_json::to_string(&trigger).unwrap(), ..item });
    }
}

#[tokio::test]
async fn a_deployment_that_did_nothing_wrong_is_clean() {
    let d = Deployment::with_three_starts().await;
    let result = d.audit().await.result.unwrap();
    assert_eq!((result.is_clean, result.triggers, result.instances), (true, 3, 3), "{:?}", result.findings);
}

#[tokio::test]
async fn what_a_waiting_task_took_is_not_looked_for() {
    let mut d = Deployment::with(&["a"]).await;
    let mut task = serde_json::to_value(spec("t", &[("g", json!("all"), &["a"])])).unwrap();
    task["taskDefinitionCode"] = json!(456);
    d.declare(&serde_json::from_value(task).unwrap()).await;
    d.commit("a", "APPEND").await;
    // Its workflow began by itself, long before anything was ready.
    let run = SensorRun { asker: Asker::WorkflowInstance(InstanceId(31)), run: 1 };
    let ask = Ask { target: target_id("t"), task: Some(TaskCode(456)), run };
    let patience = Patience { time: SignedDuration::ZERO, places: 1, pause: &d.world.clock };
    let answer = sensor::ask(&d.world.ports(), &ask, patience, &trace()).await.unwrap();
    assert!(matches!(answer, Answer::Ready { .. }));
    d.world.clock.advance(Duration::from_mins(20));
    let result = d.audit().await.result.unwrap();
    assert_eq!((result.is_clean, result.triggers, result.instances), (true, 1, 0), "{:?}", result.findings);
}

#[tokio::test]
async fn a_second_instance_is_found_recorded_and_told() {
    let mut d = Deployment::with_three_starts().await;
    d.scheduler.fault(StartFault::StartsTwice);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.world.notices.take();
    let result = d.audit().await.result.unwrap();
    assert!(!result.is_clean);
    let [finding] = &result.findings[..] else { panic!("{:?}", result.findings) };
    assert_eq!((finding.kind, finding.instance), (FindingKind::Extra, Some(d.scheduler.instances()[4].id)));
    assert_eq!(d.triggers("t")[3].extra_instances, [d.scheduler.instances()[4].id]);
    assert_eq!(d.world.notices.take().len(), 1);
    assert_eq!(d.findings().await, [FindingKind::Extra], "it is found again");
    assert!(d.world.notices.take().is_empty(), "and told once");
}

#[tokio::test]
async fn what_the_scheduler_does_not_show_is_missing() {
    let d = Deployment::with_three_starts().await;
    d.scheduler.delete(d.scheduler.instances()[1].id);
    assert_eq!(d.findings().await, [FindingKind::Missing]);
}

#[tokio::test]
async fn an_instance_of_a_trigger_that_failed_or_is_not_recorded_is_told_apart() {
    let d = Deployment::with_three_starts().await;
    let key = d.triggers("t")[0].key.clone();
    d.tamper(&key, |doc| doc["status"] = json!({"step": "failed", "code": "X", "detail": "x"}));
    assert_eq!(d.findings().await, [FindingKind::Extra]);
    d.tamper(&key, |doc| doc["status"] = json!({"step": "success", "assumed": false}));
    let request = StartRequest {
        project: PROJECT,
        workflow: WorkflowCode(11),
        start_at: None,
        trigger: "00ff".parse().unwrap(),
        parameters: BTreeMap::new(),
        business_date: None,
    };
    d.scheduler.start(&ConnectionName::new("default").unwrap(), &request).await;
    assert_eq!(d.findings().await, [FindingKind::Unknown]);
}

#[tokio::test]
async fn recorded_state_that_breaks_a_rule_is_found() {
    let d = Deployment::with_three_starts().await;
    let triggers = d.triggers("t");
    let earlier = serde_json::to_value(&triggers[0].bounds).unwrap()["g"].clone();
    d.tamper(&triggers[2].key, |doc| {
        for (asset, bounds) in earlier.as_object().unwrap() {
            doc["bounds"]["g"][asset]["from"] = bounds["from"].clone();
        }
    });
    let result = d.audit().await.result.unwrap();
    let [finding] = &result.findings[..] else { panic!("{:?}", result.findings) };
    assert!(finding.detail.starts_with("rule 7"), "{finding:?}");
    d.tamper(&triggers[1].key, |doc| doc["status"] = json!({"step": "queued"}));
    assert!(d.findings().await.contains(&FindingKind::Rule), "an open trigger that its target does not name");
}

#[tokio::test]
async fn a_scheduler_that_is_away_leaves_workflows_uncompared() {
    let d = Deployment::with_three_starts().await;
    d.scheduler.refuse_reads(Some(Refusal { code: "HTTP_401".to_owned(), detail: "no".to_owned() }));
    let result = d.audit().await.result.unwrap();
    assert_eq!((result.is_clean, result.not_compared.len()), (false, 1));
}

#[tokio::test]
async fn an_audit_that_comes_again_is_done_once() {
    let d = Deployment::with_three_starts().await;
    let ports = d.world.quiet_ports();
    let since = d.world.clock.now() - SignedDuration::from_hours(1);
    let asked = audit::ask(&ports, PROJECT, since, &trace()).await.unwrap();
    let message = d.world.queue.drain().remove(0);
    d.carry(&message).await.unwrap();
    let done = audit::read(&ports, PROJECT, &asked.id).await.unwrap();
    d.scheduler.delete(d.scheduler.instances()[1].id);
    d.carry(&message).await.unwrap();
    assert_eq!(audit::read(&ports, PROJECT, &asked.id).await.unwrap(), done);
}

#[tokio::test]
async fn doctor_looks_at_connections_tables_and_timers() {
    let d = Deployment::with_three_starts().await;
    let ports = d.world.quiet_ports();
    let letters = MemoryDeadLetters::default();
    let connection = json!({"name": "default", "url": "http://ds", "tokenSecret": "lakebell/x/connections/default"});
    let connection = serde_json::from_value(connection).unwrap();
    lakebell_engine::settings::put_connection(&ports, &connection).await.unwrap();
    let statuses = async || {
        let examined = doctor::examine(&ports, &letters, &trace()).await.unwrap();
        let bad = examined.checks.into_iter().filter(|check| check.status != doctor::CheckStatus::Ok);
        bad.map(|check| (check.check, check.status, check.todo.is_some())).collect::<Vec<_>>()
    };
    let look = async || {
        for message in d.world.queue.drain() {
            d.carry(&message).await.unwrap();
        }
        statuses().await
    };
    let pending = statuses().await;
    assert!(pending.contains(&("connection".to_owned(), doctor::CheckStatus::Pending, true)), "{pending:?}");
    // The started workflows were not asked about for 20 minutes: the sweep does not run.
    assert!(pending.contains(&("timers".to_owned(), doctor::CheckStatus::Bad, true)), "{pending:?}");
    lakebell_engine::compensate::sweep(&ports, &trace()).await.unwrap();
    assert!(look().await.is_empty());
    d.world.clock.advance(Duration::from_mins(2));
    let soon = d.world.clock.now() + SignedDuration::from_hours(24);
    for (expiry, status) in [
        (TokenExpiry::At(soon), doctor::CheckStatus::Warning),
        (
            TokenExpiry::Unavailable(Refusal { code: "HTTP_401".to_owned(), detail: "no".to_owned() }),
            doctor::CheckStatus::Bad,
        ),
    ] {
        d.scheduler.set_token_expiry(Some(expiry));
        d.world.clock.advance(Duration::from_mins(2));
        statuses().await;
        assert_eq!(look().await, [("connection".to_owned(), status, true)]);
    }
    d.scheduler.set_token_expiry(None);
    d.world.clock.advance(Duration::from_mins(2));
    statuses().await;
    letters.lay(DeadQueue::Dispatch, "{}");
    assert_eq!(look().await, [("deadLetters".to_owned(), doctor::CheckStatus::Bad, true)]);
    d.world.clock.advance(Duration::from_hours(12));
    assert_eq!(doctor::look_when_due(&ports, &trace()).await.unwrap(), 1);
}
