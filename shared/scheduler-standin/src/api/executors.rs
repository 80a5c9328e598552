//! Start and control.

use axum::extract::{Path, State};
use axum::response::Response;
use jiff::civil::DateTime;
use serde_json::{Value, json};

use super::definitions::{known_project, unknown};
use super::envelope::{Answer, Refused, grouped, ok};
use super::fields::Fields;
use super::instances;
use crate::faults::{FaultKind, Operation, strike};
use crate::master::Start;
use crate::shared::App;
use crate::world::World;
use crate::{Profile, params};

pub(crate) async fn start(State(app): State<App>, Path(project): Path<String>, fields: Fields) -> Answer {
    let (profile, accepted) = app.change(|world| {
        world.note_start(&project, &fields.0);
        let checked = check(world, &project, &fields);
        (world.profile, checked.map(|start| world.accept(start)))
    });
    let accepted = accepted?;
    app.schedule(accepted.command);
    Ok(match profile {
        Profile::V3_1 => ok(&Value::Null),
        Profile::V3_2 => ok(&json!(accepted.trigger_code)),
        // Of two instances by fault only the first is told: the other is another master's doing.
        _ => ok(&json!(accepted.instances.first().map(|first| vec![*first]))),
    })
}

/// The checks of each release, in its order.
fn check(world: &mut World, project: &str, fields: &Fields) -> Result<Start, Refused> {
    let profile = world.profile;
    let noun = profile.noun();
    let code = required(profile, fields, &format!("{noun}DefinitionCode"))?;
    let code: i64 = code.parse().map_err(|_| generic(profile, "for input string"))?;
    required(profile, fields, "scheduleTime")?;
    one_of(profile, fields, "failureStrategy", &["END", "CONTINUE"], true)?;
    one_of(profile, fields, "warningType", &["NONE", "SUCCESS", "FAILURE", "ALL"], true)?;
    let priorities = ["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"];
    one_of(profile, fields, &format!("{noun}InstancePriority"), &priorities, false)?;
    one_of(profile, fields, "taskDependType", &["TASK_ONLY", "TASK_PRE", "TASK_POST"], false)?;

    if profile == Profile::V3_1 && known_project(world, project).is_err() {
        return Err(Refused::new(10190, format!("This project was not found. Please refresh page. {project}")));
    }
    if !profile.says_workflow() && fields.number("timeout").is_some_and(|timeout| !(1..=86400).contains(&timeout)) {
        return Err(Refused::new(10002, "task timeout parameter is not valid"));
    }
    let backfill = backfill(profile, fields)?;
    let Some(definition) = world.definitions.get(&code) else {
        // 3.1 and 3.2 run into a null pointer, which their generic text hides.
        return Err(if profile.says_workflow() {
            Refused::text(format!("Cannot find the workflow: {}", grouped(code)))
        } else {
            generic(profile, "")
        });
    };
    let (name, online, tasks) = (definition.name.clone(), definition.online, definition.tasks.clone());
    if !profile.says_workflow() && project.parse() != Ok(definition.project) {
        return Err(unknown(profile, &code.to_string()));
    }
    if !online && !profile.starts_offline() {
        return Err(if profile.says_workflow() {
            generic(profile, "The workflowDefinition should be online")
        } else {
            Refused::new(50004, format!("process definition [{name}] is not online"))
        });
    }
    let start_nodes = fields.get("startNodeList").unwrap_or_default().to_owned();
    check_nodes(profile, &start_nodes, &tasks)?;
    let no_master = strike(&mut world.faults, Operation::Start, |kind| kind == FaultKind::NoMaster);
    if world.settings.masters == 0 || !no_master.is_empty() {
        return Err(if profile.says_workflow() {
            Refused::text("no master server available")
        } else {
            Refused::new(10025, "master does not exist")
        });
    }
    if !profile.says_workflow()
        && let Some(definition) = world.definitions.get_mut(&code)
    {
        definition.warning_group = fields.number("warningGroupId");
    }
    let params = params::read(profile, fields.get("startParams"));
    Ok(Start { definition: code, params, from_tasks: start_nodes, backfill })
}

/// The times that a backfill is for; none for a plain start, which ignores `scheduleTime`.
fn backfill(profile: Profile, fields: &Fields) -> Result<Vec<DateTime>, Refused> {
    match fields.get("execType").unwrap_or("START_PROCESS") {
        "START_PROCESS" => return Ok(Vec::new()),
        "COMPLEMENT_DATA" => {}
        _ => return Err(Refused::text("The execType is invalid")),
    }
    let parallelism = fields.number("expectedParallelismNumber");
    if profile == Profile::V3_2 && parallelism.is_some_and(|number| number <= 0) {
        return Err(Refused::new(50080, "the expected parallelism number is not valid"));
    }
    if profile.says_workflow() && parallelism.is_none() {
        // The absent number is unboxed.
        return Err(generic(profile, "null"));
    }
    one_of(profile, fields, "runMode", &["RUN_MODE_SERIAL", "RUN_MODE_PARALLEL"], false)?;
    one_of(profile, fields, "complementDependentMode", &["OFF_MODE", "ALL_DEPENDENT"], false)?;
    let times = params::backfill_times(fields.get("scheduleTime").unwrap_or_default());
    if times.is_empty() {
        return Err(if profile.says_workflow() {
            Refused::text("backfillTime is invalid")
        } else {
            generic(profile, "")
        });
    }
    if !profile.says_workflow() && times.len() > 100 {
        return Err(Refused::new(1_400_003, "the number of complement dates exceeds 100"));
    }
    Ok(times)
}

fn check_nodes(profile: Profile, nodes: &str, tasks: &[i64]) -> Result<(), Refused> {
    if nodes.is_empty() {
        return Ok(());
    }
    let parsed: Result<Vec<i64>, _> = nodes.split(',').map(|node| node.trim().parse()).collect();
    match parsed {
        Err(_) if profile.says_workflow() => Err(Refused::text(format!("Parse startNodes: {nodes} error"))),
        Ok(parsed) if profile == Profile::V3_2 && parsed.iter().any(|node| !tasks.contains(node)) => {
            Err(Refused::new(10207, format!("this node {nodes} does not exist in the latest process definition")))
        }
        _ => Ok(()),
    }
}

fn required<'a>(profile: Profile, fields: &'a Fields, name: &str) -> Result<&'a str, Refused> {
    let missing = format!("Required request parameter '{name}' for method parameter type String is not present");
    fields.get(name).ok_or_else(|| generic(profile, &missing))
}

fn one_of(profile: Profile, fields: &Fields, name: &str, values: &[&str], needed: bool) -> Result<(), Refused> {
    match fields.get(name) {
        Some(value) if values.contains(&value) => Ok(()),
        None if !needed => Ok(()),
        _ => Err(generic(profile, &format!("Failed to convert value of parameter '{name}'"))),
    }
}

/// 50014: with the cause from 3.3 on, without it before.
fn generic(profile: Profile, cause: &str) -> Refused {
    let noun = profile.noun();
    if profile.says_workflow() {
        Refused::new(50014, format!("start {noun} instance error:{cause}"))
    } else {
        Refused::new(50014, format!("start {noun} instance error"))
    }
}

/// Stop, pause, rerun and recover, as far as the states allow.
pub(crate) async fn control(State(app): State<App>, Path(_): Path<String>, fields: Fields) -> Answer {
    let again = app.change(|world| apply(world, &fields))?;
    if let Some(id) = again {
        app.begin(id);
    }
    Ok::<Response, Refused>(ok(&Value::Null))
}

/// Applies a control call; the instance that runs again because of it.
fn apply(world: &mut World, fields: &Fields) -> Result<Option<i64>, Refused> {
    let noun = world.profile.noun();
    let instance = instances::find(world, fields.get(&format!("{noun}InstanceId")).unwrap_or_default())?;
    let (id, state) = (instance.id, instance.state.clone());
    let execute = fields.get("executeType").unwrap_or_default();
    let ended = instance.has_ended();
    let allowed = match execute {
        "STOP" | "PAUSE" => !ended,
        "REPEAT_RUNNING" => ended,
        "START_FAILURE_TASK_PROCESS" => state == "FAILURE",
        "RECOVER_SUSPENDED_PROCESS" => matches!(state.as_str(), "PAUSE" | "STOP"),
        _ => return Err(Refused::new(50015, format!("execute {noun} instance error"))),
    };
    if !allowed {
        return Err(match world.profile {
            Profile::V3_1 => Refused::new(50006, format!("the state of process instance is {state}, cannot {execute}")),
            Profile::V3_2 => Refused::new(50015, "execute process instance error"),
            _ => Refused::text(format!("The workflow instance: {id} state is {state}, cannot {execute}")),
        });
    }
    match execute {
        "STOP" => world.set_state(id, "STOP"),
        "PAUSE" => world.set_state(id, "PAUSE"),
        _ => {
            if let Some(instance) = world.instances.get_mut(&id) {
                instance.run_times += 1;
            }
            world.set_state(id, "RUNNING_EXECUTION")
        }
    };
    Ok(matches!(execute, "REPEAT_RUNNING" | "START_FAILURE_TASK_PROCESS" | "RECOVER_SUSPENDED_PROCESS").then_some(id))
}
