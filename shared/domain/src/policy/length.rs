//! A length of time, as people write it.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Span};
use serde::{Deserialize, Serialize};

use crate::Invalid;

/// Longest length that a policy may name: ten years.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 366 * 10);

/// A length of time above zero: `90s`, `15m`, `2h`, `1d 12h`, or ISO 8601 (`PT15M`). A day is 24
/// hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(SignedDuration);

impl Length {
    /// A length of whole seconds, above zero and at most ten years.
    pub fn from_seconds(seconds: i64) -> Result<Self, Invalid> {
        let length = SignedDuration::from_secs(seconds);
        if length <= SignedDuration::ZERO || length > LONGEST {
            return Err(wrong(&format!("{seconds}s")));
        }
        Ok(Self(length))
    }

    /// As a duration.
    pub const fn duration(self) -> SignedDuration {
        self.0
    }
}

fn wrong(text: &str) -> Invalid {
    Invalid::new(
        "duration",
        format!("`{text}` is no length of time between 1s and 10 years"),
        "write a number and a unit, as in 90s, 15m, 2h or 1d",
    )
}

impl FromStr for Length {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let span: Span = text.trim().parse().map_err(|_| wrong(text))?;
        if span.get_years() != 0 || span.get_months() != 0 {
            return Err(wrong(text));
        }
        let length = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong(text))?;
        Self::from_seconds(length.as_secs())
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_secs();
        let mut separator = "";
        for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
            if rest >= seconds {
                write!(f, "{separator}{}{unit}", rest / seconds)?;
                separator = " ";
                rest %= seconds;
            }
        }
        Ok(())
    }
}

impl Serialize for Length {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
