//! How long one evaluation takes: `cargo bench -p lakebell-domain --bench evaluate`.
//!
//! Wanted: below 2 µs for a target with 2 assets and below 50 µs with 99, on one core.

// Benchmarks are no library code.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use lakebell_domain::asset::{AssetKey, Format};
use lakebell_domain::commit::{Commit, CommitKind, Millis};
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs, consume, evaluate, evaluate_to_claim};
use lakebell_domain::ids::AssetId;
use lakebell_domain::policy::Policies;
use lakebell_domain::reason::Verdict;
use lakebell_domain::state::{AssetState, Evidence};
use lakebell_domain::target::{Advance, Conditions, Group, Member, Target, WorkflowRef};
use lakebell_domain::version::{Fingerprint, Ordinal};

/// A commit as a table in life has them.
fn commit(ordinal: u64) -> Commit {
    Commit {
        ordinal: Ordinal(ordinal),
        fingerprint: Fingerprint::from(format!("5f1c7c1e-6d0b-4f0e-9b57-{ordinal:012}")),
        snapshot_id: ordinal.to_string(),
        parent_id: None,
        kind: CommitKind("APPEND".to_owned()),
        changes_data: Some(true),
        watermark: Some(Millis(1_790_000_000_000)),
        committed_at: None,
        schema_id: Some(2),
        total_records: Some(1_000),
        delta_records: Some(10),
        tags: Vec::new(),
        extra: BTreeMap::new(),
    }
}

fn target(assets: u64) -> Target {
    let member = |n: u64| {
        let table = format!("ods_orders_{n:02}");
        Member {
            asset: AssetId::from_bits(u128::from(n) << 64 | 0x5f1c_7c1e),
            key: AssetKey::new(Format::Paimon, None, "dw_db", &table, None).unwrap(),
            alias: table.parse().unwrap(),
            conditions: Conditions::default(),
        }
    };
    Target {
        id: "7/workflow-11".parse().unwrap(),
        generation: 1,
        connection: "default".parse().unwrap(),
        workflow: WorkflowRef::Name("daily".to_owned()),
        start_at: None,
        groups: vec![Group {
            name: "default".parse().unwrap(),
            advance: Advance::All,
            independent: false,
            members: (0..assets).map(member).collect(),
            prefixes: Vec::new(),
        }],
        enabled: true,
        invalid: None,
        policies: Policies::default(),
        allows_self_loop: false,
    }
}

fn evaluations(criterion: &mut Criterion) {
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    let before = AssetState::default().apply(&Evidence::FirstRead(vec![commit(41_234_000)]), now).state;
    let after = before.apply(&Evidence::Commit(Box::new(commit(41_234_001))), now).state;
    let mut group = criterion.benchmark_group("evaluate");
    for assets in [2, 99] {
        let target = target(assets);
        let views = |state| -> BTreeMap<AssetId, AssetView<'_>> {
            target.assets().into_keys().map(|asset| (asset, AssetView::of(7, Some(state)))).collect()
        };
        let inputs = |assets, cursor| Inputs {
            target: &target,
            cursor,
            assets,
            open: None,
            failed: None,
            switched_off: None,
            now,
        };
        let (old, new) = (views(&before), views(&after));
        // As it stands after a claim: everything that was there is taken.
        let nothing = TargetCursor::default();
        let cursor = consume(&inputs(&old, &nothing), None);
        for (name, views) in [("waiting", &old), ("ready", &new)] {
            let inputs = inputs(views, &cursor);
            assert_eq!(evaluate(&inputs).verdict == Verdict::Ready, name == "ready");
            group.bench_with_input(BenchmarkId::new(name, assets), &inputs, |bencher, inputs| {
                bencher.iter(|| evaluate(black_box(inputs)));
            });
            if name == "ready" {
                // With the claim that follows: its ranges, its cursors and its key.
                group.bench_with_input(BenchmarkId::new("claim", assets), &inputs, |bencher, inputs| {
                    bencher.iter(|| evaluate_to_claim(black_box(inputs)));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, evaluations);
criterion_main!(benches);
