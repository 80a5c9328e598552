//! A small deployment in memory: tables, targets, the watcher and the dispatcher.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::evaluation::Evaluation;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TraceId};
use lakebell_domain::target::TargetSpec;
use lakebell_domain::trigger::{Status, Trigger};
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::dispatch::{Dispatched, Dispatcher, Order};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock;
use lakebell_engine::records::AssetHead;
use lakebell_engine::rules::Records;
use lakebell_engine::watch::{Created, Watched, Watcher};
use lakebell_engine::{EngineError, compensate, evaluate, targets};
use lakebell_testkit::{MemoryScheduler, MemoryStorage, PaimonTable, World};

pub(crate) const PROJECT: ProjectCode = ProjectCode(7);
pub(crate) const BUCKET: &str = "lake";

pub(crate) struct Deployment {
    pub(crate) world: World,
    pub(crate) watcher: Watcher,
    pub(crate) scheduler: Arc<MemoryScheduler>,
    pub(crate) tables: BTreeMap<String, PaimonTable>,
    pub(crate) ids: BTreeMap<String, AssetId>,
}

pub(crate) fn trace() -> TraceId {
    TraceId::new("trace-of-a-test").unwrap()
}

pub(crate) fn key(table: &str) -> AssetKey {
    format!("paimon://ods_db/{table}").parse().unwrap()
}

pub(crate) fn target_id(name: &str) -> TargetId {
    TargetId { project: PROJECT, name: name.parse().unwrap() }
}

/// A target `name` with groups of tables, as in `[("g", "all", &["a", "b"])]`.
pub(crate) fn spec(name: &str, groups: &[(&str, serde_json::Value, &[&str])]) -> TargetSpec {
    let groups: Vec<_> = groups
        .iter()
        .map(|(group, advance, tables)| {
            let dependencies: Vec<_> = tables.iter().map(|table| serde_json::json!({"asset": key(table)})).collect();
            serde_json::json!({"name": group, "advance": advance, "dependencies": dependencies})
        })
        .collect();
    serde_json::from_value(serde_json::json!({"name": name, "workflowDefinitionCode": 11, "groups": groups})).unwrap()
}

impl Deployment {
    pub(crate) async fn with(tables: &[&str]) -> Self {
        let world = World::new(1);
        let mut deployment = Self {
            watcher: Watcher::new(world.ports()),
            scheduler: Arc::new(MemoryScheduler::new()),
            tables: BTreeMap::new(),
            ids: BTreeMap::new(),
            world,
        };
        for table in tables {
            deployment.register(table).await;
        }
        deployment
    }

    pub(crate) async fn register(&mut self, table: &str) {
        self.create(table);
        self.register_table(table).await;
    }

    /// A table that nobody has registered.
    pub(crate) fn create(&mut self, table: &str) {
        let storage: Arc<MemoryStorage> = Arc::clone(&self.world.storage);
        let paimon = PaimonTable::new(storage, BUCKET, &format!("wh/ods_db.db/{table}"));
        self.tables.insert(table.to_owned(), paimon);
    }

    pub(crate) async fn register_table(&mut self, table: &str) {
        let spec = AssetSpec::new(key(table), self.tables[table].location().parse().unwrap());
        let registration =
            assets::register(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.expect("register");
        self.ids.insert(table.to_owned(), registration.id);
    }

    pub(crate) async fn declare(&self, spec: &TargetSpec) -> targets::Declared {
        targets::declare(&self.world.quiet_ports(), PROJECT, spec, &trace()).await.expect("declare")
    }

    pub(crate) fn table(&mut self, table: &str) -> &mut PaimonTable {
        self.tables.get_mut(table).unwrap()
    }

    /// Commits and delivers the notification.
    pub(crate) async fn commit(&mut self, table: &str, kind: &str) -> Watched {
        let id = self.table(table).commit(kind, 1);
        self.notify(table, id).await
    }

    pub(crate) fn created(&self, table: &str, id: u64) -> Created {
        let paimon = &self.tables[table];
        let object = paimon.key(id);
        let etag = self.world.storage.etag(BUCKET, &object);
        Created { bucket: BUCKET.to_owned(), key: object, etag }
    }

    pub(crate) async fn notify(&self, table: &str, id: u64) -> Watched {
        self.try_notify(table, id).await.expect("notify")
    }

    pub(crate) async fn try_notify(&self, table: &str, id: u64) -> Result<Watched, EngineError> {
        self.watcher.created(&self.created(table, id), &trace()).await
    }

    /// Carries every queued message out, until none is left or only ones that must come later.
    pub(crate) async fn run_dispatcher(&self) -> Vec<Trigger> {
        let mut ended = Vec::new();
        for _ in 0..100 {
            let messages = self.world.queue.drain();
            if messages.is_empty() {
                return ended;
            }
            for message in messages {
                match self.carry(&message).await.expect("dispatch") {
                    Some(Dispatched::Done { trigger, .. }) => ended.push(*trigger),
                    Some(Dispatched::Later { trigger, due_at }) => {
                        let now = self.world.clock.now();
                        if due_at > now {
                            self.world.clock.set(due_at);
                        }
                        let again = Message::Dispatch {
                            target: trigger.target.clone(),
                            trigger: trigger.key.clone(),
                            attempt: trigger.attempt,
                            trace: trace(),
                        };
                        let ports = self.world.quiet_ports();
                        ports.queue.send(&again).await.unwrap();
                    }
                    _ => {}
                }
            }
        }
        panic!("the queue never became empty");
    }

    pub(crate) async fn carry(&self, message: &Message) -> Result<Option<Dispatched>, EngineError> {
        let ports = self.world.ports();
        match message {
            Message::Dispatch { target, trigger, attempt, trace } => {
                let dispatcher = Dispatcher { ports, scheduler: self.scheduler.clone() };
                let order =
                    Order { target: target.clone(), trigger: trigger.clone(), attempt: *attempt, trace: trace.clone() };
                let deadline = self.world.clock.now() + SignedDuration::from_secs(30);
                dispatcher.dispatch(&order, deadline).await.map(Some)
            }
            Message::Advise { target, .. } => {
                Dispatcher { ports, scheduler: self.scheduler.clone() }.advise(target).await.map(|_| None)
            }
            Message::LookAt { connection, .. } => {
                Dispatcher { ports, scheduler: self.scheduler.clone() }.look_at(connection).await.map(|_| None)
            }
            Message::Audit { project, audit, .. } => {
                let dispatcher = Dispatcher { ports, scheduler: self.scheduler.clone() };
                let until = self.world.clock.now() + SignedDuration::from_secs(20);
                dispatcher.audit(*project, audit, until).await.map(|_| None)
            }
            Message::Follow { triggers, .. } => {
                let dispatcher = Dispatcher { ports, scheduler: self.scheduler.clone() };
                let until = self.world.clock.now() + SignedDuration::from_secs(20);
                dispatcher.follow_instances(triggers, until).await.map(|_| None)
            }
            Message::Letters { receipts, trace } => {
                for receipt in receipts {
                    lakebell_engine::inbox::work(&ports, receipt, trace).await?;
                }
                Ok(None)
            }
            Message::Evaluate { targets, trace } => {
                for target in targets {
                    evaluate::evaluate_one(&ports, target, trace).await?;
                }
                Ok(None)
            }
            Message::LookForTables { warehouse, trace } => {
                let deadline = self.world.clock.now() + SignedDuration::from_secs(30);
                compensate::look_for_tables(&ports, warehouse, trace, deadline).await.map(|_| None)
            }
            Message::Observe { asset, trace, .. } => {
                let hint = lakebell_engine::observe::Hint {
                    asset: *asset,
                    look: lakebell_engine::observe::Look::Whole,
                    source: lakebell_domain::event::Source::Poll,
                    trace: trace.clone(),
                };
                let watched = self.watcher.look(&hint).await?;
                if let Watched::Observed { observed, .. } = &watched {
                    lakebell_engine::consumer::keep(&ports, observed).await?;
                }
                Ok(None)
            }
        }
    }

    pub(crate) async fn why(&self, name: &str) -> Evaluation {
        let explained = targets::explain(&self.world.quiet_ports(), &[target_id(name)]).await.expect("explain");
        explained.into_iter().next().expect("the target is declared").evaluation
    }

    pub(crate) fn records(&self) -> Records {
        Records::of(&self.world.items.dump()).expect("readable records")
    }

    pub(crate) fn head(&self, table: &str) -> AssetHead {
        self.records().assets.remove(&self.ids[table]).unwrap()
    }

    /// Triggers of a target in the order of their claims.
    pub(crate) fn triggers(&self, name: &str) -> Vec<Trigger> {
        let target = target_id(name);
        let mut triggers: Vec<Trigger> =
            self.records().triggers.into_values().filter(|trigger| trigger.target == target).collect();
        triggers.sort_by_key(|trigger| {
            trigger.ranges.iter().filter_map(|range| range.bounds.to.as_ref()).map(|to| to.position).max()
        });
        triggers
    }

    /// `table@to` of each range of a trigger.
    pub(crate) fn took(trigger: &Trigger) -> Vec<String> {
        let mut took: Vec<String> = trigger
            .ranges
            .iter()
            .map(|range| {
                let to = range.bounds.to.as_ref().map_or("-", |to| to.snapshot_id.as_str());
                let from = range.bounds.from.as_ref().map_or("-", |from| from.snapshot_id.as_str());
                format!("{}({from},{to}]", range.key.table())
            })
            .collect();
        took.sort();
        took
    }

    pub(crate) fn assert_started(&self, name: &str, count: usize) {
        let started = self.triggers(name);
        let started = started.iter().filter(|trigger| matches!(trigger.status(), Status::Success { .. })).count();
        assert_eq!(started, count, "started triggers of {name}");
        let keys: Vec<_> = self.scheduler.instances().into_iter().map(|instance| instance.trigger).collect();
        assert_eq!(Records::started_once(&keys), Vec::<String>::new());
    }
}
