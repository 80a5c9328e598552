//! When a target would have started, by the recorded history of its assets.

use std::collections::BTreeMap;

use lakebell_domain::event::Event;
use lakebell_domain::ids::{AssetId, ProjectCode, TargetId};
use lakebell_domain::replay::{RecordedHistory, Replay, replay};
use lakebell_domain::target::{Target, TargetSpec};

use crate::EngineError;
use crate::assets;
use crate::history;
use crate::ports::Ports;
use crate::records::AssetHead;
use crate::targets;

/// Most events that are read of one asset, newest first.
pub const MAX_EVENTS: usize = 5_000;
/// Events of one page.
const PAGE: usize = 100;

/// Replays a declared target.
///
/// Errors: `NotFound`.
pub async fn of_declared(ports: &Ports, id: &TargetId) -> Result<Replay, EngineError> {
    over(ports, &targets::find(ports, id).await?.target).await
}

/// Replays a target that is not declared; nothing is kept of it.
///
/// Errors: `Invalid` with the field; `NotFound` for an asset that is not registered.
pub async fn of_spec(ports: &Ports, project: ProjectCode, spec: &TargetSpec) -> Result<Replay, EngineError> {
    over(ports, &targets::resolve(ports, project, spec).await?).await
}

async fn over(ports: &Ports, target: &Target) -> Result<Replay, EngineError> {
    let mut histories = BTreeMap::new();
    for asset in target.assets().into_keys() {
        let head = assets::head(ports, asset).await?.value;
        let approval_required = head.state.schema.approval_required;
        let events = events(ports, asset, &head).await?;
        histories.insert(asset, RecordedHistory { events, approval_required });
    }
    Ok(replay(target, &histories, ports.clock.now()))
}

/// The newest events of an asset since it was registered, oldest first.
async fn events(ports: &Ports, asset: AssetId, head: &AssetHead) -> Result<Vec<Event>, EngineError> {
    let mut events = Vec::new();
    let mut after = None;
    while events.len() < MAX_EVENTS {
        let page = history::own_events(ports, asset, head, PAGE, after.as_deref()).await?;
        events.extend(page.found);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    events.reverse();
    Ok(events)
}
