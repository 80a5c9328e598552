//! The places for polls that wait: as many over all running functions as the deployment allows.
//!
//! A function serves one request at a time, so that no counter of its own could tell. A place is an
//! item with the time until which it is taken; nobody has to give one back, and a poll that dies keeps
//! it for seconds. Two places are looked at, chosen at random, so that no key is one for all writers:
//! a poll may be answered at once although some third place was free.

use jiff::Timestamp;

use crate::EngineError;
use crate::layout;
use crate::ports::Ports;
use crate::ports::items::{Key, Write, Written};
use crate::records::SensorPlace;
use crate::store::{self, Stored};

/// A place that was taken, and its revision.
pub(super) struct Place {
    key: Key,
    rev: u64,
}

/// Takes a place until then. `None` where both are taken, or the store fails: the poll does not wait.
pub(super) async fn take(ports: &Ports, places: u8, until: Timestamp) -> Option<Place> {
    try_take(ports, places, until).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "no place for a poll that waits could be taken");
        None
    })
}

async fn try_take(ports: &Ports, places: u8, until: Timestamp) -> Result<Option<Place>, EngineError> {
    if places == 0 {
        return Ok(None);
    }
    let draw = ports.random.bits();
    let of = |number: u128| layout::sensor_place(u8::try_from(number % u128::from(places)).unwrap_or_default());
    let mut keys = vec![of(draw), of((draw % u128::from(places)) + 1 + (draw >> 64) % u128::from(places))];
    keys.dedup();
    let now = ports.clock.now();
    let items = ports.items.get(&keys).await?;
    for key in keys {
        let known = store::pick(&items, &key).map(store::decode::<SensorPlace>).transpose()?;
        if known.as_ref().is_some_and(|known| known.value.until > now) {
            continue;
        }
        let place = Place { rev: known.as_ref().map_or(1, |known| known.rev + 1), key };
        let is_taken = write(ports, &place, known.as_ref(), until).await?;
        return Ok(is_taken.then_some(place));
    }
    Ok(None)
}

/// Frees a place before its time; where that fails it frees itself.
pub(super) async fn give_back(ports: &Ports, place: &Place) {
    let now = ports.clock.now();
    let taken = Stored { rev: place.rev, value: SensorPlace { until: now } };
    if let Err(error) = write(ports, place, Some(&taken), now).await {
        tracing::warn!(%error, "a place for a poll that waits frees itself later");
    }
}

async fn write(
    ports: &Ports,
    place: &Place,
    known: Option<&Stored<SensorPlace>>,
    until: Timestamp,
) -> Result<bool, EngineError> {
    let draft = store::draft(place.key.clone(), &SensorPlace { until })?;
    let action = Write::put(draft, known.map(|known| known.rev));
    Ok(store::write(&*ports.items, &*ports.random, &[action]).await? == Written::Done)
}
