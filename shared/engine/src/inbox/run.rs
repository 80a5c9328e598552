//! Events of one run of a job, each of which tells a part.
//!
//! Writers of OpenLineage say a thing once: the catalog of a table with the start, the end without its outputs, a
//! checkpoint without any table. What is known of a run is kept in one bounded item, and each event is worked on
//! as if it told all of that. Events come in any order: what a late start names is looked at though the end came
//! before it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use lakebell_decoders::{Committed, Content, Entry, Job, Lifecycle, Mention, Report, Run, Says, TableRef};
use lakebell_domain::lineage::FRESH;
use serde::{Deserialize, Serialize};

use super::{KEPT, Letter};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::store::{self, MAX_LOST_RACES};

/// Most tables on each side that are kept of a run.
const MAX_SIDE: usize = 64;
/// Most names of one table that are kept.
const MAX_NAMES: usize = 8;
/// Largest item, in bytes of JSON; a run that has more keeps what it has.
const MAX_BYTES: usize = 192 * 1024;

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KnownRun {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mentions: Option<Mention>,
    /// How it ended, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    /// The most checkpoints that were told of, and the letter that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoints: Option<(u64, String)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<KnownTable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<KnownTable>,
    /// Exact to some hours.
    last_seen: Timestamp,
}

/// What is known of one of its tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KnownTable {
    table: TableRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    committed: Option<Committed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifecycle: Option<Lifecycle>,
    /// The letter whose work said what the end of the run means for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_by: Option<String>,
}

/// What an event says together with what is known of its run. The same letter once more comes to the same.
///
/// One read, and a write where the event tells something new.
pub(super) async fn merged<'e>(
    ports: &Ports,
    letter: &Letter,
    entry: &'e Entry,
) -> Result<Cow<'e, Content>, EngineError> {
    let Content { run: Some(run), job: Some(job), .. } = &entry.content else {
        return Ok(Cow::Borrowed(&entry.content));
    };
    let key = layout::run(letter.project, &run.id);
    for _ in 0..MAX_LOST_RACES {
        let stored = store::get::<KnownRun>(&*ports.items, key.clone()).await?;
        let (rev, before) = match stored {
            Some(stored) => (Some(stored.rev), Some(stored.value)),
            None => (None, None),
        };
        let now = ports.clock.now();
        let mut known = before.clone().unwrap_or_else(|| KnownRun::new(now));
        known.learn(run, job);
        let content = known.told(&letter.receipt, run, &entry.content);
        if before.as_ref() == Some(&known) && now.duration_since(known.last_seen) < FRESH {
            return Ok(Cow::Owned(content));
        }
        known.last_seen = now;
        let mut draft = store::draft(key.clone(), &known)?;
        if draft.doc.len() > MAX_BYTES {
            tracing::warn!(bytes = draft.doc.len(), "a run names too much to be kept; its events stand for themselves");
            return Ok(Cow::Owned(content));
        }
        draft.expires_at = Some(now + KEPT);
        if store::write(&*ports.items, &*ports.random, &[Write::put(draft, rev)]).await? == Written::Done {
            return Ok(Cow::Owned(content));
        }
    }
    Err(store::lost_too_often("keep what is known of a run"))
}

impl KnownRun {
    const fn new(now: Timestamp) -> Self {
        Self { mentions: None, end: None, checkpoints: None, inputs: Vec::new(), outputs: Vec::new(), last_seen: now }
    }

    /// Takes in what an event tells.
    fn learn(&mut self, run: &Run, job: &Job) {
        self.mentions = self.mentions.take().or_else(|| job.mentions.clone());
        if run.has_ended() {
            self.end.get_or_insert_with(|| run.status.clone());
        }
        for table in &job.inputs {
            if let Some(known) = place(&mut self.inputs, table) {
                known.read = run.read.get(&table.name).cloned().or_else(|| known.read.take());
            }
        }
        for table in &job.outputs {
            if let Some(known) = place(&mut self.outputs, table) {
                known.committed = run.committed.get(&table.name).cloned().or_else(|| known.committed.take());
                known.lifecycle = run.lifecycle.get(&table.name).cloned().or_else(|| known.lifecycle.take());
            }
        }
    }

    /// What an event says, with what is known of its run.
    fn told(&mut self, receipt: &str, run: &Run, said: &Content) -> Content {
        let mut content = said.clone();
        let names: BTreeMap<&str, &KnownTable> =
            self.inputs.iter().chain(&self.outputs).map(|known| (known.table.name.as_str(), known)).collect();
        for report in &mut content.reports {
            let Some(known) = names.get(report.table.name.as_str()) else { continue };
            report.table = known.table.clone();
            match &mut report.says {
                Says::Check { snapshot, .. } if snapshot.is_none() => snapshot.clone_from(&known.read),
                // A commit that another event told of beats that something may have changed.
                Says::Touched if run.status == "COMPLETE" => {
                    if let Some(committed) = &known.committed {
                        report.says = Says::Committed(committed.clone());
                    }
                }
                _ => {}
            }
        }
        if let Some(job) = &mut content.job {
            job.inputs = tables(&self.inputs);
            job.outputs = tables(&self.outputs);
            job.mentions = job.mentions.take().or_else(|| self.mentions.clone());
        }
        let at = said.reports.iter().find_map(|report| report.at);
        let mut more = self.of_checkpoint(receipt, run, at);
        more.extend(self.of_end(receipt, run, said, at));
        more.retain(|report| !content.reports.contains(report));
        let room = lakebell_decoders::MAX_REPORTS.saturating_sub(content.reports.len());
        content.reports.extend(more.into_iter().take(room));
        content
    }

    /// A checkpoint commits what a streaming job writes.
    fn of_checkpoint(&mut self, receipt: &str, run: &Run, at: Option<Timestamp>) -> Vec<Report> {
        let Some(completed) = run.checkpoints.filter(|_| !run.has_ended()) else { return Vec::new() };
        let is_new = match &self.checkpoints {
            Some((known, by)) => completed > *known || (completed == *known && by == receipt),
            None => completed > 0,
        };
        if !is_new {
            return Vec::new();
        }
        self.checkpoints = Some((completed, receipt.to_owned()));
        let touched = |known: &KnownTable| Report { table: known.table.clone(), says: Says::Touched, at };
        self.outputs.iter().map(touched).collect()
    }

    /// What the end of the run means for those of its outputs that the event itself does not end.
    fn of_end(&mut self, receipt: &str, run: &Run, said: &Content, at: Option<Timestamp>) -> Vec<Report> {
        let Some(end) = self.end.clone() else { return Vec::new() };
        let is_named = |name: &str| said.job.iter().flat_map(|job| &job.outputs).any(|table| table.name == name);
        let mut reports = Vec::new();
        for known in &mut self.outputs {
            if known.ended_by.as_deref().is_some_and(|by| by != receipt) {
                continue;
            }
            known.ended_by = Some(receipt.to_owned());
            let mut say = |says| reports.push(Report { table: known.table.clone(), says, at });
            let is_ended_here = run.has_ended() && is_named(&known.table.name);
            let lifecycle = known.lifecycle.clone().filter(|_| end == "COMPLETE");
            let is_gone = lifecycle.as_ref().is_some_and(Lifecycle::leaves_no_commit);
            if is_ended_here {
                // The event says the rest; only what became of the table it may leave to an earlier one.
                if let Some(change) = lifecycle.filter(|_| !run.lifecycle.contains_key(&known.table.name)) {
                    say(Says::Lifecycle(change));
                }
                continue;
            }
            say(Says::JobStatus { status: end.clone() });
            if let Some(change) = lifecycle {
                say(Says::Lifecycle(change));
            }
            match &known.committed {
                Some(committed) if end == "COMPLETE" => say(Says::Committed(committed.clone())),
                // Part of it may have been committed all the same where it failed.
                _ if !is_gone => say(Says::Touched),
                _ => {}
            }
        }
        reports
    }
}

/// The place of a table among those that are known, with all its names so far; `None` where there is no room.
fn place<'k>(known: &'k mut Vec<KnownTable>, table: &TableRef) -> Option<&'k mut KnownTable> {
    let at = match known.iter().position(|known| known.table.name == table.name) {
        Some(at) => at,
        None if known.len() < MAX_SIDE => {
            let table = table.clone();
            known.push(KnownTable { table, read: None, committed: None, lifecycle: None, ended_by: None });
            known.len() - 1
        }
        None => return None,
    };
    let found = &mut known[at];
    let TableRef { key, format, uuid, location, names, .. } = table;
    found.table.key = found.table.key.take().or_else(|| key.clone());
    found.table.format = found.table.format.or(*format);
    found.table.uuid = found.table.uuid.take().or_else(|| uuid.clone());
    found.table.location = found.table.location.take().or_else(|| location.clone());
    for name in names {
        if found.table.names.len() < MAX_NAMES && !found.table.names.contains(name) {
            found.table.names.push(name.clone());
        }
    }
    Some(found)
}

fn tables(known: &[KnownTable]) -> Vec<TableRef> {
    known.iter().map(|known| known.table.clone()).collect()
}
