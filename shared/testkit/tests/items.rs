//! The store in memory keeps the contract of an item store.

use std::sync::Arc;

use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::items::{Draft, Index, IndexEntry, ItemStore, Key, Range, Write};
use lakebell_testkit::contract::{item_store_contract, no_lost_update};
use lakebell_testkit::{Fault, MemoryItems, Op, SimClock, Tap};

#[tokio::test]
async fn the_contract_holds() {
    item_store_contract(&MemoryItems::new()).await;
}

#[tokio::test]
async fn the_contract_holds_with_short_pages() {
    let items = MemoryItems::new();
    items.limit_pages(2);
    item_store_contract(&items).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_writers_lose_no_update() {
    no_lost_update(Arc::new(MemoryItems::new()), 64, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_with_lost_answers_lose_no_update() {
    let tap = Tap::new();
    let store = tap.on(Arc::new(MemoryItems::new()));
    for nth in [2, 4, 7, 30, 31] {
        tap.fault(Op::Write, nth, Fault::LostAnswer);
    }
    no_lost_update(store, 8, 5).await;
}

#[tokio::test]
async fn a_frozen_index_shows_what_was() {
    let items = MemoryItems::new();
    let attempt = AttemptId::new("a").unwrap();
    let timer = Some(IndexEntry { pk: "S#0".into(), sk: "1".into() });
    let create =
        |sk: &str| Write::Create(Draft { sweep: timer.clone(), ..Draft::new(Key::new("T#1", sk), "{}".into()) });
    items.write(&[create("CUR")], &attempt).await.unwrap();
    items.freeze_indexes();
    items.write(&[Write::Remove(Key::new("T#1", "CUR"), 1), create("DEF")], &attempt).await.unwrap();

    let look = || items.index(Index::Sweep, "S#0", None, false, 10, None);
    assert_eq!(look().await.unwrap().found, [Key::new("T#1", "CUR")]);
    items.thaw_indexes();
    assert_eq!(look().await.unwrap().found, [Key::new("T#1", "DEF")]);
}

#[tokio::test]
async fn expired_items_are_forgotten_only_when_told() {
    let items = MemoryItems::new();
    let clock = SimClock::default();
    let now = lakebell_engine::ports::time::Clock::now(&clock);
    let draft = Draft { expires_at: Some(now), ..Draft::new(Key::new("A#1", "E#1"), "{}".into()) };
    items.write(&[Write::Create(draft)], &AttemptId::new("a").unwrap()).await.unwrap();

    let everything = Range::prefix("A#1", "");
    assert_eq!(items.query(&everything, None, None).await.unwrap().found.len(), 1);
    assert_eq!(items.forget_expired(now), 1);
    assert!(items.query(&everything, None, None).await.unwrap().found.is_empty());
}
