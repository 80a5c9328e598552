//! Workflow definitions.

use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::envelope::{Answer, Refused, created, grouped, ok, paged};
use super::fields::Fields;
use crate::Profile;
use crate::shared::App;
use crate::world::{Definition, World};

pub(crate) async fn page(State(app): State<App>, Path(project): Path<String>, fields: Fields) -> Answer {
    let page = fields.page(10122)?;
    let wanted = fields.get("searchVal").unwrap_or_default();
    app.read(|world| {
        let project = known_project(world, &project)?;
        let rows = of_project(world, project).filter(|found| found.name.contains(wanted));
        Ok(ok(&paged(rows.map(|found| row(world.profile, found)).collect(), page)))
    })
}

pub(crate) async fn simple_list(State(app): State<App>, Path(project): Path<String>) -> Answer {
    app.read(|world| {
        let project = known_project(world, &project)?;
        let rows: Value = of_project(world, project)
            .map(|found| json!({"id": found.code, "code": found.code, "name": found.name, "projectCode": project}))
            .collect();
        Ok(ok(&rows))
    })
}

pub(crate) async fn by_name(State(app): State<App>, Path(project): Path<String>, fields: Fields) -> Answer {
    let name = fields.get("name").unwrap_or_default();
    app.read(|world| {
        let project = known_project(world, &project)?;
        let found = of_project(world, project).find(|found| found.name == name);
        found.map(|found| ok(&detail(world.profile, found))).ok_or_else(|| unknown(world.profile, name))
    })
}

pub(crate) async fn by_code(State(app): State<App>, Path((project, code)): Path<(String, String)>) -> Answer {
    app.read(|world| {
        let found = find(world, &project, &code)?;
        Ok(ok(&detail(world.profile, found)))
    })
}

pub(crate) async fn delete(State(app): State<App>, Path((project, code)): Path<(String, String)>) -> Answer {
    app.change(|world| {
        let found = find(world, &project, &code)?;
        let (code, name) = (found.code, found.name.clone());
        if found.online {
            return Err(Refused::new(50021, format!("{} definition [{name}] is already online", world.profile.noun())));
        }
        if world.instances.values().any(|instance| instance.definition == code && !instance.has_ended()) {
            return Err(Refused::new(10163, "delete definition fail, for there are instances executing"));
        }
        world.definitions.remove(&code);
        Ok(ok(&Value::Null))
    })
}

pub(crate) async fn release(
    State(app): State<App>,
    Path((project, code)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let online = match fields.get("releaseState") {
        Some("ONLINE") => true,
        Some("OFFLINE") => false,
        _ => return Err(Refused::new(10108, "release definition error")),
    };
    app.change(|world| {
        let code = find(world, &project, &code)?.code;
        if let Some(found) = world.definitions.get_mut(&code) {
            found.online = online;
        }
        Ok(ok(&json!(true)))
    })
}

pub(crate) async fn create(State(app): State<App>, Path(project): Path<String>, fields: Fields) -> Answer {
    let text = |name: &str| fields.get(name).map(str::to_owned);
    let wanted = text("name").filter(|name| !name.is_empty()).zip(text("taskDefinitionJson"));
    let Some((name, tasks)) = wanted else { return Err(Refused::new(10105, "create definition error")) };
    let tasks: Vec<Value> = serde_json::from_str(&tasks).map_err(|_| Refused::new(50017, "data is not valid"))?;
    app.change(|world| {
        let project = known_project(world, &project)?;
        if world.profile == Profile::V3_1 && fields.get("tenantCode").is_none() {
            return Err(Refused::new(10105, "create definition error"));
        }
        if of_project(world, project).any(|found| found.name == name) {
            return Err(Refused::new(10168, format!("definition name {name} already exists")));
        }
        let definition = Definition {
            code: world.new_code(),
            name,
            project,
            online: false,
            execution_type: text("executionType").unwrap_or_else(|| "PARALLEL".to_owned()),
            tasks: tasks.iter().filter_map(|task| task.get("code")?.as_i64()).collect(),
            command: Vec::new(),
            working_dir: None,
            warning_group: None,
        };
        let answer = created(&row(world.profile, &definition));
        world.definitions.insert(definition.code, definition);
        Ok(answer)
    })
}

pub(crate) async fn task_codes(State(app): State<App>, Path(_): Path<String>, fields: Fields) -> Answer {
    let count = fields.number("genNum").filter(|count| (1..=100).contains(count));
    let Some(count) = count else { return Err(Refused::new(10001, "request parameter genNum is not valid")) };
    Ok(ok(&app.change(|world| (0..count).map(|_| json!(world.new_code())).collect::<Value>())))
}

/// The project of the path, or the refusal.
pub(crate) fn known_project(world: &World, project: &str) -> Result<i64, Refused> {
    let code = project.parse().ok().filter(|code| world.projects.contains_key(code));
    code.ok_or_else(|| Refused::new(10018, format!("project {project} not found ")))
}

/// The refusal of an unknown definition.
pub(crate) fn unknown(profile: Profile, what: &str) -> Refused {
    let shown = what.parse().map_or_else(|_| what.to_owned(), grouped);
    Refused::new(50003, format!("{} definition {shown} does not exist", profile.noun()))
}

fn find<'a>(world: &'a World, project: &str, code: &str) -> Result<&'a Definition, Refused> {
    let project = known_project(world, project)?;
    let found = code.parse().ok().and_then(|code: i64| world.definitions.get(&code));
    found.filter(|found| found.project == project).ok_or_else(|| unknown(world.profile, code))
}

fn of_project(world: &World, project: i64) -> impl Iterator<Item = &Definition> {
    world.definitions.values().filter(move |definition| definition.project == project)
}

fn row(profile: Profile, definition: &Definition) -> Value {
    let group = definition
        .warning_group
        .map_or_else(|| if profile == Profile::V3_1 { json!(0) } else { Value::Null }, |group| json!(group));
    json!({
        "id": definition.code,
        "code": definition.code,
        "name": definition.name,
        "version": 1,
        "projectCode": definition.project,
        "releaseState": if definition.online { "ONLINE" } else { "OFFLINE" },
        "executionType": definition.execution_type,
        "globalParams": "[]",
        "timeout": 0,
        "warningGroupId": group,
    })
}

fn detail(profile: Profile, definition: &Definition) -> Value {
    let noun = profile.noun();
    let tasks: Value = definition.tasks.iter().map(|task| json!({"code": task, "name": format!("t{task}")})).collect();
    json!({
        format!("{noun}Definition"): row(profile, definition),
        format!("{noun}TaskRelationList"): [],
        "taskDefinitionList": tasks,
    })
}
