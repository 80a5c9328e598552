//! Look whether a deployment is well, and say what to do where it is not.
//!
//! Only the dispatcher knows the scheduler: it looks at a connection when a message asks it to, and keeps
//! what it saw beside the connection. Everything else is read from what is recorded.

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::{ConnectionName, TraceId};
use lakebell_domain::notice::Notice;
use lakebell_domain::trigger::{Status, Trigger};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::compensate::LATE;
use crate::dead_letters;
use crate::dispatch::Dispatcher;
use crate::layout::{self, SHARDS};
use crate::ports::Ports;
use crate::ports::dead_letters::DeadLetters;
use crate::ports::items::{Index, Key, Write};
use crate::ports::queue::Message;
use crate::ports::scheduler::TokenExpiry;
use crate::records::{AssetHead, RegisteredAsset};
use crate::settings;
use crate::store::{self, Stored};

/// The version of the code that this was built from.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How old a look at a connection may be to be shown without another one.
const FRESH: SignedDuration = SignedDuration::from_secs(60);
/// How often a connection is looked at without being asked.
const LOOK_EVERY: SignedDuration = SignedDuration::from_hours(12);
/// Most tables whose state is read for one report.
const MOST_ASSETS: usize = 1_000;
/// Items read in one go.
const BATCH: usize = 100;
/// Late timers that are read of each shard.
const TIMERS_PER_SHARD: usize = 10;

/// What the dispatcher saw of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionLook {
    /// When.
    pub at: Timestamp,
    /// The dispatcher's version.
    pub version: String,
    /// What it saw.
    #[serde(flatten)]
    pub saw: Saw,
}

/// What a look at a connection saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "saw")]
pub enum Saw {
    /// It answers, and its token works until then.
    Token {
        /// The end, by the scheduler's clock.
        expires_at: Timestamp,
    },
    /// It answers, and does not say when its token ends.
    NoEnd {
        /// Why not.
        detail: String,
    },
    /// It cannot be used.
    Refused {
        /// The code.
        code: String,
        /// What it said.
        detail: String,
    },
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// It works, and somebody should see to it.
    Warning,
    /// It does not work.
    Bad,
    /// It was asked for, and is not known yet: ask again in a moment.
    Pending,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What was looked at: `connection`, `versions`, `reading`, `notifications`, `timers`, `deadLetters`.
    pub check: String,
    /// Which one, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// How it came out.
    pub status: CheckStatus,
    /// What was seen.
    pub detail: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<String>,
}

impl Check {
    fn new(check: &str, status: CheckStatus, detail: impl Into<String>) -> Self {
        Self { check: check.to_owned(), subject: None, status, detail: detail.into(), todo: None }
    }

    fn of(mut self, subject: &impl ToString) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }
}

/// How a deployment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Examination {
    /// The version of the function that answers.
    pub version: String,
    /// What was looked at.
    pub checks: Vec<Check>,
}

impl Dispatcher {
    /// Looks at a connection and keeps what it sees; the end of its token is told while it is near.
    ///
    /// Errors: those of the store, after which the message may come again.
    pub async fn look_at(&self, connection: &ConnectionName) -> Result<ConnectionLook, EngineError> {
        let now = self.ports.clock.now();
        let expiry = self.scheduler.token_expiry(connection).await;
        if let TokenExpiry::At(expires_at) = &expiry
            && expiry.is_near(now)
        {
            let (connection, expires_at) = (connection.clone(), *expires_at);
            self.ports.notices.tell(Notice::TokenExpiring { connection, expires_at });
        }
        let saw = match expiry {
            TokenExpiry::At(expires_at) => Saw::Token { expires_at },
            TokenExpiry::Unknown { detail } => Saw::NoEnd { detail },
            TokenExpiry::Unavailable(refusal) => Saw::Refused { code: refusal.code, detail: refusal.detail },
        };
        let look = ConnectionLook { at: now, version: VERSION.to_owned(), saw };
        let key = layout::connection_look(connection);
        let known: Option<Stored<ConnectionLook>> = store::get(&*self.ports.items, key.clone()).await?;
        let draft = store::draft(key, &look)?;
        let action = Write::put(draft, known.map(|known| known.rev));
        // Whoever wrote first has looked at the same time.
        store::write(&*self.ports.items, &*self.ports.random, &[action]).await?;
        Ok(look)
    }
}

impl ConnectionLook {
    /// Whether the token's end is near, or past.
    pub fn is_expiring(&self, now: Timestamp) -> bool {
        matches!(self.saw, Saw::Token { expires_at } if TokenExpiry::At(expires_at).is_near(now))
    }

    fn check(&self, connection: &ConnectionName, now: Timestamp) -> Check {
        let secret = "put a new token into the connection's secret; it is read within 300 seconds";
        let check = match &self.saw {
            Saw::Token { expires_at } if *expires_at <= now => {
                Check::new("connection", CheckStatus::Bad, format!("its token ended at {expires_at}")).todo(secret)
            }
            Saw::Token { expires_at } if self.is_expiring(now) => {
                Check::new("connection", CheckStatus::Warning, format!("its token ends at {expires_at}")).todo(secret)
            }
            Saw::Token { expires_at } => {
                Check::new("connection", CheckStatus::Ok, format!("it answers; its token ends at {expires_at}"))
            }
            Saw::NoEnd { detail } => {
                let detail = format!("it answers; when its token ends is not known: {detail}");
                Check::new("connection", CheckStatus::Ok, detail)
            }
            Saw::Refused { code, detail } => {
                let todo = match code.as_str() {
                    "HTTP_401" => secret,
                    "TRANSPORT_ERROR" | "CIRCUIT_OPEN" => {
                        "look whether the URL is right and the dispatcher's subnets and security groups lead there"
                    }
                    _ => "look at the connection's URL and version, and at what its secret holds",
                };
                Check::new("connection", CheckStatus::Bad, format!("{code}: {detail}")).todo(todo)
            }
        };
        check.of(&connection)
    }
}

/// Asks for a look at each connection that was not looked at for half a day.
///
/// Errors: those of the store and the queue.
pub async fn look_when_due(ports: &Ports, trace: &TraceId) -> Result<usize, EngineError> {
    let mut asked = 0;
    for (connection, look) in looks(ports).await? {
        if look.is_none_or(|look| ports.clock.now().duration_since(look.at) >= LOOK_EVERY) {
            ports.queue.send(&Message::LookAt { connection, trace: trace.clone() }).await?;
            asked += 1;
        }
    }
    Ok(asked)
}

async fn looks(ports: &Ports) -> Result<Vec<(ConnectionName, Option<ConnectionLook>)>, EngineError> {
    let names: Vec<ConnectionName> =
        settings::connections(ports).await?.into_iter().map(|connection| connection.name).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<Key> = names.iter().map(layout::connection_look).collect();
    let items = ports.items.get(&keys).await?;
    let mut looks = Vec::with_capacity(names.len());
    for (name, key) in names.into_iter().zip(&keys) {
        let look = store::pick(&items, key).map(store::decode::<ConnectionLook>).transpose()?;
        looks.push((name, look.map(|look| look.value)));
    }
    Ok(looks)
}

/// How the deployment is. A connection that was not looked at just now is asked for, and pending.
///
/// Errors: those of the store and the queue.
pub async fn examine(ports: &Ports, letters: &dyn DeadLetters, trace: &TraceId) -> Result<Examination, EngineError> {
    let now = ports.clock.now();
    let mut checks = Vec::new();
    let mut versions = std::collections::BTreeSet::new();
    let looks = looks(ports).await?;
    if looks.is_empty() {
        let check = Check::new("connection", CheckStatus::Warning, "no connection is declared, so nothing can start");
        checks.push(check.todo("declare one: lakebell apply, or PUT /connections/{name}"));
    }
    for (connection, look) in looks {
        if let Some(look) = look.filter(|look| now.duration_since(look.at) < FRESH) {
            checks.push(look.check(&connection, now));
            versions.insert(look.version);
        } else {
            ports.queue.send(&Message::LookAt { connection: connection.clone(), trace: trace.clone() }).await?;
            let check = Check::new("connection", CheckStatus::Pending, "the dispatcher was asked to look at it");
            checks.push(check.of(&connection).todo(
                "where it does not answer, look at the dispatch queue, its dead-letter queue and the dispatcher's log",
            ));
        }
    }
    versions.remove(VERSION);
    checks.push(match versions.into_iter().next() {
        None => Check::new("versions", CheckStatus::Ok, format!("the functions that answered are {VERSION}")),
        Some(other) => {
            let detail = format!("the API is {VERSION} and the dispatcher {other}");
            Check::new("versions", CheckStatus::Bad, detail).todo("deploy all functions from one checkout")
        }
    });
    checks.extend(tables(ports).await?);
    checks.push(timers(ports, now).await?);
    checks.push(dead_letters(letters).await);
    Ok(Examination { version: VERSION.to_owned(), checks })
}

/// Whether tables can be read, and whether their buckets notify.
async fn tables(ports: &Ports) -> Result<Vec<Check>, EngineError> {
    let mut assets: Vec<RegisteredAsset> = store::registry(&ports.items, "RA").await?;
    assets.sort_by(|one, other| one.key.cmp(&other.key));
    let left_out = assets.len().saturating_sub(MOST_ASSETS);
    assets.truncate(MOST_ASSETS);
    let mut checks = Vec::new();
    let (mut readable, mut notified) = (0_usize, 0_usize);
    for chunk in assets.chunks(BATCH) {
        let keys: Vec<Key> = chunk.iter().map(|asset| layout::head(asset.id)).collect();
        for item in ports.items.get(&keys).await? {
            let head: AssetHead = store::decode(&item)?.value;
            if head.deregistered_at.is_some() {
                continue;
            }
            match &head.state.trouble {
                Some(trouble) => {
                    let detail = format!("{}: {}", head.location, trouble.detail);
                    let todo = "give the roles in the stack's outputs s3:GetObject and s3:ListBucket there (LakeBucketArns, \
                                LakeKmsKeyArns), or mend the file; then `lakebell observe` it";
                    checks.push(Check::new("reading", CheckStatus::Bad, detail).of(&head.key).todo(todo));
                }
                None => readable += 1,
            }
            match head.state.unnotified.filter(lakebell_domain::state::Unnotified::is_lasting) {
                Some(unnotified) => {
                    let detail = format!(
                        "{}: {} commits since {} were found by the clock alone",
                        head.location, unnotified.commits, unnotified.since
                    );
                    let todo = "switch on EventBridge notifications of the bucket and put its ARN into LakeBucketArns, or with \
                                the route `sqs` set the bucket's notification again";
                    checks.push(Check::new("notifications", CheckStatus::Bad, detail).of(&head.key).todo(todo));
                }
                None => notified += 1,
            }
        }
    }
    let of = |count: usize| match left_out {
        0 => format!("{count} tables"),
        more => format!("{count} tables; {more} more were not looked at"),
    };
    checks.push(Check::new("reading", CheckStatus::Ok, format!("can be read: {}", of(readable))));
    checks.push(Check::new(
        "notifications",
        CheckStatus::Ok,
        format!("nothing is known to be missed: {}", of(notified)),
    ));
    Ok(checks)
}

/// Whether there are messages that nobody tries any more.
async fn dead_letters(letters: &dyn DeadLetters) -> Check {
    let name = "deadLetters";
    let lying = match dead_letters::lying(letters).await {
        Ok(lying) => lying,
        Err(error) => {
            let todo = "deploy the template as it is: it lets the API read the dead-letter queues";
            return Check::new(name, CheckStatus::Bad, error.to_string()).todo(todo);
        }
    };
    let some: Vec<String> = lying
        .into_iter()
        .filter(|lying| lying.messages > 0)
        .map(|lying| format!("{} behind the queue {}", lying.messages, lying.queue))
        .collect();
    if some.is_empty() {
        return Check::new(name, CheckStatus::Ok, "no message was given up");
    }
    let todo = "find the error in the log of the function that reads the queue, mend its cause, then `lakebell dead-letters drain`";
    Check::new(name, CheckStatus::Bad, format!("messages that nobody tries any more: {}", some.join(", "))).todo(todo)
}

/// Whether the sweep runs: nothing with a timer may be long overdue.
async fn timers(ports: &Ports, now: Timestamp) -> Result<Check, EngineError> {
    let up_to = format!("{}#\u{10ffff}", layout::moment(now - LATE));
    let mut late = 0_usize;
    for shard in 0..SHARDS {
        let partition = layout::sweep_partition(shard);
        let due = ports.items.index(Index::Sweep, &partition, Some(&up_to), false, TIMERS_PER_SHARD, None).await?;
        if due.found.is_empty() {
            continue;
        }
        for item in ports.items.get(&due.found).await? {
            // A held trigger waits for a person, not for the clock.
            let is_held = item.key.pk.starts_with("K#")
                && matches!(store::decode::<Trigger>(&item)?.value.status(), Status::Unknown { held: true, .. });
            let is_due = item.sweep.as_ref().is_some_and(|sweep| sweep.sk <= up_to);
            late += usize::from(is_due && !is_held);
        }
    }
    if late == 0 {
        return Ok(Check::new("timers", CheckStatus::Ok, "nothing that waits for the clock is late"));
    }
    let detail = format!("at least {late} triggers or targets wait for a sweep that should have come");
    let todo = "look whether the compensator's schedules are enabled, and at its log";
    Ok(Check::new("timers", CheckStatus::Bad, detail).todo(todo))
}
