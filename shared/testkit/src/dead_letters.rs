//! Dead letters in memory.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use lakebell_engine::EngineError;
use lakebell_engine::ports::dead_letters::{DeadLetters, DeadQueue};
use lakebell_engine::ports::queue::MAX_BATCH;

use crate::lock;

/// [`DeadLetters`] that keep what lies there and what was put back.
#[derive(Debug, Default)]
pub struct MemoryDeadLetters {
    lying: Mutex<BTreeMap<DeadQueue, Vec<String>>>,
    back: Mutex<Vec<(DeadQueue, String)>>,
}

impl MemoryDeadLetters {
    /// A message that nobody tries any more.
    pub fn lay(&self, queue: DeadQueue, body: impl Into<String>) {
        lock(&self.lying).entry(queue).or_default().push(body.into());
    }

    /// What was put back, in its order.
    pub fn put_back(&self) -> Vec<(DeadQueue, String)> {
        lock(&self.back).clone()
    }
}

#[async_trait]
impl DeadLetters for MemoryDeadLetters {
    async fn count(&self, queue: DeadQueue) -> Result<u64, EngineError> {
        Ok(lock(&self.lying).get(&queue).map_or(0, Vec::len) as u64)
    }

    async fn put_back(&self, queue: DeadQueue) -> Result<usize, EngineError> {
        let mut lying = lock(&self.lying);
        let of_queue = lying.entry(queue).or_default();
        let some: Vec<String> = of_queue.drain(..of_queue.len().min(MAX_BATCH)).collect();
        let count = some.len();
        lock(&self.back).extend(some.into_iter().map(|body| (queue, body)));
        Ok(count)
    }
}
