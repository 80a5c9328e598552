//! The same thing told many times: one start (CASES 1, 2 and 16).

use std::time::Duration;

use lakebell_scheduler_standin::Profile;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Scene, Scheduler, Shape, Table, sqs_batch, until};

const TIMES: usize = 50;

/// A table of which nobody is notified, and a target that depends on it alone.
async fn quiet_target(scene: &Scene, scheduler: &Scheduler, bucket: &str, name: &str) -> (Table, i64) {
    let mut table = scene.table(name);
    bucket.clone_into(&mut table.bucket);
    scene.register(&[&table]).await;
    let workflow = scheduler.define(scene.project, name);
    let target = Scene::target(&scheduler.connection, name, workflow, &json!("all"), &[&table]);
    scene.declare(&target).await;
    (table, workflow)
}

async fn fifty_deliveries_start_once(shape: Shape, scene: &Scene) {
    let _quiet = Scene::without_passes().await;
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let bucket = scene.quiet_bucket().await;
    let (mut table, workflow) = quiet_target(scene, &scheduler, &bucket, "t").await;
    table.append().await;
    let message = shape.of(&table, 1).await;
    scene.send_all("hints", vec![message; TIMES]).await;
    let trigger = scene.ended("t").await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger}");
    scene.hints_are_handled().await;
    assert_eq!(scene.triggers("t").await.len(), 1);
    assert_eq!((scheduler.start_calls(), scheduler.instances(workflow)), (1, 1));
    // Duplicates are counted and not stored.
    let events = scene.events(&table).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((&events[0]["outcome"], &events[0]["source"]), (&json!("advanced"), &json!("NOTIFY")));
}

#[tokio::test]
async fn fifty_notifications_of_s3_start_once() {
    let scene = scene!("fifty-s3");
    fifty_deliveries_start_once(Shape::S3, &scene).await;
}

#[tokio::test]
async fn fifty_notifications_through_sns_start_once() {
    let scene = scene!("fifty-sns");
    fifty_deliveries_start_once(Shape::Sns, &scene).await;
}

#[tokio::test]
async fn fifty_events_of_eventbridge_start_once() {
    let scene = scene!("fifty-eb");
    fifty_deliveries_start_once(Shape::EventBridge, &scene).await;
}

#[tokio::test]
async fn a_dispatch_message_that_comes_five_times_starts_once() {
    let scene = scene!("five");
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let mut table = scene.table("t");
    scene.register(&[&table]).await;
    let workflow = scheduler.define(scene.project, "t");
    scene.declare(&Scene::target(&scheduler.connection, "t", workflow, &json!("all"), &[&table])).await;
    table.append().await;
    let trigger =
        until("a trigger", Duration::from_secs(30), async || scene.triggers("t").await.pop().ok_or("none")).await;
    let message = json!({
        "lakebell": "dispatch", "target": trigger["target"], "trigger": trigger["key"], "attempt": 0,
        "trace": trigger["trace"],
    });
    scene.send_all("dispatch", vec![message.to_string(); 5]).await;
    let trigger = scene.ended("t").await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS");

    // Two of the same once more after it has ended, straight into the function.
    let batch = sqs_batch(&[message.to_string()]);
    let (one, other) = tokio::join!(scene.invoke("dispatcher", &batch), scene.invoke("dispatcher", &batch));
    assert_eq!((one.ok(), other.ok()), (json!({"batchItemFailures": []}), json!({"batchItemFailures": []})));
    assert_eq!((scheduler.start_calls(), scheduler.instances(workflow)), (1, 1));
    assert_eq!(scene.triggers("t").await.len(), 1);
    assert_eq!(scene.triggers("t").await[0]["log"], trigger["log"], "nothing happened to it");
}

#[tokio::test]
async fn a_disordered_pair_ends_at_the_newest_snapshot_with_one_trigger() {
    let scene = scene!("disorder");
    let _quiet = Scene::without_passes().await;
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let bucket = scene.quiet_bucket().await;
    let (mut table, _) = quiet_target(&scene, &scheduler, &bucket, "t").await;
    for _ in 0..9 {
        table.append().await;
    }
    // CASE 45: 9, then 8, then 9, one after the other.
    for snapshot in [9, 8, 9] {
        let batch = sqs_batch(&[Shape::S3.of(&table, snapshot).await]);
        assert_eq!(scene.invoke("commitWatcher", &batch).await.ok(), json!({"batchItemFailures": []}));
    }
    let state = scene.reaches(&table, 9).await;
    assert_eq!(state["hold"], Value::Null, "{state}");
    let trigger = scene.ended("t").await;
    scene.hints_are_handled().await;
    assert_eq!(scene.triggers("t").await.len(), 1);
    assert_eq!(trigger["parameters"]["lakebell_t_to"], "9");
    assert_eq!(scheduler.start_calls(), 1);
    let kinds: Vec<Value> = scene.events(&table).await.iter().map(|event| event["outcome"].clone()).collect();
    assert_eq!(kinds, vec![json!("advanced"); 9], "each commit is one event");
}
