//! `tokens`: make, list, rotate and revoke.

use lakebell_domain::ids::{ProjectCode, TokenId};
use serde_json::{Map, Value, json};

use crate::args::{TokenArgs, TokensCommand};
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{Table, at, fields, moment};

/// Runs a command on the tokens of a project, or of the deployment.
pub(crate) async fn run(api: &Api, project: Option<ProjectCode>, command: &TokensCommand) -> Result<Report, CliError> {
    let project = project.map(|project| project.to_string());
    let path: Vec<&str> = match &project {
        Some(project) => vec!["projects", project, "tokens"],
        None => vec!["tokens"],
    };
    match command {
        TokensCommand::Create(args) => create(api, &path, args).await,
        TokensCommand::List => list(api, &path).await,
        TokensCommand::Rotate { id, overlap } => rotate(api, &path, id, *overlap).await,
        TokensCommand::Revoke { id } => revoke(api, &path, id).await,
    }
}

async fn create(api: &Api, path: &[&str], args: &TokenArgs) -> Result<Report, CliError> {
    let mut body = Map::new();
    body.insert("name".to_owned(), args.name.clone().into());
    body.insert("rights".to_owned(), args.rights.iter().map(|right| right.as_str()).collect());
    body.insert("lifeDays".to_owned(), args.life.into());
    body.insert("signed".to_owned(), args.signed.into());
    if args.path {
        body.insert("carried".to_owned(), "path".into());
    }
    if let Some(principal) = &args.principal {
        body.insert("carried".to_owned(), "principal".into());
        body.insert("principal".to_owned(), principal.clone().into());
    }
    let answer = api.send(&Request::post(path).body(&body)?).await?;
    Ok(Report::new(shown_once(&answer), answer))
}

async fn rotate(api: &Api, path: &[&str], id: &TokenId, overlap: u16) -> Result<Report, CliError> {
    let path = [path, &[id.as_str(), "rotate"]].concat();
    let answer = api.send(&Request::post(&path).body(&json!({ "overlapHours": overlap }))?).await?;
    let old = format!("the old secret stays good for {overlap} hours\n");
    Ok(Report::new(shown_once(&answer) + &old, answer))
}

async fn revoke(api: &Api, path: &[&str], id: &TokenId) -> Result<Report, CliError> {
    api.send(&Request::delete(&[path, &[id.as_str()]].concat())).await?;
    let text = format!("Token {id} is revoked; it is refused everywhere within a minute.\n");
    Ok(Report::new(text, json!({ "id": id, "standing": "revoked" })))
}

async fn list(api: &Api, path: &[&str]) -> Result<Report, CliError> {
    let items = api.list(path, &[], None).await?;
    let mut table = Table::new(["ID", "NAME", "PROJECT", "RIGHTS", "CARRIED", "STANDING", "EXPIRES"]);
    for item in &items {
        let project =
            item.get("project").filter(|project| !project.is_null()).map_or("all".to_owned(), Value::to_string);
        let expires = moment(&at(item, "/expiresAt"));
        table.row([
            at(item, "/id"),
            at(item, "/name"),
            project,
            rights(item),
            at(item, "/carried"),
            at(item, "/standing"),
            expires,
        ]);
    }
    let text = table.or("There is no token but the deployment's own.");
    Ok(Report::new(text, json!({ "items": items })))
}

fn rights(item: &Value) -> String {
    let words = item.get("rights").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(",")
}

/// What is shown this once comes first, alone on its line, so that it can be copied.
fn shown_once(answer: &Value) -> String {
    let mut rows =
        vec![("id", at(answer, "/id")), ("rights", rights(answer)), ("expires", moment(&at(answer, "/expiresAt")))];
    for (label, field) in [("token", "token"), ("signing key", "signingKey"), ("principal", "principal")] {
        if let Some(text) = answer.get(field).and_then(Value::as_str) {
            rows.push((label, text.to_owned()));
        }
    }
    let note = if answer.get("token").is_some() { "It is not shown again.\n" } else { "" };
    format!("{}{note}", fields("", &rows))
}
