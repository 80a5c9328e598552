//! A log of a million commits, all of them there: which keys a look lists, counted through the storage
//! port.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use lakebell_domain::event::Source;
use lakebell_engine::EngineError;
use lakebell_engine::assets;
use lakebell_engine::observe::{self, Hint, Look};
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::storage::{Listed, Listing, Opened, Pieces, TableStorage};
use lakebell_testkit::World;

use super::super::ROOT;
use super::{KEY, created, written};
use crate::support::{BUCKET, PROJECT, trace};

const MILLION: u64 = 1_000_000;

/// The log's objects, made when they are asked for.
struct Log {
    newest: AtomicU64,
    hint: Option<u64>,
    /// The versions of the keys that were listed.
    listed: Mutex<Vec<u64>>,
    listings: AtomicU64,
}

struct Once(Option<Vec<u8>>);

#[async_trait]
impl Pieces for Once {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        Ok(self.0.take())
    }
}

impl Log {
    fn version_of(&self, key: &str) -> Option<u64> {
        let digits = key.strip_prefix(&format!("{ROOT}/_delta_log/"))?.strip_suffix(".json")?;
        digits.parse().ok().filter(|version| *version <= self.newest.load(Ordering::SeqCst))
    }

    fn take_listed(&self) -> (Vec<u64>, u64) {
        (std::mem::take(&mut *self.listed.lock().unwrap()), self.listings.swap(0, Ordering::SeqCst))
    }
}

#[async_trait]
impl TableStorage for Log {
    async fn open(&self, _: &str, key: &str) -> Result<Option<Opened>, EngineError> {
        let hint = self.hint.filter(|_| key.ends_with("_delta_log/_last_checkpoint"));
        let content = match (self.version_of(key), hint) {
            (Some(0), _) => created("c0"),
            (Some(version), _) => written(&format!("c{version}")),
            (None, Some(version)) => format!(r#"{{"version":{version},"size":1}}"#),
            (None, None) => return Ok(None),
        };
        let (etag, size) = (format!("etag-{key}"), content.len() as u64);
        Ok(Some(Opened { etag, size, pieces: Box::new(Once(Some(content.into_bytes()))) }))
    }

    async fn list(&self, _: &str, listing: Listing<'_>) -> Result<Vec<Listed>, EngineError> {
        self.listings.fetch_add(1, Ordering::SeqCst);
        let folder = format!("{ROOT}/_delta_log/");
        let key = |version: u64| format!("{folder}{version:020}.json");
        let newest = self.newest.load(Ordering::SeqCst);
        // The first version whose key comes after the one that is named, by bisection: keys are in order.
        let is_after = |version: u64| listing.after.is_none_or(|after| *key(version) > *after);
        let (mut from, mut to) = (0, newest + 1);
        while from < to {
            let middle = u64::midpoint(from, to);
            if is_after(middle) {
                to = middle;
            } else {
                from = middle + 1;
            }
        }
        let versions = (from..=newest).filter(|version| key(*version).starts_with(listing.prefix)).take(listing.limit);
        let versions: Vec<u64> = versions.collect();
        self.listed.lock().unwrap().extend(&versions);
        let row =
            |version: &u64| Listed { key: key(*version), etag: format!("etag-{}", key(*version)), modified: None };
        Ok(versions.iter().map(row).collect())
    }

    async fn folders(&self, _: &str, _: &str, _: Option<&str>, _: usize) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn every_look_lists_the_end_of_a_whole_log_and_never_its_start() {
    for hint in [Some(999_990), None, Some(7), Some(2_000_000)] {
        let log = Arc::new(Log {
            newest: AtomicU64::new(MILLION),
            hint,
            listed: Mutex::default(),
            listings: AtomicU64::new(0),
        });
        let world = World::new(1);
        let ports = Ports { storage: log.clone(), ..world.quiet_ports() };
        let spec = serde_json::json!({"key": KEY, "location": format!("s3://{BUCKET}/{ROOT}")});
        let spec = serde_json::from_value(spec).unwrap();
        let asset = assets::register(&ports, PROJECT, &spec, &trace()).await.unwrap().id;
        let (listed, listings) = log.take_listed();
        // What a store's pages are made of: a whole log would be a thousand of them.
        assert!(listings <= 60, "hint {hint:?}: {listings} listings");
        assert!(listed.len() <= 5_000, "hint {hint:?}: {} keys of {MILLION}", listed.len());
        println!("hint {hint:?}: registered with {listings} listings of {} keys", listed.len());

        let hint_of_scan = Hint { asset, look: Look::Whole, source: Source::Poll, trace: trace() };
        observe::observe(&ports, &hint_of_scan).await.unwrap();
        let (listed, listings) = log.take_listed();
        assert_eq!(listings, 1, "a scan of an unchanged log");
        assert!(listed.iter().all(|version| *version > MILLION - 1_000), "{listed:?}");

        log.newest.store(MILLION + 3, Ordering::SeqCst);
        let observed = observe::observe(&ports, &hint_of_scan).await.unwrap();
        let (listed, _) = log.take_listed();
        assert_eq!(observed.head.value.state.table.as_ref().unwrap().snapshot_id, "1000003");
        assert_eq!(observed.outcomes.len(), 3);
        assert!(listed.iter().all(|version| *version > MILLION - 1_000), "{listed:?}");
    }
}
