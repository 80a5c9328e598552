//! What users of DolphinScheduler reported publicly, played against the client.

use std::sync::Arc;

use lakebell_engine::ports::scheduler::{CheckOutcome, InstanceState, Scheduler, StartOutcome, VersionLine};
use lakebell_scheduler_standin::{Delay, Fault, FaultKind, Profile};

use crate::support::{Bench, PATIENCE, PROJECT, name};

/// Two masters read one command: both instances are reported, the lowest to be adopted, and there
/// is no third.
#[tokio::test]
async fn case_80_two_instances_of_one_command_are_both_reported() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.fault(Fault::of(FaultKind::TwoInstances));
        bench.standin.fault(Fault::of(FaultKind::DropAfterAccept));
        assert!(matches!(bench.start("ee80").await, StartOutcome::Ambiguous(_)), "{profile}");
        let both = bench.instances_of("ee80");
        assert_eq!(both.len(), 2, "{profile}");
        assert!(both[0] < both[1]);
        assert_eq!(bench.check("ee80").await, CheckOutcome::Found { instances: both }, "{profile}");
        assert_eq!(bench.start_calls(), 1, "{profile}");
    }
}

/// Success without an instance id: the id is found later by the trigger key.
#[tokio::test]
async fn case_81_an_instance_that_the_answer_does_not_name_is_found_later() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.change(|world| world.settings.consume = Delay::MANUAL);
        bench.standin.fault(Fault::of(FaultKind::NullData));
        assert_eq!(bench.start("ee81").await, StartOutcome::Started { instance: None }, "{profile}");
        bench.standin.consume_all();
        let made = bench.instances_of("ee81");
        assert_eq!(made.len(), 1, "{profile}");
        assert_eq!(bench.check("ee81").await, CheckOutcome::Found { instances: made }, "{profile}");
    }
}

/// A serial workflow that begins without its parameters: the start was answered, so it stands, and
/// nothing makes the client send another. That the key cannot be found again is the limit of
/// serial workflows.
#[tokio::test]
async fn case_82_a_workflow_that_loses_its_parameters_is_still_started_once() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.fault(Fault::of(FaultKind::LoseParams));
        assert!(matches!(bench.start("ee82").await, StartOutcome::Started { .. }), "{profile}");
        assert!(bench.instances_of("ee82").is_empty(), "{profile}");
        assert_eq!(bench.standin.look(|world| (world.start_calls, world.instances.len())), (1, 1), "{profile}");
    }
}

/// Pile-ups come from calls that are repeated. Whatever goes wrong, one start is one call; and a
/// start that a serial workflow discards is seen as stopped.
#[tokio::test]
async fn case_83_no_fault_makes_the_client_call_twice() {
    let faults = [
        FaultKind::DropBeforeAccept,
        FaultKind::DropAfterAccept,
        FaultKind::TimeoutBeforeAccept,
        FaultKind::ErrorAfterAccept,
        FaultKind::NoMaster,
        FaultKind::NullData,
    ];
    for profile in Profile::RELEASES {
        for kind in faults {
            let bench = Bench::new(profile).await;
            bench.standin.fault(Fault::of(kind));
            bench.start("ee83").await;
            assert!(bench.start_calls() <= 1, "{profile} {kind:?}");
        }
        let bench = Bench::new(profile).await;
        let code = bench.workflow.0;
        bench.standin.change(|world| {
            world.settings.finish = Delay::MANUAL;
            "SERIAL_DISCARD".clone_into(&mut world.definitions.get_mut(&code).unwrap().execution_type);
        });
        bench.start("ee83").await;
        bench.start("ef83").await;
        let discarded = bench.instances_of("ef83")[0];
        let told = bench.client.instance(&name(), PROJECT, discarded).await.unwrap().unwrap();
        assert_eq!(told.state, InstanceState::Stopped, "{profile}");
    }
}

/// The scheduler starts the run and then says nothing: look before any retry, and find one instance.
#[tokio::test]
async fn case_84_a_start_that_takes_effect_and_hangs_is_found_and_not_repeated() {
    for (profile, line) in [(Profile::V3_1, VersionLine::V3_1), (Profile::V3_4, VersionLine::V3_3)] {
        let bench = Arc::new(Bench::with(profile, line).await);
        bench.standin.fault(Fault::of(FaultKind::HangAfterAccept));
        let sender = Arc::clone(&bench);
        let starting = tokio::spawn(async move { sender.start("ee84").await });
        assert!(bench.standin.wait_until(PATIENCE, |world| world.faults.is_empty()).await, "{profile}");
        tokio::time::pause();
        tokio::time::advance(bench.client.start_timeout()).await;
        assert!(matches!(starting.await.unwrap(), StartOutcome::Ambiguous(_)), "{profile}");
        tokio::time::resume();
        let made = bench.instances_of("ee84");
        assert_eq!(made.len(), 1, "{profile}");
        assert_eq!(bench.check("ee84").await, CheckOutcome::Found { instances: made }, "{profile}");
        assert_eq!(bench.start_calls(), 1, "{profile}");
    }
}

/// Errors come with HTTP 200; the code and, where one code means several things, the text decide.
#[tokio::test]
async fn case_87_errors_with_http_200_are_told_apart() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.set_online(false);
        let outcome = bench.start("ee87").await;
        let StartOutcome::Offline(refusal) = outcome else { panic!("{profile}: {outcome:?}") };
        assert_eq!(refusal.code, if profile.says_workflow() { "50014" } else { "50004" });
        bench.set_online(true);
        for (code, permanent) in [(30001, true), (10001, true), (10025, false)] {
            bench.standin.fault(Fault::of(FaultKind::Answer).saying(code, "said by the test"));
            match bench.start("ee87").await {
                StartOutcome::Permanent(refusal) if permanent => assert_eq!(refusal.code, code.to_string()),
                StartOutcome::Retryable(refusal) if !permanent => assert_eq!(refusal.code, code.to_string()),
                other => panic!("{profile} {code}: {other:?}"),
            }
        }
        assert!(bench.standin.look(|world| world.instances.is_empty()), "{profile}");
    }
}
