//! Instants: the times that name actions and tell when they completed.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use lakebell_domain::commit::Millis;

/// Digits of `yyyyMMddHHmmss`.
const SECOND_DIGITS: usize = 14;
/// Digits of `yyyyMMddHHmmssSSS`.
const MILLI_DIGITS: usize = 17;
/// What 17 digits that are no date must be within to be milliseconds since 1970: those of 2001-09-09
/// to 2286, which have 13 digits.
const EPOCH_MILLIS: std::ops::Range<u64> = 1_000_000_000_000..10_000_000_000_000;

/// A time as Hudi writes it: `yyyyMMddHHmmss`, or with milliseconds in 17 digits. It orders as its
/// text does, which is how Hudi compares: an instant in seconds comes before those within that
/// second.
///
/// A few are no dates: the instants of a bootstrap (`00000000000001` and `2`), and 17 digits with
/// milliseconds since 1970 in them. They name an action as well as any other.
///
/// ```
/// use lakebell_formats::hudi::Instant;
///
/// let instant: Instant = "20240418172802262".parse().unwrap();
/// assert_eq!(instant.to_string(), "20240418172802262");
/// assert_eq!(instant.millis_as_utc().unwrap().0, 1_713_461_282_262);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// As a number with milliseconds, `000` where none are written.
    padded: u64,
    has_millis: bool,
}

impl Instant {
    /// The instant as one number that rises with time: its digits, with `000` where no milliseconds
    /// are written. No duration can be computed from it.
    pub const fn as_number(self) -> u64 {
        self.padded
    }

    /// The milliseconds since 1970, where the digits are a date or already such milliseconds.
    ///
    /// A date is read as UTC whatever the table's timeline zone, because a table whose zone is
    /// `LOCAL` does not say which one that was.
    pub fn millis_as_utc(self) -> Option<Millis> {
        if let Some(date) = self.date() {
            let zoned = date.to_zoned(TimeZone::UTC).ok()?;
            return Some(Millis(zoned.timestamp().as_millisecond()));
        }
        let is_epoch = self.has_millis && EPOCH_MILLIS.contains(&self.padded);
        is_epoch.then(|| i64::try_from(self.padded).ok().map(Millis)).flatten()
    }

    fn date(self) -> Option<DateTime> {
        let part = |divisor: u64, modulus: u64| i8::try_from(self.padded / divisor % modulus).ok();
        let year = i16::try_from(self.padded / 10_000_000_000_000).ok().filter(|year| *year > 0)?;
        let millis = i32::try_from(self.padded % 1000).ok()?;
        DateTime::new(
            year,
            part(100_000_000_000, 100)?,
            part(1_000_000_000, 100)?,
            part(10_000_000, 100)?,
            part(100_000, 100)?,
            part(1000, 100)?,
            millis * 1_000_000,
        )
        .ok()
    }
}

/// A text that is no instant: not 14 or 17 decimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an instant has 14 or 17 digits")]
pub struct NotAnInstant;

impl FromStr for Instant {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        let is_instant = matches!(text.len(), SECOND_DIGITS | MILLI_DIGITS) && text.bytes().all(|b| b.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|_| is_instant).ok_or(NotAnInstant)?;
        let has_millis = text.len() == MILLI_DIGITS;
        Ok(Self { padded: if has_millis { number } else { number * 1000 }, has_millis })
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_millis { write!(f, "{:017}", self.padded) } else { write!(f, "{:014}", self.padded / 1000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Instant {
        text.parse().unwrap()
    }

    #[test]
    fn instants_read_as_they_are_written() {
        for text in ["20240418172802262", "20240418172802", "00000000000001", "00001713461282262", "00000000000000000"]
        {
            assert_eq!(instant(text).to_string(), text);
        }
        for text in [
            "",
            "2024041817280",
            "202404181728022",
            "2024041817280226",
            "202404181728022620",
            "2024041817280x",
            "+2024041817280",
            "2024041817280٣",
        ] {
            assert_eq!(text.parse::<Instant>(), Err(NotAnInstant), "{text}");
        }
    }

    #[test]
    fn they_order_as_their_texts() {
        let texts = [
            "00000000000001",
            "00001713461282262",
            "20240418172802",
            "20240418172802000",
            "20240418172802262",
            "20240418172803",
        ];
        for pair in texts.windows(2) {
            assert!(pair[0] < pair[1] && instant(pair[0]) < instant(pair[1]), "{pair:?}");
        }
    }

    #[test]
    fn times_are_read_as_utc_and_epoch_millis_as_they_are() {
        let millis = |text: &str| instant(text).millis_as_utc().map(|millis| millis.0);
        assert_eq!(millis("20240418172802262"), Some(1_713_461_282_262));
        assert_eq!(millis("20240418172802"), Some(1_713_461_282_000));
        assert_eq!(millis("19700101000000000"), Some(0));
        assert_eq!(millis("00001713461282262"), Some(1_713_461_282_262));
        assert_eq!(millis("00000000000001"), None);
        assert_eq!(millis("00000000000000001"), None);
        assert_eq!(millis("20240230000000000"), None, "no such day");
        assert_eq!(millis("20241301000000000"), None, "no such month");
        assert_eq!(millis("20240418172860"), None, "no such second");
        assert_eq!(millis("99999999999999999"), None);
    }
}
