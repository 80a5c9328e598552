//! Store letters, and have them worked on.

use lakebell_domain::ids::TraceId;

use super::{Letter, MAX_LETTER, PER_MESSAGE};
use crate::ports::Ports;
use crate::ports::items::{Write, Written};
use crate::ports::queue::Message;
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind, layout};

/// Letters written in one transaction.
const TOGETHER: usize = 50;
/// Bytes of one transaction: it takes 4 MB.
const BYTES_TOGETHER: usize = 2 * 1024 * 1024;

/// What became of letters that were to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// It is stored; `is_new` unless it had been before.
    Stored {
        /// Its receipt.
        receipt: String,
        /// Whether this call stored it.
        is_new: bool,
    },
    /// It is too large for an item.
    TooLarge {
        /// Its size in bytes.
        bytes: usize,
    },
    /// It could not be stored for now.
    NotNow,
}

/// Stores letters and sends them on. What each of them leads to is kept with it later.
///
/// One call for up to 50 letters and one for 20 of them to be sent, one more where some are known.
/// A message that cannot be sent is no failure: the letter has a timer.
pub async fn accept(ports: &Ports, letters: Vec<Letter>, trace: &TraceId) -> Vec<Accepted> {
    let mut accepted: Vec<Accepted> = Vec::with_capacity(letters.len());
    let mut to_send: Vec<String> = Vec::new();
    let mut chunk: Vec<(usize, Letter)> = Vec::new();
    let mut bytes = 0;
    for (at, letter) in letters.into_iter().enumerate() {
        let size = store::encode(&letter).map_or(usize::MAX, |text| text.len());
        if size > MAX_LETTER {
            accepted.push(Accepted::TooLarge { bytes: size });
            continue;
        }
        if chunk.len() >= TOGETHER || bytes + size > BYTES_TOGETHER {
            put(ports, std::mem::take(&mut chunk), &mut accepted, &mut to_send).await;
            bytes = 0;
        }
        bytes += size;
        accepted.push(Accepted::NotNow);
        // Two of one batch that are one event are stored once.
        match chunk.iter().find(|(_, other)| other.receipt == letter.receipt) {
            Some(_) => accepted[at] = Accepted::Stored { receipt: letter.receipt, is_new: false },
            None => chunk.push((at, letter)),
        }
    }
    put(ports, chunk, &mut accepted, &mut to_send).await;
    for receipts in to_send.chunks(PER_MESSAGE) {
        let message = Message::Letters { receipts: receipts.to_vec(), trace: trace.clone() };
        if let Err(error) = ports.queue.send(&message).await {
            tracing::warn!(%error, letters = receipts.len(), "letters are stored and wait for their timer");
        }
    }
    accepted
}

async fn put(ports: &Ports, chunk: Vec<(usize, Letter)>, accepted: &mut [Accepted], to_send: &mut Vec<String>) {
    match try_put(ports, &chunk).await {
        Ok(stored) => {
            for ((at, letter), (is_new, is_to_send)) in chunk.into_iter().zip(stored) {
                if is_to_send {
                    to_send.push(letter.receipt.clone());
                }
                accepted[at] = Accepted::Stored { receipt: letter.receipt, is_new };
            }
        }
        Err(error) => tracing::error!(%error, letters = chunk.len(), "letters could not be stored"),
    }
}

/// For each letter whether it is new, and whether it is to be sent.
async fn try_put(ports: &Ports, chunk: &[(usize, Letter)]) -> Result<Vec<(bool, bool)>, EngineError> {
    if chunk.is_empty() {
        return Ok(Vec::new());
    }
    let mut known: Vec<Option<Stored<Letter>>> = chunk.iter().map(|_| None).collect();
    for _ in 0..MAX_LOST_RACES {
        let mut actions = Vec::new();
        let mut places = Vec::new();
        for (place, ((_, letter), known)) in chunk.iter().zip(&known).enumerate() {
            match known {
                None => actions.push(Write::Create(letter.draft()?)),
                Some(there) if there.value.may_be_tried_again() => {
                    actions.push(Write::Replace(letter.draft()?, there.rev));
                }
                Some(_) => continue,
            }
            places.push(place);
        }
        let written = if actions.is_empty() {
            Written::Done
        } else {
            store::write(&*ports.items, &*ports.random, &actions).await?
        };
        let lost = match written {
            Written::Done => {
                let is_sent = |letter: &Letter| letter.is_stored();
                let states = chunk.iter().zip(&known).map(|((_, letter), known)| match known {
                    None => (true, is_sent(letter)),
                    Some(there) if there.value.may_be_tried_again() => (true, is_sent(letter)),
                    // Its first message may have been lost.
                    Some(there) => (false, there.value.is_stored()),
                });
                return Ok(states.collect());
            }
            Written::Lost(lost) => lost,
        };
        for lost in lost {
            let Some(place) = places.get(lost.action) else { continue };
            known[*place] = match &lost.existing {
                Some(item) => Some(store::decode(item)?),
                None => None,
            };
        }
    }
    Err(EngineError::new(ErrorKind::Contention, "letters: somebody else wrote first too often")
        .with("pk", layout::letter(&chunk[0].1.receipt).pk))
}
