//! What masters do: accept a start, consume its command, begin, end and rerun instances.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::faults::{FaultKind, Operation, strike};
use crate::params;
use crate::world::{Command, Instance, World};

/// A start that passed every check.
pub(crate) struct Start {
    pub(crate) definition: i64,
    pub(crate) params: BTreeMap<String, String>,
    pub(crate) from_tasks: String,
    /// The times of a backfill, the first of which is run; empty for a plain start.
    pub(crate) backfill: Vec<DateTime>,
}

/// An accepted start.
pub(crate) struct Accepted {
    pub(crate) command: i64,
    pub(crate) trigger_code: i64,
    /// Instances that exist already; more than one only by fault, and then only the first is told.
    pub(crate) instances: Vec<i64>,
}

impl World {
    /// Writes the command, and from 3.3 on its instance in the same step.
    pub(crate) fn accept(&mut self, start: Start) -> Accepted {
        let kinds: Vec<FaultKind> = strike(&mut self.faults, Operation::Start, is_about_the_command)
            .into_iter()
            .map(|fault| fault.kind)
            .collect();
        let (project, serial_discard) = self
            .definitions
            .get(&start.definition)
            .map_or((0, false), |definition| (definition.project, definition.execution_type == "SERIAL_DISCARD"));
        let already_runs =
            self.instances.values().any(|other| other.definition == start.definition && !other.has_ended());
        let discard = kinds.contains(&FaultKind::SerialDiscard) || (serial_discard && already_runs);
        let mut command = Command {
            id: self.new_id(),
            definition: start.definition,
            project,
            command_param: params::command_param(self.profile, &start.params, &start.from_tasks, &start.backfill),
            params: start.params,
            schedule_time: start.backfill.first().copied(),
            trigger_code: self.new_code(),
            instances: Vec::new(),
            copies: if kinds.contains(&FaultKind::TwoInstances) { 2 } else { 1 },
            to_error: kinds.contains(&FaultKind::CommandToError),
            discard,
            lose_params: kinds.contains(&FaultKind::LoseParams),
            at: Timestamp::now(),
        };
        if self.profile.says_workflow() {
            command.instances = (0..command.copies).map(|_| self.insert(&command, "SUBMITTED_SUCCESS")).collect();
        }
        let accepted =
            Accepted { command: command.id, trigger_code: command.trigger_code, instances: command.instances.clone() };
        self.commands.push(command);
        accepted
    }

    /// Consumes a command if it still waits and a master is alive; the instances that now run.
    pub(crate) fn consume(&mut self, command_id: i64) -> Vec<i64> {
        let waiting = self.commands.iter().position(|command| command.id == command_id);
        let Some(position) = waiting.filter(|_| self.settings.masters > 0) else { return Vec::new() };
        let command = self.commands.remove(position);
        if command.to_error {
            self.error_commands.push(command);
            return Vec::new();
        }
        let instances = if command.instances.is_empty() {
            (0..command.copies).map(|_| self.insert(&command, "RUNNING_EXECUTION")).collect()
        } else {
            command.instances.clone()
        };
        let seen = if command.lose_params { BTreeMap::new() } else { command.params.clone() };
        let (command_param, global_params) =
            (params::command_param(self.profile, &seen, "", &[]), params::global_params(self.profile, &seen));
        for id in &instances {
            // Stopped by hand before a master came to it: it stays as it is, without parameters.
            let Some(instance) = self.instances.get_mut(id).filter(|instance| !instance.has_ended()) else { continue };
            instance.params.clone_from(&seen);
            instance.command_param =
                Some(if command.lose_params { command_param.clone() } else { command.command_param.clone() });
            instance.global_params = Some(global_params.clone());
            "RUNNING_EXECUTION".clone_into(&mut instance.state);
            if command.discard {
                "STOP".clone_into(&mut instance.state);
                instance.end_time = Some(Timestamp::now());
            }
        }
        instances.into_iter().filter(|id| self.instances.get(id).is_some_and(|found| !found.has_ended())).collect()
    }

    /// Moves an instance into a state; an end state gets an end time, any other loses it.
    pub(crate) fn set_state(&mut self, id: i64, state: &str) -> bool {
        let Some(instance) = self.instances.get_mut(&id) else { return false };
        state.clone_into(&mut instance.state);
        instance.end_time = instance.has_ended().then(Timestamp::now);
        true
    }

    fn insert(&mut self, command: &Command, state: &str) -> i64 {
        let id = self.new_id();
        let now = Timestamp::now();
        let definition = self.definitions.get(&command.definition).map_or("workflow", |found| found.name.as_str());
        let stamp = now.strftime("%Y%m%d%H%M%S%3f");
        let name = if self.profile.says_workflow() {
            format!("{definition}-{stamp}")
        } else {
            format!("{definition}-1-{stamp}")
        };
        let instance = Instance {
            id,
            name,
            definition: command.definition,
            project: command.project,
            state: state.to_owned(),
            start_time: now,
            end_time: None,
            run_times: 1,
            params: BTreeMap::new(),
            command_param: None,
            global_params: None,
            trigger_code: command.trigger_code,
            executor: self.settings.executor.clone(),
            exit_code: None,
            log: String::new(),
            schedule_time: command.schedule_time,
        };
        self.instances.insert(id, instance);
        id
    }
}

const fn is_about_the_command(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::TwoInstances | FaultKind::CommandToError | FaultKind::SerialDiscard | FaultKind::LoseParams
    )
}
