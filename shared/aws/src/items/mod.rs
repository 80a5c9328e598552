//! Items on DynamoDB.
//!
//! One action goes as a plain conditional request, which costs half of a transaction; several go
//! as `TransactWriteItems`. Both ask for the item that stands there when a condition fails, so
//! that a writer whose first request landed and whose answer was lost can tell its own write by
//! its attempt id. A removal leaves nothing to tell by: one that had landed already answers that
//! there is no such item.
//!
//! The SDK does not repeat writes: they are repeated here, where it is known whether an earlier
//! try may have landed. Only then is an error `Unavailable` instead of `Contention`.

mod codec;
mod outcome;
mod reads;
mod request;

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use lakebell_domain::ids::AttemptId;
use lakebell_engine::ports::items::{Index, Item, ItemStore, Key, Page, Range, Write, Written};
use lakebell_engine::ports::time::Random;
use lakebell_engine::{EngineError, ErrorKind};

use crate::failure::Doing;
use crate::random::{SystemRandom, jitter};
use outcome::Try;

/// How often a transaction that met another one is tried again.
const CONFLICT_RETRIES: u32 = 4;
/// How often a write to a busy table is tried again.
const THROTTLE_RETRIES: u32 = 3;
/// How often a write whose answer is missing is tried again.
const UNKNOWN_RETRIES: u32 = 2;
/// The longest first pause after a conflict: about as long as a transaction takes.
const CONFLICT_PAUSE: Duration = Duration::from_millis(25);
/// The longest first pause after throttling or a missing answer.
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// An [`ItemStore`] on one DynamoDB table with the keys `pk` and `sk` and the indexes `sweep` and
/// `history`, both keys only.
#[derive(Debug, Clone)]
pub struct DynamoItems {
    client: Client,
    table: String,
    /// The table's name in messages.
    shown: String,
}

impl DynamoItems {
    /// A store on this table.
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        let table = table.into();
        let shown = format!("table `{table}`");
        Self { client, table, shown }
    }

    const fn doing<'a>(&'a self, permission: &'a str) -> Doing<'a> {
        Doing { permission, resource: self.shown.as_str(), where_set: "LAKEBELL_TABLE, region and endpoint" }
    }

    async fn write_with_retries(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        let (mut conflicts, mut throttles, mut unknowns) = (0, 0, 0);
        let mut token = new_token();
        loop {
            // While no try may have landed, each gets a token of its own; afterwards the same token
            // lets DynamoDB recognise the write (for ten minutes, by its API reference).
            if unknowns == 0 {
                token = new_token();
            }
            match self.one_try(actions, attempt, &token).await {
                Try::Done => return Ok(Written::Done),
                Try::Lost(lost) => return Ok(Written::Lost(lost)),
                Try::Failed(error) => return Err(error),
                Try::Conflict => {
                    conflicts += 1;
                    if conflicts > CONFLICT_RETRIES {
                        return Err(self.contention(unknowns > 0));
                    }
                    pause(CONFLICT_PAUSE, conflicts).await;
                }
                Try::Throttled(error) => {
                    throttles += 1;
                    if throttles > THROTTLE_RETRIES {
                        return Err(error);
                    }
                    pause(BUSY_PAUSE, throttles).await;
                }
                Try::Unknown(error) => {
                    unknowns += 1;
                    if unknowns > UNKNOWN_RETRIES {
                        return Err(error);
                    }
                    pause(BUSY_PAUSE, unknowns).await;
                }
            }
        }
    }

    fn contention(&self, may_have_landed: bool) -> EngineError {
        let resource = &self.shown;
        if may_have_landed {
            let message = format!("{resource} did not say what became of a write and then was contended");
            return EngineError::new(ErrorKind::Unavailable, message);
        }
        let tries = CONFLICT_RETRIES + 1;
        let message = format!("{resource}: other transactions on the same items were in the way {tries} times");
        EngineError::new(ErrorKind::Contention, message)
    }
}

#[async_trait]
impl ItemStore for DynamoItems {
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError> {
        self.query_range(range, limit, after).await
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        match keys {
            [] => Ok(Vec::new()),
            [key] => Ok(self.get_one(key).await?.into_iter().collect()),
            _ => self.get_many(keys).await,
        }
    }

    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        request::check(actions)?;
        if actions.is_empty() {
            return Ok(Written::Done);
        }
        self.write_with_retries(actions, attempt).await
    }

    async fn index(
        &self,
        index: Index,
        pk: &str,
        up_to: Option<&str>,
        backwards: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Page<Key>, EngineError> {
        self.query_index(index, pk, up_to, backwards, limit, after).await
    }
}

/// Waits a random time up to `first`, doubled with each round.
async fn pause(first: Duration, round: u32) {
    tokio::time::sleep(jitter(first * 2u32.saturating_pow(round.saturating_sub(1).min(5)))).await;
}

/// A random token: derived from the keys it would be a mismatch as soon as the content changed.
fn new_token() -> String {
    format!("{:032x}", SystemRandom.bits())
}
