//! Messages that are none: acknowledged where they mean nothing, kept where nobody can read them, and never in the way
//! of others (CASES 19 and 48).

use std::time::Duration;

use serde_json::{Value, json};

use crate::scene;
use crate::support::{Scene, Shape, Table, sqs_batch, until};

async fn quiet_tables(scene: &Scene, count: usize) -> Vec<Table> {
    let bucket = scene.quiet_bucket().await;
    let mut tables: Vec<Table> = (0..count).map(|at| scene.table(&format!("t{at}"))).collect();
    for table in &mut tables {
        bucket.clone_into(&mut table.bucket);
        scene.register(&[&*table]).await;
        table.append().await;
    }
    tables
}

fn test_event(marker: &str) -> String {
    json!({
        "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-03-02T05:59:00.000Z", "Bucket": marker,
        "RequestId": "9V0K3R2B7J1H5N8M", "HostId": "sample",
    })
    .to_string()
}

/// Bodies in a dead-letter queue that hold a marker; they stay there.
async fn dead(scene: &Scene, queue: &str, marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..5 {
        let url = &scene.local.queues[queue].url;
        let receive = scene.sqs.receive_message().queue_url(url).max_number_of_messages(10).visibility_timeout(0);
        let messages = receive.send().await.unwrap().messages.unwrap_or_default();
        found.extend(messages.into_iter().filter_map(|message| message.body).filter(|body| body.contains(marker)));
    }
    found
}

#[tokio::test]
async fn test_events_alone_and_mixed_fail_nothing() {
    let scene = scene!("test-event");
    let tables = quiet_tables(&scene, 2).await;
    let none = json!({"batchItemFailures": []});
    let test = test_event(&scene.name);
    assert_eq!(scene.invoke("commitWatcher", &sqs_batch(std::slice::from_ref(&test))).await.ok(), none);
    let through_sns = json!({"Type": "Notification", "TopicArn": "arn:aws:sns:us-east-1:0:lake", "Message": test});
    let mixed = [test.clone(), Shape::S3.of(&tables[0], 1).await, through_sns.to_string()];
    assert_eq!(scene.invoke("commitWatcher", &sqs_batch(&mixed)).await.ok(), none);
    scene.reaches(&tables[0], 1).await;

    // And through the queue.
    let mixed = vec![test.clone(), Shape::EventBridge.of(&tables[1], 1).await, test, through_sns.to_string()];
    scene.send_all("hints", mixed).await;
    scene.reaches(&tables[1], 1).await;
    scene.hints_are_handled().await;
    assert_eq!(dead(&scene, "hintsDeadLetters", &scene.name).await, Vec::<String>::new());
}

#[tokio::test]
async fn one_poisoned_message_is_handed_back_alone_and_ends_among_the_dead_letters() {
    let scene = scene!("poison");
    let tables = quiet_tables(&scene, 9).await;
    let poison = format!("{{ {} is no JSON", scene.name);
    let mut bodies = Vec::new();
    for table in &tables[..4] {
        bodies.push(Shape::S3.of(table, 1).await);
    }
    bodies.insert(2, poison.clone());
    let answer = scene.invoke("commitWatcher", &sqs_batch(&bodies)).await.ok();
    assert_eq!(answer, json!({"batchItemFailures": [{"itemIdentifier": "m2"}]}));

    let mut bodies = vec![poison.clone()];
    for table in &tables[4..] {
        bodies.push(Shape::EventBridge.of(table, 1).await);
    }
    scene.send_all("hints", bodies).await;
    for table in &tables {
        scene.reaches(table, 1).await;
    }
    let patience = Duration::from_secs(90);
    until("the poisoned message among the dead letters", patience, async || {
        let dead = dead(&scene, "hintsDeadLetters", &scene.name).await;
        if dead.contains(&poison) { Ok(()) } else { Err(dead) }
    })
    .await;
}

#[tokio::test]
async fn records_of_any_kind_never_fail_their_batch() {
    let scene = scene!("odd-records");
    let tables = quiet_tables(&scene, 1).await;
    let (bucket, key) = (&tables[0].bucket, tables[0].object(1));
    let removed = json!({"Records": [{"eventVersion": "2.1", "eventName": "ObjectRemoved:Delete",
        "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}]});
    let newer = json!({"Records": [{"eventVersion": "3.0", "eventName": "ObjectCreated:Put",
        "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}]});
    let odd = [
        json!({}),
        json!({"Records": []}),
        json!({"Records": null}),
        json!([]),
        json!({"hello": "world"}),
        removed,
        newer,
        json!({"lakebell": "later", "x": 1}),
        json!({"source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "detail": {}}),
        json!({"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": {}, "object": {}}}]}),
    ];
    let mut bodies: Vec<String> = odd.iter().map(Value::to_string).collect();
    bodies.push(Shape::S3.message(bucket, &key, "not-the-etag"));
    let unknown = Shape::S3.message("nobodys-bucket", &format!("{}/snapshot/snapshot-1", scene.name), "e");
    bodies.push(unknown);
    let answer = scene.invoke("commitWatcher", &sqs_batch(&bodies)).await.ok();
    assert_eq!(answer, json!({"batchItemFailures": []}));
    scene.reaches(&tables[0], 1).await;

    // The unknown table is remembered, so that somebody can see it.
    let seen = scene.get("/unregistered-assets?limit=200").await.ok();
    let location = format!("s3://nobodys-bucket/{}", scene.name);
    let found = seen["items"].as_array().unwrap().iter().any(|item| item["location"] == json!(location));
    assert!(found, "{seen}");
}
