//! What the tests share: a stand-in with one workflow, and a client that is connected to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use lakebell_dolphinscheduler::{DolphinScheduler, Options};
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TaskCode, TriggerKey, WorkflowCode};
use lakebell_engine::EngineError;
use lakebell_engine::ports::scheduler::{
    Active, CheckOutcome, ConnectionSpec, Connections, InstanceList, Latest, Preflight, Refusal, Scheduler,
    StartOutcome, StartRequest, VersionLine, WorkflowRef,
};
use lakebell_engine::ports::time::Clock;
use lakebell_scheduler_standin::{Config, Delay, Instance, Profile, Running, Standin};

pub(crate) const PROJECT: ProjectCode = ProjectCode(7_000_000_000_001);
pub(crate) const TOKEN: &str = "a-token-for-tests";
/// How long a test waits for something that should be there almost at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// One connection whose URL, version and tokens a test may change.
pub(crate) struct OneConnection {
    pub(crate) spec: Mutex<Option<ConnectionSpec>>,
    /// What a cache still holds, and what the secret holds.
    pub(crate) tokens: Mutex<(String, String)>,
}

#[async_trait]
impl Connections for OneConnection {
    async fn connection(&self, name: &ConnectionName) -> Result<Option<ConnectionSpec>, EngineError> {
        Ok(self.spec.lock().unwrap().clone().filter(|spec| spec.name == *name))
    }

    async fn token(&self, _: &ConnectionSpec, fresh: bool) -> Result<String, EngineError> {
        let mut tokens = self.tokens.lock().unwrap();
        if fresh {
            *tokens = (tokens.1.clone(), tokens.1.clone());
        }
        Ok(tokens.0.clone())
    }
}

/// A clock that only moves when told to.
pub(crate) struct HandClock(Mutex<Timestamp>);

impl HandClock {
    pub(crate) fn advance(&self, seconds: i64) {
        let mut now = self.0.lock().unwrap();
        *now += SignedDuration::from_secs(seconds);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

pub(crate) struct Bench {
    pub(crate) standin: Running,
    pub(crate) connections: Arc<OneConnection>,
    pub(crate) client: DolphinScheduler,
    pub(crate) workflow: WorkflowCode,
    pub(crate) since: Timestamp,
    /// The time of the client's circuit breakers.
    pub(crate) clock: Arc<HandClock>,
}

pub(crate) fn name() -> ConnectionName {
    ConnectionName::new("main").unwrap()
}

pub(crate) fn key(text: &str) -> TriggerKey {
    TriggerKey::new(text).unwrap()
}

/// A client for this URL.
pub(crate) fn client(url: &str, version: VersionLine) -> (Arc<OneConnection>, DolphinScheduler) {
    let spec = ConnectionSpec {
        name: name(),
        url: url.to_owned(),
        version,
        token_secret: "unused".to_owned(),
        user: Some("lakebell".to_owned()),
    };
    let connections = Arc::new(OneConnection {
        spec: Mutex::new(Some(spec)),
        tokens: Mutex::new((TOKEN.to_owned(), TOKEN.to_owned())),
    });
    let client = DolphinScheduler::new(Arc::clone(&connections) as Arc<dyn Connections>, &Options::default()).unwrap();
    (connections, client)
}

impl Bench {
    /// Everything happens at once, and the version is found by asking.
    pub(crate) async fn new(profile: Profile) -> Self {
        Self::with(profile, VersionLine::Auto).await
    }

    pub(crate) async fn with(profile: Profile, version: VersionLine) -> Self {
        let standin = Standin::start(Config::new(profile, TOKEN)).await.unwrap();
        let workflow = WorkflowCode(standin.define(PROJECT.0, "dwd_trade"));
        let (connections, client) = client(&standin.base_url(), version);
        let since = Timestamp::now();
        let clock = Arc::new(HandClock(Mutex::new(since)));
        let client = client.with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        Self { standin, connections, client, workflow, since, clock }
    }

    pub(crate) fn request(&self, trigger: &str) -> StartRequest {
        StartRequest {
            project: PROJECT,
            workflow: self.workflow,
            start_at: None,
            trigger: key(trigger),
            parameters: BTreeMap::from([
                ("lakebell_trigger_key".to_owned(), trigger.to_owned()),
                ("lakebell_orders_to".to_owned(), "17".to_owned()),
            ]),
            business_date: None,
        }
    }

    pub(crate) async fn start(&self, trigger: &str) -> StartOutcome {
        self.client.start(&name(), &self.request(trigger)).await
    }

    pub(crate) async fn start_at(&self, trigger: &str, task: i64) -> StartOutcome {
        let request = StartRequest { start_at: Some(TaskCode(task)), ..self.request(trigger) };
        self.client.start(&name(), &request).await
    }

    pub(crate) async fn backfill(&self, trigger: &str, business_date: Date) -> StartOutcome {
        let request = StartRequest { business_date: Some(business_date), ..self.request(trigger) };
        self.client.start(&name(), &request).await
    }

    pub(crate) async fn active(&self) -> Active {
        self.client.active(&name(), PROJECT, self.workflow).await
    }

    pub(crate) async fn latest(&self) -> Latest {
        self.client.latest(&name(), PROJECT, &WorkflowRef::Code(self.workflow)).await
    }

    pub(crate) async fn listed(&self) -> Result<InstanceList, Refusal> {
        self.client.instances_since(&name(), PROJECT, self.workflow, self.since).await
    }

    pub(crate) async fn check(&self, trigger: &str) -> CheckOutcome {
        self.client.check(&name(), PROJECT, self.workflow, &key(trigger), self.since).await
    }

    pub(crate) async fn preflight(&self) -> Preflight {
        self.client.preflight(&name(), PROJECT, &WorkflowRef::Code(self.workflow)).await
    }

    /// The ids of the instances whose workflow saw this trigger key, lowest first.
    pub(crate) fn instances_of(&self, trigger: &str) -> Vec<InstanceId> {
        self.standin.look(|world| {
            world.instances_with("lakebell_trigger_key", trigger).iter().map(|found| InstanceId(found.id)).collect()
        })
    }

    pub(crate) fn start_calls(&self) -> u64 {
        self.standin.look(|world| world.start_calls)
    }

    pub(crate) fn set_online(&self, online: bool) {
        let code = self.workflow.0;
        self.standin.change(|world| world.definitions.get_mut(&code).unwrap().online = online);
    }
}

/// Whether the release says workflow, and so answers instance ids.
pub(crate) fn answers_ids(profile: Profile) -> bool {
    profile.says_workflow()
}

/// Commands stay where they are until the test says otherwise.
pub(crate) async fn held(profile: Profile) -> Bench {
    let bench = Bench::new(profile).await;
    bench.standin.change(|world| world.settings.consume = Delay::MANUAL);
    bench
}

/// Adds an instance to the list, with a command's parameters or without any.
pub(crate) fn seed(bench: &Bench, id: i64, began: Timestamp, state: &str, trigger: Option<&str>) {
    let command_param = trigger.map(|trigger| {
        serde_json::json!({"commandParams": [{"prop": "lakebell_trigger_key", "value": trigger}],
            "StartParams": serde_json::json!({"lakebell_trigger_key": trigger}).to_string()})
        .to_string()
    });
    let instance = Instance {
        id,
        name: format!("seeded-{id}"),
        definition: bench.workflow.0,
        project: PROJECT.0,
        state: state.to_owned(),
        start_time: began,
        end_time: matches!(state, "SUCCESS" | "FAILURE" | "STOP").then(|| began + SignedDuration::from_secs(90)),
        run_times: 1,
        params: BTreeMap::new(),
        command_param,
        global_params: None,
        trigger_code: 0,
        executor: "lakebell".to_owned(),
        exit_code: None,
        log: String::new(),
        schedule_time: None,
    };
    bench.standin.change(|world| world.instances.insert(id, instance));
}
