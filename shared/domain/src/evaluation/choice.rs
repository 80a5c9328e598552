//! Which version of an asset a dependency would take.

use std::borrow::Cow;

use super::{AssetView, Inputs, PastCommit};
use crate::cursor::Taken;
use crate::policy::{Coalesce, OnBackfill, Pattern};
use crate::state::{AssetState, Mark, QualityVerdict, SchemaStatus, TagEntry};
use crate::target::{Conditions, Minimum, OnFailedVersion};
use crate::version::Position;

/// A version that may be taken.
#[derive(Debug, Clone)]
pub(super) struct Candidate<'a> {
    /// The version with its facts.
    pub(super) mark: Cow<'a, Mark>,
    /// The tag that led to it.
    pub(super) tag: Option<&'a str>,
}

/// Why the newest version that counts is not taken: the first condition, in this order, that no
/// version beyond the cursor meets.
#[derive(Debug, Clone)]
pub(super) enum Refused<'a> {
    /// No version that counts is beyond the cursor.
    NothingNew,
    /// The newest is below the minimum.
    BelowMinimum(&'a Mark),
    /// All are of a backfill, which the target ignores.
    Backfill,
    /// The newest version with a verdict failed.
    QualityFailed(&'a Mark),
    /// The checks have not passed on it.
    QualityUnknown(&'a Mark),
    /// Its schema is not compatible.
    Schema(&'a Mark, SchemaStatus),
    /// It has no such tag.
    Untagged(&'a Mark),
}

/// The newest version that counts for a dependency, whatever else is asked of it.
pub(super) fn newest_counted<'a>(
    view: AssetView<'a>,
    state: &'a AssetState,
    conditions: &Conditions,
) -> Option<&'a Mark> {
    if conditions.needs_history() {
        let mut past = view.history.iter().rev();
        return past.find(|past| is_current(state, past) && is_admitted(past, conditions)).map(|past| &past.mark);
    }
    match &conditions.commit_kinds {
        Some(kinds) => {
            let registers = kinds.iter().filter_map(|kind| state.kinds.get(kind));
            registers.map(|register| &register.mark).max_by_key(|mark| mark.version.position)
        }
        None if conditions.ignore_empty => state.newest_filled(),
        None => state.data.as_ref().map(|data| &data.mark),
    }
}

/// Not so for what a rewrite has withdrawn: the newest of a table is one that is there.
fn is_current(state: &AssetState, past: &PastCommit) -> bool {
    past.mark.version.position.epoch == state.epoch
}

/// Whether a commit of a history counts, by its kind and by what wrote it.
pub(super) fn is_admitted(past: &PastCommit, conditions: &Conditions) -> bool {
    let names = std::iter::once(past.mark.kind.0.as_str()).chain(past.application.as_deref());
    counts(&past.mark, conditions) && conditions.operations.as_ref().is_none_or(|operations| operations.admits(&names))
}

fn counts(mark: &Mark, conditions: &Conditions) -> bool {
    match &conditions.commit_kinds {
        Some(kinds) => kinds.contains(&mark.kind),
        // A tag pins all that was there when it was made, whatever the tagged commit itself did.
        None if conditions.tag.is_some() => true,
        None => mark.is_data && !(conditions.ignore_empty && mark.is_empty),
    }
}

/// By ordinal, in the history that the minimum was declared in or a later one.
fn reaches(position: Position, minimum: Option<&Minimum>) -> bool {
    minimum.is_none_or(|minimum| position.epoch >= minimum.epoch && position.ordinal >= minimum.ordinal)
}

/// The newest version beyond `beyond` that meets every condition on versions. With `each` it is the
/// oldest, or the one to which a resume joins them.
pub(super) fn choose<'a>(
    inputs: &Inputs<'a>,
    view: AssetView<'a>,
    state: &'a AssetState,
    conditions: &Conditions,
    beyond: Option<Position>,
    joined: Option<Position>,
) -> Result<Candidate<'a>, Refused<'a>> {
    if inputs.target.policies.coalesce == Coalesce::Each {
        return next_of_history(inputs, view, state, conditions, beyond, joined);
    }
    let newest = newest_counted(view, state, conditions);
    let is_plain = conditions.quality.is_none() && !conditions.schema_compatible && conditions.tag.is_none();
    let ignored = is_ignored(inputs, state);
    // The common case: the register is the answer.
    if let (true, Some(newest)) = (is_plain && !ignored(newest_position(newest)), newest)
        && is_beyond(newest, beyond)
        && reaches(newest.version.position, conditions.minimum.as_ref())
    {
        return Ok(Candidate { mark: Cow::Borrowed(newest), tag: None });
    }
    let is_free = |mark: &Mark| counts(mark, conditions) && reaches(mark.version.position, conditions.minimum.as_ref());
    let blocked = conditions.quality.as_ref().and_then(|quality| {
        let (mark, verdict) = state.quality.newest_verdict(&quality.checks)?;
        (verdict == QualityVerdict::Failed && quality.on_failed == OnFailedVersion::Block).then_some(mark)
    });
    let meets = |mark: &Mark| {
        is_free(mark)
            && is_beyond(mark, beyond)
            && !ignored(Some(mark.version.position))
            && quality_of(state, conditions, mark.version.position) == QualityVerdict::Passed
            && schema_of(state, conditions, mark.schema_id) == SchemaStatus::Compatible
    };
    if blocked.is_none() {
        let newest = |known: &mut dyn Iterator<Item = &'a Mark>| {
            let met = known.filter(|mark| meets(mark)).max_by_key(|mark| mark.version.position);
            met.map(|mark| Candidate { mark: Cow::Borrowed(mark), tag: None })
        };
        let past = view.history.iter().filter(|past| is_current(state, past));
        let found = if let Some(pattern) = &conditions.tag {
            let tagged = tags(state, pattern)
                .map(|(name, entry)| Candidate { mark: mark_of_tag(state, entry), tag: Some(name) });
            // Of two tags on one version the later name counts.
            tagged.filter(|candidate| meets(&candidate.mark)).max_by_key(|candidate| candidate.mark.version.position)
        } else if conditions.needs_history() {
            newest(&mut past.filter(|past| is_admitted(past, conditions)).map(|past| &past.mark))
        } else {
            newest(&mut state.marks().chain(past.map(|past| &past.mark)))
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err(refused(state, conditions, newest, beyond, blocked, &ignored))
}

fn refused<'a>(
    state: &'a AssetState,
    conditions: &Conditions,
    newest: Option<&'a Mark>,
    beyond: Option<Position>,
    blocked: Option<&'a Mark>,
    ignored: &impl Fn(Option<Position>) -> bool,
) -> Refused<'a> {
    let Some(newest) = newest.filter(|newest| is_beyond(newest, beyond)) else {
        return blocked.filter(|mark| is_beyond(mark, beyond)).map_or(Refused::NothingNew, Refused::QualityFailed);
    };
    let position = newest.version.position;
    if !reaches(position, conditions.minimum.as_ref()) {
        return Refused::BelowMinimum(newest);
    }
    if ignored(Some(position)) {
        return Refused::Backfill;
    }
    if let Some(failed) = blocked {
        return Refused::QualityFailed(failed);
    }
    if quality_of(state, conditions, position) != QualityVerdict::Passed {
        return match quality_of(state, conditions, position) {
            QualityVerdict::Failed => Refused::QualityFailed(newest),
            _ => Refused::QualityUnknown(newest),
        };
    }
    match schema_of(state, conditions, newest.schema_id) {
        SchemaStatus::Compatible => Refused::Untagged(newest),
        other => Refused::Schema(newest, other),
    }
}

/// The oldest version beyond the cursor that counts: with `each` every version is one step, also one that
/// a rewrite has withdrawn meanwhile, so that the steps do not depend on when it was accepted. What came
/// before a resume is joined to one step.
fn next_of_history<'a>(
    inputs: &Inputs<'a>,
    view: AssetView<'a>,
    state: &'a AssetState,
    conditions: &Conditions,
    beyond: Option<Position>,
    joined: Option<Position>,
) -> Result<Candidate<'a>, Refused<'a>> {
    let joined = joined.filter(|up_to| Some(*up_to) > beyond);
    let joined = joined.and_then(|up_to| steps(inputs, view, state, conditions, beyond).find(|mark| at(mark) == up_to));
    let oldest = || steps(inputs, view, state, conditions, beyond).next();
    if let Some(mark) = joined.or_else(oldest) {
        return Ok(Candidate { mark: Cow::Borrowed(mark), tag: None });
    }
    let mut counted = view.history.iter().filter(|past| is_beyond(&past.mark, beyond) && is_admitted(past, conditions));
    match counted.next_back() {
        None => Err(Refused::NothingNew),
        Some(past) if !reaches(at(&past.mark), conditions.minimum.as_ref()) => Err(Refused::BelowMinimum(&past.mark)),
        Some(_) => Err(Refused::Backfill),
    }
}

/// With `each` the newest version beyond the cursor that is a step. Where no commit has to be looked at
/// for that, the registers know it, however many there are.
pub(super) fn newest_step<'a>(
    inputs: &Inputs<'a>,
    view: AssetView<'a>,
    state: &'a AssetState,
    conditions: &Conditions,
    beyond: Option<Position>,
) -> Option<Position> {
    let known = state.marks().filter(|mark| !conditions.needs_history() && counts(mark, conditions));
    let known = known.filter(|mark| is_beyond(mark, beyond) && is_free(inputs, state, conditions, at(mark)));
    steps(inputs, view, state, conditions, beyond).chain(known).map(at).max()
}

/// The versions beyond the cursor that are one step each, oldest first.
fn steps<'a>(
    inputs: &Inputs<'a>,
    view: AssetView<'a>,
    state: &'a AssetState,
    conditions: &Conditions,
    beyond: Option<Position>,
) -> impl Iterator<Item = &'a Mark> {
    let counted =
        view.history.iter().filter(move |past| is_beyond(&past.mark, beyond) && is_admitted(past, conditions));
    counted.map(|past| &past.mark).filter(move |mark| is_free(inputs, state, conditions, at(mark)))
}

/// Neither below a minimum nor of a backfill that is ignored.
fn is_free(inputs: &Inputs<'_>, state: &AssetState, conditions: &Conditions, position: Position) -> bool {
    reaches(position, conditions.minimum.as_ref()) && !is_ignored(inputs, state)(Some(position))
}

const fn at(mark: &Mark) -> Position {
    mark.version.position
}

fn newest_position(mark: Option<&Mark>) -> Option<Position> {
    mark.map(|mark| mark.version.position)
}

/// Beyond what was taken.
fn is_beyond(mark: &Mark, taken: Option<Position>) -> bool {
    taken.is_none_or(|taken| taken < mark.version.position)
}

/// Whether a version is of a backfill that the target ignores.
fn is_ignored<'a>(inputs: &Inputs<'_>, state: &'a AssetState) -> impl Fn(Option<Position>) -> bool + 'a {
    let ignores = inputs.target.policies.on_backfill == OnBackfill::Ignore;
    move |position| {
        ignores && position.is_some_and(|position| state.backfills.values().any(|backfill| backfill.covers(position)))
    }
}

fn quality_of(state: &AssetState, conditions: &Conditions, position: Position) -> QualityVerdict {
    match &conditions.quality {
        Some(quality) => state.quality.verdict(position, &quality.checks),
        None => QualityVerdict::Passed,
    }
}

fn schema_of(state: &AssetState, conditions: &Conditions, schema_id: Option<i64>) -> SchemaStatus {
    if !conditions.schema_compatible {
        return SchemaStatus::Compatible;
    }
    schema_id.map_or(SchemaStatus::Unknown, |id| state.schema.status_of(id))
}

/// The tags of a form that name a commit of the current history that is visible.
fn tags<'a>(state: &'a AssetState, pattern: &Pattern) -> impl Iterator<Item = (&'a String, &'a TagEntry)> {
    state.tags.iter().filter(move |(name, entry)| {
        entry.position.epoch == state.epoch && pattern.matches(name) && entry.position <= state.position()
    })
}

/// The tagged version with the facts that are known of it.
fn mark_of_tag<'a>(state: &'a AssetState, entry: &TagEntry) -> Cow<'a, Mark> {
    let same = |mark: &&Mark| mark.version.position == entry.position && mark.version.fingerprint == entry.fingerprint;
    match state.marks().find(same) {
        Some(mark) => Cow::Borrowed(mark),
        None => Cow::Owned(entry.mark()),
    }
}

/// Whether a version is of a later history than what was taken.
pub(super) fn opens_epoch(candidate: &Candidate<'_>, taken: &Taken) -> bool {
    taken.position().is_some_and(|taken| taken.epoch < candidate.mark.version.position.epoch)
}

/// What a claim takes with a version: the version, and every register as it stands.
pub(super) fn reach(state: &AssetState, candidate: Option<&Candidate<'_>>, taken: &Taken) -> Taken {
    // A version that was taken before is no way back.
    let beyond = candidate.filter(|candidate| Some(candidate.mark.version.position) >= taken.position());
    // Field by field: a version and a tag that are replaced below need no copy.
    let mut reach = Taken {
        version: if beyond.is_some() { None } else { taken.version.clone() },
        tag: if beyond.is_some() { None } else { taken.tag.clone() },
        ..*taken
    };
    if let Some(candidate) = beyond {
        // Another history has a watermark of its own.
        if opens_epoch(candidate, taken) {
            reach.watermark = None;
        }
        reach.version = Some(candidate.mark.version.clone());
        // What had been counted up to a tagged version may not be known any more.
        if let Cow::Borrowed(mark) = candidate.mark {
            reach.totals = mark.totals;
        }
        reach.tag = candidate.tag.map(str::to_owned);
        reach.schema_id = candidate.mark.schema_id.or(reach.schema_id);
    }
    reach.watermark = state.watermark.as_ref().map(|watermark| watermark.at).max(reach.watermark);
    reach.backfill = state.finished_backfill().max(reach.backfill);
    reach.cdc = state.cdc_lag_recovered_at.max(reach.cdc);
    reach
}
