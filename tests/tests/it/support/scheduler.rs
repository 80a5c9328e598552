//! A DolphinScheduler stand-in of a test's own, and a connection of the deployment to it.

use std::ops::Deref;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use lakebell_domain::ids::TriggerKey;
use lakebell_scheduler_standin::{Config, Instance, Profile, Running, Standin};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::RwLockWriteGuard;

use super::records::time_has_come;
use super::scene::has_ended;
use super::{PATIENCE, Scene, until};

/// Between two ticks of the clock that drives the compensator.
const TICK: Duration = Duration::from_millis(500);

/// A stand-in that runs in the test's process and that the deployed dispatcher calls.
pub(crate) struct Scheduler {
    standin: Running,
    /// The connection's name.
    pub(crate) connection: String,
}

impl Deref for Scheduler {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.standin
    }
}

impl Scheduler {
    /// Instances that carry a trigger's key.
    pub(crate) fn instances_of(&self, trigger: &Value) -> Vec<Instance> {
        let key = trigger["key"].as_str().unwrap();
        self.look(|world| world.instances_with("lakebell_trigger_key", key).into_iter().cloned().collect())
    }

    /// Start calls that came in.
    pub(crate) fn start_calls(&self) -> u64 {
        self.look(|world| world.start_calls)
    }

    /// The instances of a workflow.
    pub(crate) fn instances(&self, definition: i64) -> usize {
        self.look(|world| world.instances.values().filter(|found| found.definition == definition).count())
    }
}

impl Scene {
    /// Starts a stand-in and declares a connection to it.
    pub(crate) async fn scheduler(&self, profile: Profile) -> Scheduler {
        let standin = Standin::start(Config::new(profile, &self.local.scheduler_token)).await.unwrap();
        let connection = format!("c-{}", standin.base_url().rsplit(':').next().unwrap().replace('/', "-"));
        let connection = format!("{}-{connection}", self.project);
        let body = json!({"url": standin.base_url(), "tokenSecret": self.local.connection_secret});
        self.call(Method::PUT, &format!("/connections/{connection}"), Some(&body)).await.ok();
        Scheduler { standin, connection }
    }

    /// Waits until the newest trigger of a target has ended, with the compensator's clock running fast: it sweeps
    /// twice a second instead of once a minute.
    pub(crate) async fn carried_to_its_end(&self, target: &str) -> Value {
        self.carry(target, |_| false).await
    }

    /// The same, and what is due later than in a few seconds is due now.
    pub(crate) async fn carried_through_time(&self, target: &str) -> Value {
        self.carry(target, |due_in| due_in > Duration::from_secs(10)).await
    }

    async fn carry(&self, target: &str, is_too_far: impl Fn(Duration) -> bool) -> Value {
        let mut ticked = Instant::now();
        until(&format!("the trigger of {target} to end"), PATIENCE, async || {
            let triggers = self.triggers(target).await;
            let Some(newest) = triggers.first() else { return Err((triggers, self.why(target).await)) };
            if has_ended(newest) {
                return Ok(newest.clone());
            }
            let due_at = newest["dueAt"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
            let due_in = due_at.map(|at| at.duration_since(Timestamp::now()).unsigned_abs());
            let waits = newest["status"]["step"] == "waiting";
            if waits && due_at > Some(Timestamp::now()) && due_in.is_some_and(&is_too_far) {
                self.is_due_now(newest).await;
            }
            if ticked.elapsed() >= TICK {
                self.sweep().await;
                ticked = Instant::now();
            }
            Err((triggers, Value::Null))
        })
        .await
    }

    /// One sweep of the compensator.
    pub(crate) async fn sweep(&self) {
        let answer = self.invoke("compensator", &json!({"task": "sweep"})).await;
        assert_eq!((answer.status, answer.headers.get("x-amz-function-error")), (200, None), "{}", answer.body);
    }

    /// One pass of the compensator over all assets and targets.
    pub(crate) async fn pass(&self, _allowed: &RwLockWriteGuard<'static, ()>) {
        let answer = self.invoke("compensator", &json!({"task": "pass"})).await;
        assert_eq!((answer.status, answer.headers.get("x-amz-function-error")), (200, None), "{}", answer.body);
    }

    /// A trigger that waits is due now.
    async fn is_due_now(&self, trigger: &Value) {
        let key: TriggerKey = trigger["key"].as_str().unwrap().parse().unwrap();
        let wakes = |doc: &mut Value, now: Timestamp| {
            let waits = doc["status"]["step"] == "waiting";
            if waits {
                doc["dueAt"] = json!(now);
            }
            waits
        };
        time_has_come(&self.items, &key, wakes).await;
    }

    /// The workflow that a trigger started is to be asked about now.
    pub(crate) async fn asked_about_now(&self, trigger: &Value) {
        let key: TriggerKey = trigger["key"].as_str().unwrap().parse().unwrap();
        let asks = |doc: &mut Value, now: Timestamp| {
            let is_followed = doc["followed"]["dueAt"].is_string();
            if is_followed {
                doc["followed"]["dueAt"] = json!(now);
            }
            is_followed
        };
        time_has_come(&self.items, &key, asks).await;
    }
}
