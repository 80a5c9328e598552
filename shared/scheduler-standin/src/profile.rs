//! The DolphinScheduler releases whose answers the stand-in gives.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which DolphinScheduler is stood in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// 3.1: process-*, a start answers null and writes a command that cannot be listed.
    #[serde(rename = "3.1")]
    V3_1,
    /// 3.2: process-*, a start answers a trigger code, commands can be listed.
    #[serde(rename = "3.2")]
    V3_2,
    /// The source line that became 3.3, of October 2024: as 3.3, and offline workflows start.
    #[serde(rename = "3.3-dev")]
    V3_3Dev,
    /// 3.3: workflow-*, a start answers instance ids, offline is refused as 50014 with a text.
    #[serde(rename = "3.3")]
    V3_3,
    /// 3.4: as 3.3 in every call that Lakebell makes.
    #[serde(rename = "3.4")]
    V3_4,
}

/// A profile name that the stand-in does not know.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a profile of the stand-in: use 3.1, 3.2, 3.3, 3.3-dev or 3.4")]
pub struct UnknownProfile(String);

impl Profile {
    /// The profiles of releases, for tests that go through all of them.
    pub const RELEASES: [Self; 4] = [Self::V3_1, Self::V3_2, Self::V3_3, Self::V3_4];

    /// Whether paths and parameters say `workflow` (3.3 and later) and not `process`.
    pub const fn says_workflow(self) -> bool {
        matches!(self, Self::V3_3Dev | Self::V3_3 | Self::V3_4)
    }

    /// `process` or `workflow`, as paths and parameter names have it.
    pub const fn noun(self) -> &'static str {
        if self.says_workflow() { "workflow" } else { "process" }
    }

    /// Whether `listCommand` and `listErrorCommand` exist (3.2 and later).
    pub const fn lists_commands(self) -> bool {
        !matches!(self, Self::V3_1)
    }

    /// Whether an offline workflow is started all the same.
    pub(crate) const fn starts_offline(self) -> bool {
        matches!(self, Self::V3_3Dev)
    }

    /// The name as it is given on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V3_1 => "3.1",
            Self::V3_2 => "3.2",
            Self::V3_3Dev => "3.3-dev",
            Self::V3_3 => "3.3",
            Self::V3_4 => "3.4",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        [Self::V3_1, Self::V3_2, Self::V3_3Dev, Self::V3_3, Self::V3_4]
            .into_iter()
            .find(|profile| profile.name() == text)
            .ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}
