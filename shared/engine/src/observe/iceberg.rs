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
mod first;
mod follows;
mod note;
mod notified;
mod pointer;
mod tags;

use std::collections::{BTreeSet, HashSet};

use lakebell_domain::state::{AssetState, Evidence, RewriteHold, TroubleCode};
use lakebell_domain::version::Ordinal;
use lakebell_formats::iceberg::{Known, MAIN, Metadata, Movement, Step};

use super::Look;
use super::findings::{Finding, Reading};
use super::table::{Stop, Table, keep_note, note_of, verified};
use crate::records::Ring;
use files::{File, Row};
use follows::{Follows, follows_of, follows_of_catalog, line};
use note::Note;
use notified::{missing, settle_notified, worth_reading, written_over};
pub(super) use pointer::Asked;
use pointer::{Folder, Said};
use tags::Tags;

/// Most files that are read before what they say is written.
const MAX_FILES: usize = 24;
/// Most snapshots of the files that are in memory together; one file may have more.
const MAX_SNAPSHOTS: usize = 120_000;

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
            return self.first_read(state).await;
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
        let mut tags = Tags::of(state);
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
            let tagged = tags::digest(metadata);
            if is_rewritten {
                let cause = "the branch was set to another snapshot and back";
                reading.findings.push(self.table.gap(ordinal + 1, ordinal + 1, cause));
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
                    if step.movement != Movement::Unchanged {
                        tags.see(&commit);
                    }
                    let evidence = Evidence::Commit(Box::new(commit));
                    reading.findings.push(Finding { evidence, etags: vec![file.etag.clone()] });
                }
            }
            if tagged != note.tags {
                let known = match at.checked_sub(1).and_then(|before| new.get(before)) {
                    None if tags.needs_before(metadata) => self.known_file(&said, &note).await?,
                    _ => None,
                };
                let before = at.checked_sub(1).and_then(|before| new.get(before).copied()).or(known.as_ref());
                tags.take(metadata, before.map(|before| &before.metadata), &mut reading);
            }
            if is_rewritten {
                note.pass(file, self.branch(), ordinal);
            } else {
                note.accept(file, self.branch(), ordinal);
            }
            schema_id = metadata.current_schema_id;
        }
        let of_others = new.iter().flat_map(|file| file.metadata.branches());
        reading.branches =
            of_others.filter(|(name, _)| *name != self.branch()).map(|(name, _)| name.to_owned()).collect();
        if let Some(tip) = new.last().filter(|tip| tip.name == note.file) {
            tags.close(&tip.metadata, self.branch(), state, &mut reading);
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

    /// The file that was accepted last, once more; `None` where it is gone.
    async fn known_file(&self, said: &Said, note: &Note) -> Result<Option<File>, Stop> {
        if !note.knows_a_file() {
            return Ok(None);
        }
        let folder = if let Said::At(pointer) = said { pointer.folder.clone() } else { Folder::of(&self.table) };
        match files::read(&self.table, &folder, &Row::any(&note.file), self.watermark).await {
            Ok(file) => Ok(file),
            Err(Stop::Trouble(..)) => Ok(None),
            Err(stop) => Err(stop),
        }
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

fn moved(metadata: &Metadata, branch: &str, known: Option<i64>) -> String {
    let known = known.map_or_else(|| "none".to_owned(), |id| id.to_string());
    match metadata.head(branch) {
        Some(head) => format!("{branch} is at snapshot {head}, which was not made from the recorded one, {known}"),
        None => format!("{branch} has no snapshot any more, and {known} was recorded"),
    }
}
