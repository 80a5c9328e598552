//! Which versions a claim would take, or an open trigger took, for people.

use serde::{Deserialize, Serialize};

use crate::asset::AssetKey;
use crate::policy::Window;
use crate::trigger::{Claim, Range, Trigger};
use crate::version::Version;

/// What is taken of one asset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Take {
    /// The asset.
    pub asset: AssetKey,
    /// The last version that was taken before; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Version>,
    /// The last version that is taken; absent for a table that never had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Version>,
    /// The tag by which it is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The window that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

impl Take {
    fn of_range(range: &Range, window: Option<Window>) -> Self {
        Self {
            asset: range.key.clone(),
            from: range.bounds.from.clone(),
            to: range.bounds.to.clone(),
            tag: range.tag.clone(),
            window,
        }
    }

    /// What a claim takes.
    pub fn of(claim: &Claim) -> Vec<Self> {
        claim.ranges.iter().map(|range| Self::of_range(range, claim.window)).collect()
    }

    /// What a trigger took.
    pub fn by(trigger: &Trigger) -> Vec<Self> {
        trigger.ranges.iter().map(|range| Self::of_range(range, trigger.window)).collect()
    }
}
