//! What a target that looks at each commit needs from before its declaration.

use std::collections::BTreeMap;

use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::event::Source;
use lakebell_domain::ids::{AssetId, GroupName, TraceId};
use lakebell_domain::target::{StartFrom, Target};
use lakebell_domain::version::Position;

use crate::observe::{self, Hint, Look, Past};
use crate::ports::Ports;
use crate::records::AssetHead;
use crate::{EngineError, ErrorKind};

/// Reads the tables that were never read, where a target that looks at each commit is to begin before its
/// declaration: without a first read there is no place to go back from. Says whether any was read.
///
/// Errors: `Conflict` for one that cannot be read.
pub(super) async fn read_first(
    ports: &Ports,
    target: &Target,
    start: &StartFrom,
    heads: &BTreeMap<AssetId, AssetHead>,
    trace: &TraceId,
) -> Result<bool, EngineError> {
    if !target.needs_history() || matches!(start, StartFrom::Now | StartFrom::Current) {
        return Ok(false);
    }
    let mut has_read = false;
    for (asset, head) in heads {
        if head.live_state().is_none_or(|state| state.baseline.is_some()) {
            continue;
        }
        let hint = Hint { asset: *asset, look: Look::Whole, source: Source::Poll, trace: trace.clone() };
        let observed = observe::observe(ports, &hint).await?;
        let state = &observed.head.value.state;
        if state.baseline.is_none() {
            let why = state.trouble.as_ref().map_or("its files say nothing yet", |trouble| trouble.detail.as_str());
            let message = format!("{} has not been read, so what lies before now is not known: {why}", head.key);
            return Err(EngineError::new(ErrorKind::Conflict, message).with("field", "startFrom"));
        }
        has_read = true;
    }
    Ok(has_read)
}

/// Sees to it that the commits between a target's cursors and the newest recorded versions have events
/// that are kept, for the members of groups whose commits were not kept for it before.
///
/// Errors: those of reading them, with the asset.
pub(super) async fn keep(
    ports: &Ports,
    target: &Target,
    cursor: &TargetCursor,
    heads: &BTreeMap<AssetId, AssetHead>,
    is_kept: impl Fn(&GroupName, AssetId) -> bool,
    past: Past,
    trace: &TraceId,
) -> Result<(), EngineError> {
    if !target.needs_history() {
        return Ok(());
    }
    for (asset, head) in heads {
        let Some(state) = head.live_state().filter(|state| state.baseline.is_some()) else { continue };
        let start = Position::start_of(state.epoch);
        let begins = target.groups.iter().filter_map(|group| {
            let taken = cursor.at(&group.name, *asset).filter(|_| !is_kept(&group.name, *asset))?;
            Some(taken.position().unwrap_or(start).max(start))
        });
        if let Some(beyond) = begins.min() {
            let kept = observe::keep_past(ports, *asset, head, beyond, past, trace).await;
            kept.map_err(|error| error.with("asset", &head.key))?;
        }
    }
    Ok(())
}
