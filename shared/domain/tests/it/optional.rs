//! Members that may be absent and must not have failed.

use std::collections::BTreeMap;

use lakebell_domain::commit::CommitKind;
use lakebell_domain::cursor::TargetCursor;
use lakebell_domain::evaluation::{AssetView, Inputs};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::state::{AssetState, CheckResult, Evidence, Mark, Severity, Verdict as Checked};
use lakebell_domain::target::{Advance, Conditions, Member, OnFailedVersion, QualityCondition};
use lakebell_domain::version::Ordinal;

use crate::support::{Judged, asset_id, at, commit, evidence, group, judge, mark, member, state_of, target};

/// The optional table: each of its commits, by kind, was checked.
fn checked(commits: &[(&str, CheckResult)]) -> AssetState {
    let state = state_of((1..).zip(commits).map(|(ordinal, (kind, _))| evidence(commit(ordinal, kind))));
    (1..).zip(commits).fold(state, |state, (ordinal, (kind, result))| {
        let verdict = Checked {
            ordinal: Ordinal(ordinal),
            fingerprint: None,
            check: "rows".to_owned(),
            result: *result,
            severity: Severity::Error,
            run: 1,
        };
        let kind = CommitKind((*kind).to_owned());
        let of = Mark { is_data: kind.0 != "COMPACT", kind, ..mark(0, ordinal) };
        state.apply(&Evidence::Check(verdict, Some(of)), at(60)).state
    })
}

/// A group of one table that has advanced and one that may be absent.
fn with_optional(quality: Option<QualityCondition>, optional: &AssetState) -> Judged {
    let conditions = Conditions { optional: true, quality, ..Conditions::default() };
    let members = vec![member(0), Member { conditions, ..member(1) }];
    let advanced = state_of([evidence(commit(1, "APPEND"))]);
    judge(&Inputs {
        target: &target(vec![group("g", Advance::All, members)]),
        cursor: &TargetCursor::default(),
        assets: &BTreeMap::from([
            (asset_id(0), AssetView::of(1, Some(&advanced))),
            (asset_id(1), AssetView::of(1, Some(optional))),
        ]),
        open: None,
        failed: None,
        switched_off: None,
        now: at(100),
    })
}

const fn passed(on_failed: OnFailedVersion) -> QualityCondition {
    QualityCondition { checks: Vec::new(), on_failed }
}

#[test]
fn a_failure_blocks_the_group_until_a_newer_version_has_passed() {
    use CheckResult::{Failed, Passed};
    let failed = checked(&[("APPEND", Failed)]);
    for quality in [None, Some(passed(OnFailedVersion::Block))] {
        let judged = with_optional(quality.clone(), &failed);
        assert_eq!(judged.verdict, Verdict::BlockedByQuality);
        assert_eq!(judged.reason.as_ref().map(|reason| reason.code), Some(ReasonCode::QualityFailed));
        let later = checked(&[("APPEND", Failed), ("APPEND", Passed)]);
        assert_eq!(with_optional(quality, &later).verdict, Verdict::Ready);
    }
    assert_eq!(with_optional(Some(passed(OnFailedVersion::PassOver)), &failed).verdict, Verdict::Ready);
}

#[test]
fn an_older_failed_version_does_not_block_where_the_newest_verdict_is_on_a_compaction_that_passed() {
    use CheckResult::{Failed, Passed};
    let compacted = checked(&[("APPEND", Failed), ("COMPACT", Passed)]);
    let judged = with_optional(Some(passed(OnFailedVersion::Block)), &compacted);
    // The member itself has nothing to take: what passed changed no data, and what changed data failed.
    let optional = &judged.groups[0].members[1];
    assert_eq!(optional.reason.as_ref().map(|reason| reason.code), Some(ReasonCode::QualityFailed));
    assert_eq!(judged.verdict, Verdict::Ready, "it has not failed, so that it may be absent");
}

#[test]
fn a_table_that_was_never_written_is_merely_absent() {
    for quality in [None, Some(passed(OnFailedVersion::Block)), Some(passed(OnFailedVersion::PassOver))] {
        assert_eq!(with_optional(quality, &AssetState::default()).verdict, Verdict::Ready);
    }
}
