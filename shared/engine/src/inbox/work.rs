//! Work on letters: each thing that one says goes the way of a pushed event.

use crate::ports::time::doubled;
use jiff::SignedDuration;
use lakebell_decoders::{Entry, TableRef};
use lakebell_domain::asset::Format;
use lakebell_domain::event::{EventKind, Outcome};
use lakebell_domain::ids::TraceId;

use super::{Became, Content, FIRST_RESEND, Letter, Progress, identity, reports};
use crate::evaluate::Evaluated;
use crate::lineage::{self, FoundLoop};
use crate::ports::Ports;
use crate::ports::items::{Item, Write};
use crate::ports::queue::Message;
use crate::push::{self, Named, Pushed, Receipt};
use crate::records::{Resolved, Unregistered};
use crate::store::{self, Stored};
use crate::{EngineError, ErrorKind, assets};

/// The longest pause between two sends of one letter.
const LONGEST_RESEND: SignedDuration = SignedDuration::from_hours(1);

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
    let became = worked.became.iter().map(|(became, _)| became.clone()).collect();
    let settled = Letter { progress: Progress::Settled { at: ports.clock.now(), became }, ..letter.value.clone() };
    let action = Write::Replace(settled.draft()?, letter.rev);
    // Somebody else has worked on it at the same time: both did the same.
    store::write(&*ports.items, &*ports.random, &[action]).await?;
    Ok(Some(worked))
}

async fn event(
    ports: &Ports,
    letter: &Letter,
    pushed: &Pushed,
    trace: &TraceId,
    worked: &mut Worked,
) -> Result<(), EngineError> {
    let done = match letter.project {
        Some(project) => Box::pin(push::push_from(ports, project, pushed, trace)).await,
        None => Box::pin(push::push(ports, pushed, trace)).await,
    };
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
                Receipt::UnknownAsset => became("unknown", Some(unknown(&pushed.asset))),
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
    for skipped in &entry.content.skipped {
        let (about, reason) = (skipped.what.clone(), Some(skipped.why.clone()));
        worked.became.push((Became { kind: None, about, outcome: "skipped".to_owned(), reason }, None));
    }
    if let Some(job) = &entry.content.job
        && !(job.inputs.is_empty() && job.outputs.is_empty())
    {
        worked.loops.extend(lineage::record(ports, &reports::flow(job)).await?);
        let about = format!("job {}", job.name);
        worked.became.push((Became { kind: None, about, outcome: "lineage".to_owned(), reason: None }, None));
    }
    for (at, report) in entry.content.reports.iter().enumerate() {
        let named = Named::Table(Box::new(report.table.clone()));
        match named.find(ports).await? {
            Some(asset) => {
                // Names are claimed by those who may speak for the table.
                let resolved = Resolved { id: asset, project: None };
                let may_claim = match letter.project {
                    Some(project) => assets::speaks_for(ports, project, &resolved).await?,
                    None => true,
                };
                if may_claim {
                    identity::claim(ports, asset, &report.table, &entry.source).await?;
                }
            }
            None => remember(ports, letter, &report.table).await?,
        }
        let id = format!("{}#{at}", entry.id);
        let pushed = reports::pushed(&entry.source, id, named, report, letter.received_at);
        event(ports, letter, &pushed, trace, worked).await?;
    }
    Ok(())
}

/// Keeps a table that nobody has registered as seen.
async fn remember(ports: &Ports, letter: &Letter, table: &TableRef) -> Result<(), EngineError> {
    let location = match (&table.location, table.names.first()) {
        (Some(location), _) => location.to_string(),
        (None, Some(name)) => name.to_string(),
        (None, None) => return Ok(()),
    };
    let seen = Unregistered {
        location,
        format: table.format,
        first_seen: ports.clock.now(),
        object: format!("event {} of {}", letter.id, letter.source),
        reason: identity::why_unknown(table).to_owned(),
    };
    assets::remember_unregistered(ports, &seen).await.map(|_| ())
}

/// Sends a letter whose time has come once more; `false` where it needs none.
pub async fn send_again(ports: &Ports, item: &Item, trace: &TraceId) -> Result<bool, EngineError> {
    let letter: Stored<Letter> = store::decode(item)?;
    let now = ports.clock.now();
    let Progress::Stored { sends, due_at } = letter.value.progress else { return Ok(false) };
    if due_at > now {
        return Ok(false);
    }
    let pause = doubled(FIRST_RESEND, sends, LONGEST_RESEND);
    let receipt = letter.value.receipt.clone();
    let again = Letter { progress: Progress::Stored { sends: sends + 1, due_at: now + pause }, ..letter.value };
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
