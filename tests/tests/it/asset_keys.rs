//! Asset keys with every awkward character, through the gateway's real route and back.

use lakebell_domain::asset::{AssetKey, Format, Location};
use lakebell_push_api::path::AWKWARD_TABLES;
use serde_json::{Value, json};

use crate::scene;
use crate::support::{Scene, Table, in_path};

/// Register, read, push, list, look, and delete; each call names the asset by its key in the path.
async fn round_trip(scene: &Scene, number: usize, table: &str, branch: Option<&str>) {
    let asset = AssetKey::new(Format::Paimon, None, &scene.name, table, branch).unwrap().to_string();
    let mut written = awkward_table(scene, number, table, &asset);
    if branch.is_none() {
        written.append().await;
    }
    let spec = json!({"key": asset, "location": written.location()});
    let registered = scene.post("/assets", &spec).await.expect(&[201]);
    assert_eq!((&registered["key"], &registered["isNew"]), (&json!(asset), &json!(true)));
    scene.post("/assets", &spec).await.ok();

    let path = in_path(&asset);
    let state = scene.get(&format!("/assets/{path}/state")).await.ok();
    assert_eq!((&state["key"], &state["id"]), (&json!(asset), &registered["id"]));
    assert_eq!(state["location"], json!(written.location()));
    let event = json!({
        "specversion": "1.0", "id": format!("{asset}-1"), "source": "e2e", "data": {"asset": asset, "snapshotId": 77},
        "type": "io.lakebell.snapshot.committed.v1",
    });
    let pushed = scene.push(&event).await;
    assert_eq!(pushed["outcome"], "ignored", "{pushed}");
    let events = scene.get(&format!("/asset-events?assetKey={path}")).await.ok();
    assert_eq!(events["items"][0]["assetKey"], json!(asset), "{events}");
    let looked = scene.post(&format!("/assets/{path}/observe"), &Value::Null).await.ok();
    assert_eq!(looked["state"]["table"]["ordinal"], if branch.is_none() { json!(1) } else { Value::Null }, "{looked}");

    assert_eq!(scene.delete(&format!("/assets/{path}")).await.status, 204, "{asset}");
    let gone = scene.get(&format!("/assets/{path}/state")).await.expect(&[404]);
    assert!(gone["detail"].as_str().unwrap().starts_with(&asset), "{gone}");
}

/// A table that lives where its name says, if an S3 key can hold that.
fn awkward_table(scene: &Scene, number: usize, table: &str, asset: &str) -> Table {
    let mut written = scene.table(&format!("t{number}"));
    let named = format!("e2e/{}.db/{number}/{table}", scene.name);
    if Location::new(&written.bucket, &named).is_ok_and(|location| location.prefix() == named) {
        written.prefix = named;
    }
    asset.clone_into(&mut written.asset);
    written
}

#[tokio::test]
async fn every_awkward_key_survives_the_gateway() {
    let scene = scene!("keys");
    for (number, table) in AWKWARD_TABLES.iter().enumerate() {
        round_trip(&scene, number * 2, table, None).await;
        round_trip(&scene, number * 2 + 1, table, Some("x/y@z#1 ü")).await;
    }
    assert_eq!(scene.get("/assets").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_branch_is_an_asset_of_its_own() {
    let scene = scene!("branch");
    let mut table = scene.table("orders");
    let branch = format!("{}@audit", table.asset);
    scene.register(&[&table]).await;
    scene.post("/assets", &json!({"key": branch, "location": table.location()})).await.expect(&[201]);
    table.append().await;
    scene.reaches(&table, 1).await;
    let of_branch = scene.get(&format!("/assets/{}/state", in_path(&branch))).await.ok();
    assert_eq!(of_branch["state"]["table"], Value::Null, "{of_branch}");

    // A branch keeps its files below the table; the same folder layout again.
    let main = table.prefix.clone();
    table.prefix = format!("{main}/branch/branch-audit");
    branch.clone_into(&mut table.asset);
    table.newest = 1;
    table.commit("APPEND", 5).await;
    let state = scene.reaches(&table, 2).await;
    assert_eq!(state["table"]["ordinal"], json!(2), "{state}");
}
