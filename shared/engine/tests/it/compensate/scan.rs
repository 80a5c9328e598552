//! What a scan finds beside commits: tags, and that a bucket does not notify.

use std::time::Duration;

use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::version::Position;
use lakebell_engine::layout;
use lakebell_engine::ports::items::Item;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::watch::Watched;
use lakebell_engine::{compensate, observe};
use lakebell_testkit::Op;
use serde_json::json;

use crate::support::{BUCKET, Deployment, spec, trace};

impl Deployment {
    /// One look by the clock.
    pub(super) async fn scan(&self, table: &str) -> Vec<(EventKind, Outcome)> {
        self.world.clock.advance(Duration::from_mins(5));
        let hint = observe::Hint {
            asset: self.ids[table],
            look: observe::Look::Whole,
            source: lakebell_domain::event::Source::Poll,
            trace: trace(),
        };
        self.watcher.look(&hint).await.unwrap().outcomes()
    }

    fn tag_object(&self, table: &str, name: &str) -> String {
        self.tables[table].key(1).replace("snapshot/snapshot-1", &format!("tag/tag-{name}"))
    }

    fn tag(&self, table: &str, name: &str, snapshot: u64) {
        let body = self.world.storage.get_now(BUCKET, &self.tables[table].key(snapshot)).unwrap();
        self.world.storage.put(BUCKET, &self.tag_object(table, name), body);
    }

    fn tags(&self, table: &str) -> Vec<(String, Position)> {
        self.head(table).state.tags.into_iter().map(|(name, entry)| (name, entry.position)).collect()
    }
}

#[tokio::test]
async fn a_scan_finds_tags_that_appeared_moved_and_went() {
    let mut d = Deployment::with(&["a"]).await;
    for _ in 0..3 {
        d.commit("a", "APPEND").await;
    }
    d.scan("a").await;
    d.tag("a", "one", 1);
    d.tag("a", "two", 2);
    assert_eq!(d.scan("a").await.len(), 2);
    let ordinals = |d: &Deployment| d.tags("a").iter().map(|(_, at)| at.ordinal.0).collect::<Vec<_>>();
    assert_eq!(ordinals(&d), [1, 2]);
    assert_eq!(d.scan("a").await, [(EventKind::SnapshotCommitted, Outcome::Duplicate)]);
    d.tag("a", "one", 3);
    assert_eq!(d.scan("a").await, [(EventKind::TagCreated, Outcome::Advanced)]);
    assert_eq!(ordinals(&d), [3, 2]);
    d.world.storage.remove(BUCKET, &d.tag_object("a", "two"));
    assert_eq!(d.scan("a").await, [(EventKind::TagDeleted, Outcome::Advanced)]);
    assert_eq!(d.tags("a").len(), 1);

    // A damaged one hides no other.
    d.world.storage.put(BUCKET, &d.tag_object("a", "odd"), "{");
    d.tag("a", "four", 2);
    assert_eq!(d.scan("a").await, [(EventKind::TagCreated, Outcome::Advanced)]);
    assert!(d.head("a").state.trouble.is_none());
}

#[tokio::test]
async fn tags_from_before_the_registration_are_told_of_no_more() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.tag("a", "old", 1);
    let path = format!("s3://{BUCKET}/wh/ods_db.db/a");
    lakebell_engine::assets::deregister(&d.world.quiet_ports(), &crate::support::key("a")).await.unwrap();
    let again = lakebell_engine::assets::AssetSpec::new(crate::support::key("a"), path.parse().unwrap());
    lakebell_engine::assets::register(&d.world.quiet_ports(), crate::support::PROJECT, &again, &trace()).await.unwrap();
    d.scan("a").await;
    assert_eq!(d.tags("a").len(), 0);
}

#[tokio::test]
async fn a_tag_whose_notification_was_lost_starts_what_waits_for_it() {
    let mut d = Deployment::with(&["a"]).await;
    let mut document = serde_json::to_value(spec("t", &[("g", json!("all"), &["a"])])).unwrap();
    document["groups"][0]["dependencies"][0]["tag"] = json!("ready-*");
    d.declare(&serde_json::from_value(document).unwrap()).await;
    d.commit("a", "APPEND").await;
    assert_eq!(d.triggers("t").len(), 0);
    d.tag("a", "ready-1", 1);
    d.scan("a").await;
    d.run_dispatcher().await;
    d.assert_started("t", 1);
}

#[tokio::test]
async fn a_bucket_that_notifies_no_more_is_noticed_and_forgiven() {
    let mut d = Deployment::with(&["a"]).await;
    d.declare(&spec("t", &[("g", json!("all"), &["a"])])).await;
    d.commit("a", "APPEND").await;
    for scans in 1..=3 {
        d.table("a").commit("APPEND", 1);
        d.table("a").commit("APPEND", 1);
        d.scan("a").await;
        d.run_dispatcher().await;
        let unnotified = d.head("a").state.unnotified.unwrap();
        assert_eq!((unnotified.scans, unnotified.commits), (scans, u64::from(scans) * 2));
        let unblock = d.why("t").await.reason.unwrap().unblock;
        assert_eq!(unblock.contains("notifications do not come"), scans == 3, "{unblock}");
    }
    d.world.tap.take_log();
    d.scan("a").await;
    assert_eq!(d.world.tap.count(Op::Write), 0, "a scan that finds nothing says nothing about the bucket");
    assert_eq!(d.head("a").state.unnotified.unwrap().scans, 3);

    // A late notification of an old commit is one all the same.
    d.notify("a", 2).await;
    assert_eq!(d.head("a").state.unnotified, None);
    d.world.tap.take_log();
    d.notify("a", 2).await;
    assert_eq!(d.world.tap.count(Op::Write), 0, "and the next one writes nothing");
}

#[tokio::test]
async fn what_nobody_is_notified_of_is_not_missed() {
    let mut d = Deployment::with(&["a"]).await;
    d.commit("a", "APPEND").await;
    d.tag("a", "one", 1);
    d.scan("a").await;
    let before = d.head("a").state.unnotified.unwrap();
    d.world.storage.remove(BUCKET, &d.tag_object("a", "one"));
    d.scan("a").await;
    assert_eq!(d.head("a").state.unnotified, Some(before));
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_stops_no_pass() {
    let d = Deployment::with(&["a", "b"]).await;
    let entry = layout::registered_asset(d.ids["a"]);
    let item = d.world.items.peek(&entry).unwrap();
    d.world.items.plant(Item { doc: "{".to_owned(), ..item });
    let pass = compensate::pass(&d.world.ports(), &trace(), jiff::Timestamp::MAX).await.unwrap();
    assert_eq!((pass.assets, pass.passed_over, pass.is_complete), (1, 1, true));
}

#[tokio::test]
async fn a_pass_that_fails_goes_on_where_it_failed() {
    let mut d = Deployment::with(&[]).await;
    for n in 0..40 {
        d.register(&format!("t{n}")).await;
    }
    let ports = d.world.ports();
    d.world.tap.fault(Op::Send, 30, lakebell_testkit::Fault::Before(lakebell_engine::ErrorKind::Unavailable));
    assert!(compensate::pass(&ports, &trace(), jiff::Timestamp::MAX).await.is_err());
    let before = d.world.queue.drain().len();
    let pass = compensate::pass(&ports, &trace(), jiff::Timestamp::MAX).await.unwrap();
    assert!(pass.is_complete && pass.assets < 40, "{pass:?}");
    assert!(before + pass.assets >= 40, "{before} and {}", pass.assets);
}

/// The figure: 10,000 unchanged assets, at most five requests to storage each, and none is written.
#[tokio::test]
async fn a_scan_of_ten_thousand_unchanged_assets_makes_at_most_five_requests_each() {
    let mut d = Deployment::with(&[]).await;
    for n in 0..10_000 {
        let table = format!("t{n}");
        d.register(&table).await;
        if n % 100 == 0 {
            d.commit(&table, "APPEND").await;
        }
    }
    let pass = compensate::pass(&d.world.ports(), &trace(), jiff::Timestamp::MAX).await.unwrap();
    assert_eq!((pass.assets, pass.is_complete), (10_000, true));
    let mut most = 0;
    for message in d.world.queue.drain() {
        let Message::Observe { asset, .. } = message else { continue };
        d.world.tap.take_log();
        let hint = observe::Hint {
            asset,
            look: observe::Look::Whole,
            source: lakebell_domain::event::Source::Poll,
            trace: trace(),
        };
        let watched = d.watcher.look(&hint).await.unwrap();
        assert!(matches!(watched, Watched::Observed { .. }));
        let log = d.world.tap.take_log();
        most = most.max(log.iter().filter(|call| matches!(call.op, Op::Read | Op::List | Op::Folders)).count());
        assert!(!log.iter().any(|call| matches!(call.op, Op::Write | Op::Put)), "{log:?}");
    }
    assert_eq!(most, 2);
}
