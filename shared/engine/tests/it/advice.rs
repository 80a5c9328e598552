//! A declared workflow is looked at by the dispatcher, and the answer is kept beside the target.

use lakebell_domain::target::WorkflowRef;
use lakebell_engine::advice::{self, Advice, Finding};
use lakebell_engine::dispatch::Dispatcher;
use lakebell_engine::evaluate::Explained;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::scheduler::{ExecutionType, Preflight, Refusal};
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::{ErrorKind, targets};
use lakebell_testkit::{Fault, Op};

use crate::support::{Deployment, spec, target_id, trace};

impl Deployment {
    fn dispatcher(&self) -> Dispatcher {
        Dispatcher { ports: self.world.ports(), scheduler: self.scheduler.clone() }
    }

    async fn explained(&self, name: &str) -> Explained {
        targets::explain(&self.world.quiet_ports(), &[target_id(name)]).await.unwrap().remove(0)
    }
}

async fn declared() -> Deployment {
    let d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", "all".into(), &["a"])])).await;
    d
}

#[tokio::test]
async fn the_dispatcher_keeps_what_the_scheduler_says() {
    let d = declared().await;
    let refusal = Refusal { code: "HTTP_401".to_owned(), detail: "no".to_owned() };
    let startable = |execution| Preflight::Startable { workflow: "11".parse().unwrap(), name: None, execution };
    let table = [
        (startable(ExecutionType::Parallel), None),
        (startable(ExecutionType::Unknown), None),
        (startable(ExecutionType::SerialWait), Some("serial wait")),
        (startable(ExecutionType::SerialDiscard), Some("serial discard")),
        (startable(ExecutionType::SerialPriority), Some("serial priority")),
        (Preflight::Offline { detail: "offline".to_owned() }, Some("is offline")),
        (Preflight::Missing { detail: "missing".to_owned() }, Some("is not there")),
        (Preflight::Unavailable(refusal), Some("HTTP_401")),
    ];
    for (preflight, expected) in table {
        d.scheduler.set_preflight(Some(preflight.clone()));
        let kept = d.dispatcher().advise(&target_id("t")).await.unwrap().unwrap();
        assert_eq!((&kept.finding, kept.checked_at), (&Finding::from(preflight), d.world.clock.now()));
        let shown = d.explained("t").await.advice;
        assert_eq!(shown.as_ref(), Some(&kept));
        let warning = kept.warning();
        assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
        assert!(expected.is_none_or(|words| warning.unwrap().contains(words)), "{expected:?}");
    }
    assert_eq!(d.scheduler.start_calls(), 0);
}

#[tokio::test]
async fn a_check_is_asked_for_through_the_dispatch_queue() {
    let d = declared().await;
    d.world.queue.drain();
    advice::ask(&d.world.ports(), &target_id("t"), &trace()).await.unwrap();
    let sent = d.world.queue.drain();
    assert_eq!(sent, [Message::Advise { target: target_id("t"), trace: trace() }]);
    let golden = r#"{"lakebell":"advise","target":"7/t","trace":"trace-of-a-test"}"#;
    assert_eq!(serde_json::to_string(&sent[0]).unwrap(), golden);
    d.carry(&sent[0]).await.unwrap();
    assert!(d.explained("t").await.advice.is_some());
}

#[tokio::test]
async fn advice_about_another_workflow_or_a_target_that_is_gone_is_none() {
    let d = declared().await;
    d.dispatcher().advise(&target_id("t")).await.unwrap();
    let mut other = spec("t", &[("g", "all".into(), &["a"])]);
    other.workflow_definition_code = Some("12".parse().unwrap());
    d.declare(&other).await;
    assert_eq!(d.explained("t").await.advice, None);
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    assert_eq!(d.dispatcher().advise(&target_id("t")).await.unwrap(), None);
    assert_eq!(d.dispatcher().advise(&target_id("nobody")).await.unwrap(), None);
}

#[tokio::test]
async fn a_check_that_fails_comes_again_and_a_lost_answer_does_no_harm() {
    let d = declared().await;
    d.world.tap.fault(Op::Get, 1, Fault::Before(ErrorKind::Unavailable));
    assert!(d.dispatcher().advise(&target_id("t")).await.unwrap_err().retryable());
    d.world.tap.fault(Op::Write, 1, Fault::LostAnswer);
    d.dispatcher().advise(&target_id("t")).await.ok();
    d.dispatcher().advise(&target_id("t")).await.unwrap();
    assert!(d.explained("t").await.advice.is_some());
}

#[test]
fn kept_advice_is_golden() {
    let advice = Advice {
        connection: "default".parse().unwrap(),
        workflow: WorkflowRef::Code("11".parse().unwrap()),
        finding: Finding::Startable { execution: ExecutionType::SerialWait },
        checked_at: "2026-01-01T00:00:00Z".parse().unwrap(),
    };
    let text = serde_json::to_string(&advice).unwrap();
    assert_eq!(text, include_str!("golden/advice.json").trim());
    assert_eq!(serde_json::from_str::<Advice>(&text).unwrap(), advice);
}
