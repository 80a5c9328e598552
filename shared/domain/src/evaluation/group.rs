//! The verdict on one group.

use jiff::Timestamp;

use super::{GroupEvaluation, Inputs, MemberEvaluation, member, partition};
use crate::policy::{Every, Window};
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::target::{Advance, Group};

pub(super) fn evaluate(inputs: &Inputs<'_>, group: &Group) -> GroupEvaluation {
    let window = next_window(inputs, group);
    let partition = partition::has_partitions(group).then(|| partition::next(inputs, group)).flatten();
    let step = member::Step { window, partition: partition.as_ref() };
    let members: Vec<MemberEvaluation> =
        group.members.iter().map(|member| member::evaluate(inputs, &group.name, member, step)).collect();
    let (verdict, reason) = verdict(inputs, group, &members);
    GroupEvaluation { group: group.name.clone(), verdict, reason, rule: group.rule(), window, partition, members }
}

pub(super) fn every(group: &Group) -> Option<&Every> {
    // Where members have windows of several lengths, the longest is the group's.
    let of_members = group.members.iter().filter_map(|member| member.conditions.every.as_ref());
    of_members.max_by_key(|every| every.rough_length())
}

/// The window after the last one that was taken; before any was, the one in which the slowest
/// member stood when the group was declared or, later, when it was first seen to have a watermark.
pub(super) fn next_window(inputs: &Inputs<'_>, group: &Group) -> Option<Window> {
    let every = every(group)?;
    if let Some(last) = inputs.cursor.windows.get(&group.name) {
        return Some(every.after(last.end));
    }
    let windowed = group.members.iter().filter(|member| member.conditions.every.is_some());
    let begun = windowed.map(|member| {
        let state = inputs.assets.get(&member.asset)?.live()?;
        let first = state.watermark.as_ref().map(|watermark| watermark.first);
        let declared = member::taken(inputs, &group.name, member, Some(state)).watermark;
        Timestamp::from_millisecond(declared.or(first)?.0).ok()
    });
    // Where not all are needed, one that has no watermark keeps nobody waiting.
    let slowest = match group.advance {
        Advance::All => begun.collect::<Option<Vec<Timestamp>>>()?.into_iter().min()?,
        Advance::Any | Advance::AtLeast(_) => begun.flatten().min()?,
    };
    Some(every.containing(slowest))
}

fn verdict(inputs: &Inputs<'_>, group: &Group, members: &[MemberEvaluation]) -> (Verdict, Option<Reason>) {
    let is_optional = |at: usize| group.members.get(at).is_some_and(|member| member.conditions.optional);
    let required = || members.iter().enumerate().filter(|(at, _)| !is_optional(*at)).map(|(_, member)| member);
    // An optional member may be absent; it must not have failed.
    let mut with_declared = group.members.iter().zip(members);
    if let Some((_, member)) = with_declared.find(|(declared, _)| member::has_failed(inputs, declared)) {
        return (member.verdict, member.reason.clone());
    }
    if group.advance == Advance::All {
        // What blocks outright leads over what merely has not come yet.
        let blocking = required()
            .find(|member| matches!(member.verdict, Verdict::BlockedByRewrite | Verdict::BlockedByUnknownAsset));
        if let Some(member) = blocking {
            return (member.verdict, member.reason.clone());
        }
    }
    if members.is_empty() {
        return (Verdict::Waiting, Some(no_member_yet(group)));
    }
    let advanced = required().filter(|member| member.has_advanced()).count();
    let needed = match group.advance {
        Advance::All => required().count(),
        Advance::Any => 1,
        Advance::AtLeast(k) => k,
    };
    if advanced >= needed && needed > 0 {
        return (Verdict::Ready, None);
    }
    let lacking = || required().filter(|member| !member.has_advanced());
    let leading = lacking().find(|member| member.verdict != Verdict::Waiting).or_else(|| lacking().next());
    match (group.advance, leading) {
        (Advance::AtLeast(k), Some(_)) => {
            let missing: Vec<&str> = lacking().map(|member| member.alias.as_str()).collect();
            let reason = Reason {
                code: ReasonCode::TooFewAdvanced,
                asset: None,
                expected: format!("at least {k} members advanced"),
                actual: format!("{advanced} advanced"),
                since: None,
                unblock: format!("{} more of {}", k.saturating_sub(advanced), missing.join(", ")).into(),
            };
            (Verdict::Waiting, Some(reason))
        }
        (_, Some(member)) => (member.verdict, member.reason.clone()),
        (_, None) => (Verdict::Waiting, Some(no_member_yet(group))),
    }
}

fn no_member_yet(group: &Group) -> Reason {
    let prefixes: Vec<String> = group.prefixes.iter().map(ToString::to_string).collect();
    Reason {
        code: ReasonCode::NoMemberYet,
        asset: None,
        expected: format!("a table of {}", prefixes.join(", ")),
        actual: "none is registered".to_owned(),
        since: None,
        unblock: "nothing to do: its first commit counts once one is registered".into(),
    }
}
