//! `dead-letters`: messages that nobody tries any more.

use std::fmt::Write as _;

use lakebell_engine::ports::dead_letters::DeadQueue;
use serde_json::{Value, json};

use crate::args::DeadLettersCommand;
use crate::client::{Api, Request};
use crate::error::CliError;
use crate::report::Report;
use crate::text::{Table, at};

/// Lists them, or puts them back.
pub(crate) async fn run(api: &Api, command: &DeadLettersCommand) -> Result<Report, CliError> {
    match command {
        DeadLettersCommand::List => list(api).await,
        DeadLettersCommand::Drain { queue: Some(queue) } => drain(api, &[*queue]).await,
        DeadLettersCommand::Drain { queue: None } => drain(api, &DeadQueue::ALL).await,
    }
}

async fn list(api: &Api) -> Result<Report, CliError> {
    let answer = api.send(&Request::get(&["dead-letters"])).await?;
    let mut table = Table::new(["QUEUE", "MESSAGES"]);
    for lying in answer["items"].as_array().into_iter().flatten() {
        table.row([at(lying, "/queue"), at(lying, "/messages")]);
    }
    Ok(Report::new(table.or("none"), answer))
}

/// Until each queue is empty: one request puts back a thousand at most.
async fn drain(api: &Api, queues: &[DeadQueue]) -> Result<Report, CliError> {
    let mut text = String::new();
    let mut items = Vec::new();
    for queue in queues {
        let mut put_back = 0;
        loop {
            let answer = api.send(&Request::post(&["dead-letters", queue.as_str(), "drain"])).await?;
            put_back += answer["putBack"].as_u64().unwrap_or_default();
            if answer["isEmpty"] != Value::Bool(false) {
                break;
            }
        }
        let _ = writeln!(text, "{}: {put_back} put back", queue.as_str());
        items.push(json!({"queue": queue.as_str(), "putBack": put_back}));
    }
    Ok(Report::new(text, json!({ "items": items })))
}
