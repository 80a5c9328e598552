//! One line per step, with the time it took.

use std::time::{Duration, Instant};

use crate::failure::Outcome;

/// A clock that began with the command.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
}

impl Progress {
    /// Start the clock.
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// How long the command has been running.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// A line with the time since the start of the command.
    pub(crate) fn say(&self, text: &str) {
        eprintln!("[{:>6.1} s] {text}", self.elapsed().as_secs_f64());
    }

    /// Announce a step, run it, and say how long it took.
    pub(crate) fn step<T>(&self, name: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        self.say(&format!("{name} ..."));
        let begun = Instant::now();
        let outcome = work();
        let result = if outcome.is_ok() { "done" } else { "FAILED" };
        self.say(&format!("{name}: {result} in {:.1} s", begun.elapsed().as_secs_f64()));
        outcome
    }
}
