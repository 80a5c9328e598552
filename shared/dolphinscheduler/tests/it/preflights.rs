//! What is found out before a start.

use std::time::Duration;

use lakebell_domain::ids::{ConnectionName, ProjectCode, WorkflowCode};
use lakebell_engine::ports::scheduler::{ExecutionType, Preflight, Scheduler, VersionLine, WorkflowRef};
use lakebell_scheduler_standin::{Fault, FaultKind, Operation, Profile};

use crate::support::{Bench, PROJECT, client, name};

#[tokio::test]
async fn a_workflow_is_found_by_code_and_by_name() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        let known = Some("dwd_trade".to_owned());
        let startable =
            Preflight::Startable { workflow: bench.workflow, name: known, execution: ExecutionType::Parallel };
        assert_eq!(bench.preflight().await, startable, "{profile}");
        let by_name = WorkflowRef::Name("dwd_trade".to_owned());
        assert_eq!(bench.client.preflight(&name(), PROJECT, &by_name).await, startable, "{profile}");
    }
}

#[tokio::test]
async fn the_execution_type_is_told_in_every_release() {
    for profile in Profile::RELEASES {
        for (name, type_) in [
            ("PARALLEL", ExecutionType::Parallel),
            ("SERIAL_WAIT", ExecutionType::SerialWait),
            ("SERIAL_DISCARD", ExecutionType::SerialDiscard),
            ("SERIAL_PRIORITY", ExecutionType::SerialPriority),
            ("A_TYPE_OF_TOMORROW", ExecutionType::Unknown),
        ] {
            let bench = Bench::new(profile).await;
            let code = bench.workflow.0;
            bench
                .standin
                .change(|world| name.clone_into(&mut world.definitions.get_mut(&code).unwrap().execution_type));
            let Preflight::Startable { execution, .. } = bench.preflight().await else { panic!("{profile} {name}") };
            assert_eq!(execution, type_, "{profile}");
            assert_eq!(execution.is_serial(), name.starts_with("SERIAL"), "{profile} {name}");
        }
    }
}

#[tokio::test]
async fn names_reach_the_scheduler_whatever_is_in_them() {
    for odd in ["日销售 & co", "a/b?c=d#e", "100% +1", "x&name=y"] {
        let bench = Bench::new(Profile::V3_2).await;
        let code = WorkflowCode(bench.standin.define(PROJECT.0, odd));
        let found = bench.client.preflight(&name(), PROJECT, &WorkflowRef::Name(odd.to_owned())).await;
        assert!(matches!(found, Preflight::Startable { workflow, .. } if workflow == code), "{odd}: {found:?}");
    }
}

#[tokio::test]
async fn offline_missing_and_foreign_workflows_are_told_apart() {
    for profile in Profile::RELEASES {
        let bench = Bench::new(profile).await;
        bench.set_online(false);
        assert!(matches!(bench.preflight().await, Preflight::Offline { .. }), "{profile}");
        bench.standin.change(|world| {
            world.projects.insert(8, lakebell_scheduler_standin::Project { code: 8, name: "other".to_owned() });
        });
        for (project, workflow) in [
            (PROJECT, WorkflowRef::Code(WorkflowCode(5))),
            (PROJECT, WorkflowRef::Name("nothing".to_owned())),
            (ProjectCode(8), WorkflowRef::Code(bench.workflow)),
            (ProjectCode(9), WorkflowRef::Code(bench.workflow)),
        ] {
            let found = bench.client.preflight(&name(), project, &workflow).await;
            assert!(matches!(found, Preflight::Missing { .. }), "{profile} {project} {workflow:?}: {found:?}");
        }
    }
}

#[tokio::test]
async fn answers_are_remembered_for_a_bounded_time() {
    let bench = Bench::new(Profile::V3_3).await;
    let startable = bench.preflight().await;
    bench.set_online(false);
    assert_eq!(bench.preflight().await, startable);
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(1)).await;
    tokio::time::resume();
    assert!(matches!(bench.preflight().await, Preflight::Offline { .. }));
    bench.set_online(true);
    assert!(matches!(bench.preflight().await, Preflight::Offline { .. }));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
    assert_eq!(bench.preflight().await, startable);
}

#[tokio::test]
async fn a_start_that_finds_the_workflow_offline_corrects_what_was_remembered() {
    let bench = Bench::new(Profile::V3_3).await;
    bench.preflight().await;
    bench.set_online(false);
    bench.start("bb01").await;
    assert!(matches!(bench.preflight().await, Preflight::Offline { .. }));
}

#[tokio::test]
async fn a_scheduler_that_cannot_be_asked_is_unavailable_and_asked_again() {
    let faults = [
        (FaultKind::Unauthorized, "HTTP_401"),
        (FaultKind::RateLimited, "HTTP_429"),
        (FaultKind::ServerError, "HTTP_5xx"),
        (FaultKind::Html, "HTTP_2xx_NOT_JSON"),
        (FaultKind::DropBeforeAccept, "TRANSPORT_ERROR"),
        (FaultKind::HugeBody, "TRANSPORT_ERROR"),
    ];
    for (kind, code) in faults {
        let bench = Bench::with(Profile::V3_2, VersionLine::V3_2).await;
        bench.standin.fault(Fault::of(kind).on(Operation::Definitions));
        let Preflight::Unavailable(refusal) = bench.preflight().await else { panic!("{kind:?}") };
        assert_eq!(refusal.code, code);
        bench.clock.advance(5);
        assert!(matches!(bench.preflight().await, Preflight::Startable { .. }), "{kind:?}");
    }
}

#[tokio::test]
async fn a_base_url_that_is_no_scheduler_says_what_to_check() {
    let bench = Bench::new(Profile::V3_2).await;
    let (_, astray) = client(&bench.standin.base_url().replace("/dolphinscheduler", "/api"), VersionLine::Auto);
    let Preflight::Unavailable(refusal) = astray.preflight(&name(), PROJECT, &WorkflowRef::Code(bench.workflow)).await
    else {
        panic!("a web page is no scheduler")
    };
    assert!(refusal.detail.contains("/dolphinscheduler"), "{refusal}");
}

#[tokio::test]
async fn a_connection_that_nobody_declared_is_missing() {
    let bench = Bench::new(Profile::V3_2).await;
    let other = ConnectionName::new("other").unwrap();
    let found = bench.client.preflight(&other, PROJECT, &WorkflowRef::Code(bench.workflow)).await;
    assert!(matches!(found, Preflight::Missing { .. }));
}
