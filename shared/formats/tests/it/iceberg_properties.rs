//! What holds for every input: no panic, every file in one list, steps that agree with parents.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lakebell_domain::version::Ordinal;
use lakebell_formats::iceberg::{
    Anchor, ChainLink, Descent, Known, MAIN, Metadata, Movement, ReadOptions, classify, first_ordinal, inspect,
    ordinal_after, resolve, wants,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::properties::{any_json, mutate, mutations};

const PYICEBERG: &[u8] = include_bytes!("../../../../fixtures/iceberg/compressed/table/metadata/v4.metadata.json");
const COMPRESSED: &[u8] = include_bytes!("../../../../fixtures/iceberg/compressed/table/metadata/v3.metadata.json");

/// Everything that reads bytes, and everything that is derived from what was read.
fn read_all(bytes: &[u8]) {
    let whole = Metadata::parse(bytes, ReadOptions::default());
    let streamed = Metadata::read(bytes, ReadOptions::default());
    assert_eq!(whole.as_ref().ok(), streamed.as_ref().ok(), "both ways read the same");
    if let Ok(metadata) = &whole {
        let link = metadata.link("v4.metadata.json");
        let chain = resolve(std::slice::from_ref(&link), Anchor::None);
        assert_eq!(chain.accepted, ["v4.metadata.json"]);
        let ids = metadata.snapshots().iter().map(|snapshot| snapshot.id).chain([0, i64::MIN, i64::MAX]);
        for known in ids.map(|id| Known::Snapshot { id, sequence_number: Some(id) }).chain([Known::Nothing]) {
            for branch in metadata.refs.keys().map(String::as_str).chain([MAIN]) {
                let step = metadata.step(branch, known);
                assert!(step.new.len() <= metadata.snapshots().len());
                let ordinal = ordinal_after(Ordinal(3), "v3.metadata.json", "v4.metadata.json", &metadata.log);
                assert!(ordinal > Ordinal(3));
                let commit = metadata.to_commit("v4.metadata.json", branch, ordinal, &step);
                assert_eq!(commit.is_some(), metadata.head(branch).is_some());
            }
        }
        let _ = first_ordinal("x.metadata.json", metadata);
    }
    let keys = ["metadata/v4.metadata.json", "metadata/00005-x.metadata.json", "metadata/v0.metadata.json"];
    let inspection = inspect(&keys.iter().map(|key| ((*key).to_owned(), bytes.to_vec())).collect());
    assert!(serde_json::to_string(&inspection).is_ok());
}

const FIELDS: [&str; 14] = [
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "current-snapshot-id",
    "current-schema-id",
    "schema",
    "schemas",
    "refs",
    "snapshots",
    "metadata-log",
    "snapshot-log",
    "unknown",
];
const OF_SNAPSHOTS: [&str; 7] =
    ["snapshot-id", "parent-snapshot-id", "sequence-number", "timestamp-ms", "schema-id", "summary", "manifests"];

fn file(n: u8) -> String {
    format!("{n:05}-x.metadata.json")
}

prop_compose! {
    fn links()(files in prop::collection::btree_map(
        0..12_u8,
        (prop::option::of("[ab]"), prop::collection::vec(0..14_u8, 0..5), prop::option::of(0..6_i64),
         prop::collection::vec(0..6_i64, 0..4), prop::option::of(0..5_i64)),
        0..10,
    )) -> Vec<ChainLink> {
        let link = |(name, (table_uuid, log, head, recent, last_updated_ms)): (u8, (_, Vec<u8>, _, _, _))| ChainLink {
            name: file(name), table_uuid, log: log.into_iter().map(file).collect(), head, recent, last_updated_ms,
        };
        files.into_iter().map(link).collect()
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512), as_gzip: bool) {
        if as_gzip {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&bytes).unwrap();
            read_all(&encoder.finish().unwrap());
        }
        read_all(&bytes);
    }

    #[test]
    fn mutated_files_never_panic(
        original in prop::sample::select(vec![PYICEBERG, COMPRESSED]),
        mutations in mutations(),
    ) {
        read_all(&mutate(original, mutations));
    }

    #[test]
    fn strange_values_never_panic(
        changes in prop::collection::vec((prop::sample::select(FIELDS.to_vec()), any_json()), 0..4),
        deeper in prop::collection::vec((0..3_usize, prop::sample::select(OF_SNAPSHOTS.to_vec()), any_json()), 0..4),
        summary in prop::collection::btree_map("(added|deleted|total|removed)-[a-z]{1,9}|operation", any_json(), 0..4),
    ) {
        let mut metadata: Value = serde_json::from_slice(PYICEBERG).unwrap();
        metadata["snapshots"][1]["summary"] = json!(summary);
        for (place, field, value) in deeper {
            metadata["snapshots"][place][field] = value;
        }
        for (field, value) in changes {
            metadata[field] = value;
        }
        read_all(metadata.to_string().as_bytes());
    }

    #[test]
    fn parents_in_any_shape_end_a_walk(
        parents in prop::collection::vec(prop::option::of(-1..12_i64), 1..10),
        numbers in prop::collection::vec(-2..12_i64, 10),
        known: i64,
        head in -1..12_i64,
    ) {
        let snapshots: Vec<_> = parents.iter().enumerate().map(|(id, parent)| json!({
            "snapshot-id": id, "parent-snapshot-id": parent, "sequence-number": numbers[id], "summary": {"operation": "append"},
        })).collect();
        let text = json!({"format-version": 2, "location": "t", "current-snapshot-id": head, "snapshots": snapshots});
        let metadata = Metadata::parse(text.to_string().as_bytes(), ReadOptions::default()).unwrap();
        for id in (-1..12).chain([known]) {
            let known = Known::Snapshot { id, sequence_number: None };
            let step = metadata.step(MAIN, known);
            let Some(head) = metadata.head(MAIN) else { continue };
            let expected = match metadata.descends(head, known) {
                Descent::Same => Movement::Unchanged,
                Descent::Descends => Movement::Advanced,
                Descent::Diverged => Movement::Rewritten,
                Descent::Unknown => Movement::PastGap,
            };
            prop_assert_eq!(step.movement, expected);
            // A line that was walked is one of parents.
            if step.movement == Movement::Advanced {
                for pair in step.new.windows(2) {
                    prop_assert_eq!(pair[1].parent_id, Some(pair[0].id));
                }
                prop_assert_eq!(step.new[0].parent_id, Some(id));
            }
        }
    }

    #[test]
    fn every_file_is_in_one_list(links in links(), anchor in 0..14_u8, kind in 0..3_u8) {
        let anchor = file(anchor);
        let anchor = match kind {
            0 => Anchor::None,
            1 => Anchor::Current(&anchor),
            _ => Anchor::Accepted(&anchor),
        };
        let chain = resolve(&links, anchor);
        let lists = [&chain.accepted, &chain.pending, &chain.orphans, &chain.foreign];
        let mut listed: Vec<_> = lists.into_iter().flatten().cloned().collect();
        listed.sort();
        let there: Vec<_> = links.iter().map(|link| link.name.clone()).collect();
        prop_assert_eq!(&listed, &there);
        // In whatever order the files are given.
        let backwards: Vec<_> = links.into_iter().rev().collect();
        prop_assert_eq!(resolve(&backwards, anchor), chain);
    }

    #[test]
    fn keys_never_panic(key in "\\PC*") {
        let _ = (classify(&key), wants(&key));
    }

    #[test]
    fn keys_of_known_words_never_panic(
        folder in prop::sample::select(vec!["", "metadata/", "t/metadata/", "/", "t//", "a.metadata.json/"]),
        words in prop::collection::vec(prop::sample::select(vec![
            "v", "0", "1", "00012", "-", ".", "gz", ".gz", ".metadata.json", "85f616f1-4c4e-412a-9119-bd72cf73c9ba", "version-hint.text",
        ]), 0..6),
    ) {
        let key = format!("{folder}{}", words.join(""));
        if let Some(object) = classify(&key) {
            prop_assert!(key.ends_with(&object.name));
            prop_assert_eq!(object.root().is_some(), object.folder == "metadata" || object.folder.ends_with("/metadata"));
        }
    }
}

#[test]
fn the_samples_can_be_read() {
    let read = |bytes: &[u8]| Metadata::parse(bytes, ReadOptions::default()).unwrap().snapshots().len();
    assert_eq!(BTreeSet::from([read(PYICEBERG), read(COMPRESSED)]), BTreeSet::from([2, 3]));
}
