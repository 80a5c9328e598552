//! From one trigger of a target to the next.

use lakebell_scheduler_standin::{Delay, Profile};
use serde_json::{Value, json};

use crate::scene;
use crate::support::{PATIENCE, Scene, in_path, until};

#[tokio::test]
async fn what_a_failed_trigger_named_is_taken_by_the_next_one() {
    let scene = scene!("failed");
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let mut table = scene.table("t");
    scene.register(&[&table]).await;
    let (workflow, other) = (4_242, scene.project);
    scene.declare(&Scene::target(&scheduler.connection, "t", workflow, &json!("all"), &[&table])).await;
    table.append().await;
    let failed = scene.ended("t").await;
    assert_eq!(failed["triggerStatus"], "FAILED", "{failed:#}");
    assert_eq!(failed["status"]["code"], "WORKFLOW_MISSING");

    // The target is mended, and starts from where the failed trigger began.
    let found = scheduler.define(other, "t");
    let mut mended = Scene::target(&scheduler.connection, "t", found, &json!("all"), &[&table]);
    mended["workflowDefinitionCode"] = json!(found);
    scene.declare(&mended).await;
    table.append().await;
    let trigger = until("a trigger that has started", PATIENCE, async || {
        let triggers = scene.triggers("t").await;
        match triggers.iter().find(|trigger| trigger["triggerStatus"] == "SUCCESS") {
            Some(trigger) => Ok(trigger.clone()),
            None => Err(triggers),
        }
    })
    .await;
    assert_eq!(trigger["parameters"]["lakebell_t_from"], "", "{trigger:#}");
    assert_eq!(trigger["ranges"][0]["from"], Value::Null);
    assert_eq!(trigger["parameters"]["lakebell_t_to"], "2", "{trigger:#}");
    assert_eq!(scheduler.instances_of(&trigger).len(), 1);
    let history = scene.triggers("t").await;
    let status: Vec<&Value> = history.iter().skip(1).map(|trigger| &trigger["triggerStatus"]).collect();
    assert!(status.iter().all(|status| *status == "SKIPPED"), "{status:?}");
}

#[tokio::test]
async fn alternatives_that_are_ready_together_are_one_start() {
    let scene = scene!("alternatives");
    let _quiet = Scene::without_passes().await;
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let bucket = scene.quiet_bucket().await;
    let (mut a, mut b) = (scene.table("a"), scene.table("b"));
    for table in [&mut a, &mut b] {
        bucket.clone_into(&mut table.bucket);
    }
    scene.register(&[&a, &b]).await;
    let workflow = scheduler.define(scene.project, "either");
    let target = json!({
        "name": "either", "connection": scheduler.connection, "workflowDefinitionCode": workflow,
        "groups": [
            {"name": "both", "dependencies": [{"asset": a.asset}, {"asset": b.asset}]},
            {"name": "b-alone", "dependencies": [{"asset": b.asset}]},
        ],
    });
    scene.declare(&target).await;
    a.append().await;
    b.append().await;
    for table in [&a, &b] {
        scene.post(&format!("/assets/{}/observe", in_path(&table.asset)), &Value::Null).await.ok();
    }
    let trigger = scene.ended("either").await;
    scene.hints_are_handled().await;
    let triggers = scene.triggers("either").await;
    assert_eq!((triggers.len(), scheduler.start_calls()), (1, 1), "{triggers:#?}");
    assert_eq!(scheduler.instances_of(&trigger).len(), 1);
    assert_eq!((&trigger["triggerStatus"], &trigger["groups"]), (&json!("SUCCESS"), &json!(["b-alone", "both"])));
    assert_eq!(scene.why("either").await["verdict"], "WAITING");
}

#[tokio::test]
async fn commits_of_a_burst_coalesce_and_their_ranges_tile() {
    let scene = scene!("burst");
    let scheduler = scene.scheduler(Profile::V3_3).await;
    scheduler.change(|world| world.settings.consume = Delay::AfterMs(20));
    let mut table = scene.table("t");
    scene.register(&[&table]).await;
    let workflow = scheduler.define(scene.project, "t");
    scene.declare(&Scene::target(&scheduler.connection, "t", workflow, &json!("all"), &[&table])).await;
    for _ in 0..20 {
        table.append().await;
    }
    let history = until("the last commit to be taken", PATIENCE, async || {
        let triggers = scene.triggers("t").await;
        let newest = triggers.first().filter(|newest| newest["triggerStatus"] == "SUCCESS");
        if newest.is_some_and(|newest| newest["parameters"]["lakebell_t_to"] == "20") {
            Ok(triggers)
        } else {
            Err(triggers)
        }
    })
    .await;
    let mut reached = String::new();
    for trigger in history.iter().rev().filter(|trigger| trigger["triggerStatus"] == "SUCCESS") {
        assert_eq!(trigger["parameters"]["lakebell_t_from"], json!(reached), "{history:#?}");
        trigger["parameters"]["lakebell_t_to"].as_str().unwrap().clone_into(&mut reached);
        let instances =
            until("its instance to begin", PATIENCE, async || match scheduler.instances_of(trigger).len() {
                0 => Err(trigger),
                count => Ok(count),
            });
        assert_eq!(instances.await, 1);
    }
    println!("20 commits, {} starts", scheduler.start_calls());
}
