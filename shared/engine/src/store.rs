//! Typed reading and writing over the item store, and the answer to lost answers.

use std::sync::Arc;

use lakebell_domain::ids::{AssetId, AttemptId, TraceId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ports::items::{Draft, Item, ItemStore, Key, Lost, Write, Written};
use crate::ports::time::Random;
use crate::{EngineError, ErrorKind};

/// How often a use case starts over after somebody else wrote first, before it gives up and lets
/// its message come again.
pub const MAX_LOST_RACES: usize = 8;

/// A value with the revision that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    /// The revision.
    pub rev: u64,
    /// The value.
    pub value: T,
}

/// The value of an item.
pub fn decode<T: DeserializeOwned>(item: &Item) -> Result<Stored<T>, EngineError> {
    let value = serde_json::from_str(&item.doc).map_err(|error| {
        EngineError::new(ErrorKind::Damaged, "a recorded item cannot be understood")
            .with("pk", &item.key.pk)
            .with("sk", &item.key.sk)
            .caused_by(error)
    })?;
    Ok(Stored { rev: item.rev, value })
}

/// The content of an item.
pub fn encode<T: Serialize>(value: &T) -> Result<String, EngineError> {
    serde_json::to_string(value)
        .map_err(|error| EngineError::new(ErrorKind::Defect, "a value cannot be written as JSON").caused_by(error))
}

/// A draft with nothing but content.
pub fn draft<T: Serialize>(key: Key, value: &T) -> Result<Draft, EngineError> {
    Ok(Draft::new(key, encode(value)?))
}

/// One value by its key.
pub async fn get<T: DeserializeOwned>(items: &dyn ItemStore, key: Key) -> Result<Option<Stored<T>>, EngineError> {
    let found = items.get(std::slice::from_ref(&key)).await?;
    found.first().map(decode).transpose()
}

/// The item with this key among those that were read.
pub fn pick<'a>(items: &'a [Item], key: &Key) -> Option<&'a Item> {
    items.iter().find(|item| item.key == *key)
}

/// Writes all actions or none under a fresh attempt.
///
/// A writer whose answer was lost, and whose repeated request then failed on its own condition,
/// finds its own attempt in the item that stands there: that write landed.
pub async fn write(items: &dyn ItemStore, random: &dyn Random, actions: &[Write]) -> Result<Written, EngineError> {
    let attempt = new_attempt(random)?;
    let written = items.write(actions, &attempt).await?;
    if let Written::Lost(lost) = &written
        && lost.iter().any(|lost| is_own(actions, lost, &attempt))
    {
        return Ok(Written::Done);
    }
    Ok(written)
}

/// Only a created or replaced item carries the attempt.
fn is_own(actions: &[Write], lost: &Lost, attempt: &AttemptId) -> bool {
    let carries_attempt = matches!(actions.get(lost.action), Some(Write::Create(_) | Write::Replace(..)));
    carries_attempt && lost.existing.as_ref().is_some_and(|item| item.attempt == *attempt)
}

fn new_attempt(random: &dyn Random) -> Result<AttemptId, EngineError> {
    Ok(AttemptId::new(format!("{:032x}", random.bits()))?)
}

/// A fresh trace id.
pub fn new_trace(random: &dyn Random) -> Result<TraceId, EngineError> {
    Ok(TraceId::new(format!("{:032x}", random.bits()))?)
}

/// A fresh asset id.
pub fn new_asset_id(random: &dyn Random) -> AssetId {
    AssetId::from_bits(random.bits())
}

/// The failure of a use case that lost too many races.
pub fn lost_too_often(what: &'static str) -> EngineError {
    EngineError::new(ErrorKind::Contention, format!("{what}: somebody else wrote first {MAX_LOST_RACES} times"))
}

/// All values of a registry, read shard by shard. For lists that people ask for, never for a hint.
pub async fn registry<T: DeserializeOwned>(items: &Arc<dyn ItemStore>, name: &str) -> Result<Vec<T>, EngineError> {
    let mut shards = tokio::task::JoinSet::new();
    for shard in 0..crate::layout::SHARDS {
        let items = Arc::clone(items);
        let range = crate::layout::registry_shard(name, shard);
        shards.spawn(async move { all_of(&*items, &range).await });
    }
    let mut values = Vec::new();
    while let Some(shard) = shards.join_next().await {
        let found =
            shard.map_err(|error| EngineError::new(ErrorKind::Defect, "a read was aborted").caused_by(error))??;
        for item in &found {
            values.push(decode(item)?.value);
        }
    }
    Ok(values)
}

/// Every item of a range, page by page.
pub async fn all_of(items: &dyn ItemStore, range: &crate::ports::items::Range) -> Result<Vec<Item>, EngineError> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = items.query(range, None, after.as_deref()).await?;
        found.extend(page.found);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}
