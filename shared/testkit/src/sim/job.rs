//! What the functions of a simulated deployment are asked to do.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::event::{EventKind, Source};
use lakebell_domain::ids::{TargetId, TraceId, TriggerKey};
use lakebell_domain::trigger::{Decision, Status};
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::dispatch::{Dispatcher, Order};
use lakebell_engine::observe::{self, Hint, Look};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::push::{self, Facts, Named, Pushed};
use lakebell_engine::watch::{Created, Watcher};
use lakebell_engine::{EngineError, ErrorKind, compensate, evaluate, operate, targets};

use super::lake::BUCKET;
use super::menu::{self, PROJECT};
use super::ports::{Port, turn};

/// One run of a check on a version of the checked table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Check {
    pub(super) ordinal: u64,
    /// Which of several runs; a later one stands.
    pub(super) run: u32,
    pub(super) has_passed: bool,
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// A notification about a table's snapshot, with the entity tag of its file.
    Notify { table: String, ordinal: u64, etag: Option<String> },
    /// A message of a queue.
    Message(Message),
    /// The scheduled pass.
    Pass,
    /// The scheduled sweep.
    Sweep,
    /// A writer's check has ended.
    Check(Check),
    /// A backfill began or ended.
    Backfill { table: String, id: u64, has_ended: bool },
    /// A table's CDC lag is gone.
    Lag { table: String, id: u64 },
    /// The clock's look at what has a scan interval of its own.
    Scan,
    /// A person's request.
    Ask(Request),
}

/// What people ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    Register(String),
    Deregister(String),
    Declare { name: String, variant: usize },
    Undeclare(String),
    Pause(String),
    Resume(String),
    Switch { is_on: bool },
    Redrive(TriggerKey),
    Skip(TriggerKey),
    Decide(TriggerKey),
    Fire { name: String, request: u64 },
    Accept(String),
}

impl Job {
    /// Whether somebody comes back with it when it did not work: queues do, writers and people do,
    /// a clock does not.
    pub(super) const fn comes_again(&self) -> bool {
        !matches!(self, Self::Pass | Self::Sweep | Self::Scan)
    }
}

pub(super) fn trace() -> TraceId {
    match TraceId::new("trace-of-a-simulation") {
        Ok(trace) => trace,
        Err(_) => unreachable!("the trace of the simulation is valid"),
    }
}

/// Does the job as the function does that it belongs to. `deadline` is when the function is ended.
pub(super) async fn run(port: Port, job: Job, deadline: Timestamp) -> Result<(), EngineError> {
    // The function is called: nobody knows what happens meanwhile.
    turn().await;
    let ports = port.ports();
    let trace = trace();
    match job {
        Job::Notify { table, ordinal, etag } => {
            let key = format!("wh/ods_db.db/{table}/snapshot/snapshot-{ordinal}");
            let created = Created { bucket: BUCKET.to_owned(), key, etag };
            Box::pin(Watcher::new(ports).created(&created, &trace)).await.map(|_| ())
        }
        Job::Message(message) => carry(port, ports, message, deadline).await,
        Job::Pass => compensate::pass(&ports, &trace, deadline).await.map(|_| ()),
        Job::Sweep => compensate::sweep(&ports, &trace).await.map(|_| ()),
        Job::Check(check) => Box::pin(push::push(&ports, &pushed_check(check), &trace)).await.map(|_| ()),
        Job::Backfill { table, id, has_ended } => {
            Box::pin(push::push(&ports, &pushed_backfill(&table, id, has_ended), &trace)).await.map(|_| ())
        }
        Job::Lag { table, id } => Box::pin(push::push(&ports, &pushed_lag(&table, id), &trace)).await.map(|_| ()),
        Job::Scan => compensate::scan_due(&ports, &trace, deadline).await.map(|_| ()),
        Job::Ask(request) => answer(&port, &ports, request, &trace).await,
    }
}

async fn carry(port: Port, ports: Ports, message: Message, deadline: Timestamp) -> Result<(), EngineError> {
    match message {
        Message::Dispatch { target, trigger, attempt, trace } => {
            let dispatcher = Dispatcher { ports, scheduler: Arc::new(port) };
            let order = Order { target, trigger, attempt, trace };
            Box::pin(dispatcher.dispatch(&order, deadline)).await.map(|_| ())
        }
        Message::Evaluate { targets, trace } => {
            for target in targets {
                Box::pin(evaluate::evaluate_one(&ports, &target, &trace)).await?;
            }
            Ok(())
        }
        Message::Observe { asset, trace, .. } => {
            let hint = Hint { asset, look: Look::Whole, source: Source::Poll, trace };
            Box::pin(Watcher::new(ports).look(&hint)).await.map(|_| ())
        }
        Message::Follow { triggers, .. } => {
            let dispatcher = Dispatcher { ports, scheduler: Arc::new(port) };
            Box::pin(dispatcher.follow_instances(&triggers, deadline)).await.map(|_| ())
        }
        Message::Audit { project, audit, .. } => {
            let dispatcher = Dispatcher { ports, scheduler: Arc::new(port) };
            Box::pin(dispatcher.audit(project, &audit, deadline)).await.map(|_| ())
        }
        // What the scheduler says about a workflow or connection decides nothing; no run has a warehouse or an
        // inbox.
        Message::Advise { .. } | Message::LookAt { .. } | Message::LookForTables { .. } | Message::Letters { .. } => {
            Ok(())
        }
    }
}

async fn answer(port: &Port, ports: &Ports, request: Request, trace: &TraceId) -> Result<(), EngineError> {
    let id = |name: &str| menu::target_id(name);
    match request {
        Request::Register(table) => {
            let (location, scan_interval) = {
                let state = port.outside.state();
                (state.tables.get(&table).map(super::lake::Table::location), state.profile.scan_interval(&table))
            };
            let location = location.unwrap_or_default().parse()?;
            let spec = AssetSpec { scan_interval, ..AssetSpec::new(menu::key(&table), location) };
            Box::pin(assets::register(ports, PROJECT, &spec, trace)).await.map(|_| ())
        }
        Request::Deregister(table) => {
            assets::deregister(ports, &menu::key(&table)).await?;
            // Registered again, it begins another history.
            let mut state = port.outside.state();
            state.tables.get_mut(&table).into_iter().for_each(|table| table.rewrites += 1);
            Ok(())
        }
        Request::Declare { name, variant } => {
            let variants = menu::variants(&name);
            let Some(spec) = variants.get(variant % variants.len().max(1)) else { return Ok(()) };
            Box::pin(targets::declare(ports, PROJECT, spec, trace)).await.map(|_| ())
        }
        Request::Undeclare(name) => targets::undeclare(ports, &id(&name)).await,
        Request::Pause(name) => operate::pause(ports, &id(&name), "ops").await,
        Request::Resume(name) => Box::pin(operate::resume(ports, &id(&name), trace)).await.map(|_| ()),
        Request::Switch { is_on } => operate::switch(ports, None, is_on, "ops", trace).await.map(|_| ()),
        Request::Redrive(key) => Box::pin(operate::redrive(ports, &key, "ops", trace)).await.map(|_| ()),
        Request::Skip(key) => Box::pin(operate::skip(ports, &key, "ops", trace)).await.map(|_| ()),
        Request::Decide(key) => {
            // A person looks, and says what is there; as long as something is on its way, nothing.
            let (instance, is_on_its_way) = {
                let state = port.outside.state();
                (state.ds.instance_of(&key), state.ds.is_on_its_way(&key))
            };
            let decision = match instance {
                Some(instance) => Decision::Started(Some(instance)),
                None if is_on_its_way => return Ok(()),
                None => Decision::Absent,
            };
            Box::pin(operate::decide(ports, &key, decision, "ops", trace)).await.map(|_| ())
        }
        Request::Fire { name, request } => {
            Box::pin(operate::fire(ports, &id(&name), &format!("request-{request}"), trace)).await.map(|_| ())
        }
        Request::Accept(table) => {
            let asset = port.outside.state().assets.iter().find(|(_, name)| **name == table).map(|(id, _)| *id);
            let Some(asset) = asset else { return Ok(()) };
            let observed = Box::pin(observe::accept_rewrite(ports, asset, trace)).await?;
            Box::pin(evaluate::evaluate_dependents(ports, &observed, trace)).await.map(|_| ())
        }
    }
}

fn pushed(table: &str, id: String, kind: EventKind, facts: Facts) -> Pushed {
    Pushed { id, source: "job".to_owned(), kind, asset: Named::Key(menu::key(table)), time: facts.run_at, facts }
}

fn pushed_check(check: Check) -> Pushed {
    let Check { ordinal, run, has_passed } = check;
    let kind = if has_passed { EventKind::QualityCheckPassed } else { EventKind::QualityCheckFailed };
    let facts = Facts {
        snapshot_id: Some(ordinal.to_string()),
        check: Some("rows".to_owned()),
        run_at: Timestamp::from_second(1_767_225_600 + i64::from(run)).ok(),
        ..Facts::default()
    };
    pushed("q", format!("check-{ordinal}-{run}"), kind, facts)
}

fn pushed_backfill(table: &str, id: u64, has_ended: bool) -> Pushed {
    let kind = if has_ended { EventKind::BackfillCompleted } else { EventKind::BackfillStarted };
    let facts = Facts { backfill_id: Some(format!("b{id}")), ..Facts::default() };
    pushed(table, format!("backfill-{id}-{has_ended}"), kind, facts)
}

fn pushed_lag(table: &str, id: u64) -> Pushed {
    pushed(table, format!("lag-{id}"), EventKind::CdcLagRecovered, Facts::default())
}

/// What an error of a job means: it comes again, it was answered, or the engine has a defect.
pub(super) enum Meaning {
    Again,
    Answered(String),
    Defect(String),
}

pub(super) fn meaning(error: &EngineError) -> Meaning {
    match error.kind() {
        ErrorKind::Defect | ErrorKind::Damaged => Meaning::Defect(error.to_string()),
        _ if error.retryable() => Meaning::Again,
        _ => Meaning::Answered(error.to_string()),
    }
}

/// What a person may ask about a trigger.
pub(super) type Ask = fn(TriggerKey) -> Request;

/// The triggers of a run that a person may do something about: failed, held, or not sent yet.
pub(super) fn about(status: &Status) -> Option<Ask> {
    match status {
        Status::Failed { .. } => Some(Request::Redrive),
        Status::Unknown { held: true, .. } => Some(Request::Decide),
        Status::Queued | Status::Waiting { .. } => Some(Request::Skip),
        _ => None,
    }
}

/// How long a function may run.
pub(super) const FUNCTION: SignedDuration = SignedDuration::from_secs(45);

/// A target by its name on the menu, as targets are listed.
pub(super) fn names(targets: &[&'static str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in targets {
        match *name {
            "crowd" => names.extend((0..menu::CROWD).map(|at| format!("crowd-{at}"))),
            name => names.push(name.to_owned()),
        }
    }
    names
}

/// The ids of targets.
pub(super) fn ids(names: &[String]) -> Vec<TargetId> {
    names.iter().map(|name| menu::target_id(name)).collect()
}
