//! One commit of one table, told of by every writer that has a form for it, in the shared samples: one event of the
//! asset, and a letter of each writer that says what became of what it said.

use std::path::PathBuf;

use lakebell_domain::ids::TraceId;
use lakebell_engine::watch::{Created, Watcher};
use serde_json::{Value, json};

use crate::support::{Api, body, workspace};

const KEY: &str = "iceberg://lake/sales/orders";
const SNAPSHOT: &str = "8744736658442914487";
const EVENTS: &str = "/projects/7/asset-events";
const FILE: &str = "warehouse/sales/orders/metadata/00017-6f1d0d4f.metadata.json";

fn sample(name: &str) -> Option<Value> {
    let path: PathBuf = workspace().join("../shared/samples").join(name);
    std::fs::read(path).ok().map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// A table whose newest snapshot is the one that the samples tell of.
fn metadata() -> Value {
    let snapshot = |id: u64, sequence: u64, parent: Option<u64>| {
        let mut snapshot = json!({"snapshot-id": id, "sequence-number": sequence, "timestamp-ms": 1_768_471_452_000_u64,
            "manifest-list": "m", "summary": {"operation": "append", "added-records": "15230"}});
        if let Some(parent) = parent {
            snapshot["parent-snapshot-id"] = json!(parent);
        }
        snapshot
    };
    json!({
        "format-version": 2, "table-uuid": "0195f7a0-0000-7000-8000-00000000000a",
        "location": "s3://example-lake/warehouse/sales/orders", "last-sequence-number": 17,
        "last-updated-ms": 1_768_471_452_000_u64, "last-column-id": 1, "current-schema-id": 1,
        "schemas": [{"type": "struct", "schema-id": 1, "fields": []}],
        "current-snapshot-id": 8_744_736_658_442_914_487_u64,
        "refs": {"main": {"snapshot-id": 8_744_736_658_442_914_487_u64, "type": "branch"}},
        "snapshots": [snapshot(8_744_736_658_442_914_487, 17, None)],
    })
}

#[tokio::test]
async fn one_commit_told_of_in_six_ways_is_one_event_with_a_letter_of_each() {
    let Some(lineage) = sample("openlineage/generated/run_complete_spark_iceberg_glue.json") else {
        println!("skipped: no shared samples");
        return;
    };
    let api = Api::new();
    api.world.storage.put("example-lake", "elsewhere", Vec::new());
    let location = "s3://example-lake/warehouse/sales/orders";
    let registered = api.post("/projects/7/assets", &json!({"key": KEY, "location": location})).await;
    assert_eq!(registered.status_code, 201, "{registered:?}");
    api.world.storage.put("example-lake", FILE, metadata().to_string());

    // The sample of Lakebell's own form has the types of before; it names no branch and no table of another form.
    let of_own = sample("cloudevents/structured_snapshot_committed.json").unwrap();
    let own = json!({"specversion": "1.0", "id": of_own["id"], "source": of_own["source"],
        "type": "io.lakebell.snapshot.committed.v1", "data": {"asset": KEY, "snapshotId": SNAPSHOT}});
    // Lakekeeper names the table by its warehouse's id: a person says once which one that is.
    let lakekeeper = sample("catalogs/lakekeeper/cloudevents.json").unwrap();
    let updated = lakekeeper.as_array().unwrap().iter().find(|event| event.to_string().contains(SNAPSHOT)).unwrap();
    let aliases = "/projects/7/assets/iceberg%3A%2F%2Flake%2Fsales%2Forders/aliases";
    let alias = json!({"catalog": updated["warehouse-id"], "path": ["sales", "orders"]});
    assert_eq!(api.post(aliases, &alias).await.status_code, 200);
    let letters = [
        ("/api/v1/lineage", lineage),
        (EVENTS, own),
        (EVENTS, updated.clone()),
        (EVENTS, sample("catalogs/nessie/content_stored.json").unwrap()),
        ("/api/v1/iceberg/metrics", sample("catalogs/iceberg/report_metrics_commit.json").unwrap()),
    ];
    let mut receipts = Vec::new();
    for (route, event) in &letters {
        let answer = api.send("POST", route, Some(event.to_string())).await;
        assert!((200..300).contains(&answer.status_code), "{route}: {answer:?}");
        receipts.extend(body(&answer)["receipt"].as_str().map(str::to_owned));
    }
    api.work().await;
    // The sixth way: the notification of the metadata file.
    let watcher = Watcher::new(api.world.ports());
    let created = Created { bucket: "example-lake".to_owned(), key: FILE.to_owned(), etag: None };
    watcher.created(&created, &TraceId::new("six-ways").unwrap()).await.unwrap();

    let listed = format!("{EVENTS}?assetKey=iceberg%3A%2F%2Flake%2Fsales%2Forders&kind=SNAPSHOT_COMMITTED");
    let events = body(&api.get(&listed).await)["items"].as_array().unwrap().clone();
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!((&events[0]["commit"]["snapshotId"], &events[0]["outcome"]), (&json!(SNAPSHOT), &json!("advanced")));
    assert_eq!(events[0]["extra"]["addedRecords"], 15_230, "later reports only add fields: {}", events[0]);
    assert_eq!(receipts.len(), 4, "the metrics hook answers SUCCESS and no receipt");
    for receipt in receipts {
        let told = body(&api.get(&format!("{EVENTS}/{receipt}")).await);
        let outcomes = told["outcomes"].as_array().unwrap();
        let committed =
            outcomes.iter().find(|one| one["kind"] == "SNAPSHOT_COMMITTED").unwrap_or_else(|| panic!("{told}"));
        assert!(["advanced", "duplicate"].contains(&committed["outcome"].as_str().unwrap()), "{told}");
    }
}
