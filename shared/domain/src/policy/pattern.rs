//! Patterns with `*`, for tags and for operations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 128;

/// A text in which `*` stands for any run of characters; case counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Whether a text has this form. Takes time proportional to the product of both lengths at worst.
    pub fn matches(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(first) = parts.next() else { return text.is_empty() };
        let Some(mut rest) = text.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.len() >= last.len() && rest.ends_with(last)
    }
}

impl FromStr for Pattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() || text.len() > MAX_PATTERN_BYTES || text.chars().any(char::is_control) {
            return Err(Invalid::new(
                "pattern",
                format!("`{}` is no pattern", text.escape_debug()),
                format!("write a name of 1 to {MAX_PATTERN_BYTES} bytes, with `*` for any run of characters"),
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Which commits count, by what wrote them: the format's name of the operation, or the name of the
/// application where the format keeps one (Paimon's commit user, Iceberg's and Delta's engine).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Operations {
    /// Only what one of these matches; empty means everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Pattern>,
    /// Nothing that one of these matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Pattern>,
}

impl Operations {
    /// Whether a commit counts that goes by these names.
    pub fn admits<'a>(&self, names: &(impl Iterator<Item = &'a str> + Clone)) -> bool {
        let matched =
            |patterns: &[Pattern]| patterns.iter().any(|pattern| names.clone().any(|name| pattern.matches(name)));
        (self.include.is_empty() || matched(&self.include)) && !matched(&self.exclude)
    }
}
