//! A JSON document as it was sent: borrowed, bounded, and read in one pass.
//!
//! Writers' documents carry much that nobody here asks for (whole query plans). Texts are borrowed from
//! the body, so that what is passed over costs no copy; depth and the number of values are bounded while
//! the document is read.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::report::Refusal;

/// Deepest nesting of lists and objects.
pub const MAX_DEPTH: usize = 64;
/// Most values of one document, names of members not counted.
pub const MAX_VALUES: usize = 250_000;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    /// `null`, or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number: 64 bits, kept exactly.
    Int(i64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Self>),
    /// An object, its members in the order of the document.
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// What is read where there is nothing.
static NOTHING: Node<'static> = Node::Null;

impl<'a> Node<'a> {
    /// Reads a document.
    ///
    /// Errors: what is no JSON, too deep or too much.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let refused = |problem: String, hint: &str| Err(Refusal::new("body", problem, hint));
        let Ok(text) = std::str::from_utf8(bytes) else {
            return refused("it is no UTF-8".to_owned(), "send JSON as UTF-8");
        };
        if text.trim_ascii().is_empty() {
            return refused("it is empty".to_owned(), "send a JSON document");
        }
        let left = Cell::new(MAX_VALUES);
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = Read { depth: MAX_DEPTH, left: &left }.deserialize(&mut deserializer);
        match read.and_then(|node| deserializer.end().map(|()| node)) {
            Ok(node) => Ok(node),
            Err(error) => refused(format!("it cannot be read: {error}"), "send one JSON document"),
        }
    }

    /// A document that was read before. It is bounded already.
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(is) => Self::Bool(*is),
            Value::Number(number) => {
                number.as_i64().map_or_else(|| Self::Number(number.as_f64().unwrap_or_default()), Self::Int)
            }
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(list) => Self::List(list.iter().map(Self::of).collect()),
            Value::Object(members) => Self::Object(
                members.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), Self::of(value))).collect(),
            ),
        }
    }

    /// A member by its name; `Null` where there is none. Of two with one name the later counts.
    pub fn get(&self, name: &str) -> &Self {
        match self {
            Self::Object(members) => {
                members.iter().rev().find(|(known, _)| known == name).map_or(&NOTHING, |(_, value)| value)
            }
            _ => &NOTHING,
        }
    }

    /// A member of a member.
    pub fn at(&self, path: &[&str]) -> &Self {
        path.iter().fold(self, |node, name| node.get(name))
    }

    /// The text, where it is one and not empty.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The whole number, where it is one.
    pub const fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether it says yes or no.
    pub const fn bool(&self) -> Option<bool> {
        match self {
            Self::Bool(is) => Some(*is),
            _ => None,
        }
    }

    /// An id, which some write as a number and some as a text. None is negative: -1 stands for none.
    pub fn id(&self) -> Option<String> {
        match self {
            Self::Int(number) if *number >= 0 => Some(number.to_string()),
            Self::Text(text) if !text.is_empty() && text.len() <= 255 && !text.chars().any(char::is_control) => {
                Some(text.to_string())
            }
            _ => None,
        }
    }

    /// The list; empty where it is none.
    pub fn list(&self) -> &[Self] {
        match self {
            Self::List(list) => list,
            _ => &[],
        }
    }

    /// The members; none where it is no object.
    pub fn members(&self) -> &[(Cow<'a, str>, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// Whether there is something.
    pub const fn is_there(&self) -> bool {
        !matches!(self, Self::Null)
    }

    /// Whether it is an object.
    pub const fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }
}

/// Reads one value with what is left of the bounds.
#[derive(Clone, Copy)]
struct Read<'b> {
    depth: usize,
    left: &'b Cell<usize>,
}

impl<'b> Read<'b> {
    fn below<E: Error>(self) -> Result<Read<'b>, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Read { depth, left: self.left }),
            None => Err(E::custom(format!("it is nested deeper than {MAX_DEPTH} levels"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Read<'_> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom(format!("it has more than {MAX_VALUES} values"))),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Read<'_> {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node<'de>, E> {
        Ok(Node::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node<'de>, E> {
        #[allow(clippy::cast_precision_loss, reason = "beyond 63 bits no id is meant")]
        Ok(i64::try_from(number).map_or_else(|_| Node::Number(number as f64), Node::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node<'de>, A::Error> {
        let below = self.below()?;
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(below)? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node<'de>, A::Error> {
        let below = self.below()?;
        let mut nodes = Vec::new();
        while let Some(name) = members.next_key_seed(Name)? {
            nodes.push((name, members.next_value_seed(below)?));
        }
        Ok(Node::Object(nodes))
    }
}

/// Reads the name of a member.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_exactly_and_borrowed() {
        let text =
            r#"{"a": [1, -2, 8744736658442914487, 18446744073709551615, 1.5, null, true], "b": "x", "b": "y\n"}"#;
        let node = Node::read(text.as_bytes()).unwrap();
        assert_eq!(node.get("a").list()[2].int(), Some(8_744_736_658_442_914_487));
        assert_eq!(node.get("a").list()[2].id().as_deref(), Some("8744736658442914487"));
        assert_eq!(node.get("b").text(), Some("y\n"), "the later one counts");
        assert!(matches!(&node.members()[1].1, Node::Text(Cow::Borrowed("x"))));
        assert_eq!(node.at(&["a", "b", "c"]), &Node::Null);
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Node::of(&value).get("a"), node.get("a"));
    }

    #[test]
    fn depth_and_values_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Node::read(nested(MAX_DEPTH).as_bytes()).is_ok());
        let refused = |text: &str| Node::read(text.as_bytes()).unwrap_err().problem;
        assert!(refused(&nested(MAX_DEPTH + 1)).contains("deeper than 64"));
        assert!(refused(&"[".repeat(1_000_000)).contains("cannot be read"));
        assert!(refused(&format!("[{}1]", "1,".repeat(MAX_VALUES))).contains("more than 250000 values"));
        for text in ["", " ", "{", "{} {}", "nonsense", "{\"a\":}"] {
            assert_eq!(Node::read(text.as_bytes()).unwrap_err().field, "body", "{text}");
        }
        assert!(Node::read(b"\"\xff\"").is_err());
    }
}
