//! Which of the metadata files that were read are on the chain after the known one.

use lakebell_formats::iceberg::{Anchor, Metadata, resolve};

use super::files::{self, File};
use super::note::Note;

/// The files that were found to follow the known one.
#[derive(Default)]
pub(super) struct Follows {
    /// Their names, in order.
    pub(super) accepted: Vec<String>,
    /// The file that took the known one's place, where both say the same.
    pub(super) twin: Option<String>,
    /// Why history is not the recorded one.
    pub(super) rewritten: Option<String>,
    /// What is beside the chain for good.
    pub(super) lost: Vec<String>,
}

/// Which files follow the known one.
pub(super) fn follows_of(files: &[File], note: &Note, branch: &str) -> Follows {
    let (own, others): (Vec<&File>, Vec<&File>) = files.iter().partition(|file| note.is_same_table(&file.metadata));
    let mut follows = Follows::default();
    let replaced = others.iter().filter(|file| file.metadata.last_updated_ms >= note.updated);
    let replaced = replaced.max_by_key(|file| file.metadata.last_updated_ms).filter(|_| note.knows_a_file());
    follows.rewritten = replaced.map(|file| {
        let uuid = file.metadata.table_uuid.as_deref().unwrap_or_default();
        format!("{} is of another table, {uuid}", file.name)
    });
    let is_older = |file: &&&File| file.metadata.last_updated_ms < note.updated;
    follows.lost.extend(others.iter().filter(is_older).map(|file| file.name.clone()));
    let mut links: Vec<_> = own.iter().map(|file| file.link.clone()).collect();
    if !note.knows_a_file() {
        let chain = resolve(&links, Anchor::None);
        follows.accepted = chain.accepted;
        follows.lost.extend(chain.orphans.into_iter().chain(chain.foreign));
        return follows;
    }
    links.push(note.link());
    let chain = resolve(&links, Anchor::Accepted(&note.file));
    if let Some(at) = chain.accepted.iter().position(|name| *name == note.file) {
        follows.accepted = chain.accepted[at + 1..].to_vec();
    }
    if follows.accepted.is_empty() {
        let beyond: Vec<&File> = own.iter().copied().filter(|file| is_out_of_reach(file, note, branch)).collect();
        let is_displaced = !chain.holds_anchor && chain.accepted.last().is_some_and(|last| *last != note.file);
        if is_displaced {
            follows.take_winner(&own, &chain.accepted, note, branch);
        } else {
            let links: Vec<_> = beyond.iter().map(|file| file.link.clone()).collect();
            follows.accepted = resolve(&links, Anchor::None).accepted;
        }
    }
    let decided = |name: &String| !follows.accepted.contains(name);
    let orphans = chain.orphans.into_iter().filter(|name| *name != note.file);
    let lost: Vec<String> = orphans.filter(decided).collect();
    follows.lost.extend(lost);
    follows
}

/// Which files follow the known one, where a catalog names `tip` as the current one: all that it was
/// made from were current before it.
pub(super) fn follows_of_catalog(tip: &File, note: &Note, branch: &str) -> Follows {
    let mut follows = Follows::default();
    if !note.is_same_table(&tip.metadata) {
        let uuid = tip.metadata.table_uuid.as_deref().unwrap_or_default();
        follows.rewritten = Some(format!("the catalog names {}, which is of another table, {uuid}", tip.name));
        return follows;
    }
    let mut line = tip.link.log.clone();
    line.push(tip.name.clone());
    let place = |name: &String| line.iter().rposition(|it| it == name);
    if !note.knows_a_file() {
        follows.accepted = line;
    } else if let Some(at) = place(&note.file) {
        follows.accepted = line.split_off(at + 1);
    } else if note.parent.as_ref().and_then(place).is_some_and(|at| at + 1 < line.len()) {
        follows.take_winner(&[tip], &line, note, branch);
    } else if is_out_of_reach(tip, note, branch) {
        follows.accepted = line;
    } else if tip.metadata.head(branch) != note.head {
        follows.rewritten =
            Some(format!("the catalog names {}, which was not made from the recorded {}", tip.name, note.file));
    }
    // Else an older file at which the branch is where it is known to be: nothing is withdrawn.
    follows
}

/// What a catalog's current file says about another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is, or was, current.
    OnTheChain,
    /// Another file of its time was current instead.
    Lost,
    /// It is from before what the current file remembers.
    Forgotten,
    /// The catalog may name it yet.
    Open,
}

/// What became of a file of this name, by the current one.
pub(super) fn fate(name: &str, tip: &File) -> Fate {
    let log = &tip.link.log;
    if name == tip.name || log.iter().any(|entry| entry == name) {
        return Fate::OnTheChain;
    }
    let Some((number, newest)) = files::rising(name).zip(files::rising(&tip.name)) else { return Fate::Open };
    let oldest = log.iter().filter_map(|entry| files::rising(entry)).min().unwrap_or(newest);
    if number > newest {
        Fate::Open
    } else if number < oldest {
        Fate::Forgotten
    } else {
        Fate::Lost
    }
}

impl Follows {
    /// The line that was built upon another file than the known one. Where the known snapshot lies on
    /// it, nothing that was seen has been withdrawn, and it goes on from there.
    fn take_winner(&mut self, own: &[&File], line: &[String], note: &Note, branch: &str) {
        let after = line.iter().position(|name| Some(name) == note.parent.as_ref()).map_or(0, |at| at + 1);
        let mut line = line[after..].to_vec();
        let file = |name: &String| own.iter().find(|file| file.name == *name);
        let tip = line.last().and_then(file).zip(note.head);
        if !tip.is_some_and(|(tip, head)| descends_from(&tip.metadata, branch, head)) {
            let winner = line.first().map_or("another file", String::as_str);
            self.rewritten = Some(format!("{} lost a race after all: {winner} was built upon in its place", note.file));
            return;
        }
        let is_twin = line.first().and_then(file).is_some_and(|winner| {
            winner.metadata.head(branch) == note.head && winner.link.log.last() == note.parent.as_ref()
        });
        if is_twin {
            self.twin = Some(line.remove(0));
        }
        self.accepted = line;
    }
}

/// Whether a file was written so long after the known one that its log no longer reaches back: by
/// its number and those in its log, or because its snapshot was made from the known one.
fn is_out_of_reach(file: &File, note: &Note, branch: &str) -> bool {
    let reaches = |name: &String| *name == note.file || Some(name) == note.parent.as_ref();
    if file.metadata.last_updated_ms < note.updated || file.link.log.iter().any(reaches) {
        return false;
    }
    let oldest = file.link.log.iter().filter_map(|name| files::rising(name)).chain(files::rising(&file.name)).min();
    let is_higher = files::rising(&note.file).zip(oldest).is_some_and(|(known, oldest)| oldest > known);
    is_higher || note.head.is_some_and(|head| descends_from(&file.metadata, branch, head))
}

/// A snapshot and those that it was made from, as far as the file lists them.
pub(super) fn line(metadata: &Metadata, from: i64) -> impl Iterator<Item = i64> {
    std::iter::successors(Some(from), |id| metadata.snapshot(*id)?.parent_id).take(metadata.snapshots().len() + 1)
}

fn descends_from(metadata: &Metadata, branch: &str, known: i64) -> bool {
    metadata.head(branch).is_some_and(|head| line(metadata, head).any(|id| id == known))
}
