//! What time has to do with a verdict: gates, times of day, deadlines, and when to look again.

use jiff::{SignedDuration, Timestamp};

use super::{Evaluation, GroupEvaluation, Inputs};
use crate::cursor::TargetCursor;
use crate::policy::{Deadline, OnBackfill, OnDeadline};
use crate::reason::{Reason, ReasonCode, Verdict};
use crate::state::{AssetState, Backfill};
use crate::trigger::StartReason;

/// How long a backfill that never says that it has ended holds what depends on it.
pub const BACKFILL_HOLDS_FOR: SignedDuration = SignedDuration::from_hours(24);

/// What time has to say.
pub(super) struct Timing {
    /// A gate that is closed for what is ready.
    pub(super) gate: Option<Gate>,
    /// A start with what is there that is due, and the time that it stands for.
    pub(super) forced: Option<(StartReason, Timestamp)>,
    /// The deadline that has passed.
    pub(super) timed_out: Option<Timestamp>,
    /// When time alone can change the verdict.
    pub(super) due_at: Option<Timestamp>,
}

/// A closed gate.
pub(super) struct Gate {
    pub(super) reason: Reason,
    opens_at: Timestamp,
}

/// The running backfill that holds an asset's dependents.
pub(super) fn backfill_that_holds(state: &AssetState, now: Timestamp) -> Option<(&str, &Backfill)> {
    let running = state.backfills.iter().filter(|(_, backfill)| backfill.is_running());
    let mut holding = running.filter(|(_, backfill)| now.duration_since(backfill.since) < BACKFILL_HOLDS_FOR);
    holding.next().map(|(id, backfill)| (id.as_str(), backfill))
}

pub(super) fn timing(inputs: &Inputs<'_>, groups: &[GroupEvaluation]) -> Timing {
    let policies = &inputs.target.policies;
    let is_ready = groups.iter().any(|group| group.verdict == Verdict::Ready);
    let gate = is_ready.then(|| gate(inputs, groups)).flatten();
    let mut dues: Vec<Timestamp> = gate.iter().map(|gate| gate.opens_at).collect();
    let mut forced = None;
    if let Some(or_at) = &policies.or_at {
        let since = inputs.cursor.claimed_at.max(inputs.cursor.since);
        let next = since.and_then(|since| or_at.next_after(since));
        match next {
            Some(tick) if tick <= inputs.now => {
                forced = Some((StartReason::OrAt, tick));
                dues.extend(or_at.next_after(inputs.now));
            }
            other => dues.extend(other),
        }
    }
    let deadline = policies.deadline.as_ref().and_then(|deadline| passed(inputs, groups, deadline, &mut dues));
    if let (Some(at), OnDeadline::Fire, None) = (deadline, policies.on_deadline, &forced) {
        forced = Some((StartReason::Deadline, at));
    }
    if policies.on_backfill == OnBackfill::Hold {
        let views = inputs.assets.values().filter_map(super::AssetView::live);
        let holding = views.filter_map(|state| backfill_that_holds(state, inputs.now));
        dues.extend(holding.map(|(_, backfill)| backfill.since + BACKFILL_HOLDS_FOR));
    }
    dues.extend(lags_run_out(inputs, groups));
    Timing { gate, forced, timed_out: deadline, due_at: dues.into_iter().min() }
}

/// When watermarks that are still near enough to now no longer are.
fn lags_run_out<'a>(inputs: &'a Inputs<'_>, groups: &'a [GroupEvaluation]) -> impl Iterator<Item = Timestamp> + 'a {
    let with_group = groups.iter().zip(&inputs.target.groups);
    let members = with_group.flat_map(|(evaluated, group)| evaluated.members.iter().zip(&group.members));
    members.filter(|(evaluated, _)| evaluated.reach.is_some()).filter_map(|(_, member)| {
        let lag = member.conditions.max_lag?;
        let at = inputs.assets.get(&member.asset)?.live()?.watermark.as_ref()?.at;
        let last = Timestamp::from_millisecond(at.0).ok()?.checked_add(lag.duration()).ok()?;
        last.checked_add(SignedDuration::from_millis(1)).ok()
    })
}

/// The deadline that has passed without a claim; the next one goes to `dues`.
fn passed(
    inputs: &Inputs<'_>,
    groups: &[GroupEvaluation],
    deadline: &Deadline,
    dues: &mut Vec<Timestamp>,
) -> Option<Timestamp> {
    match deadline {
        Deadline::By(time, zone) => {
            let days = crate::policy::days_around(*time, zone, inputs.now);
            dues.push(days.next);
            let since = inputs.cursor.since?;
            // A claim that came too late for the deadline before is none for this one.
            let told = inputs.cursor.alarmed;
            let was_late = told == Some(days.before) || told == Some(days.latest);
            let was_claimed = inputs
                .cursor
                .claimed_at
                .is_some_and(|claimed| claimed >= days.latest || (claimed > days.before && !was_late));
            (since < days.latest && !was_claimed).then_some(days.latest)
        }
        Deadline::Within(length) => {
            let ends = groups.iter().filter_map(|group| group.window).map(|window| window.end);
            let begun = ends.chain(inputs.cursor.advanced_at).min()?;
            let at = begun.checked_add(length.duration()).ok()?;
            if at > inputs.now {
                dues.push(at);
                return None;
            }
            Some(at)
        }
    }
}

/// The gate that opens last, of those that are closed.
fn gate(inputs: &Inputs<'_>, groups: &[GroupEvaluation]) -> Option<Gate> {
    let policies = &inputs.target.policies;
    let now = inputs.now;
    let mut gates = Vec::new();
    let mut close = |code, expected: String, actual: String, since, opens_at: Timestamp| {
        let unblock = format!("nothing to do: it opens at {opens_at}");
        gates.push(Gate {
            reason: Reason { code, asset: None, expected, actual, since, unblock: unblock.into() },
            opens_at,
        });
    };
    if let Some(quiet) = policies.quiet_period {
        let ready = groups.iter().filter(|group| group.verdict == Verdict::Ready);
        let states = ready.flat_map(|group| &group.members).filter_map(|member| inputs.assets.get(&member.id)?.live());
        let last = states.filter_map(|state| state.data.as_ref()).map(|data| data.mark.since).max();
        if let Some(last) = last.filter(|last| now < *last + quiet.duration()) {
            let (expected, actual) = (format!("no commit for {quiet}"), format!("the last one came at {last}"));
            close(ReasonCode::QuietPeriod, expected, actual, Some(last), last + quiet.duration());
        }
    }
    if let (Some(interval), Some(last)) = (policies.min_interval, inputs.cursor.claimed_at)
        && now < last + interval.duration()
    {
        let (expected, actual) = (format!("{interval} since the last trigger"), format!("it was claimed at {last}"));
        close(ReasonCode::MinInterval, expected, actual, Some(last), last + interval.duration());
    }
    if let Some(not_before) = &policies.not_before
        && let Some(opens) = not_before.opens_at(now)
    {
        let expected = format!("{} in {} or later", not_before.time, not_before.time_zone);
        close(
            ReasonCode::NotBefore,
            expected,
            format!("it is {}", not_before.time_zone.at(now).strftime("%H:%M")),
            None,
            opens,
        );
    }
    if let Some(window) = &policies.run_window
        && let Some(opens) = window.opens_at(now)
    {
        let expected = format!("from {} to {} in {}", window.from, window.to, window.time_zone);
        close(
            ReasonCode::OutsideRunWindow,
            expected,
            format!("it is {}", window.time_zone.at(now).strftime("%H:%M")),
            None,
            opens,
        );
    }
    gates.into_iter().max_by_key(|gate| gate.opens_at)
}

/// The cursor as it should be kept where nothing is claimed; `None` where it is so already.
pub(super) fn noted(inputs: &Inputs<'_>, evaluation: &Evaluation) -> Option<TargetCursor> {
    let cursor = inputs.cursor;
    let has_advanced =
        || evaluation.groups.iter().flat_map(|group| &group.members).any(|member| member.reach.is_some());
    let counts_from_advance = matches!(inputs.target.policies.deadline, Some(Deadline::Within(_)));
    let advanced_at = match cursor.advanced_at {
        None if counts_from_advance && has_advanced() => Some(inputs.now),
        known => known,
    };
    let mut due_at = evaluation.due_at;
    if let (Some(Deadline::Within(length)), Some(at), None) =
        (&inputs.target.policies.deadline, advanced_at, cursor.advanced_at)
    {
        let at = at.checked_add(length.duration()).ok();
        due_at = due_at.into_iter().chain(at).min();
    }
    // A timer that goes off too early costs one look; each write costs one too.
    let due_at = match (cursor.due_at, due_at) {
        (Some(known), Some(wanted)) if known > inputs.now && known <= wanted => Some(known),
        (Some(known), None) if known > inputs.now => Some(known),
        (_, wanted) => wanted,
    };
    let alarmed = evaluation.timed_out.or(cursor.alarmed);
    let is_same = advanced_at == cursor.advanced_at && due_at == cursor.due_at && alarmed == cursor.alarmed;
    (!is_same).then(|| TargetCursor { advanced_at, alarmed, due_at, ..cursor.clone() })
}
