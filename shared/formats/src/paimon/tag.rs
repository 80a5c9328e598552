//! Tag files: a name for a commit, with a whole copy of its snapshot.

use std::fmt;

use serde_json::Value;

use super::MAX_FILE_BYTES;
use super::snapshot::Snapshot;
use crate::error::FormatError;
use crate::json::Object;

/// When a tag was made, by the clock and in the time zone of whoever made it, which the file does
/// not name. It is no instant and cannot be compared with commit times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagCreateTime {
    /// Year, month, day, hour, minute, second, nanosecond.
    parts: [u32; 7],
}

impl TagCreateTime {
    /// From Java's array form of a local time, `[y, m, d, h, min, s, ns]`, whose last parts are left
    /// out where they are 0. `None` where it is not one.
    fn from_json(value: &Value) -> Option<Self> {
        let given = value.as_array().filter(|given| (3..=7).contains(&given.len()))?;
        let mut parts = [0; 7];
        for (part, number) in parts.iter_mut().zip(given) {
            *part = number.as_u64().and_then(|number| u32::try_from(number).ok())?;
        }
        let limits = [9999, 12, 31, 23, 59, 59, 999_999_999];
        let in_range = parts.iter().zip(limits).all(|(part, limit)| *part <= limit) && parts[1] > 0 && parts[2] > 0;
        in_range.then_some(Self { parts })
    }
}

impl fmt::Display for TagCreateTime {
    /// ISO 8601 without an offset, as in `2026-11-29T19:59:20.045868000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second, nanosecond] = self.parts;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanosecond:09}")
    }
}

/// What a tag file says. A tag may be replaced (it then names another commit) and may outlive the
/// snapshot that it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Tag {
    /// The commit that it names. Compare its fingerprint, not only its id, with a snapshot's.
    pub snapshot: Snapshot,
    /// When it was made; written only together with a retention.
    pub create_time: Option<TagCreateTime>,
    /// How long it is kept, in seconds; absent where it is kept until it is deleted.
    pub time_retained_seconds: Option<f64>,
}

impl Tag {
    /// Reads a tag file of at most [`MAX_FILE_BYTES`]. What it says of the tag itself is only for
    /// people: a value there that is not understood is left out.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let object = Object::parse(bytes, MAX_FILE_BYTES)?;
        Ok(Self {
            snapshot: Snapshot::from_object(&object)?,
            create_time: object.get("tagCreateTime").and_then(TagCreateTime::from_json),
            time_retained_seconds: object.get("tagTimeRetained").and_then(Value::as_f64),
        })
    }

    /// Whether it names that snapshot: the same id and the same fingerprint.
    pub fn names(&self, snapshot: &Snapshot) -> bool {
        self.snapshot.id == snapshot.id && self.snapshot.fingerprint() == snapshot.fingerprint()
    }
}

#[cfg(test)]
mod tests;
