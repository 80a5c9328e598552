//! Runs that ask at once, again, or after a poll that died: each combination goes to one of them.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use lakebell_domain::ids::{InstanceId, TriggerKey};
use lakebell_domain::reason::Verdict;
use lakebell_domain::trigger::Trigger;
use lakebell_engine::ErrorKind;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::sensor::{self, ANSWERS_KEPT, Answer, Patience};
use lakebell_testkit::{Fault, Op};
use serde_json::json;

use super::{NOTHING_NEW, ask_of, not_yet, ready, run_of, with};
use crate::support::{Deployment, trace};

#[tokio::test]
async fn a_poll_that_dies_after_its_claim_is_answered_by_the_next() {
    for fault in [Fault::LostAnswer, Fault::DiesAfter, Fault::DiesBefore, Fault::Before(ErrorKind::Contention)] {
        let mut d = with(&["a"], &json!({})).await;
        d.commit("a", "APPEND").await;
        d.world.tap.fault(Op::Write, 1, fault);
        let failed = d.try_poll(&ask_of(run_of(1, 1)), &d.world.ports(), 0).await.unwrap_err();
        assert!(failed.retryable(), "{fault:?}: {failed}");
        d.world.tap.revive();
        // Another instance in between does not get what the first one took.
        let landed = matches!(fault, Fault::LostAnswer | Fault::DiesAfter);
        if landed {
            assert_eq!(not_yet(d.poll(2).await), NOTHING_NEW, "{fault:?}");
        }
        let (trigger, is_recorded) = ready(d.poll(1).await);
        assert_eq!((is_recorded, Deployment::took(&trigger)), (landed, vec!["a(-,1]".to_owned()]), "{fault:?}");
        assert_eq!(d.triggers("t").len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn the_same_run_polling_between_read_and_claim_takes_nothing_twice() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let ports = d.world.quiet_ports();
    let clock = d.world.clock.clone();
    d.world.tap.before(Op::Write, 1, move || async move {
        let patience = Patience { time: SignedDuration::ZERO, places: 0, pause: &clock };
        let other = sensor::ask(&ports, &ask_of(run_of(1, 1)), patience, &trace()).await.unwrap();
        assert!(other.is_ready());
    });
    let (trigger, is_recorded) = ready(d.poll(1).await);
    assert!(is_recorded);
    assert_eq!(d.triggers("t"), [trigger]);
}

#[tokio::test]
async fn a_run_that_read_before_its_own_claim_and_after_the_next_commit_is_not_answered_twice() {
    // The batch read is no snapshot: the record is missing from it, and the cursors are past the claim.
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let (first, _) = ready(d.poll(1).await);
    d.commit("a", "APPEND").await;
    let kept = d.keep_answers().remove(0);
    d.world.items.forget_expired(d.world.clock.now() + ANSWERS_KEPT + SignedDuration::from_hours(1));
    assert!(d.keep_answers().is_empty());
    let items = d.world.items.clone();
    d.world.tap.before(Op::Write, 1, move || async move { items.plant(kept) });
    assert_eq!(ready(d.poll(1).await), (first, true));
    assert_eq!(d.triggers("t").len(), 1);
    assert_eq!(d.why("t").await.verdict, Verdict::Ready, "the second commit is left for another run");
}

#[tokio::test]
async fn each_combination_goes_to_exactly_one_of_two_instances() {
    let mut d = with(&["a"], &json!({})).await;
    d.commit("a", "APPEND").await;
    let (first, _) = ready(d.poll(1).await);
    assert_eq!(not_yet(d.poll(2).await), NOTHING_NEW);
    d.commit("a", "APPEND").await;
    let (second, _) = ready(d.poll(2).await);
    assert_eq!([Deployment::took(&first), Deployment::took(&second)], [["a(-,1]"], ["a(1,2]"]]);
    assert_eq!((first.instance, second.instance), (Some(InstanceId(1)), Some(InstanceId(2))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_pollers_on_one_target_one_gets_it() {
    for same_run in [false, true] {
        let mut d = with(&["a"], &json!({})).await;
        d.commit("a", "APPEND").await;
        let mut polls = tokio::task::JoinSet::new();
        for poller in 0..64 {
            let (ports, clock) = (d.world.ports(), d.world.clock.clone());
            polls.spawn(async move {
                let patience = Patience { time: SignedDuration::ZERO, places: 0, pause: &clock };
                let ask = ask_of(run_of(if same_run { 1 } else { poller + 1 }, 1));
                sensor::ask(&ports, &ask, patience, &trace()).await.unwrap()
            });
        }
        let answers = polls.join_all().await;
        let taken: Vec<(Trigger, bool)> = answers.into_iter().filter(Answer::is_ready).map(ready).collect();
        assert_eq!(taken.iter().filter(|(_, is_recorded)| !is_recorded).count(), 1, "same run: {same_run}");
        assert_eq!(taken.len(), if same_run { 64 } else { 1 });
        let keys: BTreeSet<&TriggerKey> = taken.iter().map(|(trigger, _)| &trigger.key).collect();
        assert_eq!((keys.len(), d.triggers("t").len(), d.keep_answers().len()), (1, 1, 1));
    }
}
