//! What the tests share.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;
use lakebell_aws::Metrics;
use lakebell_dispatcher::context::Context;
use lakebell_dispatcher::handler::{self, ComeAgain};
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{ProjectCode, TraceId};
use lakebell_domain::trigger::Trigger;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock;
use lakebell_engine::watch::{Created, Watcher};
use lakebell_engine::{layout, store, targets};
use lakebell_testkit::{MemoryScheduler, PaimonTable, World};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};

const PROJECT: ProjectCode = ProjectCode(7);

/// Metric lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A function with its world: one table, and a target that depends on it.
pub(crate) struct Function {
    pub(crate) world: World,
    pub(crate) scheduler: Arc<MemoryScheduler>,
    context: Context,
    table: PaimonTable,
    lines: Lines,
}

impl Function {
    pub(crate) async fn new() -> Self {
        let (world, lines) = (World::new(1), Lines::default());
        let scheduler = Arc::new(MemoryScheduler::new());
        let metrics = Metrics::new("Lakebell", Arc::new(world.clock.clone()), lines.clone());
        let context = Context::new(world.ports(), scheduler.clone(), metrics);
        let table = PaimonTable::new(world.storage.clone(), "lake", "wh/ods_db.db/orders");
        let key: AssetKey = "paimon://ods_db/orders".parse().unwrap();
        let spec = AssetSpec::new(key.clone(), table.location().parse().unwrap());
        let trace = TraceId::new("declared").unwrap();
        assets::register(&world.quiet_ports(), PROJECT, &spec, &trace).await.unwrap();
        let target =
            json!({"name": "dwd", "workflowDefinitionCode": 11, "groups": [{"dependencies": [{"asset": key}]}]});
        let target = serde_json::from_value(target).unwrap();
        targets::declare(&world.quiet_ports(), PROJECT, &target, &trace).await.unwrap();
        Self { world, scheduler, context, table, lines }
    }

    /// Commits, and returns the message to the dispatcher that follows, if one does.
    pub(crate) async fn commit(&mut self) -> Option<Message> {
        let id = self.table.commit("APPEND", 1);
        let created = Created { bucket: "lake".to_owned(), key: self.table.key(id), etag: None };
        let trace = TraceId::new(format!("commit-{id}")).unwrap();
        Watcher::new(self.world.quiet_ports()).created(&created, &trace).await.unwrap();
        self.world.queue.drain().pop()
    }

    /// The trigger that a message names, as it stands.
    pub(crate) async fn trigger(&self, message: &Message) -> Trigger {
        let Message::Dispatch { trigger, .. } = message else { panic!("{message:?}") };
        let stored = store::get(&*self.world.items, layout::trigger(trigger)).await.unwrap();
        stored.map(|stored: store::Stored<Trigger>| stored.value).unwrap()
    }

    /// The ids of the messages that have to come again, with this much time left; some time has
    /// passed since whatever happened before.
    pub(crate) async fn handle_within(&self, event: Value, left: SignedDuration) -> Result<Vec<String>, ComeAgain> {
        self.world.clock.advance(std::time::Duration::from_secs(1));
        let mut context = lambda_runtime::Context::default();
        context.deadline = u64::try_from((self.world.clock.now() + left).as_millisecond()).unwrap();
        let response = handler::handle(LambdaEvent::new(event, context), &self.context).await?;
        Ok(response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect())
    }

    pub(crate) async fn handle(&self, event: Value) -> Result<Vec<String>, ComeAgain> {
        self.handle_within(event, SignedDuration::from_secs(60)).await
    }

    /// How often a metric was counted with this value of its dimension `name`; with any for "".
    pub(crate) fn counted(&self, metric: &str, name: &str, value: &str) -> usize {
        let text = String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line.get(metric).is_some() && (name.is_empty() || line[name] == value)).count()
    }
}

/// A batch of queue messages: id and body.
pub(crate) fn batch(messages: &[(&str, Value)]) -> Value {
    let record = |(id, body): &(&str, Value)| {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        json!({"messageId": id, "body": body, "eventSource": "aws:sqs"})
    };
    json!({"Records": messages.iter().map(record).collect::<Vec<_>>()})
}

/// A batch of one message of Lakebell.
pub(crate) fn message(message: &Message) -> Value {
    batch(&[("m1", serde_json::to_value(message).unwrap())])
}

/// A sample payload of this repository.
pub(crate) fn event(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events/dispatcher").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
