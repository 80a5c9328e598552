//! Declarations that name a snapshot of an Iceberg table.

use std::time::Duration;

use lakebell_domain::target::TargetSpec;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::targets;
use serde_json::{Value, json};

use super::{Draft, KEY, table};
use crate::support::{PROJECT, target_id, trace};

fn spec(more: &Value) -> TargetSpec {
    let mut document = json!({
        "name": "t", "workflowDefinitionCode": 11, "groups": [{"name": "g", "dependencies": [{"asset": KEY}]}],
    });
    for (key, value) in more.as_object().unwrap() {
        document[key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

/// A table with a target that begins at a snapshot, a month later: the events are forgotten, old metadata files are
/// deleted, snapshots expired.
async fn aged(declared: &Value) -> super::Lake {
    let (lake, mut draft) = table(3).await;
    let ports = lake.world.quiet_ports();
    targets::declare(&ports, PROJECT, &spec(declared), &trace()).await.unwrap();
    lake.world.clock.advance(Duration::from_hours(24 * 30));
    lake.world.items.forget_expired(lake.world.clock.now());
    let file = draft.append(&lake, 3);
    lake.notify(&file).await;
    for old in ["00000-a", "00001-a", "00002-a"] {
        lake.remove(&format!("metadata/{old}.metadata.json"));
    }
    lake
}

#[tokio::test]
async fn the_same_file_can_be_applied_again_when_its_start_is_long_gone() {
    let lake = aged(&json!({"startFrom": "1001"})).await;
    let ports = lake.world.quiet_ports();
    let again = targets::declare(&ports, PROJECT, &spec(&json!({"startFrom": "1001"})), &trace()).await;
    assert!(again.is_ok(), "the same: {again:?}");
}

#[tokio::test]
async fn another_policy_can_be_declared_when_the_start_is_long_gone() {
    let lake = aged(&json!({"startFrom": "1001"})).await;
    let ports = lake.world.quiet_ports();
    let more = json!({"startFrom": "1001", "quietPeriod": "5m"});
    let altered = targets::declare(&ports, PROJECT, &spec(&more), &trace()).await;
    assert!(altered.is_ok(), "altered: {altered:?}");
}

#[tokio::test]
async fn a_target_stays_valid_when_its_start_is_long_gone() {
    let lake = aged(&json!({"startFrom": "1001", "groups": [
        {"name": "g", "dependencies": [{"asset": KEY}]},
        {"name": "some", "dependencies": [{"asset": "paimon://ods_db/ods_*"}]},
    ]}))
    .await;
    let ports = lake.world.quiet_ports();
    targets::take_in(&ports, &target_id("t"), &trace()).await.unwrap();
    let explained = targets::explain(&ports, &[target_id("t")]).await.unwrap().remove(0);
    let problem = explained.definition.target.invalid;
    assert_eq!(problem, None);
}

#[tokio::test]
async fn a_snapshot_of_another_history_is_refused() {
    for more in [
        json!({"startFrom": "1001"}),
        json!({"groups": [{"name": "g", "dependencies": [{"asset": KEY, "minSnapshotId": "1001"}]}]}),
    ] {
        let (lake, _) = table(3).await;
        let ports = lake.world.quiet_ports();
        for old in ["00000-a", "00001-a", "00002-a"] {
            lake.remove(&format!("metadata/{old}.metadata.json"));
        }
        let mut other = Draft::new();
        other.uuid = "11111111-4c4e-412a-9119-bd72cf73c9ba".to_owned();
        for (number, id) in [(0, 7_000), (1, 7_001), (2, 7_002)] {
            other.add("main", id, "append");
            other.write(&lake, &format!("{number:05}-b"));
        }
        lake.accept().await;
        let state = lake.state().await;
        assert_eq!(state.epoch.0, 1);
        let declared = targets::declare(&ports, PROJECT, &spec(&more), &trace()).await;
        assert!(declared.is_err(), "{more}: {:?}", declared.map(|d| d.definition.target.groups));
    }
}

#[tokio::test]
async fn a_start_counts_for_the_tables_of_a_prefix_too() {
    let (lake, _) = table(4).await;
    let ports = lake.world.quiet_ports();
    let more = json!({"startFrom": "1001", "groups": [
        {"name": "g", "dependencies": [{"asset": "iceberg://sales/ord*"}]}]});
    let declared = targets::declare(&ports, PROJECT, &spec(&more), &trace()).await;
    // Refused, or honoured.
    let takes = |d: &targets::Declared| d.evaluated.as_ref().map(|e| e.evaluation.takes.clone()).unwrap_or_default();
    let from = |d: &targets::Declared| Some(takes(d).first()?.from.as_ref()?.snapshot_id.to_string());
    // Refused, or honoured: the range begins after the snapshot before it.
    assert!(declared.is_err() || declared.as_ref().is_ok_and(|d| from(d).is_some()), "{:?}", takes(&declared.unwrap()));
}
