//! One test's place in the deployment: a project, a database, and clients of its own.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use jiff::Timestamp;
use lakebell_aws::DynamoItems;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::local::Local;
use super::{PATIENCE, Table, until};

/// A pass of the compensator looks at the tables of every test. Who asks what a hint of its own did must keep passes
/// out meanwhile.
static PASSES: RwLock<()> = RwLock::const_new(());

/// A message that is not done with comes again after so many seconds. A deployment waits minutes.
const COMES_AGAIN_SECONDS: &str = "2";
const COUNTS: [aws_sdk_sqs::types::QueueAttributeName; 2] = [
    aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages,
    aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
];

/// An answer of the API.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The body, if the status is one of these.
    pub(crate) fn expect(self, statuses: &[u16]) -> Value {
        assert!(statuses.contains(&self.status), "{} {}", self.status, self.body);
        self.body
    }

    pub(crate) fn ok(self) -> Value {
        self.expect(&[200])
    }
}

/// Where one test happens.
pub(crate) struct Scene {
    pub(crate) local: Local,
    pub(crate) project: i64,
    /// Unique, and part of every name that the test makes up.
    pub(crate) name: String,
    pub(crate) http: reqwest::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) s3: aws_sdk_s3::Client,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) items: DynamoItems,
}

impl Scene {
    /// A scene in the deployment; `None` where there is none.
    pub(crate) async fn open(label: &str) -> Option<Self> {
        static SCENES: AtomicI64 = AtomicI64::new(0);
        let local = Local::open()?;
        let number = Timestamp::now().as_millisecond() * 100 + SCENES.fetch_add(1, Ordering::Relaxed);
        let credentials = Credentials::new(&local.access_key_id, &local.secret_access_key, None, None, "local");
        let region = Region::new(local.region.clone());
        let s3 = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&local.endpoint)
            .region(region.clone())
            .credentials_provider(credentials.clone())
            .force_path_style(true);
        let sqs = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&local.endpoint)
            .region(region.clone())
            .credentials_provider(credentials.clone());
        let dynamodb = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .endpoint_url(&local.endpoint)
            .region(region)
            .credentials_provider(credentials);
        let dynamodb = aws_sdk_dynamodb::Client::from_conf(dynamodb.build());
        let scene = Self {
            project: number,
            name: format!("e2e_{label}_{number}"),
            http: reqwest::Client::builder().timeout(Duration::from_secs(40)).build().unwrap(),
            sqs: aws_sdk_sqs::Client::from_conf(sqs.build()),
            s3: aws_sdk_s3::Client::from_conf(s3.build()),
            items: DynamoItems::new(dynamodb.clone(), &local.table),
            dynamodb,
            local,
        };
        scene.hurry_queues().await;
        Some(scene)
    }

    /// Keeps passes that tests ask for out as long as it is held. The deployment's own comes every five minutes.
    pub(crate) async fn without_passes() -> RwLockReadGuard<'static, ()> {
        PASSES.read().await
    }

    /// Needed for a pass.
    pub(crate) async fn with_passes() -> RwLockWriteGuard<'static, ()> {
        PASSES.write().await
    }

    async fn hurry_queues(&self) {
        for queue in ["hints", "evaluate", "dispatch"] {
            let name = aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout;
            let set = self.sqs.set_queue_attributes().queue_url(&self.local.queues[queue].url);
            set.attributes(name, COMES_AGAIN_SECONDS).send().await.unwrap();
        }
    }

    // ---- the API ----------------------------------------------------------------------------

    /// A call with the token. The path begins with a slash and stands as it is sent.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let body = body.map(ToString::to_string);
        let token = format!("Bearer {}", self.local.api_token);
        self.call_raw(method, path, Some(&token), body).await
    }

    /// A call with any `Authorization` and any body.
    pub(crate) async fn call_raw(
        &self,
        method: Method,
        path: &str,
        authorization: Option<&str>,
        body: Option<String>,
    ) -> Answer {
        let mut request = self.http.request(method, format!("{}{path}", self.local.api_url));
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, headers, body }
    }

    /// A path below the test's project.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/projects/{}{rest}", self.project)
    }

    pub(crate) async fn get(&self, rest: &str) -> Answer {
        self.call(Method::GET, &self.path(rest), None).await
    }

    pub(crate) async fn post(&self, rest: &str, body: &Value) -> Answer {
        self.call(Method::POST, &self.path(rest), Some(body)).await
    }

    /// Pushes an event or a batch, waits until what was stored is worked on, and returns the answer, with what
    /// became of each in it.
    pub(crate) async fn push(&self, events: &Value) -> Value {
        let mut answer = self.post("/asset-events", events).await.expect(&[200, 202]);
        let items = match answer.get_mut("items") {
            Some(items) => items.as_array_mut().unwrap().iter_mut().collect(),
            None => vec![&mut answer],
        };
        for item in items {
            let Some(receipt) = item["receipt"].as_str() else { continue };
            let path = format!("/asset-events/{receipt}");
            let told = until(&format!("event {receipt} to be worked on"), PATIENCE, async || {
                let told = self.get(&path).await.ok();
                if told["status"] == "settled" { Ok(told) } else { Err(told) }
            })
            .await;
            item["outcome"] = told["outcomes"][0]["outcome"].clone();
            item["reason"] = told["outcomes"][0]["reason"].clone();
        }
        answer
    }

    pub(crate) async fn delete(&self, rest: &str) -> Answer {
        self.call(Method::DELETE, &self.path(rest), None).await
    }

    // ---- what the test declares -------------------------------------------------------------

    /// A table of the test's own in the lake, not written yet.
    pub(crate) fn table(&self, table: &str) -> Table {
        Table::new(self.s3.clone(), &self.local.bucket, &self.name, table)
    }

    /// A bucket of which nobody is notified.
    pub(crate) async fn quiet_bucket(&self) -> String {
        let bucket = self.name.replace('_', "-");
        self.s3.create_bucket().bucket(&bucket).send().await.unwrap();
        bucket
    }

    /// Registers tables as assets.
    pub(crate) async fn register(&self, tables: &[&Table]) {
        for table in tables {
            let spec = json!({"key": table.asset, "location": table.location()});
            self.post("/assets", &spec).await.expect(&[201]);
        }
    }

    /// A target that starts a workflow of the project when tables have advanced.
    pub(crate) fn target(connection: &str, name: &str, code: i64, advance: &Value, tables: &[&Table]) -> Value {
        let dependencies: Vec<Value> = tables.iter().map(|table| json!({"asset": table.asset})).collect();
        json!({
            "name": name, "connection": connection, "workflowDefinitionCode": code,
            "groups": [{"name": "g", "advance": advance, "dependencies": dependencies}],
        })
    }

    /// A connection of the test's own to a scheduler that is not there.
    pub(crate) async fn connection(&self) -> String {
        let name = format!("{}-nowhere", self.project);
        let body = json!({"url": "http://127.0.0.1:9/dolphinscheduler", "tokenSecret": self.local.connection_secret});
        self.call(Method::PUT, &format!("/connections/{name}"), Some(&body)).await.ok();
        name
    }

    pub(crate) async fn declare(&self, target: &Value) -> Value {
        self.post("/asset-dependencies", target).await.expect(&[201])
    }

    // ---- what became of it ------------------------------------------------------------------

    /// Every trigger of a target, newest first.
    pub(crate) async fn triggers(&self, target: &str) -> Vec<Value> {
        let mut triggers = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.get(&format!("/asset-trigger-history?target={target}&limit=200{after}")).await.ok();
            triggers.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return triggers,
            }
        }
    }

    /// The events of a table, newest first.
    pub(crate) async fn events(&self, table: &Table) -> Vec<Value> {
        let key = super::lake::in_path(&table.asset);
        let page = self.get(&format!("/asset-events?limit=200&assetKey={key}")).await.ok();
        page["items"].as_array().unwrap().clone()
    }

    /// The evaluation of a target.
    pub(crate) async fn why(&self, target: &str) -> Value {
        self.get(&format!("/asset-dependencies/{target}")).await.ok()["items"][0]["evaluation"].clone()
    }

    /// Waits until the recorded state of a table is at a snapshot.
    pub(crate) async fn reaches(&self, table: &Table, snapshot: u64) -> Value {
        let key = super::lake::in_path(&table.asset);
        until(&format!("{} to reach snapshot {snapshot}", table.asset), PATIENCE, async || {
            let state = self.get(&format!("/assets/{key}/state")).await.ok()["state"].clone();
            if state["table"]["ordinal"].as_u64() >= Some(snapshot) { Ok(state) } else { Err(state) }
        })
        .await
    }

    /// Waits until a target has a trigger that has ended, and it is its newest one.
    pub(crate) async fn ended(&self, target: &str) -> Value {
        until(&format!("a trigger of {target} to end"), PATIENCE, async || {
            let triggers = self.triggers(target).await;
            match triggers.first() {
                Some(newest) if has_ended(newest) => Ok(newest.clone()),
                _ => Err((triggers, self.why(target).await)),
            }
        })
        .await
    }

    // ---- queues and functions ---------------------------------------------------------------

    /// Waits until no hint and no evaluation is on its way: what was sent has been handled.
    pub(crate) async fn hints_are_handled(&self) {
        until("the hints and evaluate queues to be empty", Duration::from_secs(100), async || {
            for queue in ["hints", "evaluate"] {
                let waiting = self.waiting(queue).await;
                if waiting > 0 {
                    return Err(format!("{waiting} in {queue}"));
                }
            }
            Ok(())
        })
        .await;
    }

    /// Messages of a queue, in flight or not.
    pub(crate) async fn waiting(&self, queue: &str) -> u64 {
        let mut get = self.sqs.get_queue_attributes().queue_url(&self.local.queues[queue].url);
        for name in COUNTS {
            get = get.attribute_names(name);
        }
        let answer = get.send().await.unwrap();
        answer.attributes.unwrap_or_default().values().map(|count| count.parse::<u64>().unwrap()).sum()
    }

    /// Sends a message.
    pub(crate) async fn send(&self, queue: &str, body: &str) {
        let url = &self.local.queues[queue].url;
        self.sqs.send_message().queue_url(url).message_body(body).send().await.unwrap();
    }

    /// Calls a function directly and waits for its answer.
    pub(crate) async fn invoke(&self, function: &str, payload: &Value) -> Answer {
        let name = &self.local.functions[function];
        let url = format!("{}/2015-03-31/functions/{name}/invocations", self.local.endpoint);
        let response = self.http.post(url).body(payload.to_string()).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: response.json().await.unwrap_or_default() }
    }
}

/// Whether a trigger has reached an end status.
pub(crate) fn has_ended(trigger: &Value) -> bool {
    ["SUCCESS", "FAILED", "SKIPPED"].contains(&trigger["triggerStatus"].as_str().unwrap())
}
