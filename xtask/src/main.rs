//! The commands of the README: `cargo xtask up`, `down`, `package`, `test`, `licenses`, `sim`, `demo`.
//!
//! Everything that talks to AWS is a small Python script under `localstack/`, run in a virtual environment that xtask
//! makes, so that this crate needs no SDK and builds in seconds.

mod demo;
mod failure;
mod licenses;
mod local;
mod mutants;
mod package;
mod process;
mod progress;
mod requests;
mod sim;
mod suite;
mod venv;
mod workspace;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::failure::Outcome;
use crate::progress::Progress;
use crate::workspace::Workspace;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Builds, tests and runs Lakebell on this machine")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a local AWS, deploy Lakebell to it, and write .lakebell/local.json
    Up(UpArguments),
    /// Stop what `up` started
    Down {
        /// The one on this port; without it the one that .lakebell/local.json names
        #[arg(long, conflicts_with = "all")]
        port: Option<u16>,
        /// All of them
        #[arg(long)]
        all: bool,
    },
    /// Build each function's zip under target/lakebell/ and check its size
    Package,
    /// Run every check and test, the end-to-end tests on a local AWS of their own among them
    Test {
        /// Leave out what needs the release build and the local AWS
        #[arg(long)]
        quick: bool,
    },
    /// Check the licences of all dependencies against xtask/licenses.txt
    Licenses,
    /// Look for a run that breaks a rule: the engine over ports in memory, with faults
    Sim(sim::SimArguments),
    /// Watch real Paimon commits start workflows
    Demo(demo::DemoArguments),
}

#[derive(Debug, Args)]
struct UpArguments {
    /// Port of the local AWS; 0 takes a free one
    #[arg(long, default_value_t = 4566)]
    port: u16,
    /// Base URL of a DolphinScheduler to use, up to and including /dolphinscheduler, instead of the stand-in
    #[arg(long, value_name = "URL", requires = "dolphinscheduler_token")]
    dolphinscheduler: Option<String>,
    /// Access token of that DolphinScheduler
    #[arg(long, value_name = "TOKEN", requires = "dolphinscheduler")]
    dolphinscheduler_token: Option<String>,
    /// The DolphinScheduler version that the stand-in behaves like
    #[arg(long, default_value = "3.3", conflicts_with = "dolphinscheduler")]
    profile: String,
    /// How the bucket notifies
    #[arg(long, value_enum, default_value_t = local::Route::Eventbridge)]
    route: local::Route,
}

impl UpArguments {
    fn options(self) -> local::UpOptions {
        let scheduler = match (self.dolphinscheduler, self.dolphinscheduler_token) {
            (Some(url), Some(token)) => local::Scheduler::At { url, token },
            _ => local::Scheduler::Standin { profile: self.profile, arguments: Vec::new() },
        };
        local::UpOptions { port: self.port, scheduler, route: self.route }
    }
}

fn run(command: Command) -> Outcome {
    let progress = Progress::start();
    let workspace = Workspace::find()?;
    match command {
        Command::Up(arguments) => {
            let local = local::up(&workspace, &progress, &arguments.options())?;
            println!("{}", local.summary(&workspace));
            Ok(())
        }
        Command::Down { port, all } => local::down(&workspace, &progress, port, all),
        Command::Package => package::package(&workspace, &progress).map(|_| ()),
        Command::Test { quick } => suite::run(&workspace, &progress, quick),
        Command::Licenses => licenses::check(&workspace, &progress),
        Command::Sim(arguments) => sim::run(&workspace, &progress, &arguments),
        Command::Demo(arguments) => demo::run(&workspace, &progress, &arguments),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
