//! Settings of an asset, what events of commits keep, and snapshots whose ids are no ordinals.

use jiff::SignedDuration;
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::ids::ProjectCode;
use lakebell_domain::state::{PARKED, QualityVerdict};
use lakebell_engine::asset_settings::{AssetSettings, BindVerdict, SchemaApproval};
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::push::{self, Named, Pushed, Receipt};
use lakebell_engine::records::Warehouse;
use lakebell_engine::{ErrorKind, grants, settings};
use lakebell_testkit::Op;
use serde_json::{Value, json};

use super::{asks, checked, reason, unnamed};
use crate::support::{BUCKET, Deployment, PROJECT, key, trace};

fn spec_of(d: &Deployment, table: &str, settings: &Value) -> AssetSpec {
    let mut document = json!({"key": key(table), "location": d.tables[table].location()});
    for (name, value) in settings.as_object().unwrap() {
        document[name] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

impl Deployment {
    /// Registers a table again with these settings.
    pub(super) async fn set(&self, table: &str, settings: &Value) {
        let spec = spec_of(self, table, settings);
        let again = assets::register(&self.world.ports(), PROJECT, &spec, &trace()).await.unwrap();
        assert!(!again.is_new);
        assert_eq!(again.observed.head.value.settings, spec.settings());
    }
}

#[tokio::test]
async fn registering_again_changes_the_settings_and_nothing_else() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    let before = d.head("a");
    d.set("a", &json!({"bindVerdict": "latest", "schemaApproval": "required"})).await;
    let head = d.head("a");
    assert_eq!(
        (head.settings.bind_verdict, head.settings.schema_approval),
        (BindVerdict::Latest, SchemaApproval::Required)
    );
    assert!(head.state.schema.approval_required);
    assert_eq!(head.state.schema.initial, head.state.schema.current, "what is there needs no approval");
    let listed = assets::list(&d.world.quiet_ports(), None).await.unwrap();
    assert_eq!(listed[0].settings, head.settings);
    d.set("a", &json!({})).await;
    assert_eq!((d.head("a").settings, d.head("a").state.data), (AssetSettings::default(), before.state.data));

    // A commit between the read and the write: the write is tried again, and nothing is lost.
    let id = d.table("a").commit("APPEND", 1);
    let (created, watcher) = (d.created("a", id), lakebell_engine::watch::Watcher::new(d.world.quiet_ports()));
    d.world.tap.before(Op::Write, 1, move || async move {
        watcher.created(&created, &trace()).await.unwrap();
    });
    d.set("a", &json!({"bindVerdict": "latest"})).await;
    assert_eq!(d.head("a").state.position().ordinal.0, 2);
}

#[tokio::test]
async fn neither_another_project_nor_a_warehouse_changes_settings() {
    let d = Deployment::with(&["a"]).await;
    d.set("a", &json!({"bindVerdict": "latest"})).await;
    let ports = d.world.quiet_ports();
    let spec = spec_of(&d, "a", &json!({}));
    let refused = assets::register(&ports, ProjectCode(8), &spec, &trace()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.about(assets::GRANT)), (ErrorKind::Conflict, Some("requested")));
    // Nor does one that was granted reading it.
    grants::give(&ports, PROJECT, &key("a"), ProjectCode(8), &trace()).await.unwrap();
    assets::register(&ports, ProjectCode(8), &spec, &trace()).await.unwrap();
    assert_eq!(d.head("a").settings.bind_verdict, BindVerdict::Latest);
    let warehouse: Warehouse =
        serde_json::from_value(json!({"location": format!("s3://{BUCKET}/wh"), "format": "paimon", "project": 7}))
            .unwrap();
    settings::put_warehouse(&ports, &warehouse, &trace()).await.unwrap();
    assert_eq!(d.head("a").settings.bind_verdict, BindVerdict::Latest);
}

#[test]
fn settings_that_are_not_known_are_refused() {
    for (name, value) in [
        ("trust", json!("nobody")),
        ("catalog", json!("hive")),
        ("bindVerdict", json!("sometimes")),
        ("warehouse", json!("s3://lake")),
    ] {
        let document = json!({"key": key("a"), "location": "s3://lake/a", name: value});
        let error = serde_json::from_value::<AssetSpec>(document).unwrap_err().to_string();
        assert!(error.starts_with("unknown "), "{name}: {error}");
    }
    let document = json!({"key": key("a"), "location": "s3://lake/a", "trust": "storage", "watermarkFrom": "push"});
    let spec: AssetSpec = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap()["watermarkFrom"], "push");
}

#[tokio::test]
async fn the_latest_version_is_bound_where_the_asset_says_so() {
    let mut d = Deployment::with(&["a"]).await;
    d.set("a", &json!({"bindVerdict": "latest"})).await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.push(EventKind::QualityCheckFailed, "1", unnamed(&d, 60)).await, Outcome::Advanced);
    assert_eq!(d.quality(1), QualityVerdict::Failed);
}

#[tokio::test]
async fn commits_keep_their_totals_and_stay_for_targets_that_look_at_each() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    let expiry = |d: &Deployment, ordinal: u64| {
        let range = format!("{ordinal:020}");
        let items = d.world.items.dump();
        let item =
            items.iter().find(|item| item.key.sk.starts_with("E#SNAPSHOT_COMMITTED") && item.key.sk.contains(&range));
        item.and_then(|item| item.expires_at).unwrap()
    };
    let begun = lakebell_engine::ports::time::Clock::now(&d.world.clock);
    assert_eq!(expiry(&d, 1).duration_since(begun), SignedDuration::from_hours(21 * 24));
    let mut each = serde_json::to_value(asks(&json!({}))).unwrap();
    each["coalesce"] = json!("each");
    d.declare(&serde_json::from_value(each).unwrap()).await;
    d.commit("a", "APPEND").await;
    assert_eq!(expiry(&d, 2).duration_since(begun), SignedDuration::from_hours(400 * 24));
    let totals: Vec<u64> =
        d.events().await.iter().filter_map(|event| Some(event.commit.as_ref()?.totals.data)).collect();
    assert_eq!(totals, [1, 2]);
    assert_eq!(d.head("a").state.totals.data, 2);
}

/// A table of another format than Paimon, filled by a function of how many commits it has.
struct Other {
    d: Deployment,
    spec: AssetSpec,
}

impl Other {
    async fn new(key: &str, first: impl FnOnce(&Deployment)) -> Self {
        let d = Deployment::with(&[]).await;
        d.world.storage.make_bucket(BUCKET);
        first(&d);
        let spec = AssetSpec::new(key.parse().unwrap(), format!("s3://{BUCKET}/wh/x").parse().unwrap());
        assets::register(&d.world.ports(), PROJECT, &spec, &trace()).await.unwrap();
        Self { d, spec }
    }

    async fn passed(&self, snapshot: u64) -> Outcome {
        let asset = Named::Key(self.spec.key.clone());
        let (kind, facts) = (EventKind::QualityCheckPassed, checked(snapshot, 1));
        let pushed = Pushed { id: snapshot.to_string(), source: "job".to_owned(), kind, asset, time: None, facts };
        match Box::pin(push::push(&self.d.world.ports(), &pushed, &trace())).await.unwrap().receipt {
            Receipt::Looked(outcome) => outcome,
            Receipt::UnknownAsset => panic!("it is registered"),
        }
    }
}

fn delta_commit(d: &Deployment, version: u64) {
    let mut lines = vec![json!({"commitInfo": {"operation": "WRITE", "timestamp": 1}})];
    if version == 0 {
        lines.push(json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}));
        lines.push(json!({"metaData": {"id": "t", "format": {"provider": "parquet"}, "partitionColumns": [],
            "schemaString": "{\"type\":\"struct\",\"fields\":[]}", "configuration": {}}}));
    }
    lines.push(
        json!({"add": {"path": "p", "size": 1, "modificationTime": 1, "dataChange": true, "partitionValues": {}}}),
    );
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    d.world.storage.put(BUCKET, &format!("wh/x/_delta_log/{version:020}.json"), lines.join("\n"));
}

/// Versions of a Delta table order themselves, and so may verdicts on them wait.
#[tokio::test]
async fn a_verdict_on_a_delta_version_waits_as_one_on_a_snapshot_of_paimon() {
    let table = Other::new("delta://sales/x", |d| delta_commit(d, 0)).await;
    delta_commit(&table.d, 1);
    assert_eq!(table.passed(0).await, Outcome::Advanced);
    assert_eq!(table.passed(1).await, Outcome::Advanced, "seen by the look that the verdict led to");
    assert_eq!(table.passed(2).await, Outcome::Ignored(PARKED.to_owned()));
}

/// The metadata file after so many appends; their snapshots are 1001, 1002, and so on.
fn iceberg_file(d: &Deployment, appends: i64) {
    let snapshot = |n: i64| {
        let mut snapshot = json!({"snapshot-id": 1_000 + n, "sequence-number": n, "timestamp-ms": n, "manifest-list": "m",
            "summary": {"operation": "append", "added-records": "1"}});
        if n > 1 {
            snapshot["parent-snapshot-id"] = (999 + n).into();
        }
        snapshot
    };
    let file = |n: i64| format!("s3://{BUCKET}/wh/x/metadata/{n:05}-a.metadata.json");
    let log: Vec<Value> = (1..appends).map(|n| json!({"metadata-file": file(n), "timestamp-ms": n})).collect();
    let text = json!({
        "format-version": 2, "table-uuid": "85f616f1-4c4e-412a-9119-bd72cf73c9ba", "location": "s3://lake/wh/x",
        "last-sequence-number": appends, "last-updated-ms": appends, "last-column-id": 1,
        "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
        "current-snapshot-id": 1_000 + appends, "metadata-log": log,
        "refs": {"main": {"snapshot-id": 1_000 + appends, "type": "branch"}},
        "snapshots": (1..=appends).map(snapshot).collect::<Vec<_>>(),
    });
    d.world.storage.put(BUCKET, &format!("wh/x/metadata/{appends:05}-a.metadata.json"), text.to_string());
}

#[tokio::test]
async fn a_snapshot_whose_id_orders_nothing_is_found_by_its_recorded_commit() {
    let table = Other::new("iceberg://sales/x", |d| iceberg_file(d, 1)).await;
    for appends in 2..=4 {
        iceberg_file(&table.d, appends);
    }
    assert_eq!(table.passed(1_003).await, Outcome::Advanced, "seen by the look that the verdict led to");
    assert_eq!(table.passed(1_004).await, Outcome::Advanced, "the newest");
    assert_eq!(table.passed(1_002).await, Outcome::Advanced, "among the newest events");
    let unseen = table.passed(1_005).await;
    assert!(reason(&unseen).contains("not among the newest"), "it cannot wait: {unseen:?}");
    iceberg_file(&table.d, 5);
    assert_eq!(table.passed(1_005).await, Outcome::Advanced, "told again");
    assert_eq!(table.passed(1_005).await, Outcome::Duplicate);
}
