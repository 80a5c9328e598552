//! Identifiers, one type each, so that none can stand where another is meant.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// An asset's own id: 128 random bits, written as 32 lower-case hex digits.
///
/// Cursors and pointers use it instead of the key, so that names do not fill their items and a
/// renamed asset keeps its history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssetId(u128);

impl AssetId {
    /// An id from random bits. The caller supplies the randomness.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
}

impl fmt::Display for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By hand: each trigger key and each stored cursor writes it for every asset, and the
        // library's way for 128 bits takes several times as long.
        let mut hex = [0_u8; 32];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0.to_be_bytes()) {
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
        }
        f.write_str(std::str::from_utf8(&hex).map_err(|_| fmt::Error)?)
    }
}

/// A lower-case hex digit.
const fn digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + (value - 10) }
}

impl fmt::Debug for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AssetId({self})")
    }
}

impl FromStr for AssetId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let well_formed = text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        well_formed.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self).ok_or_else(|| {
            Invalid::new("asset id", format!("`{text}` is not an asset id"), "use 32 lower-case hex digits")
        })
    }
}

impl Serialize for AssetId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AssetId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A name type: which characters it may hold, and how long it may be.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $field:literal, max $max:literal, $allowed:expr, $hint:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text against the characters and the length that this name allows.
            pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
                let text = text.into();
                let allowed: fn(char) -> bool = $allowed;
                if text.is_empty() || text.len() > $max || !text.chars().all(allowed) {
                    return Err(Invalid::new($field, format!("`{text}` is not a valid {}", $field), $hint));
                }
                Ok(Self(text.into()))
            }

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Letters, digits, `_`, `-` and `.`: safe in keys, paths and metric labels.
fn is_slug(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

name_type!(
    /// The name of a group of dependencies, unique within its target.
    GroupName, "group name", max 64, is_slug, "use 1 to 64 letters, digits, `_`, `-` or `.`"
);
name_type!(
    /// The name of a target, unique within its project.
    TargetName, "target name", max 64, is_slug, "use 1 to 64 letters, digits, `_`, `-` or `.`"
);
name_type!(
    /// The name of a DolphinScheduler connection, unique within a deployment.
    ConnectionName, "connection name", max 64, is_slug, "use 1 to 64 letters, digits, `_`, `-` or `.`"
);
name_type!(
    /// What a started workflow calls an asset: part of a parameter name, as in `lakebell_orders_to`.
    Alias, "alias", max 64, |c| c.is_ascii_alphanumeric() || c == '_',
    "use 1 to 64 letters, digits or `_`, as in a parameter name"
);
name_type!(
    /// A random id of one attempt to write, by which a writer whose answer was lost knows its own write.
    AttemptId, "attempt id", max 64, is_slug, "use 1 to 64 letters, digits, `_`, `-` or `.`"
);
name_type!(
    /// One id from the hint to the started workflow, carried through queues and logs.
    TraceId, "trace id", max 64, is_slug, "use 1 to 64 letters, digits, `_`, `-` or `.`"
);
name_type!(
    /// What tells the runs of a waiting task apart where a scheduler does not: a start parameter.
    SensorToken, "sensor token", max 128, is_slug, "use 1 to 128 letters, digits, `_`, `-` or `.`"
);
name_type!(
    /// The public part of an API token, by which it is found, listed and logged: 16 lower-case hex
    /// digits.
    TokenId, "token id", max 16, |c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase(),
    "use the 16 hex digits that the list of tokens shows"
);
name_type!(
    /// The id of an audit: 32 lower-case hex digits.
    AuditId, "audit id", max 32, |c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase(),
    "use the 32 hex digits that asking for the audit answered"
);
name_type!(
    /// The digest that names a trigger: 32 lower-case hex digits. See [`crate::trigger::trigger_key`].
    TriggerKey, "trigger key", max 64, |c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase(),
    "use the 32 hex digits that the trigger history shows"
);

/// DolphinScheduler's code of a project: a positive 64-bit number of about 14 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ProjectCode(pub i64);

/// DolphinScheduler's code of a workflow definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct WorkflowCode(pub i64);

/// DolphinScheduler's code of a task definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TaskCode(pub i64);

/// DolphinScheduler's id of a workflow instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub i64);

/// Shows a numeric id as its number and reads it from one.
macro_rules! number_text {
    ($($name:ident, $field:literal);+ $(;)?) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = Invalid;

            fn from_str(text: &str) -> Result<Self, Invalid> {
                text.parse().ok().filter(|n| *n > 0).map(Self).ok_or_else(|| {
                    Invalid::new($field, format!("`{text}` is not a {}", $field), "use the positive number that DolphinScheduler shows")
                })
            }
        }
    )+};
}

number_text! {
    ProjectCode, "project code";
    WorkflowCode, "workflow definition code";
    TaskCode, "task definition code";
    InstanceId, "workflow instance id";
}

/// A target's identity: its project and its name, written `project/name`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId {
    /// The DolphinScheduler project that the target belongs to.
    pub project: ProjectCode,
    /// The target's name within the project.
    pub name: TargetName,
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.name)
    }
}

impl FromStr for TargetId {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (project, name) = text
            .split_once('/')
            .ok_or_else(|| Invalid::new("target", format!("`{text}` is not a target id"), "write `project/name`"))?;
        Ok(Self { project: project.parse()?, name: name.parse()? })
    }
}

impl Serialize for TargetId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TargetId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
