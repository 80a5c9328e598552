//! The state machine of a trigger: which arrow leads where, and nothing else.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Followed, Trigger};
use crate::ids::{InstanceId, TaskCode, TriggerKey};
use crate::sensor::{Sensor, SensorRun};

/// Where a trigger stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "step")]
pub enum Status {
    /// Claimed; a message for the dispatcher is due or on its way.
    Queued,
    /// A dispatcher works on it until then at the latest.
    Leased {
        /// End of the lease.
        until: Timestamp,
    },
    /// Not to be tried before its `due_at`.
    Waiting {
        /// Why.
        reason: WaitReason,
    },
    /// The start may or may not have taken effect.
    Unknown {
        /// Since when.
        since: Timestamp,
        /// What the start call ended with.
        code: String,
        /// What was said.
        detail: String,
        /// Rounds of the duplicate check that found nothing, and the time of the last one.
        clean_rounds: u8,
        /// When the last clean round ended.
        last_round: Option<Timestamp>,
        /// Set once a person has to decide.
        held: bool,
    },
    /// Started.
    Success {
        /// Set when nobody saw the instance and a person or policy said that it started.
        assumed: bool,
    },
    /// It will not start by itself.
    Failed {
        /// The scheduler's or Lakebell's code.
        code: String,
        /// What was said.
        detail: String,
    },
    /// It was not started, and will not be.
    Skipped {
        /// Why.
        why: String,
        /// The trigger that took over its data, where one did.
        superseded_by: Option<TriggerKey>,
    },
}

/// The status as the trigger history shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StatusWord {
    /// Queued, leased or waiting.
    Triggering,
    /// It may have started.
    Unknown,
    /// It started.
    Success,
    /// It did not start.
    Failed,
    /// It was not to start.
    Skipped,
}

impl StatusWord {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Triggering => "TRIGGERING",
            Self::Unknown => "UNKNOWN",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
            Self::Skipped => "SKIPPED",
        }
    }
}

impl Status {
    /// The status as the trigger history shows it.
    pub const fn word(&self) -> StatusWord {
        match self {
            Self::Queued | Self::Leased { .. } | Self::Waiting { .. } => StatusWord::Triggering,
            Self::Unknown { .. } => StatusWord::Unknown,
            Self::Success { .. } => StatusWord::Success,
            Self::Failed { .. } => StatusWord::Failed,
            Self::Skipped { .. } => StatusWord::Skipped,
        }
    }

    /// The step within the status, for logs.
    pub const fn step(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased { .. } => "leased",
            Self::Waiting { .. } => "waiting",
            Self::Unknown { held: false, .. } => "unknown",
            Self::Unknown { held: true, .. } => "held",
            Self::Success { .. } => "success",
            Self::Failed { .. } => "failed",
            Self::Skipped { .. } => "skipped",
        }
    }
}

/// Why a trigger waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitReason {
    /// `BACK_OFF`, `OFFLINE`, `GATE`, `CONNECTION_REFUSED`, `ABSENCE_PROVEN`.
    pub code: String,
    /// What was said.
    pub detail: String,
}

/// What a person decided about a held trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Decision {
    /// It did start.
    Started(Option<InstanceId>),
    /// It did not: try again.
    Absent,
    /// Give up.
    Failed,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(Some(instance)) => write!(f, "started as instance {instance}"),
            Self::Started(None) => f.write_str("started"),
            Self::Absent => f.write_str("absent"),
            Self::Failed => f.write_str("failed"),
        }
    }
}

/// A move along the state machine, with what it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrow {
    /// queued -> leased
    Lease {
        /// End of the lease.
        until: Timestamp,
    },
    /// waiting -> queued, once its time has come
    Wake,
    /// queued -> success: the waiting task took it
    Answer {
        /// The task that asked.
        task: TaskCode,
        /// Its run.
        run: SensorRun,
    },
    /// leased -> success
    Succeed {
        /// The instance, where the answer named one.
        instance: Option<InstanceId>,
    },
    /// leased -> waiting
    Wait {
        /// Why.
        reason: WaitReason,
        /// Until when.
        due_at: Timestamp,
        /// Whether a start was refused, which uses up a try.
        refused: bool,
    },
    /// leased -> unknown; also what a lease that ran out becomes
    LoseSight {
        /// What the start call ended with.
        code: String,
        /// What was said.
        detail: String,
        /// Not to be checked before.
        check_at: Timestamp,
    },
    /// leased -> failed
    Fail {
        /// The scheduler's or Lakebell's code.
        code: String,
        /// What was said.
        detail: String,
    },
    /// unknown -> success
    Adopt {
        /// The instances found, lowest first; empty while only a command is pending.
        instances: Vec<InstanceId>,
    },
    /// unknown -> unknown: one clean round more, or an undecided one
    CheckAgain {
        /// Whether the round was clean.
        clean: bool,
        /// When the next one is due.
        check_at: Timestamp,
        /// What was in the way.
        detail: Option<String>,
    },
    /// unknown -> waiting: two clean rounds
    ProveAbsent {
        /// When to try again.
        due_at: Timestamp,
    },
    /// unknown -> held
    Hold {
        /// What a person must know to decide.
        detail: String,
    },
    /// held -> success, waiting or failed, by a person or policy
    Decide {
        /// The decision.
        decision: Decision,
        /// By whom.
        by: String,
    },
    /// failed -> queued
    Redrive {
        /// By whom.
        by: String,
    },
    /// failed, queued or waiting -> skipped: its data lives on in another trigger
    Supersede {
        /// The other trigger.
        by: TriggerKey,
    },
    /// queued or waiting -> skipped
    Skip {
        /// Why.
        why: String,
    },
    /// A message is sent; the status stays.
    Send {
        /// When to send the next one if nothing happens.
        due_at: Timestamp,
    },
}

/// The name of an arrow, for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)] // the arrows of the same names say it
pub enum ArrowName {
    Claim,
    Lease,
    Wake,
    Answer,
    Succeed,
    Wait,
    LoseSight,
    Fail,
    Adopt,
    CheckAgain,
    ProveAbsent,
    Hold,
    Decide,
    Redrive,
    Supersede,
    Skip,
    Send,
}

/// The protocol has no such arrow from where the trigger stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a trigger that is {step} has no arrow {arrow:?}")]
pub struct IllegalArrow {
    /// Where it stands.
    pub step: &'static str,
    /// The arrow that was asked for.
    pub arrow: ArrowName,
}

impl Arrow {
    /// Its name.
    pub const fn name(&self) -> ArrowName {
        match self {
            Self::Lease { .. } => ArrowName::Lease,
            Self::Wake => ArrowName::Wake,
            Self::Answer { .. } => ArrowName::Answer,
            Self::Succeed { .. } => ArrowName::Succeed,
            Self::Wait { .. } => ArrowName::Wait,
            Self::LoseSight { .. } => ArrowName::LoseSight,
            Self::Fail { .. } => ArrowName::Fail,
            Self::Adopt { .. } => ArrowName::Adopt,
            Self::CheckAgain { .. } => ArrowName::CheckAgain,
            Self::ProveAbsent { .. } => ArrowName::ProveAbsent,
            Self::Hold { .. } => ArrowName::Hold,
            Self::Decide { .. } => ArrowName::Decide,
            Self::Redrive { .. } => ArrowName::Redrive,
            Self::Supersede { .. } => ArrowName::Supersede,
            Self::Skip { .. } => ArrowName::Skip,
            Self::Send { .. } => ArrowName::Send,
        }
    }
}

impl fmt::Display for ArrowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Trigger {
    /// The trigger after an arrow, or a refusal that changes nothing.
    pub fn apply(&self, arrow: &Arrow, now: Timestamp) -> Result<Self, IllegalArrow> {
        let mut next = self.clone();
        let detail = next.follow(arrow, now)?;
        // Sends are counted, not logged: an outage would push everything else out of the log.
        if !matches!(arrow, Arrow::Send { .. }) {
            next.passed(now, arrow.name(), detail);
        }
        if next.has_ended() {
            next.due_at = None;
        }
        // A waiting task that names no instance carries no key either: nobody could be asked about it.
        let can_be_asked_about = next.sensor.is_none() || next.instance.is_some();
        if matches!(next.status, Status::Success { .. }) && can_be_asked_about {
            next.followed.get_or_insert_with(|| Followed::from(now));
        }
        Ok(next)
    }

    #[allow(clippy::too_many_lines)] // one table; splitting it would hide the machine
    fn follow(&mut self, arrow: &Arrow, now: Timestamp) -> Result<Option<String>, IllegalArrow> {
        let illegal = IllegalArrow { step: self.status.step(), arrow: arrow.name() };
        let mut detail = None;
        self.status = match (&self.status, arrow) {
            // What a waiting task takes is started by nobody else.
            (Status::Queued, Arrow::Lease { until }) if self.sensor.is_none() => {
                self.attempt += 1;
                self.first_tried_at.get_or_insert(now);
                self.due_at = Some(*until);
                Status::Leased { until: *until }
            }
            (Status::Waiting { .. }, Arrow::Wake) if self.due_at.is_none_or(|due_at| due_at <= now) => {
                self.due_at = Some(now);
                Status::Queued
            }
            (Status::Queued, Arrow::Answer { task, run }) if self.sensor.is_some() => {
                detail = Some(format!("task {task} of {run}"));
                self.instance = run.asker.instance();
                self.sensor = Some(Sensor { task: *task, taken_by: Some(run.clone()) });
                Status::Success { assumed: false }
            }
            (Status::Leased { .. }, Arrow::Succeed { instance }) => {
                self.instance = *instance;
                Status::Success { assumed: false }
            }
            (Status::Leased { .. }, Arrow::Wait { reason, due_at, refused }) => {
                self.tries += u32::from(*refused);
                self.due_at = Some(*due_at);
                detail = Some(format!("{}: {}", reason.code, reason.detail));
                Status::Waiting { reason: reason.clone() }
            }
            (Status::Leased { .. }, Arrow::LoseSight { code, detail: said, check_at }) => {
                self.due_at = Some(*check_at);
                detail = Some(format!("{code}: {said}"));
                Status::Unknown {
                    since: now,
                    code: code.clone(),
                    detail: said.clone(),
                    clean_rounds: 0,
                    last_round: None,
                    held: false,
                }
            }
            (Status::Leased { .. }, Arrow::Fail { code, detail: said }) => {
                detail = Some(format!("{code}: {said}"));
                Status::Failed { code: code.clone(), detail: said.clone() }
            }
            (Status::Unknown { .. }, Arrow::Adopt { instances }) => {
                self.instance = instances.first().copied();
                self.extra_instances = instances.iter().skip(1).copied().collect();
                Status::Success { assumed: false }
            }
            (
                Status::Unknown { since, code, detail: said, clean_rounds, last_round, held },
                Arrow::CheckAgain { clean, check_at, detail: obstacle },
            ) => {
                self.due_at = Some(*check_at);
                detail.clone_from(obstacle);
                Status::Unknown {
                    since: *since,
                    code: code.clone(),
                    detail: obstacle.clone().unwrap_or_else(|| said.clone()),
                    clean_rounds: if *clean { clean_rounds.saturating_add(1) } else { 0 },
                    last_round: if *clean { Some(now) } else { *last_round },
                    held: *held,
                }
            }
            (Status::Unknown { clean_rounds: 2.., held: false, .. }, Arrow::ProveAbsent { due_at }) => {
                self.tries += 1;
                self.due_at = Some(*due_at);
                Status::Waiting {
                    reason: WaitReason {
                        code: "ABSENCE_PROVEN".to_owned(),
                        detail: "two clean rounds of the duplicate check found nothing".to_owned(),
                    },
                }
            }
            (
                Status::Unknown { since, code, clean_rounds, last_round, held: false, .. },
                Arrow::Hold { detail: why },
            ) => {
                detail = Some(why.clone());
                Status::Unknown {
                    since: *since,
                    code: code.clone(),
                    detail: why.clone(),
                    clean_rounds: *clean_rounds,
                    last_round: *last_round,
                    held: true,
                }
            }
            (Status::Unknown { held: true, .. }, Arrow::Decide { decision, by }) => {
                detail = Some(format!("{decision}, by {by}"));
                match decision {
                    Decision::Started(instance) => {
                        self.instance = *instance;
                        Status::Success { assumed: instance.is_none() }
                    }
                    Decision::Absent => {
                        self.due_at = Some(now);
                        Status::Waiting {
                            reason: WaitReason {
                                code: "DECIDED_ABSENT".to_owned(),
                                detail: format!("decided by {by}"),
                            },
                        }
                    }
                    Decision::Failed => {
                        Status::Failed { code: "DECIDED_FAILED".to_owned(), detail: format!("decided by {by}") }
                    }
                }
            }
            (Status::Failed { .. }, Arrow::Redrive { by }) => {
                self.attempt += 1;
                self.tries = 0;
                self.due_at = Some(now);
                detail = Some(format!("by {by}"));
                Status::Queued
            }
            (Status::Failed { .. } | Status::Queued | Status::Waiting { .. }, Arrow::Supersede { by }) => {
                Status::Skipped { why: "superseded".to_owned(), superseded_by: Some(by.clone()) }
            }
            (Status::Queued | Status::Waiting { .. }, Arrow::Skip { why }) => {
                Status::Skipped { why: why.clone(), superseded_by: None }
            }
            (status @ (Status::Queued | Status::Leased { .. } | Status::Unknown { .. }), Arrow::Send { due_at })
                if self.sensor.is_none() =>
            {
                self.sends += 1;
                if matches!(status, Status::Queued) {
                    self.due_at = Some(*due_at);
                }
                status.clone()
            }
            _ => return Err(illegal),
        };
        Ok(detail)
    }
}
