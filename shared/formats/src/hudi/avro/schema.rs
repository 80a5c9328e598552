//! The writer's schema, as far as decoding needs it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::broken;
use crate::error::FormatError;
use crate::json::shorten;

/// Largest schema that is compiled, in nodes. That of Hudi's commit metadata has about 120.
const MAX_NODES: usize = 10_000;

/// A node of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hudi) enum Node {
    Null,
    Boolean,
    /// `int` and `long`, which are written alike.
    Long,
    Float,
    Double,
    /// `bytes` and `string`, which are written alike.
    Bytes,
    Fixed(u64),
    /// An enum, with the names of its symbols.
    Enum(Vec<String>),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    /// Names and nodes of the fields, in the order in which they are written.
    Record(Vec<(String, usize)>),
    /// A named type that refers to itself while it is compiled; never left in a schema.
    Pending,
}

/// A schema: nodes that refer to each other by index.
#[derive(Debug)]
pub(in crate::hudi) struct Schema {
    nodes: Vec<Node>,
    root: usize,
}

impl Schema {
    pub(in crate::hudi) fn parse(json: &[u8]) -> Result<Self, FormatError> {
        let value =
            serde_json::from_slice(json).map_err(|error| broken(format!("the Avro schema is no JSON: {error}")))?;
        let mut compiler = Compiler { nodes: Vec::new(), names: HashMap::new() };
        let root = compiler.compile(&value, "")?;
        Ok(Self { nodes: compiler.nodes, root })
    }

    pub(in crate::hudi) const fn root(&self) -> usize {
        self.root
    }

    /// The node of an index that this schema gave out.
    pub(in crate::hudi) fn node(&self, index: usize) -> &Node {
        self.nodes.get(index).unwrap_or(&Node::Pending)
    }
}

/// `serde_json` refuses deeply nested input, which bounds the recursion here.
struct Compiler {
    nodes: Vec<Node>,
    names: HashMap<String, usize>,
}

impl Compiler {
    fn compile(&mut self, value: &Value, namespace: &str) -> Result<usize, FormatError> {
        match value {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => {
                let place = self.add(Node::Pending)?;
                let branches =
                    branches.iter().map(|branch| self.compile(branch, namespace)).collect::<Result<_, _>>()?;
                Ok(self.set(place, Node::Union(branches)))
            }
            Value::Object(definition) => self.definition(definition, namespace),
            _ => Err(broken(format!("the Avro schema holds {}", shorten(&value.to_string(), 60)))),
        }
    }

    fn named(&mut self, name: &str, namespace: &str) -> Result<usize, FormatError> {
        let primitive = match name {
            "null" => Node::Null,
            "boolean" => Node::Boolean,
            "int" | "long" => Node::Long,
            "float" => Node::Float,
            "double" => Node::Double,
            "bytes" | "string" => Node::Bytes,
            _ => {
                let known = self.names.get(&full_name(name, namespace)).or_else(|| self.names.get(name));
                return known
                    .copied()
                    .ok_or_else(|| broken(format!("the Avro schema has no type `{}`", shorten(name, 60))));
            }
        };
        self.add(primitive)
    }

    fn definition(&mut self, definition: &Map<String, Value>, outer: &str) -> Result<usize, FormatError> {
        let field =
            |name: &str| definition.get(name).ok_or_else(|| broken(format!("the Avro schema lacks a `{name}`")));
        let kind = match field("type")? {
            Value::String(kind) => kind.as_str(),
            nested => return self.compile(nested, outer),
        };
        match kind {
            "array" => {
                let place = self.add(Node::Pending)?;
                let items = self.compile(field("items")?, outer)?;
                Ok(self.set(place, Node::Array(items)))
            }
            "map" => {
                let place = self.add(Node::Pending)?;
                let values = self.compile(field("values")?, outer)?;
                Ok(self.set(place, Node::Map(values)))
            }
            "record" | "error" => {
                let (place, namespace) = self.define(definition, outer)?;
                let fields =
                    field("fields")?.as_array().ok_or_else(|| broken("an Avro record has no list of fields"))?;
                let fields =
                    fields.iter().map(|field| self.record_field(field, &namespace)).collect::<Result<_, _>>()?;
                Ok(self.set(place, Node::Record(fields)))
            }
            "enum" => {
                let (place, _) = self.define(definition, outer)?;
                let symbols =
                    field("symbols")?.as_array().ok_or_else(|| broken("an Avro enum has no list of symbols"))?;
                let symbols = symbols.iter().map(|symbol| symbol.as_str().unwrap_or_default().to_owned()).collect();
                Ok(self.set(place, Node::Enum(symbols)))
            }
            "fixed" => {
                let (place, _) = self.define(definition, outer)?;
                let size = field("size")?.as_u64().ok_or_else(|| broken("an Avro fixed type has no size"))?;
                Ok(self.set(place, Node::Fixed(size)))
            }
            name => self.named(name, outer),
        }
    }

    fn record_field(&mut self, field: &Value, namespace: &str) -> Result<(String, usize), FormatError> {
        let name = field.get("name").and_then(Value::as_str).ok_or_else(|| broken("an Avro field has no name"))?;
        let kind = field.get("type").ok_or_else(|| broken("an Avro field has no type"))?;
        Ok((name.to_owned(), self.compile(kind, namespace)?))
    }

    /// Enters a named type before its parts are compiled, because they may refer to it.
    fn define(&mut self, definition: &Map<String, Value>, outer: &str) -> Result<(usize, String), FormatError> {
        let text = |name: &str| definition.get(name).and_then(Value::as_str);
        let name = text("name").ok_or_else(|| broken("a named Avro type has no name"))?;
        let name = full_name(name, text("namespace").unwrap_or(outer));
        let namespace = name.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
        let place = self.add(Node::Pending)?;
        self.names.insert(name, place);
        Ok((place, namespace))
    }

    fn add(&mut self, node: Node) -> Result<usize, FormatError> {
        if self.nodes.len() == MAX_NODES {
            return Err(broken("the Avro schema is larger than any real one"));
        }
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    fn set(&mut self, place: usize, node: Node) -> usize {
        if let Some(pending) = self.nodes.get_mut(place) {
            *pending = node;
        }
        place
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}
