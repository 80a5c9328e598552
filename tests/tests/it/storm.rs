//! Real commits through a stack that fails: functions killed, a faulty network before DynamoDB, SQS and the scheduler,
//! notifications dropped and doubled. Nothing is lost and nothing starts twice.
//!
//! `LAKEBELL_STORM_COMMITS` makes the run longer (2000 for the figure of the documents), `LAKEBELL_STORM_SEED` repeats one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use aws_sdk_s3::types::{Event, NotificationConfiguration, QueueConfiguration};
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry};
use jiff::Timestamp;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TraceId, TriggerKey};
use lakebell_domain::target::TargetSpec;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::evaluate::Explained;
use lakebell_engine::rules::Records;
use lakebell_engine::{settings, targets};
use lakebell_formats::paimon::Snapshot;
use lakebell_scheduler_standin::{Config, Profile, Running, Standin};
use lakebell_testkit::SeededRandom;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::scene;
use crate::support::{Proxy, Scene, Stack, Writer, until};

const TABLES: usize = 4;
/// Commits of the run that is part of the suite.
const COMMITS: u64 = 300;
/// Requests of a thousand that fail.
const PER_MILLE: u64 = 30;
/// Notifications of a hundred that are dropped.
const DROPPED: u64 = 1;
/// Notifications of a hundred that come twice.
const DOUBLED: u64 = 5;
const CONNECTION: &str = "stormy";

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

fn trace() -> TraceId {
    TraceId::new("storm").unwrap()
}

/// A scheduler, the proxy before it, and a connection through that proxy.
pub(crate) struct Weather {
    pub(crate) standin: Running,
    pub(crate) proxy: Proxy,
}

impl Weather {
    pub(crate) async fn over(stack: &Stack<'_>, scene: &Scene, seed: u64) -> Self {
        let standin = Standin::start(Config::new(Profile::V3_3, &scene.local.scheduler_token)).await.unwrap();
        let base = standin.base_url();
        let (origin, path) = base.split_at(base.find("/dolphinscheduler").unwrap());
        let proxy = Proxy::start(origin, seed).await;
        let url = format!("{}{path}", proxy.url());
        let connection = json!({"name": CONNECTION, "url": url, "tokenSecret": scene.local.connection_secret});
        settings::put_connection(&stack.ports, &serde_json::from_value(connection).unwrap()).await.unwrap();
        Self { standin, proxy }
    }

    /// Declares a target of a workflow of its own.
    pub(crate) async fn declare(&self, stack: &Stack<'_>, scene: &Scene, name: &str, groups: &Value) -> TargetId {
        let workflow = self.standin.define(scene.project, name);
        let target =
            json!({"name": name, "connection": CONNECTION, "workflowDefinitionCode": workflow, "groups": groups});
        let spec: TargetSpec = serde_json::from_value(target).unwrap();
        let project = ProjectCode(scene.project);
        targets::declare(&stack.ports, project, &spec, &trace()).await.unwrap();
        TargetId { project, name: name.parse().unwrap() }
    }

    /// The trigger keys of all instances.
    pub(crate) fn starts(&self) -> Vec<TriggerKey> {
        self.standin.look(|world| {
            let keys = world.instances.values().map(|found| found.params["lakebell_trigger_key"].parse().unwrap());
            keys.collect()
        })
    }
}

/// Each started trigger has one instance, and each instance a trigger.
pub(crate) fn compare(records: &Records, mut starts: Vec<TriggerKey>) -> Vec<String> {
    let mut wrong = Records::started_once(&starts);
    let is_started = |key: &&TriggerKey| records.triggers[*key].status().word().as_str() == "SUCCESS";
    let mut started: Vec<TriggerKey> = records.triggers.keys().filter(is_started).cloned().collect();
    started.sort();
    starts.sort();
    if started != starts {
        wrong.push(format!(
            "{} triggers say that they started, and there are {} instances",
            started.len(),
            starts.len()
        ));
    }
    wrong
}

/// A table that a real writer has written, on its way into the lake.
struct Written {
    id: AssetId,
    prefix: String,
    files: Vec<Vec<u8>>,
    committed: BTreeSet<(u64, String)>,
}

impl Written {
    fn read(id: AssetId, prefix: String, folder: &Path, commits: u64) -> Self {
        let read = |at: u64| std::fs::read(folder.join(format!("snapshot/snapshot-{at}"))).unwrap();
        let files: Vec<Vec<u8>> = (1..=commits).map(read).collect();
        let committed =
            |(at, bytes): (u64, &Vec<u8>)| (at, Snapshot::parse_named(bytes, at).unwrap().fingerprint().to_string());
        let committed = (1..).zip(&files).map(committed).collect();
        Self { id, prefix, files, committed }
    }
}

/// One storm over a stack.
struct Storm<'a> {
    scene: &'a Scene,
    stack: Stack<'a>,
    weather: Weather,
    bucket: String,
    random: SeededRandom,
}

impl Storm<'_> {
    /// The bucket notifies a queue of the test, which hands on what arrives: not all of it, and some of it twice.
    async fn notify_raw_queue(&self) {
        let queue = QueueConfiguration::builder().queue_arn(self.stack.queue_arn("raw").await);
        let queue = queue.events(Event::S3ObjectCreated).build().unwrap();
        let notifications = NotificationConfiguration::builder().queue_configurations(queue).build();
        let put = self.scene.s3.put_bucket_notification_configuration().bucket(&self.bucket);
        put.notification_configuration(notifications).send().await.unwrap();
    }

    /// Hands on notifications until so many were seen: how many were dropped and doubled.
    async fn hand_on(&self, notifications: u64) -> (u64, u64) {
        let (raw, hints) = (&self.stack.queues["raw"], &self.stack.queues["hints"]);
        let (mut seen, mut dropped, mut doubled) = (0, 0, 0);
        while seen < notifications {
            let receive =
                self.scene.sqs.receive_message().queue_url(raw).max_number_of_messages(10).wait_time_seconds(1);
            let received = receive.send().await.unwrap();
            let (mut handed_on, mut done) = (Vec::new(), Vec::new());
            for message in received.messages() {
                let body = message.body().unwrap();
                let times = match self.random.below(100) {
                    roll if roll < DROPPED => 0,
                    roll if roll < DROPPED + DOUBLED => 2,
                    _ => 1,
                };
                // S3's own test message tells of no object.
                if body.contains("snapshot-") {
                    seen += 1;
                    dropped += u64::from(times == 0);
                    doubled += u64::from(times == 2);
                    handed_on.extend(std::iter::repeat_n(body, times));
                }
                let entry = DeleteMessageBatchRequestEntry::builder().id(format!("m{}", done.len()));
                done.push(entry.receipt_handle(message.receipt_handle().unwrap()).build().unwrap());
            }
            for bodies in handed_on.chunks(10) {
                let entry = |(at, body): (usize, &&str)| {
                    SendMessageBatchRequestEntry::builder().id(format!("m{at}")).message_body(*body).build().unwrap()
                };
                let entries = bodies.iter().enumerate().map(entry).collect();
                self.scene.sqs.send_message_batch().queue_url(hints).set_entries(Some(entries)).send().await.unwrap();
            }
            if !done.is_empty() {
                self.scene.sqs.delete_message_batch().queue_url(raw).set_entries(Some(done)).send().await.unwrap();
            }
        }
        (dropped, doubled)
    }

    /// Kills functions and lets the clock tick until told to stop: how many were killed.
    async fn rage(&self, mut over: tokio::sync::oneshot::Receiver<()>) -> u64 {
        let mut killed = 0;
        let mut ticks = 0_u64;
        while over.try_recv().is_err() {
            let victim = match self.random.below(8) {
                0 => "dispatcher",
                1 => "compensator",
                _ => "commitWatcher",
            };
            killed += u64::from(self.stack.kill_one(victim, self.random.below(64)));
            ticks += 1;
            let task = if ticks.is_multiple_of(5) { "pass" } else { "sweep" };
            // A tick may fail: the next one does the same.
            self.stack.invoke("compensator", &json!({"task": task})).await;
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        killed
    }

    /// The faults are over: the queues run empty, one pass, and then only the sweeps.
    async fn comes_to_rest(&self, declared: &[TargetId], patience: Duration) -> Records {
        self.stack.aws.breaks(0);
        self.weather.proxy.breaks(0);
        self.stack.leases_are_over().await;
        until("hints and evaluations to be handled", patience, async || {
            match self.stack.waiting(&["hints", "evaluate"]).await {
                0 => Ok(()),
                waiting => Err(waiting),
            }
        })
        .await;
        let (is_fine, answer) = self.stack.invoke("compensator", &json!({"task": "pass"})).await;
        assert!(is_fine, "{answer}");
        until("every trigger to end and no target to be ready", patience, async || {
            let (is_fine, answer) = self.stack.invoke("compensator", &json!({"task": "sweep"})).await;
            assert!(is_fine, "{answer}");
            let waiting = self.stack.waiting(&["hints", "evaluate", "dispatch"]).await;
            let records = self.stack.records().await;
            let ready = self.ready(declared).await;
            let open: Vec<String> = records
                .triggers
                .values()
                .filter(|trigger| !trigger.has_ended())
                .map(|trigger| format!("{}: {} due {:?}", trigger.target, trigger.status().step(), trigger.due_at))
                .collect();
            if waiting == 0 && open.is_empty() && ready.is_empty() { Ok(records) } else { Err((waiting, open, ready)) }
        })
        .await
    }

    async fn ready(&self, declared: &[TargetId]) -> Vec<TargetId> {
        let explained = targets::explain(&self.stack.ports, declared).await.unwrap();
        let is_ready = |explained: &Explained| explained.evaluation.verdict.as_str() == "READY";
        explained.into_iter().filter(is_ready).map(|explained| explained.evaluation.target).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_commits_through_a_stack_that_fails_are_neither_lost_nor_doubled() {
    let scene = scene!("storm");
    let Some(mut writer) = Writer::start() else { return };
    let commits = from_env("LAKEBELL_STORM_COMMITS", COMMITS);
    let seed = from_env("LAKEBELL_STORM_SEED", Timestamp::now().as_millisecond().unsigned_abs());
    println!("storm: {commits} commits, LAKEBELL_STORM_SEED={seed}");
    let per_table = commits / TABLES as u64;
    let folder = writer.history(TABLES, per_table).await;

    let stack = Stack::deploy(&scene, seed, 20).await;
    let weather = Weather::over(&stack, &scene, seed + 1).await;
    let bucket = scene.quiet_bucket().await;
    let mut tables = Vec::new();
    for at in 0..TABLES {
        let prefix = format!("h.db/t{at}");
        let schema = std::fs::read(folder.join(&prefix).join("schema/schema-0")).unwrap();
        let put = scene.s3.put_object().bucket(&bucket).key(format!("{prefix}/schema/schema-0")).body(schema.into());
        put.send().await.unwrap();
        let spec = json!({"key": format!("paimon://h/t{at}"), "location": format!("s3://{bucket}/{prefix}")});
        let spec: AssetSpec = serde_json::from_value(spec).unwrap();
        let project = ProjectCode(scene.project);
        let id = assets::register(&stack.ports, project, &spec, &trace()).await.unwrap().id;
        tables.push(Written::read(id, prefix.clone(), &folder.join(&prefix), per_table));
    }
    std::fs::remove_dir_all(&folder).unwrap();
    let member = |at: usize| json!({"asset": format!("paimon://h/t{at}")});
    let mut declared = Vec::new();
    for (name, groups) in [
        ("both", json!([{"name": "g", "dependencies": [member(0), member(1)]}])),
        ("alone", json!([{"name": "g", "dependencies": [member(0)]}])),
        ("any", json!([{"name": "g", "advance": "any", "dependencies": [member(1), member(2), member(3)]}])),
        (
            "either",
            json!([{"name": "cd", "dependencies": [member(2), member(3)]}, {"name": "d", "dependencies": [member(3)]}]),
        ),
    ] {
        declared.push(weather.declare(&stack, &scene, name, &groups).await);
    }
    let storm = Storm { scene: &scene, stack, weather, bucket, random: SeededRandom::new(seed + 2) };
    storm.notify_raw_queue().await;

    let begun = Instant::now();
    storm.stack.aws.breaks(PER_MILLE);
    storm.weather.proxy.breaks(PER_MILLE);
    let (end, over) = tokio::sync::oneshot::channel();
    let committing = async {
        let mut writing = JoinSet::new();
        for table in &tables {
            let (s3, bucket, prefix) = (scene.s3.clone(), storm.bucket.clone(), table.prefix.clone());
            let files = table.files.clone();
            writing.spawn(async move {
                for (at, bytes) in (1..).zip(files) {
                    let key = format!("{prefix}/snapshot/snapshot-{at}");
                    s3.put_object().bucket(&bucket).key(key).body(bytes.into()).send().await.unwrap();
                    tokio::time::sleep(Duration::from_millis(30)).await;
                }
            });
        }
        writing.join_all().await;
    };
    let told = async {
        let ((), told) = tokio::join!(committing, storm.hand_on(per_table * TABLES as u64));
        let _ = end.send(());
        told
    };
    let ((dropped, doubled), killed) = tokio::join!(told, storm.rage(over));
    let raged = begun.elapsed();
    let records = storm.comes_to_rest(&declared, Duration::from_mins(3)).await;

    let mut since = BTreeMap::new();
    for (target, definition) in &records.definitions {
        since.extend(definition.target.assets().into_keys().map(|asset| ((target.clone(), asset), None)));
    }
    let committed = tables.iter().map(|table| (table.id, table.committed.clone())).collect();
    let mut wrong = [
        compare(&records, storm.weather.starts()),
        records.never_invented(&committed),
        records.in_order(),
        records.ranges_tile(&since),
        records.nothing_left(&storm.ready(&declared).await),
    ]
    .concat();
    for table in &tables {
        let state = &records.assets[&table.id].state;
        let counted = state.data.as_ref().map_or(0, |data| data.count);
        if (state.position().ordinal.0, counted) != (per_table, per_table) || state.gap.is_some() {
            wrong.push(format!("{}: at {}, {counted} commits counted", table.prefix, state.position()));
        }
    }
    println!(
        "storm: {} commits, {dropped} notifications dropped, {doubled} doubled, {killed} functions killed, {} requests to \
         AWS and {} to the scheduler broken; {} triggers, {} instances, {} wrong; raged {:.0} s, at rest after {:.0} s",
        per_table * TABLES as u64,
        storm.stack.aws.broken(),
        storm.weather.proxy.broken(),
        records.triggers.len(),
        storm.weather.starts().len(),
        wrong.len(),
        raged.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    println!("storm: {}; {}", storm.stack.aws.report(), storm.weather.proxy.report());
    assert!(wrong.is_empty(), "{wrong:#?}");
    storm.stack.remove().await;
}
