//! Public reports about Iceberg tables: what starts, and in which order.

use lakebell_domain::ids::TargetId;
use lakebell_domain::reason::Verdict;
use lakebell_engine::{history, operate, targets};
use serde_json::json;

use super::super::Lake;
use super::{Draft, KEY};
use crate::support::{PROJECT, trace};

impl Lake {
    /// A target that starts once for each version of main.
    async fn declare_each(&self) {
        let spec = json!({
            "name": "t", "workflowDefinitionCode": 11, "coalesce": "each",
            "groups": [{"dependencies": [{"asset": KEY}]}],
        });
        let spec = serde_json::from_value(spec).unwrap();
        targets::declare(&self.world.quiet_ports(), PROJECT, &spec, &trace()).await.expect("declare");
    }

    async fn why(&self) -> lakebell_domain::evaluation::Evaluation {
        let id = TargetId { project: PROJECT, name: "t".parse().unwrap() };
        targets::explain(&self.world.quiet_ports(), &[id]).await.unwrap().remove(0).evaluation
    }

    /// The snapshots that were taken, one start after the other.
    async fn starts(&self) -> Vec<String> {
        let ports = self.world.quiet_ports();
        let mut taken = Vec::new();
        while let Some(open) = self.why().await.open {
            let trigger = history::trigger(&ports, &open).await.unwrap().value;
            taken.extend(trigger.ranges.iter().map(|range| range.bounds.to.as_ref().unwrap().snapshot_id.to_string()));
            operate::skip(&ports, &open, "ops", &trace()).await.unwrap();
        }
        taken
    }
}

async fn declared() -> Lake {
    let lake = Lake::new(KEY);
    lake.register().await;
    lake.declare_each().await;
    lake
}

#[tokio::test]
async fn case_63_ids_are_no_order() {
    let lake = declared().await;
    let mut draft = Draft::new();
    for (number, id) in [900, 5, 77].into_iter().enumerate() {
        let file = draft.add("main", id, "append").write(&lake, &format!("{number:05}-a"));
        lake.notify(&file).await;
    }
    assert_eq!(lake.starts().await, ["900", "5", "77"]);
}

#[tokio::test]
async fn case_64_tables_of_version_1_have_no_sequence_numbers() {
    let lake = declared().await;
    let mut draft = Draft { version: 1, ..Draft::new() };
    for number in 0..3 {
        let file = draft.append(&lake, number);
        lake.notify(&file).await;
    }
    assert_eq!(lake.starts().await, ["1000", "1001", "1002"]);
}

#[tokio::test]
async fn case_65_writers_clocks_are_no_order() {
    let lake = declared().await;
    let mut draft = Draft::new();
    for (number, clock) in [60_000, 1_000, 30_000].into_iter().enumerate() {
        draft.updated = clock;
        let file = draft.append(&lake, number as u64);
        lake.notify(&file).await;
    }
    assert_eq!(lake.starts().await, ["1000", "1001", "1002"]);
}

#[tokio::test]
async fn case_68_main_alone_counts_and_what_goes_back_is_held() {
    let lake = declared().await;
    let mut draft = Draft::new();
    let first = draft.append(&lake, 0);
    lake.notify(&first).await;
    assert_eq!(lake.starts().await, ["1000"]);

    draft.set("audit", 1_000);
    let staged = draft.add("audit", 7_000, "append").write(&lake, "00001-a");
    lake.notify(&staged).await;
    assert_eq!(lake.starts().await, [""; 0], "a commit to another branch");
    let forwarded = draft.set("main", 7_000).write(&lake, "00002-a");
    lake.notify(&forwarded).await;
    assert_eq!(lake.starts().await, ["7000"], "main is brought forward to it");

    let back = draft.set("main", 1_000).write(&lake, "00003-a");
    lake.notify(&back).await;
    let why = lake.why().await;
    assert_eq!(why.verdict, Verdict::BlockedByRewrite, "{why:?}");
    assert_eq!(lake.starts().await, [""; 0]);
}
