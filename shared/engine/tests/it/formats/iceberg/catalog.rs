//! Iceberg with a catalog that is asked: what is a commit, when, what that costs, and what happens
//! while it does not answer.

use lakebell_domain::event::{Event, Outcome, Source};
use lakebell_domain::state::TroubleCode;
use lakebell_engine::observe::{self, Hint, Look};
use lakebell_engine::ports::queue::Message;
use lakebell_testkit::Op;

use super::super::ROOT;
use super::*;
use crate::support::{BUCKET, trace};

impl Lake {
    async fn register_in_catalog(&self) {
        let rest = json!({"catalog": {"type": "rest", "url": "https://catalog.internal"}});
        self.try_register_with(self.key, &rest).await.expect("register");
    }

    fn point(&self, relative: &str) {
        let url = format!("s3://{BUCKET}/{ROOT}/{relative}");
        self.world.catalogs.point(&self.key.parse().unwrap(), &url);
    }

    /// Questions to the catalog, reads and listings since the last time.
    fn calls(&self) -> [usize; 3] {
        let calls = self.world.tap.take_log();
        [Op::Catalog, Op::Read, Op::List].map(|op| calls.iter().filter(|call| call.op == op).count())
    }

    /// Carries the messages that wait.
    async fn carry(&self) -> usize {
        let messages = self.world.queue.drain();
        for message in &messages {
            let Message::Observe { asset, is_again, .. } = message else { continue };
            let source = if *is_again { Source::Notify } else { Source::Poll };
            let hint = Hint { asset: *asset, look: Look::Whole, source, trace: trace() };
            observe::observe(&self.world.ports(), &hint).await.expect("a look");
        }
        messages.len()
    }

    fn events(&self) -> Vec<Event> {
        let items = self.world.items.dump();
        let events = items.iter().filter(|item| item.key.sk.starts_with("E#"));
        events.filter_map(|item| serde_json::from_str(&item.doc).ok()).collect()
    }
}

/// A table in a catalog, with so many appends, each pointed to and then notified.
async fn in_catalog(appends: u64) -> (Lake, Draft) {
    let lake = Lake::new(KEY);
    let mut draft = Draft::new();
    for number in 0..appends {
        let file = draft.append(&lake, number);
        lake.point(&file);
        if number == 0 {
            lake.register_in_catalog().await;
        }
        lake.notify(&file).await;
    }
    (lake, draft)
}

#[tokio::test]
async fn a_commit_costs_a_question_and_a_read_and_a_scan_of_an_unchanged_table_a_question() {
    let (lake, mut draft) = in_catalog(150).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count), (Ordinal(150), 150));
    assert!(!state.without_catalog);
    let file = draft.append(&lake, 150);
    lake.point(&file);
    let ops = |lake: &Lake| lake.world.tap.take_log().into_iter().map(|call| call.op).collect::<Vec<_>>();
    ops(&lake);
    lake.notify(&file).await;
    assert_eq!(ops(&lake), [Op::Query, Op::Catalog, Op::Read, Op::Write]);
    lake.notify(&file).await;
    assert_eq!(lake.calls(), [0, 0, 0], "a duplicate is told by its entity tag");
    lake.assert_quiet_scan_costs(0, 0).await;
    lake.scan().await;
    assert_eq!(lake.calls(), [1, 0, 0]);
    assert!(lake.world.queue.is_empty());
}

#[tokio::test]
async fn a_file_counts_once_the_catalog_names_it() {
    let (lake, mut draft) = in_catalog(3).await;
    let file = draft.append(&lake, 3);
    lake.calls();
    let watched = lake.notify(&file).await;
    assert_eq!(lake.calls(), [1, 0, 0], "it cannot be current yet");
    assert_eq!(watched.outcomes()[0].1, Outcome::Duplicate);
    assert_eq!(lake.state().await.position().ordinal, Ordinal(3));
    lake.point(&file);
    assert_eq!(lake.carry().await, 1, "the catalog is asked once more");
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count), (Ordinal(4), 4));
    let newest = lake.events().into_iter().filter(|event| event.commit.is_some()).max_by_key(|event| event.position);
    assert_eq!(newest.unwrap().source, Source::Notify, "no notification missed it");
    assert_eq!(lake.carry().await, 0);
}

#[tokio::test]
async fn a_file_that_the_catalog_never_names_is_asked_for_once_and_waits_for_a_scan() {
    let (lake, mut draft) = in_catalog(3).await;
    let file = draft.append(&lake, 3);
    lake.notify(&file).await;
    assert_eq!((lake.carry().await, lake.carry().await), (1, 0));
    lake.assert_quiet_scan_costs(0, 0).await;
    lake.point(&file);
    lake.scan().await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(4));
}

#[tokio::test]
async fn a_loser_that_comes_after_the_winner_is_reported_and_counts_nothing() {
    let (lake, draft) = in_catalog(3).await;
    let (mut winner, mut loser) = (draft.clone(), draft);
    let lost = loser.add("main", 9_000, "append").write(&lake, "00003-x");
    let won = winner.append(&lake, 3);
    lake.point(&won);
    lake.notify(&won).await;
    let watched = lake.notify(&lost).await;
    let expected = "00003-x.metadata.json is no commit: it lost a race";
    assert!(matches!(&watched.outcomes()[0].1, Outcome::Ignored(reason) if reason.contains(expected)), "{watched:?}");
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.hold, state.epoch), (Ordinal(4), None, Epoch(0)));
    let told = lake.events().into_iter().filter(|event| event.token.starts_with("lost.")).count();
    assert_eq!(told, 1);
    lake.calls();
    lake.notify(&lost).await;
    assert_eq!(lake.calls(), [0, 0, 0], "it is known by now");
    assert!(lake.world.queue.is_empty());
}

#[tokio::test]
async fn a_loser_that_comes_before_the_winner_is_reported_with_its_commit() {
    let (lake, draft) = in_catalog(3).await;
    let (mut winner, mut loser) = (draft.clone(), draft);
    let lost = loser.add("main", 9_000, "append").write(&lake, "00003-x");
    lake.notify(&lost).await;
    let won = winner.append(&lake, 3);
    lake.point(&won);
    lake.notify(&won).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.hold, state.data.unwrap().count), (Ordinal(4), None, 4));
    let details = lake.details().join("\n");
    assert!(details.contains("00003-x.metadata.json, which lost a race"), "{details}");
    lake.carry().await;
    lake.assert_quiet_scan_costs(0, 0).await;
}

#[tokio::test]
async fn every_commit_between_two_looks_counts_also_over_several_goes() {
    let (lake, mut draft) = in_catalog(1).await;
    let mut newest = String::new();
    for number in 1..90 {
        newest = draft.append(&lake, number);
    }
    lake.point(&newest);
    lake.notify(&newest).await;
    lake.carry().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count, state.gap), (Ordinal(90), 90, None));
}

#[tokio::test]
async fn files_that_were_removed_between_are_a_gap() {
    let (lake, mut draft) = in_catalog(2).await;
    for number in 2..5 {
        draft.append(&lake, number);
    }
    for number in 2..4 {
        lake.remove(&format!("metadata/{number:05}-a.metadata.json"));
    }
    lake.point("metadata/00004-a.metadata.json");
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.hold), (Ordinal(5), None));
    assert_eq!(state.gap.map(|gap| (gap.first, gap.last)), Some((Ordinal(3), Ordinal(4))));
}

#[tokio::test]
async fn while_the_catalog_is_away_it_is_said_and_tried_again() {
    let (lake, mut draft) = in_catalog(2).await;
    let file = draft.append(&lake, 2);
    lake.point(&file);
    lake.world.catalogs.fail(Some(lakebell_engine::ErrorKind::Unavailable));
    let hint = Hint { asset: lake.id().await, look: Look::Whole, source: Source::Poll, trace: trace() };
    for _ in 0..2 {
        let error = observe::observe(&lake.world.ports(), &hint).await.expect_err("away");
        assert!(error.retryable(), "{error}");
    }
    let state = lake.state().await;
    assert_eq!(state.trouble.as_ref().unwrap().code, TroubleCode::CatalogAway);
    assert_eq!((state.position().ordinal, state.hold), (Ordinal(2), None));
    lake.world.catalogs.fail(None);
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.trouble), (Ordinal(3), None));
}

#[tokio::test]
async fn trouble_with_the_catalog_is_never_a_rewrite() {
    for (kind, code) in [
        (lakebell_engine::ErrorKind::Denied, TroubleCode::CatalogRefused),
        (lakebell_engine::ErrorKind::NotFound, TroubleCode::NotInCatalog),
        (lakebell_engine::ErrorKind::Damaged, TroubleCode::CatalogUnclear),
    ] {
        let (lake, _) = in_catalog(2).await;
        lake.world.catalogs.fail(Some(kind));
        for _ in 0..3 {
            lake.scan().await;
            lake.world.clock.advance(std::time::Duration::from_secs(61));
        }
        let state = lake.state().await;
        assert_eq!(state.trouble.as_ref().map(|trouble| trouble.code), Some(code));
        assert_eq!((state.hold.is_none(), state.epoch, state.position().ordinal), (true, Epoch(0), Ordinal(2)));
        lake.world.catalogs.fail(None);
        lake.scan().await;
        assert_eq!(lake.state().await.trouble, None);
    }
}

#[tokio::test]
async fn a_pointer_to_nowhere_is_trouble() {
    let (lake, _) = in_catalog(2).await;
    lake.point("metadata/00009-gone.metadata.json");
    lake.scan().await;
    let trouble = lake.state().await.trouble.expect("trouble");
    assert_eq!(trouble.code, TroubleCode::CatalogUnclear);
    assert!(trouble.detail.contains("00009-gone.metadata.json, which is not there"), "{}", trouble.detail);
    lake.world.catalogs.point(&KEY.parse().unwrap(), "hdfs://x/y");
    lake.scan().await;
    assert!(lake.state().await.trouble.unwrap().detail.contains("no file in S3"));
}

#[tokio::test]
async fn a_table_that_the_catalog_does_not_know_yet_is_read_once_it_does() {
    let lake = Lake::new(KEY);
    lake.register_in_catalog().await;
    assert_eq!(lake.state().await.trouble.map(|trouble| trouble.code), Some(TroubleCode::NotInCatalog));
    let mut draft = Draft::new();
    let file = draft.append(&lake, 0);
    lake.point(&file);
    lake.notify(&file).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.trouble), (Ordinal(1), None));
}

#[tokio::test]
async fn a_rollback_is_held_and_one_that_is_taken_back_is_not() {
    let (lake, mut draft) = in_catalog(4).await;
    let back = draft.set("main", 1_001).write(&lake, "00004-a");
    lake.point(&back);
    lake.notify(&back).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("main is at snapshot 1001"), "{}", hold.evidence);
    lake.world.catalogs.fail(Some(lakebell_engine::ErrorKind::Denied));
    lake.scan().await;
    assert!(lake.state().await.hold.is_some(), "a catalog that refuses withdraws nothing");
    lake.world.catalogs.fail(None);
    lake.accept().await;
    let state = lake.state().await;
    assert_eq!((state.epoch, state.hold, state.table.unwrap().snapshot_id.as_str()), (Epoch(1), None, "1001"));
}

#[tokio::test]
async fn an_older_file_than_the_known_one_is_a_rewrite_only_if_its_data_is_older() {
    let (lake, mut draft) = in_catalog(3).await;
    let property = draft.write(&lake, "00003-a");
    lake.point(&property);
    lake.notify(&property).await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(4));
    lake.point("metadata/00002-a.metadata.json");
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.hold), (Ordinal(4), None), "the branch is where it was");
    lake.point("metadata/00001-a.metadata.json");
    lake.scan().await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("the catalog names 00001-a.metadata.json"), "{}", hold.evidence);
    lake.point(&property);
    lake.scan().await;
    assert_eq!(lake.state().await.hold, None, "an answer that was stale is taken back");
}

#[tokio::test]
async fn another_table_in_the_place_is_held() {
    let (lake, _) = in_catalog(3).await;
    let mut other = Draft { uuid: "00000000-0000-4000-8000-000000000001".to_owned(), updated: 99_000, ..Draft::new() };
    let file = other.append(&lake, 0);
    // The same name as before, as after a drop with purge.
    assert_eq!(file, "metadata/00000-a.metadata.json");
    lake.point(&file);
    lake.scan().await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("of another table"), "{}", hold.evidence);
    lake.accept().await;
    assert_eq!((lake.state().await.epoch, lake.state().await.position().ordinal), (Epoch(1), Ordinal(1)));
}

#[tokio::test]
async fn metadata_may_lie_elsewhere_and_be_called_anything() {
    let lake = Lake::new(KEY);
    lake.world.storage.make_bucket("meta-bucket");
    let elsewhere = |lake: &Lake, name: &str, from: &str| {
        let bytes = lake.world.storage.get_now(BUCKET, &format!("{ROOT}/{from}")).unwrap();
        lake.remove(from);
        lake.world.storage.put("meta-bucket", &format!("orders/{name}"), bytes);
        lake.world.catalogs.point(&KEY.parse().unwrap(), &format!("s3a://meta-bucket/orders/{name}"));
    };
    let mut draft = Draft::new();
    let first = draft.append(&lake, 0);
    elsewhere(&lake, "first.json", &first);
    draft.log = vec!["s3a://meta-bucket/orders/first.json".to_owned()];
    lake.register_in_catalog().await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(2), "without a number the first one is 1");
    let second = draft.append(&lake, 1);
    elsewhere(&lake, "second.json", &second);
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count, state.trouble), (Ordinal(3), 2, None));
}

#[tokio::test]
async fn a_table_read_without_a_catalog_goes_on_with_one() {
    let (lake, draft) = table(3).await;
    assert!(lake.state().await.without_catalog);
    let (mut winner, mut loser) = (draft.clone(), draft);
    let lost = loser.add("main", 9_000, "append").write(&lake, "00003-x");
    lake.notify(&lost).await;
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, "9000", "nothing told that it loses");
    let won = winner.append(&lake, 3);
    lake.point(&won);
    lake.register_in_catalog().await;
    let state = lake.state().await;
    assert!(!state.without_catalog);
    assert!(state.hold.expect("a hold").evidence.contains("00003-x.metadata.json lost a race"));
}

#[tokio::test]
async fn branches_are_assets_of_their_own_in_a_catalog_too() {
    let (lake, mut draft) = in_catalog(2).await;
    let rest = json!({"catalog": {"type": "rest", "url": "https://catalog.internal"}});
    let audit = lake.try_register_with("iceberg://sales/orders@audit", &rest).await.unwrap().id;
    let cut = draft.set("audit", 1_001).write(&lake, "00002-a");
    lake.point(&cut);
    lake.notify(&cut).await;
    let written = draft.add("audit", 5_000, "append").write(&lake, "00003-a");
    lake.point(&written);
    lake.notify(&written).await;
    let state = assets::head(&lake.world.quiet_ports(), audit).await.unwrap().value.state;
    assert_eq!((state.table.unwrap().snapshot_id.as_str(), state.data.unwrap().count), ("5000", 1));
    assert_eq!(lake.state().await.data.unwrap().count, 2, "main has not moved");
}

#[tokio::test]
async fn the_watermark_is_the_property_that_is_named() {
    let lake = Lake::new(KEY);
    let mut draft = Draft::new();
    draft.add("main", 1_000, "append");
    draft.snapshots[0]["summary"]["flink.watermark"] = json!("1767225600000");
    draft.write(&lake, "00000-a");
    lake.try_register_with(KEY, &json!({"watermarkProperty": "flink.watermark"})).await.unwrap();
    assert_eq!(lake.state().await.watermark.map(|watermark| watermark.at.0), Some(1_767_225_600_000));
    for (key, name, value) in [
        ("delta://sales/orders", "watermarkProperty", json!("x")),
        ("paimon://sales/orders", "catalog", json!("hadoop")),
        (KEY, "watermarkProperty", json!("")),
    ] {
        let error = Lake::new(KEY).try_register_with(key, &json!({name: value})).await.expect_err(key);
        assert_eq!(error.about("field"), Some(name), "{error}");
    }
}
