//! Which partitions a group remembers as taken.

use std::collections::BTreeMap;

use lakebell_domain::cursor::{MAX_TAKEN_PARTITIONS, TargetCursor};
use lakebell_domain::evaluation::{AssetView, Inputs};
use lakebell_domain::policy::{Partition, PartitionCondition, PartitionFrom};
use lakebell_domain::state::{AssetState, Evidence};
use lakebell_domain::target::{Advance, Conditions, Member};

use crate::support::{asset_id, at, commit, evidence, group, group_name, judge, member, target};

fn by_day(asset: u128) -> Member {
    let keys = vec!["dt".to_owned()];
    let condition =
        PartitionCondition { join: keys.clone(), keys, full_set: None, horizon: None, from: PartitionFrom::Done };
    Member { conditions: Conditions { partition: Some(condition), ..Conditions::default() }, ..member(asset) }
}

fn day(number: u32) -> Partition {
    format!("dt={number:04}").parse().unwrap()
}

/// A table with a commit on which these days are done.
fn table(days: &[u32]) -> AssetState {
    let begun = [Evidence::FirstRead(Vec::new()), evidence(commit(1, "APPEND"))];
    let done = days.iter().map(|number| Evidence::PartitionDone(day(*number), None));
    begun.into_iter().chain(done).fold(AssetState::default(), |state, next| state.apply(&next, at(1)).state)
}

#[test]
fn what_goes_first_is_what_the_fewest_tables_still_name() {
    let target = target(vec![group("g", Advance::All, vec![by_day(0), by_day(1)])]);
    let states = [table(&[1, 2, 3]), table(&[1, 3])];
    let mut cursor = TargetCursor::default();
    let many = u32::try_from(MAX_TAKEN_PARTITIONS).unwrap();
    // Both tables name the lowest, and one of them the next; nobody names the others.
    for number in [1, 2].into_iter().chain((0..many - 2).map(|n| 5_000 + n)) {
        cursor.take_partition(&group_name("g"), day(number));
    }
    let views: BTreeMap<_, _> =
        (0..).zip(&states).map(|(n, state)| (asset_id(n), AssetView::of(1, Some(state)))).collect();
    let judge = |cursor: &TargetCursor| {
        judge(&Inputs {
            target: &target,
            cursor,
            assets: &views,
            open: None,
            failed: None,
            switched_off: None,
            now: at(2),
        })
    };
    let plan = judge(&cursor).plan.expect("the third day is complete and was not taken");
    assert_eq!(plan.claim.partition, Some(day(3)));
    let taken = &plan.cursor.partitions[&group_name("g")];
    assert_eq!(taken.len(), MAX_TAKEN_PARTITIONS);
    assert!([1, 2, 3, 5_001].into_iter().all(|kept| taken.contains(&day(kept))));
    assert!(!taken.contains(&day(5_000)), "the lowest of those that nobody names");
    assert!(judge(&TargetCursor { open: None, ..plan.cursor }).plan.is_none(), "nothing starts again");
}
