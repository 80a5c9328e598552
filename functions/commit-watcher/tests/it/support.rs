//! What the tests share.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lakebell_aws::Metrics;
use lakebell_commit_watcher::context::Context;
use lakebell_commit_watcher::handler::{self, ComeAgain};
use lakebell_commit_watcher::unwrap::Finding;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::ids::{AssetId, ProjectCode, TraceId};
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::targets;
use lakebell_testkit::{PaimonTable, World};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json};

pub(crate) const PROJECT: ProjectCode = ProjectCode(7);
pub(crate) const BUCKET: &str = "lakebell-demo-lake";

/// Metric lines.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A function with its world.
pub(crate) struct Function {
    pub(crate) world: World,
    pub(crate) context: Context,
    lines: Lines,
}

impl Function {
    pub(crate) fn new() -> Self {
        let (world, lines) = (World::new(1), Lines::default());
        let metrics = Metrics::new("Lakebell", Arc::new(world.clock.clone()), lines.clone());
        Self { context: Context::new(world.ports(), metrics), world, lines }
    }

    /// Registers a table of the database `ods_db`.
    pub(crate) async fn table(&self, name: &str) -> (PaimonTable, AssetId) {
        let table = PaimonTable::new(self.world.storage.clone(), BUCKET, &format!("warehouse/ods_db.db/{name}"));
        let spec = AssetSpec::new(key(name), table.location().parse().unwrap());
        let registered = assets::register(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
        (table, registered.id)
    }

    /// Declares a target that depends on tables of `ods_db`.
    pub(crate) async fn target(&self, name: &str, tables: &[&str]) {
        let members: Vec<Value> = tables.iter().map(|table| json!({"asset": key(table)})).collect();
        let spec = json!({"name": name, "workflowDefinitionCode": 11, "groups": [{"dependencies": members}]});
        let spec = serde_json::from_value(spec).unwrap();
        targets::declare(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
    }

    /// The ids of the messages that have to come again.
    pub(crate) async fn handle(&self, event: Value) -> Result<Vec<String>, ComeAgain> {
        let event = LambdaEvent::new(event, lambda_runtime::Context::default());
        self.handle_with(event).await
    }

    pub(crate) async fn handle_with(&self, event: LambdaEvent<Value>) -> Result<Vec<String>, ComeAgain> {
        let response = handler::handle(event, &self.context).await?;
        Ok(response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect())
    }

    /// How often a metric was counted with this value of its dimension `name`; with any for "".
    pub(crate) fn counted(&self, metric: &str, name: &str, value: &str) -> usize {
        let text = String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line.get(metric).is_some() && (name.is_empty() || line[name] == value)).count()
    }
}

pub(crate) fn trace() -> TraceId {
    TraceId::new("trace-of-a-test").unwrap()
}

pub(crate) fn key(table: &str) -> AssetKey {
    format!("paimon://ods_db/{table}").parse().unwrap()
}

/// A batch of queue messages: id and body.
pub(crate) fn batch(messages: &[(&str, Value)]) -> Value {
    let record = |(id, body): &(&str, Value)| {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        json!({"messageId": id, "body": body, "eventSource": "aws:sqs"})
    };
    json!({"Records": messages.iter().map(record).collect::<Vec<_>>()})
}

/// A notification of S3 about keys that need no encoding.
pub(crate) fn notification(keys: &[&str]) -> Value {
    let record = |key: &&str| {
        json!({
            "eventVersion": "2.1", "eventSource": "aws:s3", "eventName": "ObjectCreated:Put",
            "s3": {"bucket": {"name": BUCKET}, "object": {"key": key}},
        })
    };
    json!({"Records": keys.iter().map(record).collect::<Vec<_>>()})
}

/// Findings in short: `bucket/key`, `raw bucket/key`, a message's name, `ignored:why`, `refused:why`.
pub(crate) fn short(findings: &[Finding]) -> Vec<String> {
    let one = |finding: &Finding| match finding {
        Finding::Object { created, is_key_raw } => {
            format!("{}{}/{}", if *is_key_raw { "raw " } else { "" }, created.bucket, created.key)
        }
        Finding::Message(message) => serde_json::to_value(message).unwrap()["lakebell"].as_str().unwrap().to_owned(),
        Finding::Service(entry) => format!("service:{}", entry.content.reports.len()),
        Finding::Ignored(why) => format!("ignored:{}", why.as_str()),
        Finding::Refused(why) => format!("refused:{}", why.as_str()),
    };
    findings.iter().map(one).collect()
}

/// A sample payload of this repository.
pub(crate) fn event(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events/commit-watcher").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The folder of real payloads that stands beside the checkout, where there is one.
pub(crate) fn samples() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("LAKEBELL_SHARED").map_or_else(beside, PathBuf::from);
    let samples = shared.join("samples/aws");
    if samples.is_dir() {
        return Some(samples);
    }
    println!("skipped: ../shared/samples is not here");
    None
}
