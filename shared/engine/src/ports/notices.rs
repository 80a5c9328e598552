//! Notices to whoever wants to react. Telling one never fails and never waits; what is told is
//! delivered at the end of an invocation, in batches, or not at all.

use async_trait::async_trait;
use lakebell_domain::notice::Notice;

/// What came of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Notices that the bus took.
    pub sent: usize,
    /// Notices that it did not take, and those that were told beyond what is kept.
    pub failed: usize,
}

/// Where notices go.
#[async_trait]
pub trait Notices: Send + Sync {
    /// Keeps a notice until the next delivery.
    fn tell(&self, notice: Notice);

    /// Delivers what was told since the last time. A notice that is not taken is dropped.
    async fn deliver(&self) -> Delivered;
}

/// Nobody listens: notices are dropped as they are told.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNotices;

#[async_trait]
impl Notices for NoNotices {
    fn tell(&self, _: Notice) {}

    async fn deliver(&self) -> Delivered {
        Delivered::default()
    }
}
