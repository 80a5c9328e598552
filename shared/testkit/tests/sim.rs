//! A short run of the simulation, with each `cargo test`; `cargo xtask sim` runs it for as long as you like.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use lakebell_testkit::sim::{Plan, shrink, simulate};

const SEEDS: u64 = 30;
const STEPS: u64 = 1500;

#[test]
fn no_rule_breaks_in_a_short_run() {
    let mut commits = 0;
    for seed in 1..=SEEDS {
        let plan = Plan::new(seed, STEPS);
        let report = simulate(&plan);
        commits += report.counts.commits;
        if !report.wrong.is_empty() {
            let (smaller, report) = shrink(&plan, &report, Duration::from_secs(20));
            let end: Vec<&String> = report.story.iter().rev().take(60).rev().collect();
            panic!("{:#?}\nafter {end:#?}\nrun again: cargo xtask sim {smaller} --tell", report.wrong);
        }
    }
    assert!(commits > SEEDS * 20, "only {commits} commits");
}

#[test]
fn the_same_plan_is_the_same_run() {
    let plan = Plan { tells: true, ..Plan::new(83, 1200) };
    let (one, other) = (simulate(&plan), simulate(&plan));
    let differs = one.story.iter().zip(&other.story).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(one.counts, other.counts);
    // And telling it changes nothing.
    assert_eq!(simulate(&Plan { tells: false, ..plan }).counts, one.counts);
}

#[test]
fn what_is_left_out_does_not_change_the_rest() {
    let whole = simulate(&Plan::new(8, 1200));
    let same = Plan { only: Some(whole.events.clone()), ..Plan::new(8, 1200) };
    assert_eq!(simulate(&same).counts, whole.counts);
    let nothing = simulate(&Plan { only: Some(std::collections::BTreeSet::new()), ..Plan::new(8, 1200) });
    assert_eq!((nothing.counts.commits, nothing.counts.faults, nothing.counts.deaths), (0, 0, 0));
    assert_eq!(nothing.wrong, Vec::<String>::new());
}
