//! Following one instance, and listing all of a workflow's.

use jiff::{SignedDuration, Timestamp, Unit};
use lakebell_domain::ids::InstanceId;
use lakebell_engine::ports::scheduler::{CarriedKey, InstanceState, Scheduler, VersionLine};
use lakebell_scheduler_standin::{Delay, Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, PROJECT, held, key, name, seed};

fn to_the_second(time: Timestamp) -> Timestamp {
    time.round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor)).unwrap()
}

#[tokio::test]
async fn an_instance_is_followed_to_its_end_in_every_release() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.change(|world| world.settings.finish = Delay::MANUAL);
        bench.start("ac01").await;
        let id = bench.instances_of("ac01")[0];
        for (state, seen) in [
            ("RUNNING_EXECUTION", InstanceState::Running),
            ("A_STATE_OF_TOMORROW", InstanceState::Running),
            ("PAUSE", InstanceState::Suspended),
            ("FAILURE", InstanceState::Failure),
            ("STOP", InstanceState::Stopped),
            ("SUCCESS", InstanceState::Success),
        ] {
            bench.standin.change(|world| {
                let instance = world.instances.get_mut(&id.0).unwrap();
                state.clone_into(&mut instance.state);
                instance.end_time = Some(instance.start_time + SignedDuration::from_secs(90));
            });
            let told = bench.client.instance(&name(), PROJECT, id).await.unwrap().unwrap();
            let began = bench.standin.look(|world| world.instances[&id.0].start_time);
            assert_eq!((told.id, told.state, told.runs), (id, seen, 1), "{profile} {state}");
            assert_eq!(told.started_at, Some(to_the_second(began)), "{profile} {state}");
            let ended = told.ended_at.map(|end| end.duration_since(told.started_at.unwrap()).as_secs());
            assert_eq!(ended, seen.has_ended().then_some(90), "{profile} {state}");
        }
        // Back to running under the same id: a rerun, which counts one more.
        bench.standin.change(|world| {
            let instance = world.instances.get_mut(&id.0).unwrap();
            "RUNNING_EXECUTION".clone_into(&mut instance.state);
            instance.run_times = 2;
        });
        let told = bench.client.instance(&name(), PROJECT, id).await.unwrap().unwrap();
        assert_eq!((told.state, told.runs, told.ended_at), (InstanceState::Running, 2, None), "{profile}");
        bench.standin.change(|world| world.instances.remove(&id.0));
        assert_eq!(bench.client.instance(&name(), PROJECT, id).await, Ok(None), "{profile}: gone");
    }
}

#[tokio::test]
async fn an_instance_that_cannot_be_read_is_not_gone() {
    let lines =
        [(Profile::V3_1, VersionLine::V3_1), (Profile::V3_2, VersionLine::V3_2), (Profile::V3_4, VersionLine::V3_3)];
    for (profile, line) in lines {
        for (kind, code) in [
            (FaultKind::Unauthorized, "HTTP_401"),
            (FaultKind::RateLimited, "HTTP_429"),
            (FaultKind::ServerError, "HTTP_5xx"),
            (FaultKind::NullData, "UNEXPECTED_ANSWER"),
            (FaultKind::Html, "HTTP_2xx_NOT_JSON"),
            (FaultKind::DropBeforeAccept, "TRANSPORT_ERROR"),
        ] {
            let bench = Bench::with(profile, line).await;
            seed(&bench, 5, bench.since, "SUCCESS", None);
            bench.standin.fault(Fault::of(kind).on(Operation::Get));
            let refused = bench.client.instance(&name(), PROJECT, InstanceId(5)).await.unwrap_err();
            assert_eq!(refused.code, code, "{profile} {kind:?}");
            bench.clock.advance(5);
            assert!(bench.client.instance(&name(), PROJECT, InstanceId(5)).await.unwrap().is_some());
        }
        // Another project's is refused, not gone.
        let bench = Bench::with(profile, line).await;
        seed(&bench, 5, bench.since, "SUCCESS", None);
        bench.standin.change(|world| world.instances.get_mut(&5).unwrap().project = 8);
        let refused = bench.client.instance(&name(), PROJECT, InstanceId(5)).await.unwrap_err();
        assert_eq!(refused.code, "50003", "{profile}");
    }
}

#[tokio::test]
async fn the_list_tells_the_key_that_each_instance_carries() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.start("ac02").await;
        bench.backfill("ac03", jiff::civil::date(2026, 1, 1)).await;
        bench.standin.fault(Fault::of(FaultKind::TwoInstances));
        bench.start("ac04").await;
        bench.standin.fault(Fault::of(FaultKind::LoseParams));
        bench.start("ac05").await;
        seed(&bench, 900, bench.since, "SUCCESS", Some("a-value-that-is-no-key"));
        seed(&bench, 901, bench.since, "RUNNING_EXECUTION", None);
        let list = bench.listed().await.unwrap();
        let of = |wanted: &CarriedKey| list.instances.iter().filter(|listed| listed.key == *wanted).count();
        let keys = ["ac02", "ac03", "ac04", "ac05"].map(|trigger| of(&CarriedKey::Trigger(key(trigger))));
        assert_eq!(keys, [1, 1, 2, 0], "{profile}");
        assert_eq!((of(&CarriedKey::None), of(&CarriedKey::Unknown)), (2, 1), "{profile}");
        assert_eq!(list.cut, None, "{profile}");
        let ids: Vec<i64> = list.instances.iter().map(|listed| listed.report.id.0).collect();
        assert!(ids.is_sorted(), "{profile}");
        let first = &list.instances[0].report;
        assert_eq!(first.state, InstanceState::Success, "{profile}");
        assert!(first.started_at.is_some() && first.ended_at.is_some(), "{profile}");
    }
}

#[tokio::test]
async fn an_instance_without_parameters_has_the_key_of_its_command() {
    for profile in [Profile::V3_3, Profile::V3_4] {
        let bench = held(profile).await;
        bench.start("ac06").await;
        let list = bench.listed().await.unwrap();
        assert_eq!(list.instances.len(), 1, "{profile}");
        assert_eq!(list.instances[0].key, CarriedKey::Trigger(key("ac06")), "{profile}");
        // Its command could not be handled: the instance stays as it is, and the error list tells.
        let bench = Bench::new(profile).await;
        bench.standin.fault(Fault::of(FaultKind::CommandToError));
        bench.start("ac07").await;
        let list = bench.listed().await.unwrap();
        assert_eq!(list.instances[0].key, CarriedKey::Trigger(key("ac07")), "{profile}");
    }
}

#[tokio::test]
async fn every_page_is_listed_and_what_began_long_before_is_not() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        for id in 0..250 {
            seed(&bench, 1000 + id, bench.since + SignedDuration::from_secs(id), "SUCCESS", Some("ffff"));
        }
        seed(&bench, 10, bench.since - SignedDuration::from_hours(49), "SUCCESS", Some("ffff"));
        let list = bench.listed().await.unwrap();
        assert_eq!((list.instances.len(), list.cut), (250, None), "{profile}");
    }
}

#[tokio::test]
async fn a_list_that_was_cut_says_so() {
    let bench = Bench::new(Profile::V3_1).await;
    for id in 0..1001 {
        seed(&bench, 2000 + id, bench.since, "SUCCESS", Some("ffff"));
    }
    let list = bench.listed().await.unwrap();
    assert_eq!(list.instances.len(), 1001);
    assert!(list.cut.is_some());
    assert_eq!(list.instances[0].key, CarriedKey::Unknown);
}

#[tokio::test]
async fn a_list_that_a_fault_cuts_is_no_list() {
    let lines =
        [(Profile::V3_1, VersionLine::V3_1), (Profile::V3_2, VersionLine::V3_2), (Profile::V3_4, VersionLine::V3_3)];
    for (profile, line) in lines {
        for kind in [FaultKind::Unauthorized, FaultKind::ServerError, FaultKind::NullData, FaultKind::Html] {
            for on in [Operation::List, Operation::Commands, Operation::Get] {
                let reads = match on {
                    Operation::Commands => profile != Profile::V3_1,
                    Operation::Get => profile == Profile::V3_1,
                    _ => true,
                };
                if !reads {
                    continue;
                }
                let bench = Bench::with(profile, line).await;
                bench.start("ac08").await;
                bench.standin.fault(Fault::of(kind).on(on));
                assert!(bench.listed().await.is_err(), "{profile} {kind:?} {on:?}");
                bench.clock.advance(5);
                assert_eq!(bench.listed().await.unwrap().instances.len(), 1, "{profile} {kind:?} {on:?}");
            }
        }
    }
}
