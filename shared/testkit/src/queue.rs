//! A queue that keeps its messages.

use std::sync::Mutex;

use async_trait::async_trait;
use lakebell_engine::EngineError;
use lakebell_engine::ports::queue::{Message, Queue};

use crate::lock;

/// A [`Queue`] that keeps every message until a test takes it.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    waiting: Mutex<Vec<Message>>,
}

impl MemoryQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes every message, in the order in which they were sent.
    pub fn drain(&self) -> Vec<Message> {
        std::mem::take(&mut *lock(&self.waiting))
    }

    /// Takes the message at `index`, where there is one: delivery out of order.
    pub fn take(&self, index: usize) -> Option<Message> {
        let mut waiting = lock(&self.waiting);
        (index < waiting.len()).then(|| waiting.remove(index))
    }

    /// The messages that wait, in the order in which they were sent.
    pub fn waiting(&self) -> Vec<Message> {
        lock(&self.waiting).clone()
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn send(&self, message: &Message) -> Result<(), EngineError> {
        lock(&self.waiting).push(message.clone());
        Ok(())
    }

    /// Delivered when a test takes it, as all are.
    async fn send_later(&self, message: &Message, _seconds: u32) -> Result<(), EngineError> {
        self.send(message).await
    }
}
