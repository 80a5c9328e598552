//! What a target waits for, in plain words.

use std::fmt::Write as _;

use super::{Advance, Conditions, Group, Member, OnFailedVersion, Target};

/// The rules of alternatives as one.
pub(crate) fn joined<T: AsRef<str>>(rules: impl Iterator<Item = T>) -> String {
    let mut text = String::new();
    for rule in rules {
        if !text.is_empty() {
            text.push_str(", OR ");
        }
        text.push_str(rule.as_ref());
    }
    text
}

impl Target {
    /// The rule of each group in plain words, joined by OR.
    pub fn rule(&self) -> String {
        joined(self.groups.iter().map(Group::rule))
    }
}

impl Group {
    /// The rule in plain words: "fires when BOTH a AND b have advanced since the last trigger".
    pub fn rule(&self) -> String {
        // Written with each evaluation, of up to 99 members: into one text, without one for each.
        let mut text = String::with_capacity(64 + 24 * (self.members.len() + self.prefixes.len()));
        let count = self.members.len() + self.prefixes.len();
        let is_pair = count == 2 && self.advance == Advance::All;
        text.push_str("fires when ");
        match self.advance {
            _ if count == 1 => {}
            Advance::All if is_pair => text.push_str("BOTH "),
            Advance::All => text.push_str("ALL of "),
            Advance::Any => text.push_str("ANY of "),
            Advance::AtLeast(k) => {
                let _ = write!(text, "AT LEAST {k} of ");
            }
        }
        let between = if is_pair { " AND " } else { ", " };
        for (at, member) in self.members.iter().enumerate() {
            text.push_str(if at > 0 { between } else { "" });
            member.write_rule(&mut text);
        }
        for (at, prefix) in self.prefixes.iter().enumerate() {
            text.push_str(if at + self.members.len() > 0 { between } else { "" });
            let _ = write!(text, "any table of {prefix}");
        }
        let is_one = count == 1 || self.advance == Advance::Any;
        text.push_str(if is_one { " has" } else { " have" });
        text.push_str(" advanced since the last trigger");
        text
    }
}

impl Member {
    fn write_rule(&self, text: &mut String) {
        text.push_str(self.alias.as_str());
        let terms = self.conditions.terms();
        if !terms.is_empty() {
            let _ = write!(text, " ({})", terms.join(", "));
        }
    }
}

impl Conditions {
    /// What is asked beyond a commit that changes data, a few words each.
    fn terms(&self) -> Vec<String> {
        let mut terms = Vec::new();
        if let Some(kinds) = &self.commit_kinds {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.0.as_str()).collect();
            terms.push(format!("only {}", names.join(" or ")));
        }
        if let Some(minimum) = &self.minimum {
            terms.push(format!("from snapshot {}", minimum.snapshot_id));
        }
        if self.ignore_empty {
            terms.push("not empty".to_owned());
        }
        if self.operations.is_some() {
            terms.push("by chosen operations".to_owned());
        }
        if self.min_new_snapshots > 1 {
            terms.push(format!("{} new commits", self.min_new_snapshots));
        }
        if let Some(rows) = self.min_delta_records {
            terms.push(format!("{rows} new rows"));
        }
        if let Some(watermark) = self.watermark {
            terms.push(format!("watermark {watermark}"));
        }
        if let Some(lag) = self.max_lag {
            terms.push(format!("watermark at most {lag} behind"));
        }
        if let Some(every) = &self.every {
            terms.push(format!("each window of {every}"));
        }
        if let Some(partition) = &self.partition {
            let set = partition.full_set.as_ref().map(|set| format!(" with all {} of {}", set.values.len(), set.key));
            terms.push(format!("each {}{}", partition.join.join("/"), set.unwrap_or_default()));
        }
        if let Some(quality) = &self.quality {
            let checks =
                if quality.checks.is_empty() { String::new() } else { format!(" {}", quality.checks.join(", ")) };
            let failed =
                if quality.on_failed == OnFailedVersion::PassOver { ", passing over failed versions" } else { "" };
            terms.push(format!("PASSED{checks}{failed}"));
        }
        if self.schema_compatible {
            terms.push("schema COMPATIBLE".to_owned());
        }
        if let Some(tag) = &self.tag {
            terms.push(format!("tag `{tag}`"));
        }
        if self.backfill_completed {
            terms.push("a finished backfill".to_owned());
        }
        if self.cdc_lag_recovered {
            terms.push("CDC lag recovered".to_owned());
        }
        if self.optional {
            terms.push("optional".to_owned());
        }
        terms
    }
}
