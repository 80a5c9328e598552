//! Tables of the formats other than Paimon: what a look costs, and situations that no recorded
//! table shows.

mod delta;
mod hudi;
mod iceberg;

use std::time::Duration;

use lakebell_domain::asset::Format;
use lakebell_domain::event::{Outcome, Source};
use lakebell_domain::ids::AssetId;
use lakebell_domain::state::AssetState;
use lakebell_engine::assets::{self, Registration};
use lakebell_engine::compensate;
use lakebell_engine::observe::{self, Hint, Look, Observed};
use lakebell_engine::records::Warehouse;
use lakebell_engine::settings;
use lakebell_engine::watch::{Created, Watched, Watcher};
use lakebell_engine::{EngineError, ErrorKind};
use lakebell_testkit::{Op, World};

use crate::support::{BUCKET, PROJECT, trace};

/// Where the table of these tests lives.
const ROOT: &str = "wh/sales/orders";

/// One table, its asset, and the watcher of its bucket.
struct Lake {
    world: World,
    watcher: Watcher,
    key: &'static str,
}

impl Lake {
    /// An empty bucket; `key` names the asset.
    fn new(key: &'static str) -> Self {
        let world = World::new(1);
        world.storage.make_bucket(BUCKET);
        Self { watcher: Watcher::new(world.ports()), world, key }
    }

    fn put(&self, relative: &str, content: impl Into<Vec<u8>>) {
        self.world.storage.put(BUCKET, &format!("{ROOT}/{relative}"), content);
    }

    fn remove(&self, relative: &str) {
        assert!(self.world.storage.remove(BUCKET, &format!("{ROOT}/{relative}")), "{relative} is there");
    }

    async fn try_register(&self, key: &str) -> Result<Registration, EngineError> {
        self.try_register_with(key, &serde_json::json!({})).await
    }

    /// With settings.
    async fn try_register_with(&self, key: &str, settings: &serde_json::Value) -> Result<Registration, EngineError> {
        let mut spec = serde_json::json!({"key": key, "location": format!("s3://{BUCKET}/{ROOT}")});
        for (name, value) in settings.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let spec = serde_json::from_value(spec).unwrap();
        assets::register(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await
    }

    async fn register(&self) -> AssetId {
        self.try_register(self.key).await.expect("register").id
    }

    async fn id(&self) -> AssetId {
        assets::find_id(&self.world.quiet_ports(), &self.key.parse().unwrap()).await.unwrap()
    }

    async fn state(&self) -> AssetState {
        assets::head(&self.world.quiet_ports(), self.id().await).await.unwrap().value.state
    }

    async fn scan(&self) -> Observed {
        let hint = Hint { asset: self.id().await, look: Look::Whole, source: Source::Poll, trace: trace() };
        observe::observe(&self.world.ports(), &hint).await.expect("a scan")
    }

    /// The notification of an object as it is now.
    fn created(&self, relative: &str) -> Created {
        let key = format!("{ROOT}/{relative}");
        let etag = self.world.storage.etag(BUCKET, &key);
        Created { bucket: BUCKET.to_owned(), key, etag }
    }

    async fn notify(&self, relative: &str) -> Watched {
        self.watcher.created(&self.created(relative), &trace()).await.expect("a look")
    }

    /// Two scans, a settle time apart, and the acceptance of what both saw.
    async fn accept(&self) {
        self.scan().await;
        self.world.clock.advance(Duration::from_secs(61));
        self.scan().await;
        observe::accept_rewrite(&self.world.quiet_ports(), self.id().await, &trace()).await.expect("accept");
    }

    /// Requests to storage since the last time: reads and listings.
    fn requests(&self) -> (usize, usize) {
        let calls = self.world.tap.take_log();
        let of = |op: Op| calls.iter().filter(|call| call.op == op).count();
        (of(Op::Read), of(Op::List) + of(Op::Folders))
    }

    /// A scan that finds nothing, and what it costs.
    async fn assert_quiet_scan_costs(&self, reads: usize, listings: usize) {
        self.requests();
        let observed = self.scan().await;
        assert!(observed.outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Duplicate), "{:?}", observed.outcomes);
        let (was_read, was_listed) = self.requests();
        assert_eq!((was_read, was_listed), (reads, listings), "reads and listings");
        assert!(was_read + was_listed <= 5, "a scan of an unchanged table makes at most five requests");
    }

    /// What the newest event of the asset says beside its outcome.
    fn details(&self) -> Vec<String> {
        let items = self.world.items.dump();
        let events = items.iter().filter(|item| item.key.sk.starts_with("E#"));
        events
            .filter_map(|item| serde_json::from_str::<lakebell_domain::event::Event>(&item.doc).ok()?.detail)
            .collect()
    }
}

#[tokio::test]
async fn a_key_of_another_format_than_the_table_is_refused() {
    let lake = Lake::new("delta://sales/orders");
    lake.put("_delta_log/00000000000000000000.json", "{}");
    lake.put("data/metadata/x", "");
    for key in ["paimon://sales/orders", "iceberg://sales/orders", "hudi://sales/orders"] {
        let error = lake.try_register(key).await.expect_err("another format");
        assert_eq!((error.kind(), error.about("field")), (ErrorKind::Invalid, Some("key")), "{error}");
        assert!(error.message().contains("a delta table lies at"), "{error}");
    }
    // Iceberg metadata beside the log makes it a table of both.
    lake.put("metadata/v1.metadata.json", "{}");
    lake.try_register("delta://sales/orders").await.expect("its own format");
}

/// A file that each format's tables have, and no other's.
const MARKERS: [(Format, &str); 4] = [
    (Format::Paimon, "schema/schema-0"),
    (Format::Iceberg, "metadata/00000-6a6a0f0e-7f3e-4f9a-9f7f-5f0c7e3c9a10.metadata.json"),
    (Format::Hudi, ".hoodie/hoodie.properties"),
    (Format::Delta, "_delta_log/00000000000000000000.json"),
];

/// Registers a table whose key leaves the format open.
async fn register_open(lake: &Lake, key: &str) -> Result<Registration, EngineError> {
    let spec = serde_json::json!({"key": key, "location": format!("s3://{BUCKET}/{ROOT}")});
    let spec = serde_json::from_value(spec).unwrap();
    assets::register_written(&lake.world.quiet_ports(), PROJECT, spec, &trace()).await
}

#[tokio::test]
async fn a_key_may_leave_the_format_to_the_table_that_is_there() {
    for (format, marker) in MARKERS {
        let lake = Lake::new("auto://sales/orders");
        let error = register_open(&lake, lake.key).await.expect_err("nothing is there");
        assert_eq!((error.kind(), error.about("field")), (ErrorKind::Invalid, Some("key")), "{error}");
        assert!(error.message().contains("no table lies at"), "{error}");

        lake.put(marker, "{}");
        let first = register_open(&lake, lake.key).await.unwrap();
        assert_eq!(first.observed.head.value.key.to_string(), format!("{format}://sales/orders"));
        // By then it is known, whatever is there.
        lake.remove(marker);
        let again = register_open(&lake, lake.key).await.unwrap();
        assert_eq!((again.id, again.is_new), (first.id, false));
        let other_name = register_open(&lake, "auto://sales/other").await.expect_err("a taken location, nothing there");
        assert_eq!(other_name.kind(), ErrorKind::Invalid, "{other_name}");
    }
}

#[tokio::test]
async fn iceberg_metadata_beside_another_format_is_for_readers_of_it_and_two_other_formats_are_asked_about() {
    for (format, marker) in MARKERS {
        let lake = Lake::new("auto://sales/orders");
        lake.put(marker, "{}");
        lake.put("metadata/v1.metadata.json", "{}");
        let key = register_open(&lake, "auto://sales/orders@audit").await.unwrap().observed.head.value.key.clone();
        assert_eq!(key.to_string(), format!("{format}://sales/orders@audit"));
    }
    let lake = Lake::new("auto://sales/orders");
    lake.put(MARKERS[2].1, "");
    lake.put(MARKERS[3].1, "{}");
    let error = register_open(&lake, lake.key).await.expect_err("two");
    assert!(error.message().contains("tables of hudi and delta"), "{error}");
}

#[tokio::test]
async fn a_table_that_is_not_there_yet_is_taken_at_its_word() {
    for key in ["delta://sales/orders", "paimon://sales/orders"] {
        let lake = Lake::new(key);
        lake.register().await;
        assert_eq!(lake.state().await.baseline.map(|baseline| baseline.version), Some(None), "{key}");
    }
}

#[tokio::test]
async fn a_commit_right_after_the_registration_of_a_table_that_was_unknown_is_not_passed_over() {
    let lake = Lake::new("delta://sales/orders");
    let commit = |version: u64| format!("_delta_log/{version:020}.json");
    lake.put(&commit(0), "{\"commitInfo\":{}}\n");
    for is_new in [true, false] {
        let watched = lake.notify(&commit(0)).await;
        assert!(matches!(watched, Watched::UnknownTable { is_new: it, .. } if it == is_new), "{watched:?}");
    }
    lake.world.tap.take_log();
    lake.notify(&commit(0)).await;
    let calls: Vec<Op> = lake.world.tap.take_log().into_iter().map(|call| call.op).collect();
    assert_eq!(calls, [Op::Get], "one that stays unknown costs one read");
    lake.register().await;
    lake.put(&commit(1), "{\"commitInfo\":{}}\n");
    assert!(matches!(lake.notify(&commit(1)).await, Watched::Observed { .. }));
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, "1");
}

#[tokio::test]
async fn a_warehouse_of_any_format_finds_its_tables() {
    let lake = Lake::new("delta://sales/orders");
    lake.put("_delta_log/00000000000000000000.json", "{\"commitInfo\":{}}\n");
    let keys = [
        "wh/hr.db/people/_delta_log/00000000000000000000.json",
        "wh/sales/notes/readme",
        "wh/sales/x/metadata/v1.metadata.json",
    ];
    for key in keys {
        lake.world.storage.put(BUCKET, key, "{\"commitInfo\":{}}\n");
    }
    let warehouse = serde_json::json!({"location": format!("s3://{BUCKET}/wh"), "format": "delta"});
    let warehouse = serde_json::from_value(warehouse).unwrap();
    let ports = lake.world.quiet_ports();
    let found = lakebell_engine::settings::put_warehouse(&ports, &warehouse, &trace()).await.unwrap();
    let keys: Vec<String> = found.registered.iter().map(ToString::to_string).collect();
    assert_eq!(
        (keys, found.refused),
        (vec!["delta://hr/people".to_owned(), "delta://sales/orders".to_owned()], Vec::new())
    );

    // A table that comes later registers itself with its first commit, if it has the warehouse's format.
    let later =
        [("wh/sales/late/_delta_log/00000000000000000000.json", true), ("wh/sales/y/metadata/v1.metadata.json", false)];
    for (key, is_registered) in later {
        lake.world.storage.put(BUCKET, key, "{\"commitInfo\":{}}\n");
        let created = Created { bucket: BUCKET.to_owned(), key: key.to_owned(), etag: None };
        let watched = lake.watcher.created(&created, &trace()).await.unwrap();
        assert_eq!(matches!(watched, Watched::Observed { .. }), is_registered, "{key}: {watched:?}");
    }
}

#[tokio::test]
async fn a_warehouse_may_hold_tables_of_every_format() {
    let lake = Lake::new("delta://sales/orders");
    let put = |folder: &str, marker: &str| lake.world.storage.put(BUCKET, &format!("wh/{folder}/{marker}"), "{}");
    put("sales.db/p", MARKERS[0].1);
    put("sales/i", MARKERS[1].1);
    put("sales/h", MARKERS[2].1);
    put("sales.db/d", MARKERS[3].1);
    // With metadata for readers of Iceberg beside its own; two at once; none of any format.
    put("sales/both", MARKERS[3].1);
    put("sales/both", MARKERS[1].1);
    put("sales/two", MARKERS[2].1);
    put("sales/two", MARKERS[3].1);
    put("sales/notes", "readme");
    // Paimon's databases are named `<database>.db`.
    put("sales/q", MARKERS[0].1);
    let warehouse = serde_json::json!({"location": format!("s3://{BUCKET}/wh"), "format": "auto"});
    let warehouse: Warehouse = serde_json::from_value(warehouse).unwrap();
    let ports = lake.world.quiet_ports();
    let found = settings::put_warehouse(&ports, &warehouse, &trace()).await.unwrap();
    let mut keys: Vec<String> = found.registered.iter().map(ToString::to_string).collect();
    keys.sort();
    let expected = ["delta://sales/both", "delta://sales/d", "hudi://sales/h", "iceberg://sales/i", "paimon://sales/p"];
    assert_eq!(keys, expected);
    let refused: Vec<String> = found.refused.iter().map(|table| table.location.to_string()).collect();
    assert_eq!(refused, [format!("s3://{BUCKET}/wh/sales/two")]);

    // Later ones: with their first commit, of whichever format that is, or by the clock.
    put("sales/late", MARKERS[3].1);
    put("sales/late", MARKERS[1].1);
    let key = format!("wh/sales/late/{}", MARKERS[1].1);
    let created = Created { bucket: BUCKET.to_owned(), key, etag: None };
    assert!(matches!(lake.watcher.created(&created, &trace()).await.unwrap(), Watched::Observed { .. }));
    put("sales.db/quiet", MARKERS[2].1);
    assets::deregister(&ports, &"hudi://sales/h".parse().unwrap()).await.unwrap();
    let looked =
        compensate::look_for_tables(&ports, &warehouse.location, &trace(), jiff::Timestamp::MAX).await.unwrap();
    let keys: Vec<String> = looked.registered.iter().map(ToString::to_string).collect();
    assert_eq!((keys, looked.refused.len()), (vec!["hudi://sales/quiet".to_owned()], 1));
    let all = assets::list(&ports, None).await.unwrap();
    let all: Vec<String> = all.iter().map(|asset| asset.key.to_string()).collect();
    assert!(all.contains(&"delta://sales/late".to_owned()) && !all.contains(&"hudi://sales/h".to_owned()), "{all:?}");
}

#[tokio::test]
async fn a_scan_of_an_unchanged_paimon_table_is_two_listings_and_of_a_long_one_five_requests() {
    let lake = Lake::new("paimon://sales/orders");
    lake.register().await;
    let mut table = lakebell_testkit::PaimonTable::new(lake.world.storage.clone(), BUCKET, ROOT);
    for _ in 0..200 {
        table.commit("APPEND", 1);
    }
    lake.scan().await;
    assert_eq!(lake.state().await.data.unwrap().count, 200);
    lake.assert_quiet_scan_costs(0, 2).await;
    let snapshot = String::from_utf8(lake.world.storage.get_now(BUCKET, &table.key(200)).unwrap()).unwrap();
    for tag in 0..1_200 {
        lake.put(&format!("tag/tag-t{tag:04}"), snapshot.as_str());
    }
    lake.scan().await;
    lake.assert_quiet_scan_costs(0, 2).await;

    // Beyond one listing: the newest known one, the next one, and for a while the oldest that was taken on trust.
    for _ in 0..900 {
        table.commit("APPEND", 1);
    }
    lake.scan().await;
    lake.assert_quiet_scan_costs(2, 2).await;
    for id in 1_101..1_103 {
        table.commit("APPEND", 1);
        lake.notify(&format!("snapshot/snapshot-{id}")).await;
    }
    lake.assert_quiet_scan_costs(3, 2).await;
}
