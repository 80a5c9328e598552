//! The evaluator against the reference, over random targets and histories.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::commit::CommitKind;
use lakebell_domain::evaluation::ClaimPlan;
use lakebell_domain::ids::{AssetId, GroupName};
use lakebell_domain::reason::{Reason, ReasonCode, Verdict};
use lakebell_domain::target::{Advance, Conditions, Group, Member, Minimum, Target};
use lakebell_domain::trigger::{Arrow, Status};
use lakebell_domain::version::{Epoch, Ordinal, Position};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::reference::Combination;
use crate::support::{Judged, asset_id, at, group, member, target, version};
use crate::world::{ASSETS, Step, World, positions};

impl World {
    fn compare(&self) -> Result<Judged, TestCaseError> {
        let evaluation = self.evaluate();
        prop_assert_eq!(&evaluation, &self.evaluate(), "the same inputs gave two evaluations");
        check_explanation(&evaluation)?;
        let expected = self.memory.evaluate(&self.target, &self.histories);
        let found = evaluation.plan.as_ref().map(|plan| Combination {
            groups: plan.claim.groups.clone(),
            taken: plan.claim.ranges.iter().map(|range| (range.asset, positions(&range.bounds))).collect(),
        });
        prop_assert_eq!(&found, &expected);
        if let Some(plan) = &evaluation.plan {
            self.check_plan(plan)?;
        }
        Ok(evaluation)
    }

    fn check_plan(&self, plan: &ClaimPlan) -> Result<(), TestCaseError> {
        prop_assert_eq!(&plan.cursor.open, &Some(plan.claim.key.clone()));
        prop_assert!(plan.cursor.failed.is_none());
        for range in &plan.claim.ranges {
            let history = &self.histories[&range.asset];
            for bound in [&range.bounds.from, &range.bounds.to].into_iter().flatten() {
                let committed = history.commits.iter().any(|commit| commit.position == bound.position);
                prop_assert!(committed, "{} was never committed", bound.position);
                prop_assert_eq!(bound, &version(bound.position.epoch.0, bound.position.ordinal.0));
            }
            prop_assert!(positions(&range.bounds).0 <= positions(&range.bounds).1);
        }
        for (group, assets) in &self.cursor.taken {
            for (asset, before) in assets {
                let after = plan.cursor.at(group, *asset);
                prop_assert!(after.is_some_and(|after| after.position() >= before.position()), "a cursor went back");
            }
        }
        // the union of groups, and every lower bound of the trigger that is replaced
        let open = self.open().filter(|open| open.status().step() == "waiting");
        let failed = || self.cursor.failed.as_ref().map(|key| &self.triggers[key]);
        let replaced = open.or_else(failed);
        prop_assert_eq!(plan.claim.inherits.as_ref().map(|inherits| &inherits.from), replaced.map(|old| &old.key));
        if let Some(old) = replaced {
            prop_assert!(old.groups.is_subset(&plan.claim.groups), "a group of the replaced trigger is lost");
            for old in &old.ranges {
                let new = plan.claim.ranges.iter().find(|range| range.asset == old.asset).unwrap();
                let ((old_from, old_to), (from, to)) = (positions(&old.bounds), positions(&new.bounds));
                prop_assert!(
                    old_to.is_none() || (from <= old_from && to >= old_to),
                    "data of the replaced trigger is lost"
                );
                prop_assert!(old.aliases.is_subset(&new.aliases));
            }
        }
        Ok(())
    }

    /// Rule 7: what triggers took of an asset follows on from trigger to trigger. For a group that keeps to
    /// itself those that name it leave no gap; a range that it shares with another group may begin earlier.
    fn check_tiling(&self, begun: &BTreeMap<(GroupName, AssetId), Option<Position>>) -> Result<(), TestCaseError> {
        let start_of = |asset: AssetId, start: Option<Position>| start.or(self.histories[&asset].baseline);
        let all_of = |asset: AssetId| begun.iter().filter(move |((_, of), _)| *of == asset).map(|(_, start)| *start);
        for asset in self.target.assets().into_keys() {
            let with = self.target.groups.iter().filter(|group| group.members.iter().any(|m| m.asset == asset));
            if with.clone().any(|group| group.independent) && with.count() > 1 {
                continue;
            }
            let mut reached = start_of(asset, all_of(asset).min().flatten());
            let taken = self.memory.consumed.iter().filter_map(|taken| taken.get(&asset));
            for (from, to) in taken.filter(|(from, to)| from != to) {
                prop_assert_eq!(*from, reached, "a gap or an overlap");
                reached = *to;
            }
        }
        for group in self.target.groups.iter().filter(|group| group.independent) {
            for asset in group.members.iter().map(|member| member.asset) {
                let mut reached = start_of(asset, begun[&(group.name.clone(), asset)]);
                let triggers = self.through.iter().map(|key| &self.triggers[key]);
                let of_group = triggers.filter(|trigger| trigger.groups.contains(&group.name));
                let ranges = of_group.filter_map(|trigger| trigger.ranges.iter().find(|range| range.asset == asset));
                for (from, to) in ranges.map(|range| positions(&range.bounds)).filter(|(from, to)| from != to) {
                    prop_assert!(from <= reached, "a gap of {} in {asset}", group.name);
                    reached = reached.max(to);
                }
            }
        }
        Ok(())
    }

    /// Nothing more happens: whatever is open starts, and whatever is ready is claimed.
    fn come_to_rest(&mut self) -> Result<(), TestCaseError> {
        self.cursor.paused = None;
        self.target.enabled = true;
        self.memory.is_off = false;
        for _ in 0..20 {
            let evaluation = self.compare()?;
            let Some(key) = self.cursor.open.clone().or_else(|| self.cursor.failed.clone()) else {
                if self.claim().is_none() {
                    prop_assert!(evaluation.groups.iter().all(|group| group.verdict != Verdict::Ready));
                    return Ok(());
                }
                continue;
            };
            self.clock += 1_000;
            let arrow = match self.triggers[&key].status() {
                Status::Queued => Arrow::Lease { until: at(self.clock) },
                Status::Waiting { .. } => Arrow::Wake,
                Status::Leased { .. } => Arrow::Succeed { instance: None },
                Status::Unknown { .. } => Arrow::Adopt { instances: Vec::new() },
                _ => Arrow::Redrive { by: "ops".to_owned() },
            };
            self.follow(&key, &arrow);
        }
        Err(TestCaseError::fail("it never comes to rest"))
    }
}

/// READY has a plan and no reason; everything else has one reason that fits it.
pub(crate) fn check_explanation(evaluation: &Judged) -> Result<(), TestCaseError> {
    prop_assert_eq!(evaluation.plan.is_some(), evaluation.verdict == Verdict::Ready);
    let members = evaluation.groups.iter().flat_map(|group| &group.members);
    let all = std::iter::once((evaluation.verdict, &evaluation.reason))
        .chain(evaluation.groups.iter().map(|group| (group.verdict, &group.reason)))
        .chain(members.map(|member| (member.verdict, &member.reason)));
    for (verdict, reason) in all {
        prop_assert_eq!(reason.is_none(), verdict == Verdict::Ready, "{} with {:?}", verdict, reason);
        if let Some(Reason { code, expected, actual, unblock, .. }) = reason {
            prop_assert_eq!(verdict_of(*code), verdict, "{}", code);
            prop_assert!(!expected.is_empty() && !actual.is_empty() && !unblock.is_empty());
        }
    }
    Ok(())
}

fn verdict_of(code: ReasonCode) -> Verdict {
    use ReasonCode as R;
    match code {
        R::NoNewVersion
        | R::NoVersionYet
        | R::TooFewAdvanced
        | R::TriggerInFlight
        | R::TriggerHeld
        | R::TriggerFailed
        | R::BackfillIgnored
        | R::CdcLagNotRecovered
        | R::RegisterNotMoved
        | R::NoMemberYet
        | R::NoNewPartition => Verdict::Waiting,
        R::MinSnapshotNotReached
        | R::NeverRead
        | R::LocationUnreadable
        | R::CommitDamaged
        | R::CommitMissing
        | R::CatalogAway
        | R::CatalogRefused
        | R::CatalogUnclear
        | R::NotInCatalog
        | R::TooFewSnapshots
        | R::TooFewRecords
        | R::PartitionMissing => Verdict::BlockedBySnapshot,
        R::QualityFailed | R::QualityUnknown => Verdict::BlockedByQuality,
        R::SchemaPending | R::SchemaRejected | R::SchemaUndecided => Verdict::BlockedBySchema,
        R::TagMissing => Verdict::BlockedByTag,
        R::WatermarkAbsent | R::WatermarkNotReached | R::WatermarkTooOld | R::WindowOpen => Verdict::BlockedByWatermark,
        R::BackfillRunning | R::BackfillNotCompleted => Verdict::BlockedByBackfill,
        R::RewriteSuspected | R::RewriteHeld => Verdict::BlockedByRewrite,
        R::AssetUnknown => Verdict::BlockedByUnknownAsset,
        R::QuietPeriod | R::MinInterval | R::NotBefore | R::OutsideRunWindow | R::SwitchedOff => Verdict::BlockedByGate,
        R::TargetPaused => Verdict::Paused,
        R::TargetDisabled | R::TargetInvalid => Verdict::Disabled,
    }
}

fn a_member(asset: u128) -> impl Strategy<Value = Member> {
    let kinds = prop_oneof![
        5 => Just(None),
        1 => Just(Some(vec!["APPEND"])),
        1 => Just(Some(vec!["COMPACT", "OVERWRITE"])),
    ];
    let minimum = prop_oneof![3 => Just(None), 1 => (0_u32..2, 1_u64..12).prop_map(Some)];
    (kinds, minimum).prop_map(move |(kinds, minimum)| Member {
        conditions: Conditions {
            commit_kinds: kinds.map(|kinds| kinds.into_iter().map(|kind| CommitKind(kind.to_owned())).collect()),
            minimum: minimum.map(|(epoch, ordinal)| Minimum {
                snapshot_id: ordinal.to_string(),
                epoch: Epoch(epoch),
                ordinal: Ordinal(ordinal),
            }),
            ..Conditions::default()
        },
        ..member(asset)
    })
}

fn a_target() -> impl Strategy<Value = Target> {
    let assets = prop_oneof![
        1 => Just((0..ASSETS).collect::<BTreeSet<_>>()),
        3 => proptest::collection::btree_set(0..ASSETS, 1..=3),
    ];
    let a_group = (assets, 0..3, 1_usize..=3).prop_flat_map(|(assets, how, k)| {
        let advance = match how {
            0 => Advance::All,
            1 => Advance::Any,
            _ => Advance::AtLeast(k.min(assets.len())),
        };
        let members = assets.into_iter().map(a_member).collect::<Vec<_>>();
        (Just(advance), members, proptest::bool::weighted(0.3))
    });
    proptest::collection::vec(a_group, 1..=3).prop_map(|groups| {
        target(
            (0..)
                .zip(groups)
                .map(|(at, (advance, members, independent)): (u8, _)| Group {
                    independent,
                    ..group(&format!("g{at}"), advance, members)
                })
                .collect(),
        )
    })
}

fn a_kind() -> impl Strategy<Value = &'static str> {
    select(vec!["APPEND", "APPEND", "APPEND", "OVERWRITE", "COMPACT", "NEW"])
}

fn a_step() -> impl Strategy<Value = Step> {
    let asset = || 0..ASSETS;
    prop_oneof![
        12 => (asset(), a_kind(), 0_u64..3).prop_map(|(asset, kind, skip)| Step::Commit { asset, kind, skip }),
        1 => asset().prop_map(|asset| Step::FirstRead { asset }),
        1 => asset().prop_map(|asset| Step::Sight { asset }),
        1 => asset().prop_map(|asset| Step::Withdraw { asset }),
        1 => (asset(), 1_u64..9, proptest::collection::vec(a_kind(), 0..4))
            .prop_map(|(asset, first, kinds)| Step::Accept { asset, first, kinds }),
        1 => asset().prop_map(|asset| Step::Registration { asset }),
        1 => Just(Step::Pause),
        1 => Just(Step::Switch),
        10 => Just(Step::Claim),
        12 => any::<Index>().prop_map(Step::Move),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4, ..ProptestConfig::default() })]

    #[test]
    fn the_evaluator_agrees_with_the_reference(
        target in a_target(),
        before in proptest::collection::vec((0..ASSETS, a_kind()), 0..12),
        unread in proptest::collection::btree_set(0..ASSETS, 0..=2),
        starts in proptest::collection::vec((any::<Index>(), any::<Index>(), 0_u64..3), 0..9),
        steps in proptest::collection::vec(a_step(), 1..60),
    ) {
        let mut world = World::new(target);
        for (asset, kind) in before {
            world.commit(asset, kind, 0);
        }
        for asset in (0..ASSETS).filter(|asset| !unread.contains(asset)) {
            world.first_read(asset);
        }
        // some groups start further on than others: as if they had been added later
        for (group, asset, later) in starts {
            let asset = asset.index(3) as u128;
            world.commit(asset, "APPEND", later);
            let group = group.index(world.target.groups.len());
            let newest = world.histories[&asset_id(asset)].commits.last().map(|commit| commit.position);
            let has_it = world.target.groups[group].members.iter().any(|member| member.asset == asset_id(asset));
            if let (Some(newest), true, true) = (newest, has_it, !unread.contains(&asset)) {
                world.start_from(group, asset, newest);
            }
        }
        let begun: BTreeMap<(GroupName, AssetId), Option<Position>> = world.target.groups.iter().flat_map(|group| {
            let mark = |asset| world.memory.mark(&group.name, asset, &world.histories[&asset]);
            group.members.iter().map(move |member| ((group.name.clone(), member.asset), mark(member.asset)))
        }).collect();

        for step in &steps {
            world.step(step);
            world.compare()?;
        }
        world.come_to_rest()?;
        world.check_tiling(&begun)?;
        let lease_ends = world.triggers.values().filter(|trigger| !trigger.has_ended()).count();
        prop_assert_eq!(lease_ends, 0, "at rest every trigger has ended");
    }
}
