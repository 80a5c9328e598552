//! A second deployment beside the one under test: the same function packages with a table and queues of their own, and a
//! proxy between them and what they call. What breaks here breaks for no other test.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};
use aws_sdk_sqs::types::QueueAttributeName;
use jiff::Timestamp;
use lakebell_aws::{DynamoItems, S3Storage, SqsQueue, SystemRandom};
use lakebell_domain::trigger::Status;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::notices::NoNotices;
use lakebell_engine::ports::time::SystemClock;
use lakebell_engine::rules::Records;
use lakebell_testkit::MemoryCatalogs;
use serde_json::{Value, json};

use super::records::{items_of, time_has_come};
use super::{Proxy, Scene};

/// Where `localstack/deploy.py` puts the packages.
const ARTIFACTS: &str = "lakebell-deployment-artifacts";
/// The functions: their names in the description, those of their binaries, and the queues that they read.
const FUNCTIONS: [(&str, &str, &[&str]); 3] = [
    (WATCHER, "lakebell-commit-watcher", &["hints", "evaluate"]),
    ("compensator", "lakebell-compensator", &[]),
    ("dispatcher", "lakebell-dispatcher", &["dispatch"]),
];
const WATCHER: &str = "commitWatcher";
/// The time-out of the other functions, in seconds, as in the template: a dispatcher with less starts nothing.
const TIMEOUT: u32 = 60;

/// The deployment.
pub(crate) struct Stack<'a> {
    scene: &'a Scene,
    /// Between the functions and DynamoDB and SQS.
    pub(crate) aws: Proxy,
    /// The table.
    table: String,
    /// Queue URLs by name.
    pub(crate) queues: BTreeMap<&'static str, String>,
    /// Function names by those of the description.
    pub(crate) functions: BTreeMap<&'static str, String>,
    mappings: Vec<String>,
    /// The engine over the same table and queues, without the proxy: for what a test arranges and checks.
    pub(crate) ports: Ports,
}

impl<'a> Stack<'a> {
    /// Deploys it. `timeout` is that of the commit watcher, in seconds.
    pub(crate) async fn deploy(scene: &'a Scene, seed: u64, timeout: u32) -> Self {
        let aws = Proxy::start(&scene.local.endpoint, seed).await;
        let table = format!("{}-table", scene.name);
        make_table(scene, &table).await;
        let mut queues = BTreeMap::new();
        for queue in ["hints", "evaluate", "dispatch", "raw"] {
            let create = scene.sqs.create_queue().queue_name(format!("{}-{queue}", scene.name));
            let answer = create.attributes(QueueAttributeName::VisibilityTimeout, "4").send().await.unwrap();
            queues.insert(queue, answer.queue_url.unwrap());
        }
        let storage = Arc::new(S3Storage::new(scene.s3.clone()));
        let ports = Ports {
            items: Arc::new(DynamoItems::new(scene.dynamodb.clone(), &table)),
            storage: storage.clone(),
            // No table of these tests has one.
            catalogs: Arc::new(MemoryCatalogs::new()),
            consumers: storage,
            queue: Arc::new(SqsQueue::new(scene.sqs.clone(), &queues["dispatch"], &queues["evaluate"])),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            notices: Arc::new(NoNotices),
        };
        let mut stack = Self { scene, aws, table, queues, functions: BTreeMap::new(), mappings: Vec::new(), ports };
        for (function, binary, read) in FUNCTIONS {
            stack.make_function(function, binary, if function == WATCHER { timeout } else { TIMEOUT }).await;
            for queue in read {
                stack.read_queue(function, queue).await;
            }
        }
        stack
    }

    async fn lambda(&self, method: reqwest::Method, path: &str, body: &Value) -> Value {
        let url = format!("{}/2015-03-31{path}", self.scene.local.endpoint);
        let answer = self.scene.http.request(method, &url).body(body.to_string()).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{url}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// A function of the same package as the deployed one, with the endpoints of the proxy.
    async fn make_function(&mut self, function: &'static str, binary: &str, timeout: u32) {
        let deployed = &self.scene.local.functions[function];
        let known = self.lambda(reqwest::Method::GET, &format!("/functions/{deployed}"), &Value::Null).await;
        let known = &known["Configuration"];
        let listed =
            self.scene.s3.list_objects_v2().bucket(ARTIFACTS).prefix(format!("{binary}/")).send().await.unwrap();
        let package = listed.contents().iter().max_by_key(|object| object.last_modified().map(DateTime::secs)).unwrap();
        let name = format!("{}-{}", self.scene.name, binary.trim_start_matches("lakebell-"));
        let mut variables = known["Environment"]["Variables"].clone();
        for (variable, value) in [
            ("LAKEBELL_TABLE", self.table.as_str()),
            ("LAKEBELL_DISPATCH_QUEUE_URL", &self.queues["dispatch"]),
            ("LAKEBELL_EVALUATE_QUEUE_URL", &self.queues["evaluate"]),
            ("AWS_ENDPOINT_URL_DYNAMODB", self.aws.url()),
            ("AWS_ENDPOINT_URL_SQS", self.aws.url()),
        ] {
            variables[variable] = json!(value);
        }
        let body = json!({
            "FunctionName": name, "Runtime": known["Runtime"], "Role": known["Role"], "Handler": known["Handler"],
            "Code": {"S3Bucket": ARTIFACTS, "S3Key": package.key()}, "Timeout": timeout, "MemorySize": 256,
            "Environment": {"Variables": variables},
        });
        self.lambda(reqwest::Method::POST, "/functions", &body).await;
        self.functions.insert(function, name);
    }

    async fn read_queue(&mut self, function: &str, queue: &str) {
        let batch = if function == "dispatcher" { 1 } else { 10 };
        let body = json!({
            "FunctionName": self.functions[function], "EventSourceArn": self.queue_arn(queue).await, "BatchSize": batch,
            "FunctionResponseTypes": ["ReportBatchItemFailures"], "ScalingConfig": {"MaximumConcurrency": 4},
        });
        let made = self.lambda(reqwest::Method::POST, "/event-source-mappings/", &body).await;
        self.mappings.push(made["UUID"].as_str().unwrap().to_owned());
    }

    /// The ARN of a queue.
    pub(crate) async fn queue_arn(&self, queue: &str) -> String {
        let get = self.scene.sqs.get_queue_attributes().queue_url(&self.queues[queue]);
        let answer = get.attribute_names(QueueAttributeName::QueueArn).send().await.unwrap();
        answer.attributes.unwrap()[&QueueAttributeName::QueueArn].clone()
    }

    /// Calls a function and waits for its answer, whatever it is.
    pub(crate) async fn invoke(&self, function: &str, payload: &Value) -> (bool, Value) {
        let name = &self.functions[function];
        let url = format!("{}/2015-03-31/functions/{name}/invocations", self.scene.local.endpoint);
        let answer = self.scene.http.post(url).body(payload.to_string()).send().await.unwrap();
        let is_fine = answer.headers().get("x-amz-function-error").is_none() && answer.status().is_success();
        (is_fine, answer.json().await.unwrap_or_default())
    }

    /// Messages of these queues, in flight or not.
    pub(crate) async fn waiting(&self, queues: &[&str]) -> u64 {
        let mut waiting = 0;
        for queue in queues {
            waiting += self.scene.count(&self.queues[queue]).await;
        }
        waiting
    }

    /// Ends the process of one invocation of a function at once, as a crash would. Says whether there was one.
    pub(crate) fn kill_one(&self, function: &str, at: u64) -> bool {
        let pids = pids_of(&self.functions[function]);
        let Some(place) = at.checked_rem(pids.len() as u64) else { return false };
        let pid = pids[usize::try_from(place).unwrap()];
        std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().is_ok_and(|status| status.success())
    }

    /// Ends every dispatcher, and the leases that they held, as if the time had passed: what held them is dead.
    pub(crate) async fn leases_are_over(&self) {
        while self.kill_one("dispatcher", 0) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for (key, trigger) in self.records().await.triggers {
            if !matches!(trigger.status(), Status::Leased { .. }) {
                continue;
            }
            let ends = |doc: &mut Value, now: Timestamp| {
                doc["status"]["until"] = json!(now);
                doc["dueAt"] = json!(now);
                true
            };
            time_has_come(&*self.ports.items, &key, ends).await;
        }
    }

    /// Everything that is recorded.
    pub(crate) async fn records(&self) -> Records {
        Records::of(&items_of(&self.scene.dynamodb, &self.table).await).unwrap()
    }

    /// Takes functions and mappings away.
    pub(crate) async fn remove(&self) {
        for mapping in &self.mappings {
            self.lambda(reqwest::Method::DELETE, &format!("/event-source-mappings/{mapping}"), &Value::Null).await;
        }
        for function in self.functions.values() {
            self.lambda(reqwest::Method::DELETE, &format!("/functions/{function}"), &Value::Null).await;
        }
    }
}

/// The processes that run a function: the local AWS runs each as a process of this machine, with the function's
/// environment.
fn pids_of(function: &str) -> Vec<u32> {
    let mark = format!("AWS_LAMBDA_FUNCTION_NAME={function}");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let runs = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    pids.filter(runs).collect()
}

/// The same table as the template's.
async fn make_table(scene: &Scene, table: &str) {
    let text = |name: &str| {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S);
        attribute.build().unwrap()
    };
    let key =
        |name: &str, kind: KeyType| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    let mut make = scene.dynamodb.create_table().table_name(table).billing_mode(BillingMode::PayPerRequest);
    make = make.key_schema(key("pk", KeyType::Hash)).key_schema(key("sk", KeyType::Range));
    for name in ["pk", "sk", "sweep_pk", "sweep_sk", "history_pk", "history_sk"] {
        make = make.attribute_definitions(text(name));
    }
    for index in ["sweep", "history"] {
        let keys_only = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
        let index = GlobalSecondaryIndex::builder()
            .index_name(index)
            .key_schema(key(&format!("{index}_pk"), KeyType::Hash))
            .key_schema(key(&format!("{index}_sk"), KeyType::Range))
            .projection(keys_only);
        make = make.global_secondary_indexes(index.build().unwrap());
    }
    make.send().await.unwrap();
    let wait = Duration::from_secs(10);
    super::until("the table to be there", wait, async || {
        match scene.dynamodb.describe_table().table_name(table).send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}
