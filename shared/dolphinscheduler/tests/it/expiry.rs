//! When the token stops working, and what is told after it has.

use jiff::{SignedDuration, Timestamp};
use lakebell_engine::ports::scheduler::{Scheduler, StartOutcome, TokenExpiry};
use lakebell_scheduler_standin::{Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, name};

fn end(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn expiry(bench: &Bench) -> TokenExpiry {
    bench.client.token_expiry(&name()).await
}

#[tokio::test]
async fn the_end_of_the_token_in_use_is_told_in_every_release() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let at = end("2099-01-02T03:04:05Z");
        bench.standin.change(|world| world.settings.token_expires = Some(at));
        assert_eq!(expiry(&bench).await, TokenExpiry::At(at), "{profile}");
        bench.connections.spec.lock().unwrap().as_mut().unwrap().user = None;
        assert_eq!(expiry(&bench).await, TokenExpiry::At(at), "{profile}: without a declared user");
    }
}

#[test]
fn two_weeks_before_its_end_a_token_deserves_a_warning() {
    let at = end("2026-02-01T00:00:00Z");
    for (before, near) in [(15 * 24, false), (14 * 24, true), (1, true), (-1, true)] {
        let now = at - SignedDuration::from_hours(before);
        assert_eq!(TokenExpiry::At(at).is_near(now), near, "{before} h");
    }
    assert!(!TokenExpiry::Unknown { detail: String::new() }.is_near(at));
}

#[tokio::test]
async fn a_token_that_the_list_does_not_show_is_unknown() {
    let bench = Bench::new(Profile::V3_3).await;
    // The list is narrowed to a user whom the token does not belong to.
    bench.connections.spec.lock().unwrap().as_mut().unwrap().user = Some("somebody".to_owned());
    assert!(matches!(expiry(&bench).await, TokenExpiry::Unknown { .. }));
}

#[tokio::test]
async fn an_expired_token_is_refused_as_any_other() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.standin.change(|world| world.settings.token_expires = Some(bench.since - SignedDuration::from_hours(1)));
        let TokenExpiry::Unavailable(refusal) = expiry(&bench).await else { panic!("{profile}") };
        assert_eq!(refusal.code, "HTTP_401", "{profile}");
        bench.clock.advance(5);
        assert!(matches!(bench.start("af01").await, StartOutcome::ConnectionRefused(_)), "{profile}");
    }
}

#[tokio::test]
async fn a_list_that_cannot_be_read_says_nothing_about_the_token() {
    for (kind, code) in [
        (FaultKind::RateLimited, "HTTP_429"),
        (FaultKind::ServerError, "HTTP_5xx"),
        (FaultKind::NullData, "UNEXPECTED_ANSWER"),
        (FaultKind::Html, "HTTP_2xx_NOT_JSON"),
        (FaultKind::DropBeforeAccept, "TRANSPORT_ERROR"),
    ] {
        let bench = Bench::new(Profile::V3_2).await;
        bench.standin.fault(Fault::of(kind).on(Operation::Tokens));
        let TokenExpiry::Unavailable(refusal) = expiry(&bench).await else { panic!("{kind:?}") };
        assert_eq!(refusal.code, code);
        assert!(matches!(expiry(&bench).await, TokenExpiry::At(_)), "{kind:?}");
    }
    let bench = Bench::new(Profile::V3_2).await;
    bench.standin.fault(Fault::of(FaultKind::Answer).on(Operation::Tokens).saying(30001, "no permission"));
    let told = expiry(&bench).await;
    assert!(matches!(&told, TokenExpiry::Unknown { detail } if detail.contains("30001")), "{told:?}");
    assert!(!format!("{told:?}").contains(crate::support::TOKEN));
}
