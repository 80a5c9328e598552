//! Iceberg in the Hadoop catalog: `vN.metadata.json` is visible once it is there, and the hint beside it
//! is only a hint.

use super::*;

async fn hadoop() -> (Lake, Draft) {
    let lake = Lake::new(KEY);
    lake.try_register_with(KEY, &json!({"catalog": "hadoop"})).await.expect("register");
    (lake, Draft::new())
}

impl Draft {
    fn version(&mut self, lake: &Lake, number: u64) -> String {
        self.add("main", 1_000 + i64::try_from(number).unwrap(), "append");
        self.write(lake, &format!("v{number}"))
    }
}

fn hint(lake: &Lake, text: &str) {
    lake.put("metadata/version-hint.text", text);
}

#[tokio::test]
async fn the_newest_version_counts_whatever_the_hint_says() {
    let (lake, mut draft) = hadoop().await;
    assert_eq!(lake.state().await.baseline.map(|baseline| baseline.version), Some(None), "no table yet");
    for (number, text) in [(1, "1"), (2, "1"), (3, "99"), (4, "four"), (5, ""), (6, "5\n")] {
        let file = draft.version(&lake, number);
        hint(&lake, text);
        lake.put("metadata/85f616f1-4c4e-412a-9119-bd72cf73c9bb.metadata.json", "{}");
        lake.notify(&file).await;
        let state = lake.state().await;
        assert_eq!((state.position().ordinal, state.trouble), (Ordinal(number + 1), None), "hint {text:?}");
    }
    assert_eq!(lake.state().await.data.unwrap().count, 6);
    lake.assert_quiet_scan_costs(1, 1).await;
}

#[tokio::test]
async fn a_version_beyond_a_hole_does_not_count_while_the_hint_leads_elsewhere() {
    let (lake, mut draft) = hadoop().await;
    let first = draft.version(&lake, 1);
    lake.notify(&first).await;
    let mut stray = draft.clone();
    stray.version(&lake, 7);
    hint(&lake, "1");
    lake.scan().await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(2), "a reader of the catalog stops at 1");
    let second = draft.version(&lake, 2);
    lake.notify(&second).await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(3));
}

#[tokio::test]
async fn a_version_that_was_written_over_is_another_history() {
    let (lake, mut draft) = hadoop().await;
    let first = draft.version(&lake, 1);
    lake.notify(&first).await;
    let before = draft.clone();
    let second = draft.version(&lake, 2);
    lake.notify(&second).await;
    // The loser of a race without a lock put its file over the winner's.
    let mut other = before.clone();
    other.add("main", 7_777, "append").write(&lake, "v2");
    lake.scan().await;
    let hold = lake.state().await.hold.expect("a hold");
    assert!(hold.evidence.contains("v2.metadata.json was written over"), "{}", hold.evidence);
    lake.accept().await;
    assert_eq!(lake.state().await.table.unwrap().snapshot_id, "7777");
    lake.assert_quiet_scan_costs(1, 1).await;

    // The same bytes, or another property alone, take nothing back.
    other.write(&lake, "v2");
    lake.scan().await;
    assert_eq!(lake.state().await.hold, None);
    lake.assert_quiet_scan_costs(1, 1).await;
}

#[tokio::test]
async fn thousands_of_versions_are_followed_from_the_known_one() {
    let (lake, mut draft) = hadoop().await;
    draft.keep = 3;
    for number in 1..=1_200 {
        draft.version(&lake, number);
    }
    hint(&lake, "1199");
    lake.scan().await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(1_201));
    let next = draft.version(&lake, 1_201);
    lake.notify(&next).await;
    assert_eq!(lake.state().await.position().ordinal, Ordinal(1_202));
    lake.requests();
    lake.scan().await;
    let (reads, listings) = lake.requests();
    assert!(reads + listings <= 5, "{reads} reads, {listings} listings");
}
