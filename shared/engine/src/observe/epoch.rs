//! What the history begins with that a rewrite has left.
//!
//! All of its commits count that the history before did not have, whenever the rewrite is accepted: a target that
//! takes each one, counts them or waits for one of a kind must not depend on that moment. So they are read back to the
//! common ancestor. Paimon takes commits away to go back to an older one: there the rewrite itself is the older one,
//! and what follows comes after it. In the other formats the first new commit is the rewrite. Where none of the new
//! ones changed data, the epoch begins with the newest commit that did: a table that was taken back is news.

use lakebell_domain::asset::Format;
use lakebell_domain::commit::Commit;
use lakebell_domain::event::{Event, EventKind};
use lakebell_domain::ids::AssetId;
use lakebell_domain::state::{Evidence, Gap};
use lakebell_domain::version::{Epoch, Fingerprint, Ordinal, Position};

use super::findings::{Finding, Reading};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::records::{AssetHead, Ring, RingEntry};
use crate::store;

/// Most commits that an epoch begins with: they are written with it in one transaction, which takes 100 actions.
pub(super) const MAX_FIRST: usize = 80;
/// Most histories whose recorded commits are compared, the present one and those before it.
const MAX_EPOCHS: u32 = 3;
/// Most recorded commits of one history that are compared.
const MAX_COMPARED: usize = 200;
/// Why commits of the new history are not taken in.
const LEFT_OUT: &str = "they were gone, or more than an accepted rewrite takes in";

/// A first read of the present storage as the evidence that opens the next epoch.
pub(super) async fn begin(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    ring: &Ring,
    mut reading: Reading,
) -> Result<Reading, EngineError> {
    let mut gap = None;
    for finding in &mut reading.findings {
        let Evidence::FirstRead(commits) = &mut finding.evidence else { continue };
        let ancestor = ancestor(ports, asset, head, ring, commits).await?;
        let from = first_of(head, commits, ancestor);
        let etags: Vec<String> = finding.etags.drain(..from.min(finding.etags.len())).collect();
        let beneath: Vec<Commit> = commits.drain(..from).collect();
        // The reader of Hudi tells by the ring which of the newest instants it has seen.
        if head.key.format() == Format::Hudi {
            let entry = |(Commit { ordinal, fingerprint, .. }, etag)| RingEntry { ordinal, fingerprint, etag };
            reading.beneath = beneath.into_iter().zip(etags).map(entry).collect();
        }
        let first = commits.first().map(|commit| commit.ordinal).filter(|_| ancestor.is_none());
        // Hudi's ordinals are times: what lies before the first is told only by how many were read.
        let is_cut = head.key.format() != Format::Hudi || commits.len() >= MAX_FIRST;
        gap = first.filter(|first| is_cut && *first > Ordinal(1)).map(|first| Gap {
            first: Ordinal(1),
            last: Ordinal(first.0 - 1),
            at: ports.clock.now(),
            cause: LEFT_OUT.to_owned(),
        });
    }
    let first = reading.findings.iter().find_map(|finding| match &finding.evidence {
        Evidence::FirstRead(commits) => commits.first().map(|commit| commit.ordinal),
        _ => None,
    });
    reading.findings.retain(|finding| match &finding.evidence {
        Evidence::TagCreated(_, entry) => first.is_some_and(|first| entry.position.ordinal >= first),
        _ => true,
    });
    reading.findings.extend(gap.map(|gap| Finding::new(Evidence::Unread(gap))));
    Ok(reading.accepted())
}

/// The newest of these commits, oldest first, that a recorded history has as well.
async fn ancestor(
    ports: &Ports,
    asset: AssetId,
    head: &AssetHead,
    ring: &Ring,
    commits: &[Commit],
) -> Result<Option<usize>, EngineError> {
    let (Some(first), Some(last)) = (commits.first(), commits.last()) else { return Ok(None) };
    if let Some(at) = commits.iter().rposition(|commit| ring.holds(commit)) {
        return Ok(Some(at));
    }
    let mut known: Vec<(Ordinal, Fingerprint)> = Vec::new();
    let newest = head.state.epoch.0;
    for epoch in newest.saturating_sub(MAX_EPOCHS - 1)..=newest {
        let at = |ordinal: u64| Position { epoch: Epoch(epoch), ordinal: Ordinal(ordinal) };
        let (beyond, to) = (at(first.ordinal.0.saturating_sub(1)), at(last.ordinal.0));
        let range = layout::events_within(asset, EventKind::SnapshotCommitted, beyond, to);
        let page = ports.items.query(&range, Some(MAX_COMPARED), None).await?;
        for item in &page.found {
            let mark = store::decode::<Event>(item)?.value.mark();
            known.extend(mark.map(|mark| (mark.version.position.ordinal, mark.version.fingerprint)));
        }
    }
    let is_known = |commit: &Commit| {
        known.iter().any(|(ordinal, fingerprint)| *ordinal == commit.ordinal && *fingerprint == commit.fingerprint)
    };
    Ok(commits.iter().rposition(is_known))
}

/// With which of these commits, oldest first, the epoch begins.
fn first_of(head: &AssetHead, commits: &[Commit], ancestor: Option<usize>) -> usize {
    let Some(at) = ancestor else { return 0 };
    let is_data = |commit: &Commit| commit.changes_data != Some(false);
    let is_taken_back = head.key.format() == Format::Paimon && commits[at].ordinal < head.state.position().ordinal;
    if !is_taken_back && commits[at + 1..].iter().any(is_data) {
        return at + 1;
    }
    commits[..=at].iter().rposition(is_data).unwrap_or(0)
}
