//! Commands, their count, and masters.

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::envelope::{Answer, Refused, ok, paged, shown};
use super::fields::Fields;
use crate::Profile;
use crate::faults::{FaultKind, Operation, strike};
use crate::shared::App;
use crate::world::{Command, command_type};

pub(crate) async fn commands(State(app): State<App>, fields: Fields) -> Answer {
    let page = fields.page(10029)?;
    Ok(ok(&app.read(|world| paged(world.commands.iter().map(|found| row(world.profile, found, None)).collect(), page))))
}

pub(crate) async fn error_commands(State(app): State<App>, fields: Fields) -> Answer {
    let page = fields.page(10029)?;
    let message = Some("the master could not handle the command");
    Ok(ok(&app.read(|world| {
        paged(world.error_commands.iter().map(|found| row(world.profile, found, message)).collect(), page)
    })))
}

pub(crate) async fn command_state_count(State(app): State<App>) -> Response {
    ok(&app.read(|world| {
        let of_type = |commands: &[Command], name: &str| {
            commands.iter().filter(|found| command_type(found.schedule_time) == name).count()
        };
        ["START_PROCESS", "COMPLEMENT_DATA"]
            .map(|name| {
                json!({
                    "commandState": name,
                    "normalCount": of_type(&world.commands, name),
                    "errorCount": of_type(&world.error_commands, name),
                })
            })
            .into_iter()
            .collect()
    }))
}

pub(crate) async fn masters(State(app): State<App>) -> Response {
    let alive = app.change(|world| {
        let none = strike(&mut world.faults, Operation::Masters, |kind| kind == FaultKind::NoMaster);
        if none.is_empty() { world.settings.masters } else { 0 }
    });
    let rows: Value =
        (1..=alive).map(|id| json!({"id": id, "host": "127.0.0.1", "port": 5678, "resInfo": "{}"})).collect();
    ok(&rows)
}

pub(crate) async fn nodes(State(app): State<App>, Path(node): Path<String>) -> Answer {
    match node.as_str() {
        "MASTER" => Ok(masters(State(app)).await),
        "WORKER" | "ALERT_SERVER" => Ok(ok(&json!([]))),
        _ => Err(Refused::text(format!("no node type {node}"))),
    }
}

fn row(profile: Profile, command: &Command, message: Option<&str>) -> Value {
    let noun = profile.noun();
    let mut row = json!({
        "id": command.id,
        "commandType": command_type(command.schedule_time),
        format!("{noun}DefinitionCode"): command.definition,
        format!("{noun}DefinitionVersion"): 1,
        // Before 3.3 no instance exists while the command waits, and the field is 0.
        format!("{noun}InstanceId"): command.instances.first().copied().unwrap_or(0),
        "commandParam": command.command_param,
        "startTime": shown(command.at),
        "updateTime": shown(command.at),
    });
    if let (Some(message), Some(row)) = (message, row.as_object_mut()) {
        row.insert("message".to_owned(), json!(message));
    }
    row
}
