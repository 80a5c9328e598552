//! Real tables of all formats, replayed object by object through `observe`: in the order in which
//! their writers wrote, in other orders, with duplicates, and with every notification lost and a
//! scan at the end.

mod cases;
mod replay;

use lakebell_domain::asset::Format;
use lakebell_testkit::SeededRandom;
use serde_json::json;

use cases::{Case, Step, cases, hadoop_tables, in_catalog};
use replay::Replay;

/// How many orders each case is replayed in.
const SEEDS: u64 = 10;

async fn in_order(case: &Case) -> Replay {
    let replay = Replay::begin(case).await;
    for step in &case.steps {
        replay.apply(step);
        replay.notify(step).await;
    }
    replay
}

/// Notifications come late, in any order, doubled; of a lossy replay every third never comes.
async fn disordered(case: &Case, seed: u64, lossy: bool) -> Replay {
    let replay = Replay::begin(case).await;
    let random = SeededRandom::new(seed);
    let mut pending: Vec<&Step> = Vec::new();
    for step in &case.steps {
        replay.apply(step);
        pending.extend((0..2).map(|_| step).filter(|_| !lossy || random.below(3) > 0));
        while !pending.is_empty() && random.below(3) > 0 {
            let at = usize::try_from(random.below(pending.len() as u64)).unwrap();
            replay.notify(pending.swap_remove(at)).await;
        }
    }
    while !pending.is_empty() {
        let at = usize::try_from(random.below(pending.len() as u64)).unwrap();
        replay.notify(pending.swap_remove(at)).await;
    }
    replay
}

fn assert_right(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn every_history_in_its_own_order(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.is_readable()) {
        let replay = in_order(case).await;
        // Before anything is scanned: notifications alone lead to every commit.
        wrong.extend(replay.wrong_count(case, "in order"));
        replay.come_to_rest().await;
        wrong.extend(replay.wrong_at_the_end(case, "in order"));
        wrong.extend(replay.wrong_count(case, "in order, at rest"));
    }
    assert_right(&wrong);
}

async fn every_history_in_any_order(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.is_readable()) {
        for seed in 1..=SEEDS {
            for lossy in [false, true] {
                let replay = disordered(case, seed, lossy).await;
                replay.come_to_rest().await;
                let how = format!("seed {seed}, lossy {lossy}");
                wrong.extend(replay.wrong_at_the_end(case, &how));
                wrong.extend(replay.wrong_count(case, &how));
            }
        }
    }
    assert_right(&wrong);
}

async fn every_history_with_nothing_notified(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.is_readable()) {
        let replay = Replay::begin(case).await;
        case.steps.iter().for_each(|step| replay.apply(step));
        replay.come_to_rest().await;
        wrong.extend(replay.wrong_at_the_end(case, "all lost"));
        wrong.extend(replay.wrong_count(case, "all lost"));
    }
    assert_right(&wrong);
}

/// A table that is registered when all of it is there.
async fn every_history_registered_at_its_end(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.is_readable()) {
        let replay = Replay::begin_after(case).await;
        wrong.extend(replay.wrong_at_the_end(case, "registered late"));
        let trail = replay.trail();
        replay.come_to_rest().await;
        if replay.trail() != trail {
            wrong.push(format!("{}: a scan after a late registration finds something", case.name));
        }
    }
    assert_right(&wrong);
}

/// A table that is registered when all of it is there, and a target that asks for each of its commits.
async fn every_history_declared_from_before(cases: Vec<Case>) {
    let mut wrong = Vec::new();
    for case in cases.iter().filter(|case| case.is_readable()) {
        wrong.extend(Replay::begin_after(case).await.wrong_from_before(case).await);
    }
    assert_right(&wrong);
}

async fn every_damaged_history_says_where_it_stops(cases: Vec<Case>) {
    let mut met = 0;
    for case in cases.iter().filter(|case| !case.is_readable()) {
        let main = in_order(case).await.state("main");
        assert!(main.trouble.is_some(), "{}: {:?}", case.name, main.table);
        met += 1;
    }
    assert!(met > 0);
}

macro_rules! replayed {
    ($module:ident, $cases:expr) => {
        mod $module {
            use super::*;

            #[tokio::test]
            async fn in_its_own_order_each_data_commit_counts_once() {
                super::every_history_in_its_own_order($cases).await;
            }

            #[tokio::test]
            async fn in_any_order_doubled_late_and_lossy_it_ends_in_the_same_state() {
                super::every_history_in_any_order($cases).await;
            }

            #[tokio::test]
            async fn every_notification_lost_and_a_scan_at_the_end() {
                super::every_history_with_nothing_notified($cases).await;
            }

            #[tokio::test]
            async fn registered_at_the_end_it_is_where_its_writer_left_it() {
                super::every_history_registered_at_its_end($cases).await;
            }

            #[tokio::test]
            async fn declared_from_before_each_data_commit_in_storage_starts_once() {
                super::every_history_declared_from_before($cases).await;
            }
        }
    };
}

replayed!(paimon, cases(Format::Paimon));
replayed!(delta, cases(Format::Delta));
replayed!(iceberg, cases(Format::Iceberg));
replayed!(hudi, cases(Format::Hudi));

// The same where a catalog says which file is current.
replayed!(iceberg_in_a_catalog, in_catalog(&json!({"type": "rest", "url": "https://catalog.internal"})));
replayed!(iceberg_of_hadoop, hadoop_tables());

#[tokio::test]
async fn a_damaged_history_says_where_it_stops() {
    for format in Format::ALL {
        every_damaged_history_says_where_it_stops(cases(format)).await;
    }
}
