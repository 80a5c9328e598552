//! Workflow instances.

use axum::extract::{Path, State};
use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::{Map, Value, json};

use super::definitions::known_project;
use super::envelope::{Answer, Refused, ok, paged, shown};
use super::fields::Fields;
use crate::Profile;
use crate::params::TIME;
use crate::shared::App;
use crate::world::{Instance, World, command_type};

/// The state names that a release knows; the filter refuses any other.
const fn states(profile: Profile) -> &'static [&'static str] {
    const ALL: &[&str] = &[
        "SUBMITTED_SUCCESS",
        "RUNNING_EXECUTION",
        "READY_PAUSE",
        "PAUSE",
        "READY_STOP",
        "STOP",
        "FAILURE",
        "SUCCESS",
        "SERIAL_WAIT",
        "DELAY_EXECUTION",
        "READY_BLOCK",
        "BLOCK",
        "WAIT_TO_RUN",
    ];
    const DEV: &[&str] = &[
        "SUBMITTED_SUCCESS",
        "RUNNING_EXECUTION",
        "READY_PAUSE",
        "PAUSE",
        "READY_STOP",
        "STOP",
        "FAILURE",
        "SUCCESS",
        "SERIAL_WAIT",
        "FAILOVER",
        "WAIT_TO_RUN",
    ];
    match profile {
        Profile::V3_1 => ALL.split_at(12).0,
        Profile::V3_2 => ALL,
        Profile::V3_3Dev | Profile::V3_3 => DEV,
        Profile::V3_4 => DEV.split_at(10).0,
    }
}

pub(crate) async fn page(State(app): State<App>, Path(project): Path<String>, fields: Fields) -> Answer {
    let page = fields.page(10113)?;
    let (from, to) = (time(&fields, "startDate")?, time(&fields, "endDate")?);
    let state = fields.get("stateType").filter(|state| !state.is_empty());
    app.read(|world| {
        if state.is_some_and(|state| !states(world.profile).contains(&state)) {
            return Err(Refused::new(10113, "query instance list paging error"));
        }
        let project = known_project(world, &project)?;
        let by = if world.profile.says_workflow() { "workflowDefinitionCode" } else { "processDefineCode" };
        let definition = fields.number(by).unwrap_or(0);
        let executor = fields.get("executorName").filter(|name| !name.is_empty());
        let name = fields.get("searchVal").unwrap_or_default();
        let mut found: Vec<&Instance> = world
            .instances
            .values()
            .filter(|row| row.project == project && (definition == 0 || row.definition == definition))
            .filter(|row| state.is_none_or(|state| row.state == state))
            .filter(|row| executor.is_none_or(|executor| row.executor == executor))
            .filter(|row| row.name.contains(name))
            .filter(|row| from.is_none_or(|from| row.start_time >= from) && to.is_none_or(|to| row.start_time <= to))
            .collect();
        found.sort_by_key(|row| std::cmp::Reverse((row.start_time, row.id)));
        Ok(ok(&paged(found.into_iter().map(|row| listed(world.profile, row)).collect(), page)))
    })
}

pub(crate) async fn one(State(app): State<App>, Path((project, id)): Path<(String, String)>) -> Answer {
    app.read(|world| {
        let project = known_project(world, &project)?;
        let found = find(world, &id)?;
        if found.project != project {
            return Err(Refused::new(50003, format!("{} definition does not exist", world.profile.noun())));
        }
        let mut row = row(world.profile, found);
        row.insert("dagData".to_owned(), Value::Null);
        row.insert("locations".to_owned(), Value::Null);
        Ok(ok(&Value::Object(row)))
    })
}

pub(crate) async fn by_trigger(State(app): State<App>, Path(project): Path<String>, fields: Fields) -> Answer {
    let code = fields.number("triggerCode");
    app.read(|world| {
        let project = known_project(world, &project)?;
        // Nothing writes the relation any more from 3.3 on, and 3.1 tells no code.
        let kept = world.profile == Profile::V3_2;
        let rows: Value = world
            .instances
            .values()
            .filter(|row| kept && row.project == project && Some(row.trigger_code) == code)
            .map(|found| Value::Object(row(world.profile, found)))
            .collect();
        Ok(ok(&rows))
    })
}

/// The instance, or the refusal.
pub(crate) fn find<'a>(world: &'a World, id: &str) -> Result<&'a Instance, Refused> {
    let found = id.parse().ok().and_then(|id: i64| world.instances.get(&id));
    found.ok_or_else(|| Refused::new(50001, format!("{} instance {id} does not exist", world.profile.noun())))
}

fn time(fields: &Fields, name: &str) -> Result<Option<Timestamp>, Refused> {
    let Some(text) = fields.get(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    DateTime::strptime(TIME, text)
        .and_then(|time| time.to_zoned(jiff::tz::TimeZone::UTC))
        .map(|time| Some(time.timestamp()))
        .map_err(|_| Refused::new(10001, format!("request parameter {name} is not valid")))
}

/// A row of the list: 3.1 does not select the parameters.
fn listed(profile: Profile, instance: &Instance) -> Value {
    let mut row = row(profile, instance);
    if profile == Profile::V3_1 {
        for unselected in ["commandParam", "globalParams", "varPool"] {
            row.insert(unselected.to_owned(), Value::Null);
        }
    }
    Value::Object(row)
}

fn row(profile: Profile, instance: &Instance) -> Map<String, Value> {
    let noun = profile.noun();
    let mut row = Map::new();
    let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
    put("id", json!(instance.id));
    put("name", json!(instance.name));
    put("state", json!(instance.state));
    put("startTime", json!(shown(instance.start_time)));
    put("endTime", json!(instance.end_time.map(shown)));
    put("runTimes", json!(instance.run_times));
    put("commandType", json!(command_type(instance.schedule_time)));
    put("executorName", json!(instance.executor));
    put("host", json!("127.0.0.1:5678"));
    put(&format!("{noun}DefinitionCode"), json!(instance.definition));
    put(&format!("{noun}DefinitionVersion"), json!(1));
    put(&format!("{noun}InstancePriority"), json!("MEDIUM"));
    put("commandParam", json!(instance.command_param));
    put("globalParams", json!(instance.global_params));
    put("varPool", Value::Null);
    put("scheduleTime", json!(instance.schedule_time.map(|time| time.strftime(TIME).to_string())));
    put("projectCode", json!(instance.project));
    row
}
