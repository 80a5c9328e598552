//! What happened to the tags that metadata files name.
//!
//! A tag may be set on any snapshot, moved to an older one, and taken away, and the file that says so may change
//! nothing else. So the tags of each accepted file are compared with those that are recorded, and, where a table has
//! more of them than are recorded, with those of the file before it: what was there already has been told of.

use std::collections::{BTreeMap, HashSet};

use lakebell_domain::commit::Commit;
use lakebell_domain::digest::hex;
use lakebell_domain::state::{AssetState, Evidence, TagEntry};
use lakebell_domain::version::{Epoch, Position};
use lakebell_formats::iceberg::Metadata;
use sha2::{Digest, Sha256};

use super::super::MAX_COMMITS_PER_WRITE;
use super::super::findings::{Finding, Reading};
use super::super::tags::Tagged;
use super::follows::line;

/// The tags of the files that a look accepts.
pub(super) struct Tags {
    epoch: Epoch,
    /// Where the first read ended: tags on versions up to there may have been there before it.
    baseline: Option<Position>,
    /// The snapshots that tags are known to name, by the tag's name.
    known: BTreeMap<String, String>,
    /// The commits that made snapshots, as far as they are at hand.
    places: BTreeMap<String, TagEntry>,
    /// Tags on snapshots of which it is not at hand which commit made them.
    unplaced: BTreeMap<String, i64>,
}

impl Tags {
    /// Those that are recorded.
    pub(super) fn of(state: &AssetState) -> Self {
        let made = state.marks().filter(|mark| mark.is_data && mark.version.position.epoch == state.epoch);
        let mut places: BTreeMap<String, TagEntry> =
            made.map(|mark| (mark.version.snapshot_id.to_string(), TagEntry::from(mark))).collect();
        for entry in state.tags.values() {
            places.entry(entry.snapshot_id.clone()).or_insert_with(|| entry.clone());
        }
        let known = state.tags.iter().map(|(name, entry)| (name.clone(), entry.snapshot_id.clone())).collect();
        let baseline = state.baseline.as_ref().and_then(|baseline| baseline.version.as_ref());
        let baseline = baseline.map(|version| version.position);
        Self { epoch: state.epoch, baseline, known, places, unplaced: BTreeMap::new() }
    }

    /// A commit that made the snapshot that it shows.
    pub(super) fn see(&mut self, commit: &Commit) {
        let entry = TagEntry {
            position: Position { epoch: self.epoch, ordinal: commit.ordinal },
            fingerprint: commit.fingerprint.clone(),
            snapshot_id: commit.snapshot_id.clone(),
            schema_id: commit.schema_id,
            kind: Some(commit.kind.clone()),
        };
        self.places.insert(commit.snapshot_id.clone(), entry);
    }

    /// Whether the file before this one is needed to tell which of its tags are new.
    pub(super) fn needs_before(&self, metadata: &Metadata) -> bool {
        metadata.tags().any(|(name, id)| {
            let place = self.places.get(&id.to_string()).map(|entry| entry.position);
            !self.known.contains_key(name) && place.is_none_or(|place| Some(place) <= self.baseline)
        })
    }

    /// What an accepted file says of tags, by what is recorded and by the file before it.
    pub(super) fn take(&mut self, metadata: &Metadata, before: Option<&Metadata>, reading: &mut Reading) {
        let before: BTreeMap<&str, i64> = before.into_iter().flat_map(Metadata::tags).collect();
        for (name, id) in metadata.tags() {
            let snapshot_id = id.to_string();
            let is_told = match self.known.get(name) {
                Some(known) => *known == snapshot_id,
                None => before.get(name) == Some(&id),
            };
            if is_told {
                continue;
            }
            // One for which there is no room is told with those that have no place.
            let has_room = reading.findings.len() < MAX_COMMITS_PER_WRITE;
            match self.places.get(&snapshot_id).filter(|_| has_room) {
                Some(entry) => {
                    self.unplaced.remove(name);
                    reading.findings.push(Finding::new(Evidence::TagCreated(name.to_owned(), entry.clone())));
                }
                None => {
                    self.unplaced.insert(name.to_owned(), id);
                }
            }
            self.known.insert(name.to_owned(), snapshot_id);
        }
    }

    /// What is left once the newest file has been taken: tags that are gone, and those whose commit is to be looked
    /// up.
    pub(super) fn close(mut self, tip: &Metadata, branch: &str, state: &AssetState, reading: &mut Reading) {
        let there: HashSet<&str> = tip.tags().map(|(name, _)| name).collect();
        let is_recorded = |name: &str| state.tags.contains_key(name) || !self.unplaced.contains_key(name);
        let gone = self.known.keys().filter(|name| !there.contains(name.as_str()) && is_recorded(name));
        let room = MAX_COMMITS_PER_WRITE.saturating_sub(reading.findings.len());
        reading.findings.extend(gone.take(room).map(|name| Finding::new(Evidence::TagDeleted(name.clone()))));
        self.unplaced.retain(|name, _| there.contains(name.as_str()));
        if self.unplaced.is_empty() {
            return;
        }
        let of_branch: HashSet<i64> = tip.head(branch).into_iter().flat_map(|head| line(tip, head)).collect();
        reading.tagged.extend(self.unplaced.into_iter().map(|(name, id)| {
            let is_elsewhere = tip.snapshot(id).is_some() && !of_branch.contains(&id);
            Tagged { name, snapshot_id: id.to_string(), is_elsewhere }
        }));
    }

    /// The tags of a file on commits that were seen, as they are in a new epoch.
    pub(super) fn begin(&self, metadata: &Metadata) -> Vec<Finding> {
        let placed = metadata.tags().filter_map(|(name, id)| Some((name, self.places.get(&id.to_string())?)));
        placed.map(|(name, entry)| Finding::new(Evidence::TagCreated(name.to_owned(), entry.clone()))).collect()
    }
}

/// Tells the tags of one file from those of another; `None` where it has none.
pub(super) fn digest(metadata: &Metadata) -> Option<String> {
    let mut digest = Sha256::new();
    let mut is_any = false;
    for (name, id) in metadata.tags() {
        digest.update([name.as_bytes(), b"\0", &id.to_le_bytes()].concat());
        is_any = true;
    }
    is_any.then(|| hex(&digest.finalize()[..8]))
}
