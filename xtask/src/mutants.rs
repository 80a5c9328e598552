//! `cargo xtask sim --mutants`: shows that the simulation can find faults, by breaking each paragraph of the
//! protocol and looking whether it tells.
//!
//! The product has no switch for this. The faults are a table of edits to its source, in `xtask/mutants/`. They are made
//! in a copy of the tree, all at once, each behind a number that the copy reads from its environment, so that one build
//! serves them all ([ADR 0017](../../docs/adr/0017-mutants-in-a-copy.md)). A test compares the table with the source.

mod copy;
mod table;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use self::table::Mutant;
use crate::failure::{During, Failure, Outcome};
use crate::process;
use crate::progress::Progress;
use crate::workspace::Workspace;

/// Seeds that are tried at most for a mutant that is to be caught.
const SEEDS: u64 = 3_000;
/// The same for the control, and for one that can do no harm.
const SEEDS_OF_HARMLESS: u64 = 200;
/// Between these lines of the document the table stands.
const MARKS: (&str, &str) = ("<!-- mutants: begin -->\n", "<!-- mutants: end -->");
/// Where the table is shown.
const DOCUMENT: &str = "docs/simulation.md";

/// What the simulation said of one mutant.
enum Told {
    Caught { seed: String, rule: String },
    Nothing,
}

/// Builds the copy, runs the simulation with each fault, and writes the table. One name stands for itself.
pub(crate) fn run(
    workspace: &Workspace,
    progress: &Progress,
    steps: u64,
    threads: usize,
    name: Option<&str>,
) -> Outcome {
    let mutants = table::read(&workspace.path("xtask/mutants"))?;
    let program = progress.step("building the copy with every mutant", || {
        let tree = copy::make(workspace, &mutants)?;
        process::run(cargo(workspace, &tree, "build").args(["--profile", "sim", "--bin", "lakebell-sim"]))?;
        Ok(workspace.target("mutants/build/sim/lakebell-sim"))
    })?;
    progress.step("the simulation without a mutant", || {
        match told(&program, 0, SEEDS_OF_HARMLESS, steps, threads)? {
            Told::Nothing => Ok(()),
            Told::Caught { seed, rule } => Err(Failure::new(format!("seed {seed} fails without a mutant: {rule}"))),
        }
    })?;
    let mut rows = Vec::new();
    let mut wrong = Vec::new();
    for (number, mutant) in (1..).zip(&mutants).filter(|(_, mutant)| name.is_none_or(|name| mutant.name == name)) {
        let begun = Instant::now();
        let seeds = if mutant.harmless.is_some() { SEEDS_OF_HARMLESS } else { SEEDS };
        let told = told(&program, number, seeds, steps, threads)?;
        let (seed, rule) = match (&told, &mutant.harmless) {
            (Told::Caught { seed, rule }, None) => (seed.clone(), rule.clone()),
            (Told::Nothing, Some(why)) => ("none".to_owned(), format!("harmless: {why}")),
            (Told::Nothing, None) => {
                wrong.push(format!("{} was not caught by {SEEDS} seeds", mutant.name));
                ("none".to_owned(), "NOT CAUGHT".to_owned())
            }
            (Told::Caught { seed, rule }, Some(_)) => {
                wrong.push(format!("{} is said to be harmless, and seed {seed} says: {rule}", mutant.name));
                (seed.clone(), rule.clone())
            }
        };
        progress.say(&format!("{}: seed {seed}, {rule} ({:.1} s)", mutant.name, begun.elapsed().as_secs_f64()));
        rows.push(row(mutant, &seed, steps, &rule));
    }
    if name.is_none() {
        write_table(&workspace.path(DOCUMENT), &rows)?;
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join("\n"))) }
}

fn row(mutant: &Mutant, seed: &str, steps: u64, rule: &str) -> String {
    let steps = if seed == "none" { "-".to_owned() } else { steps.to_string() };
    format!("| {} | `{}`: {} | {seed} | {steps} | {rule} |\n", mutant.paragraph, mutant.name, mutant.what)
}

/// Runs the simulation with one fault until a rule breaks; 0 for none.
fn told(program: &Path, number: usize, seeds: u64, steps: u64, threads: usize) -> Outcome<Told> {
    let mut command = Command::new(program);
    command.args(["--seeds", &seeds.to_string(), "--steps", &steps.to_string()]);
    command.args(["--threads", &threads.to_string(), "--no-shrink"]);
    let output = command.env(copy::VARIABLE, number.to_string()).output().during("run the simulation")?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(Told::Nothing);
    }
    let seed = printed.lines().find_map(|line| line.strip_prefix("BROKEN with --seed ")?.split(' ').next());
    let rule = printed.lines().skip_while(|line| !line.starts_with("BROKEN")).nth(1);
    match (seed, rule) {
        (Some(seed), Some(rule)) => Ok(Told::Caught { seed: seed.to_owned(), rule: short(rule) }),
        _ => Err(Failure::new(format!("the simulation ended with {}: {printed}", output.status))),
    }
}

/// A broken rule without the keys of whom it broke for.
fn short(rule: &str) -> String {
    let is_key = |word: &str| word.len() >= 32 && word.chars().all(|letter| letter.is_ascii_hexdigit());
    let words: Vec<&str> = rule.split_whitespace().map(|word| if is_key(word) { "K" } else { word }).collect();
    let mut text = words.join(" ").replace('|', "/");
    if let Some((end, _)) = text.char_indices().nth(110) {
        text.truncate(end);
        text.push_str(" ...");
    }
    text
}

fn write_table(document: &Path, rows: &[String]) -> Outcome {
    let text = fs::read_to_string(document).during(format!("read {}", document.display()))?;
    let marked = text.split_once(MARKS.0).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(MARKS.1)?;
        Some((before, after))
    });
    let Some((before, after)) = marked else {
        return Err(Failure::new(format!("{} has no place for the table", document.display())));
    };
    let head = "| paragraph | what is broken | seed | steps | what the rules said |\n|---|---|---|---|---|\n";
    let table: String = rows.concat();
    let whole = format!("{before}{}{head}{table}{}{after}", MARKS.0, MARKS.1);
    fs::write(document, whole).during(format!("write {}", document.display()))
}

/// Cargo for the copy.
fn cargo(workspace: &Workspace, tree: &Path, verb: &str) -> Command {
    let mut cargo = workspace.cargo();
    cargo.current_dir(tree).args([verb, "--offline", "--package", "lakebell-testkit"]);
    // Its own folder: cargo tells crates of two checkouts apart by their place in the checkout alone.
    cargo.arg("--target-dir").arg(workspace.target("mutants/build"));
    cargo
}

/// Whether the copy with every fault compiles: a change of the source may leave an edit its place, and take what it
/// uses away.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let tree = copy::make(workspace, &table::read(&workspace.path("xtask/mutants"))?)?;
    process::run(&mut cargo(workspace, &tree, "check"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_edit_still_fits_the_source() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mutants = table::read(&root.join("xtask/mutants")).unwrap();
        assert!(mutants.len() >= 45, "{} mutants", mutants.len());
        let mut files = copy::Files::new(&root);
        for (number, mutant) in (1..).zip(&mutants) {
            files.apply(number, mutant).unwrap();
        }
    }

    /// Where every mutant of a paragraph does no harm, another mechanism does the same, which the mutant names.
    const NOTHING_TO_CATCH: [&str; 1] = ["4.6"];

    #[test]
    fn every_paragraph_has_a_mutant() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mutants = table::read(&root.join("xtask/mutants")).unwrap();
        let paragraphs = [(2, 8), (3, 7), (4, 6), (5, 6)];
        let wanted =
            paragraphs.into_iter().flat_map(|(section, last)| (1..=last).map(move |at| format!("{section}.{at}")));
        for paragraph in wanted.chain(["6".to_owned()]) {
            let of_it: Vec<_> = mutants.iter().filter(|mutant| mutant.paragraph == paragraph).collect();
            assert!(!of_it.is_empty(), "paragraph {paragraph} has no mutant");
            let is_caught = of_it.iter().any(|mutant| mutant.harmless.is_none());
            let expected = !NOTHING_TO_CATCH.contains(&paragraph.as_str());
            assert_eq!(is_caught, expected, "paragraph {paragraph}: a mutant that is to be caught");
        }
    }

    #[test]
    fn keys_are_left_out_of_what_the_rules_said() {
        let said = "  rule 2: trigger 002105fef31e93d82cb46081b4dd58f5 has 2 instances";
        assert_eq!(short(said), "rule 2: trigger K has 2 instances");
    }
}
