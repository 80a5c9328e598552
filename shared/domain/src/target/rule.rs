//! What a target waits for, in plain words.

use super::{Advance, Group, Target};

impl Target {
    /// The rule of each group in plain words, joined by OR.
    pub fn rule(&self) -> String {
        self.groups.iter().map(Group::rule).collect::<Vec<_>>().join(", OR ")
    }
}

impl Group {
    /// The rule in plain words: "fires when BOTH a AND b have advanced since the last trigger".
    pub fn rule(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| member.alias.as_str()).collect();
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
