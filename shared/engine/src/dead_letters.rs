//! Put messages that nobody tries any more back where they came from.
//!
//! That is always safe: messages carry no state, and one that is too old does nothing but evaluate.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::ports::dead_letters::{DeadLetters, DeadQueue};
use crate::ports::time::Clock;

/// Most messages that one request puts back.
pub const MOST_AT_ONCE: usize = 1_000;

/// How many messages lie in a queue behind a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lying {
    /// The queue that they came from.
    pub queue: DeadQueue,
    /// About how many.
    pub messages: u64,
}

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drained {
    /// The queue that they came from.
    pub queue: DeadQueue,
    /// How many.
    pub put_back: usize,
    /// Whether none was left.
    pub is_empty: bool,
}

/// What lies in each queue.
///
/// Errors: those of the queues.
pub async fn lying(letters: &dyn DeadLetters) -> Result<Vec<Lying>, EngineError> {
    let mut lying = Vec::with_capacity(DeadQueue::ALL.len());
    for queue in DeadQueue::ALL {
        lying.push(Lying { queue, messages: letters.count(queue).await? });
    }
    Ok(lying)
}

/// Puts back what lies behind a queue, [`MOST_AT_ONCE`] at most, until nothing is left or `until`.
///
/// Errors: those of the queues; what was put back by then stays so.
pub async fn drain(
    letters: &dyn DeadLetters,
    clock: &dyn Clock,
    queue: DeadQueue,
    until: Timestamp,
) -> Result<Drained, EngineError> {
    let mut put_back = 0;
    while put_back < MOST_AT_ONCE && clock.now() < until {
        match letters.put_back(queue).await? {
            0 => return Ok(Drained { queue, put_back, is_empty: true }),
            some => put_back += some,
        }
    }
    Ok(Drained { queue, put_back, is_empty: false })
}
