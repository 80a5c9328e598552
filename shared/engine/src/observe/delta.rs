//! Reading a Delta table's log after the known version.
//!
//! Versions are dense and rise by one from 0, and are used again after a drop and create and by
//! writers without a lock. So a missing version is looked into before anything is concluded, and a
//! known one is compared by its fingerprint. The log is never listed from its start, except for one
//! page: newer commits are listed after the known one, and the newest is found by doubling steps.
//!
//! Version 0 holds data, while ordinal 0 means "before the first commit". So the ordinal is the
//! version + 1; the snapshot id is the version itself.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use lakebell_domain::commit::Commit;
use lakebell_domain::state::{AssetState, Demands, Evidence, RewriteHold, TroubleCode};
use lakebell_domain::version::{Ordinal, Position, Version};
use lakebell_formats::delta::{
    self, Checksum, CommitReader, DeltaCommit, DeltaObjectKind, LastCheckpoint, Metadata, NUMBERED_PREFIX,
    NewestSearch, Protocol, SchemaVersion,
};
use serde::{Deserialize, Serialize};

use super::findings::{Finding, Reading};
use super::table::{Stop, Table, damaged, keep_note, note_of, verified};
use super::{Look, MAX_COMMITS_PER_WRITE};
use crate::ports::storage::Listing;
use crate::records::Ring;

/// Rows of the one listing that a scan makes.
const MAX_SCANNED: usize = 1_000;
/// Rows of a listing that looks for the next commit or object: the few files of one version.
const MAX_PROBED: usize = 100;
/// Most listings until the next commit is found among checkpoints of many parts.
const MAX_PROBES: usize = 20;
/// Largest commit file that is read. It is read as a stream, so that only time limits it.
const MAX_COMMIT_BYTES: u64 = 1 << 30;

/// Reads one table.
pub(super) struct Reader<'a> {
    pub(super) table: Table<'a>,
}

/// What is kept from one look to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Note {
    /// The table's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    table_id: Option<String>,
    /// The schema of the newest commit, where the log said one since it is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<SchemaVersion>,
    /// The in-commit timestamp of the newest commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_commit_timestamp: Option<i64>,
    /// The protocol says that the catalog decides which commits are visible.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_protocol: bool,
    /// A property of the table says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_property: bool,
    /// What of a protocol that was read now is not understood; what was so before is in the state.
    #[serde(skip)]
    not_understood: Option<Vec<String>>,
}

impl Note {
    /// Takes in a commit and gives it in terms of the domain.
    fn take(&mut self, commit: &DeltaCommit) -> Commit {
        self.schema = commit.schema_after(self.schema.as_ref());
        self.in_commit_timestamp = commit.in_commit_timestamp();
        self.take_table(commit.metadata.as_ref(), commit.protocol.as_ref());
        Commit { ordinal: ordinal(commit.version), ..commit.to_commit(self.schema.as_ref()) }
    }

    fn take_table(&mut self, metadata: Option<&Metadata>, protocol: Option<&Protocol>) {
        if let Some(metadata) = metadata {
            self.table_id = Some(metadata.id.clone());
            self.by_property = metadata.commit_coordinator.is_some();
        }
        if let Some(protocol) = protocol {
            self.by_protocol = protocol.is_catalog_managed();
            self.not_understood = Some(protocol.not_understood());
        }
    }

    /// What of it a state does not have yet.
    fn keep(mut self, state: &AssetState) -> Result<Vec<Finding>, Stop> {
        let is_managed = self.by_protocol || self.by_property;
        let demands = match self.not_understood.take() {
            Some(names) => Demands::new(is_managed, &names),
            None => Demands { catalog_managed: is_managed, ..state.demands.clone() },
        };
        let mut findings = Vec::new();
        if self != note_of(state) || state.baseline.is_none() {
            findings.push(keep_note(&self, self.schema.as_ref().and_then(SchemaVersion::schema_id))?);
        }
        findings.extend((demands != state.demands).then(|| Finding::new(Evidence::Demanded(demands))));
        Ok(findings)
    }

    /// The other table that a commit belongs to, where it says so.
    fn other_table<'c>(&self, commit: &'c DeltaCommit) -> Option<&'c str> {
        commit.table_id().filter(|id| self.table_id.as_deref().is_some_and(|known| known != *id))
    }
}

/// A commit with the entity tag of its file.
struct Found {
    commit: DeltaCommit,
    etag: String,
}

/// What a missing version means.
enum Missing {
    /// It is newer than everything there is: gone before it was read, or not there yet.
    Nothing,
    /// Everything below this version was cleaned up.
    ExpiredBelow(u64),
    /// A commit is missing below this version, which is there.
    Hole { next: u64 },
    /// The newest there is is older than the known one.
    Rewritten(String),
}

impl Reader<'_> {
    /// What is new, by the state and the ring, looking where the hint says.
    pub(super) async fn read(&self, state: &AssetState, ring: &Ring, look: &Look) -> Result<Reading, Stop> {
        if state.baseline.is_none() {
            return self.first_read(state).await;
        }
        if let Some(hold) = &state.hold {
            return self.look_at_hold(state, hold).await;
        }
        let Look::File { key, etag } = look else { return self.whole(state, ring).await };
        match delta::classify(key).map(|object| object.kind) {
            Some(DeltaObjectKind::Commit(version)) if ordinal(version) <= state.position().ordinal => {
                self.look_back(state, ring, ordinal(version), etag.as_deref()).await
            }
            Some(DeltaObjectKind::Commit(version)) => self.follow(state, Some(version)).await,
            _ => Ok(Reading::default()),
        }
    }

    /// The newest commit, and back from it to one that changed data.
    async fn first_read(&self, state: &AssetState) -> Result<Reading, Stop> {
        let mut found = Vec::new();
        if let Some(newest) = self.newest().await? {
            let versions: Vec<u64> = (0..=newest).rev().take(self.table.back.depth()).collect();
            'back: for versions in versions.chunks(self.table.back.ahead()) {
                for commit in join_all(versions.iter().map(|version| self.commit(*version))).await {
                    let Some(commit) = commit? else {
                        if found.is_empty() {
                            continue;
                        }
                        break 'back;
                    };
                    // The schema is told by the commits before it, and nothing here goes by it.
                    let in_domain = Commit { ordinal: ordinal(commit.commit.version), ..commit.commit.to_commit(None) };
                    let is_last = self.table.back.ends_at(&in_domain);
                    found.push(commit);
                    if is_last {
                        break 'back;
                    }
                }
            }
            found.reverse();
        }
        let Some(oldest) = found.first().map(|found| found.commit.version) else {
            return Ok(Reading::of(Evidence::FirstRead(Vec::new())));
        };
        let mut note = self.identity_before(oldest).await?;
        let commits = found.iter().map(|found| note.take(&found.commit)).collect();
        let etags = found.into_iter().map(|found| found.etag).collect();
        let first = Finding { evidence: Evidence::FirstRead(commits), etags };
        let mut findings = note.keep(state)?;
        findings.push(first);
        Ok(Reading { findings, verified: true, ..Reading::default() })
    }

    /// The table's id and what it demands before a version, from its checksum file or from the first
    /// commit. Neither has to be there; then later commits say it, or nothing does.
    async fn identity_before(&self, version: u64) -> Result<Note, Stop> {
        let key = delta::checksum_key(version);
        let bytes = match self.table.object(&key, delta::MAX_FILE_BYTES).await {
            Ok(object) => object.map(|object| object.bytes).unwrap_or_default(),
            Err(Stop::Trouble(..)) => Vec::new(),
            Err(stop) => return Err(stop),
        };
        let mut note = Note::default();
        let checksum = Checksum::parse(&bytes).ok().filter(|checksum| checksum.metadata.is_some());
        if let Some(checksum) = checksum {
            note.take_table(checksum.metadata.as_ref(), checksum.protocol.as_ref());
        } else if version > 0 {
            let first = match self.commit(0).await {
                Ok(found) => found,
                Err(Stop::Trouble(..)) => None,
                Err(stop) => return Err(stop),
            };
            if let Some(Found { commit, .. }) = first {
                note.take_table(commit.metadata.as_ref(), commit.protocol.as_ref());
            }
        }
        Ok(note)
    }

    /// The commits after the known one: up to version `last`, or to the newest there is.
    async fn follow(&self, state: &AssetState, last: Option<u64>) -> Result<Reading, Stop> {
        let mut note: Note = note_of(state);
        let mut reading = Reading::default();
        let first = version_after(state.position().ordinal);
        let mut next = first;
        let mut taken = 0;
        while last.is_none_or(|last| next <= last) {
            if taken == MAX_COMMITS_PER_WRITE {
                reading.more = true;
                break;
            }
            match self.commit(next).await {
                Ok(Some(found)) => {
                    let other_table = note.other_table(&found.commit);
                    if taken > 0 && other_table.is_some() {
                        // What came before it is recorded first, so that the hold names it.
                        reading.more = true;
                        break;
                    }
                    let is_doubtful = found.commit.link_holds(note.in_commit_timestamp) == Some(false);
                    if next == first
                        && (is_doubtful || other_table.is_some())
                        && let Some(hold) = self.compare_known(state, other_table).await?
                    {
                        return Ok(Reading::of(Evidence::RewriteSighted(hold)));
                    }
                    let commit = Box::new(note.take(&found.commit));
                    reading.findings.push(Finding { evidence: Evidence::Commit(commit), etags: vec![found.etag] });
                    next += 1;
                    taken += 1;
                }
                Ok(None) => {
                    let (cause, beyond) = match self.missing(state, next, taken > 0).await? {
                        Missing::Nothing => break,
                        Missing::ExpiredBelow(earliest) => ("they were cleaned up before they were read", earliest),
                        Missing::Hole { next: beyond } => {
                            if let Some(hole) = self.table.hole(state, ordinal(next).0) {
                                reading.findings.push(Finding::new(Evidence::Hole(hole)));
                                break;
                            }
                            ("they stayed missing although later ones are there", beyond)
                        }
                        Missing::Rewritten(evidence) => {
                            let hold = self.table.sighting(state, evidence);
                            return Ok(Reading::of(Evidence::RewriteSighted(hold)));
                        }
                    };
                    reading.findings.push(self.table.gap(ordinal(next).0, ordinal(beyond).0 - 1, cause));
                    note.in_commit_timestamp = None;
                    next = beyond;
                }
                // What was read before the damaged one counts all the same.
                Err(Stop::Trouble(code, detail)) => {
                    reading.findings.push(Finding::new(self.table.trouble(code, detail)));
                    break;
                }
                Err(stop) => return Err(stop),
            }
        }
        reading.findings.splice(0..0, note.keep(state)?);
        Ok(reading)
    }

    /// A version that the state is past already: the same one again, or another one in its place.
    async fn look_back(
        &self,
        state: &AssetState,
        ring: &Ring,
        ordinal: Ordinal,
        etag: Option<&str>,
    ) -> Result<Reading, Stop> {
        let Some(entry) = ring.find_unless_same(ordinal, etag) else { return Ok(Reading::default()) };
        let Some(version) = version_of(ordinal) else { return Ok(Reading::default()) };
        let evidence = match self.commit(version).await? {
            Some(found) if found.commit.fingerprint() == entry.fingerprint => return Ok(Reading::default()),
            Some(found) => is_another(version, &found.commit),
            None if ordinal == state.position().ordinal => match self.missing(state, version + 1, false).await? {
                Missing::Rewritten(evidence) => evidence,
                _ => return Ok(Reading::default()),
            },
            None => return Ok(Reading::default()),
        };
        let withdrawn = Version {
            position: Position { epoch: state.epoch, ordinal },
            fingerprint: entry.fingerprint.clone(),
            snapshot_id: version.to_string().into(),
        };
        let hold = RewriteHold { withdrawn: Some(withdrawn), ..self.table.sighting(state, evidence) };
        Ok(Reading::of(Evidence::RewriteSighted(hold)))
    }

    /// Everything new, and what was taken on trust, from one listing that starts at the oldest
    /// commit of the ring: its entity tags tell which known commits are unchanged.
    async fn whole(&self, state: &AssetState, ring: &Ring) -> Result<Reading, Stop> {
        let oldest = ring.versions.front().and_then(|entry| version_of(entry.ordinal));
        let after = oldest.and_then(|oldest| oldest.checked_sub(1)).map(delta::commit_key);
        let listing = Listing { after: after.as_deref(), ..Listing::below(NUMBERED_PREFIX, MAX_SCANNED) };
        let rows = self.table.list(listing).await?;
        let is_complete = rows.len() < MAX_SCANNED;
        let listed: BTreeMap<u64, String> =
            rows.into_iter().filter_map(|row| Some((commit_version(&row.key)?, row.etag))).collect();
        for entry in &ring.versions {
            let etag = version_of(entry.ordinal).and_then(|version| listed.get(&version));
            if etag.is_some_and(|etag| *etag != entry.etag) {
                let reading = self.look_back(state, ring, entry.ordinal, None).await?;
                if !reading.findings.is_empty() {
                    return Ok(reading);
                }
            }
        }
        let newest = listed.keys().next_back().copied();
        let next = version_after(state.position().ordinal);
        let reading = match newest {
            _ if !is_complete => self.follow(state, None).await?,
            Some(newest) if newest >= next => self.follow(state, Some(newest)).await?,
            newest if newest.map_or(0, |newest| newest + 1) < next => match self.missing(state, next, false).await? {
                Missing::Rewritten(evidence) => {
                    Reading::of(Evidence::RewriteSighted(self.table.sighting(state, evidence)))
                }
                _ => Reading::default(),
            },
            _ => Reading::default(),
        };
        Ok(verified(state, reading))
    }

    /// Whether storage still contradicts what it contradicted when the hold was set.
    async fn look_at_hold(&self, state: &AssetState, hold: &RewriteHold) -> Result<Reading, Stop> {
        let withdrawn = hold.withdrawn.as_ref().and_then(|it| Some((version_of(it.position.ordinal)?, it)));
        let Some((version, withdrawn)) = withdrawn else { return Ok(self.table.hold_again(hold, true)) };
        let found = self.commit(version).await?;
        let is_back = found.is_some_and(|found| found.commit.fingerprint() == withdrawn.fingerprint);
        let goes_on_as_another = if is_back && hold.withdrawn == state.table {
            let note: Note = note_of(state);
            self.commit(version + 1).await?.is_some_and(|found| note.other_table(&found.commit).is_some())
        } else {
            false
        };
        Ok(self.table.hold_again(hold, !is_back || goes_on_as_another))
    }

    /// The hold that is due if the known newest commit is not the one in storage, or if the log goes
    /// on as another table's.
    async fn compare_known(&self, state: &AssetState, other_table: Option<&str>) -> Result<Option<RewriteHold>, Stop> {
        let known = state.table.as_ref().and_then(|table| Some((version_of(table.position.ordinal)?, table)));
        let Some((version, table)) = known else { return Ok(None) };
        let found = self.commit(version).await?;
        let other = found.filter(|found| found.commit.fingerprint() != table.fingerprint);
        let evidence = match (other, other_table) {
            (Some(other), _) => is_another(version, &other.commit),
            (None, Some(id)) => format!("after version {version} the log is that of another table, {id}"),
            (None, None) => return Ok(None),
        };
        Ok(Some(self.table.sighting(state, evidence)))
    }

    /// What it means that version `next` is not there. A commit counts as cleaned up only when
    /// everything below the gap is gone as well, the known one too.
    async fn missing(&self, state: &AssetState, next: u64, known_is_there: bool) -> Result<Missing, Stop> {
        if let Some(beyond) = self.first_commit_after(Some(next)).await? {
            let first = self.first_commit_after(None).await?.unwrap_or(beyond);
            return Ok(if first > next { Missing::ExpiredBelow(first) } else { Missing::Hole { next: beyond } });
        }
        let Some(known) = version_of(state.position().ordinal).filter(|_| !known_is_there) else {
            return Ok(Missing::Nothing);
        };
        // By its own key: parts of its checkpoint, of which there may be thousands, come before it in a listing.
        let known_key = delta::commit_key(known);
        let rows = self.table.list(Listing::below(&known_key, MAX_PROBED)).await?;
        if rows.iter().any(|row| row.key == known_key) {
            return Ok(Missing::Nothing);
        }
        Ok(Missing::Rewritten(match self.newest().await? {
            Some(newest) if newest < known => {
                format!("the newest commit is version {newest}, and {known} was recorded")
            }
            _ => "the table has no commits any more".to_owned(),
        }))
    }

    /// The newest version, found in steps that double and then halve. The hint at the newest
    /// checkpoint is only where the steps begin.
    async fn newest(&self) -> Result<Option<u64>, Stop> {
        let hint = match self.table.object(&delta::last_checkpoint_key(), delta::MAX_FILE_BYTES).await {
            Ok(hint) => hint,
            Err(Stop::Trouble(TroubleCode::Damaged, _)) => None,
            Err(stop) => return Err(stop),
        };
        let hint = hint.and_then(|hint| LastCheckpoint::parse(&hint.bytes).ok()).map(|hint| hint.version);
        let newest = self.search(hint).await?;
        let is_only_hinted = newest.is_some() && newest == hint;
        if is_only_hinted && self.first_commit_after(hint.and_then(|hint| hint.checked_sub(1))).await?.is_none() {
            return self.search(None).await;
        }
        Ok(newest)
    }

    async fn search(&self, known: Option<u64>) -> Result<Option<u64>, Stop> {
        let mut search = NewestSearch::new(known);
        while let Some(after) = search.start_after() {
            let rows = self.table.list(Listing::below(NUMBERED_PREFIX, MAX_PROBED).after(&after)).await?;
            search.answer(rows.iter().find_map(|row| delta::classify(&row.key)?.version()));
        }
        Ok(search.newest())
    }

    /// The oldest commit above a version, or of the whole log.
    async fn first_commit_after(&self, version: Option<u64>) -> Result<Option<u64>, Stop> {
        let mut after = version.map(delta::commit_key);
        for _ in 0..MAX_PROBES {
            let listing = Listing { after: after.as_deref(), ..Listing::below(NUMBERED_PREFIX, MAX_PROBED) };
            let rows = self.table.list(listing).await?;
            let first = rows.iter().find_map(|row| commit_version(&row.key));
            if first.is_some() || rows.len() < MAX_PROBED {
                return Ok(first);
            }
            after = rows.into_iter().next_back().map(|row| row.key);
        }
        Ok(None)
    }

    async fn commit(&self, version: u64) -> Result<Option<Found>, Stop> {
        let key = delta::commit_key(version);
        let Some(mut opened) = self.table.open(&key).await? else { return Ok(None) };
        if opened.size > MAX_COMMIT_BYTES {
            let problem = format!("{key}: the file has {} bytes, at most {MAX_COMMIT_BYTES} are read", opened.size);
            return Err(Stop::Trouble(TroubleCode::Damaged, problem));
        }
        let mut reader = CommitReader::new(version);
        while let Some(piece) = opened.pieces.next().await? {
            reader.push(&piece).map_err(|error| damaged(&key, &error))?;
        }
        let commit = reader.finish().map_err(|error| damaged(&key, &error))?;
        Ok(Some(Found { commit, etag: opened.etag }))
    }
}

/// The ordinal of a version.
const fn ordinal(version: u64) -> Ordinal {
    Ordinal(version).next()
}

/// The version of an ordinal; `None` before the first commit.
const fn version_of(ordinal: Ordinal) -> Option<u64> {
    ordinal.0.checked_sub(1)
}

/// The version that comes after a position.
const fn version_after(ordinal: Ordinal) -> u64 {
    ordinal.0
}

fn commit_version(relative_key: &str) -> Option<u64> {
    match delta::classify(relative_key)?.kind {
        DeltaObjectKind::Commit(version) => Some(version),
        _ => None,
    }
}

fn is_another(version: u64, found: &DeltaCommit) -> String {
    let operation = found.info.as_ref().and_then(|info| info.operation.as_deref()).unwrap_or("without an operation");
    format!("version {version} is another commit than the one recorded ({operation})")
}
