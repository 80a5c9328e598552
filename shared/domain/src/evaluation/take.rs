//! Which versions a claim would take, or an open trigger took, for people.

use serde::{Deserialize, Serialize, Serializer};

use super::ClaimPlan;
use crate::asset::AssetKey;
use crate::policy::Window;
use crate::trigger::{Range, Trigger};
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
    fn of(range: &Range, window: Option<Window>) -> Self {
        Self {
            asset: range.key.clone(),
            from: range.bounds.from.clone(),
            to: range.bounds.to.clone(),
            tag: range.tag.clone(),
            window,
        }
    }

    /// What a trigger took.
    pub fn by(trigger: &Trigger) -> Vec<Self> {
        trigger.ranges.iter().map(|range| Self::of(range, trigger.window)).collect()
    }
}

/// Shows a plan as what it would take: built only where an evaluation is shown.
#[allow(clippy::ref_option)] // the signature that serde asks for
pub(super) fn shown<S: Serializer>(plan: &Option<ClaimPlan>, serializer: S) -> Result<S::Ok, S::Error> {
    let claims = plan.iter().map(|plan| &plan.claim);
    serializer.collect_seq(claims.flat_map(|claim| claim.ranges.iter().map(|range| Take::of(range, claim.window))))
}
