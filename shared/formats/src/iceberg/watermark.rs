//! Watermarks in snapshot summaries: the format has none, sinks write properties.

use jiff::Timestamp;
use lakebell_domain::commit::Millis;

/// A time as sinks write it: ISO 8601 with an offset, seconds optional, or milliseconds since
/// 1970-01-01T00:00:00Z in digits. The smallest long means none, as elsewhere. `None` for what is
/// no time: a watermark that cannot be read is absent, and never a reason to refuse a commit.
pub(super) fn parse(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(millis) = text.parse::<i64>() {
        return (millis != i64::MIN).then_some(Millis(millis));
    }
    // A zone in brackets, as java.time prints zoned times, says nothing beyond the offset.
    let instant = text.split_once('[').map_or(text, |(instant, _)| instant);
    instant.parse::<Timestamp>().ok().map(|time| Millis(time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Option<i64> {
        parse(text).map(|millis| millis.0)
    }

    #[test]
    fn times_are_read_as_sinks_write_them() {
        assert_eq!(millis("2026-01-01T10:00Z"), Some(1_767_261_600_000));
        assert_eq!(millis("2026-01-01T12:30:15.250+02:00"), Some(1_767_263_415_250));
        assert_eq!(millis("2026-01-01T10:00:00Z"), Some(1_767_261_600_000));
        assert_eq!(millis(" 2026-01-01T12:00+02:00 "), Some(1_767_261_600_000));
        assert_eq!(millis("2026-01-01T12:00+02:00[Europe/Berlin]"), Some(1_767_261_600_000));
        assert_eq!(millis("2026-01-01T10:00:00.123456789Z"), Some(1_767_261_600_123));
        assert_eq!(millis("1969-12-31T23:59:59.999Z"), Some(-1));
        assert_eq!(millis("1767261600000"), Some(1_767_261_600_000));
    }

    #[test]
    fn what_is_no_time_is_absent() {
        let none =
            ["", "null", "2026-01-01", "2026-01-01T10:00", "10:00Z", "2026-13-01T10:00Z", "-9223372036854775808"];
        for text in none {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
