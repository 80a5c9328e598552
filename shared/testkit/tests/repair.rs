//! How long a lost notification stays unnoticed: at most one scan interval and one minute, by the
//! simulated clock.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lakebell_domain::asset::AssetKey;
use lakebell_domain::event::Source;
use lakebell_domain::ids::{ProjectCode, TraceId};
use lakebell_engine::assets::{self, AssetSpec};
use lakebell_engine::dispatch::{Dispatcher, Order};
use lakebell_engine::observe::{Hint, Look};
use lakebell_engine::ports::queue::Message;
use lakebell_engine::ports::time::Clock as _;
use lakebell_engine::watch::Watcher;
use lakebell_engine::{compensate, evaluate, targets};
use lakebell_testkit::{MemoryScheduler, PaimonTable, SeededRandom, World};

const PROJECT: ProjectCode = ProjectCode(7);
/// The schedule of the pass.
const SCAN_INTERVAL: SignedDuration = SignedDuration::from_mins(5);
/// The schedule of the sweep.
const SWEEP_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

fn trace() -> TraceId {
    TraceId::new("trace-of-a-test").unwrap()
}

struct Deployment {
    world: World,
    scheduler: Arc<MemoryScheduler>,
    table: PaimonTable,
}

impl Deployment {
    async fn begin(seed: u64) -> Self {
        let world = World::new(seed);
        let table = PaimonTable::new(Arc::clone(&world.storage), "lake", "wh/ods_db.db/a");
        let key: AssetKey = "paimon://ods_db/a".parse().unwrap();
        let spec = AssetSpec::new(key.clone(), table.location().parse().unwrap());
        let ports = world.quiet_ports();
        assets::register(&ports, PROJECT, &spec, &trace()).await.unwrap();
        let document = serde_json::json!({
            "name": "t", "workflowDefinitionCode": 11, "groups": [{"dependencies": [{"asset": key}]}],
        });
        let target = serde_json::from_value(document).unwrap();
        targets::declare(&ports, PROJECT, &target, &trace()).await.unwrap();
        world.queue.drain();
        Self { world, scheduler: Arc::new(MemoryScheduler::new()), table }
    }

    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    async fn carry(&self, message: Message) {
        let ports = self.world.quiet_ports();
        match message {
            Message::Dispatch { target, trigger, attempt, trace } => {
                let dispatcher = Dispatcher { ports, scheduler: self.scheduler.clone() };
                let order = Order { target, trigger, attempt, trace };
                let deadline = self.now() + SignedDuration::from_secs(30);
                dispatcher.dispatch(&order, deadline).await.unwrap();
            }
            Message::Evaluate { targets, trace } => {
                for target in targets {
                    evaluate::evaluate_one(&ports, &target, &trace).await.unwrap();
                }
            }
            Message::Observe { asset, trace, .. } => {
                let hint = Hint { asset, look: Look::Whole, source: Source::Poll, trace };
                Watcher::new(ports).look(&hint).await.unwrap();
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_lost_notification_is_repaired_within_a_scan_interval_and_a_minute() {
    let mut longest = SignedDuration::ZERO;
    for seed in 1..=200 {
        let random = SeededRandom::new(seed);
        let mut d = Deployment::begin(seed).await;
        let (mut next_pass, mut next_sweep) = (d.now() + SCAN_INTERVAL, d.now() + SWEEP_INTERVAL);
        d.world.clock.advance(Duration::from_secs(random.below(900)));
        d.table.commit("APPEND", 1);
        let committed_at = d.now();
        while d.scheduler.instances().is_empty() {
            let late = d.now().duration_since(committed_at);
            assert!(late <= SCAN_INTERVAL + SWEEP_INTERVAL, "seed {seed}: nothing was started after {late}");
            d.world.clock.advance(Duration::from_secs(1));
            let ports = d.world.quiet_ports();
            if d.now() >= next_sweep {
                next_sweep += SWEEP_INTERVAL;
                compensate::sweep(&ports, &trace()).await.unwrap();
            }
            if d.now() >= next_pass {
                next_pass += SCAN_INTERVAL;
                compensate::pass(&ports, &trace(), d.now() + SWEEP_INTERVAL).await.unwrap();
            }
            // A queue needs some seconds for each message.
            if random.below(5) == 0
                && let Some(message) = d.world.queue.take(0)
            {
                d.carry(message).await;
            }
        }
        longest = longest.max(d.now().duration_since(committed_at));
    }
    println!("the longest of 200: {longest:#}");
}
