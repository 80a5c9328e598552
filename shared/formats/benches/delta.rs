//! How fast Delta commits are read: `cargo bench -p lakebell-formats --bench delta`.

// Benchmarks are no library code.
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lakebell_formats::delta::{CommitReader, DeltaCommit, classify};
use serde_json::json;

const SMALL: &[u8] =
    include_bytes!("../../../fixtures/delta/app-transactions/table/_delta_log/00000000000000000001.json");

/// A commit of many added files with the statistics of some columns, as Spark writes it.
fn large(files: u64) -> Vec<u8> {
    let info = json!({"commitInfo": {"timestamp": 1, "operation": "WRITE", "txnId": "t"}});
    let mut text = format!("{info}\n");
    for file in 0..files {
        let least = json!({"order_id": file * 1000, "city": "Aachen", "day": "2026-01-01", "price": 0.5});
        let most = json!({"order_id": file * 1000 + 999, "city": "Zürich", "day": "2026-01-01", "price": 999.5});
        let nulls = json!({"order_id": 0, "city": 0, "day": 0, "price": 17});
        let stats = format!(r#"{{"numRecords":1000,"minValues":{least},"maxValues":{most},"nullCount":{nulls}}}"#);
        let add = json!({"add": {
            "path": format!("day=2026-01-01/part-{file:05}-89e1ecb3-1a2a-4a5e-8f52-7d3b7e3e2b11.c000.snappy.parquet"),
            "partitionValues": {"day": "2026-01-01"}, "size": 123_456_789, "modificationTime": 1_767_225_600_000_u64,
            "dataChange": true, "stats": stats, "tags": {"INSERTION_TIME": "1767225600000000"},
        }});
        text.push_str(&add.to_string());
        text.push('\n');
    }
    text.into_bytes()
}

fn commits(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("delta commit");
    let large = large(50_000);
    group.sample_size(20);
    for (name, file) in [("one file", SMALL), ("50 000 files", &large)] {
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_with_input(BenchmarkId::new("in memory", name), file, |bencher, file| {
            bencher.iter(|| DeltaCommit::parse(black_box(file), 7).unwrap());
        });
    }
    // As a store's body arrives.
    group.bench_with_input(BenchmarkId::new("in pieces of 16 KiB", "50 000 files"), &large, |bencher, file| {
        bencher.iter(|| {
            let mut reader = CommitReader::new(7);
            for piece in file.chunks(16 << 10) {
                reader.push(black_box(piece)).unwrap();
            }
            reader.finish().unwrap()
        });
    });
    group.finish();
}

fn keys(criterion: &mut Criterion) {
    let key = "lake/shop.db/orders/day=2026-01-01/part-00000-89e1ecb3-1a2a-4a5e-8f52-7d3b7e3e2b11.c000.snappy.parquet";
    criterion.bench_function("delta key of a data file", |bencher| bencher.iter(|| classify(black_box(key))));
}

criterion_group!(benches, commits, keys);
criterion_main!(benches);
