//! A commit's place in an asset's history.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Counts the histories that an asset has had. It grows when history is rewritten (rollback, drop
/// and create) and never falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Epoch(pub u32);

impl Epoch {
    /// The epoch that a rewrite opens.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A commit's number within its epoch. What it is depends on the format: Paimon's snapshot id,
/// Delta's version, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct Ordinal(pub u64);

impl Ordinal {
    /// The ordinal of the commit that follows this one where ordinals are dense.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl std::fmt::Display for Ordinal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A text that names a version. Shared and not copied, because every explanation, range and cursor
/// holds the versions that it is about. Written by hand: serde's own form for shared texts is a
/// feature that would be on for every crate below.
macro_rules! shared_text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl PartialEq<String> for $name {
            fn eq(&self, other: &String) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(Self::from)
            }
        }
    };
}

shared_text! {
    /// Tells two commits with one ordinal apart: Paimon's uuid, or a digest of what identifies the
    /// commit where the format has none.
    Fingerprint
}
shared_text! {
    /// What the format calls the commit: snapshot id, instant or version.
    SnapshotId
}

/// Epoch and ordinal: all that orders two versions of one asset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct Position {
    /// Which of the asset's histories.
    pub epoch: Epoch,
    /// Which commit of that history.
    pub ordinal: Ordinal,
}

impl Position {
    /// Before the first commit of an epoch.
    #[must_use]
    pub const fn start_of(epoch: Epoch) -> Self {
        Self { epoch, ordinal: Ordinal(0) }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.epoch == Epoch(0) {
            write!(f, "{}", self.ordinal)
        } else {
            write!(f, "{}@{}", self.ordinal, self.epoch.0)
        }
    }
}

/// One committed version of an asset.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// Where it stands.
    #[serde(flatten)]
    pub position: Position,
    /// Which commit stands there.
    pub fingerprint: Fingerprint,
    /// The snapshot id as the format names it; for people and started workflows, never for order.
    pub snapshot_id: SnapshotId,
}
