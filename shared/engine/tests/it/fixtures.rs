//! Real tables, replayed object by object through `observe`: in the order in which their writers
//! wrote, in other orders, with duplicates, and with every notification lost and a scan at the end.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lakebell_domain::asset::{AssetKey, Format, Location};
use lakebell_domain::event::Source;
use lakebell_domain::ids::AssetId;
use lakebell_domain::state::AssetState;
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::observe::{self, Hint, Look};
use lakebell_engine::watch::{Created, Watcher};
use lakebell_testkit::{SeededRandom, World};
use serde_json::Value;

use crate::support::{BUCKET, PROJECT, trace};

const ROOT: &str = "warehouse/db.db/replayed";

/// One write or removal of an object of a table.
struct Step {
    rel: String,
    body: Option<Vec<u8>>,
}

struct Case {
    name: String,
    steps: Vec<Step>,
    expected: Value,
}

/// The project's own cases, and those of the folder beside the checkout where it is there.
fn cases() -> Vec<Case> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![here.join("../../fixtures/paimon")];
    let shared = std::env::var_os("LAKEBELL_SHARED").map_or_else(|| here.join("../../../shared"), PathBuf::from);
    let shared = shared.join("tables/paimon");
    if shared.is_dir() {
        folders.push(shared);
    } else {
        // Past the capture, so that a run shows what it did not do.
        let _ = writeln!(std::io::stderr(), "skipped: ../shared/tables is not here");
    }
    let mut cases = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let dir = entry.unwrap().path();
            if dir.join("events.jsonl").is_file() {
                cases.push(read_case(&dir));
            }
        }
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(cases.len() >= 10, "the project's own cases are there");
    cases
}

fn read_case(dir: &Path) -> Case {
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let steps = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|event| {
            let rel = event["rel"].as_str().unwrap().to_owned();
            let is_removal = event["event"].as_str().unwrap().starts_with("ObjectRemoved");
            let body = event["body"].as_str().map(|body| std::fs::read(dir.join(body)).unwrap());
            (is_removal || body.is_some()).then_some(Step { rel, body })
        })
        .collect();
    let expected = serde_json::from_slice(&std::fs::read(dir.join("expected.json")).unwrap()).unwrap();
    Case { name: dir.file_name().unwrap().to_string_lossy().into_owned(), steps, expected }
}

struct Replay {
    world: World,
    watcher: Watcher,
    assets: BTreeMap<String, AssetId>,
}

impl Replay {
    /// Main and every branch that the case knows, registered before anything is written.
    async fn begin(case: &Case) -> Self {
        let world = World::new(1);
        world.storage.make_bucket(BUCKET);
        let mut assets = BTreeMap::new();
        let branches = case.expected["latest_by_branch"].as_object().cloned().unwrap_or_default();
        for branch in branches.keys().map(String::as_str).chain(["main"]) {
            let key = AssetKey::new(Format::Paimon, None, "db", "replayed", Some(branch)).unwrap();
            let spec = AssetSpec { key, location: Location::new(BUCKET, ROOT).unwrap() };
            let registration = assets::register(&world.quiet_ports(), PROJECT, &spec, &trace()).await.unwrap();
            assets.insert(branch.to_owned(), registration.id);
        }
        Self { watcher: Watcher::new(world.quiet_ports()), world, assets }
    }

    fn apply(&self, step: &Step) {
        let key = format!("{ROOT}/{}", step.rel);
        match &step.body {
            Some(body) => self.world.storage.put(BUCKET, &key, body.clone()),
            None => drop(self.world.storage.remove(BUCKET, &key)),
        }
    }

    fn created(step: &Step) -> Option<Created> {
        let body = step.body.as_ref()?;
        let key = format!("{ROOT}/{}", step.rel);
        let etag = Some(lakebell_testkit::MemoryStorage::etag_of(body));
        Some(Created { bucket: BUCKET.into(), key, etag })
    }

    async fn notify(&self, step: &Step) {
        if let Some(created) = Self::created(step) {
            self.watcher.created(&created, &trace()).await.unwrap();
        }
    }

    /// Scans every asset until nothing changes, over settle and grace times, accepting rewrites.
    async fn come_to_rest(&self) {
        let ports = self.world.quiet_ports();
        for asset in self.assets.values() {
            for _ in 0..5 {
                let hint = Hint { asset: *asset, look: Look::Whole, source: Source::Poll, trace: trace() };
                let observed = observe::observe(&ports, &hint).await.unwrap();
                self.world.clock.advance(Duration::from_secs(601));
                if observed.head.value.state.hold.as_ref().is_some_and(|hold| hold.confirmed_at.is_some()) {
                    observe::accept_rewrite(&ports, *asset, &trace()).await.unwrap();
                }
            }
        }
    }

    fn state(&self, branch: &str) -> AssetState {
        let item = self.world.items.peek(&lakebell_engine::layout::head(self.assets[branch])).unwrap();
        serde_json::from_str::<lakebell_engine::records::AssetHead>(&item.doc).unwrap().state
    }

    /// The newest commit is the one that the format's own library found, with its identity.
    fn assert_at_the_end(&self, case: &Case, how: &str) {
        let commits = case.expected["commits"].as_array().unwrap();
        for branch in self.assets.keys() {
            let state = self.state(branch);
            let mut of_branch = commits.iter().filter(|commit| commit["branch"] == branch.as_str());
            let newest = of_branch.clone().next_back();
            let label = format!("{} ({how}), branch {branch}", case.name);
            let position = newest.map_or(0, |commit| commit["position"].as_u64().unwrap());
            assert_eq!(state.position().ordinal.0, position, "{label}: newest");
            let uuid = newest.and_then(|commit| commit["extra"]["uuid"].as_str());
            if let Some(uuid) = uuid {
                assert_eq!(state.table.as_ref().unwrap().fingerprint.0, uuid, "{label}: identity");
            }
            let data = of_branch.rfind(|commit| commit["changes_data"] != false);
            let data = data.map(|commit| commit["position"].as_u64().unwrap());
            assert_eq!(
                state.data.map(|data| data.mark.version.position.ordinal.0),
                data,
                "{label}: newest data commit"
            );
            assert!(state.hold.is_none(), "{label}: {:?}", state.hold);
        }
    }
}

/// A damaged file ends a table's history where it stands.
fn is_readable(case: &Case) -> bool {
    case.expected["damaged"].as_array().is_none_or(Vec::is_empty)
}

#[tokio::test]
async fn every_recorded_history_in_its_own_order_counts_each_data_commit_once() {
    for case in cases().iter().filter(|case| is_readable(case)) {
        let replay = Replay::begin(case).await;
        let mut rewritten = false;
        for step in &case.steps {
            replay.apply(step);
            replay.notify(step).await;
            rewritten |= replay.assets.keys().any(|branch| replay.state(branch).hold.is_some());
        }
        let commits = case.expected["commits"].as_array().unwrap();
        let of_main = commits.iter().filter(|commit| commit["branch"] == "main");
        let is_dense = of_main.zip(1..).all(|(commit, id)| commit["position"] == id);
        if !rewritten && is_dense {
            let is_data = |commit: &&Value| commit["branch"] == "main" && commit["changes_data"] != false;
            let expected = commits.iter().filter(is_data).count();
            let counted = replay.state("main").data.map_or(0, |data| data.count);
            assert_eq!(counted, expected as u64, "{}: data commits", case.name);
        }
        replay.come_to_rest().await;
        replay.assert_at_the_end(case, "in order");
    }
}

#[tokio::test]
async fn notifications_in_any_order_doubled_and_late_end_in_the_same_state() {
    for case in cases().iter().filter(|case| is_readable(case)) {
        for seed in 1..=10 {
            let replay = Replay::begin(case).await;
            let random = SeededRandom::new(seed);
            let mut pending: Vec<&Step> = Vec::new();
            for step in &case.steps {
                replay.apply(step);
                pending.extend([step, step]);
                while !pending.is_empty() && random.below(3) > 0 {
                    let at = usize::try_from(random.below(pending.len() as u64)).unwrap();
                    replay.notify(pending.swap_remove(at)).await;
                }
            }
            while !pending.is_empty() {
                let at = usize::try_from(random.below(pending.len() as u64)).unwrap();
                replay.notify(pending.swap_remove(at)).await;
            }
            replay.come_to_rest().await;
            replay.assert_at_the_end(case, &format!("disordered, seed {seed}"));
        }
    }
}

#[tokio::test]
async fn every_notification_lost_and_a_scan_at_the_end() {
    for case in cases().iter().filter(|case| is_readable(case)) {
        let replay = Replay::begin(case).await;
        case.steps.iter().for_each(|step| replay.apply(step));
        replay.come_to_rest().await;
        replay.assert_at_the_end(case, "all lost");
    }
}

#[tokio::test]
async fn a_damaged_history_says_where_it_stops() {
    let mut met = 0;
    for case in cases().iter().filter(|case| !is_readable(case)) {
        let replay = Replay::begin(case).await;
        for step in &case.steps {
            replay.apply(step);
            replay.notify(step).await;
        }
        let main = replay.state("main");
        assert!(main.trouble.is_some(), "{}: {:?}", case.name, main.table);
        met += 1;
    }
    assert!(met > 0);
}
