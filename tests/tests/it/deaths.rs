//! Functions that die at the worst moment, and many at once: the deployed packages, in a stack of each test's own.

use std::time::Duration;

use jiff::Timestamp;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId, TraceId};
use lakebell_domain::trigger::Trigger;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::rules::Records;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::scene;
use crate::storm::{Weather, compare};
use crate::support::{Scene, Shape, Stack, Table, sqs_batch, until};

/// One table, one target that it starts, and a stack between them.
struct Field<'a> {
    scene: &'a Scene,
    stack: Stack<'a>,
    weather: Weather,
    table: Table,
    asset: AssetId,
    target: TargetId,
}

impl<'a> Field<'a> {
    async fn set(scene: &'a Scene, timeout: u32) -> Field<'a> {
        let seed = Timestamp::now().as_millisecond().unsigned_abs();
        println!("seed {seed}");
        let stack = Stack::deploy(scene, seed, timeout).await;
        let weather = Weather::over(&stack, scene, seed + 1).await;
        let mut table = scene.table("t");
        table.bucket = scene.quiet_bucket().await;
        let spec: AssetSpec =
            serde_json::from_value(json!({"key": table.asset, "location": table.location()})).unwrap();
        let trace = TraceId::new("deaths").unwrap();
        let registered = assets::register(&stack.ports, ProjectCode(scene.project), &spec, &trace).await.unwrap();
        let groups = json!([{"name": "g", "dependencies": [{"asset": table.asset}]}]);
        let target = weather.declare(&stack, scene, "t", &groups).await;
        Self { scene, stack, weather, table, asset: registered.id, target }
    }

    async fn hint(&self, snapshot: u64) -> String {
        Shape::S3.of(&self.table, snapshot).await
    }

    async fn tell(&self, snapshot: u64) {
        let body = self.hint(snapshot).await;
        self.scene.sqs.send_message().queue_url(&self.stack.queues["hints"]).message_body(body).send().await.unwrap();
    }

    /// Waits until the one trigger has started, with the clock running fast, and checks it and its instance.
    async fn has_started_once(&self, patience: Duration) -> Records {
        let records = until("the trigger to have started", patience, async || {
            self.stack.invoke("compensator", &json!({"task": "sweep"})).await;
            let records = self.stack.records().await;
            let mut triggers = records.triggers.values();
            match (triggers.next(), triggers.next()) {
                (Some(trigger), None) if trigger.has_ended() => Ok(records),
                _ => Err(records.triggers.into_values().map(|trigger| trigger.status().clone()).collect::<Vec<_>>()),
            }
        })
        .await;
        assert_eq!(compare(&records, self.weather.starts()), Vec::<String>::new());
        assert_eq!(self.weather.starts().len(), 1);
        assert_eq!(records.assets[&self.asset].state.position().ordinal.0, self.table.newest);
        records
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_dies_between_the_advance_and_the_claim_comes_again_and_claims() {
    let scene = scene!("abort");
    let mut field = Field::set(&scene, 20).await;
    let snapshot = field.table.append().await;
    let advanced = field.stack.aws.hold("TransactWriteItems");
    field.tell(snapshot).await;
    advanced.await.unwrap();
    assert_eq!(field.stack.records().await.assets[&field.asset].state.position().ordinal.0, 1, "the advance landed");
    assert!(field.stack.kill_one("commitWatcher", 0));
    field.has_started_once(Duration::from_mins(1)).await;
    field.stack.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_times_out_after_the_claim_has_its_trigger_sent() {
    let scene = scene!("timeout");
    // Its client gives an answer up after 5 s, and sends once more: then its own time is over, and it is ended.
    let mut field = Field::set(&scene, 6).await;
    let snapshot = field.table.append().await;
    let [first, second] = [field.stack.aws.hold("SQS.SendMessage"), field.stack.aws.hold("SQS.SendMessage")];
    field.tell(snapshot).await;
    first.await.unwrap();
    // On a slow machine its own time is over before it sends again.
    // Whether its end comes before or after the second one took effect is a matter of milliseconds.
    let _ = tokio::time::timeout(Duration::from_secs(10), second).await;
    field.has_started_once(Duration::from_mins(1)).await;
    field.stack.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_dies_after_the_start_took_effect_starts_nothing_twice() {
    let scene = scene!("dispatcher");
    let mut field = Field::set(&scene, 20).await;
    let snapshot = field.table.append().await;
    let started = field.weather.proxy.hold("scheduler POST start-");
    field.tell(snapshot).await;
    started.await.unwrap();
    assert_eq!(field.weather.starts().len(), 1, "the start took effect");
    field.stack.leases_are_over().await;
    let records = field.has_started_once(Duration::from_mins(1)).await;
    let trigger = records.triggers.values().next().unwrap();
    assert!(trigger.instance.is_some(), "found and adopted: {trigger:?}");
    field.stack.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_claimers_of_one_target_are_one_trigger() {
    let scene = scene!("claimers");
    let mut field = Field::set(&scene, 20).await;
    let snapshot = field.table.append().await;
    // The asset advances before anybody claims: it has no notification and no target sees it.
    let hint = lakebell_engine::observe::Hint {
        asset: field.asset,
        look: lakebell_engine::observe::Look::Whole,
        source: lakebell_domain::event::Source::Poll,
        trace: TraceId::new("deaths").unwrap(),
    };
    lakebell_engine::observe::observe(&field.stack.ports, &hint).await.unwrap();
    assert_eq!((snapshot, field.stack.records().await.triggers.len()), (1, 0));
    field.stack.aws.meet("TransactWriteItems", 64);
    let message = Message::Evaluate { targets: vec![field.target.clone()], trace: TraceId::new("claim").unwrap() };
    let batch = sqs_batch(&[serde_json::to_string(&message).unwrap()]);
    let claimers = call_at_once(&field, 64, |_| batch.clone()).await;
    let met = field.stack.aws.met("TransactWriteItems");
    field.stack.aws.forget_plans();
    println!("{claimers} of 64 invocations answered, {met} claims were on their way at once");
    assert!(met >= 16, "only {met} claims met");
    field.has_started_once(Duration::from_mins(1)).await;
    field.stack.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_watchers_of_one_asset_advance_it_step_by_step() {
    let scene = scene!("watchers");
    let mut field = Field::set(&scene, 20).await;
    let mut hints = Vec::new();
    for _ in 0..16 {
        let snapshot = field.table.append().await;
        hints.push(field.hint(snapshot).await);
    }
    field.stack.aws.meet("DynamoDB.Query", 32);
    call_at_once(&field, 32, |at| sqs_batch(std::slice::from_ref(&hints[at % hints.len()]))).await;
    field.stack.aws.forget_plans();
    // What lost too many races comes again by its queue; here the clock makes it good.
    let (is_fine, answer) = field.stack.invoke("compensator", &json!({"task": "pass"})).await;
    assert!(is_fine, "{answer}");
    let records =
        until("the asset to be at its newest commit and its triggers to end", Duration::from_mins(1), async || {
            field.stack.invoke("compensator", &json!({"task": "sweep"})).await;
            let records = field.stack.records().await;
            let has_ended = !records.triggers.is_empty() && records.triggers.values().all(Trigger::has_ended);
            let waiting = field.stack.waiting(&["hints", "evaluate", "dispatch"]).await;
            let at = records.assets[&field.asset].state.position().ordinal.0;
            if at == 16 && has_ended && waiting == 0 { Ok(records) } else { Err((at, waiting)) }
        })
        .await;
    let state = &records.assets[&field.asset].state;
    assert_eq!((state.data.as_ref().unwrap().count, &state.gap), (16, &None));
    assert_eq!(compare(&records, field.weather.starts()), Vec::<String>::new());
    let since = [((field.target.clone(), field.asset), None)].into();
    assert_eq!([records.in_order(), records.ranges_tile(&since)].concat(), Vec::<String>::new());
    field.stack.remove().await;
}

/// Calls the watcher so many times at once, and says how many calls it answered without an error.
async fn call_at_once(field: &Field<'_>, times: usize, event: impl Fn(usize) -> Value) -> usize {
    let name = &field.stack.functions["commitWatcher"];
    let url = format!("{}/2015-03-31/functions/{name}/invocations", field.scene.local.endpoint);
    let mut calls = JoinSet::new();
    for at in 0..times {
        let call = field.scene.http.post(&url).body(event(at).to_string());
        calls.spawn(async move {
            let answer = call.send().await.unwrap();
            answer.status().is_success() && answer.headers().get("x-amz-function-error").is_none()
        });
    }
    calls.join_all().await.into_iter().filter(|is_fine| *is_fine).count()
}
