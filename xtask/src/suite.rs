//! `cargo xtask test`: everything that CI checks, in the order in which failures are cheapest to find.

use std::process::Command;
use std::thread;

use crate::failure::{Failure, Outcome};
use crate::licenses;
use crate::local::{self, Route, Scheduler, UpOptions};
use crate::process;
use crate::progress::Progress;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// The end-to-end tests.
const END_TO_END: &str = "lakebell-tests";

/// The Python environments: of the emulator, and of the linter.
#[derive(Debug)]
struct Environments {
    aws: Venv,
    sam: Venv,
}

/// Run it all; the first failure ends it, with nothing left running.
pub(crate) fn run(workspace: &Workspace, progress: &Progress, quick: bool) -> Outcome {
    let cargo = |arguments: &[&str]| process::run(workspace.cargo().args(arguments));
    progress.step("formatting", || cargo(&["fmt", "--all", "--check"]))?;
    progress.step("licences", || licenses::check(workspace, progress))?;
    // Installing packages mostly waits, so it goes beside compiling.
    let environments = thread::scope(|scope| {
        let environments = scope.spawn(|| environments(workspace, progress));
        progress.step("clippy", || {
            cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"])
        })?;
        progress.step("unit tests", || cargo(&["test", "--locked", "--workspace", "--exclude", END_TO_END]))?;
        environments.join().map_err(|_| Failure::new("the thread that makes the Python environments died"))?
    })?;
    template(workspace, progress, &environments)?;
    if !quick {
        end_to_end(workspace, progress)?;
    }
    progress.say("all passed");
    Ok(())
}

fn environments(workspace: &Workspace, progress: &Progress) -> Outcome<Environments> {
    progress.step("Python environments", || {
        Ok(Environments {
            aws: Venv::ensure(workspace, "venv", "localstack/requirements.txt")?,
            sam: Venv::ensure(workspace, "venv-sam", "localstack/requirements-sam.txt")?,
        })
    })
}

/// The lint of the SAM template, and the rules that a lint does not know.
fn template(workspace: &Workspace, progress: &Progress, environments: &Environments) -> Outcome {
    progress.step("template rules", || {
        process::run(&mut environments.aws.script(&workspace.path("infra/test_template.py")))
    })?;
    progress.step("sam validate --lint", || {
        let mut sam = Command::new(environments.sam.program("sam"));
        sam.args(["validate", "--lint", "--region", "us-east-1", "--template"]);
        sam.arg(workspace.path("infra/template.yaml")).env("SAM_CLI_TELEMETRY", "0");
        process::run(&mut sam)
    })
}

/// The end-to-end tests, on a local AWS on a free port, which is stopped whatever comes of them.
fn end_to_end(workspace: &Workspace, progress: &Progress) -> Outcome {
    let scheduler = Scheduler::Standin { profile: "3.3".to_owned(), arguments: Vec::new() };
    let options = UpOptions { port: 0, scheduler, route: Route::Eventbridge };
    let local = local::up(workspace, progress, &options)?;
    let tested = progress.step("end-to-end tests", || {
        let mut cargo = workspace.cargo();
        cargo.args(["test", "--locked", "--package", END_TO_END]);
        cargo.env("LAKEBELL_LOCAL", local::description(workspace, local.port));
        process::run(&mut cargo)
    });
    local::down(workspace, progress, Some(local.port), false)?;
    tested
}
