//! How fast large metadata files are read, from memory and through gzip.

// A benchmark fails as a test does.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flate2::Compression;
use flate2::write::GzEncoder;
use lakebell_formats::iceberg::{Known, MAIN, Metadata, ReadOptions};

/// A file as Java's writer formats it or as pyiceberg does, of so many snapshots.
fn file(snapshots: i64, pretty: bool) -> Vec<u8> {
    let mut list = String::new();
    for n in 1..=snapshots {
        let comma = if n == 1 { "" } else { "," };
        let parent = if n == 1 { String::new() } else { format!(r#""parent-snapshot-id":{},"#, id(n - 1)) };
        let _ = write!(
            list,
            concat!(
                r#"{}{{"sequence-number":{n},"snapshot-id":{},{}"timestamp-ms":{},"summary":{{"operation":"append","#,
                r#""spark.app.id":"local-1795982380788","added-data-files":"1","added-records":"1000","added-files-size":"29269","#,
                r#""changed-partition-count":"1","total-records":"{}","total-files-size":"{}","total-data-files":"{n}","#,
                r#""total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0"}},"#,
                r#""manifest-list":"s3://lake/warehouse/ns/orders/metadata/snap-{}-1-{:016x}{:016x}.avro","schema-id":0}}"#
            ),
            comma,
            id(n),
            parent,
            1_795_982_380_788 + n * 60_000,
            n * 1000,
            n * 29_269,
            id(n),
            id(n + 7),
            id(n + 13),
            n = n
        );
    }
    let head = id(snapshots);
    let text = format!(
        r#"{{"format-version":2,"table-uuid":"85f616f1-4c4e-412a-9119-bd72cf73c9ba","location":"s3://lake/warehouse/ns/orders","last-sequence-number":{snapshots},"last-updated-ms":1795982380788,"current-schema-id":0,"schemas":[],"current-snapshot-id":{head},"refs":{{"main":{{"snapshot-id":{head},"type":"branch"}}}},"snapshots":[{list}],"snapshot-log":[],"metadata-log":[]}}"#
    );
    if !pretty {
        return text.into_bytes();
    }
    serde_json::to_vec_pretty(&serde_json::from_str::<serde_json::Value>(&text).unwrap()).unwrap()
}

/// As random as the ids of writers, so that gzip finds as little in them.
fn id(n: i64) -> i64 {
    let mixed = n.wrapping_mul(6_364_136_223_846_793_005);
    (mixed ^ (mixed >> 29)).wrapping_mul(0x1656_67b1_9e37_79f9) & i64::MAX
}

fn compressed(json: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(json).unwrap();
    encoder.finish().unwrap()
}

fn large_files(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("iceberg, 50,000 snapshots");
    group.sample_size(10);
    for (name, json) in [("compact", file(50_000, false)), ("pretty", file(50_000, true))] {
        let gzip = compressed(&json);
        println!("{name}: {} bytes, {} compressed", json.len(), gzip.len());
        group.throughput(Throughput::Bytes(json.len() as u64));
        group.bench_function(format!("{name}, in memory"), |bench| {
            bench.iter(|| Metadata::parse(black_box(&json), ReadOptions::default()).unwrap());
        });
        group.bench_function(format!("{name}, as a stream"), |bench| {
            bench.iter(|| Metadata::read(black_box(json.as_slice()), ReadOptions::default()).unwrap());
        });
        group.bench_function(format!("{name}, as a gzip stream"), |bench| {
            bench.iter(|| Metadata::read(black_box(gzip.as_slice()), ReadOptions::default()).unwrap());
        });
    }
    group.finish();
}

fn steps(criterion: &mut Criterion) {
    let metadata = Metadata::parse(&file(50_000, false), ReadOptions::default()).unwrap();
    let mut group = criterion.benchmark_group("iceberg, step");
    for back in [1, 1_000] {
        let known = Known::Snapshot { id: id(50_000 - back), sequence_number: Some(50_000 - back) };
        group.bench_function(format!("{back} snapshots"), |bench| bench.iter(|| metadata.step(MAIN, black_box(known))));
    }
    group.finish();
}

criterion_group!(benches, large_files, steps);
criterion_main!(benches);
