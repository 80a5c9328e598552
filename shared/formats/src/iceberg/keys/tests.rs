use super::IcebergObjectKind::{Metadata, Placeholder, Temporary, VersionHint};
use super::MetadataName::{Epoch, Numbered, Other, Version};
use super::*;

const UUID: &str = "a6f4d23c-98ca-4dc3-aec5-bce8f4758f84";

fn kind(key: &str) -> Option<IcebergObjectKind> {
    classify(key).map(|object| object.kind)
}

#[test]
fn every_spelling_is_told() {
    let names = [
        (format!("00000-{UUID}"), Metadata(Numbered(0))),
        (format!("00012-{UUID}"), Metadata(Numbered(12))),
        (format!("99999-{UUID}"), Metadata(Numbered(99_999))),
        (format!("100000-{UUID}"), Metadata(Numbered(100_000))),
        ("00004-v3-upgraded".to_owned(), Metadata(Numbered(4))),
        ("v1".to_owned(), Metadata(Version(1))),
        ("v12".to_owned(), Metadata(Version(12))),
        ("v0".to_owned(), Placeholder),
        ("v1730000000".to_owned(), Metadata(Epoch(1_730_000_000))),
        ("v1730000000123".to_owned(), Metadata(Epoch(1_730_000_000_123))),
        (UUID.to_owned(), Temporary),
        (UUID.to_ascii_uppercase(), Temporary),
        ("12345678-98ca-4dc3-aec5-bce8f4758f84".to_owned(), Temporary),
        ("orders 2026".to_owned(), Metadata(Other)),
        ("v01".to_owned(), Metadata(Other)),
        ("v-1".to_owned(), Metadata(Other)),
        ("v9223372036854775808".to_owned(), Metadata(Other)),
        ("2024-01-01".to_owned(), Metadata(Other)),
        ("00012-".to_owned(), Metadata(Other)),
        ("000012-x".to_owned(), Metadata(Other)),
        ("00012".to_owned(), Metadata(Other)),
    ];
    for (stem, expected) in names {
        for suffix in [".metadata.json", ".gz.metadata.json", ".metadata.json.gz"] {
            for folder in ["", "metadata/", "lake/ns/orders/metadata/", "lake/a b/c+d%2F/elsewhere/"] {
                let key = format!("{folder}{stem}{suffix}");
                assert_eq!(kind(&key), Some(expected), "{key}");
            }
        }
    }
}

#[test]
fn everything_else_is_nothing() {
    let others = [
        "",
        "/",
        "metadata/",
        "t/metadata/.metadata.json",
        "t/metadata/..metadata.json",
        "t/metadata/.v1.metadata.json.crc",
        "t/metadata/.gz.metadata.json",
        "t/metadata/v1.metadata.json.tmp",
        "t/metadata/v1.Metadata.json",
        "t/metadata/v1.json",
        "t/metadata/a6f4d23c-98ca-4dc3-aec5-bce8f4758f84-version-hint.temp",
        "t/metadata/a6f4d23c-98ca-4dc3-aec5-bce8f4758f84-m0.avro",
        "t/metadata/snap-1-1-a6f4d23c-98ca-4dc3-aec5-bce8f4758f84.avro",
        "t/metadata/1.stats",
        "t/metadata/1.puffin",
        "t/data/version-hint.text",
        "t/version-hint.text",
        "t/data/00000-0-x.parquet",
        "t/metadata/v1.metadata.json/part",
    ];
    for key in others {
        assert_eq!(kind(key), None, "{key}");
    }
    assert_eq!(kind("metadata/version-hint.text"), Some(VersionHint));
    assert_eq!(kind("t/metadata/version-hint.text"), Some(VersionHint));
}

#[test]
fn the_root_is_above_the_default_folder_only() {
    let root = |key: &str| classify(key).unwrap().root().map(str::to_owned);
    assert_eq!(root("lake/ns/orders/metadata/v1.metadata.json").as_deref(), Some("lake/ns/orders"));
    assert_eq!(root("metadata/v1.metadata.json").as_deref(), Some(""));
    assert_eq!(root("lake/elsewhere/v1.metadata.json"), None);
    assert_eq!(root("v1.metadata.json"), None);
}

#[test]
fn numbers_that_count_are_not_those_that_are_times() {
    assert_eq!(file_number("s3://lake/t/metadata/00012-x.metadata.json"), Some(12));
    assert_eq!(file_number("v3.gz.metadata.json"), Some(3));
    assert_eq!(file_number("v1730000000.metadata.json"), None);
    assert_eq!(file_number("mine.metadata.json"), None);
    assert_eq!(name_of("v1730000000.metadata.json").rising(), Some(1_730_000_000));
}
