//! One text of a large JSON answer, found while the answer comes.
//!
//! A catalog answers with the table's whole metadata, of which only the place of its file is needed.
//! So the answer is looked through piece by piece, nothing of it is kept, and the rest is not read
//! once the text was found.

/// Longest name or text that is kept.
const MAX_TEXT: usize = 4_096;

/// What the pieces so far came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// Not there yet.
    NotYet,
    /// The text.
    Text(String),
    /// The member is there and holds no text, or one that is too long.
    NoText,
    /// The answer is no JSON object.
    NoObject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// The brace that opens the object.
    Object,
    /// The name of a member, or the end.
    Name,
    /// The colon after a name.
    Colon,
    /// A value, of the wanted member or of another.
    Value { is_wanted: bool },
    /// The comma after a value, or the end.
    Comma,
}

/// Looks for a member of the outermost object whose value is a text.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    wanted: &'a str,
    awaits: Awaits,
    /// How many objects and arrays inside the outermost one are open.
    depth: u64,
    in_text: bool,
    is_escaped: bool,
    /// The name or text that is being read, with its quotes; empty where it is of no interest.
    kept: Vec<u8>,
    is_too_long: bool,
}

impl<'a> Finder<'a> {
    pub(super) fn new(wanted: &'a str) -> Self {
        let (kept, awaits) = (Vec::new(), Awaits::Object);
        Self { wanted, awaits, depth: 0, in_text: false, is_escaped: false, kept, is_too_long: false }
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> Found {
        for byte in piece {
            let found = if self.in_text { self.in_text(*byte) } else { self.outside(*byte) };
            if found != Found::NotYet {
                return found;
            }
        }
        Found::NotYet
    }

    fn in_text(&mut self, byte: u8) -> Found {
        if !self.kept.is_empty() {
            if self.kept.len() < MAX_TEXT {
                self.kept.push(byte);
            } else {
                self.is_too_long = true;
            }
        }
        if self.is_escaped {
            self.is_escaped = false;
        } else if byte == b'\\' {
            self.is_escaped = true;
        } else if byte == b'"' {
            self.in_text = false;
            return self.end_of_text();
        }
        Found::NotYet
    }

    fn end_of_text(&mut self) -> Found {
        if self.depth > 0 {
            return Found::NotYet;
        }
        let text = if self.is_too_long { None } else { serde_json::from_slice::<String>(&self.kept).ok() };
        self.kept.clear();
        self.is_too_long = false;
        match self.awaits {
            Awaits::Name => {
                let is_wanted = text.as_deref() == Some(self.wanted);
                self.awaits = Awaits::Colon;
                if is_wanted {
                    self.awaits = Awaits::Value { is_wanted };
                }
                Found::NotYet
            }
            Awaits::Value { is_wanted: true } => text.map_or(Found::NoText, Found::Text),
            _ => {
                self.awaits = Awaits::Comma;
                Found::NotYet
            }
        }
    }

    fn outside(&mut self, byte: u8) -> Found {
        if byte.is_ascii_whitespace() {
            return Found::NotYet;
        }
        if self.depth > 0 {
            match byte {
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                b'"' => self.in_text = true,
                _ => {}
            }
            if self.depth == 0 {
                self.awaits = Awaits::Comma;
            }
            return Found::NotYet;
        }
        match (self.awaits, byte) {
            (Awaits::Object, b'{') => self.awaits = Awaits::Name,
            (Awaits::Name | Awaits::Value { is_wanted: true }, b'"') => {
                self.in_text = true;
                self.kept.push(byte);
            }
            (Awaits::Value { .. }, b'"') => self.in_text = true,
            (Awaits::Colon, b':') => self.awaits = Awaits::Value { is_wanted: false },
            // After the wanted name its colon.
            (Awaits::Value { is_wanted: true }, b':') => {}
            (Awaits::Value { is_wanted: true }, _) => return Found::NoText,
            (Awaits::Value { .. }, b'{' | b'[') => self.depth = 1,
            (Awaits::Value { .. } | Awaits::Comma, b',') => self.awaits = Awaits::Name,
            // Numbers and words.
            (Awaits::Value { .. }, byte) if byte != b'}' && byte != b']' => {}
            (Awaits::Name | Awaits::Comma | Awaits::Value { .. }, b'}') => return Found::NoText,
            _ => return Found::NoObject,
        }
        Found::NotYet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(json: &[u8]) -> Found {
        let whole = Finder::new("metadata-location").push(json);
        for size in [1, 2, 7] {
            let mut finder = Finder::new("metadata-location");
            let mut found = Found::NotYet;
            for piece in json.chunks(size) {
                found = finder.push(piece);
                if found != Found::NotYet {
                    break;
                }
            }
            assert_eq!(found, whole, "in pieces of {size}: {}", String::from_utf8_lossy(json));
        }
        whole
    }

    #[test]
    fn the_text_is_found_wherever_it_stands() {
        let text = |text: &str| Found::Text(text.to_owned());
        let table: [(&str, Found); 17] = [
            (r#"{"metadata-location":"s3://a/b","metadata":{"#, text("s3://a/b")),
            (
                r#" { "metadata" : {"metadata-location":"no","x":[1,{"}":"]"}]} , "metadata-location" : "s3:\/\/a\u002fb" }"#,
                text("s3://a/b"),
            ),
            (r#"{"a":1,"b":true,"c":null,"d":"metadata-location","e":-1.5e3,"metadata-location":"y"}"#, text("y")),
            (r#"{"a\"b":"c\\","metadata-location":"y"}"#, text("y")),
            (r#"{"metadata\u002dlocation":"y"}"#, text("y")),
            (r#"{"x":[],"y":{},"metadata-location":""}"#, text("")),
            (r#"{"metadata-location":null}"#, Found::NoText),
            (r#"{"metadata-location":{"a":"b"}}"#, Found::NoText),
            (r#"{"metadata-location":7}"#, Found::NoText),
            (r#"{"metadata":{}}"#, Found::NoText),
            ("{}", Found::NoText),
            ("[]", Found::NoObject),
            ("<html>", Found::NoObject),
            ("", Found::NotYet),
            (r#"{"metadata":{"#, Found::NotYet),
            (r#"{"metadata-location":"s3://"#, Found::NotYet),
            (r#"{"a" "b"}"#, Found::NoObject),
        ];
        for (json, expected) in table {
            assert_eq!(find(json.as_bytes()), expected, "{json}");
        }
        let long = format!(r#"{{"metadata-location":"{}"}}"#, "x".repeat(MAX_TEXT));
        assert_eq!(find(long.as_bytes()), Found::NoText);
        let long_name = format!(r#"{{"{}":1,"metadata-location":"y"}}"#, "x".repeat(2 * MAX_TEXT));
        assert_eq!(find(long_name.as_bytes()), text("y"));
    }

    #[test]
    fn nothing_is_kept_of_what_is_not_wanted() {
        let mut finder = Finder::new("metadata-location");
        assert_eq!(finder.push(br#"{"metadata":{"x":""#), Found::NotYet);
        for _ in 0..1_000 {
            assert_eq!(finder.push(&[b'['; 4_096]), Found::NotYet);
        }
        assert!(finder.kept.capacity() < MAX_TEXT);
    }

    #[test]
    fn any_bytes_end_in_an_answer() {
        let seeds: [&[u8]; 3] =
            [br#"{"a":[1,"x"],"metadata-location":"y"}"#, br#"{"metadata":{"b":"\u00e9"}}"#, b"\xff{\"\\"];
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for round in 0..20_000 {
            let mut bytes = seeds[round % seeds.len()].to_vec();
            for _ in 0..3 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let at = usize::try_from(state % bytes.len() as u64).unwrap_or(0);
                bytes[at] = state.to_le_bytes()[4];
            }
            find(&bytes);
        }
    }
}
