//! The contract of an item store, as checks that run against every implementation: the one in
//! memory, and DynamoDB. What the engine may rely on is what is checked here.
//!
//! Each run writes to partitions of its own, so that it can be repeated on a table that is kept.

#![allow(clippy::expect_used, clippy::panic, clippy::missing_panics_doc, reason = "checks fail by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ErrorKind;
use lakebell_engine::ports::items::{
    Draft, Index, IndexEntry, Item, ItemStore, Key, Lost, Page, Range, Write, Written,
};
use tokio::task::JoinSet;

/// Partitions and attempts of one run.
struct Run<'a> {
    store: &'a dyn ItemStore,
    name: String,
}

/// Checks every rule of [`ItemStore`] and panics with a message at the first that does not hold.
pub async fn item_store_contract(store: &dyn ItemStore) {
    let run = Run { store, name: run_name() };
    run.create().await;
    run.replace().await;
    run.bump_and_expect().await;
    run.remove().await;
    run.all_or_nothing().await;
    run.refusals().await;
    run.whole_items().await;
    run.gets().await;
    run.ranges().await;
    run.indexes().await;
}

/// Lets `writers` tasks add their marks to one item by read and replace, `each` times, and panics
/// unless every mark is there exactly once at the end. Says how many writes lost their condition
/// and how many gave up for contention; both were tried again.
///
/// Every second write has two actions, so that plain writes and transactions meet. A write of
/// unknown outcome (`Unavailable`) is read back, as the engine does, so faults may be injected.
pub async fn no_lost_update(store: Arc<dyn ItemStore>, writers: usize, each: usize) -> (usize, usize) {
    let key = Key::new(format!("X#{}", run_name()), "marks");
    let first = Write::Create(Draft::new(key.clone(), ";".to_owned()));
    assert_eq!(store.write(&[first], &attempt("first")).await.expect("create"), Written::Done);

    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let (store, key) = (store.clone(), key.clone());
        tasks.spawn(async move { add_marks(store.as_ref(), &key, writer, each).await });
    }
    let (mut lost, mut contentions) = (0, 0);
    while let Some(done) = tasks.join_next().await {
        let (more_lost, more_contentions) = done.expect("a writer panicked");
        lost += more_lost;
        contentions += more_contentions;
    }
    let end = read_patiently(store.as_ref(), &key).await;
    let mut found: Vec<&str> = end.doc.split(';').filter(|mark| !mark.is_empty()).collect();
    found.sort_unstable();
    let marks = (0..writers).flat_map(|writer| (0..each).map(move |round| format!("w{writer}-{round}")));
    let mut expected: Vec<String> = marks.collect();
    expected.sort_unstable();
    assert_eq!(found, expected, "an update was lost, or came twice");
    assert_eq!(end.rev, 1 + (writers * each) as u64, "each write raises the revision by one");
    (lost, contentions)
}

async fn add_marks(store: &dyn ItemStore, key: &Key, writer: usize, each: usize) -> (usize, usize) {
    let (mut lost, mut contentions) = (0, 0);
    for round in 0..each {
        let mark = format!("w{writer}-{round}");
        let mut tries = 0;
        loop {
            tries += 1;
            let before = read_patiently(store, key).await;
            if before.doc.contains(&format!(";{mark};")) {
                break; // an earlier try, whose outcome was unknown
            }
            let attempt = attempt(&format!("{mark}-{tries}"));
            let draft = Draft::new(key.clone(), format!("{}{mark};", before.doc));
            let mut actions = vec![Write::Replace(draft, before.rev)];
            if (writer + round).is_multiple_of(2) {
                let beside = Key::new(&key.pk, format!("beside-{mark}-{tries}"));
                actions.push(Write::Create(Draft::new(beside, "{}".to_owned())));
            }
            match store.write(&actions, &attempt).await {
                Ok(Written::Done) => break,
                // What stands there tells who was first: others, or an earlier request of this try.
                Ok(Written::Lost(_)) => lost += 1,
                Err(error) if error.kind() == ErrorKind::Contention => contentions += 1,
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(error) => panic!("a write failed: {error}"),
            }
        }
    }
    (lost, contentions)
}

impl Run<'_> {
    fn key(&self, rule: &str, sk: &str) -> Key {
        Key::new(format!("X#{}#{rule}", self.name), sk)
    }

    async fn done(&self, actions: &[Write], by: &str) {
        let written = self.store.write(actions, &attempt(by)).await.expect("the write is answered");
        assert_eq!(written, Written::Done, "the conditions of {actions:?} hold");
    }

    async fn lost(&self, actions: &[Write], by: &str) -> Vec<Lost> {
        match self.store.write(actions, &attempt(by)).await.expect("the write is answered") {
            Written::Done => panic!("a condition of {actions:?} does not hold, yet it was written"),
            Written::Lost(lost) => lost,
        }
    }

    async fn read(&self, key: &Key) -> Option<Item> {
        read(self.store, key).await
    }

    async fn create(&self) {
        let key = self.key("create", "-");
        self.done(&[Write::Create(draft(&key, "first"))], "a").await;
        let made = self.read(&key).await.expect("a created item is read at once");
        assert_eq!(
            (made.rev, made.doc.as_str(), made.attempt.as_str()),
            (1, "first", "a"),
            "a new item has revision 1"
        );

        let lost = self.lost(&[Write::Create(draft(&key, "second"))], "b").await;
        assert_eq!(
            lost,
            [Lost { action: 0, existing: Some(made.clone()) }],
            "a lost create shows the item that stands"
        );
        assert_eq!(self.read(&key).await, Some(made), "a lost create changes nothing");
    }

    async fn replace(&self) {
        let key = self.key("replace", "-");
        let lost = self.lost(&[Write::Replace(draft(&key, "none"), 1)], "a").await;
        assert_eq!(lost, [Lost { action: 0, existing: None }], "there is nothing to replace");

        self.done(&[Write::Create(draft(&key, "first"))], "a").await;
        self.done(&[Write::Replace(draft(&key, "second"), 1)], "b").await;
        let second = self.read(&key).await.expect("it is there");
        assert_eq!((second.rev, second.doc.as_str(), second.attempt.as_str()), (2, "second", "b"));

        let lost = self.lost(&[Write::Replace(draft(&key, "third"), 1)], "c").await;
        assert_eq!(lost, [Lost { action: 0, existing: Some(second) }], "an old revision loses");
    }

    async fn bump_and_expect(&self) {
        let key = self.key("bump", "-");
        assert_eq!(self.lost(&[Write::Bump(key.clone())], "a").await, [Lost { action: 0, existing: None }]);
        assert_eq!(self.lost(&[Write::Expect(key.clone(), 1)], "a").await, [Lost { action: 0, existing: None }]);

        let full = Draft { sweep: Some(self.entry("bump", "1")), ..draft(&key, "first") };
        self.done(&[Write::Create(full)], "a").await;
        self.done(&[Write::Bump(key.clone())], "b").await;
        let bumped = self.read(&key).await.expect("it is there");
        assert_eq!(bumped.rev, 2, "a bump raises the revision");
        assert_eq!((bumped.doc.as_str(), bumped.attempt.as_str()), ("first", "a"), "and leaves content and attempt");
        assert!(bumped.sweep.is_some(), "and the timer");

        self.done(&[Write::Expect(key.clone(), 2)], "c").await;
        let lost = self.lost(&[Write::Expect(key.clone(), 1)], "c").await;
        assert_eq!(lost, [Lost { action: 0, existing: Some(bumped.clone()) }]);
        assert_eq!(self.read(&key).await, Some(bumped), "an expectation writes nothing");

        let other = self.key("bump", "other");
        let pair = [Write::Bump(key.clone()), Write::Create(draft(&other, "x"))];
        self.done(&pair, "d").await;
        let bumped = self.read(&key).await.expect("it is there");
        assert_eq!((bumped.rev, bumped.attempt.as_str()), (3, "a"), "a bump in a transaction leaves the attempt, too");
    }

    async fn remove(&self) {
        let key = self.key("remove", "-");
        assert_eq!(self.lost(&[Write::Remove(key.clone(), 1)], "a").await, [Lost { action: 0, existing: None }]);
        self.done(&[Write::Create(draft(&key, "first"))], "a").await;
        let lost = self.lost(&[Write::Remove(key.clone(), 7)], "b").await;
        assert_eq!(lost.len(), 1);
        assert!(lost.iter().all(|lost| lost.existing.is_some()), "another revision is not removed");
        self.done(&[Write::Remove(key.clone(), 1)], "b").await;
        assert_eq!(self.read(&key).await, None, "it is gone");
        self.done(&[Write::Create(draft(&key, "again"))], "c").await;
        assert_eq!(self.read(&key).await.map(|item| item.rev), Some(1), "revisions begin again");
    }

    async fn all_or_nothing(&self) {
        let keys: Vec<Key> = (0..5).map(|n| self.key("atomic", &n.to_string())).collect();
        let [create, replace, bump, expect, remove] = keys.as_slice() else { panic!("five keys") };
        let setup: Vec<Write> = keys[1..].iter().map(|key| Write::Create(draft(key, "old"))).collect();
        self.done(&setup, "setup").await;

        let all = |revision| {
            vec![
                Write::Create(draft(create, "new")),
                Write::Replace(draft(replace, "new"), revision),
                Write::Bump(bump.clone()),
                Write::Expect(expect.clone(), 1),
                Write::Remove(remove.clone(), revision),
            ]
        };
        let lost = self.lost(&all(9), "a").await;
        let lost: Vec<(usize, Option<u64>)> =
            lost.iter().map(|lost| (lost.action, lost.existing.as_ref().map(|item| item.rev))).collect();
        assert_eq!(lost, [(1, Some(1)), (4, Some(1))], "every failed condition is listed, in order, with its item");
        assert_eq!(self.read(create).await, None, "nothing was created");
        assert_eq!(self.read(bump).await.map(|item| item.rev), Some(1), "nothing was bumped");

        self.done(&all(1), "b").await;
        let revs: Vec<Option<u64>> = self.revisions(&keys).await;
        assert_eq!(revs, [Some(1), Some(2), Some(2), Some(1), None], "everything was written");
        assert_eq!(self.store.write(&[], &attempt("c")).await.expect("no actions"), Written::Done, "no actions hold");
    }

    async fn revisions(&self, keys: &[Key]) -> Vec<Option<u64>> {
        let mut revisions = Vec::new();
        for key in keys {
            revisions.push(self.read(key).await.map(|item| item.rev));
        }
        revisions
    }

    async fn refusals(&self) {
        let key = self.key("refused", "-");
        let many: Vec<Write> =
            (0..101).map(|n| Write::Create(draft(&self.key("refused", &n.to_string()), "x"))).collect();
        let twice = vec![Write::Bump(key.clone()), Write::Expect(key.clone(), 1)];
        let nameless = vec![Write::Create(draft(&Key::new(&key.pk, ""), "x"))];
        let huge = vec![Write::Create(draft(&key, &"x".repeat(410 * 1024)))];
        let huge_pair = vec![huge[0].clone(), Write::Create(draft(&self.key("refused", "small"), "x"))];
        let cases = [
            ("101 actions", many),
            ("two actions on one item", twice),
            ("an empty sort key", nameless),
            ("an item over 400 KB", huge),
            ("an item over 400 KB among others", huge_pair),
        ];
        for (what, actions) in cases {
            let refused = self.store.write(&actions, &attempt("a")).await;
            let kind = refused.as_ref().map_err(lakebell_engine::EngineError::kind);
            assert_eq!(kind, Err(ErrorKind::Defect), "{what}: {refused:?}");
        }
        let hundred: Vec<Write> =
            (0..100).map(|n| Write::Create(draft(&self.key("hundred", &n.to_string()), "x"))).collect();
        self.done(&hundred, "a").await;
    }

    async fn whole_items(&self) {
        let key = self.key("whole", "-");
        let full = Draft {
            key: key.clone(),
            doc: r#"{"text":"größer → 表","number":12345678901234567890}"#.to_owned(),
            sweep: Some(self.entry("whole", "2026-01-01T00:00:00Z#a")),
            history: Some(self.entry("whole-history", "2026-01-02")),
            expires_at: Some(Timestamp::from_millisecond(1_790_000_000_001).expect("a timestamp")),
        };
        for (by, actions) in [
            ("a", vec![Write::Create(full.clone())]),
            ("b", vec![Write::Replace(full.clone(), 1), Write::Create(draft(&self.key("whole", "other"), "x"))]),
        ] {
            self.done(&actions, by).await;
            let item = self.read(&key).await.expect("it is there");
            assert_eq!(item.doc, full.doc, "text is kept as it is");
            assert_eq!((&item.sweep, &item.history), (&full.sweep, &full.history), "places in the indexes are kept");
            let whole = Timestamp::from_second(1_790_000_001).expect("a timestamp");
            assert_eq!(item.expires_at, Some(whole), "expiry is kept to the next whole second");
        }
        self.done(&[Write::Replace(draft(&key, "bare"), 2)], "c").await;
        let bare = self.read(&key).await.expect("it is there");
        assert_eq!(
            (bare.sweep, bare.history, bare.expires_at),
            (None, None, None),
            "a replacement clears what it lacks"
        );
    }

    async fn gets(&self) {
        assert_eq!(self.store.get(&[]).await.expect("nothing to read"), [], "no keys, no items");
        let keys: Vec<Key> = (0..130).map(|n| self.key("get", &format!("{n:03}"))).collect();
        for chunk in keys.chunks(65) {
            let actions: Vec<Write> = chunk.iter().map(|key| Write::Create(draft(key, "x"))).collect();
            self.done(&actions, "a").await;
        }
        let mut asked = keys.clone();
        asked.push(self.key("get", "missing"));
        asked.push(keys[0].clone());
        let mut found: Vec<Key> =
            self.store.get(&asked).await.expect("they are read").into_iter().map(|item| item.key).collect();
        found.sort();
        assert_eq!(found, keys, "all are read, each once, missing ones are left out");
    }

    async fn ranges(&self) {
        let pk = self.key("range", "-").pk;
        let sks = ["0", "1", "2#a", "2#b", "2#ü", "2#\u{10fffe}", "3", "E#1"];
        let actions: Vec<Write> = sks.iter().map(|sk| Write::Create(draft(&Key::new(&pk, *sk), sk))).collect();
        self.done(&actions, "a").await;

        assert_eq!(
            self.query(&Range::prefix(&pk, ""), None).await,
            sks,
            "an empty prefix is the whole partition, in order"
        );
        assert_eq!(self.query(&Range::prefix(&pk, "2#"), None).await, &sks[2..6], "a prefix");
        let middle = Range { pk: pk.clone(), from: "1".to_owned(), to: "2#b".to_owned() };
        assert_eq!(self.query(&middle, None).await, &sks[1..4], "both ends belong to the range");
        let exact = Range { pk: pk.clone(), from: "3".to_owned(), to: "3".to_owned() };
        assert_eq!(self.query(&exact, None).await, ["3"]);
        assert_eq!(self.query(&Range::prefix(format!("{pk}-none"), ""), None).await, [""; 0], "an empty partition");
        for limit in [1, 3, 4, 100] {
            assert_eq!(self.query(&Range::prefix(&pk, ""), Some(limit)).await, sks, "pages of {limit} make the whole");
        }
        let backwards = Range { pk, from: "3".to_owned(), to: "1".to_owned() };
        let refused = self.store.query(&backwards, None, None).await.map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::Defect), "a range must not end before it begins");
        let refused = self.store.query(&exact, Some(0), None).await.map_err(|error| error.kind());
        assert_eq!(refused, Err(ErrorKind::Defect), "a limit of 0");
    }

    async fn query(&self, range: &Range, limit: Option<usize>) -> Vec<String> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.query(range, limit, after.as_deref()).await.expect("the query is answered");
            assert!(limit.is_none_or(|limit| page.found.len() <= limit), "no page is longer than the limit");
            found.extend(page.found.into_iter().map(|item| item.key.sk));
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    }

    async fn indexes(&self) {
        for index in [Index::Sweep, Index::History] {
            let rule = format!("{index:?}");
            // Two items at one place: a page may end between them.
            let places = ["1", "2", "2", "3", "4"];
            let keys: Vec<Key> = (0..places.len()).map(|n| self.key(&rule, &n.to_string())).collect();
            let drafts = keys.iter().zip(places).map(|(key, at)| {
                let entry = Some(self.entry(&rule, at));
                match index {
                    Index::Sweep => Draft { sweep: entry, ..draft(key, "x") },
                    Index::History => Draft { history: entry, ..draft(key, "x") },
                }
            });
            let mut actions: Vec<Write> = drafts.map(Write::Create).collect();
            actions.push(Write::Create(draft(&self.key(&rule, "without"), "x")));
            self.done(&actions, "a").await;

            self.eventually(index, &rule, None, false, &keys).await;
            self.eventually(index, &rule, Some("2"), false, &keys[..3]).await;
            let newest_first: Vec<Key> = keys.iter().rev().cloned().collect();
            self.eventually(index, &rule, None, true, &newest_first).await;
            self.eventually(index, &rule, Some("3"), true, &newest_first[1..]).await;

            self.done(&[Write::Replace(draft(&keys[0], "x"), 1)], "b").await;
            self.eventually(index, &rule, None, false, &keys[1..]).await;
            let refused = self.store.index(index, &rule, None, false, 0, None).await.map_err(|error| error.kind());
            assert_eq!(refused, Err(ErrorKind::Defect), "a limit of 0");
        }
    }

    /// Indexes follow after a while, so what they show is looked at until it is as expected. Items at
    /// one place may come in any order.
    async fn eventually(&self, index: Index, rule: &str, up_to: Option<&str>, backwards: bool, expected: &[Key]) {
        let sorted = |keys: &[Key]| {
            let mut keys = keys.to_vec();
            keys.sort();
            keys
        };
        let mut found = Vec::new();
        for _ in 0..100 {
            let by_two = self.index(index, rule, up_to, backwards, 2).await;
            let at_once = self.index(index, rule, up_to, backwards, 100).await;
            found = at_once;
            if sorted(&found) == sorted(expected) && by_two == found && !found.is_empty() {
                let ends = [(found.first(), expected.first()), (found.last(), expected.last())];
                assert!(ends.iter().all(|(found, expected)| found == expected), "{index:?} is not in order: {found:?}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{index:?} up to {up_to:?}, backwards {backwards}: {found:?} instead of {expected:?}");
    }

    async fn index(&self, index: Index, rule: &str, up_to: Option<&str>, backwards: bool, limit: usize) -> Vec<Key> {
        let pk = self.entry(rule, "-").pk;
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page: Page<Key> = self
                .store
                .index(index, &pk, up_to, backwards, limit, after.as_deref())
                .await
                .expect("the look-up is answered");
            assert!(page.found.len() <= limit, "no page is longer than the limit");
            found.extend(page.found);
            after = page.next;
            if after.is_none() {
                return found;
            }
        }
    }

    fn entry(&self, rule: &str, sk: &str) -> IndexEntry {
        IndexEntry { pk: format!("S#{}#{rule}", self.name), sk: sk.to_owned() }
    }
}

async fn read(store: &dyn ItemStore, key: &Key) -> Option<Item> {
    store.get(std::slice::from_ref(key)).await.expect("the item is read").pop()
}

/// The item, asked for until there is an answer.
async fn read_patiently(store: &dyn ItemStore, key: &Key) -> Item {
    loop {
        match store.get(std::slice::from_ref(key)).await {
            Ok(mut found) => return found.pop().expect("the item is there"),
            Err(error) if error.kind() == ErrorKind::Unavailable => {}
            Err(error) => panic!("a read failed: {error}"),
        }
    }
}

fn draft(key: &Key, doc: &str) -> Draft {
    Draft::new(key.clone(), doc.to_owned())
}

fn attempt(name: &str) -> AttemptId {
    AttemptId::new(name).expect("a valid attempt id")
}

/// A name that no other run has: the time, the process, and a number within it.
fn run_name() -> String {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let now = Timestamp::now().as_nanosecond();
    format!("{now:x}-{:x}-{:x}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed))
}
