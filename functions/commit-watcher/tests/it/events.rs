//! Every sample payload of this repository, and what is in it.

use std::collections::BTreeSet;
use std::path::Path;

use lakebell_commit_watcher::unwrap::unwrap_event;

use crate::support::{event, short};

const ORDERS: &str = "lakebell-demo-lake/warehouse/ods_db.db/ods_order_latest/snapshot/snapshot-1";
const ENCODED: &str = "lakebell-demo-lake/warehouse/ods_db.db/größen + mengen/snapshot/snapshot-1";

fn expected() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("eventbridge-s3.json", vec![ENCODED]),
        ("s3-direct.json", vec![ORDERS]),
        (
            "s3-encoded-keys.json",
            vec![ENCODED, "raw lakebell-demo-lake/warehouse/ods_db.db/50%ZZ+off/snapshot/snapshot-1"],
        ),
        ("s3-test-event.json", vec!["ignored:test_event"]),
        ("sns-s3.json", vec![ORDERS]),
        ("sqs-evaluate.json", vec!["evaluate"]),
        ("sqs-eventbridge-s3.json", vec![ORDERS]),
        ("sqs-observe.json", vec!["observe"]),
        ("sqs-poison.json", vec!["refused:not_json", ORDERS]),
        (
            "sqs-s3-batch.json",
            vec![
                "lakebell-demo-lake/warehouse/ods_db.db/ods_order_latest/snapshot/snapshot-2",
                ORDERS,
                "lakebell-demo-lake/warehouse/ods_db.db/ods_order_latest/bucket-0/data-5d1c0f7e-0.parquet",
                "lakebell-demo-lake/warehouse/ods_db.db/ods_order_latest/snapshot/LATEST",
                "ignored:test_event",
            ],
        ),
        ("sqs-sns-s3.json", vec![ORDERS]),
    ]
}

#[test]
fn every_sample_payload_is_understood() {
    for (name, findings) in expected() {
        assert_eq!(short(&unwrap_event(&event(name))), findings, "{name}");
    }
}

#[test]
fn every_sample_payload_is_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events/commit-watcher");
    let there: BTreeSet<String> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let tested: BTreeSet<String> = expected().into_iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(there, tested);
}
