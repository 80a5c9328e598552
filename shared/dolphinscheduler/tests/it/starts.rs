//! Starts that are accepted, in each release's spelling.

use jiff::civil::date;
use lakebell_domain::ids::TaskCode;
use lakebell_engine::ports::scheduler::{Scheduler, StartOutcome, StartRequest, VersionLine};
use lakebell_scheduler_standin::Profile;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::{Bench, answers_ids, client, name};

#[tokio::test]
async fn a_start_reaches_every_release_with_its_parameters() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let outcome = bench.start("aa01").await;
        let instances = bench.instances_of("aa01");
        assert_eq!(instances.len(), 1, "{profile}");
        let named = answers_ids(profile).then(|| instances[0]);
        assert_eq!(outcome, StartOutcome::Started { instance: named }, "{profile}");
        let seen = bench.standin.look(|world| world.instances_with("lakebell_orders_to", "17").len());
        assert_eq!(seen, 1, "{profile}");
    }
}

#[tokio::test]
async fn a_declared_version_needs_no_asking() {
    let lines = [
        (Profile::V3_1, VersionLine::V3_1),
        (Profile::V3_2, VersionLine::V3_2),
        (Profile::V3_3, VersionLine::V3_3),
        (Profile::V3_4, VersionLine::V3_3),
    ];
    for (profile, line) in lines {
        let bench = Bench::with(profile, line).await;
        assert!(matches!(bench.start("aa02").await, StartOutcome::Started { .. }), "{profile}");
    }
}

#[tokio::test]
async fn a_wrongly_declared_version_is_permanent_and_starts_nothing() {
    for (profile, line) in [(Profile::V3_2, VersionLine::V3_3), (Profile::V3_4, VersionLine::V3_1)] {
        let bench = Bench::with(profile, line).await;
        let StartOutcome::Permanent(refusal) = bench.start("aa03").await else { panic!("{profile}") };
        assert_eq!(refusal.code, "HTTP_405");
        assert!(refusal.detail.contains("version"), "{}", refusal.detail);
        assert_eq!(bench.start_calls(), 0);
    }
}

#[tokio::test]
async fn a_start_can_begin_at_one_task() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let task = bench.standin.look(|world| world.definitions[&bench.workflow.0].tasks[0]);
        assert!(matches!(bench.start_at("aa04", task).await, StartOutcome::Started { .. }), "{profile}");
        bench.standin.look(|world| {
            let fields = &world.starts[0].fields;
            assert_eq!(fields["startNodeList"], task.to_string());
            assert_eq!(fields["taskDependType"], "TASK_POST");
            assert_eq!(fields["scheduleTime"], "");
        });
    }
    let bench = Bench::new(Profile::V3_2).await;
    let StartOutcome::Permanent(refusal) = bench.start_at("aa05", 5).await else { panic!("a task that is not there") };
    assert_eq!(refusal.code, "10207");
}

#[tokio::test]
async fn a_start_does_not_take_the_alert_group_from_the_definition() {
    for profile in [Profile::V3_1, Profile::V3_2] {
        let bench = Bench::new(profile).await;
        let code = bench.workflow.0;
        bench.standin.change(|world| world.definitions.get_mut(&code).unwrap().warning_group = Some(42));
        assert!(matches!(bench.start("aa06").await, StartOutcome::Started { .. }));
        let left = bench.standin.look(|world| world.definitions[&code].warning_group);
        assert_eq!(left, Some(42), "{profile}");
    }
}

/// Passes connections on to where `to` says at the time; its own base URL.
async fn relay(to: watch::Receiver<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let address = to.borrow().clone();
            let mut far = TcpStream::connect(address).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        }
    });
    format!("http://{address}/dolphinscheduler")
}

#[tokio::test]
async fn an_upgraded_scheduler_is_noticed_and_nothing_is_started_twice() {
    let old = Bench::new(Profile::V3_2).await;
    let new = Bench::new(Profile::V3_3).await;
    assert_eq!(old.workflow, new.workflow);
    let address = |bench: &Bench| bench.standin.base_url().split('/').nth(2).unwrap().to_owned();
    let (switch, to) = watch::channel(address(&old));
    let (_, client) = client(&relay(to).await, VersionLine::Auto);
    let request = old.request("aa07");
    assert!(matches!(client.start(&name(), &request).await, StartOutcome::Started { instance: None }));
    switch.send(address(&new)).unwrap();
    assert!(matches!(client.start(&name(), &request).await, StartOutcome::Retryable(_)));
    assert_eq!(new.start_calls(), 0);
    assert!(matches!(client.start(&name(), &request).await, StartOutcome::Started { instance: Some(_) }));
    assert_eq!((old.start_calls(), new.start_calls()), (1, 1));
}

#[tokio::test]
async fn a_business_date_reaches_the_workflow_in_every_release() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let outcome = bench.backfill("aa10", date(2026, 2, 28)).await;
        let instances = bench.instances_of("aa10");
        assert_eq!(instances.len(), 1, "{profile}");
        let named = answers_ids(profile).then(|| instances[0]);
        assert_eq!(outcome, StartOutcome::Started { instance: named }, "{profile}");
        bench.standin.look(|world| {
            let instance = &world.instances[&instances[0].0];
            assert_eq!(instance.business_date(), "20260228", "{profile}");
            assert_eq!(world.starts[0].fields["execType"], "COMPLEMENT_DATA");
        });
        // The next plain start is none.
        bench.start("aa11").await;
        let plain = bench.instances_of("aa11")[0];
        assert!(bench.standin.look(|world| world.instances[&plain.0].schedule_time.is_none()), "{profile}");
    }
}

#[tokio::test]
async fn a_backfill_can_begin_at_one_task() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let task = bench.standin.look(|world| world.definitions[&bench.workflow.0].tasks[0]);
        let request = StartRequest {
            start_at: Some(TaskCode(task)),
            business_date: Some(date(2026, 2, 28)),
            ..bench.request("aa12")
        };
        assert!(matches!(bench.client.start(&name(), &request).await, StartOutcome::Started { .. }), "{profile}");
        assert_eq!(bench.standin.look(|world| world.starts[0].fields["startNodeList"].clone()), task.to_string());
    }
}
