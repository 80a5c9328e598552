//! Both notification routes: the deployment's own, and the other one by its messages.

use serde_json::json;

use crate::scene;
use crate::support::{Scene, Shape, Table};

/// Names that the two shapes spell differently.
const NAMES: [&str; 5] = ["plain", "a b", "a+b", "größe=50%", "a&b"];

async fn registered(scene: &Scene, bucket: &str) -> Vec<Table> {
    let mut tables = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        let mut table = scene.table(&format!("t{at}"));
        bucket.clone_into(&mut table.bucket);
        table.prefix = format!("e2e/{}.db/{name}", scene.name);
        scene.register(&[&table]).await;
        tables.push(table);
    }
    tables
}

#[tokio::test]
async fn the_bucket_notifies_of_every_commit_whatever_its_key() {
    let scene = scene!("own-route");
    let _quiet = Scene::without_passes().await;
    let bucket = scene.local.bucket.clone();
    for mut table in registered(&scene, &bucket).await {
        table.append().await;
        scene.reaches(&table, 1).await;
        let events = scene.events(&table).await;
        assert_eq!((events.len(), &events[0]["source"]), (1, &json!("NOTIFY")), "{events:?}");
    }
}

#[tokio::test]
async fn the_messages_of_each_route_find_the_table() {
    let scene = scene!("each-route");
    let _quiet = Scene::without_passes().await;
    let bucket = scene.quiet_bucket().await;
    let mut tables = registered(&scene, &bucket).await;
    for (round, shape) in Shape::ALL.into_iter().enumerate() {
        for table in &mut tables {
            let snapshot = table.append().await;
            assert_eq!(snapshot, round as u64 + 1);
            scene.send("hints", &shape.of(table, snapshot).await).await;
        }
        for table in &tables {
            scene.reaches(table, table.newest).await;
        }
    }
    for table in &tables {
        let events = scene.events(table).await;
        assert!(events.iter().all(|event| event["source"] == "NOTIFY"), "{events:?}");
        assert_eq!(events.len(), Shape::ALL.len());
    }
}

#[tokio::test]
async fn what_is_no_commit_is_no_hint() {
    let scene = scene!("no-commit");
    let mut table = scene.table("t");
    scene.register(&[&table]).await;
    let prefix = table.prefix.clone();
    // CASE 74: temporary objects of a commit; hints of Paimon itself; data.
    for key in ["snapshot/.snapshot-1.0f1e.tmp", "snapshot/LATEST", "snapshot/EARLIEST", "bucket-0/data-1.orc"] {
        table.put(&format!("{prefix}/{key}"), b"1".to_vec()).await;
        scene.send("hints", &Shape::S3.message(&table.bucket, &format!("{prefix}/{key}"), "e")).await;
    }
    scene.hints_are_handled().await;
    assert_eq!(scene.events(&table).await.len(), 0);
    table.append().await;
    scene.reaches(&table, 1).await;
    assert_eq!(scene.events(&table).await.len(), 1);
}
