//! The commit watcher over the ports in memory.
// Helpers of tests are tests: what they do not expect ends the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod events;
mod formats;
mod handling;
mod properties;
mod samples;
mod support;
