//! Polls that wait: what ends them, how many may, and what polls cost.

use std::time::Duration;

use lakebell_engine::ErrorKind;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::sensor::{self, BETWEEN_LOOKS, LONGEST_WAIT, Patience};
use lakebell_testkit::{Fault, Op};
use serde_json::json;

use super::{NOTHING_NEW, ask_of, not_yet, ready, run_of, with};
use crate::support::{Deployment, trace};

#[tokio::test]
async fn a_poll_that_waits_sees_what_comes() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    ready(d.poll(1).await);
    let began = d.world.clock.now();
    // A commit is advanced just before the third look.
    let id = d.table("a").commit("APPEND", 1);
    let (watcher, created) = (lakebell_engine::watch::Watcher::new(d.world.quiet_ports()), d.created("a", id));
    d.world.tap.before(Op::Get, 5, move || async move {
        watcher.created(&created, &trace()).await.unwrap();
    });
    let (trigger, is_recorded) = ready(d.try_poll(&ask_of(run_of(2, 1)), &d.world.ports(), 20).await.unwrap());
    assert_eq!((is_recorded, Deployment::took(&trigger)), (false, vec!["a(1,2]".to_owned()]));
    assert_eq!(d.world.clock.now().duration_since(began), BETWEEN_LOOKS * 2);
}

#[tokio::test]
async fn the_wait_has_an_end_and_its_reads_are_few() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    ready(d.poll(1).await);
    for (seconds, waits) in [(0, 0), (3, 3), (20, 20), (3_600, 20)] {
        let began = d.world.clock.now();
        d.calls_of_poll();
        let ask = ask_of(run_of(2, 1));
        assert_eq!(not_yet(d.try_poll(&ask, &d.world.ports(), seconds).await.unwrap()), NOTHING_NEW);
        assert_eq!(d.world.clock.now().duration_since(began).as_secs(), waits);
        let mut expected = vec![Op::Get, Op::Get];
        if waits > 0 {
            expected.extend([Op::Get, Op::Write]);
        }
        expected.extend(std::iter::repeat_n(Op::Get, usize::try_from(waits).unwrap().div_ceil(5)));
        assert_eq!(d.calls_of_poll(), expected, "{seconds} s");
    }
    assert_eq!(LONGEST_WAIT.as_secs(), 20);
}

#[tokio::test]
async fn beyond_the_places_a_poll_is_answered_at_once() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    ready(d.poll(1).await);
    let now = d.world.clock.now();
    let ports = d.world.ports();
    let poll = async |instance: i64, places: u8| {
        // A clock of its own: the others still wait meanwhile.
        let clock = lakebell_testkit::SimClock::at(now);
        let ports = Ports { clock: std::sync::Arc::new(clock.clone()), ..ports.clone() };
        let patience = Patience { time: LONGEST_WAIT, places, pause: &clock };
        let answer = sensor::ask(&ports, &ask_of(run_of(instance, 1)), patience, &trace()).await.unwrap();
        assert!(!answer.is_ready());
        clock.now() > now
    };
    let mut waited = 0;
    for instance in 2..60 {
        waited += usize::from(poll(instance, 3).await);
    }
    assert_eq!(waited, 3, "of 58 at the same time");
    assert!(!poll(100, 0).await, "no places");
    // They free themselves.
    d.world.clock.advance(Duration::from_secs(21));
    let answer = d.try_poll(&ask_of(run_of(101, 1)), &d.world.ports(), 5).await.unwrap();
    assert!(!answer.is_ready());
    assert_eq!(d.world.clock.now().duration_since(now).as_secs(), 26);
    assert!(d.world.items.dump().iter().filter(|item| item.key.pk.starts_with("SP#")).count() <= 4);
}

#[tokio::test]
async fn a_failing_store_ends_the_wait_and_is_no_failure() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    ready(d.poll(1).await);
    // Reads: definition, look, places, then the looks of the wait.
    for (op, nth, waits) in [(Op::Get, 3, 0), (Op::Write, 1, 0), (Op::Get, 5, 10)] {
        let began = d.world.clock.now();
        d.world.tap.fault(op, nth, Fault::Before(ErrorKind::Unavailable));
        let answer = d.try_poll(&ask_of(run_of(2, 1)), &d.world.ports(), 20).await.unwrap();
        assert_eq!(not_yet(answer), NOTHING_NEW);
        assert_eq!(d.world.clock.now().duration_since(began).as_secs(), waits, "{op:?} {nth}");
        d.world.clock.advance(Duration::from_mins(1));
    }
    d.world.tap.fault(Op::Get, 1, Fault::Before(ErrorKind::Unavailable));
    assert!(d.try_poll(&ask_of(run_of(2, 1)), &d.world.ports(), 20).await.unwrap_err().retryable());
}

#[tokio::test]
async fn a_poll_costs_two_reads_and_what_it_takes_one_write() {
    let mut d = with(&["a", "b"], &json!({})).await;
    for _ in 0..200 {
        d.commit("a", "APPEND").await;
    }
    d.calls_of_poll();
    d.poll(1).await;
    assert_eq!(d.calls_of_poll(), [Op::Get, Op::Get], "it waits");
    d.commit("b", "APPEND").await;
    d.calls_of_poll();
    d.poll(1).await;
    assert_eq!(d.calls_of_poll(), [Op::Get, Op::Get, Op::Write], "it is ready");
    d.poll(1).await;
    assert_eq!(d.calls_of_poll(), [Op::Get, Op::Get, Op::Get], "it was ready before");
}
