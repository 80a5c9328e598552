//! Random timelines: actions that overlap, fail and are archived, read in random orders with losses.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::event::Event;
use lakebell_testkit::SeededRandom;

use super::{WRITE, instant, one, two};
use crate::formats::Lake;

/// How many completed writes stay on the timeline when it is archived.
const KEPT: usize = 40;

struct Play {
    lake: Lake,
    random: SeededRandom,
    layout: u64,
    clock: u64,
    /// Actions that have begun, with what they are.
    open: BTreeMap<u64, &'static str>,
    /// Completed ones by their instant, with their file, oldest completion first.
    completed: Vec<(u64, String)>,
    data: BTreeSet<String>,
    all: BTreeSet<String>,
    pending: Vec<String>,
}

impl Play {
    fn chance(&self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn under_way(&self, begun: u64, action: &str, state: &str) -> String {
        let folder = if self.layout == 1 { ".hoodie/" } else { ".hoodie/timeline/" };
        let action = if state == "inflight" && action == "commit" { String::new() } else { format!(".{action}") };
        format!("{folder}{}{action}.{state}", instant(begun))
    }

    fn begin(&mut self) {
        self.clock += 1;
        let action = match self.random.below(10) {
            0 => "clean",
            1 => "replacecommit",
            2..=4 => "deltacommit",
            _ => "commit",
        };
        self.lake.put(&self.under_way(self.clock, action, "requested"), "");
        if self.chance(50) {
            self.lake.put(&self.under_way(self.clock, action, "inflight"), "{}");
        }
        self.open.insert(self.clock, action);
    }

    /// Ends the action that began at `begun`: it completes, or fails and is rolled back.
    fn end(&mut self, begun: u64) {
        let action = self.open.remove(&begun).unwrap();
        self.clock += 1;
        if self.chance(10) {
            self.remove_under_way(begun, action);
            return self.complete(self.clock, "rollback", "x");
        }
        let is_compaction = action == "commit" && self.chance(20);
        let body = if is_compaction { WRITE.replace("UPSERT", "COMPACT") } else { WRITE.to_owned() };
        if action != "clean" && !is_compaction {
            self.data.insert(instant(begun));
        }
        self.complete(begun, action, &body);
    }

    fn remove_under_way(&self, begun: u64, action: &str) {
        for state in ["requested", "inflight"] {
            let key = format!("{}/{}", crate::formats::ROOT, self.under_way(begun, action, state));
            self.lake.world.storage.remove(crate::support::BUCKET, &key);
        }
    }

    fn complete(&mut self, begun: u64, action: &str, body: &str) {
        self.clock += 1;
        let file = if self.layout == 1 { one(begun, action) } else { two(begun, self.clock, action) };
        self.lake.put(&file, body);
        self.all.insert(instant(begun));
        self.completed.push((begun, file.clone()));
        self.pending.push(file);
    }

    /// Moves the instants that are older than everything under way, but for the newest.
    fn archive(&mut self) {
        let oldest_open = self.open.keys().next().copied().unwrap_or(u64::MAX);
        let mut instants: Vec<(u64, String)> = self.completed.clone();
        instants.sort();
        let movable = instants.len().saturating_sub(KEPT);
        let moved: Vec<_> = instants.into_iter().take(movable).take_while(|(begun, _)| *begun < oldest_open).collect();
        let (Some(first), Some(last)) = (moved.first(), moved.last()) else { return };
        let archive = if self.layout == 1 {
            ".hoodie/archived/.commits_.archive.1_1-0-1".to_owned()
        } else {
            format!(".hoodie/timeline/history/{}_{}_0.parquet", instant(first.0), instant(last.0))
        };
        self.lake.put(&archive, "x");
        for (begun, file) in &moved {
            self.lake.remove(file);
            self.remove_under_way(*begun, file.rsplit_once('.').unwrap().1);
        }
        self.completed.retain(|it| !moved.contains(it));
    }

    async fn deliver(&mut self, until: usize, loss: u64) {
        while self.pending.len() > until {
            let at = usize::try_from(self.random.below(self.pending.len() as u64)).unwrap();
            let file = if self.chance(20) { self.pending[at].clone() } else { self.pending.swap_remove(at) };
            if !self.chance(loss) {
                self.lake.notify(&file).await;
            }
        }
    }
}

async fn play(seed: u64, loss: u64) {
    let layout = 1 + seed % 2;
    let mut play = Play {
        lake: Lake::hudi().await,
        random: SeededRandom::new(seed),
        layout,
        clock: 0,
        open: BTreeMap::new(),
        completed: Vec::new(),
        data: BTreeSet::new(),
        all: BTreeSet::new(),
        pending: Vec::new(),
    };
    for step in 0..50 + play.random.below(250) {
        if play.open.len() < 6 && play.chance(55) {
            play.begin();
        } else if let Some(begun) = play.open.keys().copied().nth(usize::try_from(play.random.below(6)).unwrap()) {
            play.end(begun);
        }
        if step % 20 == 19 {
            play.archive();
        }
        let until = usize::try_from(play.random.below(6)).unwrap();
        play.deliver(until, loss).await;
    }
    play.deliver(0, loss).await;
    play.lake.scan().await;

    let state = play.lake.state().await;
    let label = format!("seed {seed}, layout {layout}, {} completed", play.all.len());
    assert_eq!((&state.hold, &state.trouble, &state.hole), (&None, &None, &None), "{label}");
    let items = play.lake.world.items.dump();
    let events = items.iter().filter(|item| item.key.sk.starts_with("E#SNAPSHOT"));
    let commits = events.filter_map(|item| serde_json::from_str::<Event>(&item.doc).ok()?.commit);
    let recorded: BTreeSet<String> = commits.map(|commit| commit.snapshot_id).collect();
    if state.gap.is_none() {
        let unread: Vec<&String> = play.all.difference(&recorded).collect();
        assert!(unread.is_empty() && recorded.is_subset(&play.all), "{label}: {unread:?} unread, and no gap");
        assert_eq!(state.data.map_or(0, |data| data.count), play.data.len() as u64, "{label}");
    } else {
        assert!(loss > 0 && recorded.is_subset(&play.all), "{label}");
    }
    play.lake.requests();
    play.lake.scan().await;
    let (reads, listings) = play.lake.requests();
    assert!(reads + listings <= 5, "{label}: {reads} reads and {listings} listings at rest");
}

#[tokio::test]
async fn what_completes_counts_once_however_actions_overlap() {
    for seed in 1..=25 {
        play(seed, 0).await;
    }
}

#[tokio::test]
async fn with_most_notifications_lost_what_is_not_recorded_is_a_gap() {
    for seed in 1..=25 {
        play(seed, 95).await;
    }
}
