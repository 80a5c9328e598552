//! All ports in memory, in one place.

use std::sync::Arc;

use lakebell_engine::ports::Ports;

use crate::{MemoryCatalogs, MemoryItems, MemoryNotices, MemoryQueue, MemoryStorage, SeededRandom, SimClock, Tap};

/// Everything outside the engine, in memory. Clones share it.
#[derive(Clone)]
pub struct World {
    /// State.
    pub items: Arc<MemoryItems>,
    /// The tables' files.
    pub storage: Arc<MemoryStorage>,
    /// The catalogs of the tables.
    pub catalogs: Arc<MemoryCatalogs>,
    /// Messages.
    pub queue: Arc<MemoryQueue>,
    /// The time.
    pub clock: SimClock,
    /// Randomness.
    pub random: SeededRandom,
    /// Notices that were told.
    pub notices: Arc<MemoryNotices>,
    /// The log of calls and the plan of faults.
    pub tap: Tap,
}

impl World {
    /// An empty world at 2026-01-01T00:00:00Z.
    pub fn new(seed: u64) -> Self {
        Self {
            items: Arc::new(MemoryItems::new()),
            storage: Arc::new(MemoryStorage::new()),
            catalogs: Arc::new(MemoryCatalogs::new()),
            queue: Arc::new(MemoryQueue::new()),
            clock: SimClock::default(),
            random: SeededRandom::new(seed),
            notices: Arc::new(MemoryNotices::default()),
            tap: Tap::new(),
        }
    }

    /// The ports, each call logged and open to faults.
    pub fn ports(&self) -> Ports {
        Ports {
            items: self.tap.on(self.items.clone()),
            storage: self.tap.on(self.storage.clone()),
            catalogs: self.tap.on(self.catalogs.clone()),
            consumers: self.tap.on(self.storage.clone()),
            queue: self.tap.on(self.queue.clone()),
            clock: Arc::new(self.clock.clone()),
            random: Arc::new(self.random.clone()),
            notices: self.notices.clone(),
        }
    }

    /// The same ports without log and faults: for the arrangement of a test and its checks.
    pub fn quiet_ports(&self) -> Ports {
        Ports {
            items: self.items.clone(),
            storage: self.storage.clone(),
            catalogs: self.catalogs.clone(),
            consumers: self.storage.clone(),
            queue: self.queue.clone(),
            clock: Arc::new(self.clock.clone()),
            random: Arc::new(self.random.clone()),
            notices: self.notices.clone(),
        }
    }
}
