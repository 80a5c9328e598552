//! One call for each key that a caller gives, however often it is sent.
//!
//! A record stands for the call from before it begins. While it runs, the same call again is told
//! so; once it has ended, its answer is given again. A function that dies leaves a record whose
//! lease ends, and the next same call takes it over: what routes do may be repeated, the record
//! spares the repetition. A call that fails leaves none, so that the key may be used again.

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::digest::{hex, of_texts};
use serde::{Deserialize, Serialize};

use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Key, Write, Written};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind};

/// How long an answer is kept.
pub const KEPT: SignedDuration = SignedDuration::from_hours(24);
/// How long a call may run until another one takes it over: longer than a function may.
pub const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// The largest answer that is kept, in bytes: an item holds 400 KB, and the answer is escaped in it.
pub const MAX_KEPT_BYTES: usize = 150 * 1024;

/// A call that may be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whose keys they are: two callers may use the same one.
    pub caller: String,
    /// The key.
    pub key: String,
    /// The digest of everything that makes it this call: method, path, query, body.
    pub digest: String,
}

/// An answer as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The HTTP status.
    pub status: u16,
    /// The body; `None` where it was too large or must not be kept.
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    digest: String,
    /// The end of the lease, or of the time for which the answer is kept.
    until: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Kept>,
}

/// What is known of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It is the first, and runs under this claim.
    Claimed(Claim),
    /// It has ended with this.
    Ended(Kept),
    /// It is running.
    Running,
    /// Its key was used for another call.
    Other,
}

/// The right to run a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    request: Request,
    rev: u64,
}

/// Begins a call: one read and one write.
pub async fn begin(ports: &Ports, request: Request) -> Result<Begun, EngineError> {
    let key = request.item();
    for _ in 0..MAX_LOST_RACES {
        let now = ports.clock.now();
        let known: Option<Stored<Record>> = store::get(&*ports.items, key.clone()).await?;
        // The store forgets in its own time.
        let known_rev = match known {
            Some(Stored { value, .. }) if now < value.until => {
                return Ok(match value.answer {
                    _ if value.digest != request.digest => Begun::Other,
                    Some(answer) => Begun::Ended(answer),
                    None => Begun::Running,
                });
            }
            other => other.map(|stored| stored.rev),
        };
        let record = Record { digest: request.digest.clone(), until: now + LEASE, answer: None };
        let mut draft = store::draft(key.clone(), &record)?;
        draft.expires_at = Some(now + KEPT);
        if store::write(&*ports.items, &*ports.random, &[Write::put(draft, known_rev)]).await? == Written::Done {
            return Ok(Begun::Claimed(Claim { request, rev: known_rev.unwrap_or(0) + 1 }));
        }
    }
    Err(store::lost_too_often("begin a call"))
}

/// Keeps the answer of a call that has succeeded. One that is too large is kept as its status alone.
pub async fn end(ports: &Ports, claim: &Claim, mut answer: Kept) -> Result<(), EngineError> {
    answer.body = answer.body.filter(|body| body.len() <= MAX_KEPT_BYTES);
    let until = ports.clock.now() + KEPT;
    let record = Record { digest: claim.request.digest.clone(), until, answer: Some(answer) };
    let mut draft = store::draft(claim.request.item(), &record)?;
    draft.expires_at = Some(until);
    write(ports, Write::Replace(draft, claim.rev)).await
}

/// Forgets a call that has failed: its key may be used again.
pub async fn forget(ports: &Ports, claim: &Claim) -> Result<(), EngineError> {
    write(ports, Write::Remove(claim.request.item(), claim.rev)).await
}

async fn write(ports: &Ports, action: Write) -> Result<(), EngineError> {
    match store::write(&*ports.items, &*ports.random, &[action]).await? {
        Written::Done => Ok(()),
        // Its lease had ended, and somebody else runs it.
        Written::Lost(_) => Err(EngineError::new(ErrorKind::Conflict, "the call was taken over")),
    }
}

impl Request {
    /// Where its record lies.
    fn item(&self) -> Key {
        layout::idempotency(&digest(&[&self.caller, &self.key]))
    }
}

/// A digest of texts, each ended so that no two lists of them are alike: 64 hex digits.
pub fn digest(parts: &[&str]) -> String {
    hex(&of_texts(parts))
}
