//! What a target waits for, in plain words.

use super::{Advance, Conditions, Group, Member, OnFailedVersion, Target};

impl Target {
    /// The rule of each group in plain words, joined by OR.
    pub fn rule(&self) -> String {
        self.groups.iter().map(Group::rule).collect::<Vec<_>>().join(", OR ")
    }
}

impl Group {
    /// The rule in plain words: "fires when BOTH a AND b have advanced since the last trigger".
    pub fn rule(&self) -> String {
        let mut names: Vec<String> = self.members.iter().map(Member::rule).collect();
        names.extend(self.prefixes.iter().map(|prefix| format!("any table of {prefix}")));
        match (self.advance, names.as_slice()) {
            (_, [only]) => format!("fires when {only} has advanced since the last trigger"),
            (Advance::All, [first, second]) => {
                format!("fires when BOTH {first} AND {second} have advanced since the last trigger")
            }
            (Advance::All, many) => {
                format!("fires when ALL of {} have advanced since the last trigger", many.join(", "))
            }
            (Advance::Any, many) => {
                format!("fires when ANY of {} has advanced since the last trigger", many.join(", "))
            }
            (Advance::AtLeast(k), many) => {
                format!("fires when AT LEAST {k} of {} have advanced since the last trigger", many.join(", "))
            }
        }
    }
}

impl Member {
    fn rule(&self) -> String {
        let terms = self.conditions.terms();
        if terms.is_empty() { self.alias.to_string() } else { format!("{} ({})", self.alias, terms.join(", ")) }
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
