//! Where in a YAML file a field stands.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// The shape of a document with the place of every key and value.
#[derive(Debug)]
pub(super) enum Node {
    Leaf,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

/// Line and column, counted from 1.
pub(super) type LineColumn = (u64, u64);

/// The place of a field by its path, as in `targets[0].groups[1].name`: the value where it is
/// there, and else the nearest thing around it.
pub(super) fn find(document: &Spanned<Node>, path: &str) -> LineColumn {
    let mut node = document;
    let mut place = at(&node.referenced);
    for step in path.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty()) {
        let next = match &node.value {
            Node::Leaf => None,
            Node::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            Node::Map(entries) => entries.iter().find(|(key, _)| key.value == step).map(|(_, value)| value),
        };
        let Some(next) = next else { break };
        node = next;
        place = at(&node.referenced);
    }
    place
}

fn at(location: &serde_saphyr::Location) -> LineColumn {
    (location.line(), location.column())
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_not_there_is_at_what_is_around_it() {
        let document = "a: 1\nlist:\n  - name: x\n    deep: {k: [1, 2]}\n  - name: y\n";
        let document: Spanned<Node> = serde_saphyr::from_str(document).unwrap();
        assert_eq!(find(&document, "list[1].name"), (5, 11));
        assert_eq!(find(&document, "list[0].deep.k[1]"), (4, 19));
        assert_eq!(find(&document, "list[0].absent.further"), (3, 5));
        assert_eq!(find(&document, "nothing"), (1, 1));
    }
}
