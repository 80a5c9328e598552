//! Real payloads, each with the object events that are in it.

use std::collections::BTreeSet;
use std::path::Path;

use lakebell_commit_watcher::unwrap::{decode_key, unwrap_event};
use serde_json::Value;

use crate::support::{Function, samples, short};

const METADATA: &str =
    "example-lake/warehouse/sales/orders/metadata/00017-6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.metadata.json";
const OTHER: &str = "ignored:other_event";
const UNKNOWN: &str = "refused:unknown_shape";

/// What is no event but data for tests, or an answer.
const NO_EVENTS: [&str; 2] = ["s3_key_decoding_cases.json", "s3_sequencer_cases.json"];

fn expected() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut expected = of_s3();
    expected.extend(of_envelopes());
    expected.extend(of_emulators());
    expected.extend(of_others());
    expected
}

fn of_s3() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("s3_complete_multipart_v2_1.json", vec!["example-lake/warehouse/sales/orders/data/part-00000.parquet"]),
        ("s3_copy_v2_1.json", vec!["example-lake/warehouse/sales/orders/data/copied.parquet"]),
        ("s3_delete_marker_v2_1.json", vec!["ignored:not_created"]),
        ("s3_delete_v2_1.json", vec!["ignored:not_created"]),
        (
            "s3_keys_encoding_v2_1.json",
            vec![
                "example-lake/warehouse/sales/orders/data/dt=2026-01-15/region=eu west/part-0.parquet",
                "example-lake/warehouse/a+b/part+1.parquet",
                "example-lake/warehouse/bestellungen_größe/注文/x.parquet",
                "example-lake/warehouse/sales/orders/metadata/v3.metadata.json",
                "example-lake/warehouse/sales/orders/ts=2026-01-15 10:00:00/x.parquet",
                "example-lake/warehouse/region=eu west/x.parquet",
            ],
        ),
        ("s3_lifecycle_delete_v2_3.json", vec!["ignored:not_created"]),
        (
            "s3_put_delta_log_v2_1.json",
            vec!["example-lake/warehouse/sales/orders_delta/_delta_log/00000000000000000042.json"],
        ),
        (
            "s3_put_paimon_snapshot_v2_1.json",
            vec![
                "example-lake/warehouse/sales.db/orders/snapshot/snapshot-42",
                "example-lake/warehouse/sales.db/orders/snapshot/LATEST",
            ],
        ),
        ("s3_put_v2_1.json", vec![METADATA]),
        ("s3_put_v2_5_generated_tags.json", vec![METADATA]),
        ("s3_replication_failed_v2_2.json", vec!["ignored:not_created"]),
        ("s3_test_event.json", vec!["ignored:test_event"]),
        ("eventbridge_s3_object_created_copy.json", vec!["example-lake/warehouse/sales/orders/data/copied.parquet"]),
        (
            "eventbridge_s3_object_created_multipart.json",
            vec!["example-lake/warehouse/sales/orders/data/dt=2026-01-15/region=eu west/a+b.parquet"],
        ),
        ("eventbridge_s3_object_created_put.json", vec![METADATA]),
        ("eventbridge_s3_object_deleted_lifecycle.json", vec![OTHER]),
        ("eventbridge_s3_object_deleted_marker.json", vec![OTHER]),
        ("upstream/example-s3-event.json", vec!["sourcebucket/Happy Face.jpg"]),
        ("upstream/example-s3-event-with-decoded.json", vec!["sourcebucket/Happy Face.jpg"]),
    ]
}

fn of_envelopes() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("sqs_s3_batch.json", vec![METADATA, "ignored:test_event", "refused:not_json"]),
        ("sqs_sns_s3_batch.json", vec![METADATA, "ignored:test_event"]),
        ("sqs_eventbridge_s3_batch.json", vec![METADATA]),
        ("sqs_fifo_cloudevent_batch.json", vec![UNKNOWN]),
        ("sns_lambda_s3.json", vec![METADATA]),
        ("sns_http_notification.json", vec![METADATA]),
        ("sns_http_subscription_confirmation.json", vec!["ignored:confirmation"]),
        ("lambda_destination_failure.json", vec![METADATA]),
        ("upstream/example-sns-event.json", vec!["refused:not_json"]),
        ("upstream/example-sns-subscription-confirmation.json", vec!["ignored:confirmation"]),
        ("upstream/example-sqs-event.json", vec!["refused:not_json"]),
    ]
}

fn of_emulators() -> Vec<(&'static str, Vec<&'static str>)> {
    const ORDERS: &str = "warehouse/db/orders/metadata/00003-6f1d0d4f-2a0b-4d0e-9d4a-9a1c2c7b1f10.metadata.json";
    let mut from_moto = Vec::new();
    for (bucket, other) in [("lake-sqs", None), ("lake-eb", Some(OTHER))] {
        let mut findings = Vec::new();
        if other.is_none() {
            findings.push("ignored:test_event".to_owned());
        }
        let keys = [
            (ORDERS, true),
            ("warehouse/db/orders/data/dt=2026-01-01/region=eu west/part-0.parquet", true),
            ("warehouse/db/bestellungen_größe/data/a+b.parquet", true),
            ("warehouse/db/orders/data/copy.parquet", false),
            ("warehouse/db/orders/data/multi.parquet", true),
            ("warehouse/db/orders/data/multi.parquet", false),
        ];
        for (key, is_put) in keys {
            findings.push(format!("{bucket}/{key}"));
            findings.extend(other.filter(|_| is_put).map(str::to_owned));
        }
        from_moto.push(findings);
    }
    let leak = |findings: Vec<String>| findings.into_iter().map(|finding| &*finding.leak()).collect::<Vec<&str>>();
    let [sqs, event_bridge] = from_moto.try_into().unwrap();
    vec![
        ("emulator/moto_sqs_s3.json", leak(sqs)),
        ("emulator/moto_eventbridge_s3.json", leak(event_bridge)),
        ("emulator/moto_sns_s3.json", leak(vec!["ignored:test_event".to_owned(), format!("lake-sns/{ORDERS}")])),
    ]
}

/// Events for other endpoints, or of later versions: refused or ignored, never a crash.
fn of_others() -> Vec<(&'static str, Vec<&'static str>)> {
    vec![
        ("apigw_http_v2_cloudevent.json", vec![UNKNOWN]),
        ("apigw_http_v2_openlineage_gzip_base64.json", vec![UNKNOWN]),
        ("apigw_rest_v1_cloudevent.json", vec![UNKNOWN]),
        ("cloudtrail_s3tables_maintenance.json", vec!["service:1"]),
        ("cloudtrail_s3tables_update_metadata_location.json", vec!["service:1"]),
        ("eventbridge_scheduled_rule.json", vec![OTHER]),
        ("glue_database_create_table.json", vec!["service:2"]),
        ("glue_database_delete_table.json", vec!["service:1"]),
        ("glue_table_batch_create_partition.json", vec!["service:1"]),
        ("glue_table_update.json", vec!["service:1"]),
        ("scheduler_custom_input.json", vec![UNKNOWN]),
        ("scheduler_default_payload.json", vec![OTHER]),
        ("sqs_partial_batch_response.json", vec![UNKNOWN]),
        ("upstream/example-apigw-v2-request-iam.json", vec![UNKNOWN]),
        ("upstream/example-apigw-v2-request-jwt-authorizer.json", vec![UNKNOWN]),
        ("upstream/example-eventbridge-event-obj.json", vec![OTHER]),
        ("upstream/example-eventbridge-schedule.json", vec![OTHER]),
        ("upstream/example-sqs-batch-response.json", vec![UNKNOWN]),
    ]
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn every_sample_holds_its_object_events() {
    let Some(samples) = samples() else { return };
    for (name, findings) in expected() {
        assert_eq!(short(&unwrap_event(&read(&samples.join(name)))), findings, "{name}");
    }
}

#[test]
fn every_sample_is_tested() {
    let Some(samples) = samples() else { return };
    let mut there = BTreeSet::new();
    for folder in ["", "emulator/", "upstream/"] {
        for file in std::fs::read_dir(samples.join(folder)).unwrap() {
            let name = format!("{folder}{}", file.unwrap().file_name().into_string().unwrap());
            if Path::new(&name).extension().is_some_and(|extension| extension == "json")
                && !NO_EVENTS.contains(&name.as_str())
            {
                there.insert(name);
            }
        }
    }
    let tested: BTreeSet<String> = expected().into_iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(there, tested);
}

#[test]
fn keys_are_decoded_as_the_table_says() {
    let Some(samples) = samples() else { return };
    for case in read(&samples.join("s3_key_decoding_cases.json")).as_array().unwrap() {
        let decoded = decode_key(case["raw"].as_str().unwrap());
        assert_eq!(decoded.key, case["decoded"], "{case}");
        assert_eq!(decoded.is_raw, case["why"].as_str().unwrap().starts_with("malformed"), "{case}");
    }
}

#[tokio::test]
async fn only_the_poison_message_of_the_sample_batch_fails() {
    let Some(samples) = samples() else { return };
    let function = Function::new();
    let again = function.handle(read(&samples.join("sqs_s3_batch.json"))).await.unwrap();
    let answer = read(&samples.join("sqs_partial_batch_response.json"));
    let expected: Vec<&str> = answer["batchItemFailures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().unwrap())
        .collect();
    assert_eq!(again, expected);
}
