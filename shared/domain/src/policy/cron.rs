//! Times by a cron expression.

use cronexpr::Crontab;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::window::Zone;
use crate::Invalid;

/// Times at which a target starts with what is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Spelled", into = "Spelled")]
pub struct OrAt {
    cron: String,
    zone: Zone,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spelled {
    cron: String,
    #[cfg_attr(feature = "schema", schemars(required))]
    time_zone: Option<Zone>,
}

impl TryFrom<Spelled> for OrAt {
    type Error = Invalid;

    fn try_from(spelled: Spelled) -> Result<Self, Invalid> {
        let zone = spelled.time_zone.ok_or_else(|| {
            Invalid::new("orAt.timeZone", "a cron expression needs a time zone", "name it, as in Asia/Shanghai or UTC")
        })?;
        let or_at = Self { cron: spelled.cron, zone };
        or_at.crontab().map(|_| or_at.clone()).ok_or_else(|| {
            Invalid::new(
                "orAt.cron",
                format!("`{}` is no cron expression", or_at.cron.escape_debug()),
                "write five fields: minute, hour, day of month, month, day of week, as in `0 6 * * *`",
            )
        })
    }
}

impl From<OrAt> for Spelled {
    fn from(or_at: OrAt) -> Self {
        Self { cron: or_at.cron, time_zone: Some(or_at.zone) }
    }
}

impl OrAt {
    fn crontab(&self) -> Option<Crontab> {
        let fields = self.cron.split_whitespace().count();
        (fields == 5).then(|| cronexpr::parse_crontab(&format!("{} {}", self.cron, self.zone)).ok()).flatten()
    }

    /// The first time after a moment; `None` where there is none any more.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let next = self.crontab()?.find_next(moment).ok()?;
        Some(next.timestamp())
    }
}

impl std::fmt::Display for OrAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` in {}", self.cron, self.zone)
    }
}
