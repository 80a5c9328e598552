use super::*;
use crate::hudi::keys::{Layout, State};
use crate::hudi::metadata::Encoding;

fn metadata(operation: Option<&str>, compacted: bool) -> CommitMetadata {
    let operation_type = operation.map(str::to_owned);
    CommitMetadata { operation_type, compacted, inserts: 5, deletes: 2, ..CommitMetadata::empty(Encoding::Json) }
}

fn file(action: Action, completion: Option<&str>) -> InstantFile {
    let completion = completion.map(|text| text.parse().unwrap());
    let instant = "20240418172802262".parse().unwrap();
    InstantFile { instant, completion, action, state: State::Completed, layout: Layout::Two }
}

#[test]
fn the_action_decides_first_then_the_operation() {
    let writes = [Action::Commit, Action::DeltaCommit, Action::ReplaceCommit];
    for action in writes {
        for operation in
            ["INSERT", "UPSERT_PREPPED", "DELETE_PARTITION", "INSERT_OVERWRITE", "BOOTSTRAP", "FROM_THE_FUTURE"]
        {
            assert!(changes_data(action, &metadata(Some(operation), false)));
            assert!(changes_data(action, &metadata(Some(operation), true)), "the operation's name wins");
        }
        for operation in ["COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA"] {
            assert!(!changes_data(action, &metadata(Some(operation), false)));
        }
        assert!(changes_data(action, &metadata(None, false)));
        assert!(!changes_data(action, &metadata(None, true)), "the mark of a compaction in old files");
        assert!(changes_data(action, &CommitMetadata::empty(Encoding::Empty)));
    }
    assert!(changes_data(Action::Restore, &metadata(Some("COMPACT"), true)));
    for action in
        [Action::Clean, Action::Rollback, Action::Savepoint, Action::Indexing, Action::SchemaCommit, Action::Compaction]
    {
        assert!(!changes_data(action, &metadata(Some("INSERT"), false)), "{action}");
    }
}

#[test]
fn rows_are_counted_where_data_changed() {
    let delta =
        |action, operation| to_commit(&file(action, None), &metadata(operation, false), Ordinal(1)).delta_records;
    assert_eq!(delta(Action::Commit, Some("UPSERT")), Some(3));
    assert_eq!(delta(Action::Commit, Some("COMPACT")), None);
    assert_eq!(delta(Action::Restore, None), None);
    assert_eq!(delta(Action::Clean, None), None);
}

#[test]
fn ordinals_come_from_completion_times_or_from_the_caller() {
    let completed = file(Action::Commit, Some("20240418172803000"));
    assert_eq!(ordinal(&completed), Some(Ordinal(20_240_418_172_803_000)));
    assert_eq!(ordinal(&file(Action::Commit, None)), None);
    let commit = to_commit(&completed, &metadata(None, false), Ordinal(7));
    assert_eq!((commit.ordinal, commit.snapshot_id.as_str()), (Ordinal(7), "20240418172802262"));
    assert_eq!(commit.extra.get("order"), None);
    assert_eq!(commit.extra["completion"], "20240418172803000");
}

#[test]
fn a_fingerprint_is_the_id_s_text_and_can_be_read_back() {
    let id = CommitId::of(&file(Action::ReplaceCommit, Some("20240418172803000")));
    assert_eq!(id.fingerprint(), "20240418172802262.replacecommit");
    assert_eq!(id.fingerprint().as_str().parse(), Ok(id));
    for text in
        ["", "20240418172802262", "20240418172802262.", "20240418172802262.x", "x.commit", "20240418172802262.commit.x"]
    {
        assert_eq!(text.parse::<CommitId>(), Err(NotACommitId), "{text}");
    }
}

#[test]
fn long_lists_are_cut_for_people() {
    let mut many = metadata(None, false);
    (0..60).for_each(|n| many.partitions.add(&format!("p{n:02}{}", "x".repeat(300))));
    let extra = to_commit(&file(Action::Commit, None), &many, Ordinal(1)).extra;
    let shown = extra["partitions"].as_array().unwrap();
    assert_eq!((shown.len(), shown[0].as_str().unwrap().chars().count()), (MAX_EXTRA_NAMES, MAX_EXTRA_CHARS + 1));
    assert_eq!(extra["partitions_listed"], 60);
    assert_eq!(extra.get("replaced_partitions"), None);
}
