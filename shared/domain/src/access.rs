//! What a caller may do.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Invalid;

/// One kind of thing that a token may allow. None implies another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Right {
    /// Reading state, events, verdicts and history.
    Read,
    /// Pushing events: hints, and what writers alone can know, such as verdicts of checks.
    Evidence,
    /// Registering assets and declaring targets, and taking them away.
    Declare,
    /// What people do to targets and triggers: pause, fire, redrive, decide.
    Operate,
    /// Making tokens and giving grants; for the whole deployment also its settings.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 5] = [Self::Read, Self::Evidence, Self::Declare, Self::Operate, Self::Admin];

    /// The right as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Evidence => "evidence",
            Self::Declare => "declare",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Right {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::ALL.into_iter().find(|right| right.as_str() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            Invalid::new("right", format!("`{text}` is no right"), format!("use one of {names}"))
        })
    }
}

/// What a token allows: at least one right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "BTreeSet<Right>", into = "BTreeSet<Right>")]
pub struct Rights(BTreeSet<Right>);

impl Rights {
    /// Every right.
    pub fn all() -> Self {
        Self(Right::ALL.into())
    }

    /// Whether this right is among them.
    pub fn has(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    /// Whether all of the others are among them.
    pub fn cover(&self, others: &Self) -> bool {
        others.0.is_subset(&self.0)
    }

    /// The rights, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Right> {
        self.0.iter().copied()
    }
}

impl TryFrom<BTreeSet<Right>> for Rights {
    type Error = Invalid;

    fn try_from(rights: BTreeSet<Right>) -> Result<Self, Invalid> {
        if rights.is_empty() {
            let names = Right::ALL.map(Right::as_str).join(", ");
            return Err(Invalid::new("rights", "there is none", format!("give at least one of {names}")));
        }
        Ok(Self(rights))
    }
}

impl From<Rights> for BTreeSet<Right> {
    fn from(rights: Rights) -> Self {
        rights.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_written_as_they_are_read() {
        for right in Right::ALL {
            assert_eq!(right.as_str().parse::<Right>().unwrap(), right);
            assert_eq!(serde_json::to_string(&right).unwrap(), format!("\"{right}\""));
        }
        assert!("Admin".parse::<Right>().unwrap_err().hint.contains("read, evidence"));
    }

    #[test]
    fn a_token_without_rights_cannot_be() {
        assert!(serde_json::from_str::<Rights>("[]").is_err());
        let some: Rights = serde_json::from_str(r#"["operate", "read"]"#).unwrap();
        assert_eq!(serde_json::to_string(&some).unwrap(), r#"["read","operate"]"#);
        assert!(some.has(Right::Read) && !some.has(Right::Admin));
        assert!(Rights::all().cover(&some) && !some.cover(&Rights::all()));
    }
}
