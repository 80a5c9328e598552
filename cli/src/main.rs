//! `lakebell`: declare what starts what, and find out why something does or does not start.

mod apply;
mod args;
mod audit;
mod client;
mod control;
mod dead_letters;
mod delete;
mod error;
mod file;
mod grants;
mod inspect;
mod lineage;
mod lists;
mod operate;
mod plan;
mod report;
mod sensor;
mod settings;
mod text;
mod tokens;
mod triggers;
mod why;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command, Global, SensorCommand, TableCommand};
use crate::client::Api;
use crate::error::{CliError, FAILED};
use crate::report::Report;
use crate::settings::Access;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let is_json = cli.global.json;
    match run(cli).await.and_then(|report| write(&report, is_json).map(|()| report)) {
        Ok(report) if report.is_complete => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FAILED),
        Err(error) => {
            complain(&error, is_json);
            ExitCode::from(error.exit_status())
        }
    }
}

async fn run(cli: Cli) -> Result<Report, CliError> {
    let Global { api, token, project, json: _ } = cli.global;
    // What the command line itself has wrong is said before anything is looked up.
    let api = || Api::new(Access::resolve(api.as_deref(), token.as_deref())?);
    let of_project = || settings::project(project);
    match &cli.command {
        Command::Apply(args) => apply::run(&api, args, project).await,
        Command::Delete(doomed) => delete::run(&api()?, project, doomed).await,
        Command::Assets { key: None } => lists::assets(&api()?, of_project()?).await,
        Command::Assets { key: Some(key) } => lists::asset(&api()?, of_project()?, key).await,
        Command::Events { key, limit } => lists::events(&api()?, of_project()?, key, *limit).await,
        Command::Triggers(args) => triggers::list(&api()?, of_project()?, args).await,
        Command::Trigger { key } => triggers::show(&api()?, of_project()?, key).await,
        Command::Why { target } => why::run(&api()?, of_project()?, target.as_deref()).await,
        Command::Pause { target, by } => operate::pause(&api()?, of_project()?, target, by).await,
        Command::Resume { target, by } => operate::resume(&api()?, of_project()?, target, by).await,
        Command::Redrive(args) => operate::redrive(&api()?, of_project()?, args).await,
        Command::Skip { key, by } => operate::skip(&api()?, of_project()?, key, by).await,
        Command::Decide(args) => {
            operate::check(args)?;
            operate::decide(&api()?, of_project()?, args).await
        }
        Command::Fire(args) => control::fire(&api()?, of_project()?, args).await,
        Command::Reset { target, by } => control::reset(&api()?, of_project()?, target, by).await,
        Command::PassOver(args) => control::pass_over(&api()?, of_project()?, args).await,
        Command::Switch(args) => {
            let project = if args.all_projects { None } else { Some(of_project()?) };
            control::switch(&api()?, project, args).await
        }
        Command::Replay(args) => control::replay(&api()?, of_project()?, args).await,
        Command::Withdrawn { key } => control::withdrawn(&api()?, of_project()?, key).await,
        Command::Lineage { key, upstream, downstream } => {
            lineage::run(&api()?, of_project()?, key, lineage::direction(*upstream, *downstream)).await
        }
        Command::Audit(args) => audit::audit(&api()?, of_project()?, args).await,
        Command::Doctor => audit::doctor(&api()?).await,
        Command::DeadLetters(command) => dead_letters::run(&api()?, command).await,
        Command::Unregistered => lists::unregistered(&api()?, of_project()?).await,
        Command::AcceptRewrite { key } => lists::accept_rewrite(&api()?, of_project()?, key).await,
        Command::Observe { key } => lists::observe(&api()?, of_project()?, key).await,
        Command::Sensor(SensorCommand::Task(args)) => sensor::task(&api()?, of_project()?, args).await,
        Command::Grants(command) => grants::run(&api()?, of_project()?, command).await,
        Command::Tokens(command) => tokens::run(&api()?, project, command).await,
        Command::Table(TableCommand::Inspect(args)) => inspect::run(args).await,
    }
}

/// Writes a report to the standard output. A reader that has seen enough (`| head`) is no error.
fn write(report: &Report, is_json: bool) -> Result<(), CliError> {
    let written = if is_json {
        writeln!(io::stdout().lock(), "{:#}", report.json)
    } else {
        anstream::stdout().lock().write_all(report.text.as_bytes())
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("the output cannot be written: {error}"), "check where it goes"))
        }
        _ => Ok(()),
    }
}

/// Nothing more can be done where even this cannot be written.
fn complain(error: &CliError, is_json: bool) {
    let _ = if is_json {
        writeln!(io::stderr().lock(), "{:#}", error.to_json())
    } else {
        let label = text::paint(text::BAD, "error:");
        writeln!(anstream::stderr().lock(), "{label} {}", error.to_text())
    };
}
