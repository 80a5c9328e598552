use serde_json::json;

use super::*;
use crate::delta::DeltaCommit;

fn protocol(reader: i64, writer: i64, features: &[&str]) -> Protocol {
    let action = json!({"protocol": {"minReaderVersion": reader, "minWriterVersion": writer,
        "readerFeatures": features, "writerFeatures": features}});
    DeltaCommit::parse(action.to_string().as_bytes(), 0).unwrap().protocol.unwrap()
}

#[test]
fn what_real_tables_demand_is_understood() {
    let features = [
        "appendOnly",
        "invariants",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "columnMapping",
        "identityColumns",
        "deletionVectors",
        "rowTracking",
        "timestampNtz",
        "domainMetadata",
        "v2Checkpoint",
        "icebergCompatV1",
        "icebergCompatV2",
        "clustering",
        "vacuumProtocolCheck",
        "inCommitTimestamp",
        "typeWidening",
        "typeWidening-preview",
        "variantType-preview",
        "allowColumnDefaults",
    ];
    assert!(protocol(3, 7, &features).not_understood().is_empty());
    assert!(protocol(1, 2, &[]).not_understood().is_empty());
    assert!(!protocol(3, 7, &features).is_catalog_managed());
}

#[test]
fn what_is_not_understood_is_named_once_each() {
    let names = protocol(4, 8, &["deletionVectors", "zeta", "alpha-preview"]).not_understood();
    assert_eq!(names, ["minReaderVersion=4", "minWriterVersion=8", "alpha-preview", "zeta"]);
}

#[test]
fn catalog_managed_tables_are_known_by_any_of_their_names() {
    for feature in CATALOG_MANAGED {
        let protocol = protocol(3, 7, &[feature]);
        assert!(protocol.is_catalog_managed(), "{feature}");
        assert!(protocol.not_understood().is_empty(), "{feature}");
    }
}

#[test]
fn versions_are_required_and_features_are_bounded() {
    let refused = DeltaCommit::parse(br#"{"protocol":{"minReaderVersion":1}}"#, 0).unwrap_err();
    assert_eq!(refused.to_string(), "line 1: `protocol.minWriterVersion` is missing");
    let many: Vec<String> = (0..1000).map(|n| format!("feature-{n}-{}", "x".repeat(1000))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let kept = protocol(3, 7, &many);
    assert!(kept.reader_features.len() <= MAX_FEATURES);
    assert!(kept.reader_features.iter().all(|name| name.chars().count() <= MAX_FEATURE_CHARS + 1));
}
