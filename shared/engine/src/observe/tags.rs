//! Tags on commits that a look did not read: where those stand is told by what is recorded of them.

use std::collections::BTreeSet;

use lakebell_domain::digest::hex;
use lakebell_domain::event::EventKind;
use lakebell_domain::ids::AssetId;
use lakebell_domain::state::{AssetState, Evidence, MAX_TAGS, TagEntry};
use sha2::{Digest, Sha256};

use super::MAX_COMMITS_PER_WRITE;
use super::findings::{Finding, Reading, Remark};
use crate::ports::Ports;
use crate::{EngineError, history};

/// Most events that are looked through for the commits that tags name.
const MAX_EVENTS: usize = 500;
/// Longest part of a tag's name in the identity of its event, in bytes.
const MAX_NAMED: usize = 128;

/// A tag that names a snapshot of which the reader cannot tell which commit made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tagged {
    pub(super) name: String,
    pub(super) snapshot_id: String,
    /// Whether the snapshot is there and not one of the branch's.
    pub(super) is_elsewhere: bool,
}

/// Finds the commits that such tags name among the recorded ones. One that has none is told, with the reason; where it
/// named another commit before, it does so no more.
pub(super) async fn place(
    ports: &Ports,
    asset: AssetId,
    state: &AssetState,
    mut reading: Reading,
) -> Result<Reading, EngineError> {
    let tagged = std::mem::take(&mut reading.tagged);
    let wanted = tagged.iter().filter(|tag| !tag.is_elsewhere).map(|tag| tag.snapshot_id.as_str());
    let wanted: BTreeSet<&str> = wanted.take(MAX_TAGS).collect();
    let found = history::makers(ports, asset, state.epoch, &wanted, MAX_EVENTS).await?;
    let mut left_out = Vec::new();
    for tag in tagged {
        // A finding and a remark may come of one, and the last place is for those that are left out.
        if reading.findings.len() + reading.remarks.len() + 3 > MAX_COMMITS_PER_WRITE {
            left_out.push(tag.name);
            continue;
        }
        if let Some(mark) = found.get(&tag.snapshot_id) {
            let evidence = Evidence::TagCreated(tag.name, TagEntry::from(mark));
            reading.findings.push(Finding::new(evidence));
            continue;
        }
        let why = if tag.is_elsewhere {
            "is not on the line of this branch"
        } else {
            "is no commit that is recorded of late"
        };
        reading.remarks.push(Remark {
            kind: EventKind::TagCreated,
            token: Some(format!("{}.unplaced.{}", short(&tag.name), tag.snapshot_id)),
            text: format!("tag {} counts for no version: snapshot {} {why}", tag.name, tag.snapshot_id),
        });
        if state.tags.contains_key(&tag.name) {
            reading.findings.push(Finding::new(Evidence::TagDeleted(tag.name)));
        }
    }
    if let Some(first) = left_out.first() {
        reading.remarks.push(Remark {
            kind: EventKind::TagCreated,
            token: Some(format!("{}.and.{}", short(first), left_out.len())),
            text: format!("{} tags were set at once, more than are looked up: {first} and others", left_out.len()),
        });
    }
    Ok(reading)
}

/// A tag's name as a part of an event's identity: names are as long as their writer likes, and keys are not.
pub(super) fn short(name: &str) -> String {
    if name.len() <= MAX_NAMED {
        return name.to_owned();
    }
    let end = (0..=MAX_NAMED).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    format!("{}~{}", &name[..end], hex(&Sha256::digest(name.as_bytes())[..16]))
}
