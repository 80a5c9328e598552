//! Starts that are refused, lost or answered badly.

use lakebell_domain::ids::WorkflowCode;
use lakebell_engine::ports::scheduler::{Scheduler, StartOutcome, StartRequest, VersionLine};
use lakebell_scheduler_standin::{Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, PATIENCE, PROJECT, client, name};

/// The kind of an outcome and its code.
fn kind(outcome: &StartOutcome) -> (&'static str, &str) {
    match outcome {
        StartOutcome::Started { .. } => ("started", ""),
        StartOutcome::Retryable(refusal) => ("retryable", &refusal.code),
        StartOutcome::Ambiguous(refusal) => ("ambiguous", &refusal.code),
        StartOutcome::Permanent(refusal) => ("permanent", &refusal.code),
        StartOutcome::Offline(refusal) => ("offline", &refusal.code),
        StartOutcome::ConnectionRefused(refusal) => ("connection refused", &refusal.code),
    }
}

#[tokio::test]
async fn every_fault_of_a_start_has_its_outcome() {
    let faults = [
        (FaultKind::DropBeforeAccept, "ambiguous", "TRANSPORT_ERROR", 0),
        (FaultKind::DropAfterAccept, "ambiguous", "TRANSPORT_ERROR", 1),
        (FaultKind::TimeoutBeforeAccept, "ambiguous", "50014", 0),
        (FaultKind::TimeoutAfterAccept, "ambiguous", "50014", 1),
        (FaultKind::ServerError, "ambiguous", "HTTP_5xx", 0),
        (FaultKind::ErrorAfterAccept, "ambiguous", "HTTP_5xx", 1),
        (FaultKind::HugeBody, "ambiguous", "TRANSPORT_ERROR", 0),
        (FaultKind::Unauthorized, "connection refused", "HTTP_401", 0),
        (FaultKind::RateLimited, "retryable", "HTTP_429", 0),
        (FaultKind::Html, "permanent", "HTTP_2xx_NOT_JSON", 0),
        (FaultKind::NullData, "started", "", 1),
        (FaultKind::SerialDiscard, "started", "", 1),
        (FaultKind::LoseParams, "started", "", 1),
    ];
    for profile in Profile::RELEASES {
        for (fault, outcome, code, instances) in faults {
            let bench = Bench::new(profile).await;
            bench.standin.fault(Fault::of(fault));
            let got = bench.start("cc01").await;
            assert_eq!(kind(&got), (outcome, code), "{profile} {fault:?}");
            let there = bench.standin.look(|world| world.instances.len());
            assert_eq!(there, instances, "{profile} {fault:?}");
            assert!(bench.start_calls() <= 1, "{profile} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_master_is_retryable() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.fault(Fault::of(FaultKind::NoMaster));
        let code = if profile.says_workflow() { "10000" } else { "10025" };
        assert_eq!(kind(&bench.start("cc02").await), ("retryable", code), "{profile}");
        assert!(matches!(bench.start("cc02").await, StartOutcome::Started { .. }), "{profile}");
    }
}

#[tokio::test]
async fn an_unknown_workflow_is_what_each_release_makes_of_it() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let request = StartRequest { workflow: WorkflowCode(5), ..bench.request("cc03") };
        let outcome = bench.client.start(&name(), &request).await;
        let expected = if profile.says_workflow() { ("permanent", "10000") } else { ("ambiguous", "50014") };
        assert_eq!(kind(&outcome), expected, "{profile}");
    }
}

#[tokio::test]
async fn a_workflow_of_another_project_is_permanent_where_the_release_looks() {
    for profile in [Profile::V3_1, Profile::V3_2] {
        let bench = Bench::new(profile).await;
        let code = bench.standin.define(8, "foreign");
        let request = StartRequest { workflow: WorkflowCode(code), ..bench.request("cc04") };
        let outcome = bench.client.start(&name(), &request).await;
        assert_eq!(kind(&outcome), ("permanent", "50003"), "{profile}");
    }
}

#[tokio::test]
async fn a_scheduler_that_is_not_there_is_retryable() {
    let bench = Bench::new(Profile::V3_3).await;
    let request = bench.request("cc05");
    // A port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for version in [VersionLine::Auto, VersionLine::V3_3] {
        let (_, lost) = client(&format!("http://{free}/dolphinscheduler"), version);
        assert_eq!(kind(&lost.start(&name(), &request).await), ("retryable", "TRANSPORT_ERROR"));
    }
}

#[tokio::test]
async fn a_token_that_was_replaced_is_taken_up_without_sending_the_start_again() {
    let bench = Bench::new(Profile::V3_3).await;
    "an-old-token".clone_into(&mut bench.connections.tokens.lock().unwrap().0);
    bench.preflight().await;
    "an-old-token".clone_into(&mut bench.connections.tokens.lock().unwrap().0);
    assert_eq!(kind(&bench.start("cc06").await), ("retryable", "HTTP_401"));
    assert!(matches!(bench.start("cc06").await, StartOutcome::Started { .. }));
    assert_eq!(bench.start_calls(), 1);
}

#[tokio::test]
async fn a_refused_token_is_refused_for_reads_too() {
    let bench = Bench::new(Profile::V3_3).await;
    *bench.connections.tokens.lock().unwrap() = ("no".to_owned(), "no".to_owned());
    assert_eq!(kind(&bench.start("cc07").await), ("connection refused", "HTTP_401"));
    bench.clock.advance(5);
    let read = bench.client.instance(&name(), PROJECT, lakebell_domain::ids::InstanceId(1)).await;
    assert_eq!(read.unwrap_err().code, "HTTP_401");
}

#[tokio::test]
async fn a_token_that_cannot_be_sent_is_not_shown() {
    let bench = Bench::new(Profile::V3_3).await;
    *bench.connections.tokens.lock().unwrap() = ("se\ncret".to_owned(), "se\ncret".to_owned());
    let outcome = bench.start("cc08").await;
    assert!(matches!(outcome, StartOutcome::Retryable(_)));
    assert!(!format!("{outcome:?}").contains("cret\""), "{outcome:?}");
}

#[tokio::test]
async fn refusals_show_neither_token_nor_address() {
    for fault in [FaultKind::DropBeforeAccept, FaultKind::Unauthorized, FaultKind::ServerError, FaultKind::Html] {
        let bench = Bench::with(Profile::V3_2, VersionLine::V3_2).await;
        bench.standin.fault(Fault::of(fault).on(Operation::Any).always());
        let shown = format!("{:?} {:?}", bench.start("cc09").await, bench.check("cc09").await);
        assert!(!shown.contains(crate::support::TOKEN) && !shown.contains("127.0.0.1"), "{shown}");
    }
}

#[tokio::test]
async fn a_start_without_an_answer_ends_after_its_time() {
    let bench = Bench::with(Profile::V3_3, VersionLine::V3_3).await;
    bench.standin.fault(Fault::of(FaultKind::HangBeforeAccept));
    let bench = std::sync::Arc::new(bench);
    let sender = std::sync::Arc::clone(&bench);
    let starting = tokio::spawn(async move { sender.start("cc10").await });
    // The fault is gone once the call is there and hangs; only then may time be moved.
    assert!(bench.standin.wait_until(PATIENCE, |world| world.faults.is_empty()).await);
    tokio::time::pause();
    tokio::time::advance(bench.client.start_timeout()).await;
    let outcome = starting.await.unwrap();
    assert_eq!(kind(&outcome), ("ambiguous", "TRANSPORT_ERROR"));
}
