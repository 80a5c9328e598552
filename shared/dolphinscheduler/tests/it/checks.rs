//! The duplicate check in every window between a start and its visibility.

use jiff::SignedDuration;
use lakebell_domain::ids::InstanceId;
use lakebell_engine::ports::scheduler::{CheckOutcome, VersionLine};
use lakebell_scheduler_standin::{Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, held, seed};

fn undecided(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::Undecided { .. })
}

#[tokio::test]
async fn where_nothing_was_started_the_round_is_clean() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        assert_eq!(bench.check("dd01").await, CheckOutcome::CleanRound, "{profile}");
        bench.start("dd02").await;
        assert_eq!(bench.check("dd01").await, CheckOutcome::CleanRound, "{profile}: another trigger's instance");
    }
}

#[tokio::test]
async fn a_start_that_waits_for_a_master_is_never_taken_for_absent() {
    for profile in Profile::RELEASES {
        let bench = held(profile).await;
        bench.start("dd03").await;
        let outcome = bench.check("dd03").await;
        match profile {
            Profile::V3_1 => assert!(undecided(&outcome), "{outcome:?}"),
            Profile::V3_2 => assert_eq!(outcome, CheckOutcome::Found { instances: Vec::new() }),
            _ => {
                let made = bench.standin.look(|world| world.commands[0].instances[0]);
                assert_eq!(outcome, CheckOutcome::Found { instances: vec![InstanceId(made)] });
            }
        }
        bench.standin.consume_all();
        let found = CheckOutcome::Found { instances: bench.instances_of("dd03") };
        assert_eq!(bench.check("dd03").await, found, "{profile}");
        assert_eq!(bench.instances_of("dd03").len(), 1);
    }
}

#[tokio::test]
async fn a_start_that_moves_from_command_to_instance_between_two_reads_is_seen() {
    for profile in Profile::RELEASES {
        for (on, skip) in
            [(Operation::Commands, 0), (Operation::Commands, 1), (Operation::List, 0), (Operation::Masters, 0)]
        {
            let bench = held(profile).await;
            bench.start("dd15").await;
            bench.standin.fault(Fault { skip, ..Fault::of(FaultKind::ConsumeFirst).on(on) });
            let outcome = bench.check("dd15").await;
            // 3.1 shows a count only, and a count that was there once is in the way.
            let safe =
                matches!(outcome, CheckOutcome::Found { .. }) || (profile == Profile::V3_1 && undecided(&outcome));
            assert!(safe, "{profile} {on:?} {skip}: {outcome:?}");
            let found = CheckOutcome::Found { instances: bench.instances_of("dd15") };
            assert_eq!(bench.check("dd15").await, found, "{profile} {on:?} {skip}");
        }
    }
}

#[tokio::test]
async fn a_backfill_that_waits_is_never_taken_for_absent() {
    for profile in Profile::RELEASES {
        let bench = held(profile).await;
        bench.backfill("dd16", jiff::civil::date(2026, 3, 31)).await;
        let outcome = bench.check("dd16").await;
        let safe = matches!(outcome, CheckOutcome::Found { .. }) || (profile == Profile::V3_1 && undecided(&outcome));
        assert!(safe, "{profile}: {outcome:?}");
        bench.standin.consume_all();
        let found = CheckOutcome::Found { instances: bench.instances_of("dd16") };
        assert_eq!(bench.check("dd16").await, found, "{profile}");
    }
}

#[tokio::test]
async fn another_start_that_waits_is_in_the_way_only_where_it_cannot_be_told_apart() {
    for profile in Profile::RELEASES {
        let bench = held(profile).await;
        bench.start("dd04").await;
        let outcome = bench.check("dd05").await;
        if profile == Profile::V3_1 {
            assert!(undecided(&outcome), "{outcome:?}");
        } else {
            assert_eq!(outcome, CheckOutcome::CleanRound, "{profile}");
        }
    }
}

#[tokio::test]
async fn a_running_instance_without_parameters_is_undecided() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        seed(&bench, 900, bench.since, "SUBMITTED_SUCCESS", None);
        let outcome = bench.check("dd06").await;
        assert!(undecided(&outcome), "{profile} {outcome:?}");
        seed(&bench, 900, bench.since, "STOP", None);
        assert_eq!(bench.check("dd06").await, CheckOutcome::CleanRound, "{profile}");
    }
}

#[tokio::test]
async fn a_command_that_failed_is_not_sent_again() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.fault(Fault::of(FaultKind::CommandToError));
        bench.start("dd07").await;
        let outcome = bench.check("dd07").await;
        match profile {
            // Nothing in 3.1 shows whose command failed.
            Profile::V3_1 => assert_eq!(outcome, CheckOutcome::CleanRound),
            Profile::V3_2 => assert!(undecided(&outcome), "{outcome:?}"),
            _ => {
                let made = bench.standin.look(|world| world.error_commands[0].instances[0]);
                assert_eq!(outcome, CheckOutcome::Found { instances: vec![InstanceId(made)] });
            }
        }
    }
}

#[tokio::test]
async fn without_a_master_absence_is_not_proven() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.fault(Fault::of(FaultKind::NoMaster).on(Operation::Masters));
        let outcome = bench.check("dd08").await;
        assert!(undecided(&outcome), "{profile} {outcome:?}");
        assert_eq!(bench.check("dd08").await, CheckOutcome::CleanRound, "{profile}");
    }
}

#[tokio::test]
async fn a_round_that_a_fault_cuts_does_not_count() {
    let faults = [
        FaultKind::Unauthorized,
        FaultKind::RateLimited,
        FaultKind::ServerError,
        FaultKind::NullData,
        FaultKind::Html,
        FaultKind::DropBeforeAccept,
    ];
    let lines =
        [(Profile::V3_1, VersionLine::V3_1), (Profile::V3_2, VersionLine::V3_2), (Profile::V3_4, VersionLine::V3_3)];
    for (profile, line) in lines {
        for kind in faults {
            for on in [Operation::List, Operation::Commands, Operation::Masters] {
                let bench = Bench::with(profile, line).await;
                bench.start("dd09").await;
                bench.standin.fault(Fault::of(kind).on(on));
                let outcome = bench.check("dd10").await;
                assert!(matches!(outcome, CheckOutcome::Unavailable(_)), "{profile} {kind:?} {on:?}: {outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn every_page_is_read_back_to_the_start() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        // 250 later starts of others push ours to the third page.
        seed(&bench, 1000, bench.since, "SUCCESS", Some("dd11"));
        for later in 1..=250 {
            let began = bench.since + SignedDuration::from_secs(later);
            seed(&bench, 1000 + later, began, "SUCCESS", Some("ffff"));
        }
        let found = CheckOutcome::Found { instances: vec![InstanceId(1000)] };
        assert_eq!(bench.check("dd11").await, found, "{profile}");
    }
}

#[tokio::test]
async fn instances_are_found_a_day_around_the_start_whatever_the_zones() {
    let bench = Bench::new(Profile::V3_2).await;
    seed(&bench, 50, bench.since - SignedDuration::from_hours(23), "SUCCESS", Some("dd12"));
    seed(&bench, 40, bench.since - SignedDuration::from_hours(49), "SUCCESS", Some("dd12"));
    assert_eq!(bench.check("dd12").await, CheckOutcome::Found { instances: vec![InstanceId(50)] });
}

#[tokio::test]
async fn only_the_connections_user_is_looked_at_where_one_is_declared() {
    let bench = Bench::new(Profile::V3_3).await;
    bench.standin.change(|world| world.settings.executor = "somebody".to_owned());
    bench.start("dd13").await;
    assert_eq!(bench.check("dd13").await, CheckOutcome::CleanRound);
    bench.connections.spec.lock().unwrap().as_mut().unwrap().user = None;
    assert!(matches!(bench.check("dd13").await, CheckOutcome::Found { .. }));
}

#[tokio::test]
async fn a_workflow_with_too_many_instances_to_read_one_by_one_is_undecided() {
    let bench = Bench::new(Profile::V3_1).await;
    for id in 0..1001 {
        seed(&bench, 2000 + id, bench.since, "SUCCESS", Some("ffff"));
    }
    let outcome = bench.check("dd14").await;
    assert!(undecided(&outcome), "{outcome:?}");
}
