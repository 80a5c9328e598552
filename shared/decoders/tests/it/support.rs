//! Every decoder under one name, samples, and golden files.
//!
//! `LAKEBELL_GOLDEN=rewrite cargo test -p lakebell-decoders` writes the golden files anew.

use std::path::{Path, PathBuf};

use lakebell_decoders::quality::Tool;
use lakebell_decoders::{Entry, Refusal, aws, catalogs, flink, hooks, openlineage, quality};
use serde_json::{Value, json};

/// What a decoder makes of bytes, as a golden file shows it.
pub(crate) fn shown(decoder: &str, bytes: &[u8]) -> Value {
    let entry = |entry: Result<Entry, Refusal>| match entry {
        Ok(entry) => serde_json::to_value(entry).unwrap(),
        Err(refusal) => json!({"refused": {"field": refusal.field, "problem": refusal.problem, "hint": refusal.hint}}),
    };
    match decoder {
        "openlineage" => entry(openlineage::decode(bytes)),
        "openlineage-batch" => match openlineage::decode_batch(bytes) {
            Ok(items) => Value::Array(items.into_iter().map(entry).collect()),
            Err(refusal) => entry(Err(refusal)),
        },
        "paimon" => entry(hooks::paimon_mark_done(bytes)),
        "hudi" => entry(hooks::hudi_commit(bytes)),
        "iceberg" => entry(hooks::iceberg_metrics(bytes)),
        "catalogs" => entry(catalogs::decode_bytes(bytes)),
        "dbt" => entry(quality::decode(Tool::Dbt, bytes)),
        "gx" => entry(quality::decode(Tool::GreatExpectations, bytes)),
        "soda" => entry(quality::decode(Tool::Soda, bytes)),
        "aws" => entry(aws::decode_bytes(bytes)),
        "flink" => flink_event(bytes),
        other => panic!("no decoder {other}"),
    }
}

/// Every decoder.
pub(crate) const DECODERS: [&str; 11] =
    ["openlineage", "openlineage-batch", "paimon", "hudi", "iceberg", "catalogs", "dbt", "gx", "soda", "aws", "flink"];

fn flink_event(bytes: &[u8]) -> Value {
    let decoded = lakebell_decoders::Node::read(bytes)
        .and_then(|node| flink::decode(node.get("type").text().unwrap_or_default(), &node));
    match decoded {
        Ok(content) => serde_json::to_value(content).unwrap(),
        Err(refusal) => json!({"refused": {"field": refusal.field, "problem": refusal.problem, "hint": refusal.hint}}),
    }
}

/// The folder of this crate.
pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Payloads of this project.
pub(crate) fn own_fixtures() -> PathBuf {
    crate_folder().join("../../fixtures/writers")
}

/// Shared samples, where they are there.
pub(crate) fn shared_samples() -> Option<PathBuf> {
    let folder = crate_folder().join("../../../shared/samples");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: the shared samples are not there");
    None
}

/// Every file below a folder that ends with `.json`, in order.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Compares what was decoded with a golden file.
#[track_caller]
pub(crate) fn golden(name: &str, decoded: &Value) {
    let shown = format!("{decoded:#}\n");
    let file = crate_folder().join("golden").join(format!("{name}.json"));
    if std::env::var("LAKEBELL_GOLDEN").as_deref() == Ok("rewrite") {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &shown).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(shown, expected, "golden/{name}.json differs; LAKEBELL_GOLDEN=rewrite writes it anew");
}
