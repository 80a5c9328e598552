//! What became of the files that were notified, where a catalog says which file is current.

use lakebell_domain::event::EventKind;
use lakebell_domain::state::TroubleCode;

use super::files::{self, File, Row};
use super::follows::{Fate, Follows, fate};
use super::note::Note;
use super::pointer::Pointer;
use crate::observe::findings::{Reading, Remark};
use crate::observe::table::Stop;

/// The catalog's file, if reading it can tell anything: it is another one than the known, or it was
/// written over, or it decides what became of a file that was notified.
pub(super) fn worth_reading(pointer: &Pointer, note: &Note, hinted: Option<&str>) -> Vec<Row> {
    let row = &pointer.row;
    let is_same = row.name == note.file && (row.etag.is_empty() || note.etag.as_ref().is_none_or(|it| *it == row.etag));
    let decides = |name: &str| {
        let numbers = files::rising(name).zip(files::rising(&row.name));
        numbers.is_some_and(|(number, current)| number <= current)
    };
    if is_same && !hinted.is_some_and(decides) { Vec::new() } else { vec![row.clone()] }
}

pub(super) fn missing(pointer: &Pointer) -> Stop {
    let Pointer { folder, row } = pointer;
    let problem = format!("the catalog names s3://{}/{}{}, which is not there", folder.bucket, folder.prefix, row.name);
    Stop::Trouble(TroubleCode::CatalogUnclear, problem)
}

/// Why the known file, which was written over, is another history; `None` where it is not.
pub(super) fn written_over(tip: &File, note: &Note, branch: &str) -> Option<String> {
    let is_other = tip.name == note.file && note.etag.as_ref().is_some_and(|etag| *etag != tip.etag);
    (is_other && tip.metadata.head(branch) != note.head)
        .then(|| format!("{} was written over: {branch} is at another snapshot in it", tip.name))
}

/// What became of the files that were notified, by the current one; it was not read where it is the
/// known one and could tell nothing about them.
pub(super) fn settle_notified(
    note: &mut Note,
    tip: Option<&File>,
    hinted: Option<&str>,
    follows: &mut Follows,
    reading: &mut Reading,
) {
    if let Some(tip) = tip.filter(|tip| tip.name == note.file) {
        note.etag = Some(tip.etag.clone());
    }
    if let Some(name) = hinted {
        note.wait(name);
    }
    let Some(tip) = tip else {
        reading.look_again = hinted.is_some();
        return;
    };
    let mut lost = Vec::new();
    note.waiting.retain(|name| match fate(name, tip) {
        Fate::Open => true,
        Fate::Lost => {
            lost.push(name.clone());
            false
        }
        Fate::OnTheChain | Fate::Forgotten => false,
    });
    reading.look_again = hinted.is_some_and(|name| note.waiting.iter().any(|it| it == name));
    let is_told_with_a_commit = !follows.accepted.is_empty();
    if !is_told_with_a_commit {
        reading.remarks = lost.iter().map(|name| lost_race(name, tip)).collect();
    }
    follows.lost.extend(lost);
}

fn lost_race(name: &str, tip: &File) -> Remark {
    let text = format!("{name} is no commit: it lost a race, the catalog went on to {}", tip.name);
    Remark { kind: EventKind::SnapshotCommitted, token: Some(format!("lost.{name}")), text }
}
