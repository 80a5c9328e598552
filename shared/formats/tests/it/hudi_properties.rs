//! Hudi: what holds for every input. No panic, bounded work, and keys that are read as they were built.

use lakebell_domain::version::Ordinal;
use lakebell_formats::hudi::{
    Action, CommitId, CommitMetadata, HudiObjectKind, Instant, InstantFile, Layout, RestoreMetadata, State,
    TableProperties, Timeline, changes_data, classify, inspect, to_commit, wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::properties::{any_json, mutate, mutations};

const JSON: &[u8] =
    include_bytes!("../../../../fixtures/hudi/mor-layout-1/table/.hoodie/20260101000002000.deltacommit");
const AVRO: &[u8] = include_bytes!(
    "../../../../fixtures/hudi/replaces-layout-2/table/.hoodie/timeline/20260101000002500_20260101000003000.replacecommit"
);
const DEFLATED: &[u8] = include_bytes!(
    "../../../../fixtures/hudi/cow-layout-2/table/.hoodie/timeline/20260101000002500_20260101000003000.commit"
);
const RESTORE: &[u8] = include_bytes!(
    "../../../../fixtures/hudi/restore-layout-2/table/.hoodie/timeline/20260101000007500_20260101000008000.restore"
);
const PROPERTIES: &[u8] = include_bytes!("../../../../fixtures/hudi/mor-layout-2/table/.hoodie/hoodie.properties");

/// Everything that reads bytes, and everything that is derived from what was read.
fn read_all(bytes: &[u8]) {
    if let Ok(metadata) = CommitMetadata::parse(bytes) {
        assert!(metadata.partitions.iter().count() as u64 <= metadata.partitions.listed().min(1000));
        let file = InstantFile {
            instant: "20260101000001000".parse().unwrap(),
            completion: None,
            action: Action::Commit,
            state: State::Completed,
            layout: Layout::One,
        };
        let commit = to_commit(&file, &metadata, Ordinal(1));
        assert_eq!(commit.changes_data, Some(changes_data(Action::Commit, &metadata)));
        assert!(serde_json::to_string(&commit).unwrap().len() < 200_000, "what a store keeps is bounded");
    }
    let _ = RestoreMetadata::parse(bytes);
    if let Ok(properties) = TableProperties::parse(bytes) {
        assert!(properties.may_be(&properties.table_id()));
    }
    let keys = [
        ".hoodie/hoodie.properties",
        ".hoodie/20260101000001000.commit",
        ".hoodie/20260101000002000.restore",
        ".hoodie/timeline/20260101000003000_20260101000004000.deltacommit",
    ];
    let inspection = inspect(&keys.iter().map(|key| ((*key).to_owned(), bytes.to_vec())).collect());
    assert!(serde_json::to_string(&inspection).is_ok());
}

fn instants() -> impl Strategy<Value = Instant> {
    prop_oneof!["2026010[1-9]00000[0-9]", "2026010[1-9]00000[0-9]{4}", "[0-9]{14}", "[0-9]{17}"]
        .prop_map(|text| text.parse().unwrap())
}

fn files() -> impl Strategy<Value = InstantFile> {
    let action = prop::sample::select(vec![
        Action::Commit,
        Action::DeltaCommit,
        Action::ReplaceCommit,
        Action::Clean,
        Action::Rollback,
        Action::Restore,
        Action::Savepoint,
        Action::Indexing,
        Action::Compaction,
    ]);
    let state = prop::sample::select(vec![State::Requested, State::Inflight, State::Completed]);
    let layout = prop::sample::select(vec![Layout::One, Layout::Two]);
    (instants(), prop::option::of(instants()), action, state, layout).prop_map(
        |(instant, completion, action, state, layout)| InstantFile {
            instant,
            completion: completion.filter(|_| layout == Layout::Two && state == State::Completed),
            action,
            state,
            layout,
        },
    )
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        read_all(&bytes);
        read_all(&[b"Obj\x01".as_slice(), &bytes].concat());
    }

    #[test]
    fn mutated_files_never_panic(
        original in prop::sample::select(vec![JSON, AVRO, DEFLATED, RESTORE, PROPERTIES]),
        mutations in mutations(),
    ) {
        read_all(&mutate(original, mutations));
    }

    /// Behind an intact header the values are arbitrary: lengths, counts and branches of every size.
    #[test]
    fn arbitrary_values_of_a_real_schema_never_panic(
        original in prop::sample::select(vec![AVRO, RESTORE]),
        block in prop::collection::vec(prop_oneof![any::<u8>(), 0..8_u8], 0..200),
        records in 0..4_u8,
    ) {
        let sync = &original[original.len() - 16..];
        let header = original.windows(16).position(|window| window == sync).unwrap() + 16;
        // The block's size as Avro writes it, in two bytes even where one would do.
        let size = u16::try_from(block.len() * 2).unwrap();
        let [high, low] = (size << 1).to_be_bytes();
        let size = [low >> 1 | 0x80, high];
        read_all(&[&original[..header], &[records * 2], &size, &block, sync].concat());
    }

    #[test]
    fn strange_values_never_panic(changes in prop::collection::vec((prop::sample::select(vec![
        "partitionToWriteStats", "partitionToReplaceFileIds", "extraMetadata", "operationType", "compacted", "other",
    ]), any_json()), 1..6)) {
        let mut metadata: Value = serde_json::from_slice(JSON).unwrap();
        for (field, value) in changes {
            metadata[field] = value;
        }
        read_all(metadata.to_string().as_bytes());
    }

    #[test]
    fn counts_are_summed_as_they_are_written(stats in prop::collection::btree_map("[a-z=/]{0,8}", prop::collection::vec(
        (any::<i32>(), any::<i32>(), any::<i32>()), 0..4), 0..5)) {
        let written: Value = stats.iter().map(|(partition, files)| {
            let files: Vec<_> = files.iter().map(|(inserts, updates, deletes)|
                json!({"numInserts": inserts, "numUpdateWrites": updates, "numDeletes": deletes})).collect();
            (partition.clone(), json!(files))
        }).collect::<serde_json::Map<_, _>>().into();
        let read = CommitMetadata::parse(json!({ "partitionToWriteStats": written }).to_string().as_bytes()).unwrap();
        let sums = stats.values().flatten().fold((0, 0, 0), |sums: (i64, i64, i64), file|
            (sums.0 + i64::from(file.0), sums.1 + i64::from(file.1), sums.2 + i64::from(file.2)));
        prop_assert_eq!((read.inserts, read.updates, read.deletes), sums);
        prop_assert_eq!(read.partitions.iter().collect::<Vec<_>>(), stats.keys().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_keys_never_panic(key in "\\PC*") {
        let _ = (classify(&key), wants(&key), wants(&format!(".hoodie/{key}")));
    }

    #[test]
    fn keys_of_known_words_name_the_outer_table(words in prop::collection::vec(prop::sample::select(vec![
        "", ".hoodie", "timeline", "metadata", "archived", "history", "20260101000001000.commit",
        "20260101000001000_20260101000002000.commit", "hoodie.properties", "20260101000001000.inflight", "t",
    ]), 0..8)) {
        let key = words.join("/");
        if let Some(object) = classify(&key) {
            prop_assert!(!object.root.split('/').any(|segment| segment == ".hoodie"));
            prop_assert!(!key.contains(".hoodie/metadata/"));
        }
    }

    #[test]
    fn built_keys_are_read_back(file in files(), root in "([a-z. ]{1,8}(/[a-z. ]{1,8}){0,3})?") {
        prop_assume!(!root.split('/').any(|segment| segment == ".hoodie"));
        let key = if root.is_empty() { file.relative_key() } else { format!("{root}/{}", file.relative_key()) };
        let object = classify(&key);
        prop_assert_eq!(object.as_ref().map(|object| object.kind), Some(HudiObjectKind::Instant(file)));
        prop_assert_eq!(object.map(|object| object.root), Some(root));
        prop_assert!(wants(&file.relative_key()));
        let id = CommitId::of(&file);
        prop_assert_eq!(id.to_string().parse(), Ok(id));
    }

    /// A timeline does not depend on the order of its keys, holds every commit once, in order, and
    /// whoever applied what is unseen has nothing unseen and sees no rewrite.
    #[test]
    fn timelines_are_sets(files in prop::collection::vec(files(), 0..24), at in any::<usize>()) {
        let keys: Vec<_> = files.iter().map(InstantFile::relative_key).collect();
        let timeline = Timeline::from_keys(keys.iter().map(String::as_str));
        let turned = keys.iter().rev().cycle().skip(at % keys.len().max(1)).take(keys.len() * 2);
        let other = Timeline::from_keys(turned.map(String::as_str));
        prop_assert_eq!(timeline.completed(), other.completed());
        prop_assert_eq!(timeline.pending(), other.pending());
        prop_assert!(timeline.completed().is_sorted_by_key(InstantFile::position));
        let known = timeline.completed().iter().map(CommitId::of).collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(known.len(), timeline.completed().len());
        prop_assert!(timeline.unseen(&known).is_empty());
        prop_assert_eq!(timeline.rewrite(&known), None);
    }
}
