//! The digest that names a trigger.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::Range;
use crate::ids::{GroupName, TargetId, TriggerKey};

/// A digest of everything that makes a trigger distinct: the target and its generation, the
/// groups, and for each asset the version that it consumes up to.
///
/// The text that is digested is part of the stored format and never changes; a new ingredient
/// comes with a new first line.
pub fn trigger_key(target: &TargetId, generation: u32, groups: &BTreeSet<GroupName>, ranges: &[Range]) -> TriggerKey {
    use std::fmt::Write as _;

    let mut text = format!("lakebell trigger 1\ntarget {target}\ngeneration {generation}\n");
    for group in groups {
        let _ = writeln!(text, "group {group}");
    }
    let mut ranges: Vec<&Range> = ranges.iter().collect();
    ranges.sort_by_key(|range| range.asset);
    for range in ranges {
        let _ = match &range.bounds.to {
            Some(to) => writeln!(
                text,
                "asset {} {} {} {}",
                range.asset, to.position.epoch.0, to.position.ordinal, to.fingerprint.0
            ),
            None => writeln!(text, "asset {} none", range.asset),
        };
    }
    let digest = Sha256::digest(text.as_bytes());
    let hex = digest.iter().take(16).fold(String::with_capacity(32), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    TriggerKey::new(hex).unwrap_or_else(|_| unreachable!("32 hex digits are a valid trigger key"))
}
