//! Windows of event time.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use serde::{Deserialize, Serialize};

use crate::Invalid;

/// The name of an IANA time zone, as in `Asia/Shanghai`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// As the library's type.
    pub const fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    /// A moment as the clocks of the zone show it.
    pub fn at(&self, moment: Timestamp) -> Zoned {
        moment.to_zoned(self.0.clone())
    }
}

impl FromStr for Zone {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new(
                "timeZone",
                format!("`{text}` is no time zone"),
                "use an IANA name, as in Asia/Shanghai or UTC",
            )
        };
        let zone = TimeZone::get(text).map_err(|_| wrong())?;
        zone.iana_name().is_some().then_some(Self(zone)).ok_or_else(wrong)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

impl Serialize for Zone {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    /// Minutes; they divide a day.
    Minutes(i64),
    /// Days, weeks and months follow the calendar of the zone.
    Days(i64),
    Weeks,
    Months,
}

/// One window after the other in the calendar of a time zone.
///
/// Windows shorter than a day are counted from local midnight, in time that really passes; the last
/// one of a day on which the clocks change may be shorter, and a longer day has one more. Windows of several days are counted
/// from 1970-01-01, weeks begin on Monday.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Spelled", into = "Spelled")]
pub struct Every {
    period: Period,
    zone: Zone,
}

/// As it is written: `{"period": "1d", "timeZone": "Asia/Shanghai"}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spelled {
    period: String,
    #[cfg_attr(feature = "schema", schemars(required))]
    time_zone: Option<Zone>,
}

impl TryFrom<Spelled> for Every {
    type Error = Invalid;

    fn try_from(spelled: Spelled) -> Result<Self, Invalid> {
        let zone = spelled.time_zone.ok_or_else(|| {
            Invalid::new(
                "every.timeZone",
                "a window without a time zone has no beginning",
                "name the zone that the business day follows, as in Asia/Shanghai or UTC",
            )
        })?;
        Self::new(&spelled.period, zone)
    }
}

impl From<Every> for Spelled {
    fn from(every: Every) -> Self {
        Self { period: every.period.to_string(), time_zone: Some(every.zone) }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minutes(minutes) if minutes % 60 == 0 => write!(f, "{}h", minutes / 60),
            Self::Minutes(minutes) => write!(f, "{minutes}m"),
            Self::Days(days) => write!(f, "{days}d"),
            Self::Weeks => f.write_str("1w"),
            Self::Months => f.write_str("1mo"),
        }
    }
}

impl Every {
    /// Windows of a period: minutes (`15m`) or hours (`6h`) that divide a day, days (`1d` to `366d`),
    /// one week (`1w`) or one month (`1mo`).
    pub fn new(period: &str, zone: Zone) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::new(
                "every.period",
                format!("`{period}` is no period of windows"),
                "use minutes or hours that divide a day (15m, 6h), days (1d), one week (1w) or one month (1mo)",
            )
        };
        let split = period.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (count, unit) = period.split_at(split);
        let count: i64 = count.parse().map_err(|_| wrong())?;
        let period = match (count, unit) {
            (1.., "m") if count < 1_440 && 1_440 % count == 0 => Period::Minutes(count),
            (1..24, "h") if 24 % count == 0 => Period::Minutes(count * 60),
            (24, "h") => Period::Days(1),
            (1..=366, "d") => Period::Days(count),
            (1, "w") => Period::Weeks,
            (1, "mo") => Period::Months,
            _ => return Err(wrong()),
        };
        Ok(Self { period, zone })
    }

    /// The window that holds a moment.
    pub fn containing(&self, moment: Timestamp) -> Window {
        let date = self.zone.at(moment).date();
        match self.period {
            Period::Minutes(minutes) => {
                let midnight = self.midnight(date);
                let length = SignedDuration::from_mins(minutes);
                let passed = moment.duration_since(midnight).as_secs().div_euclid(length.as_secs());
                let start = midnight + length * i32::try_from(passed).unwrap_or(0);
                let end = (start + length).min(self.midnight(following(date, 1)));
                self.window(start, end)
            }
            Period::Days(days) => {
                let since = date
                    .since((jiff::Unit::Day, Date::constant(1970, 1, 1)))
                    .map_or(0, |span| i64::from(span.get_days()));
                self.of_days(following(date, -since.rem_euclid(days)), days)
            }
            Period::Weeks => self.of_days(following(date, -i64::from(date.weekday().to_monday_zero_offset())), 7),
            Period::Months => {
                let first = date.first_of_month();
                self.window(self.midnight(first), self.midnight(first.saturating_add(1.month())))
            }
        }
    }

    /// The end of the last of these windows that touches another one: a month needs all weeks that
    /// touch it.
    pub fn covering(&self, window: &Window) -> Timestamp {
        self.containing(window.end - SignedDuration::from_nanos(1)).end
    }

    /// The name of the time zone.
    pub const fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Roughly how long one is: for which of two is the longer.
    pub fn rough_length(&self) -> SignedDuration {
        match self.period {
            Period::Minutes(minutes) => SignedDuration::from_mins(minutes),
            Period::Days(days) => SignedDuration::from_hours(24 * days),
            Period::Weeks => SignedDuration::from_hours(24 * 7),
            Period::Months => SignedDuration::from_hours(24 * 30),
        }
    }

    /// The window that begins where another ends.
    pub fn after(&self, end: Timestamp) -> Window {
        self.containing(end)
    }

    fn of_days(&self, first: Date, days: i64) -> Window {
        self.window(self.midnight(first), self.midnight(following(first, days)))
    }

    fn window(&self, start: Timestamp, end: Timestamp) -> Window {
        Window { start, end, business_date: self.zone.at(start).date() }
    }

    /// The first moment of a day; where the clocks skip midnight, the first one after it.
    fn midnight(&self, date: Date) -> Timestamp {
        date.to_zoned(self.zone.0.clone()).map_or(Timestamp::MIN, |zoned| zoned.timestamp())
    }
}

fn following(date: Date, days: i64) -> Date {
    date.saturating_add(days.days())
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.period, self.zone)
    }
}

/// A stretch of event time: start inclusive, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Its first moment.
    pub start: Timestamp,
    /// The first moment after it.
    pub end: Timestamp,
    /// The date on which it begins in its time zone.
    pub business_date: Date,
}
