//! What names a snapshot of an Iceberg table: verdicts, done partitions and tags.

use lakebell_domain::event::EventKind;
use lakebell_domain::reason::Verdict;
use lakebell_domain::version::Ordinal;
use lakebell_engine::evaluate::Explained;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::push::{self, Facts, Named, Pushed};
use lakebell_engine::targets;
use serde_json::{Value, json};

use super::{Draft, KEY, Lake, table};
use crate::support::{PROJECT, target_id, trace};

/// A target on the table with a condition.
async fn declared(lake: &Lake, condition: &Value) {
    let mut dependency = json!({"asset": KEY});
    dependency.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
    let document = json!({"name": "t", "workflowDefinitionCode": 11, "groups": [{"dependencies": [dependency]}]});
    let spec = serde_json::from_value(document).unwrap();
    targets::declare(&lake.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
}

async fn push(lake: &Lake, kind: EventKind, facts: Facts) -> String {
    let id = format!("{kind} {:?} {:?}", facts.snapshot_id, facts.partition);
    let asset = Named::Key(KEY.parse().unwrap());
    let pushed = Pushed { id, source: "writer".to_owned(), kind, time: Some(lake.world.clock.now()), asset, facts };
    format!("{:?}", push::push(&lake.world.quiet_ports(), &pushed, &trace()).await.map(|accepted| accepted.receipt))
}

async fn verdict(lake: &Lake, snapshot: &str) -> String {
    let facts = Facts { check: Some("rows".into()), snapshot_id: Some(snapshot.to_owned()), ..Facts::default() };
    push(lake, EventKind::QualityCheckPassed, facts).await
}

async fn done(lake: &Lake, snapshot: &str) -> String {
    let facts = Facts { partition: Some("dt=1".into()), snapshot_id: Some(snapshot.to_owned()), ..Facts::default() };
    push(lake, EventKind::PartitionDone, facts).await
}

async fn explained(lake: &Lake) -> Explained {
    targets::explain(&lake.world.quiet_ports(), &[target_id("t")]).await.unwrap().remove(0)
}

/// The snapshot that the open trigger took.
async fn taken(lake: &Lake) -> Option<String> {
    let explained = explained(lake).await;
    Some(explained.evaluation.open_takes.first()?.to.as_ref()?.snapshot_id.to_string())
}

/// Writes the metadata again, with nothing but a property changed.
async fn set_property(lake: &Lake, draft: &mut Draft, number: u64) {
    let file = draft.write(lake, &format!("{number:05}-a"));
    lake.notify(&file).await;
}

#[tokio::test]
async fn a_verdict_counts_for_the_commit_that_made_its_snapshot() {
    // How many of the files after it change a property, and how many snapshots come after those.
    for (properties, appends) in [(0, 0), (1, 0), (3, 0), (1, 1), (2, 1)] {
        let (lake, mut draft) = table(1).await;
        declared(&lake, &json!({"qualityStatus": "PASSED"})).await;
        let file = draft.append(&lake, 1);
        lake.notify(&file).await;
        for number in 2..2 + properties {
            set_property(&lake, &mut draft, number).await;
        }
        for number in 2 + properties..2 + properties + appends {
            draft.add("main", 5_000, "overwrite");
            let file = draft.write(&lake, &format!("{number:05}-a"));
            lake.notify(&file).await;
        }
        let receipt = verdict(&lake, "1001").await;
        assert_eq!(taken(&lake).await.as_deref(), Some("1001"), "{properties} {appends}: {receipt}");
        assert_eq!(explained(&lake).await.evaluation.open_takes[0].to.as_ref().unwrap().position.ordinal, Ordinal(2));
    }
}

#[tokio::test]
async fn a_done_partition_may_name_any_recorded_commit() {
    // A change of a property after it, and other commits.
    for (properties, appends) in [(0, 0), (1, 0), (0, 1), (1, 2)] {
        let (lake, mut draft) = table(1).await;
        declared(&lake, &json!({"partition": "dt"})).await;
        let file = draft.append(&lake, 1);
        lake.notify(&file).await;
        for number in 2..2 + properties {
            set_property(&lake, &mut draft, number).await;
        }
        for number in 2 + properties..2 + properties + appends {
            let file = draft.append(&lake, number);
            lake.notify(&file).await;
        }
        let receipt = done(&lake, "1001").await;
        assert!(explained(&lake).await.evaluation.open.is_some(), "{properties} {appends}: {receipt}");
    }
}

#[tokio::test]
async fn a_done_partition_of_an_unknown_commit_is_refused_with_the_reason() {
    let (lake, _) = table(2).await;
    declared(&lake, &json!({"partition": "dt"})).await;
    let receipt = done(&lake, "77").await;
    assert!(receipt.contains("snapshot 77 is not among the newest recorded ones of this iceberg table"), "{receipt}");
    assert_eq!(explained(&lake).await.evaluation.verdict, Verdict::Waiting);
}

async fn look(lake: &Lake, file: &str) {
    lake.world.clock.advance(std::time::Duration::from_secs(1));
    lake.notify(file).await;
    lake.scan().await;
}

async fn tags(lake: &Lake) -> Vec<(String, String, u64)> {
    let tags = lake.state().await.tags.into_iter();
    tags.map(|(name, entry)| (name, entry.snapshot_id, entry.position.ordinal.0)).collect()
}

fn named(name: &str, id: &str, ordinal: u64) -> (String, String, u64) {
    (name.to_owned(), id.to_owned(), ordinal)
}

#[tokio::test]
async fn a_tag_on_an_older_version_is_a_tag() {
    let (lake, mut draft) = table(1).await;
    declared(&lake, &json!({"tag": "daily-*"})).await;
    for number in 1..4 {
        let file = draft.append(&lake, number);
        lake.notify(&file).await;
    }
    // As after a check of snapshot 1002, while the table goes on.
    draft.tag("daily-1", 1_002);
    let file = draft.write(&lake, "00004-a");
    look(&lake, &file).await;
    assert_eq!(tags(&lake).await, [named("daily-1", "1002", 3)]);
    lakebell_engine::evaluate::evaluate_one(&lake.world.quiet_ports(), &target_id("t"), &trace()).await.unwrap();
    assert_eq!(taken(&lake).await.as_deref(), Some("1002"));
}

#[tokio::test]
async fn a_tag_stands_where_it_was_moved_to() {
    let (lake, mut draft) = table(3).await;
    draft.tag("daily", 1_002);
    let file = draft.write(&lake, "00003-a");
    look(&lake, &file).await;
    assert_eq!(tags(&lake).await, [named("daily", "1002", 3)]);
    draft.tag("daily", 1_001);
    let file = draft.write(&lake, "00004-a");
    look(&lake, &file).await;
    assert_eq!(tags(&lake).await, [named("daily", "1001", 2)], "back");
    draft.tag("daily", 1_005).tag("other", 1_002).add("main", 1_005, "append");
    let file = draft.write(&lake, "00005-a");
    look(&lake, &file).await;
    assert_eq!(tags(&lake).await, [named("daily", "1005", 6), named("other", "1002", 3)], "onwards");
    draft.refs.remove("daily");
    let file = draft.write(&lake, "00006-a");
    look(&lake, &file).await;
    assert_eq!(tags(&lake).await, [named("other", "1002", 3)], "away");
}

#[tokio::test]
async fn a_tag_on_what_is_no_recorded_version_is_told_once_with_the_reason() {
    let (lake, mut draft) = table(2).await;
    draft.tag("daily", 1_001);
    draft.set("audit", 1_000).add("audit", 7_000, "append");
    let file = draft.write(&lake, "00002-a");
    look(&lake, &file).await;
    draft.tag("daily", 7_000).tag("lost", 77);
    let file = draft.write(&lake, "00003-a");
    look(&lake, &file).await;
    for number in 4..8 {
        let file = draft.append(&lake, number);
        look(&lake, &file).await;
    }
    assert_eq!(tags(&lake).await, [], "it names the version no more that it named");
    let told = lake.world.items.dump().into_iter().filter(|item| item.key.sk.starts_with("E#TAG_CREATED#"));
    let told = told.map(|item| item.doc).filter(|event| event.contains("counts for no version"));
    let mut told: Vec<String> = told.collect();
    told.sort();
    assert_eq!(told.len(), 2, "{told:#?}");
    let all = told.join("\n");
    assert!(all.contains("tag daily counts for no version: snapshot 7000 is not on the line of this branch"), "{all}");
    assert!(all.contains("tag lost counts for no version: snapshot 77 is no commit that is recorded of late"), "{all}");
}

/// A commit to a table that has hundreds of tags costs no more for them, and they are told of no more.
#[tokio::test]
async fn tags_that_were_there_before_are_not_told() {
    let lake = Lake::new(KEY);
    let mut draft = Draft::new();
    for number in 0..3 {
        draft.append(&lake, number);
    }
    for n in 0..300 {
        draft.tag(&format!("old-{n}"), 1_000);
    }
    draft.tag("on-the-newest", 1_003).append(&lake, 3);
    lake.register().await;
    let file = draft.append(&lake, 4);
    lake.requests();
    lake.notify(&file).await;
    assert_eq!(lake.requests(), (1, 1), "nothing is new of the tags");
    draft.tag("new", 1_004);
    let file = draft.write(&lake, "00005-a");
    lake.requests();
    lake.notify(&file).await;
    assert_eq!(lake.requests(), (2, 1), "the file before it tells which of them is new");
    draft.tag("older", 1_000);
    let file = draft.write(&lake, "00006-a");
    look(&lake, &file).await;
    assert_eq!(tags(&lake).await, [named("new", "1004", 5)]);
    let told = lake.world.items.dump().into_iter().filter(|item| item.key.sk.starts_with("E#TAG_CREATED#"));
    assert_eq!(told.count(), 2, "the new one, and that `older` counts for no version");
}

#[tokio::test]
async fn a_tag_with_a_long_name_stops_no_table() {
    for length in [200, 900, 1_024] {
        let (lake, mut draft) = table(2).await;
        draft.tag(&"x".repeat(length), 1_001);
        let file = draft.append(&lake, 2);
        let looked = lake.watcher.created(&lake.created(&file), &trace()).await;
        assert!(looked.is_ok(), "{length}: {}", looked.unwrap_err());
        assert_eq!(lake.state().await.table.unwrap().snapshot_id, "1002", "{length}");
    }
}
