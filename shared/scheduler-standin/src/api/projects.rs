//! Projects.

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::envelope::{Answer, Refused, created, ok, paged};
use super::fields::Fields;
use crate::shared::App;
use crate::world::Project;

pub(crate) async fn page(State(app): State<App>, fields: Fields) -> Answer {
    let page = fields.page(10049)?;
    let wanted = fields.get("searchVal").unwrap_or_default();
    let rows = app.read(|world| {
        world.projects.values().filter(|project| project.name.contains(wanted)).map(row).collect::<Vec<_>>()
    });
    Ok(ok(&paged(rows, page)))
}

pub(crate) async fn list(State(app): State<App>) -> Response {
    ok(&app.read(|world| world.projects.values().map(row).collect::<Value>()))
}

pub(crate) async fn one(State(app): State<App>, Path(project): Path<String>) -> Answer {
    app.read(|world| {
        let found = project.parse().ok().and_then(|code: i64| world.projects.get(&code));
        found.map(|found| ok(&row(found))).ok_or_else(|| Refused::new(10018, format!("project {project} not found ")))
    })
}

pub(crate) async fn create(State(app): State<App>, fields: Fields) -> Answer {
    let Some(name) = fields.get("projectName").filter(|name| !name.is_empty()) else {
        return Err(Refused::new(10048, "create project error"));
    };
    app.change(|world| {
        if world.projects.values().any(|project| project.name == name) {
            return Err(Refused::new(10019, format!("project {name} already exists")));
        }
        let project = Project { code: world.new_code(), name: name.to_owned() };
        let answer = created(&row(&project));
        world.projects.insert(project.code, project);
        Ok(answer)
    })
}

fn row(project: &Project) -> Value {
    json!({"id": project.code, "code": project.code, "name": project.name, "description": null})
}
