//! What became of a started workflow, beside SUCCESS.

use lakebell_domain::ids::{InstanceId, TaskCode};
use lakebell_domain::sensor::{Asker, SensorRun};
use lakebell_domain::trigger::{Arrow, FOLLOWED_FOR, FollowedState, Sighting, Trigger};

use crate::support::at;
use crate::walks::{claimed, claimed_for_sensor};

fn started() -> Trigger {
    let leased = claimed().apply(&Arrow::Lease { until: at(30) }, at(0)).unwrap();
    leased.apply(&Arrow::Succeed { instance: Some(InstanceId(5)) }, at(0)).unwrap()
}

fn seen(state: FollowedState) -> Sighting {
    Sighting::Seen { state, started_at: Some(at(2)), ended_at: None, runs: 1 }
}

#[test]
fn only_what_started_is_followed() {
    assert_eq!(claimed().followed(), None);
    assert_eq!(claimed().asked(at(1_000)), None);
    assert_eq!(claimed().sighted(&Sighting::Absent, at(1_000)), None);
    let started = started();
    assert_eq!((started.due_at, started.timer()), (None, Some(at(60))), "an ended trigger has no step of its own");
    assert_eq!(started.asked(at(59)), None);
}

#[test]
fn a_waiting_task_is_followed_where_it_names_its_instance() {
    let task = TaskCode(12);
    let taken = |asker| {
        let answer = Arrow::Answer { task, run: SensorRun { asker, run: 1 } };
        claimed_for_sensor().apply(&answer, at(0)).unwrap()
    };
    assert!(taken(Asker::WorkflowInstance(InstanceId(31))).followed().is_some());
    assert_eq!(taken(Asker::Token("k-1".parse().unwrap())).timer(), None, "no instance carries its key");
}

#[test]
fn an_end_is_final() {
    for end in [FollowedState::Success, FollowedState::Failure, FollowedState::Stopped] {
        let ended = started().sighted(&seen(end), at(100)).unwrap();
        assert_eq!((ended.timer(), ended.followed().unwrap().told_at), (None, Some(at(100))));
        for later in [seen(FollowedState::Running), seen(FollowedState::Success), Sighting::Absent] {
            assert_eq!(ended.sighted(&later, at(200)), None, "{end:?} {later:?}");
        }
        assert_eq!(ended.asked(at(1_000)), None);
    }
}

#[test]
fn what_is_told_again_is_nothing_new() {
    let running = started().sighted(&seen(FollowedState::Running), at(100)).unwrap();
    assert_eq!(running.sighted(&seen(FollowedState::Running), at(200)), None);
    assert!(running.sighted(&seen(FollowedState::Suspended), at(200)).is_some());
}

#[test]
fn it_is_not_asked_about_for_ever() {
    let mut trigger = started();
    let mut asked = 0;
    while let Some(due_at) = trigger.timer() {
        trigger = trigger.asked(due_at).unwrap();
        asked += 1;
    }
    assert_eq!(trigger.followed().unwrap().state, FollowedState::Lost);
    assert!(trigger.followed().unwrap().told_at.unwrap() >= at(0) + FOLLOWED_FOR);
    assert!(asked < 200, "{asked} questions");
}

#[test]
fn the_lowest_instance_is_its_own_and_the_others_are_extra() {
    let known = started();
    assert_eq!(known.found(&[InstanceId(5)]), None);
    let extra = known.found(&[InstanceId(4), InstanceId(5), InstanceId(9)]).unwrap();
    assert_eq!(extra.instance, Some(InstanceId(5)), "what was recorded stays");
    assert_eq!(extra.extra_instances, [InstanceId(4), InstanceId(9)]);
    assert_eq!(extra.found(&[InstanceId(5), InstanceId(9)]), None);
    let many: Vec<InstanceId> = (0..500).map(InstanceId).collect();
    assert_eq!(known.found(&many).unwrap().extra_instances.len(), 20);
}

#[test]
fn a_trigger_of_an_earlier_version_is_read_and_not_followed() {
    let mut stored = serde_json::to_value(started()).unwrap();
    stored.as_object_mut().unwrap().remove("followed").unwrap();
    let trigger: Trigger = serde_json::from_value(stored).unwrap();
    assert_eq!((trigger.followed(), trigger.timer()), (None, None));
}
