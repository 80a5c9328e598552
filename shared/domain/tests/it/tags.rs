//! Tags on one version that come, go and come back: what is news and what is none.

use std::collections::BTreeMap;

use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::{AssetState, Evidence};
use lakebell_domain::target::{Advance, Conditions, Group, Member, Target};

use crate::support::{Judged, asset_id, at, commit, evidence, group, judge, member, state_of, tag, target};

struct World {
    target: Target,
    cursor: TargetCursor,
    state: AssetState,
}

impl World {
    /// One table with two commits.
    fn new(groups: Vec<Group>) -> Self {
        let state = state_of([evidence(commit(1, "APPEND")), evidence(commit(2, "APPEND"))]);
        Self { target: target(groups), cursor: TargetCursor::default(), state }
    }

    fn tag(&mut self, name: &str, ordinal: u64) {
        let created = Evidence::TagCreated(name.to_owned(), tag(0, ordinal));
        self.state = self.state.apply(&created, at(10)).state;
    }

    fn untag(&mut self, name: &str) {
        self.state = self.state.apply(&Evidence::TagDeleted(name.to_owned()), at(10)).state;
    }

    fn judge(&self) -> Judged {
        judge(&Inputs {
            target: &self.target,
            cursor: &self.cursor,
            assets: &BTreeMap::from([(asset_id(0), AssetView::of(1, Some(&self.state)))]),
            open: None,
            failed: None,
            switched_off: None,
            now: at(20),
        })
    }

    /// The tag and the version by which it is taken.
    fn claim(&mut self) -> Option<(Option<String>, u64)> {
        let plan = self.judge().plan?;
        self.cursor = TargetCursor { open: None, ..plan.cursor };
        let range = &plan.claim.ranges[0];
        Some((range.tag.clone(), range.bounds.to.as_ref().unwrap().position.ordinal.0))
    }
}

/// Any tag, whether or not there is a new commit.
fn tagged() -> Member {
    let conditions = Conditions { snapshot_required: false, tag: Some("*".parse().unwrap()), ..Conditions::default() };
    Member { conditions, ..member(0) }
}

#[test]
fn a_tag_that_is_moved_away_and_back_starts_nothing_again() {
    let mut world = World::new(vec![group("g", Advance::All, vec![tagged()])]);
    world.tag("day-1", 2);
    world.tag("draft", 2);
    assert_eq!(world.claim(), Some((Some("draft".to_owned()), 2)), "the later name counts");
    world.tag("draft", 1);
    let left = world.judge();
    assert_eq!((left.verdict, left.reason.as_ref().unwrap().code), (Verdict::Waiting, ReasonCode::RegisterNotMoved));
    world.tag("draft", 2);
    assert_eq!(world.claim(), None, "the same tag on the same version was taken");
    world.tag("final", 2);
    assert_eq!(world.claim(), Some((Some("final".to_owned()), 2)));
    world.untag("final");
    world.tag("final", 2);
    assert_eq!(world.claim(), None);
}

#[test]
fn what_another_alternative_took_has_no_tag_yet() {
    let plain = Member { ..member(0) };
    let mut world = World::new(vec![group("g", Advance::All, vec![tagged()]), group("h", Advance::All, vec![plain])]);
    world.tag("draft", 1);
    assert_eq!(world.claim().map(|(_, to)| to), Some(2), "both groups");
    world.state = world.state.apply(&evidence(commit(3, "APPEND")), at(15)).state;
    assert_eq!(world.claim(), Some((None, 3)), "`h` alone");
    world.tag("day-3", 3);
    assert_eq!(world.claim(), Some((Some("day-3".to_owned()), 3)), "whatever the tag of the version before was called");
}
