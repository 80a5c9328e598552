//! Read what was recorded: events of an asset, triggers of a project.

mod extras;
mod withdrawn;

pub use extras::{Extra, extras};
pub use withdrawn::{Consumed, MAX_LOOKED_AT, Withdrawn, withdrawn};

use lakebell_domain::event::Event;
use lakebell_domain::ids::{AssetId, ProjectCode, TriggerKey};
use lakebell_domain::trigger::Trigger;

use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Index, Page};
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind};

/// Events of an asset, newest first. The page mark is opaque.
pub async fn events(
    ports: &Ports,
    asset: AssetId,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<Event>, EngineError> {
    page(ports, &layout::asset(asset), limit, after).await
}

/// Triggers of a project, newest first.
pub async fn triggers(
    ports: &Ports,
    project: ProjectCode,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<Trigger>, EngineError> {
    page(ports, &layout::trigger_history_partition(project), limit, after).await
}

/// One trigger.
///
/// Errors: `NotFound`.
pub async fn trigger(ports: &Ports, key: &TriggerKey) -> Result<Stored<Trigger>, EngineError> {
    store::get(&*ports.items, layout::trigger(key))
        .await?
        .ok_or_else(|| EngineError::new(ErrorKind::NotFound, format!("there is no trigger {key}")))
}

/// A page of a history: keys from the index, then the items themselves, in the index's order.
pub(crate) async fn page<T: serde::de::DeserializeOwned>(
    ports: &Ports,
    partition: &str,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<T>, EngineError> {
    let keys = ports.items.index(Index::History, partition, None, true, limit, after).await?;
    if keys.found.is_empty() {
        return Ok(Page { found: Vec::new(), next: keys.next });
    }
    let items = ports.items.get(&keys.found).await?;
    let found = keys.found.iter().filter_map(|key| store::pick(&items, key));
    let found = found.map(|item| store::decode(item).map(|stored| stored.value)).collect::<Result<_, _>>()?;
    Ok(Page { found, next: keys.next })
}
