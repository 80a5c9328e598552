//! Messages that nobody tries any more.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use lakebell_domain::Invalid;
use serde::{Deserialize, Serialize};

use crate::EngineError;

/// A queue whose messages are put aside after too many receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeadQueue {
    /// Notifications, and events that EventBridge could not deliver.
    Hints,
    /// Targets to evaluate and assets to look at.
    Evaluate,
    /// Triggers to carry on.
    Dispatch,
}

impl DeadQueue {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hints, Self::Evaluate, Self::Dispatch];

    /// The word for paths and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hints => "hints",
            Self::Evaluate => "evaluate",
            Self::Dispatch => "dispatch",
        }
    }
}

impl fmt::Display for DeadQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DeadQueue {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|queue| queue.as_str() == text).ok_or_else(|| {
            Invalid::new("queue", format!("there is no queue `{text}`"), "use hints, evaluate or dispatch")
        })
    }
}

/// The queues behind the queues.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// About how many messages lie there: some that just came may not be counted yet.
    ///
    /// Errors: `Denied`, `NotFound`, `Unavailable`.
    async fn count(&self, queue: DeadQueue) -> Result<u64, EngineError>;

    /// Puts some messages, ten at most, back into the queue that they came from; how many. A message is
    /// taken away only after the other queue has it, so one may come twice and none is lost.
    ///
    /// Errors: as those of `count`; those that were not put back stay.
    async fn put_back(&self, queue: DeadQueue) -> Result<usize, EngineError>;
}

/// Of a deployment without queues.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDeadLetters;

#[async_trait]
impl DeadLetters for NoDeadLetters {
    async fn count(&self, _queue: DeadQueue) -> Result<u64, EngineError> {
        Ok(0)
    }

    async fn put_back(&self, _queue: DeadQueue) -> Result<usize, EngineError> {
        Ok(0)
    }
}
