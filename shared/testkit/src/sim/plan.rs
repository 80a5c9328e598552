//! Which run, and how much of it.

use std::collections::BTreeSet;
use std::fmt;

/// One run: the same plan gives the same run, call by call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// How many times one of the workers goes on, or something happens to them, before faults stop.
    pub steps: u64,
    /// The only steps at which anything out of the ordinary happens; absent, any.
    pub only: Option<BTreeSet<u64>>,
    /// Whether the run is told, call by call.
    pub tells: bool,
}

impl Plan {
    /// A whole run.
    pub const fn new(seed: u64, steps: u64) -> Self {
        Self { seed, steps, only: None, tells: false }
    }

    /// Whether something out of the ordinary may happen at a step.
    pub(super) fn allows(&self, step: u64) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&step))
    }
}

impl fmt::Display for Plan {
    /// The options of `cargo xtask sim` that run it again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--seed {} --steps {}", self.seed, self.steps)?;
        if let Some(only) = &self.only {
            let steps: Vec<String> = only.iter().map(u64::to_string).collect();
            write!(f, " --only {}", if steps.is_empty() { "0".to_owned() } else { steps.join(",") })?;
        }
        Ok(())
    }
}
