//! What became of the workflow instance that a trigger started.
//!
//! SUCCESS means started. How the workflow itself ended is recorded beside that, and neither keeps
//! the target's slot nor is waited for. The scheduler is asked with pauses that grow with the
//! instance's age, for a bounded time: instances that stay RUNNING for ever are a known fault of
//! DolphinScheduler.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Status, Trigger};
use crate::ids::InstanceId;

/// How long after a start the scheduler is asked first, and the shortest pause between two questions.
const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// The longest pause between two questions.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(1);
/// For how long an instance is followed.
pub const FOLLOWED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How long after a start an instance that is not there may still come: until a master has handled
/// its command there may be none.
const MAY_STILL_COME: SignedDuration = SignedDuration::from_mins(10);
/// Most further instances that are kept of one trigger.
const MOST_EXTRAS: usize = 20;

/// Where a followed instance stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum FollowedState {
    /// The scheduler has not shown it yet.
    Unseen,
    /// It has not ended.
    Running,
    /// It is paused, and can be resumed.
    Suspended,
    /// It ended well.
    Success,
    /// It ended with a failure.
    Failure,
    /// It was stopped.
    Stopped,
    /// It was there and is not any more, or never came.
    Gone,
    /// It was followed for as long as any is, and had not ended.
    Lost,
}

impl FollowedState {
    /// Whether it is not asked about any more.
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Success | Self::Failure | Self::Stopped | Self::Gone | Self::Lost)
    }

    /// The word for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unseen => "unseen",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Stopped => "stopped",
            Self::Gone => "gone",
            Self::Lost => "lost",
        }
    }
}

/// What is known of a started workflow instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Followed {
    /// Where it stands, as the scheduler said last.
    pub state: FollowedState,
    /// When its trigger became SUCCESS.
    pub since: Timestamp,
    /// When the scheduler last said something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
    /// When it began, by the scheduler's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended, by the scheduler's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How often it ran when it was seen last. A rerun after the end keeps the id and is not followed.
    #[serde(default)]
    pub runs: u32,
    /// When the scheduler is asked next; absent once it is not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

/// What the scheduler says about a started instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// It is there.
    Seen {
        /// Where it stands.
        state: FollowedState,
        /// When it began.
        started_at: Option<Timestamp>,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// How often it ran.
        runs: u32,
    },
    /// There is no such instance.
    Absent,
}

impl Followed {
    /// Not asked about yet.
    pub(super) fn from(since: Timestamp) -> Self {
        Self {
            state: FollowedState::Unseen,
            since,
            told_at: None,
            started_at: None,
            ended_at: None,
            runs: 0,
            due_at: Some(since + SHORTEST_PAUSE),
        }
    }

    /// A quarter of its age, so that an end is known late by a quarter of what it took.
    fn pause(&self, now: Timestamp) -> SignedDuration {
        (now.duration_since(self.since) / 4).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }

    fn ended(&mut self, state: FollowedState, now: Timestamp) {
        self.state = state;
        self.told_at = Some(now);
        self.due_at = None;
    }
}

impl Trigger {
    /// What is known of the workflow that it started; `None` where it has not, or was started by a
    /// version that followed none.
    pub const fn followed(&self) -> Option<&Followed> {
        self.followed.as_ref()
    }

    /// When something is to be done about it next: a step of its own, or a question about its instance.
    pub fn timer(&self) -> Option<Timestamp> {
        self.due_at.or_else(|| self.followed.as_ref()?.due_at)
    }

    /// The trigger while a question about its instance is on its way: the next one is due later. One
    /// that was followed long enough is not asked about any more. `None` where no question is due.
    pub fn asked(&self, now: Timestamp) -> Option<Self> {
        let mut next = self.clone();
        let followed = next.followed.as_mut()?;
        if !matches!(self.status, Status::Success { .. }) || followed.due_at? > now {
            return None;
        }
        if now.duration_since(followed.since) >= FOLLOWED_FOR {
            followed.ended(FollowedState::Lost, now);
        } else {
            followed.due_at = Some(now + followed.pause(now));
        }
        Some(next)
    }

    /// The trigger after the scheduler said which instances carry its key, lowest first. `None` where
    /// that is nothing new.
    pub fn found(&self, instances: &[InstanceId]) -> Option<Self> {
        let mut next = self.clone();
        next.instance = next.instance.or_else(|| instances.first().copied());
        for extra in instances.iter().filter(|found| Some(**found) != next.instance) {
            if !next.extra_instances.contains(extra) && next.extra_instances.len() < MOST_EXTRAS {
                next.extra_instances.push(*extra);
            }
        }
        (next != *self).then_some(next)
    }

    /// The trigger after the scheduler said where its instance stands. `None` where that is nothing
    /// new, or nobody asks any more.
    pub fn sighted(&self, sighting: &Sighting, now: Timestamp) -> Option<Self> {
        let mut next = self.clone();
        let followed = next.followed.as_mut().filter(|followed| !followed.state.is_end())?;
        match *sighting {
            Sighting::Seen { state, started_at, ended_at, runs } => {
                let said = (state, started_at, ended_at, runs);
                if said == (followed.state, followed.started_at, followed.ended_at, followed.runs) {
                    return None;
                }
                (followed.state, followed.started_at, followed.ended_at, followed.runs) = said;
                followed.told_at = Some(now);
                if state.is_end() {
                    followed.due_at = None;
                }
            }
            Sighting::Absent => {
                let is_awaited = followed.state == FollowedState::Unseen;
                if is_awaited && now.duration_since(followed.since) < MAY_STILL_COME {
                    return None;
                }
                followed.ended(FollowedState::Gone, now);
            }
        }
        Some(next)
    }
}
