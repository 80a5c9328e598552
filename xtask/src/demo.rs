//! `cargo xtask demo`: a GMV chain on real Paimon tables, from two source tables to a dashboard.
//!
//! pypaimon commits to two tables on the local S3; the deployed functions do the rest, and the
//! scheduler stand-in runs each workflow by writing the next table.

mod mixed;
mod story;
mod timeline;

use clap::Args;

use crate::failure::Outcome;
use crate::local::{self, Route, Scheduler, UpOptions};
use crate::process;
use crate::progress::Progress;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// How the demo is run.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Leave the local AWS running afterwards, and say what to try next
    #[arg(long)]
    keep: bool,
    /// Add a group of two formats: a Paimon table, and an Iceberg table that pyiceberg writes
    #[arg(long)]
    mixed: bool,
    /// Port of the local AWS; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// The Python environment of the real writer of tables.
pub(crate) fn writer(workspace: &Workspace) -> Outcome<Venv> {
    Venv::ensure(workspace, "venv-demo", story::REQUIREMENTS)
}

/// The Python environment of the real writers of Iceberg and Delta tables.
pub(crate) fn lake_writer(workspace: &Workspace) -> Outcome<Venv> {
    Venv::ensure(workspace, "venv-lake", "tests/requirements.txt")
}

/// Start a local AWS of its own, play the demo, and stop it again unless it is to be kept.
pub(crate) fn run(workspace: &Workspace, progress: &Progress, arguments: &DemoArguments) -> Outcome {
    let writer = progress.step("Python environment of the writer", || writer(workspace))?;
    let lake = if arguments.mixed {
        Some(progress.step("Python environment of the writer of Iceberg", || lake_writer(workspace))?)
    } else {
        None
    };
    progress.step("building the command line", || {
        process::run(workspace.cargo().args(["build", "--locked", "--package", "lakebell-cli"]))
    })?;
    let scheduler = Scheduler::Standin { profile: "3.3".to_owned(), arguments: Vec::new() };
    let options = UpOptions { port: arguments.port, scheduler, route: Route::Eventbridge };
    let local = local::up(workspace, progress, &options)?;
    let outcome = story::Story { workspace, progress, local: &local, writer: &writer, lake: lake.as_ref() }.play();
    if arguments.keep {
        println!("\n{}\n\n{}", local.summary(workspace), story::what_next(workspace, &local));
    } else {
        local::down(workspace, progress, Some(local.port), false)?;
    }
    outcome
}
