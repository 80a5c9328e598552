//! Reading an Iceberg table's metadata files after the known one.
//!
//! A metadata file proves nothing by itself: writers put it there before a catalog decides, and who
//! loses a race leaves its file behind. Where the asset names its catalog, that is asked for the
//! current file, which was made from all others that ever were. Without one a file is accepted when
//! ancestry says that it was made from the accepted one before; of two files that were made from one,
//! neither, until one of them was built upon. A file that was accepted alone and turns out to have lost
//! is a rewrite.
//!
//! The data version moves when the branch does. The first file of a table has the number 0, while
//! ordinal 0 means "before the first commit": so the ordinal is the format's + 1.

mod files;
mod follows;
mod note;
mod notified;
mod pointer;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use lakebell_domain::Invalid;
use lakebell_domain::commit::Commit;
use lakebell_domain::state::{AssetState, Evidence, RewriteHold, TagEntry, TroubleCode};
use lakebell_domain::version::{Ordinal, Position};
use lakebell_formats::iceberg::{Anchor, Known, MAIN, Metadata, Movement, Step, resolve};

use super::findings::{Finding, Reading};
use super::table::{Back, Stop, Table, keep_note, note_of, verified};
use super::{Look, MAX_COMMITS_PER_WRITE};
use crate::records::Ring;
use files::{File, Row};
use follows::{Follows, follows_of, follows_of_catalog, line};
use note::Note;
use notified::{missing, settle_notified, worth_reading, written_over};
pub(super) use pointer::Asked;
use pointer::{Folder, Said};

/// Most files that are read before what they say is written.
const MAX_FILES: usize = 24;
/// Most snapshots of the files that are in memory together; one file may have more.
const MAX_SNAPSHOTS: usize = 120_000;
/// How many files a first read takes at a time.
const FIRST_FILES: usize = 4;

/// Reads one table or branch.
pub(super) struct Reader<'a> {
    pub(super) table: Table<'a>,
    pub(super) asked: Asked<'a>,
    /// The property of summaries that is the watermark, where it is not the usual one.
    pub(super) watermark: Option<&'a str>,
}

/// The files that a look read.
#[derive(Default)]
struct Read {
    files: Vec<File>,
    /// Those that cannot be understood, with the reason.
    damaged: Vec<(Row, TroubleCode, String)>,
    /// The names of all that were tried, those that are gone as well.
    tried: BTreeSet<String>,
    /// The names of those that are there and were not read yet.
    unread: BTreeSet<String>,
}

impl Reader<'_> {
    /// What is new, by the state and the ring, looking where the hint says.
    pub(super) async fn read(&self, state: &AssetState, ring: &Ring, look: &Look) -> Result<Reading, Stop> {
        if state.baseline.is_none() {
            return self.first_read().await;
        }
        if let Some(hold) = &state.hold {
            let still_stands = self.advance(state, ring, None).await?.sights_rewrite();
            return Ok(self.table.hold_again(hold, still_stands));
        }
        let Look::File { key, etag } = look else {
            return Ok(verified(state, self.advance(state, ring, None).await?));
        };
        let name = key.rsplit_once('/').map_or(key.as_str(), |(_, name)| name);
        let note: Note = note_of(state);
        let is_known = ring.versions.iter().any(|entry| Some(&entry.etag) == etag.as_ref())
            || (etag.is_none() && note.file == name)
            || note.lost.iter().any(|lost| lost == name);
        if is_known || files::kind_of(name).is_none() {
            return Ok(Reading::default());
        }
        self.advance(state, ring, Some(name)).await
    }

    fn branch(&self) -> &str {
        self.table.branch.unwrap_or(MAIN)
    }

    /// The newest file, and back from it to one with which the branch's data changed.
    async fn first_read(&self) -> Result<Reading, Stop> {
        let said = match self.asked.say(&self.table, &Note::default()).await {
            // Where no file lies either, there is no table yet, and all that comes is new.
            Err(Stop::Trouble(code @ TroubleCode::NotInCatalog, detail)) => {
                let reading = Reading::of(self.table.trouble(code, detail));
                let is_empty = files::newest_first(&self.table).await?.is_empty();
                let first = is_empty.then(|| Finding::new(Evidence::FirstRead(Vec::new())));
                return Ok(Reading {
                    findings: first.into_iter().chain(reading.findings).collect(),
                    ..Reading::default()
                });
            }
            said => said?,
        };
        let (folder, mut files, mut rest) = self.first_rows(&said).await?;
        let anchor = match &said {
            Said::At(pointer) => Anchor::Current(&pointer.row.name),
            Said::Ancestry | Said::Nothing => Anchor::None,
        };
        let (line, lost, is_whole) = loop {
            let before = files.len();
            for row in rest.drain(..FIRST_FILES.min(rest.len())) {
                match files::read(&self.table, &folder, &row, self.watermark).await {
                    Ok(file) => files.extend(file),
                    // Beside the chain, or so old that nothing depends on it: the next look tells.
                    Err(Stop::Trouble(TroubleCode::Damaged, _)) if !files.is_empty() => {}
                    Err(stop) => return Err(stop),
                }
            }
            let links: Vec<_> = files.iter().map(|file| file.link.clone()).collect();
            let chain = resolve(&links, anchor);
            let lost: Vec<String> = chain.orphans.into_iter().chain(chain.foreign).collect();
            let line = chain.accepted;
            let has_data = line.windows(2).any(|pair| {
                let [before, file] = [&pair[0], &pair[1]].map(|name| files.iter().find(|file| file.name == *name));
                before
                    .zip(file)
                    .is_some_and(|(before, file)| self.step_after(before, file).changes_data() != Some(false))
            });
            let is_whole = rest.is_empty() || files.len() == before;
            if self.is_far_enough(&files, &line, has_data)? || is_whole || files.len() >= self.table.back.depth() {
                break (line, lost, is_whole);
            }
        };
        files.retain(|file| line.contains(&file.name));
        files.sort_by_key(|file| line.iter().position(|name| *name == file.name));
        self.first_commits(&files, lost, is_whole)
    }

    /// Whether a first read has gone back as far as it should, beyond the commit that it ends at, so that
    /// this one is judged by the file before it.
    ///
    /// Errors: `Invalid` where what it would have to hold is too much.
    fn is_far_enough(&self, files: &[File], line: &[String], has_data: bool) -> Result<bool, Stop> {
        let Back::To(first, _) = self.table.back else { return Ok(has_data) };
        let snapshots: usize = files.iter().map(|file| file.metadata.snapshots().len()).sum();
        if files.len() > 2 && snapshots > MAX_SNAPSHOTS {
            let problem = format!("the metadata files from then on name more than {MAX_SNAPSHOTS} snapshots together");
            let hint = "name a later snapshot, or use now or current";
            return Err(Stop::Error(Invalid::new("startFrom", problem, hint).into()));
        }
        let oldest = line.first().and_then(|name| files.iter().find(|file| file.name == *name));
        Ok(oldest.is_some_and(|file| {
            let ordinal = Note::default().ordinal_of(&file.name, &file.metadata, &file.metadata.log);
            Ordinal(ordinal).next() < first
        }))
    }

    /// Where a first read finds files, those that were read to learn that, and the others, newest first.
    async fn first_rows(&self, said: &Said) -> Result<(Folder, Vec<File>, VecDeque<Row>), Stop> {
        let pointer = match said {
            Said::At(pointer) => pointer,
            Said::Ancestry => {
                return Ok((Folder::of(&self.table), Vec::new(), files::newest_first(&self.table).await?.into()));
            }
            Said::Nothing => return Ok((Folder::of(&self.table), Vec::new(), VecDeque::new())),
        };
        let tip = files::read(&self.table, &pointer.folder, &pointer.row, self.watermark).await?;
        let tip = tip.ok_or_else(|| missing(pointer))?;
        let before = tip.link.log.iter().rev().map(|name| Row::any(name)).collect();
        Ok((pointer.folder.clone(), vec![tip], before))
    }

    /// The commits of a first read: the newest, and back from it to one that changed data.
    fn first_commits(&self, files: &[File], lost: Vec<String>, is_whole: bool) -> Result<Reading, Stop> {
        // A branch that is gone now has no commits, whatever earlier files say.
        let is_there = files.last().is_some_and(|tip| tip.metadata.head(self.branch()).is_some());
        let mut note = Note::default();
        let mut commits: Vec<Commit> = Vec::new();
        let mut etags = Vec::new();
        let mut schema_id = None;
        for (at, file) in files.iter().enumerate() {
            let metadata = &file.metadata;
            let ordinal = note.ordinal_of(&file.name, metadata, &metadata.log);
            let step = match at.checked_sub(1).and_then(|before| files.get(before)) {
                Some(before) => self.step_after(before, file),
                // All that is known of what came before the oldest file is its head's parent.
                None if is_whole && metadata.log.is_empty() => self.step(metadata, Known::Nothing),
                None => self.step(metadata, parent_of_head(metadata, self.branch())),
            };
            let commit = metadata.to_commit(&file.name, self.branch(), Ordinal(ordinal).next(), &step);
            if let Some(commit) = commit.filter(|_| is_there) {
                if self.table.back.ends_at(commit.ordinal, commit.changes_data) {
                    commits.clear();
                    etags.clear();
                }
                commits.push(commit);
                etags.push(file.etag.clone());
            }
            note.accept(file, self.branch(), ordinal);
            schema_id = metadata.current_schema_id;
        }
        let from = commits.len().saturating_sub(self.table.back.depth());
        let first = Finding { evidence: Evidence::FirstRead(commits.split_off(from)), etags: etags.split_off(from) };
        let mut findings = vec![first];
        if note.knows_a_file() {
            note.lose(lost);
            findings.insert(0, keep_note(&note, schema_id)?);
        }
        Ok(Reading { findings, verified: true, ..Reading::default() })
    }

    /// Asks the catalog, reads what may follow the known file, and tells which of it does.
    async fn following(&self, note: &Note, ring: &Ring, hinted: Option<&str>) -> Result<(Said, Read, Follows), Stop> {
        let said = self.asked.say(&self.table, note).await?;
        let (folder, candidates) = match &said {
            Said::Ancestry => (Folder::of(&self.table), files::candidates(&self.table, note, ring, hinted).await?),
            Said::Nothing => return Ok((said, Read::default(), Follows::default())),
            Said::At(pointer) => (pointer.folder.clone(), worth_reading(pointer, note, hinted)),
        };
        let mut read = Read::default();
        self.read_files(&mut read, &folder, &candidates).await?;
        if let Said::At(pointer) = &said
            && read.files.is_empty()
            && read.damaged.is_empty()
            && !candidates.is_empty()
        {
            return Err(missing(pointer));
        }
        let mut follows = self.follows(&said, &read.files, note);
        while read.unread.is_empty() && read.tried.len() < MAX_FILES {
            let between = between(&read, &follows, note, said == Said::Ancestry);
            if between.is_empty() {
                break;
            }
            self.read_files(&mut read, &folder, &between).await?;
            follows = self.follows(&said, &read.files, note);
        }
        Ok((said, read, follows))
    }

    /// The files after the known one.
    async fn advance(&self, state: &AssetState, ring: &Ring, hinted: Option<&str>) -> Result<Reading, Stop> {
        let mut note: Note = note_of(state);
        let before = note.clone();
        let (said, read, mut follows) = self.following(&note, ring, hinted).await?;
        let mut reading = Reading { more: !read.unread.is_empty(), ..Reading::default() };
        if let Some(evidence) = follows.rewritten.as_ref().filter(|_| follows.accepted.is_empty()) {
            return Ok(self.sighted(state, evidence.clone()));
        }
        if let Said::At(pointer) = &said {
            let tip = read.files.iter().find(|file| file.name == pointer.row.name);
            if let Some(evidence) = tip.and_then(|tip| written_over(tip, &note, self.branch())) {
                return Ok(self.sighted(state, evidence));
            }
            settle_notified(&mut note, tip, hinted, &mut follows, &mut reading);
        }
        if let Some(twin) = follows.twin.clone() {
            let loser = std::mem::replace(&mut note.file, twin);
            note.lose([loser]);
        }
        let new: Vec<&File> =
            follows.accepted.iter().filter_map(|name| read.files.iter().find(|file| file.name == *name)).collect();
        let is_rewrite = |step: &Step<'_>| matches!(step.movement, Movement::Rewritten | Movement::Gone);
        let mut schema_id = state.schema.detail.as_ref().map(|detail| detail.schema_id);
        let mut tags: BTreeMap<String, String> =
            state.tags.iter().map(|(name, entry)| (name.clone(), entry.snapshot_id.clone())).collect();
        for (at, file) in new.iter().enumerate() {
            if after(&note.file, &file.link.log).iter().any(|name| read.unread.contains(name)) {
                reading.more = true;
                break;
            }
            let metadata = &file.metadata;
            let ordinal = note.ordinal_of(&file.name, metadata, &metadata.log);
            let step = self.step(metadata, note.known());
            let is_rewritten = is_rewrite(&step);
            if is_rewritten && new.last().is_some_and(|tip| is_rewrite(&self.step(&tip.metadata, note.known()))) {
                if at == 0 {
                    return Ok(self.sighted(state, moved(metadata, self.branch(), note.head)));
                }
                // What came before it is recorded first, so that the hold names it.
                reading.more = true;
                break;
            }
            if let Some(first) = first_missing(&note, file, ordinal) {
                let cause = "their metadata files were gone before they were read";
                reading.findings.push(self.table.gap(first, ordinal, cause));
            }
            if is_rewritten {
                let cause = "the branch was set to another snapshot and back";
                reading.findings.push(self.table.gap(ordinal + 1, ordinal + 1, cause));
                note.pass(file, self.branch(), ordinal);
            } else {
                let commit = metadata.to_commit(&file.name, self.branch(), Ordinal(ordinal).next(), &step);
                if let Some(mut commit) = commit {
                    let losers = follows.lost.iter().filter(|name| {
                        files::rising(name).is_some() && files::rising(name) <= files::rising(&file.name)
                    });
                    let losers: Vec<&String> = losers.filter(|name| !note.lost.contains(name)).collect();
                    if !losers.is_empty() {
                        commit.extra.insert("lost".to_owned(), serde_json::json!(losers));
                    }
                    take(state, &mut reading, &mut tags, file, commit);
                }
                note.accept(file, self.branch(), ordinal);
            }
            schema_id = metadata.current_schema_id;
        }
        let of_others = new.iter().flat_map(|file| file.metadata.branches());
        reading.branches =
            of_others.filter(|(name, _)| *name != self.branch()).map(|(name, _)| name.to_owned()).collect();
        if let Some(tip) = new.last().filter(|tip| tip.name == note.file) {
            let gone = tags.keys().filter(|name| !tip.metadata.tags().any(|(tag, _)| tag == name.as_str()));
            let room = MAX_COMMITS_PER_WRITE.saturating_sub(reading.findings.len());
            reading.findings.extend(gone.take(room).map(|name| Finding::new(Evidence::TagDeleted(name.clone()))));
        }
        // Of a part of the files only what lies below the known one is decided.
        let known = files::rising(&note.file);
        let is_decided = |name: &String| {
            read.unread.is_empty() || files::rising(name).zip(known).is_some_and(|(it, known)| it <= known)
        };
        note.lose(follows.lost.into_iter().filter(is_decided));
        self.take_damaged(read.damaged, &new, &mut note, &mut reading);
        if note == before {
            // Nothing that the next go could see otherwise.
            reading.more = false;
        } else {
            reading.findings.insert(0, keep_note(&note, schema_id)?);
        }
        Ok(reading)
    }

    /// Which files follow the known one, by the catalog or by ancestry.
    fn follows(&self, said: &Said, files: &[File], note: &Note) -> Follows {
        match said {
            Said::Ancestry => follows_of(files, note, self.branch()),
            Said::Nothing => Follows::default(),
            Said::At(pointer) => {
                let tip = files.iter().find(|file| file.name == pointer.row.name);
                tip.map(|tip| follows_of_catalog(tip, note, self.branch())).unwrap_or_default()
            }
        }
    }

    /// Reads candidates up to a bound, the newest one always: its log tells which of the others it was
    /// made from.
    async fn read_files(&self, read: &mut Read, folder: &Folder, rows: &[Row]) -> Result<(), Stop> {
        let others = &rows[..rows.len().saturating_sub(1)];
        for row in rows.last().into_iter().chain(others) {
            let snapshots: usize = read.files.iter().map(|file| file.metadata.snapshots().len()).sum();
            let is_enough = read.files.len() > 2 && snapshots > MAX_SNAPSHOTS;
            if is_enough || read.tried.len() >= MAX_FILES {
                read.unread.insert(row.name.clone());
                continue;
            }
            read.tried.insert(row.name.clone());
            match files::read(&self.table, folder, row, self.watermark).await {
                Ok(file) => read.files.extend(file),
                Err(Stop::Trouble(code @ TroubleCode::Damaged, detail)) => {
                    read.damaged.push((row.clone(), code, detail));
                }
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Damaged files that the chain went past are a gap already; one that may be the newest commit is
    /// trouble.
    fn take_damaged(
        &self,
        damaged: Vec<(Row, TroubleCode, String)>,
        new: &[&File],
        note: &mut Note,
        reading: &mut Reading,
    ) {
        let mut trouble = None;
        for (row, code, detail) in damaged {
            let is_named = new.iter().any(|file| file.link.log.contains(&row.name));
            let known = files::rising(&note.file);
            let is_passed = row.kind.rising().zip(known).is_some_and(|(number, known)| number <= known);
            if is_named || is_passed {
                note.lose([row.name]);
            } else {
                trouble = trouble.or(Some((code, detail)));
            }
        }
        if let Some((code, detail)) = trouble {
            reading.findings.push(Finding::new(self.table.trouble(code, detail)));
        }
    }

    fn sighted(&self, state: &AssetState, evidence: String) -> Reading {
        let hold: RewriteHold = self.table.sighting(state, evidence);
        Reading::of(Evidence::RewriteSighted(hold))
    }

    fn step_after<'f>(&self, before: &File, file: &'f File) -> Step<'f> {
        let head = before.metadata.head(self.branch());
        let number = head.and_then(|id| before.metadata.snapshot(id)).map(|head| head.sequence_number);
        let known = head.map_or(Known::Nothing, |id| Known::Snapshot { id, sequence_number: number });
        self.step(&file.metadata, known)
    }

    /// What happened to the branch. Cutting a branch changes nothing: where it was not known before,
    /// it begins at the snapshot of main's line that it was cut at.
    fn step<'m>(&self, metadata: &'m Metadata, known: Known) -> Step<'m> {
        let branch = self.branch();
        let heads = metadata.head(branch).zip(metadata.current_snapshot_id());
        if known == Known::Nothing
            && branch != MAIN
            && let Some((head, main)) = heads
        {
            let of_main: HashSet<i64> = line(metadata, main).collect();
            if let Some(id) = line(metadata, head).find(|id| of_main.contains(id)) {
                return metadata.step(branch, Known::Snapshot { id, sequence_number: None });
            }
        }
        metadata.step(branch, known)
    }
}

/// Adds a commit, and the tags that name it.
fn take(state: &AssetState, reading: &mut Reading, tags: &mut BTreeMap<String, String>, file: &File, commit: Commit) {
    let entry = TagEntry {
        position: Position { epoch: state.epoch, ordinal: commit.ordinal },
        fingerprint: commit.fingerprint.clone(),
        snapshot_id: commit.snapshot_id.clone(),
        schema_id: commit.schema_id,
        kind: Some(commit.kind.clone()),
    };
    let evidence = Evidence::Commit(Box::new(commit));
    reading.findings.push(Finding { evidence, etags: vec![file.etag.clone()] });
    for (name, id) in file.metadata.tags() {
        let id = id.to_string();
        let has_room = reading.findings.len() < MAX_COMMITS_PER_WRITE;
        if has_room && id == entry.snapshot_id && tags.get(name) != Some(&id) {
            tags.insert(name.to_owned(), id);
            reading.findings.push(Finding::new(Evidence::TagCreated(name.to_owned(), entry.clone())));
        }
    }
}

/// What the newest accepted file names between the known one and itself and no listing showed,
/// because numbers begin again, or because its own log is short.
fn between(read: &Read, follows: &Follows, note: &Note, is_listed: bool) -> Vec<Row> {
    let newest = follows.accepted.last().or(follows.twin.as_ref());
    let newest = newest.and_then(|name| read.files.iter().find(|file| file.name == *name));
    // Before the first file a listing has shown all there are.
    let Some(newest) = newest.filter(|_| note.knows_a_file() || !is_listed) else { return Vec::new() };
    let oldest = read.files.iter().filter(|file| follows.accepted.contains(&file.name));
    let oldest = oldest.min_by_key(|file| follows.accepted.iter().position(|name| *name == file.name));
    let base = if newest.link.log.contains(&note.file) { Some(&note.file) } else { note.parent.as_ref() };
    let later = |file: &File| base.map_or_else(|| file.link.log.clone(), |base| after(base, &file.link.log).to_vec());
    let mut names = later(newest);
    names.extend(oldest.into_iter().flat_map(later));
    let mut seen = BTreeSet::new();
    names.retain(|name| *name != note.file && !read.tried.contains(name) && seen.insert(name.clone()));
    // What a catalog's file names may be called anything.
    let row = |name: &String| if is_listed { Row::named(name) } else { Some(Row::any(name)) };
    names.iter().filter_map(row).take(MAX_FILES).collect()
}

/// What a log names after a file; all of it where it does not name the file.
fn after<'l>(file: &str, log: &'l [String]) -> &'l [String] {
    log.iter().rposition(|name| name == file).map_or(log, |at| &log[at + 1..])
}

/// The domain's ordinal of the first file before this one that was not read, where there is one.
fn first_missing(note: &Note, file: &File, ordinal: u64) -> Option<u64> {
    let first = if note.knows_a_file() {
        Ordinal(note.ordinal).next().next().0
    } else {
        // The table had no file at the first read, and this one was not the first.
        ordinal.saturating_sub(file.link.log.len() as u64) + 1
    };
    (first <= ordinal).then_some(first)
}

fn parent_of_head(metadata: &Metadata, branch: &str) -> Known {
    let head = metadata.head(branch).and_then(|id| metadata.snapshot(id));
    let parent = head.and_then(|head| head.parent_id);
    parent.map_or(Known::Nothing, |id| Known::Snapshot { id, sequence_number: None })
}

fn moved(metadata: &Metadata, branch: &str, known: Option<i64>) -> String {
    let known = known.map_or_else(|| "none".to_owned(), |id| id.to_string());
    match metadata.head(branch) {
        Some(head) => format!("{branch} is at snapshot {head}, which was not made from the recorded one, {known}"),
        None => format!("{branch} has no snapshot any more, and {known} was recorded"),
    }
}
