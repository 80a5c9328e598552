//! What writers send is kept first and looked at later.
//!
//! An answer to a writer says that its event is stored, which takes two calls whatever the event leads to. A
//! message then has it worked on, and what became of it is kept with it, under its receipt. A letter that
//! was stored and whose message was lost has a timer, by which the compensator sends it again.

mod accept;
pub(crate) mod identity;
mod reports;
mod run;
pub(crate) mod waiting;
mod witness;
mod work;

pub use accept::{Accepted, accept};
pub use identity::{Alias, Aliases, MAX_ALIASES, aliases, confirm};
pub use waiting::MAX_REOPENED;
pub use work::{Worked, send_again, work};

use crate::history;
use jiff::{SignedDuration, Timestamp};
use lakebell_decoders::{Entry, digest};
use lakebell_domain::event::EventKind;
use lakebell_domain::ids::{ProjectCode, TraceId};
use serde::{Deserialize, Serialize};

use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::Draft;
use crate::push::Pushed;
use crate::store::{self, Stored};

/// How long a letter is kept: a week longer than the longest redelivery of a queue.
pub const KEPT: SignedDuration = SignedDuration::from_hours(21 * 24);
/// When a letter that nobody has worked on is sent again, the first time.
pub const FIRST_RESEND: SignedDuration = SignedDuration::from_mins(1);
/// Letters named by one message.
pub const PER_MESSAGE: usize = 20;
/// Largest letter, in bytes of JSON: it stands in one item.
pub const MAX_LETTER: usize = 256 * 1024;
/// Longest part of a body that is kept of what could not be read, in bytes.
pub const MAX_KEPT_BODY: usize = 4 * 1024;

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Content {
    /// An event of Lakebell's own kinds.
    Event(Box<Pushed>),
    /// What a decoder made of another form.
    Entry(Box<Entry>),
    /// It was answered as if it were taken, and nothing follows from it: a stale token, a body that is not
    /// understood.
    Quarantined {
        /// Why.
        reason: String,
        /// The beginning of the body, without what it says in confidence.
        body: String,
    },
}

/// What became of one thing that a letter says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Became {
    /// What it says; absent where it is no event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<EventKind>,
    /// The table or job that it is about, as the writer names it or by its key.
    pub about: String,
    /// `advanced`, `maintenance`, `duplicate`, `superseded`, `ignored`, `unknown`, `refused`, `lineage` or
    /// `skipped`.
    pub outcome: String,
    /// Why, where there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a letter came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "state")]
pub enum Progress {
    /// It is stored, and to be worked on.
    Stored {
        /// How often it was sent.
        sends: u32,
        /// When it is sent again.
        due_at: Timestamp,
        /// What became of it before, where it is worked on again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        before: Vec<Became>,
    },
    /// It was worked on.
    Settled {
        /// When.
        at: Timestamp,
        /// What became of each thing that it says.
        became: Vec<Became>,
    },
}

/// One event as it was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Under which it is kept and shown: a digest of project, source and id.
    pub receipt: String,
    /// Who sent it, by its own word.
    pub source: String,
    /// Its identity for its source.
    pub id: String,
    /// Whose token it came with; absent for the deployment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectCode>,
    /// When it came.
    pub received_at: Timestamp,
    /// From here to the started workflow.
    pub trace: TraceId,
    /// What it says.
    pub content: Content,
    /// How far it came.
    #[serde(flatten)]
    pub progress: Progress,
}

/// The receipt of an event: the same for the same event again.
pub fn receipt_of(project: Option<ProjectCode>, source: &str, id: &str) -> String {
    let project = project.map(|project| project.to_string()).unwrap_or_default();
    digest(&[&project, source, id])
}

impl Letter {
    /// A letter that was just received.
    pub fn new(
        ports: &Ports,
        project: Option<ProjectCode>,
        (source, id): (String, String),
        content: Content,
        trace: &TraceId,
    ) -> Self {
        let now = ports.clock.now();
        let progress = match content {
            Content::Quarantined { .. } => Progress::Settled { at: now, became: Vec::new() },
            _ => Progress::Stored { sends: 1, due_at: now + FIRST_RESEND, before: Vec::new() },
        };
        let receipt = receipt_of(project, &source, &id);
        Self { receipt, source, id, project, received_at: now, trace: trace.clone(), content, progress }
    }

    /// Whether it is still to be worked on.
    pub const fn is_stored(&self) -> bool {
        matches!(self.progress, Progress::Stored { .. })
    }

    /// Whether it was worked on before, and is again because a table of it was registered.
    fn is_again(&self) -> bool {
        matches!(&self.progress, Progress::Stored { before, .. } if !before.is_empty())
    }

    /// Whether the same event again may have another outcome: what stood against it may have gone.
    fn may_be_tried_again(&self) -> bool {
        match &self.progress {
            Progress::Stored { .. } => false,
            Progress::Settled { became, .. } => {
                !matches!(self.content, Content::Quarantined { .. })
                    && became.iter().any(|became| matches!(became.outcome.as_str(), "ignored" | "unknown" | "refused"))
            }
        }
    }

    fn draft(&self) -> Result<Draft, EngineError> {
        let mut draft = store::draft(layout::letter(&self.receipt), self)?;
        draft.expires_at = Some(self.received_at + KEPT);
        match (&self.progress, &self.content) {
            (Progress::Stored { due_at, .. }, _) => draft.sweep = Some(layout::letter_timer(&self.receipt, *due_at)),
            (_, Content::Quarantined { .. }) => {
                draft.history = Some(layout::quarantine(self.project, self.received_at, &self.receipt));
            }
            _ => {}
        }
        Ok(draft)
    }
}

/// A letter by its receipt.
pub async fn find(ports: &Ports, receipt: &str) -> Result<Option<Stored<Letter>>, EngineError> {
    store::get(&*ports.items, layout::letter(receipt)).await
}

/// The newest letters of a project (or of the deployment) that were quarantined.
pub async fn quarantined(
    ports: &Ports,
    project: Option<ProjectCode>,
    limit: usize,
    after: Option<&str>,
) -> Result<crate::ports::items::Page<Letter>, EngineError> {
    history::page(ports, &layout::quarantine_partition(project), limit, after).await
}
