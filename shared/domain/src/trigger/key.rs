//! The digest that names a trigger.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::Range;
use crate::digest::hex;
use crate::ids::{AssetId, GroupName, TargetId, TriggerKey};
use crate::policy::{Partition, Window};

/// Everything that makes a trigger distinct.
#[derive(Debug, Clone, Copy)]
pub struct Distinct<'a> {
    /// The target.
    pub target: &'a TargetId,
    /// Its generation.
    pub generation: u32,
    /// The groups.
    pub groups: &'a BTreeSet<GroupName>,
    /// For each asset the version that it consumes up to.
    pub ranges: &'a [Range],
    /// The window that it stands for.
    pub window: Option<Window>,
    /// The partition that it stands for.
    pub partition: Option<&'a Partition>,
    /// The time of the deadline or of the cron expression that it stands for.
    pub tick: Option<Timestamp>,
    /// The request of the person who asked for it.
    pub request: Option<&'a str>,
    /// What registers other than the version were taken at, where they are what moved.
    pub registers: &'a [(AssetId, String)],
}

/// A digest of everything that makes a trigger distinct.
///
/// The text that is digested is part of the stored format and never changes; a new ingredient
/// comes with a new first line.
pub fn trigger_key(parts: &Distinct<'_>) -> TriggerKey {
    use std::fmt::Write as _;

    let is_plain = parts.window.is_none()
        && parts.partition.is_none()
        && parts.tick.is_none()
        && parts.request.is_none()
        && parts.registers.is_empty();
    let form = if is_plain { 1 } else { 2 };
    let mut text = format!("lakebell trigger {form}\ntarget {}\ngeneration {}\n", parts.target, parts.generation);
    text.reserve(96 * (parts.groups.len() + parts.ranges.len()));
    for group in parts.groups {
        let _ = writeln!(text, "group {group}");
    }
    let mut ranges: Vec<&Range> = parts.ranges.iter().collect();
    ranges.sort_by_key(|range| range.asset);
    // A request that is repeated is the same whatever has been committed meanwhile.
    for range in ranges.into_iter().filter(|_| parts.request.is_none()) {
        let _ = match &range.bounds.to {
            Some(to) => writeln!(
                text,
                "asset {} {} {} {}",
                range.asset, to.position.epoch.0, to.position.ordinal, to.fingerprint
            ),
            None => writeln!(text, "asset {} none", range.asset),
        };
    }
    if let Some(window) = parts.window {
        let _ = writeln!(text, "window {} {}", window.start.as_second(), window.end.as_second());
    }
    if let Some(partition) = parts.partition {
        let _ = writeln!(text, "partition {partition}");
    }
    if let Some(tick) = parts.tick {
        let _ = writeln!(text, "tick {}", tick.as_second());
    }
    if let Some(request) = parts.request {
        let _ = writeln!(text, "request {request}");
    }
    for (asset, register) in parts.registers.iter().filter(|_| parts.request.is_none()) {
        let _ = writeln!(text, "register {asset} {register}");
    }
    TriggerKey::new(hex(&Sha256::digest(text.as_bytes())[..16]))
        .unwrap_or_else(|_| unreachable!("32 hex digits are a valid trigger key"))
}
