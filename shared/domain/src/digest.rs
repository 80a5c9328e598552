//! Digests as texts. Recorded state holds them, so what these functions give never changes.

use sha2::{Digest, Sha256};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes as lower-case hex digits, two for each.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 0xf)]));
    }
    text
}

/// SHA-256 of texts, each with its length, so that no two lists of them are alike.
pub fn of_texts(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_ever() {
        assert_eq!(hex(&[0x00, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn no_two_lists_of_texts_are_alike() {
        let all = [&["ab", "c"][..], &["a", "bc"], &["abc"], &["abc", ""], &[]];
        let digests: std::collections::BTreeSet<_> = all.iter().map(|parts| of_texts(parts)).collect();
        assert_eq!(digests.len(), all.len());
    }
}
