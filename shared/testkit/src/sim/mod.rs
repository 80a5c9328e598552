//! The simulation: the real engine over ports in memory, with a clock and a scheduler of workers that
//! a seed decides. It looks for a run that breaks a rule.
//!
//! - Several functions are at work at the same time. Each call to a port is one step of one of them;
//!   which one goes on is rolled, so every interleaving of calls is possible.
//! - A call may fail before its effect or after it, meet a conflict, or be carried out twice by the
//!   client beneath the port. A function may die between any two calls, and is ended at its deadline.
//! - Reads of several items are no snapshots: others write in between.
//! - Notifications and messages are lost, doubled, late and out of order; indexes lag behind.
//! - Tables are committed to, rolled back file by file, dropped and made anew, expired; files come
//!   late or are away for a moment.
//! - People declare, alter, undeclare, pause, resume, switch, redrive, skip, decide, fire and accept at
//!   any moment. Writers tell of checks and backfills in any order.
//! - The scheduler answers as its contract allows: late, not at all, after the connection is gone,
//!   undecided, offline, with two instances for one start.
//!
//! After each write the rules are checked over what it changed. At the end faults stop, and what is
//! promised for then is checked against what truly happened.
//!
//! The same [`Plan`] gives the same run. Each step has dice of its own, so that [`shrink()`] can leave
//! steps out.

mod dice;
mod gates;
mod job;
mod lake;
mod menu;
mod owed;
mod plan;
mod ports;
mod profile;
mod rest;
mod run;
mod scheduler;
mod shared;
mod shrink;
mod verify;
mod workers;

pub use plan::Plan;
pub use run::Report;
pub use shared::Counts;
pub use shrink::shrink;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Carries one plan out, on this thread. A panic of the engine is a broken rule like any other.
pub fn simulate(plan: &Plan) -> Report {
    let runtime = match tokio::runtime::Builder::new_current_thread().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let wrong = vec![format!("no runtime could be made for the simulation: {error}")];
            return Report { wrong, ..Report::default() };
        }
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run::Run::of(plan))));
    outcome.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
        let wrong = vec![format!("a function panicked: {}", said.unwrap_or_default())];
        Report { wrong, ..Report::default() }
    })
}
