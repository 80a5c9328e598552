//! Notifications that never came (CASES 42, 54 and 56), and claims of writers that storage does not bear out.

use lakebell_scheduler_standin::Profile;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Scene, Scheduler, Table, in_path};

/// Two tables of which nobody is notified, and a target that needs both.
async fn quiet_pair(scene: &Scene, scheduler: &Scheduler) -> (Table, Table) {
    let bucket = scene.quiet_bucket().await;
    let (mut a, mut b) = (scene.table("a"), scene.table("b"));
    for table in [&mut a, &mut b] {
        bucket.clone_into(&mut table.bucket);
    }
    scene.register(&[&a, &b]).await;
    let workflow = scheduler.define(scene.project, "both");
    scene.declare(&Scene::target(&scheduler.connection, "both", workflow, &json!("all"), &[&a, &b])).await;
    (a, b)
}

#[tokio::test]
async fn observe_finds_what_nobody_told() {
    let scene = scene!("observe");
    let _quiet = Scene::without_passes().await;
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let (mut a, mut b) = quiet_pair(&scene, &scheduler).await;
    for _ in 0..3 {
        a.append().await;
    }
    b.append().await;
    for table in [&a, &b] {
        let looked = scene.post(&format!("/assets/{}/observe", in_path(&table.asset)), &Value::Null).await.ok();
        let outcomes = looked["outcomes"].as_array().unwrap();
        assert_eq!(outcomes.len() as u64, table.newest, "{looked}");
        assert!(outcomes.iter().all(|found| found["outcome"] == "advanced"), "{looked}");
        assert_eq!(looked["state"]["table"]["ordinal"], json!(table.newest));
    }
    let trigger = scene.ended("both").await;
    assert_eq!((&trigger["triggerStatus"], &trigger["parameters"]["lakebell_a_to"]), (&json!("SUCCESS"), &json!("3")));
    assert_eq!(scheduler.instances_of(&trigger).len(), 1);
    let events = scene.events(&a).await;
    assert!(events.iter().all(|event| event["source"] == "POLL"), "{events:?}");
}

#[tokio::test]
async fn one_pass_of_the_compensator_makes_good_every_lost_notification() {
    let scene = scene!("pass");
    let passes = Scene::with_passes().await;
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let (mut a, mut b) = quiet_pair(&scene, &scheduler).await;
    for _ in 0..5 {
        a.append().await;
        b.append().await;
    }
    scene.pass(&passes).await;
    let trigger = scene.ended("both").await;
    let parameters = &trigger["parameters"];
    assert_eq!((&parameters["lakebell_a_to"], &parameters["lakebell_b_to"]), (&json!("5"), &json!("5")), "{trigger}");
    assert_eq!(scheduler.instances_of(&trigger).len(), 1);

    // A second pass finds nothing.
    scene.pass(&passes).await;
    scene.hints_are_handled().await;
    assert_eq!((scene.triggers("both").await.len(), scene.events(&a).await.len()), (1, 5));
}

#[tokio::test]
async fn a_pushed_event_is_a_hint_that_storage_confirms_or_not() {
    let scene = scene!("push");
    let _quiet = Scene::without_passes().await;
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let (mut a, mut b) = quiet_pair(&scene, &scheduler).await;
    let event = |id: &str, data: Value| {
        json!({
            "specversion": "1.0", "id": id, "source": "flink://e2e", "type": "io.lakebell.snapshot.committed.v1",
            "data": data,
        })
    };
    // CASE 79: said to be there, and not there.
    let early = event("early", json!({"asset": a.asset, "snapshotId": 1}));
    let told = scene.push(&early).await;
    assert_eq!((&told["status"], &told["outcome"]), (&json!("stored"), &json!("ignored")), "{told}");
    assert_eq!(told["reason"], "snapshot 1 is not visible in storage");
    assert_eq!(scene.why("both").await["verdict"], "WAITING");

    a.append().await;
    b.append().await;
    let batch = json!([
        event("1", json!({"asset": a.asset, "snapshotId": 1})),
        event("2", json!({"location": b.location(), "snapshotId": "1"})),
        event("3", json!({"asset": "paimon://nobody/knows"})),
        event("4", json!({})),
        event("5", json!({"asset": a.asset, "snapshotId": 1})),
    ]);
    let told = scene.push(&batch).await;
    let of = |at: usize| (told["items"][at]["status"].clone(), told["items"][at]["outcome"].clone());
    assert_eq!(of(0), (json!("stored"), json!("advanced")), "{told}");
    assert_eq!(of(1), (json!("stored"), json!("advanced")), "{told}");
    assert_eq!(of(2), (json!("stored"), json!("unknown")), "{told}");
    assert_eq!((of(3).0, &told["items"][3]["field"]), (json!("refused"), &json!("[3].data.asset")), "{told}");
    assert_eq!(of(4), (json!("stored"), json!("duplicate")), "{told}");
    let trigger = scene.ended("both").await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS");
    assert_eq!(scheduler.start_calls(), 1);
}
