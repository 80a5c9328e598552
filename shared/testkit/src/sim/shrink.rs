//! A failing run made smaller: fewer steps, and fewer things out of the ordinary.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{Plan, Report, simulate};

/// What was broken, without the names of whom: a smaller run has to break the same.
fn kinds(report: &Report) -> BTreeSet<String> {
    let is_name = |word: &&str| word.chars().any(|letter| letter.is_ascii_digit()) && *word != "rule";
    let kind = |line: &String| {
        let words: Vec<&str> = line.split(' ').take(14).collect();
        let rule = words.iter().take(2).copied();
        let rest = words.iter().skip(2).copied().filter(|word| !is_name(word));
        rule.chain(rest).collect::<Vec<_>>().join(" ")
    };
    report.wrong.iter().map(kind).collect()
}

/// The smallest failing plan that was found within `limit`, with its run.
pub fn shrink(plan: &Plan, report: &Report, limit: Duration) -> (Plan, Report) {
    let begun = Instant::now();
    let broken = kinds(report);
    let mut best = (plan.clone(), report.clone());
    let attempt = |best: &mut (Plan, Report), plan: Plan| {
        if begun.elapsed() > limit {
            return false;
        }
        let report = simulate(&plan);
        let fails = kinds(&report).intersection(&broken).next().is_some();
        if fails {
            *best = (plan, report);
        }
        fails
    };
    // Fewer steps: up to where it broke, then halves.
    if let Some(broke_at) = best.1.broke_at {
        let shorter = Plan { steps: broke_at, ..best.0.clone() };
        attempt(&mut best, shorter);
    }
    while best.1.broke_at.is_none() && best.0.steps > 1 {
        let shorter = Plan { steps: best.0.steps / 2, ..best.0.clone() };
        if !attempt(&mut best, shorter) {
            let shorter = Plan { steps: best.0.steps - best.0.steps / 8 - 1, ..best.0.clone() };
            if !attempt(&mut best, shorter) {
                break;
            }
        }
    }
    // Fewer events: without whole stretches of them, then without ever shorter ones.
    let mut stretch = best.1.events.len().div_ceil(2);
    while stretch > 0 {
        let events: Vec<u64> = best.1.events.iter().copied().collect();
        let mut is_smaller = false;
        for dropped in events.chunks(stretch) {
            let only: BTreeSet<u64> = best.1.events.iter().copied().filter(|step| !dropped.contains(step)).collect();
            if only.len() < best.1.events.len() {
                let fewer = Plan { only: Some(only), ..best.0.clone() };
                is_smaller |= attempt(&mut best, fewer);
            }
        }
        if !is_smaller || stretch > best.1.events.len() {
            stretch /= 2;
        }
    }
    // What ends earlier now may do with fewer steps.
    if let Some(broke_at) = best.1.broke_at {
        let shorter = Plan { steps: broke_at, ..best.0.clone() };
        attempt(&mut best, shorter);
    }
    let told = Plan { tells: true, ..best.0.clone() };
    let report = simulate(&told);
    (best.0, report)
}
