//! Tasks that wait inside a running workflow, as `lakebell sensor task` prints them.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::scene;
use crate::support::{Cli, PATIENCE, Scene, Table, WaitingTask, until};

const TASK: i64 = 456;

/// A target `dwd` on a table, which a task waits for.
async fn waited_for(scene: &Scene, more: Value) -> Table {
    let table = scene.table("t");
    scene.register(&[&table]).await;
    let connection = scene.connection().await;
    let mut target = Scene::target(&connection, "dwd", scene.project, &json!("all"), &[&table]);
    target["taskDefinitionCode"] = json!(TASK);
    for (key, value) in more.as_object().unwrap() {
        target[key] = value.clone();
    }
    scene.declare(&target).await;
    table
}

/// The task as the command line prints it for a version.
async fn printed(scene: &Scene, arguments: &[&str]) -> Value {
    let cli = Cli::new(scene);
    let run = cli.run(&[&["sensor", "task", "dwd", "--json"], arguments].concat()).await.succeeded();
    run.json()["task"].clone()
}

fn in_instance(scene: &Scene, task: &Value, instance: &str) -> WaitingTask {
    let token = scene.local.api_token.as_str();
    WaitingTask::new(task, &[("system.workflow.instance.id", instance), ("lakebell_api_token", token)])
}

/// Lets the task poll until it goes on; between polls stands less than DolphinScheduler's minute.
async fn goes_on(task: &WaitingTask) -> Value {
    let body = until("the task to go on", PATIENCE, async || {
        let ended = task.runs().await;
        if ended.succeeded { Ok(ended.body) } else { Err(ended) }
    })
    .await;
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn a_printed_task_waits_and_goes_on_with_the_versions_in_every_version_line() {
    let scene = scene!("sensor-lines");
    let mut table = waited_for(&scene, json!({})).await;
    let token = scene.local.api_token.clone();
    for (at, version) in ["3.1", "3.2", "3.3", "3.4"].into_iter().enumerate() {
        let task = printed(&scene, &["--scheduler-version", version]).await;
        assert!(!task.to_string().contains(&token), "no token in the task");
        // 3.1 tells a task no instance; its workflow was started with a trigger key.
        let instance = (31 + at).to_string();
        let of_version = match version {
            "3.1" => ("lakebell_trigger_key", "00aa"),
            _ => ("system.workflow.instance.id", instance.as_str()),
        };
        let task = WaitingTask::new(&task, &[of_version, ("lakebell_api_token", &token)]);
        let waits = task.runs().await;
        assert!(!waits.succeeded && waits.body.contains("\"reason\""), "{version}: {waits:?}");
        table.append().await;
        let told = goes_on(&task).await;
        assert_eq!(told["parameters"]["lakebell_t_to"], json!((at + 1).to_string()), "{version}: {told}");
        assert_eq!(told["recorded"], false);
    }
    let triggers = scene.triggers("dwd").await;
    assert_eq!(triggers.len(), 4);
    assert!(triggers.iter().all(|trigger| trigger["triggerStatus"] == "SUCCESS" && trigger["sensor"]["task"] == TASK));
    assert_eq!(triggers[0]["instance"], 34);
}

#[tokio::test]
async fn an_answer_that_is_lost_is_given_again() {
    let scene = scene!("sensor-lost");
    let mut table = waited_for(&scene, json!({})).await;
    let printed = printed(&scene, &["--scheduler-version", "3.3"]).await;
    table.append().await;
    scene.reaches(&table, 1).await;
    let task = in_instance(&scene, &printed, "31");
    task.runs_and_loses_the_answer().await;
    table.append().await;
    scene.reaches(&table, 2).await;
    let told = goes_on(&task).await;
    assert_eq!((&told["recorded"], &told["parameters"]["lakebell_t_to"]), (&json!(true), &json!("1")), "{told}");
    assert_eq!(goes_on(&task).await, told, "and again");
    // What came meanwhile is another instance's.
    let other = goes_on(&in_instance(&scene, &printed, "32")).await;
    assert_eq!(
        (&other["parameters"]["lakebell_t_from"], &other["parameters"]["lakebell_t_to"]),
        (&json!("1"), &json!("2"))
    );
    assert_eq!(scene.triggers("dwd").await.len(), 2);
}

#[tokio::test]
async fn of_64_tasks_that_wait_for_one_commit_one_gets_it() {
    let scene = scene!("sensor-64");
    let mut table = waited_for(&scene, json!({})).await;
    let printed = printed(&scene, &["--scheduler-version", "3.3"]).await;
    table.append().await;
    scene.reaches(&table, 1).await;
    let mut polls = JoinSet::new();
    for instance in 1..=64 {
        let task = in_instance(&scene, &printed, &instance.to_string());
        polls.spawn(async move { task.runs().await });
    }
    let ended = polls.join_all().await;
    let told: Vec<Value> = ended.iter().map(|ended| serde_json::from_str(&ended.body).unwrap()).collect();
    // One that lost too many races may be told so, and asks again; nobody else gets the combination.
    assert_eq!(ended.iter().filter(|ended| ended.succeeded).count(), 1, "{told:#?}");
    let waits = told.iter().filter(|told| told["sensor"] == "WAITING").count();
    let refused = told.iter().filter(|told| told["status"] == 503).count();
    assert_eq!(waits + refused, 63, "{told:#?}");
    assert_eq!(scene.triggers("dwd").await.len(), 1);
}

#[tokio::test]
async fn a_poll_that_waits_sees_a_commit_and_stays_below_the_gateway() {
    let scene = scene!("sensor-wait");
    let mut table = waited_for(&scene, json!({})).await;
    let task = printed(&scene, &["--scheduler-version", "3.2", "--wait-seconds", "20"]).await;
    let task = in_instance(&scene, &task, "31");
    let poll = tokio::spawn(async move { task.runs().await });
    table.append().await;
    let ended = poll.await.unwrap();
    assert!(ended.succeeded, "{ended:?}");
}
