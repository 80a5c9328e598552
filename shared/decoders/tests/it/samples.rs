//! Every shared sample of these forms has a golden outcome.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{files, golden, shared_samples, shown};

/// The decoder of a sample; `None` for what other parts of the project read (S3 notifications, native
/// events) and for schemas.
fn decoder_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "openlineage/generated/batch.json" => "openlineage-batch",
        "quality/dbt_run_results.json" | "quality/dbt_sources.json" | "quality/dbt_manifest_extract.json" => "dbt",
        "quality/gx_validation_result.json" | "quality/gx_checkpoint_describe.json" => "gx",
        "quality/soda_scan_results.json" => "soda",
        "hudi/commit_callback.json" => "hudi",
        _ if name.starts_with("openlineage/generated/") || name.starts_with("openlineage/upstream/") => "openlineage",
        _ if name.starts_with("paimon/http_report_request") => "paimon",
        _ if name.starts_with("catalogs/iceberg/") => "iceberg",
        _ if name.starts_with("catalogs/") => "catalogs",
        _ if name.starts_with("aws/glue_") || name.starts_with("aws/cloudtrail_") => "aws",
        _ if name.starts_with("flink/") => "flink",
        _ => return None,
    })
}

/// Templates of upstream tests leave out what differs from run to run.
fn completed(name: &str, mut event: Value) -> Value {
    if !name.starts_with("openlineage/upstream/") || event.get("job").is_none() {
        return event;
    }
    let object = event.as_object_mut().unwrap();
    object.insert("eventTime".to_owned(), json!("2026-01-15T10:04:12Z"));
    let run = object.entry("run").or_insert_with(|| json!({}));
    run.as_object_mut().unwrap().insert("runId".to_owned(), json!("00000000-0000-4000-8000-000000000001"));
    event
}

/// The samples have the types of a proposal; the product's are its own.
fn own_types(text: &str) -> String {
    text.replace("io.lake-events.", "io.lakebell.")
}

#[test]
fn every_shared_sample_has_its_outcome() {
    let Some(folder) = shared_samples() else { return };
    let mut count = 0;
    for file in files(&folder) {
        let name = file.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
        let Some(decoder) = decoder_of(&name) else { continue };
        let text = own_types(&std::fs::read_to_string(&file).unwrap());
        let document: Value = serde_json::from_str(&text).unwrap();
        // Lists of events are decoded one by one, except where the list itself is what is sent.
        let outcome = match document {
            Value::Array(events) if decoder != "openlineage-batch" => {
                let each = events.into_iter().map(|event| shown(decoder, event.to_string().as_bytes()));
                Value::Array(each.collect())
            }
            document => shown(decoder, completed(&name, document).to_string().as_bytes()),
        };
        golden(&format!("shared/{}", Path::new(&name).with_extension("").display()), &outcome);
        count += 1;
    }
    assert!(count > 60, "{count} samples");
}

#[test]
fn a_request_of_the_real_client_is_an_event() {
    let Some(folder) = shared_samples() else { return };
    let request = std::fs::read(folder.join("openlineage/http/request_plain.json")).unwrap();
    let request: Value = serde_json::from_slice(&request).unwrap();
    let decoded = shown("openlineage", request["body_utf8"].as_str().unwrap().as_bytes());
    golden("shared/openlineage/http/request_plain", &decoded);
}

#[test]
fn one_commit_by_several_ways_names_one_table_and_snapshot() {
    let Some(folder) = shared_samples() else { return };
    let of = |decoder: &str, name: &str, at: Option<usize>| {
        let document: Value = serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap();
        let document = at.map_or(document.clone(), |at| document[at].clone());
        shown(decoder, document.to_string().as_bytes())
    };
    let ways = [
        of("openlineage", "openlineage/generated/run_complete_spark_iceberg_glue.json", None),
        of("catalogs", "catalogs/lakekeeper/cloudevents.json", Some(1)),
        of("catalogs", "catalogs/nessie/content_stored.json", None),
        of("iceberg", "catalogs/iceberg/report_metrics_commit.json", None),
    ];
    for way in ways {
        let reports = way["content"]["reports"].as_array().unwrap();
        let committed = reports.iter().find(|report| report["says"].get("committed").is_some()).unwrap();
        assert_eq!(committed["says"]["committed"]["snapshot"], "8744736658442914487");
        let location = committed["table"].get("location").and_then(Value::as_str);
        assert!(location.is_none_or(|location| location == "s3://example-lake/warehouse/sales/orders"), "{committed}");
    }
}
