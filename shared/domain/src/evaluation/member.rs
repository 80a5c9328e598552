//! The verdict on one dependency.

use super::{AssetView, Inputs, MemberEvaluation};
use crate::commit::CommitKind;
use crate::ids::GroupName;
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::state::{AssetState, Register, TroubleCode};
use crate::target::{Member, Minimum};
use crate::version::Version;

pub(super) fn evaluate(inputs: &Inputs<'_>, group: &GroupName, member: &Member) -> MemberEvaluation {
    let view = inputs.assets.get(&member.asset).copied().unwrap_or(AssetView { rev: 0, state: None });
    let taken = lower_bound(inputs, group, member, view.state);
    let newest = view.state.and_then(|state| newest_eligible(state, member)).map(|register| register.version.clone());
    let obstacle = obstacle(view.state, member, taken.as_ref());
    let (verdict, reason) = match obstacle {
        Some((verdict, reason)) => (verdict, Some(reason)),
        None => (Verdict::Ready, None),
    };
    MemberEvaluation {
        asset: member.key.clone(),
        alias: member.alias.clone(),
        verdict,
        reason,
        taken,
        newest,
        id: member.asset,
    }
}

/// What counts as consumed: the cursor, or what the first read found where nothing was taken yet.
pub(super) fn lower_bound(
    inputs: &Inputs<'_>,
    group: &GroupName,
    member: &Member,
    state: Option<&AssetState>,
) -> Option<Version> {
    inputs.cursor.taken(group, member.asset).or_else(|| state?.baseline.as_ref()?.version.as_ref()).cloned()
}

/// The newest version of the wanted kinds, if it is not below the minimum.
fn newest_eligible<'a>(state: &'a AssetState, member: &Member) -> Option<&'a Register> {
    newest_of_kinds(state, member).filter(|register| reaches(register, member.minimum.as_ref()))
}

fn newest_of_kinds<'a>(state: &'a AssetState, member: &Member) -> Option<&'a Register> {
    match &member.commit_kinds {
        None => state.data.as_ref(),
        Some(kinds) => {
            kinds.iter().filter_map(|kind| state.kinds.get(kind)).max_by_key(|register| register.version.position)
        }
    }
}

/// By ordinal, in the history that the minimum was declared in or a later one.
fn reaches(register: &Register, minimum: Option<&Minimum>) -> bool {
    let position = register.version.position;
    minimum.is_none_or(|minimum| position.epoch >= minimum.epoch && position.ordinal >= minimum.ordinal)
}

fn obstacle(state: Option<&AssetState>, member: &Member, taken: Option<&Version>) -> Option<(Verdict, Reason)> {
    let reason = |code, expected: String, actual: String, since, unblock: &str| Reason {
        code,
        asset: Some(member.key.clone()),
        expected,
        actual,
        since,
        unblock: unblock.to_owned(),
    };
    let Some(state) = state else {
        let reason = reason(
            ReasonCode::AssetUnknown,
            "a registered asset".to_owned(),
            "it was deregistered".to_owned(),
            None,
            "register the asset again, or take it out of the target",
        );
        return Some((Verdict::BlockedByUnknownAsset, reason));
    };
    if let Some(hold) = &state.hold {
        let (code, unblock) = match hold.confirmed_at {
            Some(_) => (ReasonCode::RewriteHeld, "accept the rewrite of the asset"),
            None => (ReasonCode::RewriteSuspected, "nothing to do yet: a second read decides"),
        };
        let reason =
            reason(code, "the recorded history".to_owned(), hold.evidence.clone(), Some(hold.first_seen), unblock);
        return Some((Verdict::BlockedByRewrite, reason));
    }
    let wanted = wanted(member);
    let newest = newest_of_kinds(state, member);
    let beyond = newest.is_some_and(|register| taken.is_none_or(|taken| taken.position < register.version.position));
    if let (true, Some(newest)) = (beyond, newest) {
        if reaches(newest, member.minimum.as_ref()) {
            return None;
        }
        let minimum = member.minimum.as_ref().map(|minimum| minimum.snapshot_id.as_str()).unwrap_or_default();
        let reason = reason(
            ReasonCode::MinSnapshotNotReached,
            format!("snapshot {minimum} or later"),
            format!("snapshot {}", newest.version.snapshot_id),
            Some(newest.since),
            "a commit at or beyond the minimum",
        );
        return Some((Verdict::BlockedBySnapshot, reason));
    }
    Some(not_advanced(state, member, taken, newest, &wanted))
}

/// Nothing beyond the cursor: because reading fails, because there never was one, or just not yet.
fn not_advanced(
    state: &AssetState,
    member: &Member,
    taken: Option<&Version>,
    newest: Option<&Register>,
    wanted: &str,
) -> (Verdict, Reason) {
    let since = newest.map(|register| register.since);
    let expected = match taken {
        Some(taken) => format!("{wanted} beyond snapshot {}", taken.snapshot_id),
        None => wanted.to_owned(),
    };
    let (verdict, code, actual, since, unblock) = if let Some(trouble) = &state.trouble {
        let (code, unblock) = match trouble.code {
            TroubleCode::Unreadable => {
                (ReasonCode::LocationUnreadable, "give the functions read access to the location")
            }
            TroubleCode::Damaged => (ReasonCode::CommitDamaged, "repair or remove the damaged commit file"),
        };
        (Verdict::BlockedBySnapshot, code, trouble.detail.clone(), Some(trouble.since), unblock)
    } else if let Some(hole) = &state.hole {
        let actual = format!("commit {} is missing although a later one is there", hole.ordinal);
        let unblock = "nothing to do: it is read when it appears, and becomes a recorded gap after the grace time";
        (Verdict::BlockedBySnapshot, ReasonCode::CommitMissing, actual, Some(hole.first_seen), unblock)
    } else if state.baseline.is_none() {
        let actual = "the table was never read".to_owned();
        (Verdict::BlockedBySnapshot, ReasonCode::NeverRead, actual, None, "a notification or a scan of the table")
    } else if let Some(newest) = newest {
        let actual = format!("newest is snapshot {}", newest.version.snapshot_id);
        (Verdict::Waiting, ReasonCode::NoNewVersion, actual, since, "a new commit to the table")
    } else {
        let actual = match &state.table {
            Some(table) => format!("the newest commit, snapshot {}, is of another kind", table.snapshot_id),
            None => "the table has no commit".to_owned(),
        };
        (Verdict::Waiting, ReasonCode::NoVersionYet, actual, None, "a first commit of that kind")
    };
    let reason = Reason { code, asset: Some(member.key.clone()), expected, actual, since, unblock: unblock.to_owned() };
    (verdict, reason)
}

fn wanted(member: &Member) -> String {
    match &member.commit_kinds {
        None => "a commit that changes data".to_owned(),
        Some(kinds) => {
            let names: Vec<&str> = kinds.iter().map(|CommitKind(name)| name.as_str()).collect();
            format!("a commit of kind {}", names.join(" or "))
        }
    }
}
