//! Scan intervals of single assets.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::AssetId;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::compensate;
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_testkit::{Fault, Op};
use serde_json::json;

use crate::support::{BUCKET, Deployment, PROJECT, key, trace};

impl Deployment {
    /// Registers a table with a scan interval.
    pub(super) async fn register_every(&mut self, table: &str, interval: &str) -> AssetId {
        let paimon =
            lakebell_testkit::PaimonTable::new(self.world.storage.clone(), BUCKET, &format!("wh/ods_db.db/{table}"));
        let document = json!({"key": key(table), "location": paimon.location(), "scanInterval": interval});
        let spec: AssetSpec = serde_json::from_value(document).unwrap();
        let id = assets::register(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap().id;
        self.tables.insert(table.to_owned(), paimon);
        self.ids.insert(table.to_owned(), id);
        id
    }

    /// The assets that wait to be looked at, which they do no more.
    fn handed_out(&self) -> Vec<AssetId> {
        let asset = |message| match message {
            Message::Observe { asset, .. } => Some(asset),
            _ => None,
        };
        self.world.queue.drain().into_iter().filter_map(asset).collect()
    }

    async fn minute(&self) {
        self.world.clock.advance(Duration::from_mins(1));
        compensate::scan_due(&self.world.ports(), &trace(), Timestamp::MAX).await.unwrap();
    }
}

#[tokio::test]
async fn each_asset_is_scanned_in_its_own_interval_and_only_then() {
    let mut d = Deployment::with(&["plain"]).await;
    let mut every = BTreeMap::new();
    for (table, interval, minutes) in [("a", "1m", 1), ("b", "90s", 0), ("c", "7m", 7), ("d", "1h", 60)] {
        every.insert(d.register_every(table, interval).await, minutes);
    }
    d.minute().await;
    assert_eq!(d.handed_out().len(), 4, "with the first tick each of them");
    let mut at: BTreeMap<AssetId, Vec<usize>> = BTreeMap::new();
    for minute in 0..240 {
        d.minute().await;
        for asset in d.handed_out() {
            at.entry(asset).or_default().push(minute);
        }
    }
    assert!(!at.contains_key(&d.ids["plain"]), "one without an interval comes with the passes");
    for (asset, minutes) in every {
        let at = &at[&asset];
        if minutes == 0 {
            assert_eq!(at.len(), 160, "every 90 s, at the next full minute");
            continue;
        }
        assert_eq!(at.len(), 240 / minutes + usize::from(240 % minutes > at[0]), "{at:?}");
        assert!(at.windows(2).all(|two| two[1] - two[0] == minutes), "{at:?}");
    }
    let deadline = d.world.clock.now() + SignedDuration::from_mins(1);
    let pass = compensate::pass(&d.world.ports(), &trace(), deadline).await.unwrap();
    assert_eq!((pass.assets, d.handed_out()), (1, vec![d.ids["plain"]]), "a pass leaves them alone");
}

#[tokio::test]
async fn a_lost_tick_is_made_good_and_an_interval_comes_once_for_all_that_were_lost() {
    let mut d = Deployment::with(&[]).await;
    let a = d.register_every("a", "5m").await;
    d.minute().await;
    d.handed_out();
    d.world.clock.advance(Duration::from_mins(30));
    d.minute().await;
    assert_eq!(d.handed_out(), [a]);
    // A tick that fails is done again by the next one.
    d.world.clock.advance(Duration::from_mins(4));
    d.world.tap.fault(Op::Send, 1, Fault::DiesBefore);
    d.world.clock.advance(Duration::from_mins(1));
    assert!(compensate::scan_due(&d.world.ports(), &trace(), Timestamp::MAX).await.is_err());
    d.world.tap.revive();
    d.minute().await;
    assert_eq!(d.handed_out(), [a]);
}

#[tokio::test]
async fn a_tick_that_runs_out_of_time_is_continued_and_forgets_nothing() {
    let mut d = Deployment::with(&[]).await;
    for n in 0..40 {
        d.register_every(&format!("t{n}"), "2m").await;
    }
    let ports = d.world.ports();
    let mut seen = Vec::new();
    // No time at all: one shard for each tick, and 16 of them for what was due with the first.
    for _ in 0..16 {
        compensate::scan_due(&ports, &trace(), d.world.clock.now()).await.unwrap();
        d.world.clock.advance(Duration::from_secs(5));
        seen.extend(d.handed_out());
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 40);
    d.world.clock.advance(Duration::from_mins(2));
    compensate::scan_due(&ports, &trace(), Timestamp::MAX).await.unwrap();
    assert_eq!(d.handed_out().len(), 40);
}

#[tokio::test]
async fn a_lost_notification_is_repaired_within_an_interval_and_a_minute() {
    let mut d = Deployment::with(&[]).await;
    d.register_every("a", "1m").await;
    d.minute().await;
    d.handed_out();
    d.table("a").commit("APPEND", 1);
    d.minute().await;
    for message in d.world.queue.drain() {
        d.carry(&message).await.unwrap();
    }
    assert_eq!(d.head("a").state.position().ordinal.0, 1);
}

#[test]
fn an_interval_below_a_minute_is_refused() {
    let with = |interval: &str| {
        let document = json!({"key": key("a"), "location": "s3://lake/a", "scanInterval": interval});
        serde_json::from_value::<AssetSpec>(document).map_err(|error| error.to_string())
    };
    assert_eq!(with("59s").unwrap_err(), "`59s` is shorter than a minute; write 1m or more");
    assert!(with("soon").unwrap_err().contains("no length of time"));
    let spec = with("PT90S").unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap()["scanInterval"], "1m 30s");
}
