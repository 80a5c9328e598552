//! From a tick of the schedule to a sweep and, where it asks for one, a pass.

use jiff::SignedDuration;
use lakebell_aws::Measure;
use lakebell_engine::compensate::{self, Pass, Sweep};
use lakebell_engine::{EngineError, doctor, store};
use lakebell_lambda::{deadline, deliver_notices};
use lambda_runtime::{Diagnostic, LambdaEvent};
use serde_json::Value;

use crate::context::Context;

/// Kept free at the end of an invocation for the last page and the place that is remembered.
const RESERVE: SignedDuration = SignedDuration::from_secs(10);

/// The tick failed; the schedule's next one does the same again.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Failed(#[from] EngineError);

impl From<Failed> for Diagnostic {
    fn from(failed: Failed) -> Self {
        Self { error_type: failed.0.kind().code().to_owned(), error_message: failed.0.to_string() }
    }
}

/// A tick `{"task": "sweep"}` sweeps, hands out the assets whose own interval is over, and goes on with a
/// pass that is not through; every other one sweeps and then hands out a pass.
pub async fn handle(event: LambdaEvent<Value>, context: &Context) -> Result<(), Failed> {
    let trace = store::new_trace(&*context.ports.random)?;
    let swept = compensate::sweep(&context.ports, &trace).await?;
    log_sweep(swept, &trace.to_string());
    let deadline = deadline(event.context.deadline) - RESERVE;
    if event.payload["task"] == "sweep" {
        let due = compensate::scan_due(&context.ports, &trace, deadline).await?;
        tracing::info!(traceId = %trace, assets = due, "handed out the assets whose own interval is over");
        if let Some(pass) = compensate::resume(&context.ports, &trace, deadline).await? {
            log_pass(pass, &trace.to_string());
        }
        deliver_notices(&context.ports, &context.metrics).await;
        return Ok(());
    }
    let pass = compensate::pass(&context.ports, &trace, deadline).await?;
    if pass.is_complete {
        let looked = doctor::look_when_due(&context.ports, &trace).await?;
        tracing::info!(traceId = %trace, connections = looked, "asked for a look at connections");
    }
    context.metrics.count(Measure::CompensationScan, &[]);
    log_pass(pass, &trace.to_string());
    deliver_notices(&context.ports, &context.metrics).await;
    Ok(())
}

#[allow(non_snake_case)] // the field names of the logs
fn log_sweep(swept: Sweep, traceId: &str) {
    let Sweep { sent_again, woken, looked_into, moved, timed, letters, followed } = swept;
    tracing::info!(
        traceId,
        sentAgain = sent_again,
        woken,
        lookedInto = looked_into,
        moved,
        timed,
        letters,
        followed,
        "swept"
    );
}

#[allow(non_snake_case)] // the field names of the logs
fn log_pass(pass: Pass, traceId: &str) {
    let Pass { assets, targets, warehouses, passed_over, is_complete } = pass;
    tracing::info!(
        traceId,
        assets,
        targets,
        warehouses,
        passedOver = passed_over,
        isComplete = is_complete,
        "handed out a pass"
    );
}

#[cfg(test)]
mod tests {
    use lakebell_testkit::World;
    use lambda_runtime::Context as Invocation;
    use serde_json::json;

    use super::*;

    async fn tick(payload: Value) -> World {
        let world = World::new(1);
        let context = Context { ports: world.ports(), metrics: lakebell_aws::Metrics::from_env() };
        handle(LambdaEvent::new(payload, Invocation::default()), &context).await.unwrap();
        world
    }

    #[tokio::test]
    async fn a_scheduled_event_sweeps_and_passes_whatever_its_shape() {
        for sample in ["scheduled_rule", "scheduler"] {
            let path = format!("{}/../../events/compensator/{sample}.json", env!("CARGO_MANIFEST_DIR"));
            let payload = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let world = tick(payload).await;
            let queries = world.tap.count(lakebell_testkit::Op::Query);
            assert_eq!(queries, 34, "both registries, 16 shards each, the warehouses and the connections");
            assert_eq!(world.tap.count(lakebell_testkit::Op::Index), 16);
        }
    }

    #[tokio::test]
    async fn a_sweep_reads_the_timers_and_the_registry_of_assets() {
        let world = tick(json!({"task": "sweep"})).await;
        let count = |op| world.tap.count(op);
        assert_eq!((count(lakebell_testkit::Op::Index), count(lakebell_testkit::Op::Query)), (16, 16));
        assert_eq!(
            (count(lakebell_testkit::Op::Get), count(lakebell_testkit::Op::Write)),
            (2, 1),
            "the progress, and that of a pass"
        );
        assert_eq!(world.tap.total(), 35);
    }
}
