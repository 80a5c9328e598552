//! Writers' own clients against the deployed API. `LAKEBELL_CLIENTS_PYTHON` names a Python that has what
//! `tests/clients/requirements.txt` pins; without it they are skipped.

use std::path::Path;

use serde_json::json;

use crate::scene;
use crate::support::{Scene, in_path};

/// Names a Python that has the clients.
const PYTHON: &str = "LAKEBELL_CLIENTS_PYTHON";

/// Runs a client's script; what it printed. `None` where there is no Python to run it.
async fn run(script: &str, arguments: &[&str]) -> Option<String> {
    let Some(python) = std::env::var_os(PYTHON).filter(|path| !path.is_empty()) else {
        println!("skipped: no clients ({PYTHON} names a Python with them)");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(script);
    let output = tokio::process::Command::new(python).arg(&script).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
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
    // The client takes a URL without a path, and the path by itself.
    let (base, stage) = url.split_at(url[8..].find('/').map_or(url.len(), |at| at + 8));
    let endpoint = format!("{}/api/v1/lineage", stage.trim_matches('/'));
    let endpoint = endpoint.trim_start_matches('/');
    if run("openlineage_client.py", &[base, endpoint, token, &table.bucket, path, "1", "plain"]).await.is_none() {
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
