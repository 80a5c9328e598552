//! What an evaluation reads: the same items and bytes, whatever happened to its assets before.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use lakebell_domain::event::EventKind;
use lakebell_domain::ids::AttemptId;
use lakebell_domain::reason::Verdict;
use lakebell_domain::version::Epoch;
use lakebell_engine::EngineError;
use lakebell_engine::evaluate::{self, Subject};
use lakebell_engine::layout;
use lakebell_engine::ports::Ports;
use lakebell_engine::ports::items::{Index, Item, ItemStore, Key, Page, Range, Write, Written};
use lakebell_testkit::{MemoryItems, Op};
use serde_json::json;

use crate::support::{Deployment, key, spec, target_id, trace};

/// How much was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Read {
    items: usize,
    bytes: usize,
}

/// Counts what is read through it.
struct Counted {
    store: Arc<MemoryItems>,
    items: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counted {
    fn note(&self, items: &[Item]) {
        let bytes = items.iter().map(|item| item.key.pk.len() + item.key.sk.len() + item.doc.len());
        self.items.fetch_add(items.len(), Ordering::SeqCst);
        self.bytes.fetch_add(bytes.sum(), Ordering::SeqCst);
    }
}

#[async_trait]
impl ItemStore for Counted {
    async fn query(&self, range: &Range, limit: Option<usize>, after: Option<&str>) -> Result<Page<Item>, EngineError> {
        let page = self.store.query(range, limit, after).await?;
        self.note(&page.found);
        Ok(page)
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, EngineError> {
        let found = self.store.get(keys).await?;
        self.note(&found);
        Ok(found)
    }

    async fn write(&self, actions: &[Write], attempt: &AttemptId) -> Result<Written, EngineError> {
        self.store.write(actions, attempt).await
    }

    async fn index(
        &self,
        index: Index,
        pk: &str,
        up_to: Option<&str>,
        backwards: bool,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Page<Key>, EngineError> {
        self.store.index(index, pk, up_to, backwards, limit, after).await
    }
}

impl Deployment {
    /// Puts so many past events beside the head of `a`. None can be understood, so that reading one fails.
    fn plant_events(&self, count: u64) {
        let template = self.world.items.peek(&layout::head(self.ids["a"])).unwrap();
        for at in 0..count {
            // Of the ordinal below the first commit: before every cursor.
            let token = format!("{:020}.{at:07}", 0);
            let key = layout::event(self.ids["a"], EventKind::SnapshotCommitted, Epoch(0), &token);
            self.world.items.plant(Item { key, doc: "x".to_owned(), ..template.clone() });
        }
    }

    /// Evaluates a target, with a claim where it is ready.
    async fn read_by_evaluating(&self, target: &str) -> (Verdict, Read) {
        let (items, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let counted = Arc::new(Counted { store: self.world.items.clone(), items, bytes });
        let ports = Ports { items: counted.clone(), ..self.world.quiet_ports() };
        let evaluated = evaluate::evaluate_one(&ports, &target_id(target), &trace()).await.unwrap().unwrap();
        let read = Read { items: counted.items.load(Ordering::SeqCst), bytes: counted.bytes.load(Ordering::SeqCst) };
        (evaluated.evaluation.verdict, read)
    }
}

/// What is read of a target that waits, of one that looks at each commit, and of one that is ready.
async fn read_beside(events: u64) -> Vec<(Verdict, Read)> {
    let mut d = Deployment::with(&["a", "b"]).await;
    d.declare(&spec("waits", &[("g", json!("all"), &["a", "b"])])).await;
    let chosen = json!({
        "name": "chooses", "workflowDefinitionCode": 12,
        "groups": [{"dependencies": [
            {"asset": key("a"), "operations": {"exclude": ["cleanup-*"]}}, {"asset": key("b")},
        ]}],
    });
    d.declare(&serde_json::from_value(chosen).unwrap()).await;
    for table in ["a", "b", "a"] {
        d.commit(table, "APPEND").await;
    }
    d.run_dispatcher().await;
    d.plant_events(events);
    let mut read = vec![d.read_by_evaluating("waits").await, d.read_by_evaluating("chooses").await];
    // Advanced by somebody who died before evaluating.
    let id = d.table("b").commit("APPEND", 1);
    d.world.tap.fault(Op::Get, 1, lakebell_testkit::Fault::DiesBefore);
    d.try_notify("b", id).await.unwrap_err();
    d.world.tap.revive();
    read.push(d.read_by_evaluating("waits").await);
    read
}

#[tokio::test]
async fn an_evaluation_reads_the_same_beside_ten_and_beside_a_million_past_events() {
    let beside_ten = read_beside(10).await;
    let verdicts: Vec<Verdict> = beside_ten.iter().map(|(verdict, _)| *verdict).collect();
    assert_eq!(verdicts, [Verdict::Waiting, Verdict::Waiting, Verdict::Ready]);
    assert_eq!(beside_ten, read_beside(1_000_000).await);
}

#[tokio::test]
async fn why_is_a_batch_for_each_100_members_and_one_for_the_target() {
    let names: Vec<String> = (0..120).map(|n| format!("t{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let d = Deployment::with(&names).await;
    let (first, second) = names.split_at(99);
    d.declare(&spec("one", &[("g", json!("all"), first)])).await;
    d.declare(&spec("two", &[("g", json!("all"), first), ("h", json!("all"), second)])).await;
    for (target, members, batches) in [("one", 99, 1), ("two", 120, 2)] {
        d.world.tap.take_log();
        let subject = Subject { target: target_id(target), members: None };
        let explained = evaluate::explain(&d.world.ports(), &[subject]).await.unwrap();
        assert_eq!(explained[0].evaluation.groups.iter().map(|group| group.members.len()).sum::<usize>(), members);
        let calls: Vec<Op> = d.world.tap.take_log().into_iter().map(|call| call.op).collect();
        assert_eq!(calls, vec![Op::Get; 1 + batches]);
    }
}
