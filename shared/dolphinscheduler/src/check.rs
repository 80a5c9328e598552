//! One round of the duplicate check: did a start whose answer was lost take effect?
//!
//! A start goes from a command to an instance, so commands are read first, then instances, then
//! commands again: whatever moves between two reads is seen by one of them. What each line hides is
//! never taken for absence: 3.1 shows no command's parameters, and from 3.3 on an instance exists
//! without its parameters until a master has handled its command.
//!
//! Source: the instance, command and monitor controllers and services of DolphinScheduler 3.1.9,
//! 3.2.2 and the line that became 3.3.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::ids::{ConnectionName, InstanceId, ProjectCode, TriggerKey, WorkflowCode};
use lakebell_engine::ports::scheduler::{CheckOutcome, InstanceState, Refusal};
use serde_json::Value;

use crate::list::{Reach, each_row, unexpected};
use crate::parameters::{Carries, carries};
use crate::rows::{self, TIME};
use crate::scheduler::DolphinScheduler;
use crate::session::{Session, data_of};
use crate::spelling::Spelling;

/// How far before the start instances are looked at: clocks may differ, and the filter is read and
/// the times are shown in zones that the client cannot know.
pub(crate) const MARGIN: SignedDuration = SignedDuration::from_hours(24);
/// How many instances are read one by one (3.1) before the round gives up.
pub(crate) const MOST_CANDIDATES: usize = 1000;

/// What is looked for.
struct Wanted<'a> {
    project: ProjectCode,
    workflow: WorkflowCode,
    key: &'a str,
    since: Timestamp,
}

/// What a round has seen so far.
#[derive(Debug, Default)]
struct Seen {
    /// Instances that carry the key.
    instances: BTreeSet<i64>,
    /// Whether a command that carries it waits.
    pending: bool,
    /// Whether a command that carries it is in the error list.
    failed: bool,
    /// Instances whose command is known and carries another key, or none.
    others: BTreeSet<i64>,
    /// Instances that run and whose parameters are not known.
    unknown: BTreeSet<i64>,
    /// What else is in the way of a decision.
    obstacles: Vec<String>,
}

impl DolphinScheduler {
    pub(crate) async fn round(
        &self,
        connection: &ConnectionName,
        project: ProjectCode,
        workflow: WorkflowCode,
        trigger: &TriggerKey,
        since: Timestamp,
    ) -> CheckOutcome {
        let wanted = Wanted { project, workflow, key: trigger.as_str(), since };
        let mut session = match Session::open(self, connection).await {
            Ok(session) => session,
            Err(none) => return CheckOutcome::Unavailable(none.into_refusal()),
        };
        let spelling = match self.spelling(&mut session, project).await {
            Ok(spelling) => spelling,
            Err(refusal) => return CheckOutcome::Unavailable(refusal),
        };
        let seen = gather(&mut session, &spelling, &wanted).await;
        match self.forgetting_line(&session, seen) {
            Ok(seen) => seen.decide(),
            Err(refusal) => CheckOutcome::Unavailable(refusal),
        }
    }
}

async fn gather(session: &mut Session<'_>, spelling: &Spelling, wanted: &Wanted<'_>) -> Result<Seen, Refusal> {
    let mut seen = Seen::default();
    commands(session, spelling, wanted, &mut seen).await?;
    instances(session, spelling, wanted, &mut seen).await?;
    commands(session, spelling, wanted, &mut seen).await?;
    if !master_alive(session, spelling).await? {
        seen.obstacles.push("no master is alive, so commands stay where they are".to_owned());
    }
    Ok(seen)
}

/// Looks at what waits and what failed, or, where that is hidden, at how much waits.
async fn commands(
    session: &mut Session<'_>,
    spelling: &Spelling,
    wanted: &Wanted<'_>,
    seen: &mut Seen,
) -> Result<(), Refusal> {
    if !spelling.lists_commands {
        return count_commands(session, seen).await;
    }
    let filters = [("projectCode", wanted.project.to_string())];
    let reach = each_row(session, "projects/analysis/listCommand", &filters, |row| {
        seen.pending |= seen.command(spelling, wanted, row);
        ControlFlow::Continue(())
    })
    .await?;
    seen.reached(reach, "the list of commands");
    let reach = each_row(session, "projects/analysis/listErrorCommand", &filters, |row| {
        seen.failed |= seen.command(spelling, wanted, row);
        ControlFlow::Continue(())
    })
    .await?;
    seen.reached(reach, "the list of failed commands");
    Ok(())
}

/// How many starts of any workflow wait for a master, backfills among them. All that 3.1 tells of
/// commands.
pub(crate) async fn starts_waiting(session: &mut Session<'_>) -> Result<i64, Refusal> {
    let data = data_of(session.get("projects/analysis/command-state-count", &[]).await)?;
    let counts = data.as_array().ok_or_else(|| unexpected("the command count came without rows"))?;
    let is_start = |row: &&Value| {
        matches!(row.get("commandState").and_then(Value::as_str), Some("START_PROCESS" | "COMPLEMENT_DATA"))
    };
    Ok(counts.iter().filter(is_start).map(|row| row.get("normalCount").and_then(Value::as_i64).unwrap_or(1)).sum())
}

/// As long as a start waits in 3.1, it may be the one looked for.
async fn count_commands(session: &mut Session<'_>, seen: &mut Seen) -> Result<(), Refusal> {
    let waiting = starts_waiting(session).await?;
    if waiting > 0 {
        seen.obstacles.push(format!("{waiting} starts wait for a master, and 3.1 does not show whose they are"));
    }
    Ok(())
}

async fn instances(
    session: &mut Session<'_>,
    spelling: &Spelling,
    wanted: &Wanted<'_>,
    seen: &mut Seen,
) -> Result<(), Refusal> {
    let earliest = wanted.since.checked_sub(MARGIN).unwrap_or(wanted.since);
    let mut filters =
        vec![(spelling.list_workflow, wanted.workflow.to_string()), ("startDate", earliest.strftime(TIME).to_string())];
    if let Some(user) = &session.spec.user {
        filters.push(("executorName", user.clone()));
    }
    let mut candidates = BTreeSet::new();
    let reach = each_row(session, &spelling.instances(wanted.project), &filters, |row| {
        if rows::time(row, "startTime").is_some_and(|began| began < earliest) {
            return ControlFlow::Break(());
        }
        match row.get("id").and_then(Value::as_i64) {
            Some(id) if spelling.rows_have_parameters => seen.instance(wanted, id, row),
            Some(id) => {
                candidates.insert(id);
            }
            None => seen.obstacles.push("an instance was listed without its id".to_owned()),
        }
        ControlFlow::Continue(())
    })
    .await?;
    seen.reached(reach, "the list of instances");
    if candidates.len() > MOST_CANDIDATES {
        let many = candidates.len();
        seen.obstacles.push(format!("{many} instances would have to be read one by one, more than {MOST_CANDIDATES}"));
    }
    // The newest first: the one looked for is hardly the oldest.
    for id in candidates.into_iter().rev().take(MOST_CANDIDATES) {
        let answer = session.get(&spelling.instance(wanted.project, InstanceId(id)), &[]).await;
        match data_of(answer) {
            Ok(Value::Null) => return Err(unexpected("an instance came without its fields")),
            Ok(row) => seen.instance(wanted, id, &row),
            // Deleted since it was listed.
            Err(refusal) if refusal.code == "50001" => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(())
}

async fn master_alive(session: &mut Session<'_>, spelling: &Spelling) -> Result<bool, Refusal> {
    let data = data_of(session.get(spelling.masters, &[]).await)?;
    let masters = data.as_array().ok_or_else(|| unexpected("the masters came without rows"))?;
    Ok(!masters.is_empty())
}

impl Seen {
    /// Takes note of a command and of the instance made with it, where there is one; whether it
    /// carries the key.
    fn command(&mut self, spelling: &Spelling, wanted: &Wanted<'_>, row: &Value) -> bool {
        if row.get(spelling.row_workflow).and_then(Value::as_i64) != Some(wanted.workflow.0) {
            return false;
        }
        let instance = row.get(spelling.row_instance).and_then(Value::as_i64).filter(|id| *id > 0);
        match carries(row, wanted.key) {
            Carries::This => {
                self.instances.extend(instance);
                return true;
            }
            Carries::Another => self.others.extend(instance),
            Carries::Unknown => {
                self.obstacles.push("a command of the workflow came with parameters that cannot be read".to_owned());
            }
        }
        false
    }

    fn instance(&mut self, wanted: &Wanted<'_>, id: i64, row: &Value) {
        let ended = rows::state(row).is_some_and(InstanceState::has_ended);
        match carries(row, wanted.key) {
            Carries::This => {
                self.instances.insert(id);
            }
            Carries::Another => {}
            Carries::Unknown if ended => {}
            Carries::Unknown => {
                self.unknown.insert(id);
            }
        }
    }

    fn reached(&mut self, reach: Reach, what: &str) {
        if reach == Reach::TooLong {
            self.obstacles.push(format!("{what} is too long to be gone through"));
        }
    }

    fn decide(mut self) -> CheckOutcome {
        if !self.instances.is_empty() || self.pending {
            return CheckOutcome::Found { instances: self.instances.into_iter().map(InstanceId).collect() };
        }
        if self.failed {
            let detail =
                "the start was accepted, and its command is in the error list: no instance will come of it by itself";
            return CheckOutcome::Undecided { detail: detail.to_owned() };
        }
        let unknown: Vec<i64> = self.unknown.difference(&self.others).copied().collect();
        if let Some(first) = unknown.first() {
            let count = unknown.len();
            self.obstacles.push(format!("{count} instances have no parameters yet, the first is {first}"));
        }
        self.obstacles.dedup();
        if self.obstacles.is_empty() {
            CheckOutcome::CleanRound
        } else {
            CheckOutcome::Undecided { detail: crate::envelope::shorten(&self.obstacles.join("; ")) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_seen_outweighs_everything_that_is_unclear() {
        let seen = Seen {
            instances: BTreeSet::from([9, 7]),
            failed: true,
            unknown: BTreeSet::from([3]),
            obstacles: vec!["x".to_owned()],
            ..Seen::default()
        };
        assert_eq!(seen.decide(), CheckOutcome::Found { instances: vec![InstanceId(7), InstanceId(9)] });
        let pending = Seen { pending: true, ..Seen::default() };
        assert_eq!(pending.decide(), CheckOutcome::Found { instances: Vec::new() });
    }

    #[test]
    fn an_instance_without_parameters_is_decided_by_its_command_or_not_at_all() {
        let undecided = Seen { unknown: BTreeSet::from([3]), ..Seen::default() };
        assert!(matches!(undecided.decide(), CheckOutcome::Undecided { .. }));
        let joined = Seen { unknown: BTreeSet::from([3]), others: BTreeSet::from([3]), ..Seen::default() };
        assert_eq!(joined.decide(), CheckOutcome::CleanRound);
    }
}
