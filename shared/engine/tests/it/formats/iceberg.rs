//! Iceberg without a catalog: races, branches that are set back, long histories, and what a look
//! costs.

mod cases;
mod catalog;
mod declared;
mod hadoop;
mod moves;
mod named;
mod random;

use std::collections::BTreeMap;

use lakebell_domain::version::{Epoch, Ordinal};
use lakebell_engine::assets;
use serde_json::{Value, json};

use super::Lake;

const KEY: &str = "iceberg://sales/orders";
const UUID: &str = "85f616f1-4c4e-412a-9119-bd72cf73c9ba";

/// The metadata of a table, written file by file.
#[derive(Clone)]
struct Draft {
    uuid: String,
    version: u8,
    log: Vec<String>,
    snapshots: Vec<Value>,
    refs: BTreeMap<String, Value>,
    sequence: i64,
    updated: i64,
    keep: usize,
}

impl Draft {
    fn new() -> Self {
        Self {
            uuid: UUID.to_owned(),
            version: 2,
            log: Vec::new(),
            snapshots: Vec::new(),
            refs: BTreeMap::new(),
            sequence: 0,
            updated: 1_000,
            keep: 100,
        }
    }

    fn head(&self, branch: &str) -> Option<i64> {
        self.refs.get(branch)?["snapshot-id"].as_i64()
    }

    /// Adds a snapshot to a branch.
    fn add(&mut self, branch: &str, id: i64, operation: &str) -> &mut Self {
        self.sequence += 1;
        let mut snapshot = json!({
            "snapshot-id": id, "timestamp-ms": self.updated,
            "summary": {"operation": operation, "added-records": "1"}, "manifest-list": "m",
        });
        if self.version > 1 {
            snapshot["sequence-number"] = self.sequence.into();
        }
        if let Some(parent) = self.head(branch) {
            snapshot["parent-snapshot-id"] = parent.into();
        }
        self.snapshots.push(snapshot);
        self.set(branch, id)
    }

    fn set(&mut self, branch: &str, id: i64) -> &mut Self {
        self.refs.insert(branch.to_owned(), json!({"snapshot-id": id, "type": "branch"}));
        self
    }

    fn tag(&mut self, name: &str, id: i64) -> &mut Self {
        self.refs.insert(name.to_owned(), json!({"snapshot-id": id, "type": "tag"}));
        self
    }

    /// Writes the file, which the next one is made from.
    fn write(&mut self, lake: &Lake, name: &str) -> String {
        self.updated += 1_000;
        let log: Vec<Value> = self.log.iter().map(|file| json!({"metadata-file": file, "timestamp-ms": 1})).collect();
        let text = json!({
            "format-version": self.version, "table-uuid": self.uuid, "location": "s3://lake/wh/sales/orders",
            "last-sequence-number": self.sequence, "last-updated-ms": self.updated, "last-column-id": 1,
            "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
            "current-snapshot-id": self.head("main").unwrap_or(-1), "refs": self.refs, "snapshots": self.snapshots,
            "metadata-log": &log[log.len().saturating_sub(self.keep)..],
        });
        let relative = format!("metadata/{name}.metadata.json");
        lake.put(&relative, text.to_string());
        self.log.push(format!("s3://lake/wh/sales/orders/{relative}"));
        relative
    }

    fn append(&mut self, lake: &Lake, number: u64) -> String {
        self.add("main", 1_000 + i64::try_from(number).unwrap(), "append");
        self.write(lake, &format!("{number:05}-a"))
    }
}

/// A registered table with so many appends, each notified.
async fn table(appends: u64) -> (Lake, Draft) {
    let lake = Lake::new(KEY);
    lake.register().await;
    let mut draft = Draft::new();
    for number in 0..appends {
        let file = draft.append(&lake, number);
        lake.notify(&file).await;
    }
    (lake, draft)
}

#[tokio::test]
async fn a_commit_costs_a_listing_and_a_read_and_a_scan_of_an_unchanged_table_one_listing() {
    let (lake, mut draft) = table(150).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count), (Ordinal(150), 150));
    lake.assert_quiet_scan_costs(0, 1).await;
    let file = draft.append(&lake, 150);
    lake.requests();
    lake.notify(&file).await;
    assert_eq!(lake.requests(), (1, 1));
    lake.notify(&file).await;
    assert_eq!(lake.requests(), (0, 0), "a duplicate is told by its entity tag");
    lake.notify("metadata/snap-1-1-x.avro").await;
    assert_eq!(lake.requests(), (0, 0), "manifests are no commits");

    for n in 0..3_000 {
        lake.put(&format!("metadata/{n:08x}-m0.avro"), "x");
    }
    lake.assert_quiet_scan_costs(0, 2).await;
}

#[tokio::test]
async fn of_two_files_made_from_one_neither_counts_until_one_is_built_upon() {
    let (lake, draft) = table(3).await;
    let (mut winner, mut loser) = (draft.clone(), draft);
    loser.add("main", 9_000, "append").write(&lake, "00003-x");
    let won = winner.add("main", 1_003, "append").write(&lake, "00003-a");
    lake.notify(&won).await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(3), "nothing decides");
    lake.requests();
    lake.scan().await;
    let (reads, listings) = lake.requests();
    assert!(reads + listings <= 5, "{reads} reads, {listings} listings");
    let next = winner.append(&lake, 4);
    lake.notify(&next).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.epoch, state.hold), (Ordinal(5), Epoch(0), None));
    assert_eq!(state.data.unwrap().count, 5);
    let details = lake.details().join("\n");
    assert!(details.contains("00003-x.metadata.json, which lost a race"), "{details}");
    lake.assert_quiet_scan_costs(0, 1).await;
}

#[tokio::test]
async fn a_file_that_was_accepted_alone_and_lost_is_a_rewrite() {
    for version in [1, 2] {
        let lake = Lake::new(KEY);
        lake.register().await;
        let mut draft = Draft { version, ..Draft::new() };
        for number in 0..3 {
            let file = draft.append(&lake, number);
            lake.notify(&file).await;
        }
        let (mut winner, mut loser) = (draft.clone(), draft);
        let lost = loser.add("main", 9_000, "append").write(&lake, "00003-x");
        lake.notify(&lost).await;
        assert_eq!(lake.state().await.table.unwrap().snapshot_id, "9000");
        winner.add("main", 1_003, "append").write(&lake, "00003-a");
        let next = winner.append(&lake, 4);
        lake.notify(&next).await;
        let hold = lake.state().await.hold.expect("version {version}: a hold");
        assert!(hold.evidence.contains("00003-x.metadata.json lost a race"), "{}", hold.evidence);
        lake.accept().await;
        let state = lake.state().await;
        assert_eq!((state.epoch, state.position().ordinal), (Epoch(1), Ordinal(5)));
        assert_eq!(state.table.unwrap().snapshot_id, "1004");
        lake.assert_quiet_scan_costs(0, 1).await;
    }
}

#[tokio::test]
async fn a_loser_that_changed_nothing_is_passed_over() {
    let (lake, draft) = table(3).await;
    let (mut winner, mut loser) = (draft.clone(), draft);
    let lost = loser.write(&lake, "00003-x");
    lake.notify(&lost).await;
    winner.add("main", 1_003, "append").write(&lake, "00003-a");
    let next = winner.append(&lake, 4);
    lake.notify(&next).await;
    let state = lake.state().await;
    assert_eq!((state.hold, state.epoch, state.table.unwrap().snapshot_id.as_str()), (None, Epoch(0), "1004"));
    assert_eq!(state.data.unwrap().count, 5);
}

#[tokio::test]
async fn a_branch_that_is_set_back_is_held_and_one_that_comes_back_is_not() {
    let (lake, mut draft) = table(4).await;
    let back = draft.set("main", 1_001).write(&lake, "00004-a");
    lake.notify(&back).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("main is at snapshot 1001"), "{}", hold.evidence);
    let again = draft.set("main", 1_003).write(&lake, "00005-a");
    lake.notify(&again).await;
    let state = lake.state().await;
    assert_eq!((&state.hold, state.epoch, state.position().ordinal), (&None, Epoch(0), Ordinal(6)));
    assert_eq!(state.data.unwrap().count, 4, "nothing new came");
    assert!(state.gap.unwrap().cause.contains("and back"));

    draft.set("main", 1_001).write(&lake, "00006-a");
    let other = draft.add("main", 2_000, "append").write(&lake, "00007-a");
    lake.notify(&other).await;
    assert!(lake.state().await.hold.is_some());
    lake.accept().await;
    let state = lake.state().await;
    assert_eq!((state.epoch, state.table.unwrap().snapshot_id.as_str()), (Epoch(1), "2000"));
}

#[tokio::test]
async fn another_table_in_the_same_place_is_a_rewrite_and_older_files_are_not() {
    let (lake, old) = table(4).await;
    let uuid = "11111111-4c4e-412a-9119-bd72cf73c9ba".to_owned();
    let mut draft = Draft { uuid: uuid.clone(), updated: old.updated, ..Draft::new() };
    let first = draft.add("main", 5_000, "append").write(&lake, "00000-n");
    lake.notify(&first).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains(&uuid), "{}", hold.evidence);
    lake.accept().await;
    let second = draft.add("main", 5_001, "append").write(&lake, "00001-n");
    lake.notify("metadata/00003-a.metadata.json").await;
    lake.notify(&second).await;
    let state = lake.state().await;
    assert_eq!((state.epoch, state.position().ordinal, state.hold), (Epoch(1), Ordinal(2), None));
    lake.assert_quiet_scan_costs(0, 1).await;
}

#[tokio::test]
async fn hundreds_of_unread_files_are_all_read_by_one_scan() {
    let (lake, mut draft) = table(2).await;
    for number in 2..400 {
        draft.append(&lake, number);
    }
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count, state.gap), (Ordinal(400), 400, None));
}

#[tokio::test]
async fn files_that_were_removed_unread_are_a_gap() {
    let (lake, mut draft) = table(2).await;
    draft.keep = 2;
    for number in 2..9 {
        draft.append(&lake, number);
    }
    for number in 0..6 {
        lake.remove(&format!("metadata/{number:05}-a.metadata.json"));
    }
    lake.notify("metadata/00008-a.metadata.json").await;
    let state = lake.state().await;
    let gap = state.gap.clone().expect("a gap");
    assert_eq!((gap.first, gap.last, state.position().ordinal), (Ordinal(3), Ordinal(6), Ordinal(9)));
    assert_eq!((state.hold, state.data.unwrap().count), (None, 5));
}

#[tokio::test]
async fn numbers_that_begin_again_go_on_where_they_were() {
    let (lake, mut draft) = table(8).await;
    draft.keep = 1;
    draft.append(&lake, 0);
    // Nobody said anything of the first file after the migration.
    let other = draft.add("main", 3_000, "append").write(&lake, "00001-b");
    lake.notify(&other).await;
    lake.scan().await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.hold, state.epoch), (Ordinal(10), None, Epoch(0)));
    lake.assert_quiet_scan_costs(0, 1).await;
}

#[tokio::test]
async fn properties_tags_and_other_branches_change_no_data() {
    let (lake, mut draft) = table(2).await;
    for (number, change) in ["nothing", "tag", "branch", "untag"].iter().enumerate() {
        match *change {
            "tag" => drop(draft.tag("eod", 1_001)),
            "branch" => drop(draft.add("audit", 7_000, "append")),
            "untag" => drop(draft.refs.remove("eod")),
            _ => {}
        }
        let file = draft.write(&lake, &format!("{:05}-a", number + 2));
        lake.notify(&file).await;
        let state = lake.state().await;
        assert_eq!(state.position().ordinal, Ordinal(number as u64 + 3), "{change}");
        assert_eq!(state.data.as_ref().unwrap().count, 2, "{change}");
        assert_eq!(state.tags.contains_key("eod"), matches!(*change, "tag" | "branch"), "{change}");
    }
    let replaced = draft.add("main", 1_500, "replace").write(&lake, "00006-a");
    lake.notify(&replaced).await;
    assert_eq!(lake.state().await.data.unwrap().count, 2, "a compaction");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_trouble_until_the_chain_has_passed_it() {
    let (lake, mut draft) = table(2).await;
    lake.put("metadata/00002-z.metadata.json", "{\"format-version\":2");
    lake.notify("metadata/00002-z.metadata.json").await;
    let trouble = lake.state().await.trouble.expect("trouble");
    assert!(trouble.detail.contains("00002-z") && trouble.detail.contains("truncated"), "{}", trouble.detail);
    let file = draft.append(&lake, 2);
    lake.notify(&file).await;
    let file = draft.append(&lake, 3);
    lake.notify(&file).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.trouble), (Ordinal(4), None));
    lake.assert_quiet_scan_costs(0, 1).await;
}

#[tokio::test]
async fn fifty_thousand_snapshots_are_read_as_they_come() {
    let lake = Lake::new(KEY);
    let mut draft = Draft::new();
    for id in 1..=50_000 {
        draft.add("main", id, "append");
    }
    draft.write(&lake, "00000-a");
    lake.register().await;
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, "50000");
    let next = draft.add("main", 50_001, "append").write(&lake, "00001-a");
    lake.notify(&next).await;
    let state = lake.state().await;
    assert_eq!((state.position().ordinal, state.data.unwrap().count), (Ordinal(2), 2));
}

#[tokio::test]
async fn a_file_moves_the_assets_of_other_branches_too() {
    let (lake, mut draft) = table(2).await;
    lake.try_register("iceberg://sales/orders@audit").await.unwrap();
    let file = draft.set("audit", 1_001).write(&lake, "00002-a");
    lake.notify(&file).await;
    let file = draft.add("audit", 7_000, "append").write(&lake, "00003-a");
    let watched = lake.notify(&file).await;
    assert_eq!(watched.outcomes().len(), 2, "{watched:?}");
    let ports = lake.world.quiet_ports();
    let id = assets::find_id(&ports, &"iceberg://sales/orders@audit".parse().unwrap()).await.unwrap();
    let state = assets::head(&ports, id).await.unwrap().value.state;
    assert_eq!(
        (state.table.unwrap().snapshot_id.as_str(), state.data.unwrap().count),
        ("7000", 1),
        "the cut is no change"
    );
    assert_eq!(lake.state().await.data.unwrap().count, 2);
}
