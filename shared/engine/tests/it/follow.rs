//! Started workflows are followed to their end.

use std::time::Duration;

use lakebell_domain::trigger::{FOLLOWED_FOR, FollowedState, Status, Trigger};
use lakebell_engine::compensate;
use lakebell_engine::ports::scheduler::{CheckOutcome, InstanceState, Refusal};
use lakebell_engine::ports::time::Clock as _;
use lakebell_testkit::{Fault, Op, StartFault};
use serde_json::json;

use crate::support::{Deployment, spec, target_id, trace};

async fn started_as(state: InstanceState) -> Deployment {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.scheduler.begin_as(state);
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
    d
}

impl Deployment {
    /// A minute later: a sweep, and the messages that it sends. How many questions it asked.
    async fn a_minute_on(&self) -> usize {
        self.world.clock.advance(Duration::from_mins(1));
        let swept = compensate::sweep(&self.world.ports(), &trace()).await.unwrap();
        for message in self.world.queue.drain() {
            self.carry(&message).await.unwrap();
        }
        swept.followed
    }

    fn only(&self) -> Trigger {
        self.triggers("t").remove(0)
    }

    fn state(&self) -> FollowedState {
        self.only().followed().unwrap().state
    }
}

#[tokio::test]
async fn a_started_workflow_is_followed_to_its_end_with_growing_pauses() {
    let d = started_as(InstanceState::Running).await;
    assert_eq!(d.state(), FollowedState::Unseen, "nobody asked yet");
    let mut asked = Vec::new();
    for minute in 1..=120 {
        if d.a_minute_on().await == 1 {
            asked.push(minute);
        }
    }
    assert_eq!(asked, [1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 24, 30, 38, 48, 60, 75, 94, 118]);
    assert_eq!(d.state(), FollowedState::Running);
    d.scheduler.set_state(d.scheduler.instances()[0].id, InstanceState::Failure);
    while d.a_minute_on().await == 0 {}
    assert_eq!(d.state(), FollowedState::Failure);
    assert!(matches!(d.only().status(), Status::Success { .. }), "SUCCESS means started");
    for _ in 0..120 {
        assert_eq!(d.a_minute_on().await, 0, "nobody asks after the end");
    }
    let why = lakebell_engine::targets::explain(&d.world.quiet_ports(), &[target_id("t")]).await.unwrap();
    assert_eq!(why[0].started.as_ref().unwrap().followed().unwrap().state, FollowedState::Failure);
}

#[tokio::test]
async fn a_followed_workflow_does_not_keep_the_slot() {
    let mut d = started_as(InstanceState::Running).await;
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    d.assert_started("t", 2);
}

#[tokio::test]
async fn an_answer_that_is_nothing_new_writes_nothing() {
    let d = started_as(InstanceState::Running).await;
    d.a_minute_on().await;
    d.world.tap.take_log();
    d.a_minute_on().await;
    let ops: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).filter(|op| *op != Op::Index).collect();
    // The sweep reads and puts off, and sends; the dispatcher reads.
    assert_eq!(ops, [Op::Get, Op::Write, Op::Send, Op::Get]);
}

#[tokio::test]
async fn a_scheduler_that_is_away_is_asked_again_and_not_more_often() {
    let d = started_as(InstanceState::Success).await;
    d.scheduler.refuse_reads(Some(Refusal { code: "TRANSPORT_ERROR".to_owned(), detail: "away".to_owned() }));
    let mut questions = 0;
    for _ in 0..60 {
        questions += d.a_minute_on().await;
    }
    assert_eq!((questions, d.state()), (15, FollowedState::Unseen));
    d.scheduler.refuse_reads(None);
    while d.a_minute_on().await == 0 {}
    assert_eq!(d.state(), FollowedState::Success);
}

#[tokio::test]
async fn messages_that_are_lost_or_come_again_change_nothing() {
    let d = started_as(InstanceState::Success).await;
    d.world.clock.advance(Duration::from_mins(1));
    compensate::sweep(&d.world.ports(), &trace()).await.unwrap();
    d.world.queue.drain();
    d.world.clock.advance(Duration::from_mins(1));
    compensate::sweep(&d.world.ports(), &trace()).await.unwrap();
    let message = d.world.queue.drain().remove(0);
    // The answer to the write is lost, so the message comes again.
    d.world.tap.fault(Op::Write, 0, Fault::LostAnswer);
    assert!(d.carry(&message).await.is_err());
    let ended = d.only();
    assert_eq!(ended.followed().unwrap().state, FollowedState::Success);
    d.world.clock.advance(Duration::from_mins(9));
    d.carry(&message).await.unwrap();
    assert_eq!(d.only(), ended);
}

#[tokio::test]
async fn an_instance_that_stays_is_followed_for_a_bounded_time() {
    let d = started_as(InstanceState::Running).await;
    d.a_minute_on().await;
    d.scheduler.refuse_reads(Some(Refusal { code: "HTTP_401".to_owned(), detail: String::new() }));
    d.world.clock.set(d.world.clock.now() + FOLLOWED_FOR);
    assert_eq!(d.a_minute_on().await, 0, "it is not asked about any more");
    assert_eq!(d.state(), FollowedState::Lost);
    assert_eq!(d.only().timer(), None);
}

#[tokio::test]
async fn an_instance_that_was_deleted_is_gone() {
    let d = started_as(InstanceState::Running).await;
    d.a_minute_on().await;
    assert_eq!(d.state(), FollowedState::Running);
    d.scheduler.delete(d.scheduler.instances()[0].id);
    d.a_minute_on().await;
    assert_eq!(d.state(), FollowedState::Gone);
}

#[tokio::test]
async fn an_instance_that_is_not_there_yet_may_still_come() {
    let d = started_as(InstanceState::Running).await;
    d.scheduler.delete(d.scheduler.instances()[0].id);
    for _ in 0..9 {
        d.a_minute_on().await;
    }
    assert_eq!(d.state(), FollowedState::Unseen);
    d.a_minute_on().await;
    d.a_minute_on().await;
    d.a_minute_on().await;
    assert_eq!(d.state(), FollowedState::Gone);
}

#[tokio::test]
async fn a_start_that_told_no_instance_finds_it_and_the_extra_ones() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    // The command waits, so the duplicate check finds a start without an instance.
    d.scheduler.fault(StartFault::TakesEffectThenTimesOut);
    d.scheduler.answer_check(CheckOutcome::Found { instances: Vec::new() });
    d.commit("a", "APPEND").await;
    d.run_dispatcher().await;
    assert_eq!(d.only().instance, None);
    d.scheduler.answer_check(CheckOutcome::Undecided { detail: "no master".to_owned() });
    d.a_minute_on().await;
    assert_eq!((d.only().instance, d.state()), (None, FollowedState::Unseen));
    let first = d.scheduler.instances()[0].id;
    let other = lakebell_domain::ids::InstanceId(first.0 + 7);
    d.scheduler.answer_check(CheckOutcome::Found { instances: vec![first, other] });
    d.a_minute_on().await;
    let trigger = d.only();
    assert_eq!((trigger.instance, trigger.extra_instances.as_slice()), (Some(first), &[other][..]));
    assert_eq!(trigger.followed().unwrap().state, FollowedState::Success);
}
