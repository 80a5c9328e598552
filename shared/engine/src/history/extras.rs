//! What writers attached to the versions that a trigger took.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::{Event, EventKind};
use lakebell_domain::trigger::Trigger;
use lakebell_domain::version::{Ordinal, Position};
use serde::Serialize;
use serde_json::Value;

use crate::layout;
use crate::ports::Ports;
use crate::ports::items::Page;
use crate::records::AssetHead;
use crate::store;
use crate::{EngineError, ErrorKind};

/// Events that are about one version, so that a range holds them.
const KINDS: [EventKind; 4] = [
    EventKind::SnapshotCommitted,
    EventKind::QualityCheckPassed,
    EventKind::QualityCheckFailed,
    EventKind::QualityCheckErrored,
];
/// Most events that one page looks at.
const MAX_LOOKED_AT: usize = 1_000;
/// Events of one read.
const PAGE: usize = 200;

/// What is known of one version, or of a check of it, that a trigger took.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Extra {
    /// The table.
    pub asset_key: AssetKey,
    /// What was told: a commit, or a check of one.
    pub kind: EventKind,
    /// The version's place in the history of its epoch.
    pub ordinal: Ordinal,
    /// The snapshot; absent for a check that names it by its place alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Rows that the commit added, less those that it removed, as the format counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<i64>,
    /// What writers attached.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Value>,
    /// When it was recorded.
    pub recorded_at: Timestamp,
}

/// Where a page goes on: range, kind, and the store's own mark.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Mark {
    range: usize,
    kind: usize,
    after: Option<String>,
}

impl Mark {
    fn parse(text: &str) -> Result<Self, EngineError> {
        let wrong = || EngineError::new(ErrorKind::Invalid, "it is no mark of this list");
        let mut parts = text.splitn(3, '.');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or_else(wrong);
        let (range, kind) = (number()?, number()?);
        let after = parts.next().filter(|after| !after.is_empty()).map(str::to_owned);
        Ok(Self { range, kind, after })
    }

    fn next_kind(&self) -> Self {
        match self.kind + 1 {
            kind if kind < KINDS.len() => Self { kind, after: None, ..self.clone() },
            _ => Self { range: self.range + 1, ..Self::default() },
        }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.range, self.kind, self.after.as_deref().unwrap_or_default())
    }
}

/// What was attached to the versions of a trigger, table by table in the order of its ranges and for each in
/// the order of its history. Events are kept for 21 days, so an old trigger has less. Tables that the
/// trigger's project may not read any more are left out.
///
/// Errors: `Invalid` for a mark that is none.
pub async fn extras(
    ports: &Ports,
    trigger: &Trigger,
    limit: usize,
    after: Option<&str>,
) -> Result<Page<Extra>, EngineError> {
    let mut mark = after.map(Mark::parse).transpose()?.unwrap_or_default();
    let mut found = Vec::new();
    let mut left = MAX_LOOKED_AT;
    // A range has a page or more for each kind of event, and one table.
    let mut readable = None;
    while let Some(range) = trigger.ranges.get(mark.range) {
        if found.len() >= limit || left == 0 {
            return Ok(Page { found, next: Some(mark.to_string()) });
        }
        let Some(events) = range.bounds.to.as_ref().map(|to| to.position).and_then(|to| {
            let from = range.bounds.from.as_ref().map_or(Position::start_of(to.epoch), |from| from.position);
            // A range across epochs is what the newer one has.
            let from = if from.epoch == to.epoch { from } else { Position::start_of(to.epoch) };
            (from < to).then(|| layout::events_within(range.asset, KINDS[mark.kind % KINDS.len()], from, to))
        }) else {
            mark = Mark { range: mark.range + 1, ..Mark::default() };
            continue;
        };
        if readable != Some(mark.range) {
            if !is_readable(ports, trigger, range.asset).await? {
                mark = Mark { range: mark.range + 1, ..Mark::default() };
                continue;
            }
            readable = Some(mark.range);
        }
        let most = PAGE.min(left).min(limit - found.len());
        let page = ports.items.query(&events, Some(most), mark.after.as_deref()).await?;
        left -= page.found.len().min(left);
        for item in &page.found {
            found.extend(extra(&range.key, store::decode::<Event>(item)?.value));
        }
        mark = match page.next {
            Some(next) => Mark { after: Some(next), ..mark },
            None => mark.next_kind(),
        };
    }
    Ok(Page { found, next: None })
}

async fn is_readable(
    ports: &Ports,
    trigger: &Trigger,
    asset: lakebell_domain::ids::AssetId,
) -> Result<bool, EngineError> {
    let head = store::get::<AssetHead>(&*ports.items, layout::head(asset)).await?;
    Ok(head.is_some_and(|head| head.value.is_visible_to(trigger.target.project)))
}

/// An event as it is shown; `None` where it says nothing beyond what the trigger has.
fn extra(key: &AssetKey, event: Event) -> Option<Extra> {
    let ordinal = event.position?.ordinal;
    let commit = event.commit.as_ref();
    let rows = commit.and_then(|commit| commit.delta_record_count);
    if event.extra.is_empty() && rows.is_none() {
        return None;
    }
    let snapshot_id = commit.map(|commit| commit.snapshot_id.clone());
    let Event { kind, extra, recorded_at, .. } = event;
    Some(Extra { asset_key: key.clone(), kind, ordinal, snapshot_id, rows, extra, recorded_at })
}
