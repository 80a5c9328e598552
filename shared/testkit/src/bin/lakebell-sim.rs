//! `cargo xtask sim`: many runs of the simulation, and what came of them.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lakebell_testkit::sim::{Counts, Plan, Report, shrink, simulate};

const USAGE: &str =
    "lakebell-sim [--seed FIRST] [--seeds N] [--steps M] [--threads T] [--only STEP,STEP] [--tell] [--no-shrink]";
/// How long a failing run is made smaller.
const SHRINKING: Duration = Duration::from_mins(1);

/// What to run.
struct Options {
    first: u64,
    seeds: u64,
    steps: u64,
    threads: usize,
    plan: Option<Plan>,
    shrinks: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { first: 1, seeds: 0, steps: 4000, threads: 0, plan: None, shrinks: true };
        let (mut only, mut tells, mut has_seed) = (None, false, false);
        while let Some(name) = arguments.next() {
            let mut number = || {
                let text = arguments.next().unwrap_or_default();
                text.parse::<u64>().map_err(|_| format!("{name} wants a number, not `{text}`"))
            };
            match name.as_str() {
                "--seed" => {
                    options.first = number()?;
                    has_seed = true;
                }
                "--seeds" => options.seeds = number()?,
                "--steps" => options.steps = number()?,
                "--threads" => options.threads = usize::try_from(number()?).unwrap_or(1),
                "--only" => {
                    let text = arguments.next().unwrap_or_default();
                    let steps = text.split(',').map(str::parse::<u64>).collect::<Result<_, _>>();
                    only = Some(steps.map_err(|_| format!("--only wants steps, as in 3,17, not `{text}`"))?);
                }
                "--tell" => tells = true,
                "--no-shrink" => options.shrinks = false,
                other => return Err(format!("there is no option `{other}`; {USAGE}")),
            }
        }
        if options.seeds == 0 {
            options.seeds = if has_seed { 1 } else { 100 };
        }
        if options.threads == 0 {
            options.threads = std::thread::available_parallelism().map_or(1, usize::from);
        }
        if only.is_some() || tells {
            options.plan = Some(Plan { seed: options.first, steps: options.steps, only, tells });
        }
        Ok(options)
    }
}

/// What came of all runs so far.
#[derive(Default)]
struct Sum {
    counts: Counts,
    runs: u64,
    extra: Vec<String>,
    failed: Option<(Plan, Report)>,
}

fn run_all(options: &Options) -> Sum {
    let next = AtomicU64::new(options.first);
    let end = options.first + options.seeds;
    let stop = AtomicBool::new(false);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let plan = Plan::new(seed, options.steps);
                    let report = simulate(&plan);
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    sum.runs += 1;
                    sum.counts.add(&report.counts);
                    sum.extra.extend(report.extra.iter().map(|extra| format!("seed {seed}: {extra}")));
                    // The first seed that fails, whichever thread met it, is the one that is told.
                    let is_first = sum.failed.as_ref().is_none_or(|(known, _)| seed < known.seed);
                    if !report.wrong.is_empty() && is_first {
                        sum.failed = Some((plan, report));
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn broken(report: &Report, rules: &[&str]) -> usize {
    let of_rules = |line: &&String| rules.iter().any(|rule| line.starts_with(rule));
    report.wrong.iter().filter(of_rules).count()
}

/// A run is long; of one that was made smaller the end says most.
fn tell(report: &Report, all: bool) {
    let skipped = report.story.len().saturating_sub(if all { usize::MAX } else { 150 });
    for line in report.story.iter().skip(skipped) {
        println!("{line}");
    }
    for line in &report.wrong {
        println!("BROKEN {line}");
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(complaint) => {
            eprintln!("error: {complaint}");
            return ExitCode::from(2);
        }
    };
    if let Some(plan) = &options.plan {
        let report = simulate(plan);
        tell(&report, true);
        return if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let begun = Instant::now();
    let sum = run_all(&options);
    let Counts { commits, claims, instances, extra, faults, deaths, calls } = sum.counts;
    let none = Report::default();
    let failed = sum.failed.as_ref().map_or(&none, |(_, report)| report);
    println!(
        "{} runs of {} steps in {:.0} s: {commits} commits, {claims} claims, {instances} instances; {calls} calls, {faults} of \
         them faulty, {deaths} deaths",
        sum.runs,
        options.steps,
        begun.elapsed().as_secs_f64()
    );
    println!(
        "lost {}, doubled {}, invented {}, other rules broken {}; extra instances {extra}, each undecidable by the \
         scheduler's contract",
        broken(failed, &["rule 3"]),
        broken(failed, &["rule 2", "rule 7"]),
        broken(failed, &["rule 4"]),
        broken(failed, &["rule 1", "rule 5", "rule 6", "a function"]),
    );
    for line in &sum.extra {
        println!("extra: {line}");
    }
    let Some((plan, report)) = &sum.failed else { return ExitCode::SUCCESS };
    println!("BROKEN with {plan}");
    for line in &report.wrong {
        println!("  {line}");
    }
    if options.shrinks {
        let (smaller, report) = shrink(plan, report, SHRINKING);
        tell(&report, false);
        println!("run again: cargo xtask sim {smaller} --tell");
    }
    ExitCode::FAILURE
}
