//! The loop of the product with the real writer: pypaimon commits, and a workflow starts.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Cli, PATIENCE, Scene, Table, Writer, until};

const WORKFLOW: i64 = 41;

/// A call of the deployed stand-in's own routes.
async fn standin(scene: &Scene, route: &str, body: Option<Value>) -> Value {
    let url = format!("{}/_standin/{route}", scene.local.scheduler_url);
    let request = match &body {
        Some(body) => scene.http.post(url).json(body),
        None => scene.http.get(url),
    };
    let response = request.header("token", &scene.local.scheduler_token).send().await.unwrap();
    response.error_for_status().unwrap().json().await.unwrap()
}

/// The one instance of the stand-in that carries a trigger's key, once a master has begun it.
async fn instance(scene: &Scene, trigger: &Value) -> Value {
    let found = until("the instance of the trigger", PATIENCE, async || {
        let state = standin(scene, "state", None).await;
        let all = state["instances"].as_object().unwrap().values();
        let own = all.filter(|instance| instance["params"]["lakebell_trigger_key"] == trigger["key"]);
        let own: Vec<Value> = own.cloned().collect();
        if own.is_empty() { Err("none") } else { Ok(own) }
    })
    .await;
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

fn millis(at: &Value) -> i64 {
    at.as_str().unwrap().parse::<Timestamp>().unwrap().as_millisecond()
}

/// When a trigger took an arrow.
fn passed(trigger: &Value, arrow: &str) -> i64 {
    let log = trigger["log"].as_array().unwrap();
    millis(&log.iter().find(|passage| passage["arrow"] == arrow).unwrap()["at"])
}

#[tokio::test]
async fn real_commits_of_both_tables_start_the_workflow_once_with_what_it_may_read() {
    let scene = scene!("loop");
    let Some(mut writer) = Writer::start() else { return };
    if !scene.local.scheduler_is_standin {
        println!("skipped: the scheduler is not the stand-in");
        return;
    }
    let connection = format!("deployed-{}", scene.project);
    let url = json!({"url": scene.local.scheduler_url, "tokenSecret": scene.local.connection_secret});
    scene.call(reqwest::Method::PUT, &format!("/connections/{connection}"), Some(&url)).await.ok();
    let workflow = json!({"project": scene.project, "code": scene.project + WORKFLOW, "name": "dwd", "online": true});
    standin(&scene, "definitions", Some(workflow)).await;

    let (orders, payments) = (scene.table("orders"), scene.table("payments"));
    for table in ["orders", "payments"] {
        writer.create(&scene.name, table).await;
    }
    scene.register(&[&orders, &payments]).await;
    let target = Scene::target(&connection, "dwd", scene.project + WORKFLOW, &json!("all"), &[&orders, &payments]);
    let declared = scene.declare(&target).await;
    assert_eq!(declared["rule"], "fires when BOTH orders AND payments have advanced since the last trigger");
    assert_eq!(declared["evaluation"]["verdict"], "WAITING");

    // One of them is not enough, and it is said which one is missing.
    assert_eq!(writer.append(&scene.name, "orders", 20).await["snapshotId"], 1);
    scene.reaches(&orders, 1).await;
    let why = scene.why("dwd").await;
    assert_eq!((&why["verdict"], &why["reason"]["asset"]), (&json!("WAITING"), &json!(payments.asset)), "{why}");
    assert!(scene.triggers("dwd").await.is_empty());

    writer.append(&scene.name, "orders", 5).await;
    scene.reaches(&orders, 2).await;
    let last = writer.append(&scene.name, "payments", 20).await;
    let trigger = scene.ended("dwd").await;
    assert_eq!(trigger["triggerStatus"], "SUCCESS", "{trigger}");
    let started = instance(&scene, &trigger).await;
    assert_eq!(started["id"], trigger["instance"]);
    let expected = json!({
        "lakebell_trigger_key": trigger["key"], "lakebell_trigger_source": "ASSET_EVENT", "lakebell_groups": "g",
        "lakebell_reason": "ready", "lakebell_backfill": "false",
        "lakebell_window_start": "", "lakebell_window_end": "", "lakebell_biz_date": "",
        "lakebell_orders_from": "", "lakebell_orders_to": "2", "lakebell_orders_ordinal": "2",
        "lakebell_orders_watermark": "", "lakebell_orders_tag": "", "lakebell_orders_partition": "",
        "lakebell_payments_from": "", "lakebell_payments_to": "1", "lakebell_payments_ordinal": "1",
        "lakebell_payments_watermark": "", "lakebell_payments_tag": "", "lakebell_payments_partition": "",
    });
    assert_eq!(started["params"], expected);

    let committed = last["commitMs"].as_i64().unwrap();
    let seen = millis(&scene.events(&payments).await[0]["recordedAt"]);
    println!(
        "commit -> state {} ms, claimed {} ms, started {} ms",
        seen - committed,
        passed(&trigger, "claim") - committed,
        passed(&trigger, "succeed") - committed
    );

    compaction_starts_nothing(&scene, orders).await;
    inspect_sees_what_the_state_holds(&scene, &payments).await;
}

/// A compaction moves the table and not the data.
async fn compaction_starts_nothing(scene: &Scene, mut orders: Table) {
    orders.newest = 2;
    assert_eq!(orders.commit("COMPACT", 0).await, 3);
    let state = scene.reaches(&orders, 3).await;
    assert_eq!((&state["table"]["ordinal"], &state["data"]["version"]["ordinal"]), (&json!(3), &json!(2)), "{state}");
    let newest = scene.events(&orders).await.remove(0);
    assert_eq!((&newest["outcome"], &newest["commit"]["commitKind"]), (&json!("maintenance"), &json!("COMPACT")));
    scene.hints_are_handled().await;
    assert_eq!(scene.triggers("dwd").await.len(), 1);
    assert_eq!(scene.why("dwd").await["verdict"], "WAITING");
}

/// `table inspect` reads the same table without the deployment.
async fn inspect_sees_what_the_state_holds(scene: &Scene, table: &Table) {
    let cli = Cli::new(scene);
    let inspected = cli.run(&["table", "inspect", "--json", &table.location()]).await.succeeded().json();
    let state = scene.reaches(table, 1).await;
    let commit = &inspected["commits"][0];
    assert_eq!(inspected["commits"].as_array().unwrap().len(), 1, "{inspected}");
    assert_eq!((&commit["snapshot_id"], &commit["position"]), (&json!(1), &json!(1)), "{inspected}");
    assert_eq!((&commit["commit_kind"], &commit["changes_data"]), (&json!("APPEND"), &json!(true)));
    assert_eq!((&commit["delta_records"], &commit["total_records"]), (&json!(20), &json!(20)));
    assert_eq!(commit["position"], state["data"]["version"]["ordinal"], "{state}");
    assert_eq!(inspected["latest"]["branch"], "main");
    let text = cli.run(&["table", "inspect", &table.location()]).await.succeeded().out;
    assert!(text.contains("APPEND"), "{text}");
}
