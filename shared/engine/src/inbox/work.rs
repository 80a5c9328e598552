//! Work on letters: each thing that one says goes the way of a pushed event.

use jiff::SignedDuration;
use lakebell_decoders::Entry;
use lakebell_domain::asset::Format;
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::ids::TraceId;

use super::{Became, Content, FIRST_RESEND, Letter, Progress, identity, reports, run, waiting};
use crate::evaluate::Evaluated;
use crate::lineage::{self, FoundLoop};
use crate::ports::Ports;
use crate::ports::items::{Item, Write};
use crate::ports::queue::Message;
use crate::ports::time::doubled;
use crate::push::{self, Accepted, Named, Pushed, Receipt};
use crate::records::{Resolved, Unregistered};
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind, assets, observe};

/// The longest pause between two sends of one letter.
const LONGEST_RESEND: SignedDuration = SignedDuration::from_hours(1);

/// The outcome of what is about a table that is not registered.
const UNKNOWN: &str = "unknown";

/// What came of a letter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Worked {
    /// What became of each thing that it says, with the format of its table where that is known.
    pub became: Vec<(Became, Option<Format>)>,
    /// The evaluations that followed.
    pub evaluated: Vec<Evaluated>,
    /// Loops that its lineage is the first to show.
    pub loops: Vec<FoundLoop>,
}

/// Works on a letter; `None` where it is not there, or was worked on before.
///
/// Errors: those after which the same letter must be worked on again.
pub async fn work(ports: &Ports, receipt: &str, trace: &TraceId) -> Result<Option<Worked>, EngineError> {
    let Some(letter) = super::find(ports, receipt).await?.filter(|letter| letter.value.is_stored()) else {
        return Ok(None);
    };
    let mut worked = Worked::default();
    match &letter.value.content {
        Content::Event(pushed) => event(ports, &letter.value, pushed, trace, &mut worked).await?,
        Content::Entry(entry) => of_entry(ports, &letter.value, entry, trace, &mut worked).await?,
        Content::Quarantined { .. } => {}
    }
    let became = worked.became.iter().map(|(became, _)| became.clone());
    let became = as_before(became.collect(), &letter.value);
    let settled = Letter { progress: Progress::Settled { at: ports.clock.now(), became }, ..letter.value.clone() };
    let action = Write::Replace(settled.draft()?, letter.rev);
    // Somebody else has worked on it at the same time: both did the same.
    store::write(&*ports.items, &*ports.random, &[action]).await?;
    Ok(Some(worked))
}

/// What became of a letter that is worked on again: where nothing is new, what it was the first time.
fn as_before(mut became: Vec<Became>, letter: &Letter) -> Vec<Became> {
    let Progress::Stored { before, .. } = &letter.progress else { return became };
    for (now, before) in became.iter_mut().zip(before) {
        let is_same = (now.kind, &now.about) == (before.kind, &before.about);
        if is_same && now.outcome == Outcome::Duplicate.as_str() && before.outcome != UNKNOWN {
            *now = before.clone();
        }
    }
    became
}

async fn push(ports: &Ports, letter: &Letter, pushed: &Pushed, trace: &TraceId) -> Result<Accepted, EngineError> {
    match letter.project {
        Some(project) => Box::pin(push::push_from(ports, project, pushed, trace)).await,
        None => Box::pin(push::push(ports, pushed, trace)).await,
    }
}

/// Whether the table is not registered, or not any more.
fn is_of_none(accepted: &Accepted) -> bool {
    match &accepted.receipt {
        Receipt::UnknownAsset => true,
        Receipt::Looked(Outcome::Ignored(reason)) => reason == observe::DEREGISTERED,
        Receipt::Looked(_) => false,
    }
}

async fn event(
    ports: &Ports,
    letter: &Letter,
    pushed: &Pushed,
    trace: &TraceId,
    worked: &mut Worked,
) -> Result<(), EngineError> {
    let mut done = push(ports, letter, pushed, trace).await;
    if done.as_ref().is_ok_and(is_of_none) {
        // Kept first and looked for again, so that a registration at the same time is not missed.
        waiting::keep(ports, letter, &pushed.asset).await?;
        remember(ports, letter, &pushed.asset).await?;
        let again = push(ports, letter, pushed, trace).await;
        // What was refused a moment ago is recorded, and the same once more is its repetition.
        let is_repetition = |again: &Accepted| again.receipt == Receipt::Looked(Outcome::Duplicate);
        let was_kept = done.as_ref().is_ok_and(|first| first.receipt != Receipt::UnknownAsset);
        if !(was_kept && again.as_ref().is_ok_and(is_repetition)) {
            done = again;
        }
    }
    if letter.is_again() && !done.as_ref().is_ok_and(is_of_none) {
        assets::forget_unregistered(ports, &seen_as(&pushed.asset), letter.project).await?;
    }
    let became = |outcome: &str, reason: Option<String>| Became {
        kind: Some(pushed.kind),
        about: pushed.asset.to_string(),
        outcome: outcome.to_owned(),
        reason,
    };
    let format = pushed.asset.format();
    match done {
        Ok(accepted) => {
            let came = match accepted.receipt {
                Receipt::Looked(Outcome::Ignored(reason)) => became("ignored", Some(reason)),
                Receipt::Looked(outcome) => became(outcome.as_str(), None),
                Receipt::UnknownAsset => became(UNKNOWN, Some(unknown(&pushed.asset))),
            };
            worked.became.push((came, format));
            worked.evaluated.extend(accepted.evaluated);
            worked.loops.extend(accepted.loops);
            Ok(())
        }
        Err(error) if error.retryable() => Err(error),
        // What is wrong with one thing must not keep the others from being done.
        Err(error) => {
            if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound) {
                tracing::error!(%error, "an event could not be worked on");
            }
            worked.became.push((became("refused", Some(error.message().to_owned())), format));
            Ok(())
        }
    }
}

fn unknown(named: &Named) -> String {
    match named {
        Named::Table(table) => identity::why_unknown(table).to_owned(),
        Named::Key(_) | Named::Location(_) => "no asset is registered under this key or at this location".to_owned(),
    }
}

async fn of_entry(
    ports: &Ports,
    letter: &Letter,
    entry: &Entry,
    trace: &TraceId,
    worked: &mut Worked,
) -> Result<(), EngineError> {
    let content = run::merged(ports, letter, entry).await?;
    for skipped in &content.skipped {
        let (about, reason) = (skipped.what.clone(), Some(skipped.why.clone()));
        worked.became.push((Became { kind: None, about, outcome: "skipped".to_owned(), reason }, None));
    }
    if let Some(job) = &content.job
        && !(job.inputs.is_empty() && job.outputs.is_empty())
    {
        worked.loops.extend(lineage::record(ports, &reports::flow(job)).await?);
        let about = format!("job {}", job.name);
        worked.became.push((Became { kind: None, about, outcome: "lineage".to_owned(), reason: None }, None));
    }
    for (at, report) in content.reports.iter().enumerate() {
        let named = Named::Table(Box::new(report.table.clone()));
        if let Some(asset) = named.find(ports).await? {
            // Names are claimed by those who may speak for the table.
            let resolved = Resolved { id: asset, project: None };
            let may_claim = match letter.project {
                Some(project) => assets::speaks_for(ports, project, &resolved).await?,
                None => true,
            };
            if may_claim {
                for name in identity::claim(ports, asset, &report.table, &entry.source).await? {
                    waiting::reopen(ports, &waiting::of_name(&name), trace).await?;
                }
            }
        }
        let id = format!("{}#{at}", entry.id);
        let pushed = reports::pushed(&entry.source, id, named, report, letter.received_at);
        event(ports, letter, &pushed, trace, worked).await?;
    }
    Ok(())
}

/// By what a table that nobody has registered is listed.
fn seen_as(named: &Named) -> String {
    match named {
        Named::Table(table) => match (&table.location, &table.key, table.names.first()) {
            (Some(location), ..) => location.to_string(),
            (None, Some(key), _) => key.to_string(),
            (None, None, Some(name)) => name.to_string(),
            (None, None, None) => table.name.clone(),
        },
        Named::Key(_) | Named::Location(_) => named.to_string(),
    }
}

/// Keeps a table as seen that is not registered, or that the writer may not speak for: the two look alike.
async fn remember(ports: &Ports, letter: &Letter, named: &Named) -> Result<(), EngineError> {
    let seen = Unregistered {
        location: seen_as(named),
        project: letter.project,
        format: named.format(),
        first_seen: ports.clock.now(),
        object: format!("event {} of {}", letter.id, letter.source),
        reason: unknown(named),
    };
    assets::remember_unregistered(ports, &seen).await.map(|_| ())
}

/// Sends a letter whose time has come once more; `false` where it needs none.
pub async fn send_again(ports: &Ports, item: &Item, trace: &TraceId) -> Result<bool, EngineError> {
    let letter: Stored<Letter> = store::decode(item)?;
    let now = ports.clock.now();
    let Progress::Stored { sends, due_at, before } = letter.value.progress else { return Ok(false) };
    if due_at > now {
        return Ok(false);
    }
    let pause = doubled(FIRST_RESEND, sends, LONGEST_RESEND);
    let receipt = letter.value.receipt.clone();
    let again = Letter { progress: Progress::Stored { sends: sends + 1, due_at: now + pause, before }, ..letter.value };
    let action = Write::Replace(again.draft()?, letter.rev);
    store::write(&*ports.items, &*ports.random, &[action]).await?;
    ports.queue.send(&Message::Letters { receipts: vec![receipt], trace: trace.clone() }).await?;
    Ok(true)
}

impl Became {
    /// Whether it moved the state of a table.
    pub fn is_update(&self) -> bool {
        self.kind.is_some_and(|kind| kind != EventKind::JobStatusChanged)
            && matches!(self.outcome.as_str(), "advanced" | "maintenance")
    }
}
