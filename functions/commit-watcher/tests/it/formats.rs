//! Objects of every table format: each notification leads to the right table, and the rest is told
//! from its key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lakebell_domain::ids::AssetId;
use lakebell_domain::state::AssetState;
use lakebell_engine::assets;
use lakebell_testkit::{Fault, Op};
use serde_json::{Value, json};

use crate::support::{BUCKET, Function, PROJECT, batch, trace};

/// A recorded table of each format, with how many commits of it changed data, and the id that its
/// newest commit has.
const TABLES: [(&str, &str, u64, &str); 5] = [
    ("paimon", "watermarks", 5, "5"),
    ("delta", "append-overwrite-delete-merge", 7, "6"),
    ("iceberg", "sinks", 2, "3467676543996194488"),
    ("hudi", "cow-layout-1", 3, "20260101000004000"),
    ("hudi", "out-of-order-completion", 3, "20260101000001000"),
];

/// The ways in which S3 says that an object was created: writers of each format use another one.
const KINDS: [&str; 4] =
    ["ObjectCreated:Put", "ObjectCreated:Copy", "ObjectCreated:CompleteMultipartUpload", "Object Created"];

fn root(format: &str, table: &str) -> String {
    format!("warehouse/ods_db.db/{format}-{table}")
}

fn files(dir: &Path, prefix: &str, found: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            files(&path, &format!("{name}/"), found);
        } else {
            found.insert(name, path);
        }
    }
}

/// One notification, of any kind.
fn created(key: &str, kind: &str) -> Value {
    if kind == "Object Created" {
        return json!({
            "version": "0", "id": "1", "source": "aws.s3", "detail-type": kind,
            "detail": {"version": "0", "bucket": {"name": BUCKET}, "object": {"key": key}, "reason": "CopyObject"},
        });
    }
    let object = json!({"bucket": {"name": BUCKET}, "object": {"key": key}});
    json!({"Records": [{"eventVersion": "2.1", "eventSource": "aws:s3", "eventName": kind, "s3": object}]})
}

impl Function {
    async fn asset(&self, format: &str, table: &str) -> AssetId {
        let location = format!("s3://{BUCKET}/{}", root(format, table));
        let spec = json!({"key": format!("{format}://ods_db/{table}"), "location": location});
        let spec = serde_json::from_value(spec).unwrap();
        assets::register(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap().id
    }

    async fn state(&self, asset: AssetId) -> AssetState {
        assets::head(&self.world.quiet_ports(), asset).await.unwrap().value.state
    }
}

#[tokio::test]
async fn notifications_of_every_kind_lead_to_the_table_of_their_format() {
    for kind in KINDS {
        let function = Function::new();
        function.world.storage.make_bucket(BUCKET);
        let mut messages = Vec::new();
        let mut ids = Vec::new();
        for (format, table, ..) in TABLES {
            ids.push(function.asset(format, table).await);
            let dir =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(format).join(table).join("table");
            let mut found = BTreeMap::new();
            files(&dir, "", &mut found);
            for (relative, path) in found {
                let key = format!("{}/{relative}", root(format, table));
                function.world.storage.put(BUCKET, &key, std::fs::read(path).unwrap());
                messages.push((key.clone(), created(&key, kind)));
            }
        }
        // The batch comes the wrong way round.
        messages.reverse();
        let messages: Vec<(&str, Value)> = messages.iter().map(|(key, body)| (key.as_str(), body.clone())).collect();
        assert_eq!(function.handle(batch(&messages)).await.unwrap(), [""; 0]);
        for ((format, table, data, newest), id) in TABLES.into_iter().zip(ids) {
            let state = function.state(id).await;
            let label = format!("{kind}: {format} {table}");
            assert_eq!(state.data.as_ref().map_or(0, |data| data.count), data, "{label}");
            assert_eq!((state.gap, state.hold, state.hole, state.trouble), (None, None, None, None), "{label}");
            assert_eq!(state.table.unwrap().snapshot_id, newest, "{label}");
            assert!(function.counted("lakehouse_asset_state_updated_total", "source_type", format) > 0, "{label}");
        }
    }
}

#[tokio::test]
async fn what_is_no_commit_costs_nothing() {
    let function = Function::new();
    let noise = [
        "t/_delta_log/00000000000000000001.checkpoint.parquet",
        "t/_delta_log/00000000000000000001.crc",
        "t/_delta_log/_last_checkpoint",
        "t/_delta_log/_staged_commits/00000000000000000002.4cb9708e-b478-44de-b203-53f9ba9b2876.json",
        "t/_delta_log/00000000000000000001.00000000000000000004.compacted.json",
        "t/metadata/version-hint.text",
        "t/metadata/5dc44946-0d06-4ff8-9f95-a00a4b53e26e.metadata.json",
        "t/metadata/snap-1-1-5dc44946-0d06-4ff8-9f95-a00a4b53e26e.avro",
        "elsewhere/00001-5dc44946-0d06-4ff8-9f95-a00a4b53e26e.metadata.json",
        "t/.hoodie/20260101000000000.commit.requested",
        "t/.hoodie/20260101000000000.inflight",
        "t/.hoodie/metadata/.hoodie/20260101000000000.deltacommit",
        "t/.hoodie/hoodie.properties",
        "t/snapshot/LATEST",
        "t/dt=1/part-0.parquet",
    ];
    let messages: Vec<(&str, Value)> = noise.iter().map(|key| (*key, created(key, KINDS[0]))).collect();
    function.world.tap.take_log();
    assert_eq!(function.handle(batch(&messages)).await.unwrap(), [""; 0]);
    assert_eq!(function.world.tap.total(), 0);
}

#[tokio::test]
async fn a_table_of_another_format_that_nobody_registered_is_kept_with_its_format() {
    let function = Function::new();
    function.world.storage.make_bucket(BUCKET);
    let keys = [
        ("delta", "a/_delta_log/00000000000000000000.json"),
        ("hudi", "b/.hoodie/timeline/20260101000000000_20260101000001000.commit"),
        ("iceberg", "c/metadata/v1.metadata.json"),
    ];
    for (format, key) in keys {
        function.handle(created(key, KINDS[1])).await.unwrap();
        assert_eq!(function.counted("lakehouse_asset_event_invalid_total", "source_type", format), 1, "{format}");
    }
    let seen = assets::list_unregistered(&function.world.quiet_ports(), None).await.unwrap();
    let seen: Vec<(&str, &str)> =
        seen.iter().map(|seen| (seen.format.unwrap().as_str(), seen.location.as_str())).collect();
    let expected = ["a", "b", "c"].map(|root| format!("s3://{BUCKET}/{root}"));
    let formats = ["delta", "hudi", "iceberg"];
    assert_eq!(seen, formats.into_iter().zip(expected.iter().map(String::as_str)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_listing_that_fails_hands_the_message_back() {
    let function = Function::new();
    function.world.storage.make_bucket(BUCKET);
    let id = function.asset("hudi", "t").await;
    let key = format!("{}/.hoodie/20260101000000000.commit", root("hudi", "t"));
    function.world.storage.put(BUCKET, &key, "");
    let message = batch(&[("m1", created(&key, KINDS[0]))]);
    function.world.tap.fault(Op::List, 1, Fault::Before(lakebell_engine::ErrorKind::Unavailable));
    assert_eq!(function.handle(message.clone()).await.unwrap(), ["m1"]);
    assert_eq!(function.handle(message).await.unwrap(), [""; 0]);
    assert_eq!(function.state(id).await.data.unwrap().count, 1);
}
