//! Storage, queue, clock, and the tap before the ports.

#![allow(clippy::expect_used, reason = "a helper of tests")]

use std::time::Duration;

use lakebell_domain::ids::{AssetId, AttemptId, TraceId};
use lakebell_engine::ErrorKind;
use lakebell_engine::ports::items::{Draft, Key, Write, Written};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::storage::{Listing, TableStorage};
use lakebell_engine::ports::time::{Clock, Random};
use lakebell_testkit::{Fault, MemoryStorage, Op, SeededRandom, SimClock, World};

fn create(sk: &str) -> Write {
    Write::Create(Draft::new(Key::new("A#1", sk), "{}".to_owned()))
}

fn attempt() -> AttemptId {
    "a".parse().expect("a valid id")
}

#[tokio::test]
async fn storage_lists_by_key_and_bounds_reads() {
    let storage = MemoryStorage::new();
    storage.put("lake", "db/t/snapshot/snapshot-2", "two");
    storage.put("lake", "db/t/snapshot/snapshot-1", "one");
    storage.put("lake", "db/t/LATEST", "2");
    storage.put("lake", "db/tt/x", "");

    let listed = storage.list("lake", Listing::below("db/t/", 10)).await.unwrap();
    let keys: Vec<&str> = listed.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(keys, ["db/t/LATEST", "db/t/snapshot/snapshot-1", "db/t/snapshot/snapshot-2"]);
    assert_eq!(storage.list("lake", Listing::below("db/t/", 2)).await.unwrap().len(), 2);
    assert_eq!(storage.folders("lake", "db/", None, 10).await.unwrap(), ["t", "tt"]);
    assert_eq!(storage.folders("lake", "db/t/", None, 10).await.unwrap(), ["snapshot"]);

    let one = storage.get("lake", "db/t/snapshot/snapshot-1", 3).await.unwrap().unwrap();
    assert_eq!((one.bytes.as_slice(), &one.etag), (b"one".as_slice(), &listed[1].etag));
    assert_eq!(storage.get("lake", "db/t/missing", 3).await.unwrap(), None);
    let large = storage.get("lake", "db/t/snapshot/snapshot-1", 2).await.unwrap_err();
    assert_eq!(large.kind(), ErrorKind::Damaged);
    assert!(storage.remove("lake", "db/t/LATEST"));
    assert_eq!(storage.remove_prefix("lake", "db/t/"), 2);
}

#[tokio::test]
async fn storage_keeps_its_contract() {
    let storage = MemoryStorage::new();
    for key in lakebell_testkit::storage_contract::OBJECTS {
        storage.put("lake", key, key);
    }
    lakebell_testkit::storage_contract::check(&storage, "lake").await;
}

#[tokio::test]
async fn storage_refuses_unknown_and_denied_buckets() {
    let storage = MemoryStorage::new();
    assert_eq!(storage.get("nobodys", "k", 1).await.unwrap_err().kind(), ErrorKind::Denied);
    storage.put("lake", "a/1", "x");
    storage.deny("lake");
    assert_eq!(storage.list("lake", Listing::below("a/", 1)).await.unwrap_err().kind(), ErrorKind::Denied);
    storage.heal();
    storage.refuse("lake", "b/", ErrorKind::Unavailable);
    assert!(storage.get("lake", "a/1", 1).await.unwrap().is_some());
    assert!(storage.get("lake", "b/1", 1).await.unwrap_err().retryable());
}

#[tokio::test]
async fn storage_loads_a_folder() {
    let storage = MemoryStorage::new();
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(storage.load("lake", "kit/", sources).unwrap() > 5);
    assert!(storage.get("lake", "kit/src/lib.rs", 1 << 20).await.unwrap().is_some());
}

#[tokio::test]
async fn calls_count_as_requests_to_aws() {
    let world = World::new(1);
    let ports = world.ports();
    world.storage.make_bucket("lake");
    let keys: Vec<Key> = (0..101).map(|n| Key::new("A#1", n.to_string())).collect();
    ports.items.get(&keys).await.unwrap();
    ports.items.write(&[create("0")], &attempt()).await.unwrap();
    ports.storage.list("lake", Listing::below("", 10)).await.unwrap();
    world.quiet_ports().storage.list("lake", Listing::below("", 10)).await.unwrap();

    assert_eq!((world.tap.count(Op::Get), world.tap.count(Op::Write), world.tap.count(Op::List)), (2, 1, 1));
    let log = world.tap.take_log();
    assert_eq!(log.len(), 4);
    assert_eq!(log[2].to_string(), "Write create:A#1|0");
    assert_eq!(world.tap.total(), 0);
}

#[tokio::test]
async fn planned_faults_fall_on_the_planned_call() {
    let world = World::new(1);
    let ports = world.ports();
    world.tap.fault(Op::Write, 2, Fault::LostAnswer);
    world.tap.fault(Op::Write, 3, Fault::Before(ErrorKind::Contention));

    assert_eq!(ports.items.write(&[create("1")], &attempt()).await.unwrap(), Written::Done);
    let lost = ports.items.write(&[create("2")], &attempt()).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Unavailable);
    assert!(world.items.peek(&Key::new("A#1", "2")).is_some(), "it took effect");
    let refused = ports.items.write(&[create("3")], &attempt()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contention);
    assert!(world.items.peek(&Key::new("A#1", "3")).is_none(), "it took no effect");
    assert_eq!(ports.items.write(&[create("3")], &attempt()).await.unwrap(), Written::Done);
}

#[tokio::test]
async fn a_dead_function_does_nothing_more() {
    let world = World::new(1);
    let ports = world.ports();
    let message = Message::Observe { asset: AssetId::from_bits(1), is_again: false, trace: TraceId::new("t").unwrap() };
    world.tap.fault_any(2, Fault::DiesAfter);

    ports.items.write(&[create("1")], &attempt()).await.unwrap();
    assert!(ports.items.write(&[create("2")], &attempt()).await.is_err());
    assert!(world.tap.dead());
    assert!(ports.queue.send(&message).await.is_err());
    assert_eq!((world.items.dump().len(), world.queue.len()), (2, 0));

    assert!(world.tap.revive());
    ports.queue.send(&message).await.unwrap();
    assert_eq!(world.queue.waiting(), std::slice::from_ref(&message));
    assert_eq!(world.queue.take(1), None);
    assert_eq!(world.queue.drain(), [message]);
    assert!(world.queue.is_empty());
}

#[tokio::test]
async fn another_writer_can_come_in_between() {
    let world = World::new(1);
    let ports = world.ports();
    let other = world.quiet_ports();
    world.tap.before(Op::Write, 1, move || async move {
        other.items.write(&[create("1")], &AttemptId::new("other").unwrap()).await.unwrap();
    });
    let Written::Lost(lost) = ports.items.write(&[create("1")], &attempt()).await.unwrap() else {
        panic!("the other writer came first")
    };
    assert_eq!(lost[0].existing.as_ref().unwrap().attempt.as_str(), "other");
}

#[tokio::test]
async fn chance_is_repeated_by_its_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let world = World::new(1);
        let ports = world.ports();
        world.tap.chance(7, 50);
        let mut outcomes = Vec::new();
        for n in 0..40 {
            let written = ports.items.write(&[create(&n.to_string())], &attempt()).await;
            outcomes.push(written.map_err(|error| error.to_string()));
        }
        world.tap.calm();
        assert!(ports.items.write(&[create("last")], &attempt()).await.is_ok());
        runs.push(format!("{outcomes:?}"));
    }
    assert_eq!(runs[0], runs[1]);
    assert!(["Done", "CONTENTION", "answer was lost", "the call failed"].iter().all(|part| runs[0].contains(part)));
}

#[test]
fn the_clock_moves_only_when_told() {
    let clock = SimClock::default();
    let start = clock.now();
    assert_eq!(start.to_string(), "2026-01-01T00:00:00Z");
    let same = clock.clone();
    clock.advance(Duration::from_millis(1_500));
    assert_eq!(same.now().to_string(), "2026-01-01T00:00:01.5Z");
    same.set(start);
    assert_eq!(clock.now(), start);
    clock.advance(Duration::MAX);
    assert!(clock.now() > start);
}

#[test]
fn a_seed_repeats_its_randomness() {
    let (one, two) = (SeededRandom::new(9), SeededRandom::new(9));
    assert_eq!(one.bits(), two.bits());
    assert_ne!(one.bits(), SeededRandom::new(10).bits());
    assert!((0..100).all(|_| one.below(3) < 3));
    // The published sequence of SplitMix64 for seed 0.
    assert_eq!(SeededRandom::new(0).next(), 0xe220_a839_7b1d_cdaf);
}
