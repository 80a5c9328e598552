//! The spelling of keys in S3's own notifications.

use percent_encoding::percent_decode_str;

/// A key as it reads after decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedKey {
    /// The key.
    pub key: String,
    /// It could not be decoded and stands as it came.
    pub is_raw: bool,
}

/// Decodes a key of an S3 notification, which is form-encoded: `+` is a space, then escapes are
/// decoded, once, as UTF-8. A key with a malformed escape, or whose octets are no UTF-8, is kept as
/// it came.
pub fn decode_key(raw: &str) -> DecodedKey {
    let decoded = has_sound_escapes(raw).then(|| {
        let spaced = raw.replace('+', " ");
        percent_decode_str(&spaced).decode_utf8().map(std::borrow::Cow::into_owned).ok()
    });
    match decoded.flatten() {
        Some(key) => DecodedKey { key, is_raw: false },
        None => DecodedKey { key: raw.to_owned(), is_raw: true },
    }
}

/// The decoder itself lets malformed escapes pass.
fn has_sound_escapes(raw: &str) -> bool {
    raw.split('%').skip(1).all(|after| {
        let digits = after.as_bytes();
        digits.len() >= 2 && digits[..2].iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_once() {
        let table = [
            ("a/b=c/d", "a/b=c/d", false),
            ("a+b%2Bc", "a b+c", false),
            ("gr%C3%B6%C3%9Fe", "größe", false),
            ("größe", "größe", false),
            ("pct%2525", "pct%25", false),
            ("%2F%2f", "//", false),
            ("bad%ZZ+x", "bad%ZZ+x", true),
            ("short%2", "short%2", true),
            ("%", "%", true),
            ("latin%F6", "latin%F6", true),
            ("%é", "%é", true),
            ("", "", false),
        ];
        for (raw, key, is_raw) in table {
            assert_eq!(decode_key(raw), DecodedKey { key: key.to_owned(), is_raw }, "{raw}");
        }
    }
}
