//! Locations: one place has one spelling, and what names no place is refused.

use lakebell_domain::asset::{Location, MAX_LOCATION_BYTES};
use proptest::prelude::*;

const SHAPE: &str = "write s3://bucket/path/of/the/table";

#[test]
fn every_spelling_of_a_place_is_one() {
    let cases = [
        ("s3://lake/ods.db/orders", "s3://lake/ods.db/orders"),
        ("s3a://lake/ods.db/orders", "s3://lake/ods.db/orders"),
        ("s3n://lake/ods.db/orders", "s3://lake/ods.db/orders"),
        ("S3A://lake/ods.db/orders", "s3://lake/ods.db/orders"),
        ("s3://lake/ods.db/orders/", "s3://lake/ods.db/orders"),
        ("s3://lake//ods.db///orders//", "s3://lake/ods.db/orders"),
        ("s3://lake/./ods.db/./orders", "s3://lake/ods.db/orders"),
        ("s3://lake/Ods.db/ORDERS", "s3://lake/Ods.db/ORDERS"),
        ("s3://lake/a%20b/c d", "s3://lake/a%20b/c d"),
        ("s3://lake/订单", "s3://lake/订单"),
        ("s3://lake/a..b/...", "s3://lake/a..b/..."),
        ("s3://a.b-c.9/x", "s3://a.b-c.9/x"),
    ];
    for (text, canonical) in cases {
        let location: Location = text.parse().unwrap_or_else(|invalid| panic!("{text}: {invalid}"));
        assert_eq!(location.to_string(), canonical, "of {text}");
        assert_eq!(canonical.parse::<Location>().unwrap(), location);
        let json = serde_json::to_value(&location).unwrap();
        assert_eq!(json, canonical);
        assert_eq!(serde_json::from_value::<Location>(json).unwrap(), location);
    }
    let location: Location = "s3a://lake//ods.db/orders/".parse().unwrap();
    assert_eq!((location.bucket(), location.prefix()), ("lake", "ods.db/orders"));
    assert_eq!(location.object_key("snapshot/LATEST"), "ods.db/orders/snapshot/LATEST");
}

#[test]
fn what_is_no_place_is_refused_with_what_is_wrong_and_what_would_be_right() {
    let no_bucket = "names no S3 bucket";
    let dots = "has `..` or a control character in its path";
    let cases = [
        ("/warehouse/ods.db/orders", "is no S3 URL"),
        ("lake/ods.db/orders", "is no S3 URL"),
        ("hdfs://lake/ods.db/orders", "is no S3 URL"),
        ("oss://lake/ods.db/orders", "is no S3 URL"),
        ("", "is no S3 URL"),
        ("s3://", no_bucket),
        ("s3:///ods.db/orders", no_bucket),
        ("s3://ab/orders", no_bucket),
        ("s3://Lake/orders", no_bucket),
        ("s3://la_ke/orders", no_bucket),
        ("s3://la ke/orders", no_bucket),
        ("s3://user:secret@lake/orders", no_bucket),
        ("s3://-lake/orders", no_bucket),
        ("s3://lake-/orders", no_bucket),
        ("s3://.lake/orders", no_bucket),
        ("s3://la..ke/orders", no_bucket),
        ("s3://.../orders", no_bucket),
        ("s3://lake", "has no path below the bucket"),
        ("s3://lake/", "has no path below the bucket"),
        ("s3://lake//./", "has no path below the bucket"),
        ("s3://lake/../orders", dots),
        ("s3://lake/ods/..", dots),
        ("s3://lake/a\tb", dots),
        ("s3://lake/a\u{0}b", dots),
    ];
    for (text, problem) in cases {
        let invalid = text.parse::<Location>().expect_err(text);
        assert_eq!((invalid.field.as_str(), invalid.hint.as_str()), ("location", SHAPE), "of {text:?}");
        assert!(invalid.problem.ends_with(problem), "{text:?}: {}", invalid.problem);
    }
    let bucket = |length: usize| format!("s3://{}/x", "b".repeat(length)).parse::<Location>();
    assert!(bucket(2).is_err() && bucket(3).is_ok() && bucket(63).is_ok() && bucket(64).is_err());
}

#[test]
fn a_location_has_a_limit_in_bytes_and_the_refusal_names_it() {
    let room = MAX_LOCATION_BYTES - "s3://lake/".len();
    assert!(Location::new("lake", &"x".repeat(room)).is_ok());
    let invalid = Location::new("lake", &"x".repeat(room + 1)).unwrap_err();
    assert_eq!(invalid.to_string(), "location: it has 1101 bytes; use at most 1100 bytes");
}

proptest! {
    #[test]
    fn any_prefix_survives_writing_and_parsing(
        scheme in "s3[an]?",
        bucket in "[a-z0-9][a-z0-9-]{1,30}[a-z0-9]",
        segments in proptest::collection::vec("[^/\\p{Cc}]{0,10}", 0..6),
    ) {
        let prefix = segments.join("/");
        let parsed = format!("{scheme}://{bucket}/{prefix}").parse::<Location>();
        prop_assert_eq!(&parsed, &Location::new(&bucket, &prefix));
        let kept: Vec<_> = segments.iter().filter(|segment| !segment.is_empty() && *segment != ".").collect();
        let allowed = !kept.is_empty() && !kept.iter().any(|segment| *segment == "..");
        prop_assert_eq!(parsed.is_ok(), allowed);
        if let Ok(location) = parsed {
            prop_assert_eq!(location.bucket(), bucket);
            prop_assert_eq!(location.prefix().split('/').collect::<Vec<_>>(), kept);
            prop_assert_eq!(location.to_string().parse::<Location>().unwrap(), location);
        }
    }
}
