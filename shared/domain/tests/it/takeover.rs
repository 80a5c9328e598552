//! Claims that take over the data of a waiting or failed trigger, and what each verdict says.

use lakebell_domain::commit::CommitKind;
use lakebell_domain::cursor::Paused;
use lakebell_domain::ids::TriggerKey;
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::target::{Advance, Conditions, Member};
use lakebell_domain::trigger::{Arrow, Range, Trigger, WaitReason};

use crate::support::{asset_id, at, group, member, position, target};
use crate::world::{World, positions};

fn claim(world: &mut World) -> TriggerKey {
    world.claim().expect("nothing is ready")
}

fn wait(world: &mut World, key: &TriggerKey) {
    let reason = WaitReason { code: "BACK_OFF".to_owned(), detail: "503".to_owned() };
    world.follow(key, &Arrow::Lease { until: at(100) });
    world.follow(key, &Arrow::Wait { reason, due_at: at(900), refused: true });
}

fn fail(world: &mut World, key: &TriggerKey) {
    world.follow(key, &Arrow::Lease { until: at(100) });
    world.follow(key, &Arrow::Fail { code: "X".to_owned(), detail: "no".to_owned() });
}

fn succeed(world: &mut World, key: &TriggerKey) {
    world.follow(key, &Arrow::Lease { until: at(100) });
    world.follow(key, &Arrow::Succeed { instance: None });
}

/// From and to of an asset, by ordinal; 0 is before the first.
fn taken(trigger: &Trigger, asset: u128) -> Option<(u64, u64)> {
    let range = trigger.ranges.iter().find(|range: &&Range| range.asset == asset_id(asset))?;
    let (from, to) = positions(&range.bounds);
    let ordinal = |position: Option<lakebell_domain::version::Position>| position.map_or(0, |p| p.ordinal.0);
    Some((ordinal(from), ordinal(to)))
}

fn groups(trigger: &Trigger) -> Vec<&str> {
    trigger.groups.iter().map(lakebell_domain::ids::GroupName::as_str).collect()
}

/// Two alternatives, `a` on the first asset and `b` on the second.
fn alternatives() -> World {
    let mut world =
        World::new(target(vec![group("a", Advance::All, vec![member(0)]), group("b", Advance::All, vec![member(1)])]));
    (0..3).for_each(|asset| world.first_read(asset));
    world
}

#[test]
fn what_comes_while_a_trigger_waits_joins_it_with_its_back_off() {
    let mut world = alternatives();
    world.commit(0, "APPEND", 3);
    let first = claim(&mut world);
    wait(&mut world, &first);
    world.commit(1, "APPEND", 0);
    let second = claim(&mut world);
    assert_ne!(first, second);
    let open = world.open().unwrap();
    assert_eq!((groups(open), taken(open, 0), taken(open, 1)), (vec!["a", "b"], Some((0, 4)), Some((0, 1))));
    assert_eq!((open.status().step(), open.tries, open.due_at), ("waiting", 1, Some(at(900))), "not a fresh start");
    assert_eq!((open.replaces.as_ref(), open.attempt), (Some(&first), 0));
    assert!(world.evaluate().plan.is_none(), "nothing new since");
    world.commit(0, "APPEND", 0);
    claim(&mut world);
    assert_eq!(taken(world.open().unwrap(), 0), Some((0, 5)), "the lower bound is kept over two replacements");
}

#[test]
fn data_of_a_failed_trigger_is_in_the_next_with_a_budget_of_its_own() {
    let mut world = alternatives();
    world.commit(0, "APPEND", 0);
    let first = claim(&mut world);
    fail(&mut world, &first);
    assert!(world.evaluate().plan.is_none(), "a failure alone starts nothing");
    world.commit(1, "APPEND", 0);
    claim(&mut world);
    let open = world.open().unwrap();
    assert_eq!((groups(open), taken(open, 0), taken(open, 1)), (vec!["a", "b"], Some((0, 1)), Some((0, 1))));
    assert_eq!((open.status().step(), open.tries, &open.replaces), ("queued", 0, &Some(first)));
}

#[test]
fn a_trigger_that_is_on_its_way_is_not_replaced() {
    let mut world = alternatives();
    world.commit(0, "APPEND", 0);
    let first = claim(&mut world);
    world.commit(1, "APPEND", 0);
    let verdict = |world: &World| world.evaluate().evaluation.reason.map(|reason| reason.code);
    assert_eq!(verdict(&world), Some(ReasonCode::TriggerInFlight));
    world.follow(&first, &Arrow::Lease { until: at(100) });
    assert_eq!(verdict(&world), Some(ReasonCode::TriggerInFlight));
    world.follow(&first, &Arrow::LoseSight { code: "T".to_owned(), detail: "t".to_owned(), check_at: at(1) });
    assert_eq!(verdict(&world), Some(ReasonCode::TriggerInFlight));
    world.follow(&first, &Arrow::Hold { detail: "two instances".to_owned() });
    let reason = world.evaluate().evaluation.reason.unwrap();
    assert_eq!(reason.code, ReasonCode::TriggerHeld);
    assert!(reason.actual.contains("two instances") && reason.unblock.contains(first.as_str()), "{reason:?}");
    world.follow(&first, &Arrow::Adopt { instances: Vec::new() });
    let next = claim(&mut world);
    let open = world.open().unwrap();
    assert_eq!(
        (&open.key, groups(open), taken(open, 0)),
        (&next, vec!["b"], None),
        "what was started is not taken again"
    );
}

/// One asset in two groups, one of which was added later and stands further on.
fn with_a_group_added_later() -> World {
    let mut world = World::new(target(vec![
        group("old", Advance::All, vec![member(0), member(1)]),
        group("new", Advance::All, vec![member(0)]),
    ]));
    (0..3).for_each(|asset| world.first_read(asset));
    world.commit(0, "APPEND", 4); // 5
    world.start_from(1, 0, position(0, 5));
    world.commit(0, "APPEND", 3); // 9
    world
}

#[test]
fn a_range_starts_at_the_lowest_cursor_that_the_claim_moves() {
    let mut world = with_a_group_added_later();
    let first = claim(&mut world);
    let open = world.open().unwrap();
    assert_eq!((groups(open), taken(open, 0)), (vec!["new"], Some((0, 9))), "the old group had taken nothing");
    succeed(&mut world, &first);
    world.commit(1, "APPEND", 0);
    assert!(world.evaluate().plan.is_none(), "what one alternative consumed is consumed for the other");
}

#[test]
fn a_replacement_keeps_the_whole_range_and_not_only_that_of_the_ready_groups() {
    for end in [wait, fail] {
        let mut world = with_a_group_added_later();
        let first = claim(&mut world);
        end(&mut world, &first);
        world.commit(0, "APPEND", 0); // 10
        claim(&mut world);
        let open = world.open().unwrap();
        assert_eq!(taken(open, 0), Some((0, 10)), "commits 1 to 5 would belong to no live trigger");
    }
}

#[test]
fn a_table_that_was_never_read_lends_no_lower_bound() {
    for end in [wait, fail] {
        let mut world = World::new(target(vec![group("any", Advance::Any, vec![member(0), member(1)])]));
        world.first_read(0);
        (1..=5).for_each(|_| world.commit(1, "APPEND", 0));
        world.commit(0, "APPEND", 0);
        let first = claim(&mut world);
        assert_eq!(taken(world.open().unwrap(), 1), Some((0, 0)), "nothing is known of it");
        end(&mut world, &first);
        world.first_read(1);
        world.commit(1, "APPEND", 0);
        claim(&mut world);
        let open = world.open().unwrap();
        assert_eq!(taken(open, 1), Some((5, 6)), "what the first read found was there before");
        assert_eq!(taken(open, 0), Some((0, 1)));
    }
}

/// The same, where the group that knew nothing of the table is not the one that comes to know it.
#[test]
fn a_group_that_is_taken_over_lends_no_lower_bound_either() {
    for end in [wait, fail] {
        let appends = Member {
            conditions: Conditions {
                commit_kinds: Some([CommitKind("APPEND".to_owned())].into()),
                ..Conditions::default()
            },
            ..member(1)
        };
        let mut world = World::new(target(vec![
            group("appends", Advance::Any, vec![member(0), appends]),
            group("all", Advance::Any, vec![member(0), member(1)]),
        ]));
        world.first_read(0);
        (1..=2).for_each(|_| world.commit(1, "APPEND", 0));
        world.commit(0, "APPEND", 0);
        let first = claim(&mut world);
        end(&mut world, &first);
        world.first_read(1);
        world.commit(1, "OVERWRITE", 0);
        let second = claim(&mut world);
        let open = world.open().unwrap();
        assert_eq!((groups(open), taken(open, 1)), (vec!["all", "appends"], Some((2, 3))));
        if open.status().step() == "queued" {
            end(&mut world, &second);
        }
        world.commit(1, "APPEND", 0);
        claim(&mut world);
        assert_eq!(taken(world.open().unwrap(), 1), Some((2, 4)));
    }
}

#[test]
fn members_that_have_not_advanced_have_an_empty_range() {
    let mut world = World::new(target(vec![group("any", Advance::Any, vec![member(0), member(1)])]));
    (0..3).for_each(|asset| world.first_read(asset));
    world.commit(0, "APPEND", 0);
    world.commit(1, "APPEND", 0);
    let both = claim(&mut world);
    succeed(&mut world, &both);
    world.commit(0, "APPEND", 0);
    claim(&mut world);
    let open = world.open().unwrap();
    assert_eq!((taken(open, 0), taken(open, 1)), (Some((1, 2)), Some((1, 1))));
}

#[test]
fn the_barrier_that_leads_is_the_outermost() {
    let mut world = alternatives();
    world.commit(0, "APPEND", 0);
    let code = |world: &World| world.evaluate().evaluation.reason.map(|reason| reason.code);
    assert_eq!((world.evaluate().verdict, code(&world)), (Verdict::Ready, None));
    claim(&mut world);
    assert_eq!(code(&world), Some(ReasonCode::TriggerInFlight));
    world.cursor.paused = Some(Paused { since: at(5), by: "ops".to_owned() });
    let reason = world.evaluate().evaluation.reason.unwrap();
    assert_eq!(
        (reason.code, reason.since, reason.actual.as_str()),
        (ReasonCode::TargetPaused, Some(at(5)), "paused by ops")
    );
    world.target.enabled = false;
    assert_eq!((world.evaluate().verdict, code(&world)), (Verdict::Disabled, Some(ReasonCode::TargetDisabled)));
}
