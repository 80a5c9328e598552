//! Random walks through the trigger machine.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use lakebell_domain::ids::{GroupName, TaskCode, TriggerKey};
use lakebell_domain::policy::StartAs;
use lakebell_domain::target::Advance;
use lakebell_domain::trigger::{
    Arrow, ArrowName, Bounds, Claim, Distinct, Inheritance, Range, StartReason, Status, Trigger, WaitReason,
    trigger_key,
};
use proptest::prelude::*;

use crate::machine::arrows;
use crate::support::{asset_id, asset_key, at, group, group_name, member, target, version};

/// A claim of one group on one asset.
fn claim(inherits: Option<Inheritance>) -> Claim {
    let bounds = Bounds { from: Some(version(0, 1)), to: Some(version(0, 4)) };
    let range = Range {
        asset: asset_id(0),
        key: asset_key("t0"),
        aliases: BTreeSet::from(["t0".parse().unwrap()]),
        bounds: bounds.clone(),
        watermark: None,
        partition: None,
        tag: None,
        failed_versions: Vec::new(),
        has_backfill: false,
        head_rev: 3,
    };
    let groups: BTreeSet<GroupName> = [group_name("default")].into();
    let key = trigger_key(&Distinct {
        target: &target(Vec::new()).id,
        generation: 1,
        groups: &groups,
        ranges: std::slice::from_ref(&range),
        window: None,
        partition: None,
        tick: None,
        request: None,
        registers: &[],
    });
    Claim {
        key,
        reason: StartReason::Ready,
        partition: None,
        window: None,
        unmet: Vec::new(),
        bounds: BTreeMap::from([(group_name("default"), BTreeMap::from([(asset_id(0), bounds)]))]),
        groups,
        ranges: vec![range],
        inherits,
    }
}

/// A trigger that was just claimed.
pub(crate) fn claimed() -> Trigger {
    let target = target(vec![group("default", Advance::All, vec![member(0)])]);
    Trigger::claimed(&target, 2, claim(None), "trace-1".parse().unwrap(), at(0), at(60))
}

/// A trigger that inherited a back-off.
pub(crate) fn claimed_waiting(due_at: Timestamp) -> Trigger {
    let target = target(vec![group("default", Advance::All, vec![member(0)])]);
    let reason = WaitReason { code: "BACK_OFF".to_owned(), detail: "503".to_owned() };
    let from: TriggerKey = "00aa".parse().unwrap();
    let inherits = Inheritance { from, tries: 2, waiting: Some((reason, due_at)) };
    Trigger::claimed(&target, 2, claim(Some(inherits)), "trace-1".parse().unwrap(), at(0), at(60))
}

/// A trigger that a waiting task takes; it inherits no back-off.
pub(crate) fn claimed_for_sensor() -> Trigger {
    let mut target = target(vec![group("default", Advance::All, vec![member(0)])]);
    target.start_at = Some(TaskCode(12));
    target.policies.start_as = StartAs::Sensor;
    let reason = WaitReason { code: "OFFLINE".to_owned(), detail: "offline".to_owned() };
    let from: TriggerKey = "00aa".parse().unwrap();
    let inherits = Inheritance { from, tries: 0, waiting: Some((reason, at(5_000))) };
    Trigger::claimed(&target, 2, claim(Some(inherits)), "trace-1".parse().unwrap(), at(0), at(60))
}

#[test]
fn a_claimed_trigger_is_queued_or_goes_on_waiting() {
    let fresh = claimed();
    assert_eq!((fresh.status(), fresh.due_at, &fresh.replaces), (&Status::Queued, Some(at(60)), &None));
    assert_eq!((fresh.attempt, fresh.tries, fresh.sends), (0, 0, 1));
    assert_eq!(fresh.log.iter().map(|passage| passage.arrow).collect::<Vec<_>>(), [ArrowName::Claim]);

    let heir = claimed_waiting(at(500));
    assert_eq!((heir.status().step(), heir.due_at, heir.tries), ("waiting", Some(at(500)), 2));
    assert_eq!(heir.replaces, Some("00aa".parse().unwrap()));
    assert_eq!(heir.attempt, 0);
}

#[test]
fn a_long_log_keeps_the_claim_and_the_latest_passages() {
    let back_off = |second| Arrow::Wait {
        reason: WaitReason { code: "BACK_OFF".to_owned(), detail: format!("round {second}") },
        due_at: at(second),
        refused: true,
    };
    let mut trigger = claimed();
    for second in 1..=40 {
        for arrow in
            [Arrow::Send { due_at: at(second) }, Arrow::Lease { until: at(second) }, back_off(second), Arrow::Wake]
        {
            trigger = trigger.apply(&arrow, at(second)).unwrap();
        }
    }
    assert_eq!((trigger.log.len(), trigger.log[0].arrow, trigger.log[0].at), (24, ArrowName::Claim, at(0)));
    let kept: Vec<_> = trigger.log[1..].iter().map(|passage| (passage.arrow, passage.at)).collect();
    let arrows = [ArrowName::Lease, ArrowName::Wait, ArrowName::Wake];
    let all: Vec<_> = (1..=40).flat_map(|second| arrows.map(|arrow| (arrow, at(second)))).collect();
    assert_eq!(kept, all[all.len() - 23..]);
    assert_eq!(trigger.log[22].detail.as_deref(), Some("BACK_OFF: round 40"));
    assert_eq!((trigger.tries, trigger.attempt, trigger.sends), (40, 40, 41));
}

/// Everything about a trigger that no arrow may touch.
fn facts(trigger: &Trigger) -> impl PartialEq + std::fmt::Debug {
    let Trigger { key, target, generation, definition_rev, connection, workflow, start_at, reason, .. } = trigger;
    let Trigger { groups, ranges, bounds, parameters, claimed_at, trace, replaces, .. } = trigger;
    let identity = (key.clone(), target.clone(), *generation, *definition_rev, *claimed_at, trace.clone());
    let start = (connection.clone(), workflow.clone(), *start_at, *reason, parameters.clone(), replaces.clone());
    (identity, start, groups.clone(), ranges.clone(), bounds.clone())
}

fn check_step(before: &Trigger, arrow: &Arrow, after: &Trigger) -> Result<(), TestCaseError> {
    use ArrowName as N;
    let name = arrow.name();
    prop_assert_eq!(facts(before), facts(after));

    let may_leave_an_end = before.status().step() == "failed" && matches!(name, N::Redrive | N::Supersede);
    prop_assert!(!before.has_ended() || may_leave_an_end, "{} left its end by {name}", before.status().step());
    prop_assert_eq!(after.has_ended(), after.due_at.is_none());

    let fences = u32::from(matches!(name, N::Lease | N::Redrive));
    prop_assert_eq!(after.attempt, before.attempt + fences, "attempt after {}", name);
    let tries = match arrow {
        Arrow::Redrive { .. } => 0,
        Arrow::Wait { refused: true, .. } | Arrow::ProveAbsent { .. } => before.tries + 1,
        _ => before.tries,
    };
    prop_assert_eq!(after.tries, tries, "tries after {}", name);
    prop_assert_eq!(after.sends, before.sends + u32::from(name == N::Send));
    prop_assert!(before.first_tried_at.is_none() || before.first_tried_at == after.first_tried_at);

    prop_assert!(after.log.len() <= 24, "the log grows without bound");
    prop_assert_eq!(after.log[0].arrow, N::Claim, "the log lost the claim");
    prop_assert!(after.log.windows(2).all(|pair| pair[0].at <= pair[1].at));
    if name != N::Send {
        prop_assert_eq!(after.log.last().unwrap().arrow, name);
        prop_assert!(after.log.len() == 24 || after.log.len() == before.log.len() + 1);
    }
    Ok(())
}

proptest! {
    /// Half of the choices are among the arrows that exist, so that walks get far.
    #[test]
    fn wherever_a_walk_leads_the_rules_hold(
        waits in any::<bool>(),
        choices in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..150),
    ) {
        let mut trigger = if waits { claimed_waiting(at(0)) } else { claimed() };
        let mut leases = 0;
        for ((choice, legal_only), second) in choices.into_iter().zip((2_000..).step_by(1_000)) {
            let now = at(second);
            let all = arrows();
            // an end only now and then: a walk that has ended says nothing more
            let goes_on = |arrow: &Arrow| trigger.apply(arrow, now).is_ok_and(|after| second % 7 == 0 || !after.has_ended());
            let legal: Vec<_> = all.iter().filter(|(_, arrow)| goes_on(arrow)).collect();
            let (_, arrow) = if legal_only && !legal.is_empty() { *choice.get(&legal) } else { choice.get(&all) };
            let before = trigger.clone();
            match trigger.apply(arrow, now) {
                Ok(after) => {
                    check_step(&before, arrow, &after)?;
                    leases += u32::from(matches!(arrow.name(), ArrowName::Lease | ArrowName::Redrive));
                    trigger = after;
                }
                Err(illegal) => prop_assert_eq!((illegal.step, illegal.arrow), (before.status().step(), arrow.name())),
            }
            prop_assert_eq!(trigger.attempt, leases);
        }
        let json = serde_json::to_string(&trigger).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Trigger>(&json).unwrap(), &trigger, "lost in storage");
    }

    /// Where it ends is the end: no arrow at all leads out of SUCCESS and SKIPPED.
    #[test]
    fn success_and_skipped_are_for_good(choice in any::<prop::sample::Index>(), second in 0_i64..1_000_000) {
        let (_, arrow) = choice.get(&arrows()).clone();
        for (step, trigger) in crate::machine::steps() {
            if matches!(step, "success" | "skipped" | "superseded") {
                prop_assert!(trigger.apply(&arrow, at(second)).is_err(), "{step} was left by {}", arrow.name());
            }
        }
    }
}
