//! `cargo xtask demo`: the GMV chain.

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::local;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// How the demo is run.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Leave the local AWS running afterwards
    #[arg(long)]
    keep: bool,
}

/// Start a local AWS of its own, play the demo, and stop it again unless it is to be kept.
pub(crate) fn run(workspace: &Workspace, progress: &Progress, arguments: &DemoArguments) -> Outcome {
    let scheduler = local::Scheduler::Standin { profile: "3.3".to_owned(), arguments: Vec::new() };
    let options = local::UpOptions { port: 0, scheduler, route: local::Route::Eventbridge };
    let local = local::up(workspace, progress, &options)?;
    let outcome = play(&local);
    if !arguments.keep {
        local::down(workspace, progress, Some(local.port), false)?;
    }
    outcome
}

/// The story itself.
fn play(local: &local::Local) -> Outcome {
    Err(Failure::new(format!("the demo is not available yet; the local AWS on port {} works", local.port)))
}
