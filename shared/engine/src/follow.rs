//! Follow started workflow instances to their end.
//!
//! The sweep hands out the triggers whose instance is to be asked about, and puts off the next
//! question in the same write; so a question that is lost, or comes to a scheduler that is away, is
//! asked again later and not more often. An answer is written only where it says something new.

use jiff::Timestamp;
use lakebell_domain::ids::{InstanceId, TriggerKey};
use lakebell_domain::notice::Notice;
use lakebell_domain::trigger::{FollowedState, Sighting, Trigger};

use crate::EngineError;
use crate::dispatch::Dispatcher;
use crate::evaluate::trigger_draft;
use crate::layout;
use crate::ports::items::{Item, Write, Written};
use crate::ports::scheduler::{CheckOutcome, InstanceReport, InstanceState, Refusal};
use crate::store::{self, Stored};

/// Most triggers of one message: each takes a call to the scheduler or two.
pub const FOLLOWED_AT_ONCE: usize = 10;

/// What a question about a started instance came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Nothing new, or nobody asks any more.
    Nothing,
    /// Something new, which is recorded.
    News {
        /// The trigger as it stands.
        trigger: Box<Trigger>,
        /// Whether its instance has ended now.
        has_ended: bool,
        /// Instances that are new among those that carry its key beyond the first.
        extras: Vec<InstanceId>,
    },
    /// The scheduler could not be asked; it will be again.
    Unavailable {
        /// The trigger.
        trigger: Box<Trigger>,
        /// What it said.
        refusal: Refusal,
    },
}

impl From<InstanceState> for FollowedState {
    fn from(state: InstanceState) -> Self {
        match state {
            InstanceState::Running => Self::Running,
            InstanceState::Suspended => Self::Suspended,
            InstanceState::Success => Self::Success,
            InstanceState::Failure => Self::Failure,
            InstanceState::Stopped => Self::Stopped,
        }
    }
}

impl Dispatcher {
    /// Asks the scheduler about the instances of these triggers, as far as the time goes. `until` is
    /// when no further question may begin; triggers that it leaves out are asked about later.
    ///
    /// Errors: those of the store, after which the message may come again.
    pub async fn follow_instances(&self, keys: &[TriggerKey], until: Timestamp) -> Result<Vec<Told>, EngineError> {
        let keys: Vec<_> = keys.iter().take(FOLLOWED_AT_ONCE).map(layout::trigger).collect();
        let mut told = Vec::new();
        for item in self.ports.items.get(&keys).await? {
            if self.ports.clock.now() >= until {
                break;
            }
            told.push(self.follow_one(&item).await?);
        }
        Ok(told)
    }

    async fn follow_one(&self, item: &Item) -> Result<Told, EngineError> {
        let stored: Stored<Trigger> = store::decode(item)?;
        let known = stored.value;
        if known.followed().is_none_or(|followed| followed.state.is_end()) {
            return Ok(Told::Nothing);
        }
        let asked = self.ask_about(&known).await;
        let next = match asked {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(Told::Nothing),
            Err(refusal) => return Ok(Told::Unavailable { trigger: Box::new(known), refusal }),
        };
        let action = Write::Replace(trigger_draft(&next)?, stored.rev);
        if store::write(&*self.ports.items, &*self.ports.random, &[action]).await? != Written::Done {
            // Somebody else was told as well; what is new will be told again.
            return Ok(Told::Nothing);
        }
        let extras: Vec<InstanceId> =
            next.extra_instances.iter().filter(|extra| !known.extra_instances.contains(extra)).copied().collect();
        let ended = next.followed().filter(|followed| followed.state.is_end());
        if let Some(followed) = ended {
            let followed = followed.clone();
            self.ports.notices.tell(Notice::WorkflowEnded { trigger: (&next).into(), followed });
        }
        if !extras.is_empty() {
            let extras = extras.clone();
            self.ports.notices.tell(Notice::ExtraInstance { trigger: (&next).into(), extras });
        }
        Ok(Told::News { extras, has_ended: ended.is_some(), trigger: Box::new(next) })
    }

    /// The trigger with what the scheduler says about its instance; `None` where that is nothing new.
    async fn ask_about(&self, trigger: &Trigger) -> Result<Option<Trigger>, Refusal> {
        let now = self.ports.clock.now();
        let mut known = None;
        // Before 3.3 a start does not tell its instance: it is found as the duplicate check finds it.
        let instance = match trigger.instance {
            Some(instance) => instance,
            None => match self.round(trigger).await {
                CheckOutcome::Found { instances } => {
                    known = trigger.found(&instances);
                    match instances.first() {
                        Some(first) => *first,
                        None => return Ok(None),
                    }
                }
                CheckOutcome::CleanRound => return Ok(trigger.sighted(&Sighting::Absent, now)),
                // The scheduler's version or state does not let it tell.
                CheckOutcome::Undecided { .. } => return Ok(None),
                CheckOutcome::Unavailable(refusal) => return Err(refusal),
            },
        };
        let report = self.scheduler.instance(&trigger.connection, trigger.target.project, instance).await?;
        let sighting = report.map_or(Sighting::Absent, |report| {
            let InstanceReport { state, started_at, ended_at, runs, .. } = report;
            Sighting::Seen { state: state.into(), started_at, ended_at, runs }
        });
        let sighted = known.as_ref().unwrap_or(trigger).sighted(&sighting, now);
        Ok(sighted.or(known))
    }
}
