//! Many commits, many targets, notifications doubled and out of order: the rules hold, by what is recorded.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lakebell_domain::ids::{AssetId, TargetId, TriggerKey};
use lakebell_domain::version::Version;
use lakebell_engine::rules::Records;
use lakebell_scheduler_standin::Profile;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::scene;
use crate::support::{Scene, Scheduler, Shape, Table, until};

const TABLES: [&str; 4] = ["a", "b", "c", "d"];
const COMMITS: u64 = 50;

struct Field {
    scene: Scene,
    scheduler: Scheduler,
    targets: Vec<&'static str>,
}

impl Field {
    async fn declare(&mut self, name: &'static str, groups: Value) {
        let workflow = self.scheduler.define(self.scene.project, name);
        let target = json!({
            "name": name, "connection": self.scheduler.connection, "workflowDefinitionCode": workflow,
            "groups": groups,
        });
        self.scene.declare(&target).await;
        self.targets.push(name);
    }

    /// Waits until every trigger has ended and no target is ready. The compensator's clock runs fast, because a hint
    /// that gave up on a busy asset comes again by its queue only later.
    async fn comes_to_rest(&self) {
        self.scene.hints_are_handled().await;
        until("every trigger to end", Duration::from_mins(1), async || {
            let mut open = Vec::new();
            for status in ["TRIGGERING", "UNKNOWN"] {
                let page = self.scene.get(&format!("/asset-trigger-history?status={status}&limit=200")).await.ok();
                open.extend(page["items"].as_array().unwrap().iter().map(|trigger| trigger["log"].clone()));
            }
            let ready = self.ready().await;
            if open.is_empty() && ready.is_empty() {
                return Ok(());
            }
            self.scene.sweep().await;
            Err((open, ready))
        })
        .await;
    }

    /// Targets that an evaluation finds ready.
    async fn ready(&self) -> Vec<TargetId> {
        let mut ready = Vec::new();
        for target in &self.targets {
            let evaluation = self.scene.why(target).await;
            if evaluation["verdict"] == "READY" {
                ready.push(evaluation["target"].as_str().unwrap().parse().unwrap());
            }
        }
        ready
    }

    fn assert_rules(&self, records: &Records, tables: &[Table], ready: &[TargetId]) {
        let asset_of = |table: &Table| {
            let found = records.assets.iter().find(|(_, head)| head.key.to_string() == table.asset);
            *found.unwrap().0
        };
        let committed = tables.iter().map(|table| (asset_of(table), table.committed.clone())).collect();
        // Every target was declared before the first commit.
        let mut since: BTreeMap<(TargetId, AssetId), Option<Version>> = BTreeMap::new();
        for (target, definition) in &records.definitions {
            since.extend(definition.target.assets().into_keys().map(|asset| ((target.clone(), asset), None)));
        }
        let starts: Vec<TriggerKey> = self.scheduler.look(|world| {
            let keys = world.instances.values().map(|found| found.params["lakebell_trigger_key"].parse().unwrap());
            keys.collect()
        });
        let wrong = [
            Records::started_once(&starts),
            records.never_invented(&committed),
            records.in_order(),
            records.ranges_tile(&since),
            records.nothing_left(ready),
        ]
        .concat();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let mut started: Vec<_> = records
            .triggers
            .values()
            .filter(|trigger| trigger.status().word().as_str() == "SUCCESS")
            .map(|trigger| trigger.key.clone())
            .collect();
        let mut starts = starts;
        started.sort();
        starts.sort();
        assert_eq!(started, starts, "each started trigger has one instance, and each instance a trigger");
        for table in tables {
            assert_eq!(records.assets[&asset_of(table)].state.position().ordinal.0, table.newest, "{}", table.asset);
        }
    }
}

/// Messages in an order that has nothing to do with that of the commits.
fn shuffled(mut messages: Vec<String>) -> Vec<String> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for at in (1..messages.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        messages.swap(at, usize::try_from(state >> 33).unwrap() % (at + 1));
    }
    messages
}

/// Commits to one table, one after the other; the notifications that say it once more come back.
async fn commit_all(mut table: Table) -> (Table, Vec<String>) {
    let mut messages = Vec::new();
    for at in 0..COMMITS {
        let snapshot = table.append().await;
        let shape = Shape::ALL[usize::try_from(at).unwrap() % Shape::ALL.len()];
        messages.push(shape.of(&table, snapshot).await);
    }
    (table, messages)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_commits_told_twice_and_out_of_order_keep_every_rule() {
    let scene = scene!("many");
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let mut tables: Vec<Table> = TABLES.iter().map(|name| scene.table(name)).collect();
    scene.register(&tables.iter().collect::<Vec<_>>()).await;
    let member = |at: usize| json!({"asset": tables[at].asset});
    let declared = [
        ("a-and-b", json!([{"name": "g", "dependencies": [member(0), member(1)]}])),
        ("a-alone", json!([{"name": "g", "dependencies": [member(0)]}])),
        ("any", json!([{"name": "g", "advance": "any", "dependencies": [member(1), member(2), member(3)]}])),
        (
            "two-of-four",
            json!([{"name": "g", "advance": {"atLeast": 2},
                "dependencies": [member(0), member(1), member(2), member(3)]}]),
        ),
        (
            "either",
            json!([{"name": "cd", "dependencies": [member(2), member(3)]}, {"name": "d", "dependencies": [member(3)]}]),
        ),
    ];
    let mut field = Field { scene, scheduler, targets: Vec::new() };
    for (name, groups) in declared {
        field.declare(name, groups).await;
    }

    let begun = Instant::now();
    let mut committing = JoinSet::new();
    for table in tables.drain(..) {
        committing.spawn(commit_all(table));
    }
    let mut messages = Vec::new();
    for (table, told) in committing.join_all().await {
        tables.push(table);
        messages.extend(told);
    }
    tables.sort_by(|one, other| one.asset.cmp(&other.asset));
    field.scene.send_all("hints", shuffled(messages)).await;
    field.comes_to_rest().await;
    let records = field.scene.records().await;
    field.assert_rules(&records, &tables, &field.ready().await);
    println!(
        "{} commits, {} triggers, {} starts, at rest after {:.1} s",
        COMMITS * TABLES.len() as u64,
        records.triggers.len(),
        field.scheduler.start_calls(),
        begun.elapsed().as_secs_f64()
    );

    // One more commit to every table: the last trigger of every target carries the newest versions that may start it.
    for table in &mut tables {
        table.append().await;
    }
    for table in &tables {
        field.scene.reaches(table, COMMITS + 1).await;
    }
    field.comes_to_rest().await;
    let after = field.scene.records().await;
    assert_eq!(after.monotone_since(&records), Vec::<String>::new());
    field.assert_rules(&after, &tables, &field.ready().await);
    for (target, definition) in &after.definitions {
        let cursor = &after.cursors[target];
        let reached = |asset: AssetId| {
            let groups = definition.target.groups.iter();
            groups.filter_map(|group| cursor.taken(&group.name, asset)).map(|version| version.position.ordinal.0).max()
        };
        let assets = definition.target.assets();
        let newest: Vec<Option<u64>> = assets.into_keys().map(reached).collect();
        // With k of n, fewer than k members may have moved since. And where b's last commit but one was still waiting for
        // a, the last one of a starts both with that, and b's last one waits for a again.
        let behind = newest.iter().filter(|taken| **taken != Some(COMMITS + 1)).count();
        let may_wait = usize::from(["two-of-four", "a-and-b"].contains(&target.name.as_str()));
        assert!(behind <= may_wait, "{target} took {newest:?}");
    }
}

#[tokio::test]
async fn forty_registrations_and_declarations_of_the_same_are_one() {
    let scene = scene!("same");
    let scheduler = scene.scheduler(Profile::V3_3).await;
    let mut table = scene.table("t");
    table.append().await;
    let spec = json!({"key": table.asset, "location": table.location()});
    let target = Scene::target(&scheduler.connection, "t", 77, &json!("all"), &[&table]);
    let statuses = |answers: &[u16], wanted: u16| answers.iter().filter(|status| **status == wanted).count();
    for (path, body) in [("/assets", &spec), ("/asset-dependencies", &target)] {
        let mut answers = Vec::new();
        for _ in 0..10 {
            let calls = [(); 4].map(|()| scene.post(path, body));
            let [one, two, three, four] = calls;
            let (one, two, three, four) = tokio::join!(one, two, three, four);
            answers.extend([one.status, two.status, three.status, four.status]);
        }
        assert_eq!((statuses(&answers, 201), statuses(&answers, 200)), (1, 39), "{path}: {answers:?}");
    }
    let assets = scene.get("/assets").await.ok();
    assert_eq!(assets["items"].as_array().unwrap().len(), 1);
    let records = scene.records().await;
    assert_eq!((records.assets.len(), records.definitions.len(), records.triggers.len()), (1, 1, 0));
}
