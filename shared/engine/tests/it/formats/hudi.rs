//! Hudi: long timelines, instants that complete late, archives, and what a look costs.

mod random;

use lakebell_domain::version::{Epoch, Ordinal};
use lakebell_engine::watch::Watched;

use super::Lake;

/// Something that happens to a table.
type Change<'a> = &'a dyn Fn(&Lake);

const KEY: &str = "hudi://sales/orders";
const WRITE: &str = r#"{"operationType":"UPSERT","partitionToWriteStats":{"":[{"numInserts":2,"numDeletes":1}]}}"#;
const PROPERTIES: &str = "hoodie.table.name=orders\nhoodie.table.version=6\n";

fn instant(n: u64) -> String {
    format!("202601{:02}{:02}{:02}{:02}000", 1 + n / 86_400, n / 3_600 % 24, n / 60 % 60, n % 60)
}

/// The completed file of layout 1.
fn one(n: u64, action: &str) -> String {
    format!(".hoodie/{}.{action}", instant(n))
}

/// The completed file of layout 2.
fn two(begun: u64, completed: u64, action: &str) -> String {
    format!(".hoodie/timeline/{}_{}.{action}", instant(begun), instant(completed))
}

impl Lake {
    async fn hudi() -> Self {
        let lake = Self::new(KEY);
        lake.put(".hoodie/hoodie.properties", PROPERTIES);
        lake.register().await;
        lake
    }

    async fn write(&self, relative: &str) -> Watched {
        self.put(relative, WRITE);
        self.notify(relative).await
    }
}

#[tokio::test]
async fn a_commit_costs_two_listings_and_a_read_and_a_scan_of_an_unchanged_table_three_requests() {
    for layout in [1, 2] {
        let lake = Lake::hudi().await;
        let file = |n| if layout == 1 { one(n, "commit") } else { two(n, n, "commit") };
        for n in 0..150 {
            lake.requests();
            lake.write(&file(n)).await;
            // With the first one the archives are looked into: the table may be older than its timeline.
            assert_eq!(lake.requests(), (1, if n == 0 { 4 } else { 2 }), "commit {n}");
        }
        let state = lake.state().await;
        assert_eq!(state.data.as_ref().unwrap().count, 150);
        assert_eq!(state.table.unwrap().snapshot_id, instant(149));
        lake.assert_quiet_scan_costs(1, 2).await;
        lake.requests();
        lake.notify(&file(149)).await;
        assert_eq!(lake.requests(), (0, 0), "a duplicate is told by its entity tag");
        lake.notify(&file(3)).await;
        assert_eq!(lake.state().await.data.unwrap().count, 150, "one that the ring has forgotten");

        // The oldest are archived, as Hudi does it: into the archive first.
        for n in 0..120 {
            let archive = if layout == 1 {
                ".hoodie/archived/.commits_.archive.1_1-0-1".to_owned()
            } else {
                format!(".hoodie/timeline/history/{}_{}_0.parquet", instant(0), instant(n))
            };
            lake.put(&archive, "x");
            lake.remove(&file(n));
        }
        lake.assert_quiet_scan_costs(1, 2).await;
        lake.write(&file(150)).await;
        let state = lake.state().await;
        assert_eq!((state.hold, state.gap, state.data.unwrap().count), (None, None, 151));
    }
}

#[tokio::test]
async fn an_instant_that_completes_late_is_the_next_commit_however_long_it_took() {
    for layout in [1, 2] {
        let lake = Lake::hudi().await;
        let begun = if layout == 1 { ".hoodie/" } else { ".hoodie/timeline/" };
        lake.put(&format!("{begun}{}.deltacommit.requested", instant(5)), "");
        for n in (0..200).filter(|n| *n != 5) {
            lake.write(&if layout == 1 { one(n, "deltacommit") } else { two(n, n, "deltacommit") }).await;
        }
        assert_eq!(lake.state().await.data.unwrap().count, 199);
        lake.write(&if layout == 1 { one(5, "deltacommit") } else { two(5, 300, "deltacommit") }).await;
        let state = lake.state().await;
        assert_eq!((state.data.as_ref().unwrap().count, &state.hold), (200, &None), "layout {layout}");
        assert_eq!(state.table.unwrap().snapshot_id, instant(5));
        lake.assert_quiet_scan_costs(1, 2).await;
        if layout == 1 {
            assert!(lake.details().iter().any(|detail| detail.contains("order of first observation")));
        }
    }
}

#[tokio::test]
async fn what_is_under_way_when_a_table_is_registered_counts_once_it_completes() {
    let lake = Lake::new(KEY);
    lake.put(".hoodie/hoodie.properties", PROPERTIES);
    for n in (0..100).filter(|n| *n != 5) {
        lake.put(&one(n, "commit"), WRITE);
    }
    lake.put(&format!(".hoodie/{}.inflight", instant(5)), "");
    lake.register().await;
    let before = lake.state().await;
    assert_eq!(before.table.as_ref().unwrap().snapshot_id, instant(99));
    lake.scan().await;
    assert_eq!(lake.state().await.data.unwrap().count, before.data.unwrap().count, "nothing more is new");
    lake.write(&one(5, "commit")).await;
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, instant(5));
    lake.assert_quiet_scan_costs(1, 2).await;
}

#[tokio::test]
async fn completion_is_the_ordinal_and_an_upgrade_goes_on() {
    let lake = Lake::hudi().await;
    for n in 0..3 {
        lake.write(&one(n, "commit")).await;
    }
    assert_eq!(lake.state().await.position().ordinal, Ordinal(3));
    for n in 0..3 {
        lake.put(&two(n, n, "commit"), WRITE);
        lake.scan().await;
        lake.remove(&one(n, "commit"));
        lake.scan().await;
    }
    lake.put(".hoodie/hoodie.properties", "hoodie.table.name=orders\nhoodie.table.version=8\n");
    lake.write(&two(3, 4, "commit")).await;
    let state = lake.state().await;
    assert_eq!((state.hold, state.epoch, state.data.unwrap().count), (None, Epoch(0), 4));
    let completion = instant(4).parse().unwrap();
    assert_eq!(state.table.unwrap().position.ordinal, Ordinal(completion));
}

#[tokio::test]
async fn changes_of_layout_count_nothing_twice_whichever_of_their_files_are_notified() {
    let lake = Lake::hudi().await;
    // The file of each commit, as it is called now.
    let mut files: Vec<String> = (0..100).map(|n| one(n, "commit")).collect();
    for file in &files {
        lake.write(file).await;
    }
    for round in 0_u64..4 {
        let is_upgrade = round % 2 == 0;
        let name = |n: u64| if is_upgrade { two(n, 500 * (round + 1) + n, "commit") } else { one(n, "commit") };
        // A burst of notifications, of files whose content and entity tags are others than before.
        for (n, file) in (0_u64..).zip(&mut files) {
            let moved = name(n);
            lake.put(&moved, WRITE.replace(":2,", &format!(":{},", 3 + round)));
            if n % 3 == 0 {
                lake.notify(&moved).await;
            }
            lake.remove(file);
            if n % 7 == 0 {
                lake.notify(&moved).await;
            }
            *file = moved;
        }
        let version = if is_upgrade { 8 } else { 6 };
        lake.put(".hoodie/hoodie.properties", format!("hoodie.table.name=orders\nhoodie.table.version={version}\n"));
        lake.scan().await;
        let (state, known) = (lake.state().await, 100 + round);
        assert_eq!((state.hold, state.gap, state.epoch), (None, None, Epoch(0)), "round {round}");
        assert_eq!(state.data.unwrap().count, known, "round {round}");
        files.push(name(known));
        lake.write(&name(known)).await;
        let state = lake.state().await;
        assert_eq!((state.data.unwrap().count, state.table.unwrap().snapshot_id), (known + 1, instant(known).into()));
        lake.assert_quiet_scan_costs(1, 2).await;
    }
}

#[tokio::test]
async fn a_restore_another_table_and_vanished_commits_are_rewrites() {
    let restored = |lake: &Lake| {
        lake.remove(&two(2, 2, "commit"));
        lake.put(&two(5, 6, "restore"), "x");
    };
    let vanished = |lake: &Lake| lake.remove(&two(2, 2, "commit"));
    let recreated = |lake: &Lake| {
        for n in 0..3 {
            lake.remove(&two(n, n, "commit"));
        }
        lake.put(&two(7, 7, "commit"), WRITE);
    };
    let renamed = |lake: &Lake| lake.put(".hoodie/hoodie.properties", "hoodie.table.name=other\n");
    let changes: [(&str, &str, Change<'_>); 4] = [
        ("restored", "taken back", &restored),
        ("vanished", "neither on the timeline nor archived", &vanished),
        ("recreated", "dropped and created again", &recreated),
        ("renamed", "another one, other#", &renamed),
    ];
    for (name, evidence, change) in changes {
        let lake = Lake::hudi().await;
        for n in 0..3 {
            lake.write(&two(n, n, "commit")).await;
        }
        change(&lake);
        lake.scan().await;
        let hold = lake.state().await.hold.unwrap_or_else(|| panic!("{name}: a hold"));
        assert!(hold.evidence.contains(evidence), "{name}: {}", hold.evidence);
        lake.accept().await;
        let state = lake.state().await;
        assert_eq!((state.epoch, state.hold), (Epoch(1), None), "{name}");
        lake.write(&two(8, 9, "commit")).await;
        assert_eq!(lake.state().await.table.unwrap().snapshot_id, instant(8), "{name}");
        lake.assert_quiet_scan_costs(1, 2).await;
    }
}

#[tokio::test]
async fn commits_that_were_archived_unread_may_be_a_gap() {
    for layout in [1, 2] {
        let lake = Lake::hudi().await;
        let file = |n| if layout == 1 { one(n, "commit") } else { two(n, n, "commit") };
        lake.write(&file(0)).await;
        for n in 50..60 {
            lake.put(&file(n), WRITE);
        }
        lake.remove(&file(0));
        lake.put(".hoodie/archived/.commits_.archive.1_1-0-1", "x");
        lake.put(&format!(".hoodie/timeline/history/{}_{}_0.parquet", instant(0), instant(49)), "x");
        lake.scan().await;
        let state = lake.state().await;
        assert_eq!((state.hold, state.data.unwrap().count), (None, 11), "layout {layout}");
        assert!(state.gap.is_some(), "layout {layout}");
        lake.assert_quiet_scan_costs(1, 2).await;
    }
}

#[tokio::test]
async fn only_completed_actions_of_the_outer_table_are_commits() {
    let lake = Lake::hudi().await;
    lake.write(&two(0, 0, "commit")).await;
    for relative in [
        format!(".hoodie/metadata/.hoodie/timeline/{}_{}.deltacommit", instant(1), instant(1)),
        format!(".hoodie/timeline/{}.commit.requested", instant(1)),
        format!(".hoodie/timeline/{}.inflight", instant(1)),
        ".hoodie/hoodie.properties".to_owned(),
        format!(".hoodie/timeline/history/{}_{}_0.parquet", instant(0), instant(0)),
    ] {
        lake.put(&relative, PROPERTIES);
        assert!(matches!(lake.notify(&relative).await, Watched::NotACommit), "{relative}");
    }
    lake.put(&two(0, 3, "savepoint"), "x");
    lake.notify(&two(0, 3, "savepoint")).await;
    lake.put(&two(4, 5, "clean"), "x");
    lake.notify(&two(4, 5, "clean")).await;
    let state = lake.state().await;
    assert_eq!((state.table.unwrap().snapshot_id, state.data.unwrap().count), (instant(4).into(), 1));
    lake.assert_quiet_scan_costs(1, 2).await;
}
