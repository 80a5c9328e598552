//! What operators ask: whether what was started is what was recorded, how it ended, whether the deployment is well, and
//! what nobody tries any more.

use lakebell_scheduler_standin::{Delay, Profile};
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Cli, PATIENCE, Scene, in_path, until};

#[tokio::test]
async fn an_audit_compares_with_the_scheduler_and_the_end_of_a_workflow_is_recorded() {
    let scene = scene!("care");
    let cli = Cli::new(&scene);
    let scheduler = scene.scheduler(Profile::V3_3).await;
    scheduler.change(|world| world.settings.finish = Delay::MANUAL);
    let mut table = scene.table("t");
    scene.register(&[&table]).await;
    let workflow = scheduler.define(scene.project, "t");
    scene.declare(&Scene::target(&scheduler.connection, "t", workflow, &json!("all"), &[&table])).await;
    table.append().await;
    let trigger = scene.ended("t").await;
    assert_eq!((&trigger["triggerStatus"], &trigger["followed"]["state"]), (&json!("SUCCESS"), &json!("UNSEEN")));
    let key = trigger["key"].as_str().unwrap();

    let clean = cli.run(&["audit"]).await.succeeded();
    assert!(clean.out.contains("clean: 1 triggers"), "{}", clean.out);
    // A second master took the same command.
    let first = scheduler.instances_of(&trigger).remove(0);
    let second = first.id + 1_000;
    scheduler.change(|world| {
        world.instances.insert(second, lakebell_scheduler_standin::Instance { id: second, ..first.clone() })
    });
    let run = cli.run(&["audit", "--json"]).await;
    assert_eq!(run.status, 1, "{}", run.err);
    let found = run.json()["result"]["findings"].clone();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found:#}");
    assert_eq!(
        (&found[0]["kind"], &found[0]["trigger"], &found[0]["instance"]),
        (&json!("extra"), &json!(key), &json!(second))
    );

    scheduler.change(|world| {
        let known = world.instances.get_mut(&first.id).unwrap();
        known.state = "FAILURE".to_owned();
        known.end_time = Some(known.start_time);
    });
    // The first question is due a minute after the start; nobody waits for it here.
    let path = format!("/asset-trigger-history/{key}");
    let ended = until("the end of the workflow to be recorded", PATIENCE, async || {
        scene.asked_about_now(&trigger).await;
        scene.sweep().await;
        let known = scene.get(&path).await.ok();
        if known["followed"]["state"] == "FAILURE" { Ok(known) } else { Err(known) }
    })
    .await;
    assert_eq!((&ended["triggerStatus"], &ended["extraInstances"]), (&json!("SUCCESS"), &json!([second])));
}

#[tokio::test]
async fn doctor_tells_a_connection_that_works_from_one_that_does_not() {
    let scene = scene!("doctor");
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let check = async |status: &str| {
        until(&format!("the connection to be {status}"), PATIENCE, async || {
            let examined = scene.call(reqwest::Method::GET, "/doctor", None).await.ok();
            let checks = examined["checks"].as_array().unwrap();
            let own = checks.iter().find(|check| check["subject"] == json!(scheduler.connection)).cloned();
            match own {
                Some(own) if own["status"] == status => Ok(own),
                other => Err(other),
            }
        })
        .await
    };
    assert_ne!(check("ok").await["detail"], Value::Null);
}

#[tokio::test]
async fn what_nobody_tries_any_more_is_put_back_and_done() {
    let scene = scene!("dead");
    let cli = Cli::new(&scene);
    let bucket = scene.quiet_bucket().await;
    let mut table = scene.table("t");
    bucket.clone_into(&mut table.bucket);
    scene.register(&[&table]).await;
    let id = scene.get(&format!("/assets/{}/state", in_path(&table.asset))).await.ok()["id"].clone();
    table.append().await;
    // Given up after twenty receives, as it were.
    let message = json!({"lakebell": "observe", "asset": id, "trace": "dead-letter"});
    scene.send("evaluateDeadLetters", &message.to_string()).await;
    let listed = cli.run(&["dead-letters", "list", "--json"]).await.succeeded().json();
    assert_eq!(listed["items"][1]["queue"], "evaluate");
    assert!(listed["items"][1]["messages"].as_u64() >= Some(1), "{listed:#}");
    let drained = cli.run(&["dead-letters", "drain", "evaluate", "--json"]).await.succeeded().json();
    assert!(drained["items"][0]["putBack"].as_u64() >= Some(1), "{drained:#}");
    scene.reaches(&table, 1).await;
}
