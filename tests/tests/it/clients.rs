//! Writers' own clients against the deployed API. `LAKEBELL_CLIENTS_PYTHON` names a Python that has what
//! `tests/clients/requirements.txt` pins, `LAKEBELL_DBT_PYTHON` one for `requirements-dbt.txt`; without them they are
//! skipped.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::scene;
use crate::support::{PATIENCE, Scene, Table, in_path, until};

/// Names a Python that has the clients.
const PYTHON: &str = "LAKEBELL_CLIENTS_PYTHON";
/// Names a Python that has dbt and OpenLineage's wrapper of it.
const DBT_PYTHON: &str = "LAKEBELL_DBT_PYTHON";

/// Runs a client's script; what it printed. `None` where there is no Python to run it.
async fn run(script: &str, arguments: &[&str]) -> Option<String> {
    run_by(PYTHON, script, arguments).await
}

async fn run_by(variable: &str, script: &str, arguments: &[&str]) -> Option<String> {
    let Some(python) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
        println!("skipped: no clients ({variable} names a Python with them)");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(script);
    let output = tokio::process::Command::new(python).arg(&script).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// The clients of OpenLineage take a URL without a path, and the path by itself.
fn lineage_of(url: &str) -> (&str, String) {
    let (base, stage) = url.split_at(url[8..].find('/').map_or(url.len(), |at| at + 8));
    let endpoint = format!("{}/api/v1/lineage", stage.trim_matches('/'));
    (base, endpoint.trim_start_matches('/').to_owned())
}

/// The checks of a table that were taken so far, as `kind check`.
async fn checks(scene: &Scene, table: &Table) -> BTreeSet<String> {
    let events = scene.events(table).await.into_iter().filter(|event| event["outcome"] == "advanced");
    let check = |event: Value| Some(format!("{} {}", event["kind"].as_str()?, event["evidence"]["check"].as_str()?));
    events.filter_map(check).collect()
}

#[tokio::test]
async fn what_dbt_s_tests_find_comes_by_its_openlineage_wrapper_and_by_its_results() {
    let scene = scene!("dbt");
    let folder = std::env::temp_dir().join(&scene.name);
    std::fs::create_dir_all(&folder).unwrap();
    let at = folder.to_str().unwrap();
    let Some(identity) = run_by(DBT_PYTHON, "dbt_client.py", &["identity", at]).await else { return };
    let mut table = scene.table("orders");
    let asset = json!({"key": table.asset, "location": table.location(), "bindVerdict": "latest"});
    scene.post("/assets", &asset).await.expect(&[201]);
    let mut target = Scene::target(&scene.connection().await, "dwd", 77, &json!("all"), &[&table]);
    target["groups"][0]["dependencies"][0]["qualityStatus"] = json!("PASSED");
    scene.declare(&target).await;
    table.append().await;
    scene.reaches(&table, 1).await;

    // dbt names no table of the lake: a person says once which one the model is.
    let (namespace, name) = identity.trim().split_once(' ').unwrap();
    let alias = json!({"catalog": namespace, "path": name.split('.').collect::<Vec<_>>()});
    scene.post(&format!("/assets/{}/aliases", in_path(&table.asset)), &alias).await.ok();
    let (url, token) = (scene.local.api_url.as_str(), scene.local.api_token.as_str());
    let (base, endpoint) = lineage_of(url);
    run_by(DBT_PYTHON, "dbt_client.py", &["build", at, base, &endpoint, token]).await.unwrap();
    until("the assertions of dbt's tests", PATIENCE, async || {
        let on_record = checks(&scene, &table).await;
        let expected = ["QUALITY_CHECK_FAILED not_null_orders_amount", "QUALITY_CHECK_PASSED not_null_orders_id"];
        if expected.iter().all(|check| on_record.contains(*check)) { Ok(()) } else { Err(on_record) }
    })
    .await;
    assert_eq!(scene.why("dwd").await["verdict"], "BLOCKED_BY_QUALITY");

    let route = format!("{url}{}", scene.path("/quality/dbt"));
    let said = run_by(DBT_PYTHON, "dbt_client.py", &["results", at, &route, token, &table.asset]).await.unwrap();
    assert_eq!(said, "202\n");
    let results = std::fs::read_to_string(folder.join("target/run_results.json")).unwrap();
    let run = serde_json::from_str::<Value>(&results).unwrap()["metadata"]["invocation_id"].clone();
    until("dbt's own results", PATIENCE, async || {
        let events = scene.events(&table).await;
        let of_run = events.iter().filter(|event| event["evidence"]["runId"] == run).count();
        if of_run == 2 { Ok(()) } else { Err(events) }
    })
    .await;
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test]
async fn openlineage_s_own_client_reports_a_commit_of_which_nobody_was_notified() {
    let scene = scene!("openlineage");
    let _quiet = Scene::without_passes().await;
    let mut table = scene.table("orders");
    scene.quiet_bucket().await.clone_into(&mut table.bucket);
    scene.register(&[&table]).await;
    table.append().await;
    let location = table.location();
    let path = location.strip_prefix(&format!("s3://{}/", table.bucket)).unwrap();
    let (url, token) = (scene.local.api_url.as_str(), scene.local.api_token.as_str());
    // Plain: the gateway of the local AWS hands bodies on as text, which compressed ones do not survive. They are
    // tried against the handler.
    let (base, endpoint) = lineage_of(url);
    if run("openlineage_client.py", &[base, &endpoint, token, &table.bucket, path, "1", "plain"]).await.is_none() {
        return;
    }
    scene.reaches(&table, 1).await;
    let aliases = scene.get(&format!("/assets/{}/aliases", in_path(&table.asset))).await.ok();
    assert_eq!(aliases["aliases"][0]["path"], json!(["other", "name"]), "{aliases}");
}

#[tokio::test]
async fn the_cloud_events_sdk_sends_both_modes() {
    let scene = scene!("sdk");
    let _quiet = Scene::without_passes().await;
    let mut table = scene.table("orders");
    scene.quiet_bucket().await.clone_into(&mut table.bucket);
    scene.register(&[&table]).await;
    table.append().await;
    let route = format!("{}{}", scene.local.api_url, scene.path("/asset-events"));
    let arguments = [route.as_str(), &scene.local.api_token, &table.asset, "1"];
    let Some(said) = run("cloudevents_client.py", &arguments).await else { return };
    assert_eq!(said, "structured 202\nbinary 202\n");
    scene.reaches(&table, 1).await;
}
