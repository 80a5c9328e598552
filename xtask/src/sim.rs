//! `cargo xtask sim`: the simulation for as long as you like.

use clap::Args;

use crate::failure::Outcome;
use crate::mutants;
use crate::process;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Which runs, and how they are told. Without any a hundred seeds run.
#[derive(Debug, Args)]
pub(crate) struct SimArguments {
    /// How many seeds
    #[arg(long, default_value_t = 100, conflicts_with = "seed")]
    seeds: u64,
    /// The first seed; alone, the only one
    #[arg(long)]
    seed: Option<u64>,
    /// Steps of each run before faults stop
    #[arg(long, default_value_t = 4000)]
    steps: u64,
    /// Threads; by default one for each processor
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// With one seed: the only steps at which anything out of the ordinary happens
    #[arg(long, value_name = "STEP,STEP", requires = "seed")]
    only: Option<String>,
    /// With one seed: tell the run call by call
    #[arg(long, requires = "seed")]
    tell: bool,
    /// Break each paragraph of the protocol, look whether the simulation tells, and write the table
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    mutants: bool,
    /// Only the mutant of this name
    #[arg(long, value_name = "NAME", requires = "mutants")]
    mutant: Option<String>,
}

/// Build the simulation with a profile of its own, and run it.
pub(crate) fn run(workspace: &Workspace, progress: &Progress, arguments: &SimArguments) -> Outcome {
    if arguments.mutants {
        return mutants::run(workspace, progress, arguments.steps, arguments.threads, arguments.mutant.as_deref());
    }
    progress.step("building the simulation", || {
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--locked", "--profile", "sim", "--package", "lakebell-testkit", "--bin", "lakebell-sim"]);
        process::run(&mut cargo)
    })?;
    let mut program = std::process::Command::new(workspace.target("sim/lakebell-sim"));
    program.args(["--steps", &arguments.steps.to_string(), "--threads", &arguments.threads.to_string()]);
    match arguments.seed {
        Some(seed) => program.args(["--seed", &seed.to_string()]),
        None => program.args(["--seeds", &arguments.seeds.to_string()]),
    };
    if let Some(only) = &arguments.only {
        program.args(["--only", only]);
    }
    if arguments.tell {
        program.arg("--tell");
    }
    process::run(&mut program)
}
