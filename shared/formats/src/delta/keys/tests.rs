use super::*;
use DeltaObjectKind::{Checkpoint, Checksum, Commit, Compacted, LastCheckpoint, Sidecar, StagedCommit};

const ID: &str = "80a083e8-7026-4e79-81be-64bd76c43a11";

fn shapes() -> Vec<(String, DeltaObjectKind)> {
    let log = |name: &str| format!("_delta_log/{name}");
    let checkpoint = |version, shape| Checkpoint { version, shape };
    vec![
        (log("00000000000000000000.json"), Commit(0)),
        (log("00000000000001000000.json"), Commit(1_000_000)),
        (log("09223372036854775807.json"), Commit(i64::MAX.unsigned_abs())),
        (log("00000000000000000004.checkpoint.parquet"), checkpoint(4, CheckpointShape::Single)),
        (
            log("00000000000000000004.checkpoint.0000000001.0000000003.parquet"),
            checkpoint(4, CheckpointShape::Part { part: 1, parts: 3 }),
        ),
        (log(&format!("00000000000000000004.checkpoint.{ID}.json")), checkpoint(4, CheckpointShape::Json(ID.into()))),
        (
            log(&format!("00000000000000000004.checkpoint.{ID}.parquet")),
            checkpoint(4, CheckpointShape::Parquet(ID.into())),
        ),
        (log("00000000000000000001.00000000000000000004.compacted.json"), Compacted { from: 1, to: 4 }),
        (log("00000000000000000004.crc"), Checksum(4)),
        (log("_last_checkpoint"), LastCheckpoint),
        (log(&format!("_staged_commits/00000000000000000004.{ID}.json")), StagedCommit { version: 4, id: ID.into() }),
        (log("_sidecars/3a0d65cd.parquet"), Sidecar("3a0d65cd.parquet".into())),
    ]
}

#[test]
fn every_kind_is_told_below_any_root_and_its_key_is_built_back() {
    for (key, kind) in shapes() {
        for root in ["", "t", "lake/ods.db/orders", "_delta_log/t", "a/_delta_log", "x/_staged_commits", "dt=a b/ä+%2F"]
        {
            let whole = if root.is_empty() { key.clone() } else { format!("{root}/{key}") };
            let object = classify(&whole).unwrap_or_else(|| panic!("{whole} was not recognised"));
            assert_eq!((object.root.as_str(), &object.kind), (root, &kind), "{whole}");
            assert_eq!(object.relative_key(), key);
        }
    }
}

#[test]
fn everything_else_is_nothing() {
    let others = [
        "",
        "/",
        "00000000000000000007.json",
        "t/00000000000000000007.json",
        "t/_delta_log",
        "t/_delta_log/",
        "t/_delta_log/7.json",
        "t/_delta_log/0000000000000000007.json",
        "t/_delta_log/000000000000000000007.json",
        "t/_delta_log/09223372036854775808.json",
        "t/_delta_log/99999999999999999999.json",
        "t/_delta_log/-0000000000000000007.json",
        "t/_delta_log/+0000000000000000007.json",
        "t/_delta_log/0000000000000000000٧.json",
        "t/_delta_log/00000000000000000007",
        "t/_delta_log/00000000000000000007.",
        "t/_delta_log/00000000000000000007.JSON",
        "t/_delta_log/00000000000000000007.json.tmp",
        "t/_delta_log/00000000000000000007.json.gz",
        "t/_delta_log/.00000000000000000007.json.crc",
        "t/_delta_log/00000000000000000007.checkpoint",
        "t/_delta_log/00000000000000000007.checkpoint.json",
        "t/_delta_log/00000000000000000007.checkpoint..json",
        "t/_delta_log/00000000000000000007.checkpoint.a.b.json",
        "t/_delta_log/00000000000000000007.checkpoint.1.3.parquet",
        "t/_delta_log/00000000000000000007.compacted.json",
        "t/_delta_log/00000000000000000007.8.compacted.json",
        "t/_delta_log/_commit_80a083e8-7026-4e79-81be-64bd76c43a11.json.tmp",
        "t/_delta_log/.tmp/00000000000000000007.json.80a083e8",
        "t/_delta_log/.tmp/00000000000000000007.json",
        "t/_delta_log/sub/00000000000000000007.json",
        "t/_delta_log/_staged_commits/00000000000000000007.json",
        "t/_delta_log/_staged_commits/00000000000000000007..json",
        "t/_delta_log/_staged_commits/",
        "t/_delta_log/_sidecars/",
        "t/_staged_commits/00000000000000000007.80a083e8.json",
        "t/_delta_log/_commits/00000000000000000007.80a083e8.json",
        "t/_Delta_Log/00000000000000000007.json",
        "t/_change_data/00000000000000000007.json",
        "t/_change_data/cdc-00000-2a898d42.c000.snappy.parquet",
        "t/deletion_vector_80a083e8-7026-4e79-81be-64bd76c43a11.bin",
        "t/part-00000-80a083e8.c000.snappy.parquet",
        "t/dt=_delta_log/part-00000.parquet",
    ];
    for key in others {
        assert_eq!(classify(key), None, "{key}");
    }
}

#[test]
fn numbered_objects_sort_before_the_commit_of_their_version_and_below_the_prefix() {
    for (key, kind) in shapes() {
        let object = classify(&key).unwrap();
        let is_numbered = matches!(kind, Commit(_) | Checkpoint { .. } | Compacted { .. } | Checksum(_));
        assert_eq!(key.starts_with(NUMBERED_PREFIX), is_numbered, "{key}");
        if is_numbered {
            assert!(key <= commit_key(object.version().unwrap()), "{key}");
        }
    }
    assert!(commit_key(9) < commit_key(10) && commit_key(999_999) < commit_key(1_000_000));
    assert!(commit_key(0).starts_with(LOG_FOLDER) && last_checkpoint_key() > commit_key(i64::MAX.unsigned_abs()));
    assert_eq!(checksum_key(7), "_delta_log/00000000000000000007.crc");
}
