//! The control routes, all under `/_standin/` and with the same `token` header as the API.
//!
//! | call | does |
//! |---|---|
//! | `GET /_standin/state` | everything that is remembered, as JSON |
//! | `POST /_standin/definitions` | declares a workflow: `{project, name, code?, command?: [..], workingDir?, online?: true, executionType?, tasks?: [..]}`; answers the definition. The same code or (project, name) replaces it |
//! | `POST /_standin/faults` | adds a [`Fault`]: `{kind, count?: 1, always?, skip?, on?: "start", code?, msg?}` |
//! | `DELETE /_standin/faults` | clears all faults |
//! | `POST /_standin/settings` | changes any of `{consume, finish, masters, executor, tokenExpires}`; `consume` and `finish` are milliseconds or `"manual"` |
//! | `POST /_standin/advance` | `{what: "commands"}` consumes what waits; `{what: "runs", state?: "SUCCESS"}` ends what runs without a command line; `{what: "instance", id, state}` puts one instance into a state |
//! | `POST /_standin/instances` | adds an instance row: `{definition, state?, startTime?, params?, paramsKnown?: true}`, for lists with history |
//!
//! Bodies and answers are JSON. A wrong body is 400 with a text.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::Fault;
use crate::params;
use crate::shared::App;
use crate::world::{Definition, Delay, Instance, World};

/// A workflow as it is declared to the stand-in.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Declared {
    project: i64,
    name: String,
    code: Option<i64>,
    #[serde(default)]
    command: Vec<String>,
    working_dir: Option<String>,
    #[serde(default = "yes")]
    online: bool,
    execution_type: Option<String>,
    #[serde(default)]
    tasks: Vec<i64>,
}

const fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SettingsPatch {
    consume: Option<Delay>,
    finish: Option<Delay>,
    masters: Option<u32>,
    executor: Option<String>,
    token_expires: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "camelCase", deny_unknown_fields)]
enum Advance {
    Commands,
    Runs {
        #[serde(default = "success")]
        state: String,
    },
    Instance {
        id: i64,
        state: String,
    },
}

fn success() -> String {
    "SUCCESS".to_owned()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Seeded {
    definition: i64,
    #[serde(default = "success")]
    state: String,
    start_time: Option<Timestamp>,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default = "yes")]
    params_known: bool,
}

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/state", get(state))
        .route("/definitions", post(define))
        .route("/faults", post(add_fault).delete(clear_faults))
        .route("/settings", post(set))
        .route("/advance", post(advance))
        .route("/instances", post(seed))
}

async fn state(State(app): State<App>) -> Response {
    app.read(|world| Json(world).into_response())
}

async fn define(State(app): State<App>, Json(declared): Json<Declared>) -> Response {
    app.change(|world| {
        let known = world.definitions.values().find(|d| d.project == declared.project && d.name == declared.name);
        let code = declared.code.or(known.map(|definition| definition.code)).unwrap_or_else(|| world.new_code());
        let tasks = if declared.tasks.is_empty() { vec![world.new_code()] } else { declared.tasks };
        world.ensure_project(declared.project);
        let definition = Definition {
            code,
            name: declared.name,
            project: declared.project,
            online: declared.online,
            execution_type: declared.execution_type.unwrap_or_else(|| "PARALLEL".to_owned()),
            tasks,
            command: declared.command,
            working_dir: declared.working_dir,
            warning_group: None,
        };
        let answer = Json(&definition).into_response();
        world.definitions.insert(code, definition);
        answer
    })
}

async fn add_fault(State(app): State<App>, Json(fault): Json<Fault>) -> Response {
    app.change(|world| {
        world.faults.push(fault);
        Json(&world.faults).into_response()
    })
}

async fn clear_faults(State(app): State<App>) -> Response {
    app.change(|world| world.faults.clear());
    Json(json!([])).into_response()
}

async fn set(State(app): State<App>, Json(patch): Json<SettingsPatch>) -> Response {
    let settings = app.change(|world| {
        let settings = &mut world.settings;
        settings.consume = patch.consume.unwrap_or(settings.consume);
        settings.finish = patch.finish.unwrap_or(settings.finish);
        settings.masters = patch.masters.unwrap_or(settings.masters);
        settings.token_expires = patch.token_expires.or(settings.token_expires);
        if let Some(executor) = patch.executor {
            settings.executor = executor;
        }
        settings.clone()
    });
    if settings.consume != Delay::MANUAL {
        let waiting: Vec<i64> = app.read(|world| world.commands.iter().map(|command| command.id).collect());
        for command in waiting {
            app.schedule(command);
        }
    }
    Json(settings).into_response()
}

async fn advance(State(app): State<App>, Json(advance): Json<Advance>) -> Response {
    match advance {
        Advance::Commands => Json(json!({"consumed": consume_all(&app)})).into_response(),
        Advance::Runs { state } => Json(json!({"moved": app.change(|world| world.end_runs(&state))})).into_response(),
        Advance::Instance { id, state } => {
            if app.change(|world| world.set_state(id, &state)) {
                Json(json!({"moved": [id]})).into_response()
            } else {
                (StatusCode::NOT_FOUND, format!("there is no instance {id}")).into_response()
            }
        }
    }
}

async fn seed(State(app): State<App>, Json(seeded): Json<Seeded>) -> Response {
    app.change(|world| {
        let Some(definition) = world.definitions.get(&seeded.definition) else {
            return (StatusCode::NOT_FOUND, "there is no such definition").into_response();
        };
        let (project, name) = (definition.project, definition.name.clone());
        let start_time = seeded.start_time.unwrap_or_else(Timestamp::now);
        let instance = Instance {
            id: world.new_id(),
            name: format!("{name}-seeded"),
            definition: seeded.definition,
            project,
            state: seeded.state,
            start_time,
            end_time: None,
            run_times: 1,
            command_param: seeded.params_known.then(|| params::command_param(world.profile, &seeded.params, "", &[])),
            global_params: seeded.params_known.then(|| params::global_params(world.profile, &seeded.params)),
            params: seeded.params,
            trigger_code: 0,
            executor: world.settings.executor.clone(),
            exit_code: None,
            log: String::new(),
            schedule_time: None,
        };
        let answer = Json(&instance).into_response();
        world.instances.insert(instance.id, instance);
        answer
    })
}

/// Consumes every command that waits; their ids.
pub(crate) fn consume_all(app: &App) -> Vec<i64> {
    let waiting: Vec<i64> = app.read(|world| world.commands.iter().map(|command| command.id).collect());
    for command in &waiting {
        app.consume(*command);
    }
    waiting
}

impl World {
    /// Declares a workflow with one task and no command line, online; its code.
    pub(crate) fn define(&mut self, project: i64, name: &str) -> i64 {
        let (code, task) = (self.new_code(), self.new_code());
        self.ensure_project(project);
        let definition = Definition {
            code,
            name: name.to_owned(),
            project,
            online: true,
            execution_type: "PARALLEL".to_owned(),
            tasks: vec![task],
            command: Vec::new(),
            working_dir: None,
            warning_group: None,
        };
        self.definitions.insert(code, definition);
        code
    }

    /// Ends what runs and has no command line; their ids.
    fn end_runs(&mut self, state: &str) -> Vec<i64> {
        let running: Vec<i64> = self
            .instances
            .values()
            .filter(|found| found.state == "RUNNING_EXECUTION")
            .filter(|found| self.definitions.get(&found.definition).is_none_or(|d| d.command.is_empty()))
            .map(|found| found.id)
            .collect();
        for id in &running {
            self.set_state(*id, state);
        }
        running
    }
}
