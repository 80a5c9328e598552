use serde_json::json;

use super::*;

fn producer(options: &Value) -> Option<ChangelogProducer> {
    let schema = json!({"version": 3, "id": 4, "fields": [], "options": options});
    Schema::parse(schema.to_string().as_bytes()).unwrap().changelog_producer
}

#[test]
fn columns_keys_and_producer_are_read() {
    let bytes = br#"{
      "version" : 3, "id" : 4, "timeMillis" : 1725534144802, "comment" : null, "highestFieldId" : 1,
      "fields" : [ { "id" : 0, "name" : "id", "type" : "BIGINT NOT NULL" },
                   { "id" : 1, "name" : "tags", "type" : { "type" : "ARRAY", "element" : "STRING" } } ],
      "partitionKeys" : [ ], "primaryKeys" : [ "id" ],
      "options" : { "bucket" : "2", "changelog-producer" : "full-compaction" }
    }"#;
    let expected = Schema {
        id: 4,
        field_names: vec!["id".into(), "tags".into()],
        partition_keys: vec![],
        primary_keys: vec!["id".into()],
        changelog_producer: Some(ChangelogProducer::FullCompaction),
    };
    assert_eq!(Schema::parse(bytes).unwrap(), expected);
    assert_eq!(Schema::parse_named(bytes, 4).unwrap(), expected);
    let error = Schema::parse_named(bytes, 5).unwrap_err();
    assert_eq!(error.kind, FormatErrorKind::IdMismatch);
    assert_eq!(error.to_string(), "the file is named schema-5 and says that it is schema 4");
}

#[test]
fn the_producer_is_none_by_default_and_unknown_where_its_value_is() {
    assert_eq!(producer(&json!(null)), Some(ChangelogProducer::None));
    assert_eq!(producer(&json!({})), Some(ChangelogProducer::None));
    assert_eq!(producer(&json!({"changelog-producer": null})), Some(ChangelogProducer::None));
    assert_eq!(producer(&json!({"changelog-producer": "none"})), Some(ChangelogProducer::None));
    assert_eq!(producer(&json!({"changelog-producer": "INPUT"})), Some(ChangelogProducer::Input));
    assert_eq!(producer(&json!({"changelog-producer": "lookup"})), Some(ChangelogProducer::Lookup));
    assert_eq!(producer(&json!({"changelog-producer": "oracle"})), None);
    assert_eq!(producer(&json!({"changelog-producer": 3})), None);
    assert_eq!(Schema::parse(br#"{"id":0}"#).unwrap().changelog_producer, Some(ChangelogProducer::None));
}

#[test]
fn a_file_that_is_no_schema_says_what_is_wrong() {
    let problem = |text: &str| Schema::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(problem("{}"), "`id` is missing");
    assert_eq!(problem(r#"{"id":-1}"#), "`id` is -1; it must not be negative");
    assert_eq!(problem(r#"{"id":0,"fields":{}}"#), "`fields` is {}; an array is needed");
    assert_eq!(problem(r#"{"id":0,"fields":[{}]}"#), "`fields` is {}; a column with a name is needed");
    assert_eq!(problem(r#"{"id":0,"primaryKeys":[1]}"#), "`primaryKeys` is 1; a column with a name is needed");
    assert_eq!(problem(r#"{"id":0,"options":"x"}"#), "`options` is \"x\"; an object of options is needed");
    assert!(problem(r#"{"id":0,"#).starts_with("the file is truncated"));
}
