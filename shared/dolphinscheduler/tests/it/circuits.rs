//! The circuit breaker of a connection, against a stand-in that counts what reaches it.

use lakebell_domain::ids::ConnectionName;
use lakebell_engine::ports::scheduler::{
    CheckOutcome, ConnectionSpec, Connections, Preflight, Refusal, Scheduler, StartOutcome, VersionLine, WorkflowRef,
};
use lakebell_scheduler_standin::{Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, PROJECT, TOKEN, name};

/// Three starts that are never answered: the connection's circuit is open.
async fn opened(profile: Profile, line: VersionLine) -> Bench {
    let bench = Bench::with(profile, line).await;
    bench.preflight().await;
    bench.standin.fault(Fault::of(FaultKind::DropBeforeAccept).on(Operation::Any).always());
    for _ in 0..3 {
        assert!(bench.client.instance(&name(), PROJECT, lakebell_domain::ids::InstanceId(1)).await.is_err());
    }
    bench
}

fn open(refusal: &Refusal) -> bool {
    refusal.code == Refusal::CIRCUIT_OPEN && refusal.open_until().is_some()
}

const LINES: [(Profile, VersionLine); 4] = [
    (Profile::V3_1, VersionLine::V3_1),
    (Profile::V3_2, VersionLine::V3_2),
    (Profile::V3_3, VersionLine::V3_3),
    (Profile::V3_4, VersionLine::Auto),
];

#[tokio::test]
async fn while_it_is_open_nothing_is_sent_and_every_call_says_so() {
    for (profile, line) in LINES {
        let bench = opened(profile, line).await;
        bench.standin.change(|world| world.faults.clear());
        // The preflight is remembered, so the dispatcher goes on to the start: which is not sent.
        let StartOutcome::Retryable(refusal) = bench.start("ae01").await else { panic!("{profile}") };
        assert!(open(&refusal), "{profile}: {refusal}");
        let until = refusal.open_until().unwrap();
        assert!(until > bench.since && refusal.detail.contains("TRANSPORT_ERROR"), "{profile}: {refusal}");
        assert_eq!(bench.start_calls(), 0, "{profile}");
        assert!(matches!(bench.check("ae01").await, CheckOutcome::Unavailable(refusal) if open(&refusal)), "{profile}");
        let unseen = bench.client.preflight(&name(), PROJECT, &WorkflowRef::Name("dwd_trade".to_owned())).await;
        assert!(matches!(unseen, Preflight::Unavailable(refusal) if open(&refusal)), "{profile}");
        assert!(open(&bench.listed().await.unwrap_err()), "{profile}");
    }
}

#[tokio::test]
async fn after_the_pause_one_answered_read_closes_it_and_the_start_is_sent_once() {
    for (profile, line) in LINES {
        let bench = opened(profile, line).await;
        bench.standin.change(|world| world.faults.clear());
        bench.clock.advance(5);
        assert!(matches!(bench.start("ae02").await, StartOutcome::Started { .. }), "{profile}");
        assert_eq!((bench.start_calls(), bench.instances_of("ae02").len()), (1, 1), "{profile}");
    }
}

#[tokio::test]
async fn a_start_is_never_the_probe() {
    for (profile, line) in LINES {
        let bench = opened(profile, line).await;
        bench.clock.advance(5);
        // Still away: a start would be lost now, and its outcome unknown. The read is lost instead.
        let StartOutcome::Retryable(refusal) = bench.start("ae03").await else { panic!("{profile}") };
        assert_eq!(refusal.code, "TRANSPORT_ERROR", "{profile}");
        let StartOutcome::Retryable(refusal) = bench.start("ae03").await else { panic!("{profile}") };
        let left = refusal.open_until().unwrap().duration_since(bench.since).as_secs();
        assert_eq!(left, 15, "{profile}: the second pause is twice as long");
        assert_eq!(bench.start_calls(), 0, "{profile}");
    }
}

#[tokio::test]
async fn a_refused_token_stops_its_connection_until_it_is_replaced() {
    for (profile, line) in LINES {
        let bench = Bench::with(profile, line).await;
        bench.preflight().await;
        *bench.connections.tokens.lock().unwrap() = ("no".to_owned(), "no".to_owned());
        assert!(matches!(bench.start("ae04").await, StartOutcome::ConnectionRefused(_)), "{profile}");
        for _ in 0..10 {
            let StartOutcome::Retryable(refusal) = bench.start("ae05").await else { panic!("{profile}") };
            assert!(open(&refusal) && refusal.detail.contains("HTTP_401"), "{profile}: {refusal}");
        }
        *bench.connections.tokens.lock().unwrap() = (TOKEN.to_owned(), TOKEN.to_owned());
        bench.clock.advance(5);
        assert!(matches!(bench.start("ae04").await, StartOutcome::Started { .. }), "{profile}");
        assert_eq!(bench.start_calls(), 1, "{profile}");
    }
}

#[tokio::test]
async fn a_token_that_was_replaced_meanwhile_opens_nothing() {
    let bench = Bench::with(Profile::V3_3, VersionLine::V3_3).await;
    "an-old-token".clone_into(&mut bench.connections.tokens.lock().unwrap().0);
    assert!(matches!(bench.start("ae06").await, StartOutcome::Retryable(refusal) if refusal.code == "HTTP_401"));
    assert!(matches!(bench.start("ae06").await, StartOutcome::Started { .. }));
}

#[tokio::test]
async fn what_the_scheduler_answers_opens_nothing_however_bad_it_is() {
    for (profile, line) in LINES {
        let bench = Bench::with(profile, line).await;
        for (code, msg) in [(50014, "start error"), (30001, "no permission"), (10025, "no master"), (10000, "x")] {
            bench.standin.fault(Fault::of(FaultKind::Answer).saying(code, msg).times(4));
            for _ in 0..4 {
                bench.start("ae07").await;
            }
        }
        assert!(matches!(bench.start("ae07").await, StartOutcome::Started { .. }), "{profile}");
    }
}

#[tokio::test]
async fn an_outage_is_one_connections_own() {
    let away = opened(Profile::V3_3, VersionLine::V3_3).await;
    let spec = away.connections.spec.lock().unwrap().clone().unwrap();
    let well = Bench::with(Profile::V3_3, VersionLine::V3_3).await;
    // The connection is declared anew, with the address of another scheduler.
    *away.connections.spec.lock().unwrap() = Some(ConnectionSpec { url: well.standin.base_url(), ..spec });
    let request = well.request("ae08");
    assert!(matches!(away.client.start(&name(), &request).await, StartOutcome::Started { .. }));
    let other = ConnectionName::new("other").unwrap();
    assert!(away.connections.connection(&other).await.unwrap().is_none());
    assert!(matches!(away.client.start(&other, &request).await, StartOutcome::Permanent(_)), "undeclared, not open");
}
