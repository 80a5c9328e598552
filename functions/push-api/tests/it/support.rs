//! A world with an API, and golden files.
//!
//! `LAKEBELL_GOLDEN=rewrite cargo test -p lakebell-push-api` writes the golden files anew.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use lakebell_aws::Metrics;
use lakebell_domain::access::Right;
use lakebell_domain::ids::ProjectCode;
use lakebell_engine::access::{self, Carried, NewToken};
use lakebell_engine::inbox;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::{EngineError, ErrorKind};
use lakebell_lambda::report_worked;
use lakebell_push_api::event::GatewayResponse;
use lakebell_push_api::{Access, Context, Rate, Sensors, Tokens, handler};
use lakebell_testkit::{MemoryDeadLetters, World};
use serde_json::{Value, json};

/// The token that callers must show.
pub(crate) const TOKEN: &str = "s3cret-token";
/// The targets of that project.
pub(crate) const TARGETS: &str = "/projects/7/asset-dependencies";
/// The project that the tests work in.
pub(crate) const PROJECT: &str = "/projects/7";
/// A table of the fixtures, as an asset.
pub(crate) const ORDERS: &str = "paimon://ods_db/orders";
/// The same, as a path names it.
pub(crate) const ORDERS_PATH: &str = "/projects/7/assets/paimon%3A%2F%2Fods_db%2Forders";
/// Where it lives.
pub(crate) const ORDERS_PREFIX: &str = "warehouse/ods_db.db/orders/";
/// The bucket of every table.
pub(crate) const BUCKET: &str = "lake";

/// What was written to a metrics' output.
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

thread_local! {
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the test's own thread.
struct ThreadLog;

impl Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One subscriber for the process, before anything is logged: a place in the code that was reached
/// without one may stay silent for a while after.
fn begin_logging() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| tracing_subscriber::fmt().json().with_writer(|| ThreadLog).init());
}

/// What this test has logged.
pub(crate) fn logged() -> String {
    LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap())
}

/// A token, or none that can be read.
struct FixedToken(Option<&'static str>);

impl Tokens for FixedToken {
    fn token(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        let token = self.0.ok_or_else(|| EngineError::new(ErrorKind::Denied, "secretsmanager said no"));
        Box::pin(async move { token.map(str::to_owned) })
    }

    fn signing_secret(&self) -> Pin<Box<dyn Future<Output = Result<String, EngineError>> + Send + '_>> {
        Box::pin(async { Ok("signing-secret".to_owned()) })
    }
}

/// Makes one thing wrong.
pub(crate) type Change = fn(&mut Value);

/// An API over a world in memory.
pub(crate) struct Api {
    pub(crate) world: World,
    pub(crate) dead_letters: Arc<MemoryDeadLetters>,
    context: Context,
    lines: Lines,
}

impl Api {
    /// An API with the usual token.
    pub(crate) fn new() -> Self {
        Self::with_token(Some(TOKEN))
    }

    /// An API that expects this token, and limits no rate that a test could reach.
    pub(crate) fn with_token(token: Option<&'static str>) -> Self {
        Self::with_access(token, Access::new(Rate { per_second: 1_000_000, burst: 1_000_000 }, true))
    }

    /// An API as it is deployed with the usual limits.
    pub(crate) fn limited() -> Self {
        Self::with_access(Some(TOKEN), Access::new(Rate::default(), false))
    }

    fn with_access(token: Option<&'static str>, access: Access) -> Self {
        begin_logging();
        let world = World::new(7);
        world.storage.make_bucket(BUCKET);
        let lines = Lines::default();
        let metrics = Metrics::new("Lakebell", Arc::new(world.clock.clone()), lines.clone());
        let mut context = Context::new(world.ports(), Arc::new(FixedToken(token)), metrics);
        context.access = Arc::new(access);
        context.sensors = Sensors { places: 3, pause: Arc::new(world.clock.clone()) };
        let dead_letters = Arc::new(MemoryDeadLetters::default());
        context.dead_letters = dead_letters.clone();
        Self { world, dead_letters, context, lines }
    }

    /// An API that knows the connection `default`, and `orders` at its second of four snapshots.
    pub(crate) async fn with_orders() -> Self {
        let api = Self::new();
        let connection = json!({"url": "http://127.0.0.1:12345/dolphinscheduler", "tokenSecret": "x"});
        assert_eq!(api.put("/connections/default", &connection).await.status_code, 200);
        api.load_orders();
        for later in ["snapshot-3", "snapshot-4"] {
            assert!(api.world.storage.remove(BUCKET, &format!("{ORDERS_PREFIX}snapshot/{later}")));
        }
        assert_eq!(api.register(ORDERS, "orders").await.status_code, 201);
        api
    }

    /// Puts every file of `orders`.
    pub(crate) fn load_orders(&self) {
        let fixture = workspace().join("fixtures/paimon/stream-commits/table");
        self.world.storage.load(BUCKET, ORDERS_PREFIX, &fixture).unwrap();
    }

    /// Registers an asset in `ods_db`.
    pub(crate) async fn register(&self, key: &str, table: &str) -> GatewayResponse {
        let location = format!("s3://{BUCKET}/warehouse/ods_db.db/{table}");
        self.post("/projects/7/assets", &json!({"key": key, "location": location})).await
    }

    /// A token of one project or of the deployment, as it is shown once.
    pub(crate) async fn make_token(&self, project: Option<ProjectCode>, rights: &[Right], carried: Carried) -> String {
        let asked = NewToken {
            name: "test".to_owned(),
            project,
            rights: rights.iter().copied().collect::<BTreeSet<_>>().try_into().unwrap(),
            carried,
            life_days: access::DEFAULT_LIFE_DAYS,
            is_signed: false,
        };
        access::create(&self.world.quiet_ports(), asked, "test").await.unwrap().text.unwrap().reveal()
    }

    /// Lets time pass.
    pub(crate) fn wait(&self, seconds: u64) {
        self.world.clock.advance(Duration::from_secs(seconds));
    }

    /// Sends an event as it stands.
    pub(crate) async fn raw(&self, event: Value) -> GatewayResponse {
        handler::handle(serde_json::from_value(event).unwrap(), &self.context).await
    }

    /// Sends a request in the shape of a REST API.
    pub(crate) async fn send(&self, method: &str, target: &str, body: Option<String>) -> GatewayResponse {
        self.raw(rest_event(method, target, body.as_deref())).await
    }

    pub(crate) async fn get(&self, target: &str) -> GatewayResponse {
        self.send("GET", target, None).await
    }

    /// Posts; events are worked on at once, and what became of each stands in its answer.
    pub(crate) async fn post(&self, target: &str, body: &Value) -> GatewayResponse {
        let response = self.send("POST", target, Some(body.to_string())).await;
        match target.strip_suffix("/asset-events") {
            Some(project) => self.with_outcomes(project, response).await,
            None => response,
        }
    }

    /// Works on every event that is stored, as the watcher does.
    pub(crate) async fn work(&self) {
        let ports = self.world.ports();
        for message in self.world.queue.drain() {
            let Message::Letters { receipts, trace } = message else {
                ports.queue.send(&message).await.unwrap();
                continue;
            };
            for receipt in receipts {
                if let Some(worked) = inbox::work(&ports, &receipt, &trace).await.unwrap() {
                    report_worked(&self.context.metrics, &receipt, &worked);
                }
            }
        }
    }

    /// An answer to pushed events with what became of them in the place of their receipts.
    async fn with_outcomes(&self, project: &str, mut response: GatewayResponse) -> GatewayResponse {
        if !matches!(response.status_code, 200 | 202) {
            return response;
        }
        self.work().await;
        let mut answer = body(&response);
        let items = match answer.get_mut("items") {
            Some(items) => items.as_array_mut().unwrap().iter_mut().collect(),
            None => vec![&mut answer],
        };
        for item in items {
            let Some(receipt) = item.as_object_mut().unwrap().remove("receipt") else { continue };
            let told = body(&self.get(&format!("{project}/asset-events/{}", receipt.as_str().unwrap())).await);
            let became = &told["outcomes"][0];
            let item = item.as_object_mut().unwrap();
            item.insert("outcome".to_owned(), became["outcome"].clone());
            if became["reason"].is_string() {
                item.insert("reason".to_owned(), became["reason"].clone());
            }
        }
        response.body = answer.to_string();
        response
    }

    pub(crate) async fn put(&self, target: &str, body: &Value) -> GatewayResponse {
        self.send("PUT", target, Some(body.to_string())).await
    }

    pub(crate) async fn delete(&self, target: &str) -> GatewayResponse {
        self.send("DELETE", target, None).await
    }

    /// The names of the metrics so far, each with its dimensions' values.
    pub(crate) fn metrics(&self) -> Vec<String> {
        let written = String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap();
        let lines = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| measured(&line)).collect()
    }

    /// How many triggers were sent to the dispatcher.
    pub(crate) fn dispatched(&self) -> usize {
        self.world.queue.drain().iter().filter(|message| matches!(message, Message::Dispatch { .. })).count()
    }
}

fn measured(line: &Value) -> String {
    let about = &line["_aws"]["CloudWatchMetrics"][0];
    let mut words = vec![about["Metrics"][0]["Name"].as_str().unwrap()];
    let names = about["Dimensions"][0].as_array().unwrap();
    words.extend(names.iter().map(|name| line[name.as_str().unwrap()].as_str().unwrap()));
    words.join(" ")
}

/// An event of a REST API: the path as sent, the query decoded.
pub(crate) fn rest_event(method: &str, target: &str, body: Option<&str>) -> Value {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs: serde_json::Map<String, Value> =
        form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), json!(value))).collect();
    let query = if pairs.is_empty() { Value::Null } else { Value::Object(pairs) };
    json!({
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": {"Authorization": format!("Bearer {TOKEN}"), "Content-Type": "application/json"},
        "multiValueHeaders": null,
        "queryStringParameters": query,
        "multiValueQueryStringParameters": null,
        "pathParameters": {"proxy": path.trim_start_matches('/')},
        "stageVariables": null,
        "requestContext": {"requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef", "stage": "v1", "path": format!("/v1{path}")},
        "body": body,
        "isBase64Encoded": false,
    })
}

/// A `CloudEvent` about a table.
pub(crate) fn cloud_event(id: &str, word: &str, data: &Value) -> Value {
    json!({
        "specversion": "1.0",
        "id": id,
        "source": "flink://prod/orders",
        "type": format!("io.lakebell.{word}.v1"),
        "time": "2026-01-15T10:04:12.345Z",
        "datacontenttype": "application/json",
        "data": data,
    })
}

/// A target that starts a workflow when `orders` has advanced.
pub(crate) fn target(name: &str, workflow: i64) -> Value {
    json!({
        "name": name,
        "workflowDefinitionCode": workflow,
        "groups": [{"dependencies": [{"asset": ORDERS}]}],
    })
}

/// The body of an answer.
pub(crate) fn body(response: &GatewayResponse) -> Value {
    serde_json::from_str(&response.body).unwrap()
}

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares an answer with its golden file.
#[track_caller]
pub(crate) fn golden(name: &str, response: &GatewayResponse) {
    let mut body: Value = match response.body.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap(),
    };
    // What looks like a secret would be taken for one that has leaked.
    for (name, mask) in [("token", "lakebell_<id>_<secret>"), ("signingKey", "whsec_<key>")] {
        if let Some(shown) = body.get_mut(name).filter(|shown| shown.is_string()) {
            *shown = json!(mask);
        }
    }
    let shown = json!({"status": response.status_code, "headers": response.headers, "body": body});
    let shown = format!("{shown:#}\n");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{name}.json"));
    if std::env::var("LAKEBELL_GOLDEN").as_deref() == Ok("rewrite") {
        std::fs::write(&file, &shown).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(shown, expected, "golden/{name}.json differs; LAKEBELL_GOLDEN=rewrite writes it anew");
}
