//! How a branch moves otherwise than by a commit on top: staged snapshots, cherry-picks, replaced tables,
//! rollbacks to a snapshot that is an ancestor.

use super::*;

impl Draft {
    /// A snapshot that is on no branch: staged by write-audit-publish.
    fn stage(&mut self, id: i64, parent: i64) -> &mut Self {
        self.sequence += 1;
        self.snapshots.push(json!({
            "snapshot-id": id, "parent-snapshot-id": parent, "sequence-number": self.sequence, "timestamp-ms": 1,
            "summary": {"operation": "append", "added-records": "1", "wap.id": "w"}, "manifest-list": "m",
        }));
        self
    }
}

#[tokio::test]
async fn a_staged_snapshot_counts_once_it_is_published() {
    let (lake, mut draft) = table(2).await;
    let staged = draft.stage(5_000, 1_001).write(&lake, "00002-a");
    lake.notify(&staged).await;
    let state = lake.state().await;
    assert_eq!(
        (state.data.unwrap().count, state.table.unwrap().snapshot_id.as_str()),
        (2, "1001"),
        "it is on no branch"
    );
    assert_eq!(state.hold, None);

    // Onto the snapshot that it was staged upon, it is published as it is.
    let published = draft.set("main", 5_000).write(&lake, "00003-a");
    lake.notify(&published).await;
    let state = lake.state().await;
    assert_eq!((state.data.unwrap().count, state.table.unwrap().snapshot_id.as_str()), (3, "5000"));
    assert_eq!(state.hold, None);
}

#[tokio::test]
async fn a_cherry_picked_snapshot_is_one_more_commit() {
    let (lake, mut draft) = table(2).await;
    draft.stage(5_000, 1_001);
    let other = draft.append(&lake, 2);
    lake.notify(&other).await;
    // The branch has moved on meanwhile: the pick is a new snapshot on top, which names its source.
    draft.add("main", 6_000, "append");
    draft.snapshots.last_mut().unwrap()["summary"]["source-snapshot-id"] = json!("5000");
    draft.snapshots.last_mut().unwrap()["summary"]["published-wap-id"] = json!("w");
    let picked = draft.write(&lake, "00003-a");
    lake.notify(&picked).await;
    let state = lake.state().await;
    assert_eq!((state.data.unwrap().count, state.table.unwrap().snapshot_id.as_str()), (4, "6000"));
    assert_eq!((state.hold, state.epoch), (None, Epoch(0)));
}

#[tokio::test]
async fn a_table_that_was_replaced_is_held_although_its_uuid_is_the_same() {
    let (lake, mut draft) = table(3).await;
    // Without rows at first: main is gone, history stays.
    let mut emptied = draft.clone();
    emptied.refs.clear();
    let gone = emptied.write(&lake, "00003-a");
    lake.notify(&gone).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("main has no snapshot any more"), "{}", hold.evidence);
    // Then filled: a snapshot without a parent.
    let filled = emptied.add("main", 7_000, "append").write(&lake, "00004-a");
    lake.notify(&filled).await;
    assert!(lake.state().await.hold.is_some());
    lake.accept().await;
    let state = lake.state().await;
    assert_eq!((state.epoch, state.table.unwrap().snapshot_id.as_str()), (Epoch(1), "7000"));

    // In one commit with its rows.
    let (lake, _) = table(3).await;
    draft.refs.clear();
    let replaced = draft.add("main", 7_000, "append").write(&lake, "00003-a");
    lake.notify(&replaced).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("main is at snapshot 7000"), "{}", hold.evidence);
}

#[tokio::test]
async fn work_after_a_rollback_is_a_rewrite_too_if_both_were_missed() {
    let (lake, mut draft) = table(4).await;
    draft.set("main", 1_001).write(&lake, "00004-a");
    let forked = draft.append(&lake, 5);
    lake.notify(&forked).await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("which was not made from the recorded one, 1003"), "{}", hold.evidence);
    lake.accept().await;
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, "1005");
}
