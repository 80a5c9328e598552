//! Notices in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use lakebell_domain::notice::Notice;
use lakebell_engine::ports::notices::{Delivered, Notices};

use crate::lock;

/// Keeps every notice that was told.
#[derive(Debug, Default)]
pub struct MemoryNotices(Mutex<Vec<Notice>>);

impl MemoryNotices {
    /// What was told since the last time, in order.
    pub fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *lock(&self.0))
    }
}

#[async_trait]
impl Notices for MemoryNotices {
    fn tell(&self, notice: Notice) {
        lock(&self.0).push(notice);
    }

    async fn deliver(&self) -> Delivered {
        Delivered::default()
    }
}
