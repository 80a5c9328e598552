//! How fast payloads are decoded. `cargo bench -p lakebell-decoders`.
// Benchmarks are no library code.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lakebell_decoders::quality::Tool;
use lakebell_decoders::{catalogs, hooks, openlineage, quality};

fn read(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fixtures/writers/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    let mut case = |name: &str, bytes: Vec<u8>, decode: &dyn Fn(&[u8]) -> usize| {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |b| b.iter(|| decode(std::hint::black_box(&bytes))));
    };
    let event = read("openlineage/complete_with_commit.json");
    let batch = [b"[".as_slice(), &vec![event.as_slice(); 200].join(&b','), b"]"].concat();
    case("openlineage", event, &|bytes| openlineage::decode(bytes).unwrap().content.reports.len());
    case("openlineage-batch", batch, &|bytes| openlineage::decode_batch(bytes).unwrap().len());
    case("dbt", read("dbt/with_manifest.json"), &|bytes| {
        quality::decode(Tool::Dbt, bytes).unwrap().content.reports.len()
    });
    case("gx", read("gx/validation.json"), &|bytes| {
        quality::decode(Tool::GreatExpectations, bytes).unwrap().content.reports.len()
    });
    case("soda", read("soda/scan.json"), &|bytes| quality::decode(Tool::Soda, bytes).unwrap().content.reports.len());
    case("lakekeeper", read("catalogs/lakekeeper_update.json"), &|bytes| {
        catalogs::decode_bytes(bytes).unwrap().content.reports.len()
    });
    case("hudi", read("hudi/commit.json"), &|bytes| hooks::hudi_commit(bytes).unwrap().content.reports.len());
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
