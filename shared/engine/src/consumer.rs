//! The consumer file of a Paimon table, for assets that ask for one (`keepConsumer`): as long as it
//! says that a snapshot is still to be read, the table's expiry keeps that snapshot.
//!
//! The file says what Lakebell has read, not what workflows have processed. It is written by the
//! scan alone, so that it lags behind by an interval at most, which only keeps more.

use lakebell_domain::ids::AssetId;
use lakebell_formats::paimon::{self, Consumer};

use crate::observe::Observed;
use crate::ports::Ports;
use crate::records::AssetHead;
use crate::{EngineError, ErrorKind};

/// What became of a consumer file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The asset asks for none, nothing was read yet, or a rewrite is held.
    NotAsked,
    /// It says already what is to be read next, or more.
    Unchanged,
    /// It says now that this snapshot is to be read next.
    Moved(u64),
    /// Somebody else wrote it at the same time; theirs stays.
    Lost,
}

/// The name of an asset's consumer: unique, because two deployments may look at one table.
pub fn consumer_of(asset: AssetId) -> String {
    format!("lakebell-{asset}")
}

/// Has the consumer file of an asset say what is to be read next, if it does not yet. It never goes
/// back: also not after a rollback, until the table's ids have passed what it says.
///
/// Errors: `Denied` where the right to read or write it is missing, `Unavailable`, and `Damaged`
/// where something else stands in its place. None of them is about the asset's state.
pub async fn keep(ports: &Ports, observed: &Observed) -> Result<Kept, EngineError> {
    let head = &observed.head.value;
    let Some(next_snapshot) = next_snapshot(head) else { return Ok(Kept::NotAsked) };
    let bucket = head.location.bucket();
    let key = head.location.object_key(&paimon::consumer_key(head.key.branch(), &consumer_of(observed.asset)));
    let there = ports.storage.get(bucket, &key, paimon::MAX_FILE_BYTES).await?;
    if let Some(there) = &there {
        let consumer = Consumer::parse(&there.bytes).map_err(|error| {
            EngineError::new(ErrorKind::Damaged, format!("{key} is no consumer file; remove it")).caused_by(error)
        })?;
        if consumer.next_snapshot >= next_snapshot {
            return Ok(Kept::Unchanged);
        }
    }
    let body = format!("{{\"nextSnapshot\":{next_snapshot}}}").into_bytes();
    let over = there.as_ref().map(|there| there.etag.as_str());
    let is_put = ports.consumers.put(bucket, &key, body, over).await?;
    Ok(if is_put { Kept::Moved(next_snapshot) } else { Kept::Lost })
}

/// The first snapshot that was not read yet.
fn next_snapshot(head: &AssetHead) -> Option<u64> {
    let is_wanted = head.settings.keep_consumer && head.deregistered_at.is_none() && head.state.hold.is_none();
    let table = head.state.table.as_ref().filter(|_| is_wanted)?;
    Some(table.position.ordinal.0 + 1)
}
