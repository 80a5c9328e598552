//! What the use cases need from the outside, one narrow trait for each need.

pub mod catalog;
pub mod dead_letters;
pub mod items;
pub mod notices;
pub mod queue;
pub mod scheduler;
pub mod storage;
pub mod time;

use std::sync::Arc;

/// Every port that the use cases of ingestion and evaluation share.
#[derive(Clone)]
pub struct Ports {
    /// Where state is kept.
    pub items: Arc<dyn items::ItemStore>,
    /// The tables' own files.
    pub storage: Arc<dyn storage::TableStorage>,
    /// The catalogs of the tables.
    pub catalogs: Arc<dyn catalog::Catalogs>,
    /// The one kind of file that is written to a lake, where an asset asks for it.
    pub consumers: Arc<dyn storage::ConsumerFiles>,
    /// Messages to other functions.
    pub queue: Arc<dyn queue::Queue>,
    /// The time.
    pub clock: Arc<dyn time::Clock>,
    /// Randomness.
    pub random: Arc<dyn time::Random>,
    /// Notices to whoever wants to react.
    pub notices: Arc<dyn notices::Notices>,
}
