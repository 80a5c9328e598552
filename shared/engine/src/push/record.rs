//! From what writers alone can know to the registers: one transaction on the revision that was read.

use lakebell_domain::event::{CheckFacts, Event, EventKind, Outcome, PushedEvidence, Source, verdict_token};
use lakebell_domain::state::{AssetState, Evidence, PARKED_TOO_LONG, Verdict};
use lakebell_domain::version::{Epoch, Position};

use super::claim::Writers;
use super::version::{self, Bound};
use super::{Push, as_observed};
use crate::observe::{self, EVENT_RETENTION, Hint, Look, Observed};
use crate::ports::Ports;
use crate::ports::items::{Draft, Item, Key, Lost, Write, Written};
use crate::records::{AssetHead, Pointer};
use crate::store::{self, MAX_LOST_RACES, Stored};
use crate::{EngineError, ErrorKind, layout};

/// An asset as it was read.
pub(super) struct Known {
    /// Its head.
    pub(super) head: Stored<AssetHead>,
    /// The targets that depend on it.
    pub(super) pointers: Vec<Pointer>,
    /// Where it stood before a look at storage; absent where none was taken.
    pub(super) before: Option<Position>,
}

/// What a claim comes to for a state: evidence with the version that it is about, or a refusal.
enum Applied {
    Evidence(Box<Evidence>, Option<Position>),
    Refused(String),
}

impl Applied {
    fn of(evidence: Evidence, position: Option<Position>) -> Self {
        Self::Evidence(Box::new(evidence), position)
    }
}

/// Applies a claim and keeps its event.
pub(super) async fn take(push: &Push<'_>, claim: &Writers) -> Result<(Outcome, Observed), EngineError> {
    let mut known_event = None;
    for _ in 0..MAX_LOST_RACES {
        let mut known = load(push.ports, push.asset).await?;
        let applied = if known.head.value.live_state().is_none() {
            Applied::Refused(observe::DEREGISTERED.to_owned())
        } else if matches!(claim, Writers::Watermark(_))
            && let Some(Outcome::Ignored(reason)) = known.head.value.settings.refuses_watermark()
        {
            // What it says about the table may be seen in storage all the same.
            known = look(push, known, Look::Whole).await?;
            Applied::Refused(reason)
        } else {
            let (applied, looked) = Box::pin(evidence(push, claim, known)).await?;
            known = looked;
            applied
        };
        match write(push, claim, applied, &mut known, known_event.as_deref()).await? {
            Attempt::Done(outcome) => {
                let observed = as_observed(push.asset, known, push.pushed.kind, &outcome);
                return Ok((outcome, observed));
            }
            Attempt::Lost(event) => known_event = event,
        }
    }
    Err(store::lost_too_often("push").with("asset", push.asset))
}

/// The evidence, after a look at storage where it cannot be told without one.
async fn evidence(push: &Push<'_>, claim: &Writers, mut known: Known) -> Result<(Applied, Known), EngineError> {
    let applied = match claim {
        Writers::Schema(id, status) => Applied::of(Evidence::SchemaDecided(*id, *status), None),
        Writers::CdcLag => Applied::of(Evidence::CdcLagRecovered, None),
        Writers::Watermark(at) => Applied::of(Evidence::WatermarkPushed(*at), None),
        Writers::Backfill(id, status) => {
            // Which commits are the backfill's own goes by where the asset stands.
            known = look(push, known, Look::Whole).await?;
            Applied::of(Evidence::Backfill(id.clone(), *status), None)
        }
        Writers::Partition(partition, snapshot_id) => {
            // Its writer commits first: a lost notification is no reason to wait for the commit.
            known = look(push, known, Look::Whole).await?;
            let head = &known.head.value;
            let needs = match snapshot_id {
                Some(id) => version::place(push, head, id).await?,
                None => None,
            };
            match snapshot_id {
                Some(id) if needs.is_none() => {
                    let format = head.key.format();
                    Applied::Refused(format!(
                        "snapshot {id} is not among the newest recorded ones of this {format} table"
                    ))
                }
                _ => {
                    let position = needs.map(|ordinal| Position { epoch: head.state.epoch, ordinal });
                    Applied::of(Evidence::PartitionDone(partition.clone(), needs), position)
                }
            }
        }
        Writers::Check(check, began) => {
            let mut bound = version::bind(push, &known, check, *began).await?;
            if let Bound::After(place) = bound {
                known = look(push, known, place).await?;
                bound = version::bind(push, &known, check, *began).await?;
            }
            let epoch = known.head.value.state.epoch;
            match bound {
                Bound::To(mark) => {
                    let position = mark.version.position;
                    Applied::of(Evidence::Check(check.verdict(position), Some(mark)), Some(position))
                }
                Bound::Later(ordinal) => {
                    let position = Position { epoch, ordinal };
                    Applied::of(Evidence::Check(check.verdict(position), None), Some(position))
                }
                Bound::Refused(reason) => Applied::Refused(reason),
                Bound::After(_) => Applied::Refused("its version cannot be told".to_owned()),
            }
        }
    };
    Ok((applied, known))
}

async fn look(push: &Push<'_>, known: Known, look: Look) -> Result<Known, EngineError> {
    let before = known.head.value.state.position();
    let hint = Hint { asset: push.asset, look, source: Source::Push, trace: push.trace.clone() };
    let observed = observe::observe(push.ports, &hint).await?;
    Ok(Known { head: observed.head, pointers: observed.pointers, before: Some(before) })
}

/// What came of one try to write.
enum Attempt {
    Done(Outcome),
    /// Somebody else wrote first; the event that stands there already and may be replaced, if one does.
    Lost(Option<Box<Stored<Event>>>),
}

async fn write(
    push: &Push<'_>,
    claim: &Writers,
    applied: Applied,
    known: &mut Known,
    replaced: Option<&Stored<Event>>,
) -> Result<Attempt, EngineError> {
    let now = push.ports.clock.now();
    let state = &known.head.value.state;
    let place = match &applied {
        Applied::Evidence(evidence, position) if matches!(**evidence, Evidence::PartitionDone(..)) => *position,
        _ => None,
    };
    let (next, outcome, about) = match applied {
        Applied::Refused(reason) => {
            let mut next = state.clone();
            let is_noted = known.head.value.live_state().is_some() && next.refuse(push.pushed.kind, &reason, now);
            (is_noted.then_some(next), Outcome::Ignored(reason), None)
        }
        Applied::Evidence(evidence, position) => {
            let transition = state.apply(&evidence, now);
            let about = match (*evidence, position) {
                (Evidence::Check(verdict, _), Some(position)) => Some((verdict, position)),
                _ => None,
            };
            ((transition.state != *state).then_some(transition.state), transition.outcome, about)
        }
    };
    if outcome == Outcome::Duplicate {
        return Ok(Attempt::Done(outcome));
    }
    let mut event = push.event(outcome.clone(), Some(claim.evidence()));
    if let Some(position) = place {
        event.position = Some(position);
    }
    if let Some((verdict, position)) = &about {
        event.token = verdict_token(verdict);
        event.position = Some(*position);
    }
    let mut actions = vec![Write::put(draft(&event)?, replaced.map(|there| there.rev))];
    if let Some(next) = next {
        actions.extend(evicted(push, state, &next).await?);
        let head = AssetHead { state: next, ..known.head.value.clone() };
        actions.push(Write::Replace(store::draft(layout::head(push.asset), &head)?, known.head.rev));
        let written = store::write(&*push.ports.items, &*push.ports.random, &actions).await?;
        if written == Written::Done {
            known.head = Stored { rev: known.head.rev + 1, value: head };
        }
        return settle(written, outcome);
    }
    settle(store::write(&*push.ports.items, &*push.ports.random, &actions).await?, outcome)
}

/// The event is the first action. One that stands there and was taken makes this a repetition; one
/// that was refused is replaced, because what stood against it may have gone.
fn settle(written: Written, outcome: Outcome) -> Result<Attempt, EngineError> {
    let lost = match written {
        Written::Done => return Ok(Attempt::Done(outcome)),
        Written::Lost(lost) => lost,
    };
    let Some(Lost { existing: Some(item), .. }) = lost.iter().find(|lost| lost.action == 0) else {
        return Ok(Attempt::Lost(None));
    };
    let there: Stored<Event> = store::decode(item)?;
    let is_repetition = !matches!(there.value.outcome, Outcome::Ignored(_)) || there.value.outcome == outcome;
    Ok(if is_repetition { Attempt::Done(Outcome::Duplicate) } else { Attempt::Lost(Some(Box::new(there))) })
}

/// The events of parked verdicts that the next state has no room for.
async fn evicted(push: &Push<'_>, state: &AssetState, next: &AssetState) -> Result<Vec<Write>, EngineError> {
    let kept = next.quality.parked();
    // Storage binds parked verdicts, a push only ever parks one more.
    let gone: Vec<&Verdict> = state.quality.parked().iter().filter(|verdict| !kept.contains(verdict)).collect();
    if gone.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<Key> = gone.iter().map(|verdict| key_of(push, state.epoch, verdict)).collect();
    let items = push.ports.items.get(&keys).await?;
    gone.into_iter()
        .zip(&keys)
        .map(|(verdict, key)| give_up(push, state.epoch, verdict, store::pick(&items, key)))
        .collect()
}

fn key_of(push: &Push<'_>, epoch: Epoch, verdict: &Verdict) -> Key {
    layout::event(push.asset, EventKind::from(verdict.result), epoch, &verdict_token(verdict))
}

fn give_up(push: &Push<'_>, epoch: Epoch, verdict: &Verdict, item: Option<&Item>) -> Result<Write, EngineError> {
    let outcome = Outcome::Ignored(PARKED_TOO_LONG.to_owned());
    if let Some(item) = item {
        let there: Stored<Event> = store::decode(item)?;
        return Ok(Write::Replace(draft(&Event { outcome, ..there.value })?, there.rev));
    }
    let event = Event {
        kind: EventKind::from(verdict.result),
        token: verdict_token(verdict),
        position: Some(Position { epoch, ordinal: verdict.ordinal }),
        extra: std::collections::BTreeMap::new(),
        ..push.event(outcome, Some(PushedEvidence::Check(CheckFacts::from(verdict))))
    };
    Ok(Write::Create(draft(&event)?))
}

/// Keeps an event that moves nothing; `false` where it is kept already.
pub(super) async fn keep(ports: &Ports, event: &Event) -> Result<bool, EngineError> {
    let written = store::write(&*ports.items, &*ports.random, &[Write::Create(draft(event)?)]).await?;
    Ok(written == Written::Done)
}

/// The same for one that was refused, with a note of it in the state; without the note where somebody
/// else wrote the state meanwhile.
pub(super) async fn keep_refused(
    push: &Push<'_>,
    event: &Event,
    reason: &str,
    head: &mut Stored<AssetHead>,
) -> Result<(), EngineError> {
    let mut next = head.value.clone();
    if next.live_state().is_some() && next.state.refuse(event.kind, reason, push.ports.clock.now()) {
        let noted = store::draft(layout::head(push.asset), &next)?;
        let actions = [Write::Create(draft(event)?), Write::Replace(noted, head.rev)];
        if store::write(&*push.ports.items, &*push.ports.random, &actions).await? == Written::Done {
            *head = Stored { rev: head.rev + 1, value: next };
            return Ok(());
        }
    }
    keep(push.ports, event).await.map(|_| ())
}

fn draft(event: &Event) -> Result<Draft, EngineError> {
    // A push is the same push in every epoch; a verdict belongs to the epoch of its version.
    let epoch = event.position.map_or(Epoch::default(), |position| position.epoch);
    Ok(Draft {
        key: layout::event(event.asset, event.kind, epoch, &event.token),
        doc: store::encode(event)?,
        sweep: None,
        history: Some(layout::event_history(event.asset, event.recorded_at, &event.token)),
        expires_at: Some(event.recorded_at + EVENT_RETENTION),
    })
}

/// Head and pointers in one consistent query.
async fn load(ports: &Ports, asset: lakebell_domain::ids::AssetId) -> Result<Known, EngineError> {
    let items = store::all_of(&*ports.items, &layout::head_ring_pointers(asset)).await?;
    let not_found = || EngineError::new(ErrorKind::NotFound, "the asset is not registered").with("asset", asset);
    let head = store::decode(store::pick(&items, &layout::head(asset)).ok_or_else(not_found)?)?;
    let pointers = items.iter().filter(|item| item.key.sk.starts_with("2#"));
    let pointers = pointers.map(|item| store::decode(item).map(|stored| stored.value));
    Ok(Known { head, pointers: pointers.collect::<Result<_, _>>()?, before: None })
}
