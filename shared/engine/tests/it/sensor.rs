//! Tasks that wait inside a running workflow.

mod once;
mod random;
mod waits;

use std::time::Duration;

use jiff::SignedDuration;
use lakebell_domain::ids::{InstanceId, TaskCode};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::sensor::{Asker, SensorRun};
use lakebell_domain::target::TargetSpec;
use lakebell_domain::trigger::{ArrowName, StartReason, Status, Trigger};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::items::Item;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::sensor::{self, ANSWERS_KEPT, Answer, Ask, Patience};
use lakebell_engine::{EngineError, ErrorKind, compensate, operate, targets};
use lakebell_testkit::Op;
use serde_json::{Value, json};

use crate::support::{Deployment, spec, target_id, trace};

/// The task that waits.
const TASK: i64 = 456;

/// The target `t` on these tables with a waiting task, and further keys.
fn waiting(tables: &[&str], more: &Value) -> TargetSpec {
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), tables)])).unwrap();
    document["taskDefinitionCode"] = json!(TASK);
    for (key, value) in more.as_object().unwrap() {
        document[key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

async fn with(tables: &[&str], more: &Value) -> Deployment {
    let d = Deployment::with(tables).await;
    d.declare(&waiting(tables, more)).await;
    d
}

fn run_of(instance: i64, run: u32) -> SensorRun {
    SensorRun { asker: Asker::WorkflowInstance(InstanceId(instance)), run }
}

fn ask_of(run: SensorRun) -> Ask {
    Ask { target: target_id("t"), task: Some(TaskCode(TASK)), run }
}

impl Deployment {
    async fn try_poll(&self, ask: &Ask, ports: &Ports, seconds: i64) -> Result<Answer, EngineError> {
        let time = SignedDuration::from_secs(seconds);
        let patience = Patience { time, places: 4, pause: &self.world.clock };
        sensor::ask(ports, ask, patience, &trace()).await
    }

    /// One poll of an instance's first run.
    async fn poll(&self, instance: i64) -> Answer {
        self.try_poll(&ask_of(run_of(instance, 1)), &self.world.ports(), 0).await.expect("poll")
    }

    fn keep_answers(&self) -> Vec<Item> {
        self.world.items.dump().into_iter().filter(|item| item.key.pk.starts_with("SA#")).collect()
    }

    fn calls_of_poll(&self) -> Vec<Op> {
        self.world.tap.take_log().into_iter().map(|call| call.op).collect()
    }
}

fn ready(answer: Answer) -> (Trigger, bool) {
    match answer {
        Answer::Ready { trigger, is_recorded } => (*trigger, is_recorded),
        Answer::NotYet { evaluation, .. } => panic!("not yet: {:?}", evaluation.reason),
    }
}

/// The verdict and the code of what it waits for.
fn not_yet(answer: Answer) -> (Verdict, Option<ReasonCode>) {
    match answer {
        Answer::NotYet { evaluation, .. } => (evaluation.verdict, evaluation.reason.map(|reason| reason.code)),
        Answer::Ready { trigger, .. } => panic!("ready: {}", trigger.key),
    }
}

const NOTHING_NEW: (Verdict, Option<ReasonCode>) = (Verdict::Waiting, Some(ReasonCode::NoNewVersion));

#[tokio::test]
async fn what_is_ready_is_claimed_when_its_task_asks_and_never_sent() {
    let mut d = with(&["a", "b"], &json!({})).await;
    d.commit("a", "APPEND").await;
    assert_eq!(not_yet(d.poll(1).await).0, Verdict::Waiting);
    d.commit("b", "APPEND").await;
    d.commit("b", "APPEND").await;
    // Neither a hint nor a pass claims it.
    let deadline = d.world.clock.now() + SignedDuration::from_mins(1);
    compensate::pass(&d.world.quiet_ports(), &trace(), deadline).await.unwrap();
    d.run_dispatcher().await;
    assert!(d.triggers("t").is_empty());
    let why = d.why("t").await;
    assert_eq!((why.verdict, why.sensor), (Verdict::Ready, Some(TaskCode(TASK))));
    assert_eq!(d.records().nothing_left(&[target_id("t")]), Vec::<String>::new(), "it is left until its task asks");

    let (trigger, is_recorded) = ready(d.poll(1).await);
    assert!(!is_recorded);
    assert_eq!(Deployment::took(&trigger), ["a(-,1]", "b(-,2]"], "the newest when it asked");
    assert_eq!(trigger.parameters["lakebell_b_to"], "2");
    assert_eq!(trigger.parameters["lakebell_trigger_key"], trigger.key.as_str());
    assert_eq!((trigger.status(), trigger.instance), (&Status::Success { assumed: false }, Some(InstanceId(1))));
    assert_eq!(
        trigger.log.iter().map(|passage| passage.arrow).collect::<Vec<_>>(),
        [ArrowName::Claim, ArrowName::Answer]
    );
    let mark = trigger.sensor.as_ref().unwrap();
    assert_eq!((mark.task, &mark.taken_by), (TaskCode(TASK), &Some(run_of(1, 1))));
    assert_eq!((trigger.start_at, trigger.due_at, trigger.sends), (None, None, 0));
    assert_eq!(d.triggers("t"), [trigger]);
    assert!(d.world.queue.drain().is_empty());
    assert_eq!(d.scheduler.start_calls(), 0);
}

#[tokio::test]
async fn a_later_poll_of_the_run_gets_the_recorded_answer_whatever_came_meanwhile() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let (first, _) = ready(d.poll(1).await);
    d.commit("a", "APPEND").await;
    assert_eq!(ready(d.poll(1).await), (first.clone(), true));
    // Also once the target is paused, altered, or gone.
    operate::pause(&d.world.quiet_ports(), &target_id("t"), "ana").await.unwrap();
    assert_eq!(ready(d.poll(1).await), (first.clone(), true));
    d.declare(&waiting(&["a"], &json!({"startAs": "start"}))).await;
    assert_eq!(ready(d.poll(1).await), (first.clone(), true));
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    assert_eq!(ready(d.poll(1).await), (first, true));
}

#[tokio::test]
async fn a_rerun_gets_the_same_versions_unless_it_gives_the_next_run_number() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let (first, _) = ready(d.poll(1).await);
    d.commit("a", "APPEND").await;
    assert_eq!(ready(d.poll(1).await).0.key, first.key, "the same run number: the same versions again");
    let second = d.try_poll(&ask_of(run_of(1, 2)), &d.world.ports(), 0).await.unwrap();
    assert_eq!(Deployment::took(&ready(second).0), ["a(1,2]"]);
    let third = d.try_poll(&ask_of(run_of(1, 3)), &d.world.ports(), 0).await.unwrap();
    assert_eq!(not_yet(third), NOTHING_NEW);
}

#[tokio::test]
async fn a_token_stands_for_an_instance_that_is_not_known() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let ask = |token: &str| ask_of(SensorRun { asker: Asker::Token(token.parse().unwrap()), run: 1 });
    let (first, _) = ready(d.try_poll(&ask("k1"), &d.world.ports(), 0).await.unwrap());
    assert_eq!((first.instance, first.status()), (None, &Status::Success { assumed: false }));
    assert_eq!(ready(d.try_poll(&ask("k1"), &d.world.ports(), 0).await.unwrap()), (first, true));
    assert_eq!(not_yet(d.try_poll(&ask("k2"), &d.world.ports(), 0).await.unwrap()), NOTHING_NEW);
}

#[tokio::test]
async fn what_stands_in_the_way_is_said_and_let_go_afterwards() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let ports = d.world.quiet_ports();
    operate::pause(&ports, &target_id("t"), "ana").await.unwrap();
    assert_eq!(not_yet(d.poll(1).await), (Verdict::Paused, Some(ReasonCode::TargetPaused)));
    assert!(operate::resume(&ports, &target_id("t"), &trace()).await.unwrap().unwrap().claimed.is_none());
    operate::switch(&ports, None, false, "ana", &trace()).await.unwrap();
    assert_eq!(not_yet(d.poll(1).await), (Verdict::BlockedByGate, Some(ReasonCode::SwitchedOff)));
    operate::switch(&ports, None, true, "ana", &trace()).await.unwrap();
    d.declare(&waiting(&["a"], &json!({"enabledFlag": 0}))).await;
    assert_eq!(not_yet(d.poll(1).await), (Verdict::Disabled, Some(ReasonCode::TargetDisabled)));
    d.declare(&waiting(&["a"], &json!({"quietPeriod": "5m"}))).await;
    assert_eq!(not_yet(d.poll(1).await), (Verdict::BlockedByGate, Some(ReasonCode::QuietPeriod)));
    d.world.clock.advance(Duration::from_mins(6));
    assert_eq!(Deployment::took(&ready(d.poll(1).await).0), ["a(-,1]"]);
}

#[tokio::test]
async fn a_passed_deadline_is_told_and_does_not_let_go() {
    let mut d = with(&["a", "b"], &json!({"timeoutMinutes": 30})).await;
    d.commit("a", "APPEND").await;
    d.world.clock.advance(Duration::from_mins(29));
    let timed_out = |answer: &Answer| match answer {
        Answer::NotYet { evaluation, .. } => evaluation.timed_out,
        Answer::Ready { .. } => panic!("ready"),
    };
    assert_eq!(timed_out(&d.poll(1).await), None);
    d.world.clock.advance(Duration::from_mins(2));
    assert!(timed_out(&d.poll(1).await).is_some());
    // The alarm is the sweep's, once.
    compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap();
    for message in d.world.queue.drain() {
        d.carry(&message).await.unwrap();
    }
    assert!(d.records().cursors[&target_id("t")].alarmed.is_some());
    d.commit("b", "APPEND").await;
    assert_eq!(ready(d.poll(1).await).0.reason, StartReason::Ready, "later than it should, and it goes on");
}

#[tokio::test]
async fn a_deadline_that_fires_and_a_time_of_or_at_let_go_with_what_is_there() {
    let mut d = with(&["a", "b"], &json!({"timeoutMinutes": 30, "onDeadline": "fire"})).await;
    d.commit("a", "APPEND").await;
    d.world.clock.advance(Duration::from_mins(31));
    let (trigger, _) = ready(d.poll(1).await);
    assert_eq!((trigger.reason, trigger.parameters["lakebell_reason"].as_str()), (StartReason::Deadline, "deadline"));
    assert_eq!(trigger.unmet.len(), 1);

    let d = with(&["a"], &json!({"orAt": {"cron": "0 6 * * *", "timeZone": "UTC"}})).await;
    assert_eq!(not_yet(d.poll(1).await).1, Some(ReasonCode::NoVersionYet));
    d.world.clock.advance(Duration::from_hours(7));
    assert_eq!(ready(d.poll(1).await).0.reason, StartReason::OrAt);
    assert_eq!(not_yet(d.poll(2).await).1, Some(ReasonCode::NoVersionYet), "one time is one start");
}

#[tokio::test]
async fn each_gives_every_run_the_next_version() {
    let mut d = with(&["a"], &json!({"coalesce": "each"})).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    for (instance, took) in [(1, "a(-,1]"), (2, "a(1,2]"), (3, "a(2,3]")] {
        assert_eq!(Deployment::took(&ready(d.poll(instance).await).0), [took]);
    }
    assert_eq!(not_yet(d.poll(4).await), NOTHING_NEW);
    assert_eq!(Deployment::took(&ready(d.poll(2).await).0), ["a(1,2]"], "its own once more");
}

#[tokio::test]
async fn in_shadow_mode_it_is_recorded_as_skipped_and_no_task_goes_on() {
    let mut d = with(&["a"], &json!({"mode": "shadow"})).await;
    d.commit("a", "APPEND").await;
    let shadow = d.triggers("t").remove(0);
    assert_eq!(shadow.status().step(), "skipped", "without a poll: how one tries it before the task is there");
    let Answer::NotYet { is_shadow: true, evaluation } = d.poll(1).await else { panic!("a shadow let go") };
    assert_eq!(evaluation.reason.unwrap().code, ReasonCode::NoNewVersion);
    // A commit that no hint told of is met by the poll itself.
    operate::pause(&d.world.quiet_ports(), &target_id("t"), "ana").await.unwrap();
    d.commit("a", "APPEND").await;
    let resumed = operate::resume(&d.world.ports(), &target_id("t"), &trace()).await.unwrap().unwrap();
    assert!(resumed.claimed.is_some());
    assert_eq!(d.triggers("t").iter().filter(|trigger| trigger.status().step() == "skipped").count(), 2);
    assert!(d.world.queue.drain().iter().all(|message| !matches!(message, Message::Dispatch { .. })));
    assert!(d.keep_answers().is_empty());
}

#[tokio::test]
async fn what_a_person_fires_waits_for_the_task() {
    let mut d = with(&["a", "b"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let fired = operate::fire(&d.world.ports(), &target_id("t"), "r1", &trace()).await.unwrap().value;
    assert_eq!((fired.status().step(), fired.due_at), ("queued", None));
    assert!(d.world.queue.drain().iter().all(|message| !matches!(message, Message::Dispatch { .. })));
    let why = d.why("t").await.reason.unwrap();
    assert!(why.code == ReasonCode::TriggerInFlight && why.actual.contains("waits for its task"), "{why:?}");
    // Neither a sweep nor an evaluation nor a stray message sends or starts it.
    d.world.clock.advance(Duration::from_hours(2));
    assert_eq!(compensate::sweep(&d.world.quiet_ports(), &trace()).await.unwrap().sent_again, 0);
    let stray = Message::Dispatch { target: target_id("t"), trigger: fired.key.clone(), attempt: 0, trace: trace() };
    d.carry(&stray).await.unwrap();
    assert_eq!(d.scheduler.start_calls(), 0);
    // Not while the target is paused.
    operate::pause(&d.world.quiet_ports(), &target_id("t"), "ana").await.unwrap();
    assert_eq!(not_yet(d.poll(1).await).1, Some(ReasonCode::TargetPaused));
    operate::resume(&d.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap();

    let (taken, is_recorded) = ready(d.poll(1).await);
    assert_eq!((&taken.key, taken.reason, is_recorded), (&fired.key, StartReason::Manual, false));
    assert_eq!(ready(d.poll(1).await), (taken, true));
    assert_eq!(d.records().in_order(), Vec::<String>::new());
    assert!(d.records().cursors[&target_id("t")].open.is_none());
    let skipped = operate::fire(&d.world.ports(), &target_id("t"), "r2", &trace()).await.unwrap().value;
    operate::skip(&d.world.quiet_ports(), &skipped.key, "ana", &trace()).await.unwrap();
    assert_eq!(not_yet(d.poll(2).await).1, Some(ReasonCode::NoNewVersion));
}

#[tokio::test]
async fn a_trigger_that_is_under_way_is_waited_for_when_the_target_becomes_a_sensor() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&waiting(&["a"], &json!({"startAs": "start"}))).await;
    d.commit("a", "APPEND").await;
    d.declare(&waiting(&["a"], &json!({}))).await;
    assert_eq!(not_yet(d.poll(1).await), (Verdict::Waiting, Some(ReasonCode::TriggerInFlight)));
    d.run_dispatcher().await;
    assert_eq!(d.scheduler.start_calls(), 1, "it was claimed to be started at the task");
    d.commit("a", "APPEND").await;
    assert_eq!(Deployment::took(&ready(d.poll(1).await).0), ["a(1,2]"]);
}

#[tokio::test]
async fn what_was_fired_for_a_task_is_still_taken_when_the_target_is_altered() {
    for (altered, task) in [(json!({"startAs": "start"}), TASK), (json!({"taskDefinitionCode": 9}), 9)] {
        let mut d = with(&["a"], &json!({})).await;
        d.commit("a", "APPEND").await;
        operate::fire(&d.world.ports(), &target_id("t"), "r1", &trace()).await.unwrap();
        d.declare(&waiting(&["a"], &altered)).await;
        let ask = Ask { task: Some(TaskCode(task)), ..ask_of(run_of(1, 1)) };
        let (taken, _) = ready(d.try_poll(&ask, &d.world.ports(), 0).await.unwrap());
        assert_eq!(taken.sensor.unwrap().task, TaskCode(task));
    }
}

#[tokio::test]
async fn a_failed_start_of_before_is_taken_over_by_the_task() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&waiting(&["a"], &json!({"startAs": "start"}))).await;
    d.scheduler.fault(lakebell_testkit::StartFault::Permanent);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.declare(&waiting(&["a"], &json!({}))).await;
    d.commit("a", "APPEND").await;
    let (taken, _) = ready(d.poll(1).await);
    assert_eq!(Deployment::took(&taken), ["a(-,2]"]);
    assert_eq!(taken.status(), &Status::Success { assumed: false });
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_and_changes_nothing() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    let ports = d.world.ports();
    let ask = Ask { task: None, ..ask_of(run_of(1, 1)) };
    for asked in [&ask, &ask_of(run_of(1, 1))] {
        let refused = d.try_poll(asked, &ports, 0).await.unwrap_err();
        assert!(refused.kind() == ErrorKind::Conflict && refused.message().contains("no task waits"), "{refused}");
    }
    d.declare(&waiting(&["a"], &json!({}))).await;
    d.commit("a", "APPEND").await;
    let other = Ask { task: Some(TaskCode(9)), ..ask_of(run_of(1, 1)) };
    let refused = d.try_poll(&other, &ports, 0).await.unwrap_err();
    assert_eq!((refused.kind(), refused.about("field")), (ErrorKind::Invalid, Some("taskDefinitionCode")));
    let unknown = Ask { target: target_id("nothing"), ..ask_of(run_of(1, 1)) };
    assert_eq!(d.try_poll(&unknown, &ports, 0).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(d.triggers("t").is_empty() && d.keep_answers().is_empty());
    assert!(ready(d.try_poll(&ask, &ports, 0).await.unwrap()).0.sensor.is_some(), "its task need not be named");
    targets::undeclare(&d.world.quiet_ports(), &target_id("t")).await.unwrap();
    let gone = d.try_poll(&ask_of(run_of(2, 1)), &ports, 0).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_answer_is_kept_for_a_time_that_is_told() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    d.poll(1).await;
    let kept = d.keep_answers();
    assert_eq!(kept[0].expires_at, Some(d.world.clock.now() + ANSWERS_KEPT));
    assert!(kept[0].doc.len() < 512, "{}", kept[0].doc);
}
