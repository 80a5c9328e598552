//! How fast a Paimon snapshot is read: `cargo bench -p lakebell-formats --bench paimon`.

// Benchmarks are no library code.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use lakebell_formats::paimon::{Snapshot, classify};

const SNAPSHOT: &[u8] = include_bytes!("../../../fixtures/paimon/changelog-input/table/snapshot/snapshot-1");

fn snapshots(criterion: &mut Criterion) {
    criterion.bench_function("paimon snapshot", |bencher| {
        bencher.iter(|| Snapshot::parse(black_box(SNAPSHOT)).unwrap());
    });
    criterion.bench_function("paimon snapshot, as a commit", |bencher| {
        bencher.iter(|| Snapshot::parse(black_box(SNAPSHOT)).unwrap().to_commit(None));
    });
    let key = "lake/shop.db/orders/branch/branch-audit/snapshot/snapshot-123456";
    criterion.bench_function("paimon key of a snapshot", |bencher| bencher.iter(|| classify(black_box(key))));
}

criterion_group!(benches, snapshots);
criterion_main!(benches);
