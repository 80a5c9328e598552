//! Letters about tables that nobody has registered. They are settled as unknown, and wait under what the
//! table is called: once it is registered, or a name of it confirmed, they are worked on again.
//!
//! Whoever works on a letter keeps it here before it looks for the table once more, and whoever registers a
//! table writes the asset before it looks here: one of the two sees the other. What a letter waits under is
//! coarser than a name, so a letter may come again in vain, which changes nothing.

use std::collections::BTreeSet;

use lakebell_decoders::{CatalogName, TableRef};
use lakebell_domain::asset::{AssetKey, Location};
use lakebell_domain::ids::TraceId;
use serde::{Deserialize, Serialize};

use super::{FIRST_RESEND, KEPT, Letter, PER_MESSAGE, Progress};
use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Item, Key, Write, Written};
use crate::ports::queue::Message;
use crate::push::Named;
use crate::store::{self, Stored};

/// Most letters that one registration has worked on again, the newest first. Those before them stay as they
/// are, and may be sent again.
pub const MAX_REOPENED: usize = 1_000;
/// Most names that one letter waits under for one table.
const MAX_HANDLES: usize = 8;
/// Letters that are read at a time; each may have 256 KiB, and a transaction takes 4 MB.
const PAGE: usize = 12;

/// A letter that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    receipt: String,
}

/// What a table is called, as far as letters wait under it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Handle(String);

impl Handle {
    /// The text that the items' key is made of.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn location(location: &Location) -> Self {
        Self(format!("L {location}"))
    }

    /// Writers spell catalogs, and capitals, in more than one way.
    fn table(database: &str, table: &str) -> Self {
        Self(format!("T {}\u{1f}{}", database.to_lowercase(), table.to_lowercase()))
    }
}

/// What an asset of this key at this location would be found by.
pub(crate) fn of_asset(key: &AssetKey, location: &Location) -> Vec<Handle> {
    vec![Handle::location(location), Handle::table(key.database(), key.table())]
}

/// What a table of this name waits under.
pub(crate) fn of_name(name: &CatalogName) -> Vec<Handle> {
    let [.., database, table] = name.path.as_slice() else { return Vec::new() };
    vec![Handle::table(database, table)]
}

fn of_named(named: &Named) -> BTreeSet<Handle> {
    let of_key = |key: &AssetKey| Handle::table(key.database(), key.table());
    match named {
        Named::Key(key) => BTreeSet::from([of_key(key)]),
        Named::Location(location) => BTreeSet::from([Handle::location(location)]),
        Named::Table(table) => {
            let TableRef { key, location, names, .. } = &**table;
            let told = key.iter().map(of_key).chain(location.iter().map(Handle::location));
            told.chain(names.iter().flat_map(of_name)).take(MAX_HANDLES).collect()
        }
    }
}

/// Keeps that a letter waits for a table. One write, two where it is kept already.
pub(super) async fn keep(ports: &Ports, letter: &Letter, table: &Named) -> Result<(), EngineError> {
    let mut actions = Vec::new();
    for handle in of_named(table) {
        let key = layout::waiting(&handle, letter.received_at, &letter.receipt);
        let mut draft = store::draft(key, &Waiting { receipt: letter.receipt.clone() })?;
        draft.expires_at = Some(letter.received_at + KEPT);
        actions.push(Write::Create(draft));
    }
    while !actions.is_empty() {
        let Written::Lost(lost) = store::write(&*ports.items, &*ports.random, &actions).await? else { break };
        let known: BTreeSet<usize> = lost.iter().map(|lost| lost.action).collect();
        actions = actions.into_iter().enumerate().filter(|(at, _)| !known.contains(at)).map(|(_, it)| it).collect();
    }
    Ok(())
}

/// Has the letters that wait under these names worked on again, the newest first. Returns how many there are.
///
/// Calls grow with the letters that wait, and not beyond [`MAX_REOPENED`]. A message that cannot be sent is
/// no failure: a letter that is open again has a timer.
pub(crate) async fn reopen(ports: &Ports, handles: &[Handle], trace: &TraceId) -> Result<usize, EngineError> {
    let mut opened: Vec<String> = Vec::new();
    for handle in handles {
        let range = layout::waiting_letters(handle);
        let mut after: Option<String> = None;
        while opened.len() < MAX_REOPENED {
            let most = PAGE.min(MAX_REOPENED - opened.len());
            let page = ports.items.query(&range, Some(most), after.as_deref()).await?;
            opened.extend(open(ports, &page.found).await?);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    for receipts in opened.chunks(PER_MESSAGE) {
        let message = Message::Letters { receipts: receipts.to_vec(), trace: trace.clone() };
        if let Err(error) = ports.queue.send(&message).await {
            tracing::warn!(%error, letters = receipts.len(), "letters are open again and wait for their timer");
        }
    }
    Ok(opened.len())
}

/// Opens the letters of a page again, and takes them off the list. Returns those that are to be worked on.
async fn open(ports: &Ports, waiting: &[Item]) -> Result<Vec<String>, EngineError> {
    let mut receipts = Vec::with_capacity(waiting.len());
    for item in waiting {
        receipts.push(store::decode::<Waiting>(item)?.value.receipt);
    }
    let keys: Vec<Key> = receipts.iter().map(|receipt| layout::letter(receipt)).collect();
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let letters = ports.items.get(&keys).await?;
    let (mut actions, mut opened) = (Vec::new(), Vec::new());
    for (item, (receipt, key)) in waiting.iter().zip(receipts.into_iter().zip(&keys)) {
        let Some(letter) = store::pick(&letters, key).map(store::decode::<Letter>).transpose()? else { continue };
        // One that is being worked on looks for the table once more by itself.
        let Stored { rev, value: Letter { progress: Progress::Settled { became, .. }, .. } } = &letter else {
            continue;
        };
        let due_at = ports.clock.now() + FIRST_RESEND;
        let progress = Progress::Stored { sends: 1, due_at, before: became.clone() };
        let again = Letter { progress, ..letter.value.clone() };
        actions.push(Write::Replace(again.draft()?, *rev));
        actions.push(Write::Remove(item.key.clone(), item.rev));
        opened.push(receipt);
    }
    if actions.is_empty() || store::write(&*ports.items, &*ports.random, &actions).await? == Written::Done {
        return Ok(opened);
    }
    // Somebody else has opened one of them: one by one.
    let mut alone = Vec::new();
    for (pair, receipt) in actions.chunks(2).zip(opened) {
        if store::write(&*ports.items, &*ports.random, pair).await? == Written::Done {
            alone.push(receipt);
        }
    }
    Ok(alone)
}
