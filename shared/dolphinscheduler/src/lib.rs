//! Client of the DolphinScheduler REST API, 3.1 to 3.4.
//!
//! [`DolphinScheduler`] implements the engine's scheduler port over HTTP. What it knows about the
//! API (paths, parameter names, codes, windows in which a start cannot be seen) was read from
//! DolphinScheduler's source at tags 3.1.9 and 3.2.2 and at the line that became 3.3; 3.4 is known
//! from a public client generated from 3.4.1.
//!
//! A start is sent once and never repeated here. Whether it took effect is decided by
//! [`classify::start_outcome`] and, where that is ambiguous, by the duplicate check.

mod bounded;
mod check;
mod circuit;
pub mod classify;
mod client;
mod detect;
mod envelope;
mod expiry;
mod gates;
mod instances;
mod list;
mod parameters;
mod preflight;
mod rows;
mod scheduler;
mod session;
mod spelling;
mod start;

pub use client::{BuildError, Options};
pub use envelope::{Answer, Transport};
pub use scheduler::DolphinScheduler;
pub use spelling::Spelling;
