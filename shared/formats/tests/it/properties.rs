//! What holds for every input: no panic, and keys that are read as they were built.

use std::collections::BTreeMap;

use lakebell_formats::paimon::{
    Consumer, PaimonObject, PaimonObjectKind, Schema, Snapshot, Tag, classify, consumer_key, inspect, schema_key,
    snapshot_key, tag_key, wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const SNAPSHOT: &[u8] = include_bytes!("../../../../fixtures/paimon/changelog-input/table/snapshot/snapshot-1");
const SCHEMA: &[u8] = include_bytes!("../../../../fixtures/paimon/changelog-input/table/schema/schema-0");
const TAG: &[u8] = include_bytes!("../../../../fixtures/paimon/tags-consumers/table/tag/tag-short-lived");

/// Everything that reads bytes, and everything that is derived from what was read.
fn read_all(bytes: &[u8]) {
    if let Ok(snapshot) = Snapshot::parse(bytes) {
        let schema = Schema::parse(SCHEMA).unwrap();
        let commit = snapshot.to_commit(schema.changelog_producer);
        assert!(!commit.fingerprint.as_str().is_empty() && commit.fingerprint.as_str().len() <= 64);
        assert_eq!(
            commit.watermark.map(|watermark| watermark.0),
            snapshot.watermark_raw.filter(|raw| *raw != i64::MIN)
        );
        let _ = snapshot.link_holds(Some(i64::MAX));
        assert!(Snapshot::parse_named(bytes, snapshot.id).is_ok());
        assert!(Snapshot::parse_named(bytes, snapshot.id.wrapping_add(1)).is_err());
    }
    let _ = (Schema::parse(bytes).is_ok(), Tag::parse(bytes).is_ok(), Consumer::parse(bytes).is_ok());
    let keys =
        ["snapshot/snapshot-1", "schema/schema-0", "tag/tag-a", "consumer/consumer-a", "branch/branch-b/tag/tag-a"];
    let inspection = inspect(&keys.iter().map(|key| ((*key).to_owned(), bytes.to_vec())).collect());
    assert!(serde_json::to_string(&inspection).is_ok());
}

#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    Replace(u8),
    Insert(u8),
    Remove(usize),
    Truncate,
    Duplicate(usize),
}

pub(crate) fn mutations() -> impl Strategy<Value = Vec<(usize, Mutation)>> {
    let mutation = prop_oneof![
        any::<u8>().prop_map(Mutation::Replace),
        any::<u8>().prop_map(Mutation::Insert),
        prop::sample::select(&b"{}[]\",:0-e \n\\"[..]).prop_map(Mutation::Insert),
        (1..40_usize).prop_map(Mutation::Remove),
        Just(Mutation::Truncate),
        (1..80_usize).prop_map(Mutation::Duplicate),
    ];
    prop::collection::vec((any::<usize>(), mutation), 1..6)
}

pub(crate) fn mutate(original: &[u8], mutations: Vec<(usize, Mutation)>) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for (place, mutation) in mutations {
        let at = place % (bytes.len() + 1);
        let end = |length: usize| (at + length).min(bytes.len());
        match mutation {
            Mutation::Replace(byte) if at < bytes.len() => bytes[at] = byte,
            Mutation::Replace(byte) | Mutation::Insert(byte) => bytes.insert(at, byte),
            Mutation::Remove(length) => drop(bytes.drain(at..end(length))),
            Mutation::Truncate => bytes.truncate(at),
            Mutation::Duplicate(length) => {
                let copy = bytes[at..end(length)].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
        "-?[0-9]{1,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("[a-z-]{1,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

const FIELDS: [&str; 22] = [
    "version",
    "uuid",
    "id",
    "schemaId",
    "commitUser",
    "commitIdentifier",
    "commitKind",
    "timeMillis",
    "watermark",
    "totalRecordCount",
    "deltaRecordCount",
    "changelogRecordCount",
    "changelogManifestList",
    "nextRowId",
    "operation",
    "tagCreateTime",
    "tagTimeRetained",
    "nextSnapshot",
    "options",
    "fields",
    "primaryKeys",
    "unknown",
];

fn name() -> impl Strategy<Value = String> {
    "[^/]{1,24}".prop_filter("a name", |name| !name.is_empty())
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&bytes);
    }

    #[test]
    fn mutated_files_never_panic(
        original in prop::sample::select(vec![SNAPSHOT, SCHEMA, TAG]),
        mutations in mutations(),
    ) {
        read_all(&mutate(original, mutations));
    }

    #[test]
    fn strange_values_never_panic(changes in prop::collection::vec((prop::sample::select(FIELDS.to_vec()), any_json()), 1..6)) {
        let mut snapshot: Value = serde_json::from_slice(SNAPSHOT).unwrap();
        for (field, value) in changes {
            snapshot[field] = value;
        }
        read_all(snapshot.to_string().as_bytes());
    }

    #[test]
    fn arbitrary_keys_never_panic(key in "\\PC*") {
        let _ = (classify(&key), wants(&key));
    }

    #[test]
    fn keys_of_known_words_never_panic(words in prop::collection::vec(
        prop::sample::select(vec![
            "", "snapshot", "snapshot-7", "snapshot-0", "schema", "schema-0", "tag", "tag-", "tag-a", "branch", "branch-",
            "branch-main", "branch-x", "consumer", "consumer-j", "changelog", "changelog-1", "LATEST", "dt=snapshot-7",
        ]), 0..9)) {
        let key = words.join("/");
        if let Some(object) = classify(&key) {
            prop_assert!(object.branch.as_deref() != Some("main"));
            let relative = object.relative_key();
            let rebuilt = PaimonObject { root: String::new(), ..object.clone() };
            prop_assert_eq!(classify(&relative), Some(rebuilt));
        }
    }

    #[test]
    fn built_keys_are_read_back(
        root in "[^/]{1,12}(/[^/]{1,12}){0,3}",
        branch in prop::option::of(name().prop_filter("not main", |name| name != "main")),
        id in 1..=i64::MAX.unsigned_abs(),
        tag in name(),
    ) {
        prop_assume!(!root.contains("branch"));
        let line = branch.as_deref();
        let built = BTreeMap::from([
            (snapshot_key(line, id), PaimonObjectKind::Snapshot(id)),
            (schema_key(line, id - 1), PaimonObjectKind::Schema(id - 1)),
            (tag_key(line, &tag), PaimonObjectKind::Tag(tag.clone())),
            (consumer_key(line, &tag), PaimonObjectKind::Consumer(tag.clone())),
        ]);
        for (relative, kind) in built {
            let expected = PaimonObject { root: root.clone(), branch: branch.clone(), kind };
            prop_assert_eq!(classify(&format!("{root}/{relative}")), Some(expected));
        }
    }
}
