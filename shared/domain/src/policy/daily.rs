//! Times of day: gates and deadlines.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, Time};
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use super::Length;
use super::window::Zone;
use crate::Invalid;

/// A time of day, as in `06:30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(Time);

impl FromStr for TimeOfDay {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.parse().map(Self).map_err(|_| {
            Invalid::new("time", format!("`{text}` is no time of day"), "write hours and minutes, as in 06:30")
        })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime(if self.0.second() == 0 { "%H:%M" } else { "%H:%M:%S" }))
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The moment at which the clocks of a zone show a time on a date; one that they skip is as
/// much later as they skip.
fn moment(date: Date, time: TimeOfDay, zone: &Zone) -> Timestamp {
    let ambiguous = zone.time_zone().to_ambiguous_timestamp(date.to_datetime(time.0));
    let is_skipped = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    let Ok(shown) = ambiguous.compatible() else { return Timestamp::MIN };
    // A time that is skipped is shown as much later as the gap is long.
    let gap = || zone.time_zone().preceding(shown + SignedDuration::from_secs(1)).next();
    is_skipped.then(gap).flatten().map_or(shown, |gap| gap.timestamp())
}

/// The latest moment at or before `now` at which the clocks show a time.
fn latest(time: TimeOfDay, zone: &Zone, now: Timestamp) -> (Date, Timestamp) {
    let today = zone.at(now).date();
    let at = moment(today, time, zone);
    if at <= now {
        return (today, at);
    }
    let yesterday = today.saturating_sub(1.day());
    (yesterday, moment(yesterday, time, zone))
}

/// Not before a time of day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NotBefore {
    /// The time.
    pub time: TimeOfDay,
    /// Of which clocks.
    pub time_zone: Zone,
}

impl NotBefore {
    /// When it opens; `None` while it is open.
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        let opens = moment(self.time_zone.at(now).date(), self.time, &self.time_zone);
        (now < opens).then_some(opens)
    }
}

/// A part of the day; one whose end is before its beginning goes over midnight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunWindow {
    /// Its beginning.
    pub from: TimeOfDay,
    /// Its end, exclusive.
    pub to: TimeOfDay,
    /// Of which clocks.
    pub time_zone: Zone,
}

impl RunWindow {
    /// Refuses one that never opens.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.from == self.to {
            return Err(Invalid::new(
                "runWindow",
                format!("it goes from {} to {} and never opens", self.from, self.to),
                "give two different times, or leave it out",
            ));
        }
        Ok(())
    }

    /// When it opens next; `None` while it is open.
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        let (date, opened) = latest(self.from, &self.time_zone, now);
        let end_date = if self.to > self.from { date } else { date.saturating_add(1.day()) };
        let closes = moment(end_date, self.to, &self.time_zone);
        let is_open = opened <= now && now < closes;
        (!is_open).then(|| moment(date.saturating_add(1.day()), self.from, &self.time_zone))
    }
}

/// By when a target should have started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Spelled", into = "Spelled")]
pub enum Deadline {
    /// Each day by this time.
    By(TimeOfDay, Zone),
    /// This long after the first member has advanced, or after the window has ended.
    Within(Length),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spelled {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<TimeOfDay>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_zone: Option<Zone>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<Length>,
}

impl TryFrom<Spelled> for Deadline {
    type Error = Invalid;

    fn try_from(spelled: Spelled) -> Result<Self, Invalid> {
        match (spelled.by, spelled.time_zone, spelled.within) {
            (Some(time), Some(zone), None) => Ok(Self::By(time, zone)),
            (None, None, Some(length)) => Ok(Self::Within(length)),
            (Some(_), None, None) => Err(Invalid::new(
                "deadline.timeZone",
                "a time of day needs a time zone",
                "name it, as in Asia/Shanghai or UTC",
            )),
            _ => Err(Invalid::new(
                "deadline",
                "it names neither or both of `by` and `within`",
                "give `by` with `timeZone`, or `within`",
            )),
        }
    }
}

impl From<Deadline> for Spelled {
    fn from(deadline: Deadline) -> Self {
        match deadline {
            Deadline::By(time, zone) => Self { by: Some(time), time_zone: Some(zone), within: None },
            Deadline::Within(length) => Self { by: None, time_zone: None, within: Some(length) },
        }
    }
}

/// The days of a deadline by a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    /// The deadline before the latest.
    pub(crate) before: Timestamp,
    /// The latest that has passed.
    pub(crate) latest: Timestamp,
    /// The next.
    pub(crate) next: Timestamp,
}

/// The deadlines around a moment.
pub(crate) fn days_around(time: TimeOfDay, zone: &Zone, now: Timestamp) -> Days {
    let (date, at) = latest(time, zone, now);
    Days {
        before: moment(date.saturating_sub(1.day()), time, zone),
        latest: at,
        next: moment(date.saturating_add(1.day()), time, zone),
    }
}
