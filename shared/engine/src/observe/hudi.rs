//! Reading a Hudi table's timeline for what completed and was not seen yet.
//!
//! An instant is when an action began, and actions complete in another order. Layout 2 of the
//! timeline writes the completion time down, and that is the ordinal. Layout 1 does not: there the
//! order is that of first observation, and an instant that is older than known ones is simply the
//! next. So each look lists the timeline, which archiving keeps short, and applies what is unseen.
//!
//! An upgrade moves instants from one layout's folder to the other: both are always listed, the
//! older layout first, and the archives after them.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use lakebell_domain::state::{AssetState, Evidence, TroubleCode};
use lakebell_domain::version::{Fingerprint, Ordinal};
use lakebell_formats::hudi::{
    self, Action, CommitId, CommitMetadata, Encoding, Fate, HISTORY_FOLDER, Instant, InstantFile,
    LAYOUT_1_ARCHIVE_FOLDER, Layout, PROPERTIES_KEY, Rewrite, TableProperties, Timeline,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::findings::{Finding, Reading};
use super::table::{Stop, Table, damaged, keep_note, note_of, verified};
use super::{Look, MAX_COMMITS_PER_WRITE};
use crate::ports::storage::Listing;
use crate::records::{RING, Ring};

/// Most files of one timeline folder. Hudi keeps some thirty commits there unless told otherwise.
const MAX_TIMELINE: usize = 10_000;
/// Most files of an archive that are looked at.
const MAX_ARCHIVES: usize = 1_000;
/// Largest completed file that is read. Statistics of more than 100,000 files have so much.
const MAX_COMMIT_BYTES: usize = 64 << 20;
/// Largest file of table properties that is read.
const MAX_PROPERTIES_BYTES: usize = 4 << 20;
/// How many of the newest instants are told apart one by one.
const RECENT: usize = RING / 2;
/// Most names of one kind in the note.
const MAX_NOTED: usize = 64;

/// Reads one table.
pub(super) struct Reader<'a> {
    pub(super) table: Table<'a>,
}

/// What is kept from one look to the next. With the ring it tells every completed instant that was
/// seen from one that was not, however long the timeline is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Note {
    /// What tells the table from another one in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    table_id: Option<String>,
    /// The columns that the folders of a partition stand for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    partition_fields: Vec<String>,
    /// Every completed instant up to this one was seen, but for those that were under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<String>,
    /// Instants that were under way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    under_way: Vec<String>,
    /// Savepoints that were seen: they have the instant of an older commit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    savepoints: Vec<String>,
}

/// What was seen before.
struct Seen {
    ring: BTreeSet<Fingerprint>,
    floor: Option<Instant>,
    note: Note,
}

impl Seen {
    fn new(note: Note, ring: &Ring) -> Self {
        Self {
            ring: ring.versions.iter().map(|entry| entry.fingerprint.clone()).collect(),
            floor: note.floor.as_deref().and_then(|floor| floor.parse().ok()),
            note,
        }
    }

    fn holds(&self, file: &InstantFile) -> bool {
        let instant = || file.instant.to_string();
        if self.ring.contains(&CommitId::of(file).fingerprint()) {
            return true;
        }
        if file.action == Action::Savepoint {
            return self.note.savepoints.contains(&instant());
        }
        self.floor.is_some_and(|floor| file.instant <= floor) && !self.note.under_way.contains(&instant())
    }
}

/// The timeline as it is listed, with the entity tags of its files by key.
struct Listed {
    keys: Vec<String>,
    etags: BTreeMap<String, String>,
    timeline: Timeline,
}

impl Reader<'_> {
    /// What is new, by the state and the ring, looking where the hint says.
    pub(super) async fn read(&self, state: &AssetState, ring: &Ring, look: &Look) -> Result<Reading, Stop> {
        if state.baseline.is_none() {
            return self.first_read().await;
        }
        if let Some(hold) = &state.hold {
            let still_stands = self.whole(state, ring).await?.sights_rewrite();
            return Ok(self.table.hold_again(hold, still_stands));
        }
        let Look::File { key, etag } = look else { return Ok(verified(state, self.whole(state, ring).await?)) };
        let Some(file) = hudi::classify(key).and_then(|object| object.completed()) else {
            return Ok(Reading::default());
        };
        let fingerprint = CommitId::of(&file).fingerprint();
        let is_known =
            |etag: &String| ring.versions.iter().any(|entry| entry.fingerprint == fingerprint && entry.etag == *etag);
        if etag.as_ref().is_some_and(is_known) {
            return Ok(Reading::default());
        }
        let note: Note = note_of(state);
        // Nothing is known of the table itself yet: it was registered before it was made.
        if note.table_id.is_none() {
            return self.whole(state, ring).await;
        }
        self.advance(state, Seen::new(note, ring)).await
    }

    /// The newest of what completed, and back from it to what changed data.
    async fn first_read(&self) -> Result<Reading, Stop> {
        let listed = self.listed().await?;
        let mut note = Note::default();
        if let Some(properties) = self.properties().await? {
            note.of_table(properties);
        }
        let completed = listed.timeline.completed();
        let mut ordinal = Ordinal(0);
        let ordinals: Vec<Ordinal> = completed
            .iter()
            .map(|file| {
                ordinal = next_ordinal(ordinal, file);
                ordinal
            })
            .collect();
        let mut commits = Vec::new();
        let mut etags = Vec::new();
        let newest: Vec<_> = completed.iter().zip(ordinals).rev().take(self.table.back.depth()).collect();
        'back: for part in newest.chunks(self.table.back.ahead()) {
            let read = part.iter().map(|(file, ordinal)| self.commit(file, *ordinal, &listed, &note.partition_fields));
            for found in join_all(read).await {
                let Some((commit, etag)) = found? else { continue };
                let is_last = self.table.back.ends_at(&commit);
                commits.push(commit);
                etags.push(etag);
                if is_last {
                    break 'back;
                }
            }
        }
        commits.reverse();
        etags.reverse();
        let ring = commits.iter().map(|commit| commit.fingerprint.clone()).collect();
        note.take(&listed.timeline, &ring);
        let first = Finding { evidence: Evidence::FirstRead(commits), etags };
        Ok(Reading { findings: vec![keep_note(&note, None)?, first], verified: true, ..Reading::default() })
    }

    /// Everything new, and whether it is the same table still.
    async fn whole(&self, state: &AssetState, ring: &Ring) -> Result<Reading, Stop> {
        let mut note: Note = note_of(state);
        if let Some(properties) = self.properties().await? {
            match &note.table_id {
                Some(known) if !properties.may_be(known) => {
                    let evidence = format!("the table is another one, {}", properties.table_id());
                    return Ok(Reading::of(Evidence::RewriteSighted(self.table.sighting(state, evidence))));
                }
                _ => note.of_table(properties),
            }
        }
        self.advance(state, Seen::new(note, ring)).await
    }

    /// What completed and was not seen yet.
    async fn advance(&self, state: &AssetState, seen: Seen) -> Result<Reading, Stop> {
        let mut listed = self.listed().await?;
        let is_archived = self.look_into_archives(&mut listed, &seen).await?;
        let timeline = &listed.timeline;
        if let Some(rewrite) = timeline.rewrite(&known_ids(timeline, &seen, is_archived.is_some())) {
            let hold = self.table.sighting(state, evidence_of(&rewrite));
            return Ok(Reading::of(Evidence::RewriteSighted(hold)));
        }
        let mut reading = Reading::default();
        let mut known = state.position().ordinal;
        let mut is_past_gap = is_archived == Some(true);
        let mut applied: Vec<Fingerprint> = Vec::new();
        let mut is_whole = true;
        for file in timeline.completed().iter().filter(|file| !seen.holds(file)) {
            if applied.len() == MAX_COMMITS_PER_WRITE {
                reading.more = true;
                is_whole = false;
                break;
            }
            let mut ordinal = next_ordinal(known, file);
            if std::mem::take(&mut is_past_gap) {
                ordinal = ordinal.max(known.next().next());
                let cause = "later commits may have been archived before they were read";
                reading.findings.push(self.table.gap(known.next().0, ordinal.0 - 1, cause));
            }
            match self.commit(file, ordinal, &listed, &seen.note.partition_fields).await {
                Ok(Some((commit, etag))) => {
                    applied.push(commit.fingerprint.clone());
                    reading.findings.push(Finding { evidence: Evidence::Commit(Box::new(commit)), etags: vec![etag] });
                    known = ordinal;
                }
                // Archived or restored since the listing: the next look tells.
                Ok(None) => {
                    is_whole = false;
                    break;
                }
                // What was read before the damaged one counts all the same.
                Err(Stop::Trouble(code, detail)) => {
                    reading.findings.push(Finding::new(self.table.trouble(code, detail)));
                    is_whole = false;
                    break;
                }
                Err(stop) => return Err(stop),
            }
        }
        let before: Note = note_of(state);
        let Seen { mut ring, mut note, .. } = seen;
        if is_whole && !applied.is_empty() {
            ring.extend(applied);
            note.take(timeline, &ring);
        }
        if note != before {
            reading.findings.insert(0, keep_note(&note, None)?);
        }
        Ok(reading)
    }

    /// Lists the archives if something that is known is not on the timeline and might not be there
    /// either. Says, if they were listed, whether commits may have been archived unread: after the
    /// newest known write, if that is archived, or what was under way and is older than the timeline.
    async fn look_into_archives(&self, listed: &mut Listed, seen: &Seen) -> Result<Option<bool>, Stop> {
        let on_timeline: BTreeSet<CommitId> = listed.timeline.completed().iter().map(CommitId::of).collect();
        let oldest = on_timeline.iter().filter(|id| id.action.writes()).map(|id| id.instant).min();
        let known: Vec<CommitId> = seen.writes().collect();
        let newest = known.iter().max().copied();
        let is_missing = |id: &CommitId| !on_timeline.contains(id);
        let is_in_question = |id: &CommitId| Some(*id) == newest || oldest.is_none_or(|oldest| id.instant >= oldest);
        let ended: Vec<CommitId> = seen.ended(&listed.timeline).filter(|id| oldest > Some(id.instant)).collect();
        // Nothing at all was seen yet, and the timeline may not begin with the table.
        let is_first = seen.ring.is_empty() && seen.floor.is_none() && !on_timeline.is_empty();
        if !is_first && ended.is_empty() && !known.iter().any(|id| is_missing(id) && is_in_question(id)) {
            return Ok(None);
        }
        let mut has_archive = false;
        for folder in [LAYOUT_1_ARCHIVE_FOLDER, HISTORY_FOLDER] {
            let rows = self.table.list(Listing::folder(folder, MAX_ARCHIVES)).await?;
            has_archive |= rows.iter().any(|row| hudi::classify(&row.key).is_some());
            listed.keys.extend(rows.into_iter().map(|row| row.key));
        }
        listed.timeline = Timeline::from_keys(listed.keys.iter().map(String::as_str));
        let is_archived = |id: &CommitId| listed.timeline.fate(*id) == Fate::Archived;
        let is_after_archived = newest.as_ref().map_or(is_first && has_archive, is_missing);
        Ok(Some(is_after_archived || ended.iter().any(is_archived)))
    }

    async fn listed(&self) -> Result<Listed, Stop> {
        let mut etags = BTreeMap::new();
        for layout in [Layout::One, Layout::Two] {
            let rows = self.table.list(Listing::folder(layout.folder(), MAX_TIMELINE)).await?;
            if rows.len() == MAX_TIMELINE {
                let folder = layout.folder();
                let problem = format!("{folder} holds more than {MAX_TIMELINE} files: let the table be archived");
                return Err(Stop::Trouble(TroubleCode::Unreadable, problem));
            }
            etags.extend(rows.into_iter().map(|row| (row.key, row.etag)));
        }
        let keys: Vec<String> = etags.keys().cloned().collect();
        let timeline = Timeline::from_keys(keys.iter().map(String::as_str));
        Ok(Listed { keys, etags, timeline })
    }

    /// A completed instant as a commit, its partitions named by these columns; `None` where its file is
    /// gone.
    async fn commit(
        &self,
        file: &InstantFile,
        ordinal: Ordinal,
        listed: &Listed,
        partition_fields: &[String],
    ) -> Result<Option<(lakebell_domain::commit::Commit, String)>, Stop> {
        let key = file.relative_key();
        if !file.action.writes() {
            let etag = listed.etags.get(&key).cloned().unwrap_or_default();
            return Ok(Some((hudi::to_commit(file, &CommitMetadata::empty(Encoding::Empty), ordinal), etag)));
        }
        let Some(object) = self.table.object(&key, MAX_COMMIT_BYTES).await? else { return Ok(None) };
        let metadata = CommitMetadata::parse(&object.bytes).map_err(|error| damaged(&key, &error))?;
        let mut commit = hudi::to_commit(file, &metadata, ordinal);
        for path in commit.extra.get_mut("partitions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(named) = path.as_str().map(|path| hudi::named_partition(path, partition_fields)) {
                *path = named.into();
            }
        }
        Ok(Some((commit, object.etag)))
    }

    /// The table's properties; `None` while they are being written again, and where they cannot be
    /// understood: the timeline does without.
    async fn properties(&self) -> Result<Option<TableProperties>, Stop> {
        let object = match self.table.object(PROPERTIES_KEY, MAX_PROPERTIES_BYTES).await {
            Ok(object) => object,
            Err(Stop::Trouble(TroubleCode::Damaged, _)) => None,
            Err(stop) => return Err(stop),
        };
        Ok(object.and_then(|object| TableProperties::parse(&object.bytes).ok()))
    }
}

impl Seen {
    /// What was under way and is neither that any more nor completed on the timeline. What it would
    /// have completed as is not known; that it was a commit is as good as any.
    fn ended(&self, timeline: &Timeline) -> impl Iterator<Item = CommitId> {
        let there = timeline.completed().iter().chain(timeline.pending()).map(|file| file.instant);
        let there: BTreeSet<Instant> = there.collect();
        let under_way = self.note.under_way.iter().filter_map(|instant| instant.parse().ok());
        under_way
            .filter(move |instant| !there.contains(instant))
            .map(|instant| CommitId { instant, action: Action::Commit })
    }

    /// The writes among the newest versions.
    fn writes(&self) -> impl Iterator<Item = CommitId> {
        self.ring
            .iter()
            .filter_map(|fingerprint| fingerprint.as_str().parse().ok())
            .filter(|id: &CommitId| id.action.writes())
    }
}

impl Note {
    /// Keeps what tells the table from another one, and its partitions. The id that it had first stays: a
    /// later one may lack the schema that it was created with.
    fn of_table(&mut self, properties: TableProperties) {
        self.table_id.get_or_insert_with(|| properties.table_id());
        self.partition_fields = properties.partition_fields;
    }

    /// Notes what has been seen once everything that completed was. The newest instants are left to
    /// the ring, because one may begin before them and be written down after them.
    fn take(&mut self, timeline: &Timeline, ring: &BTreeSet<Fingerprint>) {
        let mut instants: Vec<&InstantFile> =
            timeline.completed().iter().filter(|file| file.action != Action::Savepoint).collect();
        instants.sort_by_key(|file| file.instant);
        let in_ring = |file: &InstantFile| ring.contains(&CommitId::of(file).fingerprint());
        let recent = instants.iter().rev().take_while(|file| in_ring(file)).take(RECENT).count();
        let floor = instants.iter().rev().nth(recent).map(|file| file.instant);
        let known = self.floor.as_deref().and_then(|floor| floor.parse().ok());
        let floor: Option<Instant> = floor.max(known);
        let under_way: BTreeSet<String> = timeline.pending().iter().map(|file| file.instant.to_string()).collect();
        self.floor = floor.map(|floor| floor.to_string());
        self.under_way = newest(under_way);
        let savepoints = timeline.completed().iter().filter(|file| file.action == Action::Savepoint);
        self.savepoints = newest(savepoints.map(|file| file.instant.to_string()).collect());
    }
}

fn newest(names: BTreeSet<String>) -> Vec<String> {
    let from = names.len().saturating_sub(MAX_NOTED);
    names.into_iter().skip(from).collect()
}

/// What of the known completed instants can be told from the timeline: without the archives nothing
/// is said about writes older than it.
fn known_ids(timeline: &Timeline, seen: &Seen, with_archives: bool) -> BTreeSet<CommitId> {
    let on_timeline = timeline.completed().iter().filter(|file| seen.holds(file)).map(CommitId::of);
    let mut known: BTreeSet<CommitId> = on_timeline.collect();
    let oldest = timeline.completed().iter().filter(|file| file.action.writes()).map(|file| file.instant).min();
    let can_be_told = |id: &CommitId| with_archives || oldest.is_some_and(|oldest| id.instant >= oldest);
    known.extend(seen.writes().filter(can_be_told));
    known
}

/// The completion time, where it is written and above the known ordinal; else the next number.
fn next_ordinal(known: Ordinal, file: &InstantFile) -> Ordinal {
    hudi::ordinal(file).filter(|ordinal| *ordinal > known).unwrap_or(known.next())
}

fn evidence_of(rewrite: &Rewrite) -> String {
    let named = |ids: &[CommitId]| {
        let shown: Vec<String> = ids.iter().take(3).map(ToString::to_string).collect();
        let more =
            if ids.len() > shown.len() { format!(" and {} more", ids.len() - shown.len()) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    match rewrite {
        Rewrite::Restored(restores) => format!("the table was taken back: {}", named(restores)),
        Rewrite::Vanished(gone) => {
            format!("recorded commits are neither on the timeline nor archived: {}", named(gone))
        }
        Rewrite::OtherTable { first } => {
            format!(
                "no recorded commit is left, and the table's first one is {first}: it was dropped and created again"
            )
        }
    }
}
