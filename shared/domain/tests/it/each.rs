//! `coalesce: each`: the list of triggers is a function of each table's own history, whenever it is
//! evaluated and however much has come meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use lakebell_domain::commit::CommitKind;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs, PastCommit, resumed};
use lakebell_domain::ids::{GroupName, TriggerKey};
use lakebell_domain::policy::{Coalesce, OnBackfill, OnFailed, Operations};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::{AssetState, BackfillStatus, Evidence};
use lakebell_domain::target::{Advance, Conditions, Group, Member, Minimum, Target};
use lakebell_domain::trigger::{Arrow, Trigger, WaitReason};
use lakebell_domain::version::{Epoch, Ordinal, Position};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::{Judged, asset_id, at, commit, evidence, group, judge, member, target};

const ASSETS: usize = 3;

/// What one trigger takes: its groups, and for each table from and to.
type Taken = (BTreeSet<GroupName>, Vec<(u128, Option<u64>, u64)>);

struct World {
    target: Target,
    cursor: TargetCursor,
    states: Vec<AssetState>,
    histories: Vec<Vec<PastCommit>>,
    open: Option<Trigger>,
    keys: BTreeSet<TriggerKey>,
    triggers: Vec<Taken>,
}

impl World {
    fn new(groups: Vec<Group>, on_backfill: OnBackfill) -> Self {
        let state = AssetState::default().apply(&Evidence::FirstRead(Vec::new()), at(0)).state;
        let mut target = target(groups);
        target.policies.coalesce = Coalesce::Each;
        target.policies.on_failed = OnFailed::Hold;
        target.policies.on_backfill = on_backfill;
        Self {
            target,
            cursor: TargetCursor::default(),
            states: vec![state; ASSETS],
            histories: vec![Vec::new(); ASSETS],
            open: None,
            keys: BTreeSet::new(),
            triggers: Vec::new(),
        }
    }

    fn tell(&mut self, asset: usize, evidence: &Evidence) {
        self.states[asset] = self.states[asset].apply(evidence, at(1)).state;
    }

    fn commit(&mut self, asset: usize, kind: &str, application: &str) {
        let ordinal = self.states[asset].position().ordinal.0 + 1;
        self.tell(asset, &evidence(commit(ordinal, kind)));
        let mark = self.states[asset].kinds[&CommitKind(kind.to_owned())].mark.clone();
        self.histories[asset].push(PastCommit { mark, application: Some(application.to_owned()) });
    }

    /// With the commits beyond the lowest cursor, as the engine reads them.
    fn evaluate(&self) -> Judged {
        self.with_inputs(judge)
    }

    fn with_inputs<T>(&self, ask: impl Fn(&Inputs<'_>) -> T) -> T {
        let lowest = |asset: usize| {
            let groups = self.target.groups.iter();
            let with =
                groups.filter(|group| group.members.iter().any(|member| member.asset == asset_id(asset as u128)));
            let of_group = |group: &Group| self.cursor.at(&group.name, asset_id(asset as u128))?.position();
            with.map(of_group).min().flatten()
        };
        let beyond = |asset: usize| {
            let from: Option<Position> = lowest(asset);
            let past = self.histories[asset].iter().filter(|past| Some(past.mark.version.position) > from);
            past.cloned().collect::<Vec<_>>()
        };
        let histories: Vec<Vec<PastCommit>> = (0..ASSETS).map(beyond).collect();
        let views: BTreeMap<_, _> = (0..ASSETS)
            .map(|n| {
                (asset_id(n as u128), AssetView { history: &histories[n], ..AssetView::of(1, Some(&self.states[n])) })
            })
            .collect();
        ask(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &views,
            open: self.open.as_ref(),
            failed: None,
            switched_off: None,
            now: at(2),
        })
    }

    fn claim(&mut self) -> bool {
        let Some(plan) = self.evaluate().plan else { return false };
        assert!(self.keys.insert(plan.claim.key.clone()), "one key for two triggers");
        let ordinal = |version: &lakebell_domain::version::Version| version.position.ordinal.0;
        let number = |range: &lakebell_domain::trigger::Range| {
            (0..ASSETS as u128).find(|n| asset_id(*n) == range.asset).unwrap()
        };
        let ranges = plan.claim.ranges.iter().map(|range| {
            let bounds = &range.bounds;
            (number(range), bounds.from.as_ref().map(ordinal), bounds.to.as_ref().map(ordinal).unwrap())
        });
        self.triggers.push((plan.claim.groups.clone(), ranges.collect()));
        self.cursor = plan.cursor;
        let trigger = Trigger::claimed(&self.target, 1, plan.claim, "t".parse().unwrap(), at(2), at(2));
        self.open = Some(trigger);
        true
    }

    fn follow(&mut self, arrow: &Arrow) {
        let after = self.open.take().unwrap().apply(arrow, at(2)).unwrap();
        if after.has_ended() && !matches!(after.status(), lakebell_domain::trigger::Status::Failed { .. }) {
            self.cursor.open = None;
        } else {
            self.open = Some(after);
        }
    }

    fn succeed(&mut self) {
        self.follow(&Arrow::Lease { until: at(60) });
        self.follow(&Arrow::Succeed { instance: None });
    }

    fn come_to_rest(&mut self) {
        if self.open.is_some() {
            self.succeed();
        }
        while self.claim() {
            self.succeed();
        }
    }
}

#[test]
fn each_version_is_one_trigger_and_none_joins_one_that_waits() {
    let mut world = World::new(vec![group("g", Advance::All, vec![member(0)])], OnBackfill::Hold);
    (0..3).for_each(|_| world.commit(0, "APPEND", "w"));
    assert!(world.claim());
    world.follow(&Arrow::Lease { until: at(60) });
    let reason = WaitReason { code: "BACK_OFF".to_owned(), detail: "503".to_owned() };
    world.follow(&Arrow::Wait { reason, due_at: at(2), refused: true });
    assert_eq!(world.evaluate().evaluation.reason.unwrap().code, ReasonCode::TriggerInFlight);
    world.follow(&Arrow::Wake);
    world.follow(&Arrow::Lease { until: at(60) });
    world.follow(&Arrow::Fail { code: "X".to_owned(), detail: "no".to_owned() });
    assert_eq!(
        world.evaluate().evaluation.reason.unwrap().code,
        ReasonCode::TriggerFailed,
        "its place is not given away"
    );
    world.follow(&Arrow::Redrive { by: "ops".to_owned() });
    world.succeed();
    world.come_to_rest();
    let taken: Vec<_> = world.triggers.iter().map(|(_, ranges)| ranges[0]).collect();
    assert_eq!(taken, [(0, None, 1), (0, Some(1), 2), (0, Some(2), 3)]);
}

#[test]
fn what_is_below_a_minimum_or_of_a_backfill_is_no_step() {
    let mut least = member(0);
    least.conditions.minimum = Some(Minimum { snapshot_id: "3".to_owned(), epoch: Epoch(0), ordinal: Ordinal(3) });
    let mut world = World::new(vec![group("g", Advance::All, vec![least])], OnBackfill::Ignore);
    world.commit(0, "APPEND", "w");
    assert_eq!(world.evaluate().evaluation.reason.unwrap().code, ReasonCode::MinSnapshotNotReached);
    (0..2).for_each(|_| world.commit(0, "APPEND", "w"));
    world.come_to_rest();
    world.tell(0, &Evidence::Backfill("b".to_owned(), BackfillStatus::Running));
    (0..2).for_each(|_| world.commit(0, "APPEND", "w"));
    assert_eq!(world.evaluate().evaluation.reason.unwrap().code, ReasonCode::BackfillIgnored);
    world.tell(0, &Evidence::Backfill("b".to_owned(), BackfillStatus::Completed));
    world.commit(0, "APPEND", "w");
    world.come_to_rest();
    let taken: Vec<_> = world.triggers.iter().map(|(_, ranges)| ranges[0]).collect();
    assert_eq!(taken, [(0, None, 3), (0, Some(3), 6)], "its commits belong to ranges");
}

/// So that the list does not depend on when the rewrite was accepted.
#[test]
fn what_a_rewrite_withdrew_has_its_turn_before_the_new_history() {
    let mut world = World::new(vec![group("g", Advance::All, vec![member(0)])], OnBackfill::Hold);
    (0..2).for_each(|_| world.commit(0, "APPEND", "w"));
    assert!(world.claim());
    let baseline = world.states[0].baseline.clone();
    world.states[0] = AssetState { epoch: Epoch(1), baseline, ..AssetState::default() };
    world.commit(0, "APPEND", "w");
    world.come_to_rest();
    let taken: Vec<_> = world.triggers.iter().map(|(_, ranges)| ranges[0]).collect();
    assert_eq!(taken, [(0, None, 1), (0, Some(1), 2), (0, Some(2), 1)]);
}

/// Also where more came than is looked at one by one: the newest is in a register.
#[test]
fn what_came_before_a_resume_is_one_step() {
    let mut world = World::new(vec![group("g", Advance::All, vec![member(0)])], OnBackfill::Hold);
    (0..4).for_each(|_| world.commit(0, "APPEND", "w"));
    world.commit(0, "COMPACT", "w");
    let late = world.histories[0].split_off(2);
    world.cursor = world.with_inputs(resumed);
    world.histories[0].extend(late);
    assert!(!world.cursor.joined.is_empty());
    (0..2).for_each(|_| world.commit(0, "APPEND", "w"));
    world.come_to_rest();
    let taken: Vec<_> = world.triggers.iter().map(|(_, ranges)| ranges[0]).collect();
    assert_eq!(taken, [(0, None, 4), (0, Some(4), 6), (0, Some(6), 7)]);
    assert!(world.cursor.joined.is_empty());
}

/// With `newest` too: an operation filter looks at commits one by one.
#[test]
fn an_operation_filter_takes_the_newest_of_its_writers_outside_of_backfills() {
    let mut filtered = member(0);
    filtered.conditions.operations = Some(Operations { include: vec!["etl*".parse().unwrap()], exclude: Vec::new() });
    let mut world = World::new(vec![group("g", Advance::All, vec![filtered])], OnBackfill::Ignore);
    world.target.policies.coalesce = Coalesce::Newest;
    world.commit(0, "APPEND", "someone");
    assert_eq!(world.evaluate().verdict, Verdict::Waiting);
    world.commit(0, "APPEND", "etl-1");
    world.commit(0, "APPEND", "someone");
    world.tell(0, &Evidence::Backfill("b".to_owned(), BackfillStatus::Running));
    world.commit(0, "APPEND", "etl-2");
    world.come_to_rest();
    assert_eq!(world.triggers[0].1, [(0, None, 2)], "the one before the backfill");
    assert_eq!(world.triggers.len(), 1);
}

fn a_member(asset: u128) -> impl Strategy<Value = Member> {
    let kinds = select(vec![None, None, Some(vec!["APPEND"]), Some(vec!["OVERWRITE", "COMPACT"])]);
    let writers = select(vec![None, None, Some((vec!["etl*"], vec![])), Some((vec![], vec!["*fix"]))]);
    let minimum = proptest::option::weighted(0.2, 1_u64..6);
    (kinds, writers, minimum).prop_map(move |(kinds, writers, minimum)| {
        let patterns = |texts: Vec<&str>| texts.into_iter().map(|text| text.parse().unwrap()).collect();
        Member {
            conditions: Conditions {
                commit_kinds: kinds.map(|kinds| kinds.into_iter().map(|kind| CommitKind(kind.to_owned())).collect()),
                operations: writers
                    .map(|(include, exclude)| Operations { include: patterns(include), exclude: patterns(exclude) }),
                minimum: minimum.map(|ordinal| Minimum {
                    snapshot_id: ordinal.to_string(),
                    epoch: Epoch(0),
                    ordinal: Ordinal(ordinal),
                }),
                ..Conditions::default()
            },
            ..member(asset)
        }
    })
}

/// The commits of a table that count for a member, by ordinal.
fn eligible(member: &Member, commits: &[(&'static str, &'static str)]) -> Vec<u64> {
    let conditions = &member.conditions;
    let counts = |kind: &str| match &conditions.commit_kinds {
        Some(kinds) => kinds.contains(&CommitKind(kind.to_owned())),
        None => kind != "COMPACT",
    };
    let admits = |kind: &str, writer: &str| {
        conditions.operations.as_ref().is_none_or(|operations| {
            let matches = |patterns: &[lakebell_domain::policy::Pattern]| {
                patterns.iter().any(|pattern| pattern.matches(kind) || pattern.matches(writer))
            };
            (operations.include.is_empty() || matches(&operations.include)) && !matches(&operations.exclude)
        })
    };
    let least = conditions.minimum.as_ref().map_or(0, |minimum| minimum.ordinal.0);
    let numbered = (1..).zip(commits);
    let met = numbered.filter(|(ordinal, (kind, writer))| *ordinal >= least && counts(kind) && admits(kind, writer));
    met.map(|(ordinal, _)| ordinal).collect()
}

proptest! {
    /// The k-th trigger of a group takes the k-th version of each member that counts, however commits
    /// and looks are mixed.
    #[test]
    fn the_triggers_follow_from_the_histories_alone(
        members in (a_member(0), a_member(1), a_member(2)),
        shape in select(vec![vec![vec![0_usize]], vec![vec![0, 1]], vec![vec![0, 1, 2]], vec![vec![0, 1], vec![1, 2]], vec![vec![0], vec![0]]]),
        commits in proptest::collection::vec(
            (0..ASSETS, select(vec!["APPEND", "APPEND", "OVERWRITE", "COMPACT"]), select(vec!["etl-1", "etl-fix", "someone"])),
            0..30,
        ),
        looks in proptest::collection::vec(0_u8..4, 30),
    ) {
        let members = [members.0, members.1, members.2];
        let groups: Vec<Group> = (0..).zip(&shape).map(|(n, assets): (u8, _)| {
            group(&format!("g{n}"), Advance::All, assets.iter().map(|asset| members[*asset].clone()).collect())
        }).collect();
        let mut world = World::new(groups.clone(), OnBackfill::Hold);
        for ((asset, kind, writer), look) in commits.iter().zip(&looks) {
            world.commit(*asset, kind, writer);
            match look {
                1 => drop(world.claim()),
                2 if world.open.is_some() => world.succeed(),
                0 | 2 => {}
                _ => world.come_to_rest(),
            }
        }
        world.come_to_rest();
        for group in groups {
            let of_member = |member: &Member| {
                let asset = (0..ASSETS).find(|n| asset_id(*n as u128) == member.asset).unwrap();
                let mine = commits.iter().filter(|(of, ..)| *of == asset).map(|(_, kind, writer)| (*kind, *writer));
                (asset as u128, eligible(member, &mine.collect::<Vec<_>>()))
            };
            let lists: Vec<(u128, Vec<u64>)> = group.members.iter().map(of_member).collect();
            let count = lists.iter().map(|(_, versions)| versions.len()).min().unwrap();
            let expected: Vec<Vec<(u128, Option<u64>, u64)>> = (0..count).map(|k| {
                let before = |versions: &[u64]| k.checked_sub(1).map(|before| versions[before]);
                lists.iter().map(|(asset, versions)| (*asset, before(versions), versions[k])).collect()
            }).collect();
            let only = BTreeSet::from([group.name.clone()]);
            let got: Vec<_> = world.triggers.iter().filter(|(names, _)| *names == only).map(|(_, ranges)| ranges.clone()).collect();
            prop_assert_eq!(got, expected, "{}", group.name);
        }
        prop_assert!(world.triggers.iter().all(|(names, _)| names.len() == 1), "groups stay apart");
    }
}
