//! pypaimon's commits together with pushes that race them: of the commit that is not there yet, of the one that is
//! being looked at, of one long gone, in several forms at once. What is recorded is what was committed, each once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use lakebell_domain::event::EventKind;
use lakebell_engine::rules::Records;
use lakebell_scheduler_standin::Profile;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::scene;
use crate::support::{Scene, Table, Writer, until};

const COMMITS: u64 = 12;
/// Who pushes at the same time.
const PUSHERS: u64 = 3;

/// A report of a snapshot: as a `CloudEvent`, by OpenLineage, or as a check of it.
fn reports(table: &Table, pusher: u64, turn: u64, snapshot: u64) -> [(&'static str, Value); 3] {
    let id = format!("{pusher}.{turn}");
    let event = |kind: &str, data: Value| {
        json!({"specversion": "1.0", "id": format!("{kind}.{id}"), "source": "race", "time": "2026-01-15T10:00:00Z",
            "type": format!("io.lakebell.{kind}.v1"), "data": data})
    };
    let committed = event(
        "snapshot.committed",
        json!({"asset": table.asset, "snapshotId": snapshot.to_string(), "extra": {format!("by{pusher}"): turn}}),
    );
    let checked = event(
        "quality.check.passed",
        json!({"asset": table.asset, "snapshotId": snapshot.to_string(), "check": "rows"}),
    );
    let lineage = json!({
        "eventType": "COMPLETE", "eventTime": format!("2026-01-15T10:{:02}:{:02}Z", turn / 60 % 60, turn % 60),
        "producer": "race", "run": {"runId": format!("0190a1b2-c3d4-7e5f-8a9b-{pusher:04}{turn:08}")},
        "job": {"namespace": "race", "name": "job"}, "inputs": [],
        "outputs": [{"namespace": format!("s3://{}", table.bucket), "name": table.prefix,
            "facets": {"version": {"datasetVersion": snapshot.to_string()}}}],
    });
    [("events", committed), ("lineage", lineage), ("events", checked)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_that_race_the_commits_of_a_real_writer_make_each_one_event_and_invent_none() {
    let scene = scene!("races");
    let Some(mut writer) = Writer::start() else { return };
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let table = scene.table("orders");
    writer.create(&scene.name, "orders").await;
    scene.register(&[&table]).await;
    let workflow = scheduler.define(scene.project, "dwd");
    scene.declare(&Scene::target(&scheduler.connection, "dwd", workflow, &json!("all"), &[&table])).await;

    let (scene, table) = (Arc::new(scene), Arc::new(table));
    let (newest, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut pushing = JoinSet::new();
    for pusher in 0..PUSHERS {
        let (scene, table) = (Arc::clone(&scene), Arc::clone(&table));
        let (newest, is_over) = (Arc::clone(&newest), Arc::clone(&is_over));
        pushing.spawn(async move {
            let mut pushed = 0;
            let mut turn = 0;
            while !is_over.load(Ordering::Acquire) {
                // Of the next commit, of the newest, and of those before it.
                let snapshot = (newest.load(Ordering::Acquire) + 1).saturating_sub((turn + pusher) % 3).max(1);
                for (route, report) in reports(&table, pusher, turn, snapshot) {
                    let answer = match route {
                        "events" => scene.post("/asset-events", &report).await,
                        _ => scene.call(reqwest::Method::POST, "/api/v1/lineage", Some(&report)).await,
                    };
                    assert!((200..300).contains(&answer.status), "{} {}", answer.status, answer.body);
                    pushed += 1;
                }
                turn += 1;
            }
            pushed
        });
    }
    let mut commits = BTreeMap::new();
    for number in 1..=COMMITS {
        let made = writer.append(&scene.name, "orders", 1).await;
        assert_eq!(made["snapshotId"].as_u64(), Some(number));
        newest.store(number, Ordering::Release);
        commits.insert(number, made);
    }
    is_over.store(true, Ordering::Release);
    let pushed: u64 = pushing.join_all().await.into_iter().sum();
    scene.reaches(&table, COMMITS).await;
    scene.hints_are_handled().await;
    until("every trigger to end", Duration::from_mins(1), async || {
        let triggers = scene.triggers("dwd").await;
        let is_at_rest = scene.why("dwd").await["verdict"] == "WAITING";
        let is_done = is_at_rest && triggers.iter().all(|trigger| trigger["triggerStatus"] == "SUCCESS");
        if is_done { Ok(()) } else { Err(triggers.len()) }
    })
    .await;

    // One event for each commit, whoever told of it first, and none for what was told before it was there.
    let records = scene.records().await;
    let (id, head) = records.assets.iter().next().unwrap();
    let kept: Vec<_> = scene.kept_events(*id).await;
    let taken = kept.iter().filter(|event| event.kind == EventKind::SnapshotCommitted && event.mark().is_some());
    let mut ordinals: Vec<u64> = taken.map(|event| event.position.unwrap().ordinal.0).collect();
    ordinals.sort_unstable();
    assert_eq!(ordinals, (1..=COMMITS).collect::<Vec<_>>());
    let data = head.state.data.as_ref().unwrap();
    assert_eq!((head.state.position().ordinal.0, data.count, data.delta_records), (COMMITS, COMMITS, 12));
    assert_eq!(head.state.hold, None, "no race is a rewrite");
    let starts = scheduler.look(|world| {
        let keys = world.instances.values().map(|found| found.params["lakebell_trigger_key"].parse().unwrap());
        keys.collect::<Vec<_>>()
    });
    let assets = records.definitions.iter().flat_map(|(target, definition)| {
        definition.target.assets().into_keys().map(|asset| ((target.clone(), asset), None)).collect::<Vec<_>>()
    });
    let wrong = [
        Records::started_once(&starts),
        records.in_order(),
        records.ranges_tile(&assets.collect()),
        records.nothing_left(&[]),
    ]
    .concat();
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{COMMITS} commits, {pushed} pushes beside them, {} starts", starts.len());
}
