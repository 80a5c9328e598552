//! `cargo xtask test`: everything that CI checks, in the order in which failures are cheapest to find.

use std::process::Command;
use std::thread;

use crate::demo;
use crate::failure::{Failure, Outcome};
use crate::licenses;
use crate::local::{self, Route, Scheduler, UpOptions};
use crate::mutants;
use crate::process;
use crate::progress::Progress;
use crate::requests;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// The end-to-end tests.
const END_TO_END: &str = "lakebell-tests";
/// What writers' own clients are.
const CLIENTS: &str = "tests/clients/requirements.txt";
/// dbt, and OpenLineage's wrapper of it.
const DBT: &str = "tests/clients/requirements-dbt.txt";
/// How many of them run side by side. They mostly wait, so more than there are processors.
const SIDE_BY_SIDE: &str = "8";

/// The Python environments: of the emulator, of the linter, of the real writers of tables, and of writers' clients.
#[derive(Debug)]
struct Environments {
    aws: Venv,
    sam: Venv,
    writers: Option<Writers>,
}

/// The real writers, of Paimon tables, and of Iceberg and Delta tables; the clients of writers; and what makes up requests.
#[derive(Debug)]
struct Writers {
    paimon: Venv,
    lake: Venv,
    clients: Venv,
    dbt: Venv,
    requests: Venv,
}

/// Run it all; the first failure ends it, with nothing left running.
pub(crate) fn run(workspace: &Workspace, progress: &Progress, quick: bool) -> Outcome {
    let cargo = |arguments: &[&str]| process::run(workspace.cargo().args(arguments));
    progress.step("formatting", || cargo(&["fmt", "--all", "--check"]))?;
    progress.step("licences", || licenses::check(workspace, progress))?;
    // Installing packages mostly waits, so it goes beside compiling.
    let environments = thread::scope(|scope| {
        let environments = scope.spawn(|| environments(workspace, progress, quick));
        progress.step("clippy", || {
            cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"])
        })?;
        progress.step("unit tests", || cargo(&["test", "--locked", "--workspace", "--exclude", END_TO_END]))?;
        progress.step("mutants still compile", || mutants::check(workspace))?;
        environments.join().map_err(|_| Failure::new("the thread that makes the Python environments died"))?
    })?;
    template(workspace, progress, &environments)?;
    if let Some(writers) = &environments.writers {
        progress.step("writers' own clients", || {
            let mut cargo = workspace.cargo();
            cargo.args(["test", "--locked", "--package", "lakebell-push-api", "--test", "it", "clients::"]);
            process::run(cargo.env("LAKEBELL_CLIENTS_PYTHON", writers.clients.program("python")))
        })?;
        end_to_end(workspace, progress, writers)?;
    }
    progress.say("all passed");
    Ok(())
}

/// The writers and their clients are for the slower tests alone.
fn environments(workspace: &Workspace, progress: &Progress, quick: bool) -> Outcome<Environments> {
    let writers = || {
        Ok::<_, Failure>(Writers {
            paimon: demo::writer(workspace)?,
            lake: demo::lake_writer(workspace)?,
            clients: Venv::ensure(workspace, "venv-clients", CLIENTS)?,
            dbt: Venv::ensure(workspace, "venv-dbt", DBT)?,
            requests: requests::environment(workspace)?,
        })
    };
    progress.step("Python environments", || {
        Ok(Environments {
            aws: Venv::ensure(workspace, "venv", "localstack/requirements.txt")?,
            sam: Venv::ensure(workspace, "venv-sam", "localstack/requirements-sam.txt")?,
            writers: if quick { None } else { Some(writers()?) },
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
fn end_to_end(workspace: &Workspace, progress: &Progress, writers: &Writers) -> Outcome {
    progress.step("building the command line", || {
        process::run(workspace.cargo().args(["build", "--locked", "--package", "lakebell-cli"]))
    })?;
    // Before the deployment, whose schedules run: a pass every five minutes would find what a test
    // shows that a hint found.
    progress.step("building the end-to-end tests", || {
        process::run(workspace.cargo().args(["test", "--locked", "--package", END_TO_END, "--no-run"]))
    })?;
    let scheduler = Scheduler::Standin { profile: "3.3".to_owned(), arguments: Vec::new() };
    let options = UpOptions { port: 0, scheduler, route: Route::Eventbridge };
    let local = local::up(workspace, progress, &options)?;
    let tested = progress.step("end-to-end tests", || {
        let mut cargo = workspace.cargo();
        cargo.args(["test", "--locked", "--package", END_TO_END, "--"]);
        cargo.args(["--test-threads", SIDE_BY_SIDE, "--show-output"]);
        cargo.env("LAKEBELL_LOCAL", local::description(workspace, local.port));
        cargo.env("LAKEBELL_CLI", workspace.target("debug/lakebell"));
        cargo.env("LAKEBELL_WRITER_PYTHON", writers.paimon.program("python"));
        cargo.env("LAKEBELL_LAKE_PYTHON", writers.lake.program("python"));
        cargo.env("LAKEBELL_CLIENTS_PYTHON", writers.clients.program("python"));
        cargo.env("LAKEBELL_DBT_PYTHON", writers.dbt.program("python"));
        process::run(&mut cargo)
    });
    let tested = tested.and_then(|()| {
        progress.step("made-up requests to the API", || requests::send(workspace, &writers.requests, &local))
    });
    local::down(workspace, progress, Some(local.port), false)?;
    tested
}
