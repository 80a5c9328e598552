//! Delta: what holds for every input: no panic, bounded results, pieces read as the whole, and keys
//! that are read as they were built.

use std::collections::BTreeMap;

use lakebell_formats::delta::{
    CheckpointShape, Checksum, CommitReader, DeltaCommit, DeltaObject, DeltaObjectKind, LastCheckpoint, NewestSearch,
    classify, commit_key, inspect, reads, wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::properties::{any_json, mutate, mutations};

macro_rules! fixture {
    ($path:literal) => {
        include_bytes!(concat!("../../../../fixtures/delta/", $path))
    };
}

const FIRST: &[u8] = fixture!("schema-and-properties/table/_delta_log/00000000000000000000.json");
const MERGE: &[u8] = fixture!("append-overwrite-delete-merge/table/_delta_log/00000000000000000004.json");
const VECTOR: &[u8] = fixture!("odd/table/_delta_log/00000000000000000003.json");
const MANAGED: &[u8] = fixture!("catalog-managed/table/_delta_log/00000000000000000000.json");
const TXN: &[u8] = fixture!("app-transactions/table/_delta_log/00000000000000000002.json");
const CHECKSUM: &[u8] = fixture!("checksum-identity/table/_delta_log/00000000000000000007.crc");

/// Everything that reads bytes, and everything that is derived from what was read.
fn read_all(bytes: &[u8]) {
    let read = DeltaCommit::parse(bytes, 7);
    if let Ok(commit) = &read {
        let schema = commit.schema_after(None);
        let shared = commit.to_commit(schema.as_ref());
        assert!(!shared.fingerprint.as_str().is_empty() && shared.fingerprint.as_str().len() <= 64);
        assert!(shared.kind.0.chars().count() <= 257);
        assert!(json!(shared.extra).to_string().len() < 400_000);
        assert_eq!(commit.schema_after(schema.as_ref()), schema);
        let _ = (commit.link_holds(Some(i64::MAX)), commit.delta_records());
    }
    let _ = (LastCheckpoint::parse(bytes).is_ok(), Checksum::parse(bytes).is_ok());
    let staged = "_delta_log/_staged_commits/00000000000000000009.a.json".to_owned();
    let checkpoint = "_delta_log/00000000000000000004.checkpoint.a.json".to_owned();
    let checksum = "_delta_log/00000000000000000007.crc".to_owned();
    let keys = [commit_key(5), commit_key(6), commit_key(8), staged, checkpoint, checksum];
    let inspection = inspect(&keys.into_iter().map(|key| (key, bytes.to_vec())).collect());
    assert!(serde_json::to_string(&inspection).is_ok());
    assert_eq!(inspection.commits.len(), if read.is_ok() { 3 } else { 0 });
}

fn in_pieces(bytes: &[u8], sizes: &[usize]) -> Result<DeltaCommit, String> {
    let mut reader = CommitReader::new(7);
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        reader.push(piece).map_err(|error| error.to_string())?;
        rest = after;
    }
    reader.finish().map_err(|error| error.to_string())
}

const ACTIONS: [(&str, &[&str]); 7] = [
    ("commitInfo", &["timestamp", "inCommitTimestamp", "operation", "txnId", "engineInfo", "isBlindAppend", "x"]),
    ("protocol", &["minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"]),
    ("metaData", &["id", "name", "schemaString", "partitionColumns", "configuration", "createdTime"]),
    ("add", &["path", "dataChange", "stats", "deletionVector", "tags", "size"]),
    ("remove", &["path", "dataChange", "stats", "deletionVector", "deletionTimestamp"]),
    ("txn", &["appId", "version", "lastUpdated"]),
    ("someday", &["x"]),
];

fn strange_action() -> impl Strategy<Value = Value> {
    prop::sample::select(ACTIONS.to_vec()).prop_flat_map(|(name, fields)| {
        let field = prop::sample::select(fields.to_vec());
        let fields = prop::collection::btree_map(field, any_json(), 0..4);
        prop_oneof![
            4 => fields.prop_map(move |fields| json!({name: fields})),
            1 => any_json().prop_map(move |value| json!({name: value})),
        ]
    })
}

fn version() -> impl Strategy<Value = u64> {
    0..=i64::MAX.unsigned_abs()
}

fn kind() -> impl Strategy<Value = DeltaObjectKind> {
    let id = "[a-z0-9-]{1,36}";
    let checkpoint = prop_oneof![
        Just(CheckpointShape::Single),
        (0..9_999_999_999_u64, 0..9_999_999_999_u64).prop_map(|(part, parts)| CheckpointShape::Part { part, parts }),
        id.prop_map(CheckpointShape::Json),
        id.prop_map(CheckpointShape::Parquet),
    ];
    prop_oneof![
        version().prop_map(DeltaObjectKind::Commit),
        version().prop_map(DeltaObjectKind::Checksum),
        (version(), version()).prop_map(|(from, to)| DeltaObjectKind::Compacted { from, to }),
        (version(), id).prop_map(|(version, id)| DeltaObjectKind::StagedCommit { version, id }),
        (version(), checkpoint).prop_map(|(version, shape)| DeltaObjectKind::Checkpoint { version, shape }),
        "[^/]{1,20}".prop_map(DeltaObjectKind::Sidecar),
        Just(DeltaObjectKind::LastCheckpoint),
    ]
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&bytes);
    }

    #[test]
    fn mutated_files_never_panic(
        original in prop::sample::select(vec![FIRST, MERGE, VECTOR, MANAGED, TXN, CHECKSUM]),
        mutations in mutations(),
    ) {
        read_all(&mutate(original, mutations));
    }

    #[test]
    fn strange_values_never_panic(actions in prop::collection::vec(strange_action(), 0..5)) {
        let lines: Vec<String> = actions.iter().map(Value::to_string).collect();
        read_all(lines.join("\n").as_bytes());
    }

    #[test]
    fn pieces_read_as_the_whole(
        original in prop::sample::select(vec![FIRST, MERGE, VECTOR, MANAGED]),
        mutations in prop::option::of(mutations()),
        sizes in prop::collection::vec(1..700_usize, 1..6),
    ) {
        let bytes = mutations.map_or_else(|| original.to_vec(), |mutations| mutate(original, mutations));
        let whole = DeltaCommit::parse(&bytes, 7).map_err(|error| error.to_string());
        prop_assert_eq!(in_pieces(&bytes, &sizes), whole);
    }

    #[test]
    fn keys_never_panic(key in "\\PC*", words in prop::collection::vec(prop::sample::select(vec![
        "", "_delta_log", "_staged_commits", "_sidecars", ".tmp", "00000000000000000007.json", "x.json", "_last_checkpoint",
        "00000000000000000007.a.json", "00000000000000000001.00000000000000000007.compacted.json",
    ]), 0..6)) {
        for key in [key, words.join("/")] {
            let _ = (wants(&key), reads(&key));
            if let Some(object) = classify(&key) {
                let relative = object.relative_key();
                prop_assert!(key.ends_with(&relative));
                prop_assert_eq!(classify(&relative), Some(DeltaObject { root: String::new(), ..object }));
            }
        }
    }

    #[test]
    fn built_keys_are_read_back(root in "[^/]{1,12}(/[^/]{1,12}){0,3}", kind in kind()) {
        let object = DeltaObject { root: root.clone(), kind };
        prop_assert_eq!(classify(&format!("{root}/{}", object.relative_key())), Some(object));
    }

    #[test]
    fn any_log_is_searched_to_its_end(start in 0..1_000_000_u64, size in 1..3_000_000_u64, from in prop::option::of(0..1_000_000_u64)) {
        let newest = start + size - 1;
        let mut search = NewestSearch::new(from.map(|from| start + from % size));
        let mut listings = 0;
        while search.start_after().is_some() {
            let next = search.probed().map_or(start, |version| (version + 1).max(start));
            search.answer(Some(next).filter(|next| *next <= newest));
            listings += 1;
            prop_assert!(listings <= 50);
        }
        prop_assert_eq!(search.newest(), Some(newest));
    }

    #[test]
    fn any_answers_end_a_search(from in any::<Option<u64>>(), answers in prop::collection::vec(any::<Option<u64>>(), 0..300)) {
        let mut search = NewestSearch::new(from);
        for answer in answers {
            search.answer(answer);
            let _ = (search.start_after(), search.probed());
        }
    }
}

#[test]
fn a_missing_version_is_noticed_and_costs_the_count_of_rows_only() {
    let log: BTreeMap<String, Vec<u8>> = (0..6).map(|version| (commit_key(version), MERGE.to_vec())).collect();
    let mut gapped = log.clone();
    gapped.remove(&commit_key(3));
    let (whole, gapped) = (inspect(&log), inspect(&gapped));
    assert_eq!(gapped.warnings, ["version 3 is missing from the log"]);
    assert_eq!((gapped.latest.position, gapped.latest.total_records), (whole.latest.position, None));
}
