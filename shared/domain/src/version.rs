//! A commit's place in an asset's history.

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

/// Tells two commits with one ordinal apart: Paimon's uuid, or a digest of what identifies the
/// commit where the format has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

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
    pub snapshot_id: String,
}
