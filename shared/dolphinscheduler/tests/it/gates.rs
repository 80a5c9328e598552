//! What a gate is told: how much is active, and what the latest instance came to.

use jiff::SignedDuration;
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::{Active, Latest, Scheduler, VersionLine, WorkflowRef};
use lakebell_scheduler_standin::{Delay, Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, PATIENCE, PROJECT, held, name, seed};

fn counted(instances: u32, pending: Option<u32>) -> Active {
    Active::Counted { instances, pending }
}

#[tokio::test]
async fn every_state_that_is_no_end_is_active() {
    let states = [
        ("SUBMITTED_SUCCESS", 1),
        ("RUNNING_EXECUTION", 1),
        ("SERIAL_WAIT", 1),
        ("READY_STOP", 1),
        ("READY_PAUSE", 1),
        ("A_STATE_OF_TOMORROW", 1),
        ("PAUSE", 0),
        ("STOP", 0),
        ("BLOCK", 0),
        ("FAILURE", 0),
        ("SUCCESS", 0),
    ];
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        for (state, active) in states {
            seed(&bench, 900, bench.since, state, Some("ab01"));
            assert_eq!(bench.active().await, counted(active, Some(0)), "{profile} {state}");
        }
        let other = bench.standin.define(PROJECT.0, "other");
        seed(&bench, 901, bench.since, "RUNNING_EXECUTION", None);
        bench.standin.change(|world| world.instances.get_mut(&901).unwrap().definition = other);
        assert_eq!(bench.active().await, counted(0, Some(0)), "{profile}: another workflow's");
    }
}

#[tokio::test]
async fn a_start_that_waits_for_a_master_is_counted_where_the_release_can_tell() {
    for profile in Profile::RELEASES {
        let bench = held(profile).await;
        bench.start("ab02").await;
        bench.backfill("ab03", jiff::civil::date(2026, 1, 1)).await;
        let expected = match profile {
            // Two starts of somebody wait.
            Profile::V3_1 => counted(0, None),
            Profile::V3_2 => counted(0, Some(2)),
            // They are instances already, and in the list of commands as well: counted once.
            _ => counted(2, Some(0)),
        };
        assert_eq!(bench.active().await, expected, "{profile}");
        bench.standin.change(|world| world.settings.finish = Delay::MANUAL);
        bench.standin.consume_all();
        assert_eq!(bench.active().await, counted(2, Some(0)), "{profile}");
    }
}

#[tokio::test]
async fn an_ended_instance_whose_rerun_waits_is_active() {
    for profile in [Profile::V3_3, Profile::V3_4] {
        let bench = held(profile).await;
        bench.start("ab06").await;
        // The command of a rerun names an instance that is still shown as ended.
        bench.standin.change(|world| {
            let id = world.commands[0].instances[0];
            world.instances.get_mut(&id).unwrap().state = "SUCCESS".to_owned();
        });
        assert_eq!(bench.active().await, counted(1, Some(0)), "{profile}");
        assert!(matches!(bench.latest().await, Latest::Running { instance: Some(_) }), "{profile}");
    }
}

#[tokio::test]
async fn a_start_that_moves_while_it_is_counted_is_not_missed() {
    for profile in [Profile::V3_2, Profile::V3_3, Profile::V3_4] {
        for on in [Operation::Commands, Operation::List] {
            let bench = held(profile).await;
            bench.standin.change(|world| world.settings.finish = Delay::MANUAL);
            bench.start("ab04").await;
            bench.standin.fault(Fault::of(FaultKind::ConsumeFirst).on(on));
            let Active::Counted { instances, pending } = bench.active().await else { panic!("{profile}") };
            assert!(instances + pending.unwrap_or(0) >= 1, "{profile} {on:?}");
        }
    }
}

#[tokio::test]
async fn what_runs_since_long_ago_is_counted() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let long_ago = bench.since - SignedDuration::from_hours(24 * 90);
        seed(&bench, 500, long_ago, "RUNNING_EXECUTION", None);
        seed(&bench, 501, long_ago, "READY_STOP", None);
        for later in 0..150 {
            seed(&bench, 1000 + later, bench.since + SignedDuration::from_secs(later), "SUCCESS", None);
        }
        seed(&bench, 2000, bench.since + SignedDuration::from_hours(1), "RUNNING_EXECUTION", None);
        assert_eq!(bench.active().await, counted(3, Some(0)), "{profile}");
    }
}

#[tokio::test]
async fn more_than_a_page_of_active_instances_is_counted() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        for id in 0..250 {
            seed(&bench, 1000 + id, bench.since, "RUNNING_EXECUTION", None);
        }
        assert_eq!(bench.active().await, counted(250, Some(0)), "{profile}");
    }
}

#[tokio::test]
async fn the_latest_instance_decides() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        assert_eq!(bench.latest().await, Latest::None, "{profile}");
        seed(&bench, 9, bench.since - SignedDuration::from_hours(2), "FAILURE", None);
        assert_eq!(bench.latest().await, Latest::Failed { instance: InstanceId(9) }, "{profile}");
        // Begun later, though its id is lower.
        seed(&bench, 5, bench.since - SignedDuration::from_hours(1), "SUCCESS", None);
        assert_eq!(bench.latest().await, Latest::Succeeded { instance: InstanceId(5) }, "{profile}");
        // Begun within the same second: the higher id.
        seed(&bench, 11, bench.since, "STOP", None);
        seed(&bench, 10, bench.since, "SUCCESS", None);
        assert_eq!(bench.latest().await, Latest::Failed { instance: InstanceId(11) }, "{profile}");
        for state in ["RUNNING_EXECUTION", "PAUSE", "SERIAL_WAIT", "A_STATE_OF_TOMORROW"] {
            seed(&bench, 12, bench.since + SignedDuration::from_secs(5), state, None);
            let running = Latest::Running { instance: Some(InstanceId(12)) };
            assert_eq!(bench.latest().await, running, "{profile} {state}");
        }
        let by_name = WorkflowRef::Name("dwd_trade".to_owned());
        let named = bench.client.latest(&name(), PROJECT, &by_name).await;
        assert_eq!(named, Latest::Running { instance: Some(InstanceId(12)) }, "{profile}");
    }
}

#[tokio::test]
async fn a_start_that_waits_is_the_latest_where_the_release_can_tell() {
    for profile in [Profile::V3_2, Profile::V3_3, Profile::V3_4] {
        let bench = held(profile).await;
        seed(&bench, 5, bench.since, "SUCCESS", None);
        bench.start("ab05").await;
        let Latest::Running { instance } = bench.latest().await else { panic!("{profile}") };
        assert_eq!(instance.is_some(), profile.says_workflow(), "{profile}");
    }
}

#[tokio::test]
async fn an_offline_workflow_still_has_a_latest_instance() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        seed(&bench, 5, bench.since, "SUCCESS", None);
        bench.set_online(false);
        assert_eq!(bench.latest().await, Latest::Succeeded { instance: InstanceId(5) }, "{profile}");
    }
}

#[tokio::test]
async fn a_workflow_that_is_not_there_is_missing_and_not_without_instances() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        for (connection, project, workflow) in [
            (name(), PROJECT, WorkflowRef::Code(WorkflowCode(5))),
            (name(), PROJECT, WorkflowRef::Name("nothing".to_owned())),
            (name(), ProjectCode(8), WorkflowRef::Code(bench.workflow)),
            (ConnectionName::new("other").unwrap(), PROJECT, WorkflowRef::Code(bench.workflow)),
        ] {
            let found = bench.client.latest(&connection, project, &workflow).await;
            assert!(matches!(found, Latest::Missing { .. }), "{profile} {workflow:?}: {found:?}");
        }
    }
}

#[tokio::test]
async fn a_gate_that_cannot_be_asked_is_unavailable() {
    let faults = [
        (FaultKind::Unauthorized, "HTTP_401"),
        (FaultKind::RateLimited, "HTTP_429"),
        (FaultKind::ServerError, "HTTP_5xx"),
        (FaultKind::NullData, "UNEXPECTED_ANSWER"),
        (FaultKind::Html, "HTTP_2xx_NOT_JSON"),
        (FaultKind::DropBeforeAccept, "TRANSPORT_ERROR"),
    ];
    let lines =
        [(Profile::V3_1, VersionLine::V3_1), (Profile::V3_2, VersionLine::V3_2), (Profile::V3_4, VersionLine::V3_3)];
    for (profile, line) in lines {
        for (kind, code) in faults {
            for on in [Operation::List, Operation::Commands] {
                let bench = Bench::with(profile, line).await;
                seed(&bench, 5, bench.since, "SUCCESS", None);
                bench.standin.fault(Fault::of(kind).on(on));
                let Active::Unavailable(refusal) = bench.active().await else { panic!("{profile} {kind:?} {on:?}") };
                assert_eq!(refusal.code, code, "{profile} {kind:?} {on:?}");
                bench.clock.advance(5);
                assert_eq!(bench.active().await, counted(0, Some(0)), "{profile} {kind:?} {on:?}");
                // 3.1 looks at no commands for the latest instance.
                if profile != Profile::V3_1 || on == Operation::List {
                    bench.standin.fault(Fault::of(kind).on(on));
                    let Latest::Unavailable(refusal) = bench.latest().await else {
                        panic!("{profile} {kind:?} {on:?}")
                    };
                    assert_eq!(refusal.code, code, "{profile} {kind:?} {on:?}");
                    bench.clock.advance(5);
                }
                assert_eq!(bench.latest().await, Latest::Succeeded { instance: InstanceId(5) }, "{profile} {kind:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_question_without_an_answer_ends_after_its_time() {
    let bench = std::sync::Arc::new(Bench::with(Profile::V3_3, VersionLine::V3_3).await);
    bench.standin.fault(Fault::of(FaultKind::HangBeforeAccept).on(Operation::List));
    let asker = std::sync::Arc::clone(&bench);
    let asking = tokio::spawn(async move { asker.active().await });
    assert!(bench.standin.wait_until(PATIENCE, |world| world.faults.is_empty()).await);
    tokio::time::pause();
    tokio::time::advance(PATIENCE).await;
    let Active::Unavailable(refusal) = asking.await.unwrap() else { panic!("nothing was answered") };
    assert_eq!(refusal.code, "TRANSPORT_ERROR");
}
