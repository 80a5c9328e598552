//! What is read of a table of which nothing is known.

use std::collections::VecDeque;

use futures_util::future::join_all;
use lakebell_domain::Invalid;
use lakebell_domain::commit::Commit;
use lakebell_domain::state::{AssetState, Evidence, TroubleCode};
use lakebell_domain::version::Ordinal;
use lakebell_formats::iceberg::{Anchor, Known, Metadata, Movement, resolve};

use super::super::findings::{Finding, Reading};
use super::super::table::{Back, Stop, keep_note};
use super::files::{self, File, Row};
use super::note::Note;
use super::notified::missing;
use super::pointer::{Folder, Said};
use super::tags::Tags;
use super::{MAX_SNAPSHOTS, Reader};

/// Most tags with which an epoch begins; it is written in one transaction with its commits.
const MAX_FIRST_TAGS: usize = 12;
/// How many files a first read takes at a time.
const FIRST_FILES: usize = 4;

impl Reader<'_> {
    /// The newest file, and back from it to one with which the branch's data changed.
    pub(super) async fn first_read(&self, state: &AssetState) -> Result<Reading, Stop> {
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
            let next: Vec<Row> = rest.drain(..FIRST_FILES.min(rest.len())).collect();
            for file in join_all(next.iter().map(|row| files::read(&self.table, &folder, row, self.watermark))).await {
                match file {
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
        self.first_commits(state, &files, lost, is_whole)
    }

    /// Whether a first read has gone back as far as it should, beyond the commit that it ends at, so that
    /// this one is judged by the file before it.
    ///
    /// Errors: `Invalid` where what it would have to hold is too much.
    fn is_far_enough(&self, files: &[File], line: &[String], has_data: bool) -> Result<bool, Stop> {
        let snapshots: usize = files.iter().map(|file| file.metadata.snapshots().len()).sum();
        let is_much = files.len() > 2 && snapshots > MAX_SNAPSHOTS;
        let first = match self.table.back {
            Back::ToData => return Ok(has_data),
            Back::ToKnown(ring, _) => {
                let is_known = |file: &File| ring.versions.iter().any(|entry| entry.etag == file.etag);
                let reaches = files.iter().filter(|file| line.contains(&file.name)).any(is_known);
                return Ok(is_much || (reaches && has_data));
            }
            Back::To(first, _) => first,
        };
        if is_much {
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
    fn first_commits(
        &self,
        state: &AssetState,
        files: &[File],
        lost: Vec<String>,
        is_whole: bool,
    ) -> Result<Reading, Stop> {
        // A branch that is gone now has no commits, whatever earlier files say.
        let is_there = files.last().is_some_and(|tip| tip.metadata.head(self.branch()).is_some());
        let mut note = Note::default();
        let mut commits: Vec<Commit> = Vec::new();
        let mut etags = Vec::new();
        let mut schema_id = None;
        let mut tags = Tags::of(state);
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
                if self.table.back.ends_at(&commit) {
                    commits.clear();
                    etags.clear();
                }
                if step.movement != Movement::Unchanged || at == 0 {
                    tags.see(&commit);
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
        // Of a table that nobody knew, the tags were there before anybody asked.
        if let (Back::ToKnown(..), Some(tip)) = (self.table.back, files.last().filter(|_| is_there)) {
            findings.extend(tags.begin(&tip.metadata).into_iter().take(MAX_FIRST_TAGS));
        }
        if note.knows_a_file() {
            note.lose(lost);
            findings.insert(0, keep_note(&note, schema_id)?);
        }
        Ok(Reading { findings, verified: true, ..Reading::default() })
    }
}

fn parent_of_head(metadata: &Metadata, branch: &str) -> Known {
    let head = metadata.head(branch).and_then(|id| metadata.snapshot(id));
    let parent = head.and_then(|head| head.parent_id);
    parent.map_or(Known::Nothing, |id| Known::Snapshot { id, sequence_number: None })
}
