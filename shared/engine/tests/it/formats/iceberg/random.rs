//! Random histories with losers of races, read in random orders with losses.

use std::collections::BTreeSet;

use lakebell_domain::event::Event;
use lakebell_testkit::SeededRandom;

use super::{Draft, KEY};
use crate::formats::Lake;

/// What was truly committed.
#[derive(Default)]
struct Truth {
    heads: BTreeSet<String>,
    data_commits: u64,
    losers: u64,
    number: u64,
}

struct Play {
    lake: Lake,
    random: SeededRandom,
    draft: Draft,
    truth: Truth,
    pending: Vec<String>,
    next_id: i64,
    removes: bool,
}

impl Play {
    fn chance(&self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// One commit, with or without a loser beside it.
    fn commit(&mut self, with_loser: bool) {
        let mut loser = self.draft.clone();
        let number = self.truth.number;
        let loses_before = self.chance(50);
        if with_loser && loses_before {
            self.lose(&mut loser, number);
        }
        let is_data = self.change();
        let file = self.draft.write(&self.lake, &format!("{number:05}-a"));
        self.truth.data_commits += u64::from(is_data);
        self.truth.heads.extend(self.draft.head("main").map(|id| id.to_string()));
        self.truth.number += 1;
        self.pending.push(file);
        if with_loser && !loses_before {
            self.lose(&mut loser, number);
        }
    }

    fn change(&mut self) -> bool {
        let has_head = self.draft.head("main").is_some();
        match self.random.below(10) {
            0 if has_head => false,
            1 if has_head => {
                let id = self.id();
                self.draft.add("main", id, "replace");
                false
            }
            2 if has_head => {
                let head = self.draft.head("main").unwrap();
                self.draft.tag(&format!("t{}", self.random.below(3)), head);
                false
            }
            3 if has_head => {
                let id = self.id();
                self.draft.add("audit", id, "append");
                false
            }
            _ => {
                let id = self.id();
                self.draft.add("main", id, ["append", "overwrite", "delete"][usize::try_from(id % 3).unwrap()]);
                true
            }
        }
    }

    fn lose(&mut self, loser: &mut Draft, number: u64) {
        let changes = self.chance(70);
        if changes {
            let id = self.id();
            loser.add("main", id, "append");
        }
        let file = loser.write(&self.lake, &format!("{number:05}-x{}", self.next_id));
        self.truth.losers += 1;
        self.pending.push(file);
    }

    fn remove_old(&self, keep: usize) {
        let names = self.draft.log.iter().rev().skip(keep + 1);
        for name in names {
            let relative = name.split_once("orders/").unwrap().1;
            self.lake.world.storage.remove(crate::support::BUCKET, &format!("{}/{relative}", crate::formats::ROOT));
        }
    }

    async fn deliver(&mut self, until: usize) {
        while self.pending.len() > until {
            let at = usize::try_from(self.random.below(self.pending.len() as u64)).unwrap();
            let file = if self.chance(20) { self.pending[at].clone() } else { self.pending.swap_remove(at) };
            if !self.chance(20) {
                self.lake.notify(&file).await;
            }
            if self.chance(3) {
                self.lake.scan().await;
            }
        }
    }
}

/// `removes`: the writer keeps only the files of its log, and removes the others.
async fn play(seed: u64, loser_percent: u64, keep: usize, removes: bool) -> Play {
    let lake = Lake::new(KEY);
    lake.register().await;
    let mut play = Play {
        lake,
        random: SeededRandom::new(seed),
        draft: Draft { keep, ..Draft::new() },
        truth: Truth::default(),
        pending: Vec::new(),
        next_id: 10,
        removes,
    };
    let commits = 3 + play.random.below(30);
    for _ in 0..commits {
        // Nobody races for the first file of a table: a second one would have another uuid.
        let with_loser = play.chance(loser_percent) && play.truth.number > 0;
        play.commit(with_loser);
        if removes {
            play.remove_old(keep);
        }
        let until = usize::try_from(play.random.below(6)).unwrap();
        play.deliver(until).await;
    }
    // What comes last is built upon, so that every race is decided.
    play.commit(false);
    play.commit(false);
    play.deliver(0).await;
    play.lake.scan().await;
    if play.lake.state().await.hold.is_some() {
        play.lake.accept().await;
    }
    play.lake.scan().await;
    play
}

impl Play {
    async fn assert_true(&self, seed: u64) {
        let state = self.lake.state().await;
        let label = format!("seed {seed}, {} losers", self.truth.losers);
        assert_eq!((&state.hold, &state.trouble, &state.hole), (&None, &None, &None), "{label}");
        let table = state.table.as_ref().unwrap();
        assert_eq!(Some(table.snapshot_id.to_string()), self.draft.head("main").map(|id| id.to_string()), "{label}");
        assert_eq!(table.position.ordinal.0, self.truth.number, "{label}");
        if state.epoch.0 > 0 {
            assert!(self.truth.losers > 0, "{label}: a rewrite that nobody made");
            return;
        }
        let counted = state.data.as_ref().map_or(0, |data| data.count);
        if !self.removes || state.gap.is_none() {
            assert_eq!((state.gap, counted), (None, self.truth.data_commits), "{label}: data commits");
        }
        let items = self.lake.world.items.dump();
        let events = items.iter().filter(|item| item.key.sk.starts_with("E#SNAPSHOT"));
        let commits = events.filter_map(|item| serde_json::from_str::<Event>(&item.doc).ok()?.commit);
        for commit in commits {
            assert!(
                self.truth.heads.contains(&commit.snapshot_id),
                "{label}: {} was never committed",
                commit.snapshot_id
            );
        }
        self.lake.requests();
        self.lake.scan().await;
        let (reads, listings) = self.lake.requests();
        assert!(reads + listings <= 5, "{label}: {reads} reads and {listings} listings at rest");
    }
}

#[tokio::test]
async fn without_races_every_data_commit_counts_once_and_nothing_is_held() {
    for seed in 1..=40 {
        let keep = [100, 5, 1][usize::try_from(seed % 3).unwrap()];
        play(seed, 0, keep, false).await.assert_true(seed).await;
    }
}

#[tokio::test]
async fn with_races_the_state_ends_on_the_winners_line() {
    for seed in 1..=40 {
        let keep = [100, 5, 2][usize::try_from(seed % 3).unwrap()];
        play(seed, 25, keep, false).await.assert_true(seed).await;
    }
}

#[tokio::test]
async fn files_that_the_writer_removes_are_read_or_a_gap() {
    for seed in 1..=40 {
        let keep = [10, 5, 2][usize::try_from(seed % 3).unwrap()];
        play(seed, 0, keep, true).await.assert_true(seed).await;
    }
}
