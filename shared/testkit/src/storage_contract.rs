//! The contract of table storage: what every implementation has to do with the same objects.

#![allow(clippy::panic, clippy::expect_used, reason = "a check of tests")]

use lakebell_engine::ErrorKind;
use lakebell_engine::ports::storage::{Listing, TableStorage};

/// The objects that [`check`] expects in an otherwise empty bucket. The content of each is its key.
/// Their order is that of UTF-8 bytes, which is neither that of letters nor that of UTF-16.
pub const OBJECTS: [&str; 9] = [
    "t/_log/00.json",
    "t/_log/01.checkpoint.parquet",
    "t/_log/01.json",
    "t/_log/02.json",
    "t/_log/.tmp/02.json",
    "t/_log/sub/03.json",
    "t/_log/ä.json",
    "t/dt=1 x/a+b",
    "u",
];

/// Checks an implementation whose `bucket` holds [`OBJECTS`] and nothing else.
///
/// # Panics
///
/// Where the implementation breaks the contract, saying how.
pub async fn check(storage: &dyn TableStorage, bucket: &str) {
    let keys = async |listing: Listing<'_>| -> Vec<String> {
        let rows = storage.list(bucket, listing).await.expect("a listing");
        assert!(rows.iter().all(|row| !row.etag.is_empty() && !row.etag.contains('"')), "entity tags, unquoted");
        assert!(rows.iter().all(|row| row.modified.is_some()), "times");
        rows.into_iter().map(|row| row.key).collect()
    };
    let mut all: Vec<&str> = OBJECTS.to_vec();
    all.sort_unstable();
    assert_eq!(keys(Listing::below("", 100)).await, all, "everything, by the bytes of the keys");
    assert_eq!(keys(Listing::below("t/_log/0", 2)).await, OBJECTS[..2], "no more than asked for");
    assert_eq!(keys(Listing::below("none/", 2)).await, [""; 0], "nothing is no error");

    let log = |limit| Listing::below("t/_log/0", limit);
    assert_eq!(keys(log(100).after("t/_log/00.json")).await, OBJECTS[1..4], "after a key that is there");
    assert_eq!(keys(log(100).after("t/_log/005.json")).await, OBJECTS[1..4], "after a key that is not");
    assert_eq!(keys(log(1).after("t/_log/01.json")).await, OBJECTS[3..4], "after a key, one");
    assert_eq!(keys(log(9).after("t/_log/02.json")).await, [""; 0], "after the last of the prefix");
    assert_eq!(keys(log(9).after("a")).await, OBJECTS[..4], "after a key before the prefix");
    assert_eq!(keys(log(9).after("z")).await, [""; 0], "after a key behind the prefix");

    let flat = [&OBJECTS[..4], &OBJECTS[6..7]].concat();
    assert_eq!(keys(Listing::folder("t/_log/", 100)).await, flat, "nothing of the folders below");
    assert_eq!(keys(Listing::folder("t/_log/", 100).after(OBJECTS[2])).await, flat[3..], "a folder after a key");
    assert_eq!(keys(Listing::folder("t/_log/", 3)).await, flat[..3], "some of a folder");
    let folders = async |prefix: &str, after: Option<&str>, limit: usize| {
        storage.folders(bucket, prefix, after, limit).await.expect("folders")
    };
    assert_eq!(folders("t/_log/", None, 9).await, [".tmp", "sub"], "folders");
    assert_eq!(folders("t/_log/", Some(".tmp"), 9).await, ["sub"], "folders behind one that is there");
    assert_eq!(folders("t/_log/", Some("b"), 9).await, ["sub"], "folders behind one that is not");
    assert_eq!(folders("t/_log/", Some("sub"), 9).await, [""; 0], "folders behind the last");
    assert_eq!(folders("t/", Some("_log"), 9).await, ["dt=1 x"], "folders behind one with folders in it");
    assert_eq!(folders("t/", None, 1).await, ["_log"], "some of the folders");

    for key in OBJECTS {
        let mut opened = storage.open(bucket, key).await.expect("an open object").expect("an object");
        assert_eq!(opened.size, key.len() as u64, "the size of {key}");
        let mut content = Vec::new();
        while let Some(piece) = opened.pieces.next().await.expect("a piece") {
            assert!(!piece.is_empty(), "pieces are not empty");
            content.extend(piece);
        }
        assert_eq!(content, key.as_bytes(), "the content of {key}");
        let object = storage.get(bucket, key, key.len()).await.expect("a read").expect("an object");
        assert_eq!((object.bytes, &object.etag), (content, &opened.etag), "{key} read at once");
        let listed = storage.list(bucket, Listing::below(key, 1)).await.expect("a listing");
        assert_eq!(listed[0].etag, object.etag, "a listing shows the tag that a read shows");
        let small = storage.get(bucket, key, key.len() - 1).await.expect_err("a limit");
        assert_eq!(small.kind(), ErrorKind::Damaged, "larger than the limit");
    }
    assert!(storage.open(bucket, "none").await.expect("no error").is_none(), "nothing is no error");
    assert!(storage.get(bucket, "none", 9).await.expect("no error").is_none(), "nothing is no error");
}
