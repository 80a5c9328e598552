//! Delta: long logs, tables in place of others, and what a look costs.

mod million;

use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::state::Demands;
use lakebell_domain::version::{Epoch, Ordinal};
use lakebell_engine::watch::Watched;

use super::Lake;

const KEY: &str = "delta://sales/orders";

fn log(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

fn created(id: &str) -> String {
    let metadata = format!(
        r#"{{"metaData":{{"id":"{id}","format":{{"provider":"parquet"}},"schemaString":"{{}}","partitionColumns":[]}}}}"#
    );
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
    format!("{protocol}\n{metadata}\n{}", written(id))
}

fn written(name: &str) -> String {
    let info = format!(r#"{{"commitInfo":{{"timestamp":1,"operation":"WRITE","txnId":"{name}"}}}}"#);
    format!("{info}\n{{\"add\":{{\"path\":\"{name}.parquet\",\"size\":1,\"dataChange\":true}}}}\n")
}

impl Lake {
    fn commit(&self, version: u64, name: &str) {
        self.put(&log(version), if version == 0 { created(name) } else { written(name) });
    }
}

#[tokio::test]
async fn case_78_what_optimising_moves_is_no_new_data() {
    let lake = Lake::new(KEY);
    lake.register().await;
    lake.commit(0, "a");
    lake.notify(&log(0)).await;
    let moved = r#"{"add":{"path":"b.parquet","size":1,"dataChange":false}}
{"remove":{"path":"a.parquet","dataChange":false}}"#;
    lake.put(&log(1), format!("{{\"commitInfo\":{{\"timestamp\":1,\"operation\":\"OPTIMIZE\"}}}}\n{moved}\n"));
    let watched = lake.notify(&log(1)).await;
    assert_eq!(watched.outcomes(), [(EventKind::SnapshotCommitted, Outcome::Maintenance)]);
    let state = lake.state().await;
    assert_eq!((state.table.unwrap().snapshot_id.as_str(), state.data.unwrap().count), ("1", 1));
}

#[tokio::test]
async fn a_commit_costs_one_read_and_a_scan_of_an_unchanged_table_one_listing() {
    let lake = Lake::new(KEY);
    lake.register().await;
    for version in 0..100 {
        lake.commit(version, &format!("c{version}"));
        lake.put(&format!("_delta_log/{version:020}.crc"), "{}");
        lake.requests();
        lake.notify(&log(version)).await;
        assert_eq!(lake.requests(), (1, 0), "version {version}");
    }
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count), (Ordinal(100), 100));
    assert_eq!(state.table.unwrap().snapshot_id, "99");
    lake.assert_quiet_scan_costs(0, 1).await;
    lake.requests();
    lake.notify(&log(99)).await;
    assert_eq!(lake.requests(), (0, 0), "a duplicate is told by its entity tag");
}

#[tokio::test]
async fn a_log_of_a_million_commits_is_never_listed_from_its_start() {
    // What matters of the log: the listing meets whatever it does not jump over.
    let lake = Lake::new(KEY);
    for version in (0..30_000).chain(999_900..=1_000_000) {
        lake.commit(version, &format!("c{version}"));
    }
    lake.put("_delta_log/_last_checkpoint", r#"{"version":999990,"size":1}"#);
    let ports = lake.world.ports();
    let location = format!("s3://{}/{}", crate::support::BUCKET, super::ROOT);
    let spec = serde_json::from_value(serde_json::json!({"key": KEY, "location": location})).unwrap();
    lake.requests();
    lakebell_engine::assets::register(&ports, crate::support::PROJECT, &spec, &crate::support::trace()).await.unwrap();
    let (reads, listings) = lake.requests();
    assert!(reads <= 4 && listings <= 12, "{reads} reads and {listings} listings");
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, "1000000");
    lake.assert_quiet_scan_costs(0, 1).await;

    // Without the hint, and with one that is wrong, it takes more steps.
    for hint in [None, Some(r#"{"version":2000000}"#), Some("no JSON")] {
        let lake = Lake::new(KEY);
        for version in 0..5_000 {
            lake.commit(version, &format!("c{version}"));
        }
        if let Some(hint) = hint {
            lake.put("_delta_log/_last_checkpoint", hint);
        }
        lake.register().await;
        assert_eq!(lake.state().await.table.unwrap().snapshot_id, "4999", "{hint:?}");
    }
}

#[tokio::test]
async fn many_unread_commits_are_all_read_by_one_scan() {
    let lake = Lake::new(KEY);
    lake.register().await;
    for version in 0..1_300 {
        lake.commit(version, &format!("c{version}"));
    }
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count, state.gap), (Ordinal(1_300), 1_300, None));
}

#[tokio::test]
async fn another_table_in_the_same_place_is_a_rewrite_whether_or_not_versions_meet() {
    for versions in [2, 3, 8] {
        let lake = Lake::new(KEY);
        for version in 0..3 {
            lake.commit(version, &format!("old{version}"));
        }
        lake.register().await;
        for version in 0..3 {
            lake.remove(&log(version));
        }
        for version in 0..versions {
            lake.commit(version, &format!("new{version}"));
        }
        lake.notify(&log(versions - 1)).await;
        lake.accept().await;
        let state = lake.state().await;
        assert_eq!((state.epoch, state.position().ordinal), (Epoch(1), Ordinal(versions)), "{versions} versions");
        assert!(state.hold.is_none());
    }
}

#[tokio::test]
async fn a_log_that_goes_on_as_another_table_is_held() {
    let lake = Lake::new(KEY);
    lake.commit(0, "one");
    lake.commit(1, "c1");
    lake.register().await;
    lake.put(&log(2), created("two"));
    lake.notify(&log(2)).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("another table, two"), "{}", hold.evidence);
    lake.accept().await;
    lake.commit(3, "c3");
    lake.notify(&log(3)).await;
    let state = lake.state().await;
    assert_eq!((state.epoch, state.position().ordinal, state.hold), (Epoch(1), Ordinal(4), None));
}

#[tokio::test]
async fn checkpoints_staged_commits_and_files_of_other_formats_are_no_commits() {
    let lake = Lake::new(KEY);
    lake.register().await;
    lake.commit(0, "one");
    lake.commit(1, "two");
    lake.notify(&log(0)).await;
    for relative in [
        "_delta_log/00000000000000000001.checkpoint.parquet",
        "_delta_log/00000000000000000000.00000000000000000001.compacted.json",
        "_delta_log/_staged_commits/00000000000000000002.4cb9708e-b478-44de-b203-53f9ba9b2876.json",
        "_delta_log/_last_checkpoint",
        "_delta_log/.tmp/00000000000000000002.json.x",
        "part-0.parquet",
    ] {
        assert!(matches!(lake.notify(relative).await, Watched::NotACommit), "{relative}");
    }
    for relative in ["metadata/v2.metadata.json", "snapshot/snapshot-1", ".hoodie/20240101000000000.commit"] {
        assert!(matches!(lake.notify(relative).await, Watched::Observed { .. }), "{relative}");
    }
    assert!(lake.state().await.position().ordinal >= Ordinal(1));
    assert_eq!(lake.state().await.hold, None);
}

#[tokio::test]
async fn a_person_is_told_what_a_table_demands() {
    let lake = Lake::new(KEY);
    lake.register().await;
    let protocol = r#"{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["catalogManaged","fromTheFuture"],"writerFeatures":["catalogManaged","fromTheFuture"]}}"#;
    lake.put(
        &log(0),
        format!("{}{protocol}\n", created("one")).replacen(
            r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#,
            "",
            1,
        ),
    );
    lake.notify(&log(0)).await;
    let details = lake.details().join("\n");
    assert!(details.contains("catalog-managed") && details.contains("fromTheFuture"), "{details}");

    // The state says it as long as it is so, and until another protocol says otherwise.
    lake.commit(1, "c1");
    lake.notify(&log(1)).await;
    let demands = lake.state().await.demands;
    assert_eq!(demands, Demands::new(true, &["fromTheFuture".to_owned()]));
    assert_eq!(demands.told().len(), 2);
    lake.put(&log(2), format!("{{\"protocol\":{{\"minReaderVersion\":1,\"minWriterVersion\":2}}}}\n{}", written("c2")));
    lake.notify(&log(2)).await;
    assert_eq!(lake.state().await.demands, Demands::default());
}

#[tokio::test]
async fn what_a_table_demands_is_known_however_late_it_is_registered() {
    let protocol = r#"{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["catalogManaged"],"writerFeatures":["catalogManaged","fromTheFuture"]}"#;
    let expected = Demands::new(true, &["fromTheFuture".to_owned()]);
    for has_checksum in [false, true] {
        let lake = Lake::new(KEY);
        let first = created("one").replacen(r#"{"minReaderVersion":1,"minWriterVersion":2}"#, protocol, 1);
        lake.put(&log(0), first);
        for version in 1..30 {
            lake.commit(version, &format!("c{version}"));
        }
        if has_checksum {
            // The log was cleaned up; the checksum still says it.
            lake.remove(&log(0));
            let checksum = format!(r#"{{"metadata":{{"id":"one","schemaString":"{{}}"}},"protocol":{protocol}}}"#);
            lake.put(&format!("_delta_log/{:020}.crc", 29), checksum);
        }
        lake.register().await;
        let state = lake.state().await;
        assert_eq!((&state.demands, state.table.unwrap().snapshot_id.as_str()), (&expected, "29"));
        lake.commit(30, "c30");
        lake.notify(&log(30)).await;
        assert_eq!(lake.state().await.demands, expected, "commits that do not speak of it change nothing");
        // A table in its place has demands of its own.
        for version in (1..=30).chain((!has_checksum).then_some(0)) {
            lake.remove(&log(version));
        }
        if has_checksum {
            lake.remove(&format!("_delta_log/{:020}.crc", 29));
        }
        lake.commit(0, "two");
        lake.notify(&log(0)).await;
        lake.accept().await;
        assert_eq!((lake.state().await.epoch, lake.state().await.demands), (Epoch(1), Demands::default()));
    }
}

#[tokio::test]
async fn a_coordinated_table_is_reported_until_its_property_goes() {
    let lake = Lake::new(KEY);
    lake.register().await;
    let with = |configuration: &str| {
        format!(r#"{{"metaData":{{"id":"one","schemaString":"{{}}","configuration":{configuration}}}}}"#)
    };
    lake.put(&log(0), with(r#"{"delta.coordinatedCommits.commitCoordinator-preview":"dynamodb"}"#));
    lake.notify(&log(0)).await;
    assert!(lake.state().await.demands.catalog_managed);
    lake.put(&log(1), with("{}"));
    lake.notify(&log(1)).await;
    assert_eq!(lake.state().await.demands, Demands::default());
}

#[tokio::test]
async fn a_checkpoint_of_very_many_parts_before_the_known_commit_is_no_rewrite() {
    let lake = Lake::new(KEY);
    lake.register().await;
    for version in 0..3 {
        lake.commit(version, &format!("c{version}"));
        lake.notify(&log(version)).await;
    }
    for part in 1..=2_500 {
        lake.put(&format!("_delta_log/{:020}.checkpoint.{part:010}.{:010}.parquet", 2, 2_500), "");
    }
    // Notified, and gone before it is read.
    lake.commit(3, "c3");
    let created = lake.created(&log(3));
    lake.remove(&log(3));
    lake.watcher.created(&created, &crate::support::trace()).await.unwrap();
    assert_eq!(lake.state().await.hold, None);
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.hold, state.gap, state.table.unwrap().snapshot_id.as_str()), (None, None, "2"));
}
